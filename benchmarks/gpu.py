"""Kernels, products and blocks on a GPU: tests, memory checks and timings, in one call of under ten minutes.

    python -m benchmarks.gpu [--part NAME ..] [--only NAME ..] [--out FOLDER] [--json]
        parts: tests, sanitizer, bandwidth, matmul, attention, irregular, tuning, blocks, calibrate, models
    python -m benchmarks.gpu --device cpu          a dry run of every part with tiny sizes, in Triton's interpreter: no time means anything

`benchmarks/gpu.sh` is the one command for a machine where nothing is installed by hand. Every part runs in processes of its own, so that
one that crashes or hangs costs its own rows only. Results go to benchmarks/results/ (or `--out`), with machine, date and command.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.gpu_report import text_of  # noqa: E402  (the folder must be known first)
from benchmarks.gpu_turn import TURN  # noqa: E402

Row = dict[str, Any]
PARTS = {
    "tests": 170.0,
    "sanitizer": 60.0,
    "bandwidth": 70.0,
    "matmul": 60.0,
    "attention": 60.0,
    "irregular": 60.0,
    "tuning": 90.0,
    "blocks": 210.0,
    "calibrate": 300.0,
    "models": 540.0,
}
"""Seconds that a part may take; what one leaves is the next one's, and one alone has all. Calibration goes on where it was, where the
folder is the same."""
ALONE = ("calibrate", "models")  # each takes a call of its own; the models several, by `--only`, where torch tunes slowly
PROGRAMS = {
    "blocks": ("mlp", "transformer", "llama", "bottleneck", "unet", "dlrm", "train"),
    "models": ("mlp", "bert", "llama_prefill", "llama_decode", "vit", "resnet50", "unet", "dlrm", "moe", "mamba"),
}
LEAST = 0.95  # of the time of max-autotune over ours, for each model; the geometric mean is to be 1.1
TESTS = (
    "pointwise", "boxes", "rows", "online", "scan", "product", "copies", "bf16x6", "eights", "scales", "attention", "attention_copies",
    "attention_ahead", "gradients", "gradients_copies", "recurrence", "windows", "scatter", "grouped", "sort", "scalars", "plans",
)  # fmt: skip
SAMPLE = "test_drawn_kernels and 3"  # of each family, for the memory checker


@dataclass(frozen=True)
class Setup:
    """What the parts are told: where to run, for which target's plans, and whether only to try it out."""

    device: str
    target: str
    only: tuple[str, ...]
    tune: bool
    each: float
    out: Path

    @property
    def tiny(self) -> bool:
        return self.device == "cpu"

    @property
    def environment(self) -> dict[str, str]:
        """The variables of the processes that run kernels."""
        paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        found = {**os.environ, "PYTHONPATH": paths, "TOKENIZERS_PARALLELISM": "false", "ORT_DISABLE_TELEMETRY": "1"}
        found.pop("TRITON_INTERPRET", None)
        return {**found, "TRITON_INTERPRET": "1"} if self.device == "cpu" else found


def main() -> int:
    """Run the parts that are asked for; 1 where a result is wrong, 2 where there is no GPU."""
    given = _arguments()
    if given.child:
        return _child(given)
    if given.device == "cuda" and (missing := _missing_gpu()):
        print(f"{missing}. `--device cpu` tries every part out with tiny sizes.", file=sys.stderr)
        return 2
    setup = Setup(given.device, given.target, tuple(given.only), not given.no_tune, given.each, Path(given.out))
    document: Row = {**_machine(setup), "command": " ".join(["python -m benchmarks.gpu", *sys.argv[1:]]), "parts": {}}
    end = time.monotonic() + given.seconds
    kept = 0.0
    for name in given.part or [name for name in PARTS if name not in ALONE]:
        started = time.monotonic()
        allowed = end - started if given.part == [name] else min(PARTS[name] + kept, end - started)
        print(f"{name} ..", file=sys.stderr, flush=True)
        rows = list(RUNNERS[name](setup, allowed)) if allowed > 5 else [{"error": "no time was left for it"}]
        took = time.monotonic() - started
        kept = max(0.0, allowed - took)
        document["parts"][name] = {"seconds": round(took, 1), "rows": rows}
        _write(document, Path(given.out))  # after each part: what is known is kept
    print(json.dumps(document, indent=1) if given.json else text_of(document))
    return int(any(_is_wrong(row) for part in document["parts"].values() for row in part["rows"]))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", action="append", choices=list(PARTS), help="only these parts")
    parser.add_argument("--only", action="append", default=[], help="only these blocks, groups or families of tests")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--target", default="nvidia-h200", help="whose data the plans are made with")
    parser.add_argument("--seconds", type=float, default=570.0, help="for all parts together")
    parser.add_argument("--each", type=float, default=3.0, help="seconds of timing for each row, of 5 rounds at least")
    parser.add_argument("--no-tune", action="store_true", help="do not try other tile sizes of products and attentions")
    parser.add_argument("--out", default=str(ROOT / "benchmarks" / "results"))
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    return parser.parse_args()


