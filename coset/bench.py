"""`coset bench`: models side by side, each with ONNX Runtime's optimizer off and on and as it says itself, by the protocol of
`coset.comparing.timing`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from coset.backends.onnxruntime import Session
from coset.comparing.feeds import Feed, Sample, cases
from coset.comparing.reference import is_stablehlo
from coset.comparing.samples import with_samples
from coset.comparing.sizes import bindings
from coset.comparing.timing import Program as TimedCall
from coset.comparing.timing import Protocol, Timing, measure, ratio
from coset.frontends.onnx.model import import_model
from coset.ir.dims import alone
from coset.ir.errors import CosetError
from coset.ir.program import Program
from coset.ir.types import TensorType
from coset.optimizing.running import stored
from coset.targets.running import Running


def bench(
    models: Sequence[str], *, rounds: int, dims: Mapping[str, int], samples: Sequence[Sample] = (),
    progress: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:  # fmt: skip
    """Time each model with ONNX Runtime's optimizer off and on (its full level), and with the options that it carries where it carries
    some, on the same inputs: the first of the samples, or drawn ones.

    Returns `variants` (one row each, in ms, with its time over that of the first and the 95 % interval of this ratio), `sizes` of the
    free dims that were used, and `noise`: the middle half of the blocks of one variant spans so much of its median, at the worst variant.

    Raises:
        CosetError: a model cannot be read or run, is given twice, or does not run on the inputs of the first.
    """
    if rounds < 1:
        raise CosetError(f"{rounds} rounds cannot be timed", help="give at least 1")
    if twice := next((model for model in models if models.count(model) > 1), None):
        raise CosetError(f"`{twice}` is given twice", help="a copy under another name can be timed against it")
    for model in filter(is_stablehlo, models):
        raise CosetError(f"`{model}` is StableHLO, and it is ONNX Runtime that is timed", help="coset optimize MODEL.mlir -o MODEL.onnx")
    program = with_samples(import_model(models[0]), samples)
    feed = _working(models[0], program, dims)
    used = sizes_of(program, feed)
    progress(f"sizes: {', '.join(f'{name} = {size}' for name, size in used.items()) or 'no dim is free'}")
    variants: dict[str, TimedCall] = {}
    for model in models:
        for name, options in _variants(model, progress).items():
            progress(f"loading {model}, optimizer {name}")
            variants[f"{model} ({name})"] = partial(_running(model, options, feed, models[0]).run, feed)
    found = measure(variants, Protocol(rounds))
    first = next(iter(found.values()))
    rows = [summary(name, timing, first) for name, timing in found.items()]
    return {"variants": rows, "sizes": used, "noise": max(timing.spread for timing in found.values())}


def sizes_of(program: Program, feed: Feed) -> dict[str, int]:
    """The number that each free dim has where `feed` is given: of those that stand alone in the type of an input."""
    found: dict[str, int] = {}
    for term in program.inputs:
        given = feed.get(str(term.attribute("name")))
        if isinstance(term.type, TensorType) and term.type.shape is not None and isinstance(given, np.ndarray):
            names = (alone(dim) for dim in term.type.dims)
            found |= {name: size for name, size in zip(names, given.shape, strict=True) if name is not None}
    return found


def _variants(model: str, progress: Callable[[str], None]) -> dict[str, Running]:
    """The options to time a model with, by what a table calls them."""
    found = {"off": Running("off"), "all": Running("all")}
    try:
        own = stored(model)
        if own is not None:
            Session.told(model, own)
    except CosetError as error:
        progress(f"{model} is not timed as it says: {error.message}")
        return found
    return found if own is None else {**found, "as stored": own}


def _running(model: str, options: Running, feed: Feed, first: str) -> Session:
    session = Session.told(model, options)
    try:
        session.run(feed)
    except CosetError as error:
        message = f"`{model}` does not run on the inputs of `{first}`: {error.message}"
        raise CosetError(message, help="models that are timed side by side take the same inputs") from None
    return session


def summary(name: str, timing: Timing, first: Timing) -> dict[str, Any]:
    """Median over the medians of the blocks and fastest call, ms, the number of timed calls, and the time over that of `first`."""
    over = ratio(timing, first)
    return {
        "name": name, "median_ms": timing.median * 1e3, "min_ms": timing.minimum * 1e3, "runs": timing.calls, "ratio": over.value,
        "ratio_low": over.low, "ratio_high": over.high,
    }  # fmt: skip


def working_feed(model: str, dims: Mapping[str, int], samples: Sequence[Sample] = ()) -> Feed:
    """Inputs that the model runs with: the first of the samples, or drawn ones.

    Raises:
        CosetError: none was found.
    """
    return _working(model, with_samples(import_model(model), samples), dims)


def _working(model: str, program: Program, dims: Mapping[str, int]) -> Feed:
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
