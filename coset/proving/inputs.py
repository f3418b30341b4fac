"""Inputs to compare two programs on beside those of every comparison: whole, large and small ones, numbers near the programs' own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from coset.comparing.feeds import Case, cases
from coset.comparing.loose_inputs import elements_of, entries_of
from coset.comparing.roles import fitted, roles_of
from coset.ir.constants import Constant
from coset.ir.program import Program
from coset.ir.term import CONSTANT, Term
from coset.ir.types import DType, TensorType, Type

MOST_NUMBERS = 64  # of the programs' own that inputs are drawn near to
MOST_ELEMENTS = 1 << 12  # of a constant that gives some
MOST_INTEGER = 1 << 10  # of those of the programs near which integers are drawn: larger ones may be sizes


def further(programs: Sequence[Program]) -> Callable[[Program, Mapping[str, int], int], Iterator[Case]]:
    """Inputs of other kinds: whole and half numbers, numbers between -1 and 1, large and small ones, numbers at and beside those that the
    programs have, integers of all sizes."""
    numbers = {kind: _numbers(programs, kind) for kind in ("float", "int")}

    def draw(program: Program, binding: Mapping[str, int], seed: int) -> Iterator[Case]:
        first = next(cases(program, binding, seed), None)
        if first is None:
            return
        roles = roles_of(program)
        types = {str(term.attribute("name")): term.type for term in program.inputs}
        for place, (name, kind) in enumerate(KINDS.items()):
            rng = np.random.default_rng([seed, place, 1])
            feed = {key: _redrawn(rng, kind, types[key], value, numbers) if key in types else value for key, value in first.feed.items()}
            yield Case(name, fitted(roles, binding, feed, rng))

    return draw


def _redrawn(rng: np.random.Generator, kind: Kind, type: Type, value: Any, numbers: Mapping[str, Sequence[float]]) -> Any:
    """Other numbers in the tensors of an input: one, or those of a sequence, or the values of a map."""
    if isinstance(type, TensorType):
        return _drawn(rng, kind, type.dtype, np.asarray(value), numbers)
    entries, elements = entries_of(type), elements_of(type)
    if entries is not None and entries.dtype.kind != "string":
        return dict(zip(value, _drawn(rng, kind, entries.dtype, np.asarray([*value.values()]), numbers), strict=True))
    if elements is None:
        return value
    parts = [_drawn(rng, kind, elements.dtype, np.asarray(each), numbers) for each in (value if elements.sequence else [value])]
    return parts if elements.sequence else parts[0]


def _drawn(rng: np.random.Generator, kind: Kind, dtype: DType, base: Any, numbers: Mapping[str, Sequence[float]]) -> Any:
    if dtype.kind not in ("float", "int", "uint", "bool"):
        return base
    if dtype.kind == "bool":
        return rng.integers(0, 2, base.shape).astype(np.bool_)
    draw = kind[0] if dtype.kind == "float" else kind[1]
    with np.errstate(all="ignore"):
        return _cast(draw(rng, base.shape, numbers, dtype), dtype)


def _cast(value: Any, dtype: DType) -> Any:
    if dtype.kind == "float":
        return np.asarray(value).astype(dtype.numpy)
    low, high = _ends(dtype)
    clipped = np.clip(np.asarray(value, object), low, high) if np.asarray(value).dtype == object else np.clip(value, low, high)
    return np.asarray(clipped).astype(dtype.numpy)


def _ends(dtype: DType) -> tuple[int, int]:
    """The least and the greatest number of an integer type."""
    import ml_dtypes

    found: Any = ml_dtypes.iinfo(dtype.numpy) if dtype.numpy.kind == "V" else np.iinfo(dtype.numpy)  # type: ignore[no-untyped-call]
    return int(found.min), int(found.max)


# ---------------------------------------------------------------- kinds

Drawn = Callable[[np.random.Generator, Sequence[int], Mapping[str, Sequence[float]], DType], Any]
Kind = tuple[Drawn, Drawn]


def _normal(scale: float) -> Drawn:
    return lambda rng, shape, numbers, dtype: rng.standard_normal(shape) * scale


def _whole(rng: np.random.Generator, shape: Sequence[int], numbers: Mapping[str, Sequence[float]], dtype: DType) -> Any:
    return rng.integers(-8, 9, shape) / 2


def _unit(rng: np.random.Generator, shape: Sequence[int], numbers: Mapping[str, Sequence[float]], dtype: DType) -> Any:
    return rng.uniform(-1, 1, shape)


def _positive(rng: np.random.Generator, shape: Sequence[int], numbers: Mapping[str, Sequence[float]], dtype: DType) -> Any:
    return np.exp(rng.normal(0, 2, shape))


def _at(rng: np.random.Generator, shape: Sequence[int], numbers: Mapping[str, Sequence[float]], dtype: DType) -> Any:
    return rng.choice(np.array(numbers["float"]), shape)


def _infinite(rng: np.random.Generator, shape: Sequence[int], numbers: Mapping[str, Sequence[float]], dtype: DType) -> Any:
    return np.where(rng.random(shape) < 0.25, rng.choice(np.array([np.inf, -np.inf]), shape), rng.standard_normal(shape))


def _near(rng: np.random.Generator, shape: Sequence[int], numbers: Mapping[str, Sequence[float]], dtype: DType) -> Any:
    """Numbers of the programs, their neighbours, and numbers a little beside them."""
    chosen = rng.choice(np.array(numbers["float"]), shape).astype(dtype.numpy)
    if dtype.numpy.kind == "f":
        sides = np.nextafter(chosen, rng.choice(np.array([-np.inf, np.inf]), shape).astype(dtype.numpy))
        chosen = np.where(rng.random(shape) < 0.5, chosen, sides)
    beside = chosen.astype(np.float64) + rng.choice(np.array([-0.125, 0.125, 0.5, -0.5]), shape)
    return np.where(rng.random(shape) < 0.6, chosen.astype(np.float64), beside)


def _small_integers(rng: np.random.Generator, shape: Sequence[int], numbers: Mapping[str, Sequence[float]], dtype: DType) -> Any:
    return rng.integers(-9, 10, shape)


def _counts(rng: np.random.Generator, shape: Sequence[int], numbers: Mapping[str, Sequence[float]], dtype: DType) -> Any:
    return rng.integers(1, 6, shape)


def _near_integers(rng: np.random.Generator, shape: Sequence[int], numbers: Mapping[str, Sequence[float]], dtype: DType) -> Any:
    return rng.choice(np.array(numbers["int"]), shape).astype(np.int64) + rng.choice(np.array([0, 0, 0, 1, -1]), shape)


def _extremes(rng: np.random.Generator, shape: Sequence[int], numbers: Mapping[str, Sequence[float]], dtype: DType) -> Any:
    low, high = _ends(dtype)
    return rng.choice(np.array([low, low + 1, high - 1, high, high // 2, 0, 1], object), shape)


def _bits(rng: np.random.Generator, shape: Sequence[int], numbers: Mapping[str, Sequence[float]], dtype: DType) -> Any:
    low, high = _ends(dtype)
    return rng.integers(low, high, shape, dtype=np.int64 if low else np.uint64, endpoint=True)


KINDS: Mapping[str, Kind] = {
    "whole": (_whole, _small_integers),
    "near": (_near, _near_integers),
    "at": (_at, _near_integers),
    "unit": (_unit, _counts),
    "broad": (_normal(9.0), _bits),
    "positive": (_positive, _counts),
    "small": (_normal(1e-3), _near_integers),
    "large": (_normal(100.0), _extremes),
    "infinite": (_infinite, _small_integers),
}
"""What floats are, and what integers are, of inputs that bear this name."""


# ---------------------------------------------------------------- the numbers that programs have


def _numbers(programs: Sequence[Program], kind: str) -> list[float]:
    """The numbers of constants and attributes, in the order of programs, and a few that ops have in them."""
    found: dict[float, None] = {}
    for program in programs:
        for term in program.terms():
            for number in _of_term(term, kind):
                if np.isfinite(number) and (kind == "float" or abs(number) <= MOST_INTEGER):
                    found.setdefault(number)
                if len(found) >= MOST_NUMBERS:
                    return list(found)
    return list(found) + ([0.0, 1.0, -1.0, 0.5, 6.0] if kind == "float" else [0, 1, 2])


def _of_term(term: Term, kind: str) -> Iterator[float]:
    if term.op is CONSTANT:
        yield from _of_constant(term.attribute("value"), kind)
    for _, value in term.attributes if term.op is not CONSTANT else ():
        yield from _of_attribute(value, kind)


def _of_attribute(value: Any, kind: str) -> Iterator[float]:
    if isinstance(value, Constant):
        yield from _of_constant(value, kind)
    elif isinstance(value, tuple):
        for each in value:
            yield from _of_attribute(each, kind)
    elif (isinstance(value, float) and kind == "float") or (isinstance(value, int) and not isinstance(value, bool) and kind == "int"):
        yield value


def _of_constant(value: Constant, kind: str) -> Iterator[float]:
    wanted = ("float",) if kind == "float" else ("int", "uint")
    if value.type.dtype.kind in wanted and value.has_elements and int(np.prod(value.type.static or (), dtype=np.int64)) <= MOST_ELEMENTS:
        array = value.array().reshape(-1)[:MOST_NUMBERS]
        yield from (array.astype(np.float64) if kind == "float" else array.astype(np.int64)).tolist()