def _is_wrong(row: Row) -> bool:
    return bool(row.get("error_exit") or row.get("right") is False or row.get("wrong") or row.get("failures") or row.get("found"))


# ---------------------------------------------------------------- the machine


def _missing_gpu() -> str:
    """Why nothing can be measured here; empty where it can."""
    try:
        import torch
    except ImportError:
        return "torch is not installed (pip install torch triton)"
    try:
        import triton  # noqa: F401
    except ImportError:
        return "Triton is not installed (pip install torch triton)"
    return "" if torch.cuda.is_available() else "there is no GPU that torch sees on this machine"


def _machine(setup: Setup) -> Row:
    from importlib.metadata import PackageNotFoundError, version

    found: Row = {"date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"), "device": setup.device, "target": setup.target}
    found["versions"] = {"python": platform.python_version()}
    for package in ("torch", "triton", "numpy", "egglog"):
        try:
            found["versions"][package] = version(package)
        except PackageNotFoundError:
            found["versions"][package] = "missing"
    commit = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    found["commit"] = commit.stdout.strip() or "unknown"
    found["cores"] = os.cpu_count()
    if setup.device == "cuda":
        asked = "name,driver_version,clocks.sm,clocks.mem,temperature.gpu,power.draw,memory.total"
        facts = subprocess.run(["nvidia-smi", f"--query-gpu={asked}", "--format=csv,noheader"], capture_output=True, text=True, check=False)
        found["gpu"] = dict(zip(asked.split(","), facts.stdout.strip().split(", "), strict=False))
        found["name"] = re.sub(r"\W+", "-", found["gpu"].get("name", "gpu")).strip("-").lower()
    else:
        found["name"] = "dry-run"
    return found


def _write(document: Row, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"gpu-{document['name']}-{document['date'][:10]}"
    (folder / f"{stem}.json").write_text(json.dumps(document, indent=1) + "\n")
    (folder / f"{stem}.txt").write_text(text_of(document) + "\n")


# ---------------------------------------------------------------- tests and the memory checker


def _pytest(setup: Setup, chosen: str, report: Path, workers: int) -> list[str]:
    files = [f"tests/lowering/test_triton_{name}.py" for name in TESTS if not setup.only or name in setup.only]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--triton", setup.device, "-k", chosen]
    return [*command, f"--junitxml={report}", *(["-n", str(workers)] if workers > 1 else []), *files]


def tests(setup: Setup, allowed: float) -> Iterator[Row]:
    """The kernel tests with the device in the interpreter's place: the same cases, guard zones and poison."""
    chosen = "(test_drawn_kernels and 1) or ragged" if setup.tiny else "not compile"
    workers = max(1, min(14, (os.cpu_count() or 2) - 2))
    with tempfile.TemporaryDirectory() as place:
        report = Path(place) / "report.xml"
        done = _run(_pytest(setup, chosen, report, workers), setup, allowed)
        yield {**_counted(report), "seconds_allowed": allowed, "workers": workers, **({} if done else {"error": "time ran out"})}


def _counted(report: Path) -> Row:
    """What a report of pytest says: numbers, and for each failure its first line."""
    if not report.exists():
        return {"error": "pytest wrote no report: it was ended, or it found no test"}
    cases = list(ElementTree.parse(report).getroot().iter("testcase"))
    failures = {}
    for case in cases:
        for kind in ("failure", "error"):
            found = case.find(kind)
            if found is not None:
                failures[f"{case.get('classname')}::{case.get('name')}"] = (found.get("message") or "").splitlines()[:1]
    skipped = sum(case.find("skipped") is not None for case in cases)
    return {"tests": len(cases), "passed": len(cases) - len(failures) - skipped, "skipped": skipped, "failures": failures}


def sanitizer(setup: Setup, allowed: float) -> Iterator[Row]:
    """compute-sanitizer's memcheck over a sample of the drawn kernels of each family."""
    tool = shutil.which("compute-sanitizer") or next(map(str, Path("/usr/local/cuda/bin").glob("compute-sanitizer")), None)
    with tempfile.TemporaryDirectory() as place:
        report, log = Path(place) / "report.xml", Path(place) / "log"
        checked = [tool, "--tool", "memcheck", "--target-processes", "all", "--log-file", f"{log}-%p"] if tool else []
        if tool is None and not setup.tiny:
            yield {"error": "compute-sanitizer is not on the PATH: memory was not checked"}
            return
        command = [*checked, *_pytest(setup, SAMPLE, report, 1)]
        done = _run(command, setup, allowed, PYTORCH_NO_CUDA_MEMORY_CACHING="1")
        said = [path.read_text(errors="replace") for path in Path(place).glob("log-*")]
        found = [line for text in said for line in text.splitlines() if "ERROR SUMMARY" in line and " 0 errors" not in line]
        details = [line for text in said for line in text.splitlines() if "Invalid" in line or "refused" in line or "not supported" in line]
        row = {**_counted(report), "tool": tool or "missing: the sample ran without it", "found": found, "details": details[:20]}
        row["processes_checked"] = sum("ERROR SUMMARY" in text for text in said)
        yield row if done else {**row, "error": "time ran out"}


def _run(command: list[str], setup: Setup, seconds: float, **more: str) -> bool:
    """Run to the end, its output to standard error; False where time ran out."""
    process = subprocess.Popen(command, cwd=ROOT, env={**setup.environment, **more}, stdout=sys.stderr, start_new_session=True)
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)  # its workers too
        process.wait()
        return False
    return True


