"""Two programs run side by side on drawn inputs, and what `coset prove` says of them beside that."""

from __future__ import annotations

import signal
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper

from benchmarks.pair_edits import Edit
from benchmarks.pair_seeds import Feed, Seed, in_one_type
from coset.backends.onnxruntime import Session
from coset.comparing.difference import difference
from coset.comparing.noise import floating, largest_step, moved, nudge, wide
from coset.comparing.reference import read_program, values_of
from coset.ir.errors import CosetError
from coset.lowering.onnx.model import run_reference
from coset.proving.prove import REFUTED, Proving, prove

KINDS = ("given", "normal", "second", "wide", "whole", "tenths", "negative", "small", "ends", "huge", "special")
LONGEST = 60  # s of the processor for all that is done with a pair
SELDOM = 20  # one in so many pairs without a known difference is asked for, so that a refutation without a reason is seen
FREE = 3  # of a free dim that nothing is given for
Runs = Callable[[Feed], dict[str, Any]]


@dataclass(frozen=True)
class Row:
    """One pair. `differs`: finite, nonfinite, rounding, none, or not run; `shown`: the inputs of a refutation show it here; `exact`: the
    answer where every bit counts, of pairs that differ by roundings."""

    pair: str
    kind: str
    op: str
    differs: str
    answer: str = ""
    reason: str = ""
    seconds: float = 0.0
    shown: bool = False
    exact: str = ""
    witness: str = ""


class Late(Exception):
    """A pair takes too long."""


@contextmanager
def _ended_after(seconds: int) -> Iterator[None]:
    def late(*_: object) -> None:
        raise Late

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


# ---------------------------------------------------------------- ONNX


def runners(models: Sequence[Any]) -> tuple[Runs, ...]:
    """Functions that run models: by ONNX Runtime, or where that does not load one of them all by ONNX's evaluator: what two runtimes say
    of open cases is no difference between models.

    Raises:
        CosetError: as the functions do where neither runs a model.
    """
    texts = [model.SerializeToString() for model in models]
    try:
        return tuple(Session(text, threads=1, watched=False).run for text in texts)
    except CosetError:
        for model in models:
            _require_types(model)
        return tuple(
            partial(_by_reference, text, [value.name for value in model.graph.output]) for text, model in zip(texts, models, strict=True)
        )


def _by_reference(text: bytes, names: Sequence[str], feed: Feed) -> dict[str, Any]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return dict(zip(names, map(_as_array, run_reference(text, feed)), strict=True))


def _require_types(model: Any) -> None:
    """Check that the nodes take what they get: the runtime says so of what it has kernels for.

    Raises:
        CosetError: one does not.
    """
    try:
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    except (onnx.shape_inference.InferenceError, onnx.checker.ValidationError) as error:
        raise CosetError(str(error)) from None


def _as_array(value: Any) -> Any:
    return np.asarray(value) if isinstance(value, np.generic | int | float | bool) else value


def judged(pair: str, seed: Seed, edit: Edit, seconds: float) -> Row:
    """What `prove` says of a pair of models, beside what runs show."""
    row = partial(Row, pair, edit.kind, edit.op)
    try:
        with _ended_after(LONGEST):
            return _judged(row, seed, edit, seconds)
    except Late:
        return row("not run", reason="took too long")


def _judged(row: Callable[..., Row], seed: Seed, edit: Edit, seconds: float) -> Row:
    models = seed.model, edit.of(seed.model)
    try:
        runs = runners(models)
        differs, witness = compared(runs, partial(drawn, models[0], seed.feed), _shaken(models[0]))
        if differs == "types":
            models = in_one_type(models[0]), in_one_type(models[1])
            runs = runners(models)
            differs, witness = compared(runs, partial(drawn, models[0], seed.feed), _shaken(models[0]))
    except CosetError as error:
        return row("not run", reason=str(error).strip().splitlines()[0])
    if differs in ("types", "not run"):
        return row("not run", reason=witness)
    if not _is_asked(row, differs):
        return row(differs, witness=witness)
    with tempfile.TemporaryDirectory(prefix="coset-") as folder:
        paths = Path(folder) / "one.onnx", Path(folder) / "other.onnx"
        for path, model in zip(paths, models, strict=True):
            onnx.save(model, path)
        dims = {name: size for name, size in _sizes(models[0], seed.feed).items() if size}  # they depend on each other
        return _asked(row, paths, runs, differs, witness, seconds, dims)


def _is_asked(row: Callable[..., Row], differs: str) -> bool:
    """Whether `prove` is asked of a pair: of those of which no difference is known, one in `SELDOM`, since searches take long."""
    return differs in ("finite", "nonfinite") or sum(row("").pair.encode()) % SELDOM == 0


