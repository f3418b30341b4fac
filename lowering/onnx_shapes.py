"""Dim expressions as ONNX computations on int64 vectors of one element, from `Shape` of the values that have the symbols."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from coset.dialects.onnx_bounds import least
from coset.ir import dims
from coset.ir.dims import Atom, Dim
from coset.ir.types import I64
from coset.lowering.onnx_plan import Call, Input, Numbers


class Emitter(Protocol):
    """What this file needs of the graph that is built."""

    opset: int

    def emit(self, call: Call) -> str:
        """Print `call`, or find the equal one that is there; the name of its result."""

    def vector(self, numbers: Sequence[int]) -> str:
        """The name of a constant int64 vector."""

    def shape_source(self, dim: Dim) -> tuple[str, tuple[Dim, ...]] | None:
        """The name and the dims of a value one of whose dims is `dim`, or None where there is none (there is for every symbol)."""


Named = Callable[[str], Input]


def print_numbers(graph: Emitter, numbers: Numbers, named: Named) -> str:
    """The name of a value that holds `numbers`; `named` makes an input of a name."""
    name = _vector(graph, numbers.dims, named)
    if numbers.shape is not None and numbers.shape != (len(numbers.dims),):
        name = graph.emit(Call("Reshape", (named(name), named(graph.vector(numbers.shape)))))
    return name if numbers.dtype == I64 else graph.emit(Call("Cast", (named(name),), {"to": numbers.dtype}))


def _vector(graph: Emitter, elements: Sequence[Dim], named: Named) -> str:
    pieces: list[str] = []
    position = 0
    while position < len(elements):
        name, count = _piece(graph, elements[position:], named)
        pieces.append(name)
        position += count
    if not pieces:
        return graph.vector(())
    return pieces[0] if len(pieces) == 1 else graph.emit(Call("Concat", tuple(map(named, pieces)), {"axis": 0}))


def _piece(graph: Emitter, elements: Sequence[Dim], named: Named) -> tuple[str, int]:
    """The name of a vector of the first elements, and how many they are: a run of numbers, a run of one shape, or one dim."""
    head = elements[0]
    if isinstance(head, int):
        count = next((i for i, dim in enumerate(elements) if not isinstance(dim, int)), len(elements))
        return graph.vector([dim for dim in elements[:count] if isinstance(dim, int)]), count
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


def _part(graph: Emitter, source: str, start: int, end: int, rank: int, named: Named) -> str:
    if (start, end) == (0, rank):
        return graph.emit(Call("Shape", (named(source),)))
    if graph.opset >= 15:
        return graph.emit(Call("Shape", (named(source),), {"start": start, "end": end}))
    shape = graph.emit(Call("Shape", (named(source),)))
    return graph.emit(Call("Gather", (named(shape), named(graph.vector(range(start, end)))), {"axis": 0}))


def _scalar(graph: Emitter, dim: Dim, named: Named) -> str:
    """The name of a vector of the one element `dim`."""
    if isinstance(dim, int):
        return graph.vector([dim])
    found = graph.shape_source(dim)
    if found is not None:
        start = found[1].index(dim)
        return _part(graph, found[0], start, start + 1, len(found[1]), named)
    total: str | None = None
    terms = sorted(dim.terms, key=lambda item: item[1] < 0)  # additions first, so that it starts with one where it can
    for monomial, coefficient in terms:
        if not monomial:
            operation, factor = ("Sub", graph.vector([-coefficient])) if coefficient < 0 and total else ("Add", graph.vector([coefficient]))
        else:
            operation = "Sub" if coefficient < 0 and total else "Add"
            scale = abs(coefficient) if operation == "Sub" else coefficient
            factor = _product(graph, monomial, scale, named)
        total = factor if total is None else graph.emit(Call(operation, (named(total), named(factor))))
    assert total is not None
    return total


def _product(graph: Emitter, monomial: tuple[Atom, ...], coefficient: int, named: Named) -> str:
    names = [_atom(graph, atom, named) for atom in monomial]
    if coefficient != 1:
        names.append(graph.vector([coefficient]))
    result = names[0]
    for name in names[1:]:
        result = graph.emit(Call("Mul", (named(result), named(name))))
    return result


def _atom(graph: Emitter, atom: Atom, named: Named) -> str:
    if not atom.args:
        return _scalar(graph, dims.symbol(atom.name), named)
    a, b = (named(_scalar(graph, arg, named)) for arg in atom.args)
    if atom.name == "mod":
        return graph.emit(Call("Mod", (a, b), since=10))
    if atom.name == "floordiv":
        return _floor_division(graph, atom, a, b, named)
    if graph.opset >= 12:
        return graph.emit(Call("Max" if atom.name == "max" else "Min", (a, b)))
    larger = named(graph.emit(Call("Greater", (a, b), since=9)))
    return graph.emit(Call("Where", (larger, a, b) if atom.name == "max" else (larger, b, a), since=9))


def _floor_division(graph: Emitter, atom: Atom, a: Input, b: Input, named: Named) -> str:
    """ONNX's integer Div rounds to zero: where the dividend may be negative the remainder is taken off first."""
    lowest = least(atom.args[0])
    if lowest is not None and lowest >= 0:
        return graph.emit(Call("Div", (a, b)))
    rest = named(graph.emit(Call("Mod", (a, b), since=10)))
    return graph.emit(Call("Div", (named(graph.emit(Call("Sub", (a, rest)))), b)))
