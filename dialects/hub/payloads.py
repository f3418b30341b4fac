"""Payload functions on whole arrays: a region whose parameters have rank 0 is computed for every element at once.

Inside, a value is held once where it is the same for every element, else with a leading axis of elements. Elementwise ops take
these arrays as they are; `if`, `case` and `while` compute each branch on the elements that take it; an op that is defined by a term
is expanded; any other op is computed element by element.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from coset.dialects.hub import scalars
from coset.dialects.hub.scalars import widen
from coset.ir import dims
from coset.ir.evaluate import Fallback
from coset.ir.meter import METER
from coset.ir.op import Array
from coset.ir.term import PARAMETER, Region, Term, make, topological
from coset.ir.types import TensorType, Type
from coset.rules.definition import evaluate_defined, expand, is_defined

Binding = Mapping[str, int]
WORDS: dict[str, Callable[[Array, Array], object]] = {
    "add": np.add, "multiply": np.multiply, "maximum": scalars.maximum, "minimum": scalars.minimum,
    "and": np.bitwise_and, "or": np.bitwise_or, "second": lambda _, update: update,
}  # fmt: skip


def accumulator(x: Array, combiner: str) -> Array:
    """`x` in the type that `combiner` accumulates in: sums and products of floats in f64, as `reduce` has them, the rest widened."""
    wide = widen(x)
    return wide.astype(np.float64) if combiner in ("add", "multiply") and wide.dtype.kind == "f" else wide


@dataclass(frozen=True)
class _Value:
    """One value for all elements, or (`each`) one for each along the first axis."""

    array: Any
    each: bool


_Values = Any  # a _Value, or a tuple of these


class Payload:
    """A region with parameters of rank 0, called on arrays of one shape (or that broadcast to one): the results have this shape."""

    def __init__(self, region: Region, binding: Binding, fallback: Fallback | None = None) -> None:
        given = set(region.parameters)
        self.region, self.binding, self.fallback = region, binding, fallback or evaluate_defined
        self.order = [term for term in topological(region.results) if term not in given]

    def uses(self, *parameters: int) -> bool:
        """True when a result needs one of these parameters."""
        wanted = {self.region.parameters[i] for i in parameters}
        return any(operand in wanted for term in self.order for operand in term.operands) or not wanted.isdisjoint(self.region.results)

    def __call__(self, *arguments: Array) -> list[Array]:
        shape = np.broadcast_shapes(*(np.shape(argument) for argument in arguments))
        count = prod(shape)
        results = self.run([_Value(np.broadcast_to(a, shape).reshape(count), True) for a in arguments], count)
        return [_spread(value, count).reshape(shape) for value in results]

    def run(self, arguments: Sequence[_Values], count: int) -> list[_Values]:
        """The results on `count` elements."""
        values: dict[Term, _Values] = dict(zip(self.region.parameters, arguments, strict=True))
        meter = METER.get()
        if meter is not None:
            given = [value.array for argument in arguments for value in _flat(argument)]
            for _ in range(1 + len(self.order)):
                meter(None, given)
        for term in self.order:
            values[term] = self._value(term, [values[operand] for operand in term.operands], count)
        return [values[result] for result in self.region.results]

    def _value(self, term: Term, operands: list[_Values], count: int) -> _Values:
        name = term.op.name
        if name == "builtin.tuple":
            return tuple(operands)
        if name in ("builtin.absent", "builtin.token"):
            return _Value(None, False)
        if name == "builtin.get":
            return operands[0][term.attribute("index")]
        if not any(value.each for operand in operands for value in _flat(operand)):
            return _once(_apply(term, [_raw(operand) for operand in operands], self.binding, self.fallback))
        if name in _CONTROL:
            return _CONTROL[name](self, term, operands, count)
        if _elementwise(term) and term.op.meaning is not None:
            rank = max(type.rank for type in [term.type, *(o.type for o in term.operands)] if isinstance(type, TensorType))
            aligned = [_aligned(value, rank) for value in operands]
            return _Value(term.op.meaning(term, aligned, self.binding), True)
        if is_defined(term.op):
            return self._expanded(term, operands, count)
        return self._one_by_one(term, operands, count)

    def _expanded(self, term: Term, operands: list[_Values], count: int) -> _Values:
        parameters = tuple(make(PARAMETER, (), {"index": i, "type": operand.type}) for i, operand in enumerate(term.operands))
        body = expand(make(term.op, parameters, dict(term.attributes)))
        (result,) = Payload(Region(parameters, (body,)), self.binding, self.fallback).run(operands, count)
        return result

    def _one_by_one(self, term: Term, operands: list[_Values], count: int) -> _Values:
        if not count:
            return _nothing(term.type, self.binding)
        rows = [_once(_apply(term, [_raw(_taken(o, i)) for o in operands], self.binding, self.fallback)) for i in range(count)]
        return _stacked(rows)


def _elementwise(term: Term) -> bool:
    same = term.op.name == "stablehlo.bitcast_convert" and term.tensor.dims == term.operands[0].tensor.dims  # to the same width
    return same or term.op.has("elementwise")


def _apply(term: Term, arrays: list[Any], binding: Binding, fallback: Fallback) -> Any:
    if term.op.meaning is None:
        return fallback(term, arrays)
    return term.op.meaning(term, arrays, binding, fallback) if term.regions else term.op.meaning(term, arrays, binding)


# ---------------------------------------------------------------- values, one for all or one for each


def _flat(value: _Values) -> list[_Value]:
    return [part for item in value for part in _flat(item)] if isinstance(value, tuple) else [value]


def _raw(value: _Values) -> Any:
    return tuple(map(_raw, value)) if isinstance(value, tuple) else value.array


def _once(raw: Any) -> _Values:
    return tuple(map(_once, raw)) if isinstance(raw, tuple) else _Value(raw, False)


def _spread(value: _Value, count: int) -> Array:
    return np.asarray(value.array) if value.each else np.broadcast_to(value.array, (count, *np.shape(value.array)))


def _aligned(value: _Value, rank: int) -> Array:
    """The array with its elements' dims at the right, as many as `rank`, where the elements lie at the left."""
    array = np.asarray(value.array)
    return array.reshape(array.shape[0], *[1] * (rank + 1 - array.ndim), *array.shape[1:]) if value.each else array


