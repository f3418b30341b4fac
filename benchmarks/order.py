"""Whether the order of rules makes a difference: the same bytes for every order of rule files and of the entries in them.

    python -m benchmarks.order [--shuffles N] [--only a,b] [--jobs N] [--json]

For each model the library is copied N times with its files under other names, in another order, and with their entries shuffled;
`coset.optimize` runs on each copy in a process of its own, which stops by saturation or by a count. Prints how many different
results there were: 1 is right.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from benchmarks import models
from coset.rules.library import DEFAULT
from coset.rules.lock import NAME

MODELS = ("bert_2l", "vit_ti16_2l_sdpa", "unet_gn", "mobilenetv2", "train_mlp")
_RUN = (
    "import sys, pathlib, coset, coset.searching.task as task\n"
    "task.DEFAULT = (pathlib.Path(sys.argv[3]),)\n"
    "result = coset.optimize(sys.argv[1], limits=coset.Limits(seconds=3600))\n"
    "assert result.report['egraph']['stop'] != 'time', 'stopped by time'\n"
    "result.save(sys.argv[2])\n"
)


def shuffled(source: Path, target: Path, seed: int) -> None:
    """The rule files of the folder `source` in `target`: under other names, in another order, their entries shuffled."""
    target.mkdir()
    draw = random.Random(seed)
    files = sorted(source.glob("*.rules"))
    draw.shuffle(files)
    for number, file in enumerate(files):
        head, *entries = file.read_text().split("\nrule ")
        phases: list[str] = []
        if entries:
            entries[-1], *phases = entries[-1].split("\nphase ")
        draw.shuffle(entries)
        text = head + "".join(f"\nrule {entry}" for entry in entries) + "".join(f"\nphase {phase}" for phase in phases)
        (target / f"{number:02d}.rules").write_text(text)
    if (source / NAME).exists():
        shutil.copy(source / NAME, target / NAME)  # so that no copy is type-checked again


def digest(model: Path, folder: Path, seed: int) -> str:
    """The hash of the optimized model under the library in the order that `seed` draws."""
    rules, output = folder / f"rules{seed}", folder / f"out{seed}.onnx"
    shuffled(DEFAULT[0], rules, seed)
    environment = {**os.environ, "ORT_DISABLE_TELEMETRY": "1"}
    subprocess.run([sys.executable, "-c", _RUN, str(model), str(output), str(rules)], check=True, env=environment)
    found = hashlib.sha256(output.read_bytes()).hexdigest()
    shutil.rmtree(rules)
    output.unlink()
    return found


def measured(model: models.Model, shuffles: int, jobs: int) -> dict[str, Any]:
    """How many different results a model has over `shuffles` orders."""
    with tempfile.TemporaryDirectory(prefix="coset-order-") as folder, ThreadPoolExecutor(jobs) as pool:
        found = list(pool.map(lambda seed: digest(model.path, Path(folder), seed), range(shuffles)))
    return {"model": model.name, "shuffles": shuffles, "results": len(set(found))}


def main() -> int:
    """Print a line a model; the exit code is 1 when an order made a difference."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shuffles", type=int, default=50)
    parser.add_argument("--only", default=",".join(MODELS), help="names or patterns, separated by commas")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    wanted = [model for model in models.available() if any(fnmatch(model.name, pattern) for pattern in arguments.only.split(","))]
    rows = []
    for model in wanted:
        rows.append(measured(model, arguments.shuffles, arguments.jobs))
        if not arguments.json:
            print(f"{model.name:30s} {arguments.shuffles} orders, {rows[-1]['results']} different results", flush=True)
    if arguments.json:
        print(json.dumps({"rows": rows}))
    return int(any(row["results"] != 1 for row in rows))


if __name__ == "__main__":
    sys.exit(main())