# ---------------------------------------------------------------- timings, each in a child


def bandwidth(setup: Setup, allowed: float) -> Iterator[Row]:
    yield from _rows(setup, "bandwidth", allowed)


def matmul(setup: Setup, allowed: float) -> Iterator[Row]:
    yield from _rows(setup, "matmul", allowed)


def attention(setup: Setup, allowed: float) -> Iterator[Row]:
    yield from _rows(setup, "attention", allowed)


def irregular(setup: Setup, allowed: float) -> Iterator[Row]:
    yield from _rows(setup, "irregular", allowed)


def tuning(setup: Setup, allowed: float) -> Iterator[Row]:
    """Kernels with the numbers that `coset tune` finds for them, beside their defaults; the profile lies beside the results."""
    setup.out.mkdir(parents=True, exist_ok=True)
    yield from _rows(setup, f"tuning:{0.9 * allowed:.0f}", allowed, setup.out)


def blocks(setup: Setup, allowed: float) -> Iterator[Row]:
    yield from _programs("blocks", setup, allowed)


def models(setup: Setup, allowed: float) -> Iterator[Row]:
    shares: dict[str, float] = {}
    untuned: list[str] = []  # where time ran out while torch tuned
    for row in _programs("models", setup, allowed):
        yield row
        over = row.get("ours_over", {})
        best = next((key for key in ("compile_max", "compile_graph") if key in over), None)
        if best is not None:
            shares[row["block"]] = over[best]["value"]
            untuned += [row["block"]] * (best != "compile_max")
    if shares:
        mean = math.exp(sum(map(math.log, shares.values())) / len(shares))
        under = {name: share for name, share in shares.items() if share < LEAST}
        yield {"geometric_mean": mean, "of": len(shares), "under": under, "untuned": untuned}


