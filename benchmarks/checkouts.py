"""Two checkouts of coset side by side: the seconds of `coset optimize` without its comparison, and of the whole command, run in turn.

    python -m benchmarks.checkouts OLD NEW --only vit_ti16_2l_sdpa,bert_2l [--runs N]

OLD and NEW are folders (`git worktree add FOLDER COMMIT` makes one); both run in this environment, on the built models (`make models`). One
run of each is not counted. `same` says whether both wrote the same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.models import cache


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--only", required=True, help="models, by comma")
    parser.add_argument("--runs", type=int, default=9)
    asked = parser.parse_args()
    for name in asked.only.split(","):
        print(compared(cache() / f"{name}.onnx", [asked.old.resolve(), asked.new.resolve()], asked.runs), flush=True)


if __name__ == "__main__":
    main()