def _asked(
    row: Callable[..., Row], paths: tuple[Path, Path], runs: Sequence[Runs], differs: str, witness: str, seconds: float,
    dims: Mapping[str, int] | None = None,
) -> Row:  # fmt: skip
    inputs = paths[0].with_suffix(".npz")
    started = time.perf_counter()
    try:
        found = prove(Proving(*paths, seconds=seconds, dims=dims or {}, counterexample=inputs))
    except CosetError as error:
        return row(differs, "error", error.message, time.perf_counter() - started, witness=witness)
    except (Late, KeyboardInterrupt):
        raise
    except Exception as error:  # a fault of ours, which is what this looks for
        return row(differs, "crash", f"{type(error).__name__}: {error}", time.perf_counter() - started, witness=witness)
    spent = time.perf_counter() - started
    reason = str(found.get("difference") or found.get("reason") or found["method"])
    shown = False
    if found["answer"] == REFUTED:
        with np.load(inputs) as arrays:
            feed = {name.removeprefix("input "): arrays[name] for name in arrays if name.startswith("input ")}
        shown = _verdict(runs, _in_types(feed, paths[0]), None) not in ("none", "not run")
    exact = ""
    if differs == "rounding":
        try:
            exact = prove(Proving(*paths, seconds=seconds, dims=dims or {}, numerics="exact"))["answer"]
        except CosetError as error:
            exact = f"error: {error.message}"
    return row(differs, found["answer"], reason, spent, shown, exact, witness)


def _in_types(feed: Feed, path: Path) -> Feed:
    """Inputs as they were before NumPy wrote them: it has no names for some types."""
    types = {term.attribute("name"): term.tensor.dtype.numpy for term in read_program(path).inputs}
    return {name: value.view(types[name]) if value.dtype.kind == "V" else value for name, value in feed.items()}


def _shaken(model: Any) -> Runs | None:
    """The model with its float constants moved by a rounding error each; None where it has none."""
    found = onnx.ModelProto()
    found.CopyFrom(model)
    draw = np.random.default_rng(1)
    changed = False
    for tensor in found.graph.initializer:
        value = onnx.numpy_helper.to_array(tensor)
        if floating(value) and value.dtype.kind == "f" and value.size > 1:
            tensor.CopyFrom(onnx.numpy_helper.from_array(nudge(value, draw), tensor.name))
            changed = True
    return runners([found])[0] if changed else None


# ---------------------------------------------------------------- inputs


def drawn(model: Any, given: Feed, kind: str) -> dict[str, Any] | None:
    """Inputs of one kind; None where there is none of it."""
    feed: dict[str, Any] = {}
    listed = {tensor.name for tensor in model.graph.initializer}
    sizes = _sizes(model, given)
    for value in model.graph.input:
        if value.name in listed:
            continue
        type = value.type.tensor_type
        base = given.get(value.name)
        if kind == "given" and base is None:
            return None
        shape = base.shape if base is not None else tuple(dim.dim_value or sizes.get(dim.dim_param, FREE) for dim in type.shape.dim)
        draw = np.random.default_rng([KINDS.index(kind), *value.name.encode()])
        feed[value.name] = np.asarray(base) if kind == "given" else _values(draw, kind, _numpy(type.elem_type), shape, base)
    return feed


def _sizes(model: Any, given: Feed) -> dict[str, int]:
    found = {}
    for value in (each for each in model.graph.input if each.name in given):
        for dim, size in zip(value.type.tensor_type.shape.dim, np.shape(given[value.name]), strict=True):
            if dim.dim_param:
                found[dim.dim_param] = size
    return found


def _numpy(code: int) -> Any:
    return helper.tensor_dtype_to_np_dtype(code)


def _values(draw: np.random.Generator, kind: str, dtype: Any, shape: Sequence[int], base: Any) -> Any:
    """Numbers of one kind. Integers that came with a case stay what they are, in another order: they may be places or sizes."""
    if dtype == np.bool_:
        return draw.integers(0, 2, shape).astype(np.bool_)
    if np.dtype(dtype).kind in "iu":
        ends = np.iinfo(dtype)
        if np.dtype(dtype) == np.int64 or kind in ("small", "tenths"):
            return draw.permutation(np.asarray(base).reshape(-1)).reshape(shape) if base is not None else draw.integers(0, 2, shape)
        if kind in ("ends", "huge"):
            return draw.choice(np.array([ends.min, ends.min + 1, ends.max, ends.max - 1, 0, 1], dtype), shape)
        return draw.integers(max(ends.min, -9), 10, shape).astype(dtype)
    values = draw.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * draw.standard_normal(shape)
    elif kind == "wide":
        values = values * 9
    elif kind == "whole":
        values = draw.integers(-8, 9, shape) / 2.0
    elif kind == "tenths":
        values = draw.integers(0, 11, shape) / 10
    elif kind == "negative":
        values = -np.abs(values)
    elif kind == "small":
        values = values * 1e-3
    elif kind == "ends":
        values = draw.choice(np.array([0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 6.0, 3.0, -3.0]), shape)
    elif kind == "huge":
        values = values * (30.0 if np.dtype(dtype).itemsize < 3 else 1e5)
    elif kind == "special":
        values = np.where(draw.random(shape) < 0.3, draw.choice(np.array([np.inf, -np.inf, np.nan, -0.0]), shape), values)
    with np.errstate(all="ignore"):
        return np.asarray(values).astype(dtype)


# ---------------------------------------------------------------- differences


