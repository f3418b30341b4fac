"""coset on every model and workload: does it go through, in what time and memory, and what is the result worth beside ONNX Runtime alone.

    python -m benchmarks.cpu_models [--only a,b*] [--rounds N] [--no-timing] [--json] [--out FILE]

Each program is optimized in a process of its own (`coset optimize`), which checks the result against the original. Then original and
result are timed side by side in blocks, each at ONNX Runtime's levels off and all; of a workload also the forms that were made by
hand. `gain` is the faster of the original's levels over the faster of the result's, with its 95 % interval.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np
import onnx
import onnxruntime

from benchmarks import models
from benchmarks.workloads import WORKLOADS
from coset import timing

Feed = dict[str, np.ndarray]


@dataclass(frozen=True)
class Subject:
    """A program to optimize: a file, its inputs, and hand-made forms of it (name, file)."""

    name: str
    path: Path
    feed: Feed
    hand: dict[str, Path]


def subjects(patterns: list[str], folder: Path) -> Iterator[Subject]:
    """Every model and workload whose name fits one of `patterns` (all without any)."""
    for model in models.available():
        if fits(model.name, patterns):
            yield Subject(model.name, model.path, models.feeds(model), {})
    for name in sorted(WORKLOADS):
        if fits(name, patterns):
            workload = WORKLOADS[name]()
            forms = {"naive": workload.naive, **workload.best}
            paths = {form: folder / f"{name}-{number}.onnx" for number, form in enumerate(forms)}
            for form, proto in forms.items():
                onnx.save(proto, paths[form])
            yield Subject(name, paths.pop("naive"), workload.feeds(), paths)


def fits(name: str, patterns: list[str]) -> bool:
    """True when `name` fits one of the shell patterns, or there are none."""
    return not patterns or any(fnmatch.fnmatch(name, pattern) for pattern in patterns)


def optimized(subject: Subject, output: Path) -> dict[str, Any]:
    """The report of `coset optimize` run in its own process, with its peak memory in MiB; or `error`, the first line that it said."""
    dims = [f"--dim={name}={number}" for name, number in free_dims(subject).items()]
    command = [sys.executable, "-m", "coset.cli", "optimize", str(subject.path), "-o", str(output), "--json", *dims]
    code = f"import resource, subprocess, sys; r = subprocess.run({command!r}); u = resource.getrusage(resource.RUSAGE_CHILDREN); "
    code += "print(u.ru_maxrss // 1024, file=sys.stderr); sys.exit(r.returncode)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    said = done.stderr.strip().splitlines()
    if done.returncode:
        errors = [line for line in said if line.startswith("error") or "Error" in line]
        return {"error": errors[0] if errors else " ".join(said[-2:-1])}
    return {**json.loads(done.stdout), "peak_mib": int(said[-1])}


def free_dims(subject: Subject) -> dict[str, int]:
    """Numbers for the named dims of the inputs, from the shapes of the feed."""
    found: dict[str, int] = {}
    for value in onnx.load(subject.path, load_external_data=False).graph.input:
        if value.name in subject.feed:
            for dim, number in zip(value.type.tensor_type.shape.dim, subject.feed[value.name].shape, strict=False):
                if dim.dim_param and dim.dim_param.isidentifier():
                    found[dim.dim_param] = int(number)
    return found


def session(path: Path, level: str) -> onnxruntime.InferenceSession:
    """Load a model on two threads at level off or all."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(
        onnxruntime.GraphOptimizationLevel, {"off": "ORT_DISABLE_ALL", "all": "ORT_ENABLE_ALL"}[level]
    )
    options.intra_op_num_threads = 2
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def timed(subject: Subject, output: Path, rounds: int) -> dict[str, Any]:
    """Medians, ms, of original, result and hand-made forms, and the gain with its interval."""
    programs: dict[str, timing.Program] = {}
    forms = {"original": subject.path, "coset": output, **{f"hand: {name}": path for name, path in subject.hand.items()}}
    for name, path in forms.items():
        for level in ("off", "all"):
            loaded = session(path, level)
            programs[f"{name}, {level}"] = lambda loaded=loaded: loaded.run(None, subject.feed)  # type: ignore[misc]
    measured = timing.measure(programs, timing.Protocol(rounds))

    def fastest(prefix: str) -> timing.Timing | None:
        found = [value for name, value in measured.items() if name.startswith(prefix)]
        return min(found, key=lambda value: value.median) if found else None

    original, ours, hand = fastest("original"), fastest("coset"), fastest("hand")
    assert original is not None and ours is not None
    gain = timing.ratio(original, ours)
    row: dict[str, Any] = {"ms": {name: value.median * 1e3 for name, value in measured.items()}, "gain": [gain.value, gain.low, gain.high]}
    if hand is not None:
        best = timing.ratio(original, hand)
        row["hand_gain"] = [best.value, best.low, best.high]
    return row


HEAD = (
    f"{'program':42s} {'nodes':>12s} {'e-nodes':>8s} {'stop':>10s} {'s':>6s} {'check':>6s} {'MiB':>6s} {'predicted ms':>16s}"
    f" {'gain (95 %)':>22s} {'by hand':>8s}"
)


def line(row: dict[str, Any]) -> str:
    """One line of the table."""
    name, report = row["name"], row["report"]
    if "error" in report:
        return f"{name:42s} {report['error'][:150]}"
    nodes, cost = report["nodes"], report["cost"]
    text = f"{name:42s} {nodes['before']:5d} ->{nodes['after']:4d} {report['egraph']['enodes']:8d} {report['egraph']['stop']:>10s} "
    text += f"{report['seconds']['total'] - report['seconds']['check']:6.2f} {report['seconds']['check']:6.2f} {report['peak_mib']:6d} "
    text += f"{cost['input'] * 1e3:7.3f} ->{cost['output'] * 1e3:7.3f}"
    if "timing" in row:
        gain = row["timing"]["gain"]
        text += f"  {gain[0]:6.2f} ({gain[1]:5.2f} to {gain[2]:5.2f})"
        if "hand_gain" in row["timing"]:
            text += f" {row['timing']['hand_gain'][0]:8.2f}"
    return text


def main() -> None:
    """Run what was asked for and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="names or patterns, separated by commas")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--no-timing", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    out = sys.stderr if arguments.json else sys.stdout
    print(HEAD, file=out, flush=True)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for subject in subjects([p for p in arguments.only.split(",") if p], Path(folder)):
            output = Path(folder) / "optimized.onnx"
            row: dict[str, Any] = {"name": subject.name, "report": optimized(subject, output)}
            if "error" not in row["report"] and not arguments.no_timing:
                row["timing"] = timed(subject, output, arguments.rounds)
            rows.append(row)
            print(line(row), file=out, flush=True)
    result = {"command": " ".join(sys.argv), "cpu": cpu(), "onnxruntime": onnxruntime.__version__, "rows": rows}
    if arguments.out:
        arguments.out.write_text(json.dumps(result, indent=1) + "\n")
    if arguments.json:
        print(json.dumps(result))


def cpu() -> str:
    """The processor's name."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "unknown")


if __name__ == "__main__":
    main()
