"""Damaged models, rule files and targets: each gives a result or a clear error. All of it: `python -m benchmarks.hostile`.

Each case runs the command line in a forked process of its own, which may take so much memory and so many seconds. It must end with exit
code 0 and a checked file, or with 1 or 2, a message that begins with `error:`, and no file. Anything else is a failure, shown with its
seed: `python -m benchmarks.hostile --kind models --first SEED --count 1 --keep DIR` writes what was given to it.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import json
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks.damage import bytewise, structural, textual
from coset.backends import onnxruntime
from coset.cli import run
from coset.job.own_rules import NO_RULES, OwnRules
from coset.job.phases import permitted_phases
from coset.rules.library import DEFAULT, read_text, rule_files
from coset.rules.parser import parse

COUNTS = {"models": 1000, "rules": 10_000, "targets": 500, "texts": 300}
SECONDS = 60.0  # of the clock, for one case
RUN_SECONDS = 4.0  # after which a run of a model is stopped here: a case has about ten
BYTES = 4 << 30  # beyond what the process has when it starts
WHOLE = 40  # one rule file in so many goes through a whole optimization
CRASH = 70  # exit code of a case that ended with an exception
CACHE = Path.home() / ".cache" / "coset" / "models"
CACHED = ("train_mlp", "mlp", "lstm_bi", "audio_conv1d", "train_cnn", "unet_gn", "mamba_like", "bert_2l_d128_dyn", "dlrm")
PACKAGED = (
    "silero_vad/data/silero_vad_half.onnx",
    "silero_vad/data/silero_vad_16k_op15.onnx",
    "livekit/wakeword/resources/melspectrogram.onnx",
    "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
)
BRIEF = ("--time-limit", "1", "--node-limit", "2000")
TARGETS = Path(__file__).parent.parent / "targets"
TEXTS = Path(__file__).parent.parent / "tests" / "corpus"


@dataclass(frozen=True)
class Case:
    """What is run in `folder`: a command line, or a call, and what was done to its input."""

    arguments: tuple[str, ...]
    done: str
    call: Callable[[], object] | None = None


@dataclass(frozen=True)
class Verdict:
    """How a case ended: `result`, `refusal` or what is wrong."""

    kind: str
    message: str
    seconds: float
    bytes: int


# ---------------------------------------------------------------- what is damaged


@lru_cache(maxsize=1)
def models() -> tuple[bytes, ...]:
    """Real models of up to some megabytes that are there, and two that are built: with bodies, and with every kind of weight."""
    places = [CACHE / f"{name}.onnx" for name in CACHED]
    for name in PACKAGED:
        package, _, inner = name.partition("/")
        found = find_spec(package)
        for folder in () if found is None else found.submodule_search_locations or ():
            places.append(Path(folder) / inner)
    return (_bodies(), _weights(), *(path.read_bytes() for path in places if path.exists()))


def _bodies() -> bytes:
    """A Loop in an If."""
    value = partial(helper.make_tensor_value_info, elem_type=TensorProto.FLOAT, shape=[4])
    step = helper.make_graph(
        [helper.make_node("Mul", ["state", "two"], ["next"]), helper.make_node("Identity", ["go"], ["on"])],
        "step",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            value("state"),
        ],
        [helper.make_tensor_value_info("on", TensorProto.BOOL, []), value("next")],
    )
    then = helper.make_graph([helper.make_node("Loop", ["three", "", "x"], ["looped"], body=step)], "then", [], [value("looped")])
    other = helper.make_graph([helper.make_node("Add", ["x", "two"], ["added"])], "else", [], [value("added")])
    graph = helper.make_graph(
        [helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other), helper.make_node("Relu", ["y"], ["z"])],
        "bodies",
        [value("x"), helper.make_tensor_value_info("c", TensorProto.BOOL, [])],
        [value("z")],
        [helper.make_tensor("three", TensorProto.INT64, [], [3]), helper.make_tensor("two", TensorProto.FLOAT, [], [2.0])],
    )
    return bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString())


def _weights() -> bytes:
    """Shape arithmetic, a quantized product, a sparse constant, packed numbers and a dim that is free."""
    draw = np.random.default_rng(0)
    sparse = helper.make_sparse_tensor(
        helper.make_tensor("sv", TensorProto.FLOAT, [2], [1.0, 2.0]), helper.make_tensor("si", TensorProto.INT64, [2], [1, 5]), [4, 4]
    )
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "zero"], ["b"]),
        helper.make_node("Concat", ["b", "minus"], ["to"], axis=0),
        helper.make_node("Reshape", ["x", "to"], ["flat"]),
        helper.make_node("Constant", [], ["sp"], sparse_value=sparse),
        helper.make_node("MatMul", ["flat", "w"], ["p"]),
        helper.make_node("Gemm", ["p", "sp", "bias"], ["g"], alpha=0.5),
        helper.make_node("DequantizeLinear", ["q", "scale"], ["d"]),
        helper.make_node("Add", ["g", "d"], ["a"]),
        helper.make_node("Softmax", ["a"], ["y"], axis=-1),
    ]
    weights = [
        numpy_helper.from_array(draw.standard_normal((16, 4)).astype(np.float32), "w"),
        numpy_helper.from_array(np.arange(4, dtype=np.float32), "bias"),
        numpy_helper.from_array(np.array([0]), "zero"),
        numpy_helper.from_array(np.array([-1]), "minus"),
        helper.make_tensor("q", TensorProto.INT8, [4], [1, -2, 3, 4]),
        helper.make_tensor("scale", TensorProto.FLOAT, [], [0.1]),
    ]
    graph = helper.make_graph(
        nodes,
        "weights",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["B", 4, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["B", 4])],
        weights,
    )
    return bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString())


def _small() -> bytes:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("Add", ["m", "m"], ["y"])]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 4]) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "small", values[:1], values[1:], [numpy_helper.from_array(np.eye(4, dtype=np.float32), "w")])
    return bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString())


@lru_cache(maxsize=1)
def rule_texts() -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """The files of the library: their text, what they use, and their entries."""
    files = [(path, read_text(path)) for path in rule_files(DEFAULT)]
    found = []
    for path, text in files:
        uses = "\n".join(line for line in text.splitlines() if line.startswith("use "))
        found.append((text, uses, tuple(entry.text for entry in parse(text, str(path))[0].rules)))
    return tuple(each for each in found if each[2])


def damaged_model(seed: int, folder: Path) -> Case:
    draw = random.Random(seed)
    chosen = draw.choice(models())
    if draw.random() < 0.35:
        done, data = "bytes", bytewise(draw, chosen, draw.choice(models()))
    else:
        model = onnx.load_model_from_string(chosen)
        done = structural(draw, model)
        try:
            data = model.SerializeToString()
        except (ValueError, RecursionError) as error:  # protobuf's own limits of depth and size
            done, data = f"{done}, not serializable: {type(error).__name__}", chosen[: len(chosen) // 2]
    (folder / "model.onnx").write_bytes(data)
    return Case(("optimize", "model.onnx", "-o", "out.onnx", "--json", *BRIEF), done)


def damaged_rules(seed: int, folder: Path) -> Case:
    draw = random.Random(seed)
    text, uses, entries = draw.choice(rule_texts())
    if draw.random() >= 0.01:
        chosen = "\n\n".join(draw.choice(entries) for _ in range(draw.choice((1, 1, 2))))
        text = f"{uses}\n" + re.sub(r"^(rule|op|kernel) (\w+)", r"\1 own_\2", chosen, flags=re.MULTILINE)  # the library has theirs
    (folder / "own.rules").write_bytes(textual(draw, text, draw.choice(rule_texts())[0]))
    if seed % WHOLE:
        return Case((), "", call=lambda: permitted_phases(OwnRules((Path("own.rules"),)), "real", lambda _: True))
    (folder / "model.onnx").write_bytes(_small())
    return Case(("optimize", "model.onnx", "-o", "out.onnx", "--json", "--rules", "own.rules", "--numerics", "real", *BRIEF), "whole")


def damaged_target(seed: int, folder: Path) -> Case:
    draw = random.Random(seed)
    texts = [path.read_text() for path in sorted(TARGETS.rglob("*.toml"))]
    (folder / "own.toml").write_bytes(textual(draw, draw.choice(texts), draw.choice(texts)))
    (folder / "model.onnx").write_bytes(_small())
    return Case(("optimize", "model.onnx", "-o", "out.onnx", "--json", "--target", "own.toml", *BRIEF), "")


def damaged_text(seed: int, folder: Path) -> Case:
    draw = random.Random(seed)
    texts = [path.read_text() for path in sorted(TEXTS.rglob("*.mlir"))]
    (folder / "model.mlir").write_bytes(textual(draw, draw.choice(texts), draw.choice(texts)))
    return Case(("optimize", "model.mlir", "-o", "out.mlir", "--json", *BRIEF), "")


KINDS = {"models": damaged_model, "rules": damaged_rules, "targets": damaged_target, "texts": damaged_text}


# ---------------------------------------------------------------- running


def judged(kind: str, seed: int, *, keep: Path | None = None) -> tuple[Verdict, str]:
    """The verdict on one case, and what was done to its input."""
    with tempfile.TemporaryDirectory(prefix="hostile-") as place:
        folder = Path(place) / "work"
        folder.mkdir()
        case = KINDS[kind](seed, folder)
        given = {path.name for path in folder.iterdir()}
        if keep is not None:
            shutil.copytree(folder, keep, dirs_exist_ok=True)
        started = time.monotonic()
        child = os.fork()
        if not child:
            _run_here(case, folder, Path(place))
        code, peak = _wait(child)
        seconds = time.monotonic() - started
        said = (Path(place) / "stderr").read_text(errors="replace") if (Path(place) / "stderr").exists() else ""
        answer = (Path(place) / "stdout").read_text(errors="replace") if (Path(place) / "stdout").exists() else ""
        left = {path.name for path in folder.iterdir()} - given
        return Verdict(*_judged(case, code, said, answer, left), seconds, peak), case.done


def _run_here(case: Case, folder: Path, place: Path) -> None:
    """Run a case in this process, which ends with it."""
    code = CRASH
    try:
        os.setpgid(0, 0)
        for number, name in ((1, "stdout"), (2, "stderr")):
            os.dup2(os.open(place / name, os.O_CREAT | os.O_WRONLY), number)
        sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
        faulthandler.enable()  # a crash is told of in the case's words, not in those of who asked
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        resource.setrlimit(resource.RLIMIT_AS, (pages * os.sysconf("SC_PAGE_SIZE") + BYTES, resource.RLIM_INFINITY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.chdir(folder)
        onnxruntime.PATIENCE = RUN_SECONDS
        limited = case.arguments[:1] in (("optimize",), ("prove",), ("diff",))
        more = ("--check-time-limit", str(RUN_SECONDS)) if limited else ()
        code = run([*case.arguments, *more]) if case.call is None else _called(case.call)
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _called(call: Callable[[], object]) -> int:
    from coset.ir.errors import CosetError

    try:
        call()
    except CosetError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def _wait(child: int) -> tuple[int | None, int]:
    """The exit code (negative: a signal; None: it hung) and the peak of resident memory."""
    until = time.monotonic() + SECONDS
    while True:
        done, status, usage = os.wait4(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status), usage.ru_maxrss << 10
        if time.monotonic() > until:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return None, 0
        time.sleep(0.002)


def _judged(case: Case, code: int | None, said: str, answer: str, left: set[str]) -> tuple[str, str]:
    last = next((line for line in reversed(said.splitlines()) if line.strip()), "")
    if code is None:
        return "HANG", last
    if code < 0:
        return f"KILLED by {signal.Signals(-code).name}", said[-1500:]
    if "Traceback" in said or code == CRASH:
        return "TRACEBACK", said[-2500:]
    if code == 0 and case.call is not None:
        return "result", ""
    if code == 0:
        (output,) = (each for each in case.arguments if each.startswith("out."))
        whole = left == {output} and json.loads(answer)["check"]["ok"]
        return ("result", "") if whole else ("NOT CHECKED", f"{left} {answer[:300]}")
    if code not in (1, 2):
        return f"EXIT CODE {code}", said[-1500:]
    error = next((line for line in said.splitlines() if line.startswith("error:")), None)
    if error is None:
        return "NO MESSAGE", said[-1500:]
    return ("PARTIAL FILE", str(left)) if left else ("refusal", said[said.index("error:") :])


def campaign(kind: str, first: int, count: int, *, keep: Path | None = None, progress: bool = True) -> list[tuple[int, Verdict, str]]:
    """The verdicts on so many cases, with their seeds."""
    permitted_phases(NO_RULES, "real", lambda _: True)  # the library is read here once, and not in each process
    found = []
    for seed in range(first, first + count):
        verdict, done = judged(kind, seed, keep=keep)
        found.append((seed, verdict, done))
        if progress and verdict.kind not in ("result", "refusal"):
            print(f"{kind} {seed} ({done}) {verdict.kind}, {verdict.seconds:.1f} s: {verdict.message}", flush=True)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", action="append", choices=sorted(KINDS), help="by default all")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, help="how many of each kind; by default " + ", ".join(f"{n} {k}" for k, n in COUNTS.items()))
    parser.add_argument("--keep", type=Path, help="copy the input of each case here")
    parser.add_argument("--show", action="store_true", help="print how often each message came")
    given = parser.parse_args(arguments)
    wrong = 0
    for kind in given.kind or KINDS:
        started = time.monotonic()
        found = campaign(kind, given.first, COUNTS[kind] if given.count is None else given.count, keep=given.keep)
        kinds = Counter(verdict.kind for _, verdict, _ in found)
        failures = sum(count for name, count in kinds.items() if name not in ("result", "refusal"))
        wrong += failures
        slowest, largest = max(found, key=lambda each: each[1].seconds), max(found, key=lambda each: each[1].bytes)
        print(
            f"{kind}: {len(found)} cases from seed {given.first}, {kinds['result']} results, {kinds['refusal']} refusals, "
            f"{failures} failures; "
            f"{time.monotonic() - started:.0f} s, slowest {slowest[1].seconds:.1f} s (seed {slowest[0]}), "
            f"most memory {largest[1].bytes >> 20} MiB (seed {largest[0]})",
            flush=True,
        )
        if given.show:
            messages = Counter(verdict.message.splitlines()[0][:150] for _, verdict, _ in found if verdict.kind == "refusal")
            for message, count in messages.most_common():
                print(f"  {count:4d} {message}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
