"""Two checkouts of coset side by side: the seconds of `coset optimize` without its comparison, and of the whole command, run in turn.

    python -m benchmarks.checkouts OLD NEW --only vit_ti16_2l_sdpa,bert_2l [--runs N]
    python -m benchmarks.checkouts OLD NEW --gains [--only ..] [--rounds N]

With `--gains` each model is optimized once by both, and where they wrote other bytes what they wrote is run side by side, as users run it
(`coset.load`): how many times as long the new one takes, and the geometric mean over all models, the same bytes counted as 1.
OLD and NEW are folders (`git worktree add FOLDER COMMIT` makes one); both run in this environment, on the built models (`make models`). One
run of each is not counted. `same` says whether both wrote the same bytes.
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
from functools import partial
from pathlib import Path
from typing import Any

import onnx

import coset
from benchmarks import feeds as inputs
from benchmarks.models import cache
from coset import timing


def optimized(checkout: Path, model: Path, output: Path) -> tuple[dict[str, Any], float]:
    """The report of one run of a checkout, and the seconds of the whole command."""
    command = [sys.executable, "-m", "coset.cli", "optimize", str(model), "-o", str(output), "--json"]
    environment = {**os.environ, "PYTHONPATH": str(checkout), "ORT_DISABLE_TELEMETRY": "1"}
    begun = time.perf_counter()
    done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=True)
    whole = time.perf_counter() - begun
    found: dict[str, Any] = json.loads(done.stdout)
    return found, whole


def compared(model: Path, checkouts: list[Path], runs: int) -> str:
    """A line on one model."""
    seconds: list[list[float]] = [[] for _ in checkouts]
    wholes: list[list[float]] = [[] for _ in checkouts]
    digests: list[set[str]] = [set() for _ in checkouts]
    with tempfile.TemporaryDirectory() as folder:
        for run in range(runs + 1):
            for place, checkout in enumerate(checkouts):
                output = Path(folder) / f"{place}.onnx"
                report, whole = optimized(checkout, model, output)
                told = report["seconds"]
                digests[place].add(hashlib.sha256(output.read_bytes()).hexdigest())
                if run:
                    seconds[place].append(told["total"] - told["check"])
                    wholes[place].append(whole)
    medians, least = [statistics.median(each) for each in seconds], [min(each) for each in seconds]
    commands = [statistics.median(each) for each in wholes]
    same = len(set.union(*digests)) == 1
    return (
        f"{model.stem:22s} median {medians[0]:.3f} -> {medians[1]:.3f} s (x{medians[0] / medians[1]:.2f})"
        f"  least {least[0]:.3f} -> {least[1]:.3f}  command {commands[0]:.3f} -> {commands[1]:.3f} (x{commands[0] / commands[1]:.2f})"
        f"  same: {same}"
    )


def gained(model: Path, checkouts: list[Path], rounds: int) -> tuple[str, float]:
    """A line on what both checkouts made of one model, and how many times as long the new one runs."""
    with tempfile.TemporaryDirectory() as folder:
        outputs = [Path(folder) / f"{place}.onnx" for place in range(len(checkouts))]
        for checkout, output in zip(checkouts, outputs, strict=True):
            try:
                optimized(checkout, model, output)
            except subprocess.CalledProcessError as error:
                return f"{model.stem:28s} {checkout}: {(error.stderr or error.stdout).strip().splitlines()[-1]}", float("nan")
        if outputs[0].read_bytes() == outputs[1].read_bytes():
            return f"{model.stem:28s} the same bytes", 1.0
        feeds = inputs.make(onnx.load(model), model.stem, 0)
        sessions = {str(place): coset.load(output) for place, output in enumerate(outputs)}
        programs = {name: partial(session.run, feeds) for name, session in sessions.items()}
        found = timing.measure(programs, timing.Protocol(rounds))
    ratio = timing.ratio(found["1"], found["0"])
    times = " -> ".join(f"{found[name].median * 1e3:.3f}" for name in ("0", "1"))
    return f"{model.stem:28s} {times} ms, x{ratio.value:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]", ratio.value


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
    ratios = []
    for name in names:
        line, ratio = gained(cache() / f"{name}.onnx", checkouts, asked.rounds)
        ratios.append(ratio)
        print(line, flush=True)
    known = [each for each in ratios if not math.isnan(each)]
    print(f"geometric mean of {len(known)} models: {math.exp(math.fsum(map(math.log, known)) / len(known)):.4f} times as long")


if __name__ == "__main__":
    main()
