"""Timing side by side: blocks of calls, round-robin over the variants, so that noise and thread pools hit all of them alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from coset.backends.onnxruntime import Session
from coset.feeds import Feed, bindings, cases
from coset.frontends.onnx import import_model
from coset.ir.errors import CosetError

CALLS = 5  # timed calls of a block, after one untimed
PAUSE = 0.02  # s between blocks: lets the last runtime's spinning threads go to sleep


def time_blocks(variants: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, list[float]]:
    """Seconds of every timed call of each variant: `rounds` blocks each, in turn."""
    times: dict[str, list[float]] = {name: [] for name in variants}
    for _ in range(rounds):
        for name, call in variants.items():
            time.sleep(PAUSE)
            call()
            for _ in range(CALLS):
                started = time.perf_counter()
                call()
                times[name].append(time.perf_counter() - started)
    return times


def bench(
    models: Sequence[str], *, rounds: int, dims: Mapping[str, int], progress: Callable[[str], None] = lambda _: None
) -> list[dict[str, Any]]:
    """Time each model with ONNX Runtime's optimizer off and on (its full level) on the same drawn inputs.

    Raises:
        CosetError: a model cannot be read or run, or the models do not take the same inputs.
    """
    if rounds < 1:
        raise CosetError(f"{rounds} rounds cannot be timed", help="give at least 1")
    feed = working_feed(models[0], dims)
    variants = {}
    for model in models:
        for level in ("off", "all"):
            progress(f"loading {model}, optimizer {level}")
            session = Session(model, level=level)
            variants[f"{model} ({level})"] = lambda session=session: session.run(feed)
    return [summary(name, times) for name, times in time_blocks(variants, rounds).items()]


def summary(name: str, times: Sequence[float]) -> dict[str, Any]:
    """Median and minimum, ms, and the number of timed calls."""
    return {"name": name, "median_ms": statistics.median(times) * 1e3, "min_ms": min(times) * 1e3, "runs": len(times)}


def working_feed(model: str, dims: Mapping[str, int]) -> Feed:
    """Drawn inputs that the model runs with.

    Raises:
        CosetError: none was found.
    """
    program = import_model(model)
    session = Session(model, level="off")
    refusal = ""
    for binding in bindings(program, dims):
        case = next(iter(cases(program, binding)))
        try:
            session.run(case.feed)
        except CosetError as error:
            refusal = error.message
            continue
        return case.feed
    raise CosetError(f"`{model}` does not run on drawn inputs: {refusal}", help="give its free dims with --dim NAME=N")
