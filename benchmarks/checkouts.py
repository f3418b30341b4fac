"""Two checkouts of coset side by side: the seconds of `coset optimize` without its comparison, and of the whole command, run in turn.

    python -m benchmarks.checkouts OLD NEW --only vit_ti16_2l_sdpa,bert_2l [--runs N]
    python -m benchmarks.checkouts OLD NEW --gains [--only ..] [--rounds N]

With `--gains` each model is optimized once by both, and where they wrote other bytes what they wrote is run side by side, as users run it
(`coset.load`): how many times as long the new one takes, and the geometric mean over all models, the same bytes counted as 1; beside it
the processor seconds and the seconds of the comparison of both commands.
OLD and NEW are folders (`git worktree add FOLDER COMMIT` makes one); both run in this environment, on the built models (`make models`). The
first run of each is not counted. `same` says whether both wrote the same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import onnx

import coset
from benchmarks import feeds as inputs
from benchmarks.models import cache
from coset.comparing import timing


@dataclass(frozen=True)
class Run:
    """One run of a checkout's command: its report, the seconds of the clock, and those of the processor, its children's too."""

    report: dict[str, Any]
    seconds: float
    processor: float

    @property
    def check(self) -> float:
        """The seconds of the comparison."""
        return float(self.report["seconds"]["check"])


def environment_of(checkout: Path) -> dict[str, str]:
    """The environment in which this Python runs the coset of a checkout."""
    environment = {**os.environ, "PYTHONPATH": str(checkout), "ORT_DISABLE_TELEMETRY": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # else every run compiles all modules, which nobody's does: 0.4 s of the processor
    return environment


def optimized(checkout: Path, model: Path, output: Path) -> Run:
    """One run of a checkout.

    Raises:
        CalledProcessError: it failed.
    """
    command = [sys.executable, "-m", "coset.cli", "optimize", str(model), "-o", str(output), "--json"]
    environment = environment_of(checkout)
    with tempfile.TemporaryFile("w+") as said, tempfile.TemporaryFile("w+") as told:
        begun = time.perf_counter()
        process = subprocess.Popen(command, cwd=checkout, env=environment, stdout=said, stderr=told, text=True)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        told.seek(0)
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command, said.read(), told.read())
        return Run(json.loads(said.read()), seconds, used.ru_utime + used.ru_stime)


def compared(model: Path, checkouts: list[Path], runs: int) -> str:
    """A line on one model."""
    seconds: list[list[float]] = [[] for _ in checkouts]
    wholes: list[list[float]] = [[] for _ in checkouts]
    digests: list[set[str]] = [set() for _ in checkouts]
    with tempfile.TemporaryDirectory() as folder:
        for run in range(runs + 1):
            for place, checkout in enumerate(checkouts):
                output = Path(folder) / f"{place}.onnx"
                one = optimized(checkout, model, output)
                digests[place].add(hashlib.sha256(output.read_bytes()).hexdigest())
                if run:
                    seconds[place].append(one.report["seconds"]["total"] - one.check)
                    wholes[place].append(one.seconds)
    medians, least = [statistics.median(each) for each in seconds], [min(each) for each in seconds]
    commands = [statistics.median(each) for each in wholes]
    same = len(set.union(*digests)) == 1
    return (
        f"{model.stem:22s} median {medians[0]:.3f} -> {medians[1]:.3f} s (x{medians[0] / medians[1]:.2f})"
        f"  least {least[0]:.3f} -> {least[1]:.3f}  command {commands[0]:.3f} -> {commands[1]:.3f} (x{commands[0] / commands[1]:.2f})"
        f"  same: {same}"
    )


@dataclass(frozen=True)
class Gained:
    """What both checkouts made of one model: a line, how many times as long the new program runs (NaN where one failed), and the runs."""

    line: str
    ratio: float
    runs: tuple[Run, ...] = ()

    @property
    def told(self) -> str:
        """The line, with the seconds of the processor and of the comparison."""
        if not self.runs:
            return self.line
        old, new = self.runs
        return (
            f"{self.line}; processor {old.processor:.2f} -> {new.processor:.2f} s, comparison {old.check:.2f} of {old.seconds:.2f} -> "
            f"{new.check:.2f} of {new.seconds:.2f} s"
        )


def gained(model: Path, checkouts: list[Path], rounds: int) -> Gained:
    """What both checkouts make of one model, and how fast that is."""
    with tempfile.TemporaryDirectory() as folder:
        outputs = [Path(folder) / f"{place}.onnx" for place in range(len(checkouts))]
        done = []
        for checkout, output in zip(checkouts, outputs, strict=True):
            try:
                done.append(optimized(checkout, model, output))
            except subprocess.CalledProcessError as error:
                return Gained(f"{model.stem:28s} {checkout}: {(error.stderr or error.stdout).strip().splitlines()[-1]}", float("nan"))
        runs = tuple(done)
        if outputs[0].read_bytes() == outputs[1].read_bytes():
            return Gained(f"{model.stem:28s} the same bytes", 1.0, runs)
        feeds = inputs.make(onnx.load(model), model.stem, 0)
        sessions = {str(place): coset.load(output) for place, output in enumerate(outputs)}
        programs = {name: partial(session.run, feeds) for name, session in sessions.items()}
        found = timing.measure(programs, timing.Protocol(rounds))
    ratio = timing.ratio(found["1"], found["0"])
    times = " -> ".join(f"{found[name].median * 1e3:.3f}" for name in ("0", "1"))
    return Gained(f"{model.stem:28s} {times} ms, x{ratio.value:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]", ratio.value, runs)


def mean(ratios: Iterable[float]) -> float:
    """The geometric mean."""
    return statistics.geometric_mean(list(ratios))


def summary(found: Sequence[Gained]) -> Iterator[str]:
    """What holds of all models together."""
    known = [each.ratio for each in found if not math.isnan(each.ratio)]
    yield f"geometric mean of {len(known)} models: {mean(known):.4f} times as long"
    both = [each.runs for each in found if each.runs]
    yield f"processor seconds of the whole command: {mean(new.processor / old.processor for old, new in both):.3f} times (geometric mean)"
    long = [(old, new) for old, new in both if old.check > old.seconds / 2]
    if long:
        ratio = mean(new.check / old.check for old, new in long)
        yield f"seconds of the comparison of the {len(long)} models of which it was over half of the command: {ratio:.3f} times"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--only", help="models, by comma; with --gains all where none is given")
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--gains", action="store_true", help="how fast is what both write")
    parser.add_argument("--rounds", type=int, default=15)
    asked = parser.parse_args()
    checkouts = [asked.old.resolve(), asked.new.resolve()]
    names = asked.only.split(",") if asked.only else sorted(path.stem for path in cache().glob("*.onnx"))
    if not asked.gains:
        for name in names:
            print(compared(cache() / f"{name}.onnx", checkouts, asked.runs), flush=True)
        return
    with tempfile.TemporaryDirectory() as folder:  # rules are read and modules compiled once
        for checkout in checkouts:
            optimized(checkout, cache() / f"{names[0]}.onnx", Path(folder) / "first.onnx")
    found = []
    for name in names:
        found.append(gained(cache() / f"{name}.onnx", checkouts, asked.rounds))
        print(found[-1].told, flush=True)
    for line in summary(found):
        print(line)


if __name__ == "__main__":
    main()
