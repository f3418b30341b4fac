"""Measure one program in a process of its own: rivals, the search by hand, then all of them against each other.

`python -m benchmarks.measure TASK.json OUT.jsonl` writes a line for each thing that it begins, so that the parent can name what crashed,
and ends with the finished row.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from benchmarks import feeds as inputs
from benchmarks.rivals import OPTIONS, Feeds, Run, open_openvino, open_ort
from benchmarks.screen import Candidate, Screen
from coset.comparing import timing

TOLERANCE = 1e-3
"""Largest error, as a part of the largest value of an output, of a form that is held equal: f32 that only reassociates keeps to 1e-5."""
QUANTIZED_TOLERANCE = 5e-2
"""The same for int8 programs, where a rounding that flips moves a value by one step of 256, several times in a row."""
AMPLIFIED = 8.0
"""A program that turns a relative change of 2^-20 of its inputs into an error e cannot be held to less than this many e."""
SMALLEST = 1e-6
"""Outputs that are all below this are compared in absolute terms: they are what a sigmoid or an exponential makes of noise."""
PLAY_OFF_ROUNDS = 4
SCREENING = 0.6
"""Part of the time budget for the search."""


def sizes(cases: list[list[np.ndarray]]) -> list[float]:
    """Return the largest finite value of each output over all cases: what its errors are measured by."""
    largest = [[float(np.abs(value[np.isfinite(value)]).max(initial=SMALLEST)) for value in case] for case in cases]
    return [max(each) for each in zip(*largest, strict=True)]


def error(expected: list[np.ndarray], found: list[np.ndarray], scales: list[float]) -> float:
    """Return the largest difference as a part of its output's scale; infinite for another shape, or other NaN and inf."""
    if len(expected) != len(found) or any(left.shape != right.shape for left, right in zip(expected, found, strict=True)):
        return float("inf")
    worst = 0.0
    for left, right, scale in zip(expected, found, scales, strict=True):
        if left.dtype.kind != "f":
            worst = max(worst, 0.0 if np.array_equal(left, right) else float("inf"))
            continue
        finite = np.isfinite(left)
        if not np.array_equal(left[~finite], right[~finite], equal_nan=True) or not np.isfinite(right[finite]).all():
            return float("inf")
        worst = max(worst, float(np.abs(left[finite].astype(np.float64) - right[finite]).max(initial=0.0)) / scale)
    return worst


class Oracle:
    """The unoptimized program on three inputs: normal, all negative, all zero."""

    def __init__(self, model: onnx.ModelProto, stem: str) -> None:
        self.run = open_ort(model, OPTIONS["off"])
        self.feeds = inputs.make(model, stem, 0)
        other = inputs.make(model, stem, 1)
        flip: Callable[[np.ndarray], np.ndarray] = lambda value: -np.abs(value) if value.dtype.kind == "f" else value  # noqa: E731
        negative = {name: flip(value) for name, value in other.items()}
        zero = {name: np.zeros_like(value) if value.dtype.kind == "f" else value for name, value in other.items()}
        self.cases: list[Feeds] = [self.feeds, negative, zero]
        self.expected = [[np.copy(value) for value in self.run(case)] for case in self.cases]
        self.scales = sizes(self.expected)
        quantized = any("QuantizeLinear" in node.op_type for node in model.graph.node)
        self.tolerance = QUANTIZED_TOLERANCE if quantized else max(TOLERANCE, AMPLIFIED * self._noise())
        self.vacuous = error(self.expected[0], self.expected[1], self.scales) < 1e-9

    def _noise(self) -> float:
        rng = np.random.default_rng(7)
        shaken = {
            name: (value * (1 + 2.0**-20 * rng.uniform(-1, 1, value.shape))).astype(value.dtype) if value.dtype.kind == "f" else value
            for name, value in self.feeds.items()
        }
        found = error(self.expected[0], self.run(shaken), self.scales)
        return found if np.isfinite(found) else 0.0

    def check(self, run: Run) -> float:
        """Return the largest error of a program over the cases."""
        return max(error(expected, run(case), self.scales) for expected, case in zip(self.expected, self.cases, strict=True))

    def program(self, run: Run) -> timing.Program:
        """Return the call that is timed."""
        return lambda: run(self.feeds)


