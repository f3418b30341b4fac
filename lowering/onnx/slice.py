"""Slices as ONNX calls: Slice, which counts from either end, stops at a dim's ends and goes backwards; Split; Gather of one element."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np

from coset.dialects.onnx.bounds import least
from coset.ir import dims
from coset.ir.constants import constant_of
from coset.ir.dims import Dim, Poly, Shape
from coset.ir.term import Term
from coset.lowering.onnx.calls import Input, NodeCall, NoOnnxForm, Numbers, PrintContext, Printer, vector

_LAST, _FIRST = (1 << 63) - 1, -(1 << 63)  # ends of Slice that mean "to the end" and "to the beginning"


# ---------------------------------------------------------------- splits


def find_splits(terms: Sequence[Term], roots: Collection[Term]) -> dict[Term, tuple[Term, ...]]:
    """The slices among `terms`, operands before users, that are together all of one value, each with all parts in order; but for those
    of which nothing is used but their one element, which are as many Gathers."""
    parts: dict[tuple[Term, int], dict[Dim, Term]] = {}
    for term in terms:
        axis = _sliced_axis(term) if term.op.name == "stablehlo.slice" else None
        if axis is not None:
            parts.setdefault((term.operands[0], axis), {}).setdefault(term.attribute("start")[axis], term)
    found = {}
    for (whole, axis), starts in parts.items():
        position: Dim = 0
        line: list[Term] = []
        while position in starts and starts[position] not in line:
            line.append(starts[position])
            position = line[-1].attribute("limit")[axis]
        if position == whole.tensor.dims[axis] and len(line) > 1:
            found.update(dict.fromkeys(line, tuple(line)))
    kept = _kept_parts(found, terms) | {part for part in found if part in roots}
    return {part: line for part, line in found.items() if any(each in kept for each in line)}


def _kept_parts(parts: Collection[Term], terms: Sequence[Term]) -> set[Term]:
    """Those of which more is used than their one element as it is: a user of it that moves it takes the part itself."""
    moved = {term.operands[0] for term in terms if term.op.name in ("stablehlo.reshape", "stablehlo.broadcast_in_dim")}
    elements = {term for term in terms if term.op.name == "stablehlo.reshape" and term.operands[0] in parts and _takes_element(term)}
    return {operand for term in terms if term not in elements or term in moved for operand in term.operands if operand in parts}


def _sliced_axis(term: Term) -> int | None:
    """The one dim of which a slice without steps takes a part."""
    shape = term.operands[0].tensor.dims
    columns = zip(term.attribute("start"), term.attribute("limit"), shape, strict=True)
    axes = [axis for axis, (start, limit, dim) in enumerate(columns) if (start, limit) != (0, dim)]
    return axes[0] if len(axes) == 1 and all(step == 1 for step in term.attribute("strides")) else None


def _print_split(parts: tuple[Term, ...], context: PrintContext) -> NodeCall | None:
    """One node for all parts; None where their sizes are symbolic and the version wants numbers."""
    axis = _sliced_axis(parts[0])
    assert axis is not None
    sizes = tuple(part.tensor.dims[axis] for part in parts)
    if context.reaches(13):
        return NodeCall("Split", (parts[0].operands[0], Numbers(sizes)), {"axis": axis}, results=parts)
    static = all(isinstance(size, int) for size in sizes)
    return NodeCall("Split", (parts[0].operands[0],), {"axis": axis, "split": sizes}, since=2, results=parts) if static else None


# ---------------------------------------------------------------- one element


def element(x: Term, target: Shape, context: PrintContext) -> NodeCall | None:
    """Gather of the one element that the slice `x` takes of a dim, where `target` is its shape without that dim; else None."""
    axis = _element_axis(x, target)
    if axis is None or x in context.splits:
        return None
    source = x.operands[0]
    position = _from_end(x.attribute("start")[axis], source.tensor.dims[axis])
    if not isinstance(position, int) or (position < 0 and not context.reaches(11)):
        return None
    return NodeCall("Gather", (source, constant_of(np.array(position, np.int64))), {"axis": axis})


def _takes_element(term: Term) -> bool:
    return _element_axis(term.operands[0], term.tensor.dims) is not None


def _element_axis(x: Term, target: Shape) -> int | None:
    """The dim of which the slice `x` takes one element, where `target` is its shape without that dim."""
    axis = _sliced_axis(x) if x.op.name == "stablehlo.slice" else None
    shape = x.tensor.dims
    return None if axis is None or shape[axis] != 1 or (*shape[:axis], *shape[axis + 1 :]) != target else axis


# ---------------------------------------------------------------- slices


@dataclass(frozen=True)
class _Line:
    """The positions of one dim that a slice takes: `first`, in steps of `step` before `end`. Going backwards the end lies below, and is -1
    where the dim's beginning is taken."""

    first: Dim
    end: Dim
    step: int = 1


