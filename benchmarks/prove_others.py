"""What other optimizers make of the model set, proved or refuted: onnxsim, onnxscript's optimizer, onnxoptimizer, ONNX Runtime's saved
models (levels basic and extended).

    python -m benchmarks.prove_others [--only a,b] [--by onnxsim,ort-basic] [--json]

Each is `coset prove MODEL WHAT_IT_MADE` in a process of its own. `proved` means by steps that the checker accepted; the steps between say
what that rests on. A model that an optimizer fails on, or takes longer than two minutes for, is not counted. What the optimizers made is
kept (`benchmarks.rivals`), so that a second run is about the proofs alone.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks import feeds, headroom, models, rivals
from coset.comparing.reference import read_program
from coset.ir.dims import alone

ANSWERS = {0: "proved", 1: "refuted", 3: "unknown"}
LONGEST = 600  # s for a proof; none is known to take as long


def dims_of(model: models.Model) -> dict[str, int]:
    """Numbers for the free dims of a model that needs certain ones (sizes of images, of sounds), from what it is fed in benchmarks."""
    shapes = feeds.SHAPES.get(Path(model.name).name, {})
    found: dict[str, int] = {}
    for term in read_program(model.path).inputs if shapes else ():
        for dim, number in zip(term.tensor.shape or (), shapes.get(term.attribute("name"), ()), strict=False):
            name = alone(dim)
            if name is not None:
                found[name] = number
    return found


def proved(before: Path, after: Path, dims: dict[str, int]) -> dict[str, Any]:
    """What `coset prove` says of two files."""
    command = [sys.executable, "-m", "coset.cli", "prove", str(before), str(after), "--json"]
    command += [f"--dim={name}={number}" for name, number in dims.items()]
    started = time.perf_counter()
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LONGEST)
    except subprocess.TimeoutExpired:
        return {"answer": "unknown", "reason": f"took more than {LONGEST} s", "seconds": LONGEST}
    seconds = time.perf_counter() - started
    if done.returncode not in ANSWERS or not done.stdout.strip():
        return {"answer": "error", "reason": (done.stderr.strip().splitlines() or ["no message"])[-1], "seconds": seconds}
    return {**json.loads(done.stdout), "seconds": seconds}


def said(row: dict[str, Any]) -> str:
    """The rest of a line: what an answer rests on, or why there is none."""
    if row["answer"] == "proved" and row["method"] == "finite fields":
        return f"{row['points']} points of finite fields, error at most {row['error']:.1e}"
    if row["answer"] == "proved":
        return f"{row['steps']} steps, {row['assurance'] or 'no rule'}, {row['numerics']}"
    return str(row.get("difference") or row.get("reason", ""))[:200]


def main() -> None:
    """Prove what was asked for and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="names of models, separated by commas")
    parser.add_argument("--by", default=",".join(rivals.OPTIMIZERS), help="optimizers, separated by commas")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    wanted = {name for name in given.only.split(",") if name}
    out = sys.stderr if given.json else sys.stdout
    machine = headroom.machine()
    print(f"{machine['cpu']}, {machine['cores']} cores, load {machine['load']:.2f}; {rivals.versions()}", file=out, flush=True)
    rows: list[dict[str, Any]] = []
    for kind in given.by.split(","):
        for model in models.available():
            if wanted and model.name not in wanted:
                continue
            made, reason = rivals.converted(kind, model.path)
            row = {"answer": "not made", "reason": reason, "seconds": 0.0} if made is None else proved(model.path, made, dims_of(model))
            rows.append({"by": kind, "model": model.name, **row})
            print(f"{kind:14s} {model.name:40s} {row['answer']:9s} {row['seconds']:6.1f} s  {said(row)}", file=out, flush=True)
    for kind in given.by.split(","):
        answers = Counter(row["answer"] for row in rows if row["by"] == kind)
        made_by = sum(answers.values()) - answers["not made"]
        share = f"{100 * answers['proved'] / made_by:.1f} % proved" if made_by else "nothing made"
        print(f"{kind:14s} {share}: {dict(sorted(answers.items()))}", file=out)
    if given.json:
        print(json.dumps({"machine": machine, "command": " ".join(sys.argv), "versions": rivals.versions(), "rows": rows}))


if __name__ == "__main__":
    main()