def measure(task: dict[str, Any], note: Callable[[str], None]) -> dict[str, Any]:
    """Return the row of one task: times of rivals and of the best form by hand, ratios with intervals, and what was wrong or failed."""
    start = time.monotonic()
    model, forms = load(task)
    note("oracle")
    oracle = Oracle(model, task["stem"])
    row: dict[str, Any] = {
        "name": task["name"], "origin": task["origin"], "nodes": len(model.graph.node), "tolerance": oracle.tolerance, "variants": {},
        "wrong": {}, "failed": dict(task["failed"]), "crashed": task["skip"],
    }  # fmt: skip
    if oracle.vacuous:
        row["remark"] = "outputs do not depend on the inputs: equality is no evidence here"
    openers = rivals(task, model, oracle)
    if task["openvino"]:
        openers["openvino"] = lambda: open_openvino(Path(task["path"]))
    runs, errors = opened(openers, oracle, frozenset(task["skip"]), note, row)
    nodes = {name: _nodes(task, name, len(model.graph.node)) for name in runs}
    if "all" not in runs:
        row["error"] = "ONNX Runtime with all optimizations failed or is wrong; see failed, wrong"
        return row
    screen = Screen(
        oracle.program(runs["all"]), oracle.check, oracle.program, oracle.tolerance, note, frozenset(task["skip"]),
        time.monotonic() + SCREENING * task["budget"],
    )  # fmt: skip
    finalists = screen.search(model, forms)
    tuned, best = _play_off(screen.tuned(), runs["all"], oracle), _play_off(finalists, runs["all"], oracle)
    row["tuned"] = "all"
    if tuned is not None and tuned.score < 1.0:
        runs["tuned"], nodes["tuned"] = open_ort(model, OPTIONS[tuned.options]), len(model.graph.node)
        row["tuned"] = tuned.options
    if best is not None:
        runs["hand"], nodes["hand"] = open_ort(best.model, OPTIONS[best.options]), len(best.model.graph.node)
        errors["hand"] = oracle.check(runs["hand"])
        row["hand"] = {"form": best.form, "options": best.options, "surgeries": best.surgeries, "score": best.score}
    note("timing")
    left = max((1 - SCREENING) * task["budget"], task["budget"] - (time.monotonic() - start))
    found = timing.measure({name: oracle.program(run) for name, run in runs.items()}, timing.Protocol(task["rounds"], left))
    row["variants"] = {
        name: {"median_ms": each.median * 1e3, "min_ms": each.minimum * 1e3, "nodes": nodes.get(name), "error": errors.get(name)}
        for name, each in found.items()
    }
    row["rounds"] = len(found["all"].medians)
    row.update(_ratios(found))
    row["wrong"].update(screen.wrong)
    row["failed"].update(screen.failed)
    row["screened"] = {candidate.name: round(candidate.score, 4) for candidate in sorted(screen.tried, key=lambda each: each.score)}
    row["not_screened"], row["seconds"] = screen.late, round(time.monotonic() - start, 1)
    return row


def load(task: dict[str, Any]) -> tuple[onnx.ModelProto, dict[str, onnx.ModelProto]]:
    """Return the program of a task and the forms that it is given with, by name."""
    if task["kind"] == "model":
        return onnx.load(task["path"]), {}
    from benchmarks.workloads import WORKLOADS

    made = WORKLOADS[task["name"]]()
    return made.naive, made.best


def rivals(
    task: dict[str, Any], model: onnx.ModelProto, oracle: Oracle, levels: tuple[str, ...] = ("all",)
) -> dict[str, Callable[[], Run]]:
    """Return how to open what ONNX Runtime makes of the model itself, unoptimized and at `levels`, and of what converters made of it."""
    openers: dict[str, Callable[[], Run]] = {"off": lambda: oracle.run}
    openers |= {level: lambda level=level: open_ort(model, OPTIONS[level]) for level in levels}
    return openers | {name: lambda path=path: open_ort(Path(path), OPTIONS["all"]) for name, path in task["rivals"].items()}


def opened(
    openers: dict[str, Callable[[], Run]], oracle: Oracle, skip: frozenset[str], note: Callable[[str], None], row: dict[str, Any]
) -> tuple[dict[str, Run], dict[str, float]]:
    """Return what opens and is right, with its error; what fails or is wrong is entered in `row`."""
    runs: dict[str, Run] = {}
    errors: dict[str, float] = {}
    for name, opener in openers.items():
        note(name)
        if name in skip:
            continue
        try:
            run = opener()
            errors[name] = oracle.check(run)
        except Exception as problem:  # a rival that refuses a model leaves an empty cell and its reason
            row["failed"][name] = " ".join(str(problem).split())[:300]
            continue
        if errors[name] <= oracle.tolerance:
            runs[name] = run
        else:
            row["wrong"][name] = errors[name]
    return runs, errors


def _nodes(task: dict[str, Any], name: str, plain: int) -> int:
    return len(onnx.load(task["rivals"][name], load_external_data=False).graph.node) if name in task["rivals"] else plain


def _play_off(finalists: list[Candidate], baseline: Run, oracle: Oracle) -> Candidate | None:
    """Return the fastest finalist, measured again with a new score: the smallest of many noisy scores flatters itself."""
    if not finalists:
        return None
    programs = {str(place): oracle.program(open_ort(each.model, OPTIONS[each.options])) for place, each in enumerate(finalists)}
    found = timing.measure({"all": oracle.program(baseline), **programs}, timing.Protocol(PLAY_OFF_ROUNDS))
    for place, each in enumerate(finalists):
        each.score = found[str(place)].median / found["all"].median
    return min(finalists, key=lambda each: each.score)


def _ratios(found: dict[str, timing.Timing]) -> dict[str, Any]:
    rivals = [name for name in ("off", "all", "onnxsim", "onnxscript") if name in found]
    rival = min(rivals, key=lambda name: found[name].median)
    tuned = found.get("tuned", found["all"])
    ratios: dict[str, Any] = {"best_rival": rival, "options_alone": vars(timing.ratio(found[rival], tuned))}
    if "hand" in found:
        ratios["headroom"] = vars(timing.ratio(found[rival], found["hand"]))
        ratios["beyond_options"] = vars(timing.ratio(tuned, found["hand"]))
    if "hand" in found and "openvino" in found:
        ratios["openvino_over_hand"] = vars(timing.ratio(found["openvino"], found["hand"]))
    return ratios


def main(measure: Callable[[dict[str, Any], Callable[[str], None]], dict[str, Any]], task_path: str, out_path: str) -> None:
    """Measure the task of a file with `measure`; write progress and the row."""
    with Path(out_path).open("a", buffering=1) as out:
        row = measure(json.loads(Path(task_path).read_text()), lambda name: print(json.dumps({"begin": name}), file=out))
        print(json.dumps({"row": row}), file=out)


if __name__ == "__main__":
    main(measure, sys.argv[1], sys.argv[2])