def _programs(kind: str, setup: Setup, allowed: float) -> Iterator[Row]:
    """A process for each program: packages are written and compiled side by side, and what is timed is timed by one after the other."""
    end = time.monotonic() + 0.97 * allowed  # the rest is for the last rows and for ending what is late
    wanted = [name for name in PROGRAMS[kind] if not setup.only or name in setup.only]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        shared = {
            TURN: os.environ.get(TURN) or str(folder / "turn"),
            "TORCHINDUCTOR_COMPILE_THREADS": str(max(1, 2 * (os.cpu_count() or 1) // len(wanted))),
        }
        started = {}
        for name in wanted:
            started[name] = _start(setup, f"program:{kind}.{name}", folder, folder / f"{name}.rows", **shared)
            if setup.tiny:  # two cores: one after the other
                started[name].wait()
        for name, process in started.items():
            row: Row = {"block": name}
            for found in _finished(process, folder / f"{name}.rows", max(0.1, end - time.monotonic())):
                row |= {"problem": found["error"], "error_exit": found["error_exit"]} if "error_exit" in found else found
            yield row


def calibrate(setup: Setup, allowed: float) -> Iterator[Row]:
    """`coset calibrate`: the target's numbers fitted to this GPU, as a target file beside the results, with the profile."""
    setup.out.mkdir(parents=True, exist_ok=True)
    yield from _rows(setup, f"calibrate:{0.7 * allowed:.0f}", allowed, setup.out)  # the rest is for the fit


def _start(setup: Setup, child: str, folder: Path | None, answers: Path, **more: str) -> subprocess.Popen[bytes]:
    options = ["--child", child, "--device", setup.device, "--target", setup.target, "--each", str(setup.each), "--out", str(answers)]
    options += ["--folder", str(folder)] if folder is not None else []
    options += [each for name in setup.only for each in ("--only", name)] + ([] if setup.tune else ["--no-tune"])
    with answers.with_suffix(".log").open("wb") as log:
        command = [sys.executable, "-m", "benchmarks.gpu", *options]
        return subprocess.Popen(command, cwd=ROOT, env={**setup.environment, **more}, stdout=log, stderr=log, start_new_session=True)


def _finished(process: subprocess.Popen[bytes], answers: Path, seconds: float) -> list[Row]:
    """The rows of a child, with one that says what went wrong, if something did."""
    problem = ""
    try:
        if process.wait(timeout=seconds):
            log = answers.with_suffix(".log").read_text(errors="replace").strip().splitlines()
            problem = log[-1][:300] if log else f"exit status {process.returncode}"
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)  # what compiles for it, too
        process.wait()
        problem = "time ran out"
    rows = [json.loads(line) for line in answers.read_text().splitlines()] if answers.exists() else []
    return [*rows, {"error": problem, "error_exit": problem != "time ran out"}] if problem else rows


def _rows(setup: Setup, child: str, allowed: float, folder: Path | None = None) -> list[Row]:
    with tempfile.TemporaryDirectory() as place:
        answers = Path(place) / "rows"
        return _finished(_start(setup, child, folder, answers), answers, allowed)


RUNNERS = {
    "tests": tests, "sanitizer": sanitizer, "bandwidth": bandwidth, "matmul": matmul, "attention": attention, "irregular": irregular,
    "tuning": tuning, "blocks": blocks, "calibrate": calibrate, "models": models,
}  # fmt: skip


def _child(given: argparse.Namespace) -> int:
    """Write the rows of one task, a line each as soon as it is known."""
    from benchmarks import gpu_attention, gpu_blocks, gpu_irregular, gpu_kernels
    from benchmarks.gpu_calibration import calibrated
    from benchmarks.gpu_tuning import tuning as tuned
    from coset.comparing.timing import Protocol

    tiny = given.device == "cpu"
    if tiny:
        from coset.backends.triton_corrections import correct_interpreter

        correct_interpreter()
    protocol = Protocol(rounds=2, least=1, calls=1) if tiny else Protocol(rounds=15, seconds=given.each, calls=10)
    kind, _, name = given.child.partition(":")
    if kind == "bandwidth":
        rows: Any = gpu_kernels.bandwidth(given.device, given.target, protocol, tiny=tiny, only=given.only)
    elif kind == "matmul":
        rows = gpu_kernels.products(given.device, given.target, protocol, tiny=tiny, tune=not given.no_tune)
    elif kind == "attention":
        rows = gpu_attention.attention(given.device, given.target, protocol, tiny=tiny, tune=not given.no_tune)
    elif kind == "irregular":
        rows = gpu_irregular.irregular(given.device, given.target, protocol, tiny=tiny)
    elif kind == "tuning":
        rows = tuned(given.device, given.target, protocol, Path(given.folder), float(name), tiny=tiny)
    elif kind == "calibrate":
        rows = [calibrated(given.device, given.target, Path(given.folder), float(name), tiny=tiny)]
    else:
        kind, _, name = name.partition(".")
        rows = gpu_blocks.measured(kind, name, Path(given.folder), given.target, given.device, protocol, tiny=tiny)
    with Path(given.out).open("w") as file:
        for row in rows:
            file.write(json.dumps(row) + "\n")
            file.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