@dataclass(frozen=True)
class _Window:
    """What a term takes of `source`, along each dim."""

    source: Term
    lines: tuple[_Line, ...] = field(default=())


def _print_slice(term: Term, context: PrintContext) -> Input:
    parts = context.splits.get(term)
    return (_print_split(parts, context) if parts is not None else None) or _print_window(term, context)


def _print_window(term: Term, context: PrintContext) -> Input:
    """One Slice of what the slices and reversals below `term` are of, as far as their positions are seen to be in range."""
    window = _Window(term, tuple(_Line(0, dim) for dim in term.tensor.dims))
    order: dict[int, None] = {}  # dims, those first that are cut last: it is read again as slices one after the other
    for _ in range(_DEEPEST):
        part = window.source is not term and window.source in context.splits
        below = None if part or window.source.op.name not in _BELOW else _below(window, term.tensor.dims)
        if below is None:
            break
        order |= dict.fromkeys(_cut(window.source))
        window = below
    source = window.source
    cut = [axis for axis in reversed(order) if window.lines[axis] != _Line(0, source.tensor.dims[axis])]  # two reversals are none
    columns = [(*_ends(window.lines[axis], source.tensor.dims[axis]), axis, window.lines[axis].step) for axis in cut]
    if not columns:
        return source
    starts, ends, axes, steps = (list(column) for column in zip(*columns, strict=True))
    if context.reaches(10):
        strides = (vector(*steps),) if any(step != 1 for step in steps) else ()
        return NodeCall("Slice", (source, Numbers(tuple(starts)), Numbers(tuple(ends)), vector(*axes), *strides))
    if any(step != 1 for step in steps) or not all(isinstance(dim, int) for dim in (*starts, *ends)):
        raise NoOnnxForm("a slice with steps or symbolic ends needs version 10 of the ONNX operators", 10)
    return NodeCall("Slice", (source,), {"starts": tuple(starts), "ends": tuple(ends), "axes": tuple(axes)})


_BELOW = ("stablehlo.slice", "stablehlo.reverse")
_DEEPEST = 16  # slices and reversals that are written as one


def _cut(term: Term) -> list[int]:
    """The dims that a slice or reversal does not leave as they are."""
    if term.op.name == "stablehlo.reverse":
        return list(term.attribute("dimensions"))
    lines = [_Line(*line) for line in zip(term.attribute("start"), term.attribute("limit"), term.attribute("strides"), strict=True)]
    return [axis for axis, (line, dim) in enumerate(zip(lines, term.operands[0].tensor.dims, strict=True)) if line != _Line(0, dim)]


def _below(window: _Window, counts: Shape) -> _Window | None:
    """The window as one of the operand of its source; None where a position along a dim is not seen to be in range. `counts`: how many
    positions it takes along each dim."""
    lines = [_moved(line, window.source, axis, count) for axis, (line, count) in enumerate(zip(window.lines, counts, strict=True))]
    known = tuple(line for line in lines if line is not None)
    return _Window(window.source.operands[0], known) if len(known) == len(lines) else None


