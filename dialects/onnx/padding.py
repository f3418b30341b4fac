"""ONNX's Pad in all its modes, and Tile."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from coset.dialects.hub.terms import broadcast, reshape
from coset.dialects.onnx.arithmetic import take
from coset.dialects.onnx.bounds import least
from coset.dialects.onnx.moves import axes_of_pad
from coset.dialects.onnx.node import Built, Node, axis_of, definition
from coset.dialects.onnx.sugar import sugar, sugar_builders
from coset.ir import dims
from coset.ir.dims import Dim
from coset.ir.errors import require
from coset.ir.term import Term, make

RULES = sugar_builders(Path(__file__).with_name("padding.rules"))


@definition("Pad")
def _pad(node: Node) -> Built:
    """`constant` is the hub's pad; `edge` repeats the ends, `reflect` mirrors at them, `wrap` goes round. Negative numbers crop first."""
    x, mode = node.operands[0], node.attributes.get("mode", "constant")
    if mode == "constant":
        return None  # as it is built on import
    axes, pads = axes_of_pad(node, x.tensor.rank), node.attributes.get("pads", node.ints(1))
    if mode not in _MODES or axes is None or pads is None or len(pads) != 2 * len(axes) or node.since < 2:
        return None
    for position, axis in enumerate(axes):
        low, high = pads[position], pads[position + len(axes)]
        x = take(x, axis, max(-low, 0), dims.subtract(x.tensor.dims[axis], max(-high, 0)))
        if low > 0 or high > 0:
            require(x.tensor.dims[axis] != 0, f"mode `{mode}` cannot pad dim {axis} of {x.type}: it is empty")
            x = _MODES[mode](x, axis, max(low, 0), max(high, 0))
    return x


def _edge(x: Term, axis: int, low: int, high: int) -> Term:
    """The first element `low` times before, the last one `high` times after."""
    dim = x.tensor.dims[axis]
    ends = ((take(x, axis, 0, 1), low), (take(x, axis, dims.subtract(dim, 1), dim), high))
    before, after = (_repeated(end, axis, count) for end, count in ends)
    return _joined([before, x, after], axis)


def _reflect(x: Term, axis: int, low: int, high: int) -> Term:
    """Mirrored at the ends, which are not doubled: a period is x and its inner elements from the last to the first."""
    dim = x.tensor.dims[axis]
    if not isinstance(dim, int):  # that it is longer than the padding cannot be seen: the slices fail if it is not
        before = _reversed(take(x, axis, 1, low + 1), axis)
        after = _reversed(take(x, axis, dims.subtract(dim, high + 1), dims.subtract(dim, 1)), axis)
        return _joined([before, x, after], axis)
    period = x if dim <= 2 else _joined([x, _reversed(take(x, axis, 1, dim - 1), axis)], axis)
    return _cut(period, axis, low, dim + high)


def _wrap(x: Term, axis: int, low: int, high: int) -> Term:
    """Again and again."""
    dim = x.tensor.dims[axis]
    if not isinstance(dim, int):
        return _joined([take(x, axis, dims.subtract(dim, low), dim), x, take(x, axis, 0, high)], axis)
    return _cut(x, axis, low, dim + high)


_MODES: dict[str, Callable[[Term, int, int, int], Term]] = {"edge": _edge, "reflect": _reflect, "wrap": _wrap}


def _cut(period: Term, axis: int, low: int, high: int) -> Term:
    """The elements -low .. high - 1 of the endless repetition of `period`."""
    length = period.tensor.dims[axis]
    assert isinstance(length, int)
    start = -low % length
    whole = _repeated(period, axis, -(-(start + low + high) // length))
    return take(whole, axis, start, start + low + high)


def _joined(parts: list[Term], axis: int) -> Term:
    return make("stablehlo.concatenate", [part for part in parts if part.tensor.dims[axis] != 0], {"dimension": axis})


def _reversed(x: Term, axis: int) -> Term:
    return make("stablehlo.reverse", (x,), {"dimensions": (axis,)})


def _repeated(x: Term, axis: int, count: Dim) -> Term:
    """`x` so many times one after the other along `axis`."""
    shape = x.tensor.dims
    if count == 1:
        return x
    spread = (*shape[:axis], count, *shape[axis:])
    apart = broadcast(x, spread, tuple(i for i in range(len(spread)) if i != axis))
    return reshape(apart, (*shape[:axis], dims.multiply(count, shape[axis]), *shape[axis + 1 :]))


@definition("Tile")
def _tile(node: Node) -> Built:
    """Each dim repeated; before version 6 one dim, which the third operand says."""
    x, repeats = node.operands[0], node.dims(1)
    if repeats is None or any((least(count) or 0) < 0 for count in repeats):
        return None
    if node.since < 6:
        axes = node.ints(2)
        axis = axis_of(axes[0], x.tensor.rank) if axes else None
        return None if axis is None else _repeated(x, axis, repeats[0])
    return sugar(node)