def compared(runs: Sequence[Runs], feeds: Callable[[str], Feed | None], shaken: Runs | None) -> tuple[str, str]:
    """How two programs differ on all kinds of inputs, and on which kind that is seen first."""
    found: dict[str, str] = {}
    reason = "the first program runs on no input"
    for kind in KINDS:
        feed = feeds(kind)
        if feed is None:
            continue
        seen = _verdict(runs, feed, shaken)
        if seen == "finite" and not all(np.isfinite(wide(value)).all() for value in feed.values() if _is_float(value)):
            seen = "nonfinite"
        found.setdefault(seen, kind)
        if seen in ("finite", "types", "fails"):
            break
    for seen in ("types", "finite", "fails", "nonfinite", "rounding", "none"):
        if seen in found:
            return ("not run", "the second program fails where the first does not") if seen == "fails" else (seen, found[seen])
    return "not run", reason


def _is_float(value: Any) -> bool:
    return isinstance(value, np.ndarray) and floating(value)


def _verdict(runs: Sequence[Runs], feed: Feed, shaken: Runs | None) -> str:
    """How the outputs of two programs differ on some inputs."""
    try:
        wanted = runs[0](feed)
    except CosetError:
        return "not run"
    try:
        got = runs[1](feed)
    except CosetError:
        return "fails"
    words = [_of_values(*pair) for pair in zip(wanted.values(), got.values(), strict=True)]
    if "types" in words:
        return "types"
    if "finite" in words:
        return "rounding" if _is_noise(runs[0], feed, shaken, wanted, got) else "finite"
    return next((word for word in ("nonfinite", "rounding") if word in words), "none")


def _of_values(wanted: Any, got: Any) -> str:
    if not isinstance(wanted, np.ndarray) or not isinstance(got, np.ndarray):
        return "none" if repr(wanted) == repr(got) else "finite"
    if wanted.dtype != got.dtype or wanted.shape != got.shape:
        return "types"
    if not floating(wanted):
        return "none" if np.array_equal(wanted, got) else "finite"
    left, right = wide(wanted), wide(got)
    if np.array_equal(left, right, equal_nan=True):
        return "none"
    both = np.isfinite(left) & np.isfinite(right)
    if not np.array_equal(left[both], right[both]):
        return "finite"
    return "nonfinite"


def _is_noise(run: Runs, feed: Feed, shaken: Runs | None, wanted: Mapping[str, Any], got: Mapping[str, Any]) -> bool:
    """Whether all that differs among finite elements is within what roundings do."""
    noise = dict.fromkeys(wanted, 0.0)
    others = [(run, moved(feed))] + ([(shaken, feed)] if shaken is not None else [])
    for each, inputs in others:
        try:
            found = each(inputs)
        except CosetError:
            continue
        for name, value in wanted.items():
            noise[name] = max(noise[name], largest_step(found[name], value))
    for name, value in wanted.items():
        if isinstance(value, np.ndarray) and floating(value):
            both = np.isfinite(wide(value)) & np.isfinite(wide(got[name]))
            left, right = np.where(both, value, 0).astype(value.dtype), np.where(both, got[name], 0).astype(value.dtype)
            if not difference("drawn", name, left, right, noise[name], exact=False, usual=0.0).ok:
                return False
        elif _of_values(value, got[name]) != "none":
            return False
    return True


# ---------------------------------------------------------------- StableHLO


def judged_modules(pair: str, kind: str, op: str, texts: tuple[str, str], seconds: float) -> Row:
    """What `prove` says of a pair of modules, beside what the evaluator shows."""
    row = partial(Row, pair, kind, op)
    with tempfile.TemporaryDirectory(prefix="coset-") as folder:
        paths = Path(folder) / "one.mlir", Path(folder) / "other.mlir"
        for path, text in zip(paths, texts, strict=True):
            path.write_text(text)
        try:
            with _ended_after(LONGEST):
                programs = tuple(map(read_program, paths))
                runs = tuple(partial(_evaluated, program) for program in programs)
                differs, witness = compared(runs, partial(_drawn_for, programs[0]), None)
                if differs in ("types", "not run"):
                    return row("not run", reason=witness)
                if not _is_asked(row, differs):
                    return row(differs, witness=witness)
                return _asked(row, paths, runs, differs, witness, seconds)
        except CosetError as error:
            return row("not run", reason=error.message)
        except Late:
            return row("not run", reason="took too long")


def _evaluated(program: Any, feed: Feed) -> dict[str, Any]:
    try:
        return values_of(program, feed)
    except (ValueError, TypeError, IndexError) as error:
        raise CosetError(f"no value: {error}") from None


def _drawn_for(program: Any, kind: str) -> Feed | None:
    if kind == "given":
        return None
    feed = {}
    for term in program.inputs:
        shape = [dim if isinstance(dim, int) else FREE for dim in term.tensor.dims]
        draw = np.random.default_rng([KINDS.index(kind), *term.attribute("name").encode()])
        feed[term.attribute("name")] = _values(draw, kind, term.tensor.dtype.numpy, shape, None)
    return feed