def _moved(line: _Line, term: Term, axis: int, count: Dim) -> _Line | None:
    """Positions along a dim of `term`, a slice or reversal, as positions of its operand."""
    inner, dim = term.tensor.dims[axis], term.operands[0].tensor.dims[axis]
    if term.op.name == "stablehlo.reverse":
        if axis not in term.attribute("dimensions"):
            return line
        moved = _reversed(line, dim)
    else:
        given = _Line(term.attribute("start")[axis], term.attribute("limit")[axis], term.attribute("strides")[axis])
        if given == _Line(0, dim):
            return line
        moved = given if line == _Line(0, inner) else _taken(line, given)
    return moved if line == _Line(0, inner) or _in_range(moved, dim, count) else None


def _reversed(line: _Line, dim: Dim) -> _Line:
    """The positions counted from the other end of a dim."""
    return _Line(_add(dim, -1, _times(-1, line.first)), _add(dim, -1, _times(-1, line.end)), -line.step)


def _taken(line: _Line, given: _Line) -> _Line:
    """Positions among those of a slice, as positions of what it is a slice of."""
    side = 1 if line.step > 0 else -1
    end = _add(given.first, _times(given.step, _add(line.end, -side)), side)
    return _Line(_add(given.first, _times(given.step, line.first)), end, given.step * line.step)


def _in_range(line: _Line, dim: Dim, count: Dim) -> bool:
    """True where there is a position, and its ends are numbers or so far from the dim's end: what ONNX takes for something else where
    they are below 0 cannot be."""
    ends = (_from_end(line.first, dim), _from_end(line.end, dim))
    return isinstance(count, int) and count > 0 and all(isinstance(end, int) for end in ends)


def _ends(line: _Line, dim: Dim) -> tuple[Dim, Dim]:
    """The operands of ONNX's Slice for a dim."""
    if line.step < 0:
        return _from_end(line.first, dim), _FIRST if line.end == -1 else _from_end(line.end, dim)
    end = _without(line.end, line.first)
    return _clamped(line.first, dim), _LAST if end == dim else _clamped(end, dim)


def _without(end: Dim, first: Dim) -> Dim:
    """The end of a slice as it is before one below the beginning is moved there: nothing is taken in both cases."""
    call = _call("max", end)
    return next((arg for arg in call if arg != first), end) if first in call else end


def _clamped(position: Dim, dim: Dim) -> Dim:
    """A position as a number that Slice moves into the dim itself, where it is one."""
    smaller, larger = _call("min", position), _call("max", position)
    if dim in smaller:
        number = next((arg for arg in smaller if arg != dim), dim)
        lowest = least(number)
        return position if lowest is None or lowest < 0 else number
    if 0 in larger:
        number = _from_end(next((arg for arg in larger if arg != 0), 0), dim)
        return number if isinstance(number, int) and number < 0 else position
    return _from_end(position, dim)


def _call(name: str, dim: Dim) -> tuple[Dim, ...]:
    """The arguments, where `dim` is a call of `name` and nothing else."""
    if not isinstance(dim, Poly) or len(dim.terms) != 1:
        return ()
    ((monomial, coefficient),) = dim.terms
    return monomial[0].args if coefficient == 1 and len(monomial) == 1 and monomial[0].name == name else ()


def _from_end(position: Dim, dim: Dim) -> Dim:
    """A symbolic position as a negative number where it is one."""
    difference = dims.subtract(position, dim)
    return difference if isinstance(difference, int) and difference < 0 and not isinstance(position, int) else position


def _add(*parts: Dim) -> Dim:
    total: Dim = 0
    for part in parts:
        total = dims.add(total, part)
    return total


def _times(factor: int, dim: Dim) -> Dim:
    return dims.multiply(factor, dim)


PRINTERS: dict[str, Printer] = {"stablehlo.slice": _print_slice, "stablehlo.reverse": _print_window}
