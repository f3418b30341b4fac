"""Dim expressions as ONNX computations on int64 vectors of one element, from `Shape` of the values that have the symbols."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from coset.dialects.onnx.bounds import least
from coset.ir import dims
from coset.ir.constants import constant_of
from coset.ir.dims import Atom, Dim, Poly
from coset.ir.types import I64
from coset.lowering.onnx.calls import Input, NodeCall, Numbers, vector


class Sources(Protocol):
    """What this file needs of the graph that is built."""

    opset: int

    def shape_source(self, dim: Dim) -> tuple[str, tuple[Dim, ...]] | None:
        """The name and the dims of a value one of whose dims is `dim`, or None where there is none (there is for every symbol)."""

    def size_source(self, dim: Dim) -> str | None:
        """The name of a value that has `dim` elements, or None where there is none."""


Named = Callable[[str], Input]


def numbers_call(graph: Sources, numbers: Numbers, named: Named) -> NodeCall:
    """What computes `numbers`, of which one is symbolic; `named` makes an input of a name."""
    shape = (len(numbers.dims),) if numbers.shape is None else numbers.shape
    found = _number(graph, numbers.dims[0], named) if shape == () else _vector(graph, numbers.dims, named)
    if len(shape) > 1 or (shape and shape != (len(numbers.dims),)):
        found = NodeCall("Reshape", (found, vector(*shape)))
    assert isinstance(found, NodeCall), "a symbolic dim is computed"
    return found if numbers.dtype == I64 else NodeCall("Cast", (found,), {"to": numbers.dtype})


def _number(graph: Sources, dim: Dim, named: Named) -> Input:
    """A tensor without dims that holds `dim`."""
    whole = graph.size_source(dim)
    if whole is not None:
        return NodeCall("Size", (named(whole),))
    found = graph.shape_source(dim)
    if found is None or graph.opset >= 15:  # Shape of a part, which vectors share
        return NodeCall("Reshape", (_scalar(graph, dim, named), vector()))
    source, shape = found
    return NodeCall("Gather", (NodeCall("Shape", (named(source),)), constant_of(np.array(shape.index(dim), np.int64))), {"axis": 0})


def _vector(graph: Sources, elements: Sequence[Dim], named: Named) -> Input:
    whole = _run(graph, elements, named)
    if whole is not None:
        return whole
    pieces: list[Input] = []
    position = 0
    while position < len(elements):
        piece, count = _piece(graph, elements[position:], named)
        pieces.append(piece)
        position += count
    return pieces[0] if len(pieces) == 1 else NodeCall("Concat", tuple(pieces), {"axis": 0})


def _run(graph: Sources, elements: Sequence[Dim], named: Named) -> Input:
    """All elements as dims of one value that follow each other, or None."""
    first = next(index for index, dim in enumerate(elements) if isinstance(dim, Poly))
    found = graph.shape_source(elements[first])
    if found is None:
        return None
    source, shape = found
    start = shape.index(elements[first]) - first
    fits = start >= 0 and shape[start : start + len(elements)] == tuple(elements)
    return _part(graph, source, start, start + len(elements), len(shape), named) if fits else None


def _piece(graph: Sources, elements: Sequence[Dim], named: Named) -> tuple[Input, int]:
    """A vector of the first elements, and how many they are: a run of numbers, a run of one shape, or one dim."""
    head = elements[0]
    if isinstance(head, int):
        count = next((i for i, dim in enumerate(elements) if not isinstance(dim, int)), len(elements))
        return vector(*(dim for dim in elements[:count] if isinstance(dim, int))), count
    found = graph.shape_source(head)
    if found is None:
        return _scalar(graph, head, named), 1
    source, shape = found
    start = shape.index(head)
    count = 1
    while count < len(elements) and start + count < len(shape) and elements[count] == shape[start + count]:
        count += 1
    while count > 1 and isinstance(elements[count - 1], int):
        count -= 1
    return _part(graph, source, start, start + count, len(shape), named), count


def _part(graph: Sources, source: str, start: int, end: int, rank: int, named: Named) -> Input:
    if (start, end) == (0, rank):
        return NodeCall("Shape", (named(source),))
    if graph.opset >= 15:
        return NodeCall("Shape", (named(source),), {"start": start, "end": end})
    return NodeCall("Gather", (NodeCall("Shape", (named(source),)), vector(*range(start, end))), {"axis": 0})


def _scalar(graph: Sources, dim: Dim, named: Named) -> Input:
    """A vector of the one element `dim`."""
    if isinstance(dim, int):
        return vector(dim)
    found = graph.shape_source(dim)
    if found is not None:
        start = found[1].index(dim)
        return _part(graph, found[0], start, start + 1, len(found[1]), named)
    total: Input = None
    terms = sorted(dim.terms, key=lambda item: item[1] < 0)  # additions first, so that it starts with one where it can
    for monomial, coefficient in terms:
        operation = "Sub" if coefficient < 0 and total is not None else "Add"
        scale = abs(coefficient) if operation == "Sub" else coefficient
        factor = _product(graph, monomial, scale, named) if monomial else vector(scale)
        total = factor if total is None else NodeCall(operation, (total, factor))
    return total


def _product(graph: Sources, monomial: tuple[Atom, ...], coefficient: int, named: Named) -> Input:
    factors = [_atom(graph, atom, named) for atom in monomial]
    if coefficient != 1:
        factors.append(vector(coefficient))
    result = factors[0]
    for factor in factors[1:]:
        result = NodeCall("Mul", (result, factor))
    return result


def _atom(graph: Sources, atom: Atom, named: Named) -> Input:
    if not atom.args:
        return _scalar(graph, dims.symbol(atom.name), named)
    a, b = (_scalar(graph, arg, named) for arg in atom.args)
    if atom.name == "mod":
        return NodeCall("Mod", (a, b), since=10)
    if atom.name == "floordiv":
        return _floor_division(atom, a, b)
    if graph.opset >= 12:
        return NodeCall("Max" if atom.name == "max" else "Min", (a, b))
    larger = NodeCall("Greater", (a, b), since=9)
    return NodeCall("Where", (larger, a, b) if atom.name == "max" else (larger, b, a), since=9)


def _floor_division(atom: Atom, a: Input, b: Input) -> Input:
    """ONNX's integer Div rounds to zero: where the dividend may be negative the remainder is taken off first."""
    lowest = least(atom.args[0])
    if lowest is not None and lowest >= 0:
        return NodeCall("Div", (a, b))
    return NodeCall("Div", (NodeCall("Sub", (a, NodeCall("Mod", (a, b), since=10))), b))
