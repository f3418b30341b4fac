"""Time one program in a process of its own: its rivals, its best form by hand, and what coset made of it, side by side.

`python -m benchmarks.beside TASK.json OUT.jsonl` as `benchmarks.measure`: a line for each thing that begins, then the row.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx

from benchmarks import hand
from benchmarks.measure import Oracle, load, main, opened, rivals
from benchmarks.rivals import OPTIONS, Options, Run, open_ort
from benchmarks.verdict import judged
from coset.backends.onnxruntime import LEVELS
from coset.comparing import timing
from coset.optimizing.running import stored


def measure(task: dict[str, Any], note: Callable[[str], None]) -> dict[str, Any]:
    """Return the row of one task: medians in ms, ratios, and what was wrong or failed."""
    model, forms = load(task)
    note("oracle")
    oracle = Oracle(model, task["stem"])
    row: dict[str, Any] = {
        "name": task["name"], "origin": task["origin"], "tolerance": oracle.tolerance, "wrong": {}, "failed": dict(task["failed"]),
        "crashed": task["skip"],
    }  # fmt: skip
    openers = rivals(task, model, oracle, ("basic", "all"))
    if task["hand"] is not None:
        openers["hand"] = lambda: open_ort(by_hand(model, forms, task["hand"]), OPTIONS[task["hand"]["options"]])
    openers["coset"] = lambda: as_stored(Path(task["coset"]))
    runs, row["errors"] = opened(openers, oracle, frozenset(task["skip"]), note, row)
    note("timing")
    start = time.monotonic()
    found = timing.measure({name: oracle.program(run) for name, run in runs.items()}, timing.Protocol(task["rounds"], task["budget"]))
    row["ms"] = {name: each.median * 1e3 for name, each in found.items()}
    row["min_ms"] = {name: each.minimum * 1e3 for name, each in found.items()}
    row["rounds"], row["seconds"] = len(found["off"].medians), round(time.monotonic() - start, 1)
    return row | judged(found)


def by_hand(model: onnx.ModelProto, forms: dict[str, onnx.ModelProto], made: dict[str, Any]) -> onnx.ModelProto:
    """Return the form that `headroom` found best, made again: a given form or the program itself, after surgeries."""
    base = next((form for name, form in forms.items() if made["form"] == name or made["form"].startswith(f"{name} + ")), model)
    performed = hand.perform(base, made["surgeries"]) if made["surgeries"] else (base, ())
    if performed is None:
        raise ValueError(f"{', '.join(made['surgeries'])} change nothing any more")
    return performed[0]


def as_stored(path: Path) -> Run:
    """Return a program under the options that it carries, called like its rivals."""
    own = stored(path)
    if own is None:
        raise ValueError("the program carries no options")
    threads = Options().threads if own.threads is None else own.threads
    return open_ort(path, Options(LEVELS[own.level].name, own.disabled, threads, entries=own.entries))


if __name__ == "__main__":
    main(measure, sys.argv[1], sys.argv[2])