def _taken(value: _Values, index: Any) -> _Values:
    """`value` at one element (as a value for all) or at an array of elements."""
    if isinstance(value, tuple):
        return tuple(_taken(item, index) for item in value)
    if not value.each:
        return value
    return _Value(np.asarray(value.array[index]), isinstance(index, np.ndarray))


def _stacked(rows: list[_Values]) -> _Values:
    if isinstance(rows[0], tuple):
        return tuple(_stacked([row[i] for row in rows]) for i in range(len(rows[0])))
    return _Value(np.stack([row.array for row in rows]), True)


def _nothing(type: Type, binding: Binding) -> _Values:
    if not isinstance(type, TensorType):
        return tuple(_nothing(item, binding) for item in type.items)  # type: ignore[union-attr]
    return _Value(np.zeros((0, *(dims.evaluate(dim, binding) for dim in type.dims)), type.dtype.numpy), True)


# ---------------------------------------------------------------- control flow inside a payload


def _branches(payload: Payload, term: Term, operands: list[_Values], count: int) -> _Values:
    """`if` and `case`: each branch on the elements that choose it."""
    choice, captured = np.asarray(operands[0].array), operands[1:]
    last = len(term.regions) - 1
    elsewhere = (choice < 0) | (choice > last)
    chosen = np.where(choice, 0, 1) if choice.dtype == np.bool_ else np.where(elsewhere, last, choice)
    pieces = []
    for number, region in enumerate(term.regions):
        at = np.flatnonzero(np.broadcast_to(chosen, count) == number)
        if at.size:
            results = Payload(region, payload.binding, payload.fallback).run([_taken(o, at) for o in captured], at.size)
            pieces.append((at, results))
    if not pieces:
        return _nothing(term.type, payload.binding)
    results = [_joined([(at, values[i]) for at, values in pieces], count) for i in range(len(pieces[0][1]))]
    return results[0] if len(results) == 1 else tuple(results)


def _joined(pieces: list[tuple[Array, _Value]], count: int) -> _Value:
    sample = np.asarray(pieces[0][1].array)
    shape = sample.shape[1:] if pieces[0][1].each else sample.shape
    whole = np.empty((count, *shape), sample.dtype)
    for at, value in pieces:
        whole[at] = value.array
    return _Value(whole, True)


def _loop(payload: Payload, term: Term, operands: list[_Values], count: int) -> _Values:
    """`while`: the elements whose condition still holds go round again."""
    condition, body = (Payload(region, payload.binding, payload.fallback) for region in term.regions)
    state = [_Value(np.array(_spread(value, count)), True) for value in operands]
    active = np.arange(count)
    while active.size:
        inside = [_taken(value, active) for value in state]
        (goes_on,) = condition.run(inside, active.size)
        keep = np.flatnonzero(_spread(goes_on, active.size))
        active = active[keep]
        if not active.size:
            break
        for value, fresh in zip(state, body.run([_taken(value, keep) for value in inside], active.size), strict=True):
            value.array[active] = fresh.array
    return state[0] if len(state) == 1 else tuple(state)


_CONTROL: dict[str, Callable[[Payload, Term, list[_Values], int], _Values]] = {
    "stablehlo.if": _branches, "stablehlo.case": _branches, "stablehlo.while": _loop,
}  # fmt: skip
