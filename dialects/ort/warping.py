"""com.microsoft.DynamicTimeWarping: the cheapest path through a matrix of costs, by dynamic programming and its trace."""

from __future__ import annotations

from collections.abc import Sequence

from coset.dialects.hub.terms import convert, reshape, splat, transpose
from coset.dialects.onnx import arithmetic as a
from coset.dialects.onnx.loops import element, placed, scan
from coset.dialects.onnx.node import Built, Node
from coset.dialects.onnx.selection import front, take
from coset.dialects.ort.nodes import contrib
from coset.ir import dims
from coset.ir.errors import require
from coset.ir.term import Term
from coset.ir.types import F32, I32, I64


@contrib("DynamicTimeWarping")
def _warping(node: Node) -> Built:
    """The rows and columns of the cells from the first to the last one; each step goes one down, one to the right, or both.

    The last, and then the first, is taken only where it is cheaper than both others; else the step goes to the right.
    """
    x = node.operands[0]
    require(x.tensor.rank in (2, 3), f"{node.name} takes one matrix, not {x.type}")
    *lead, rows, columns = x.tensor.dims
    require(lead in ([], [1]) and isinstance(rows, int) and isinstance(columns, int), f"{node.name} takes one matrix, not {x.type}")
    assert isinstance(rows, int) and isinstance(columns, int)
    require(rows > 0 and columns > 0, f"{node.name} takes a matrix with cells, not {x.type}")
    cells = reshape(transpose(reshape(x, (rows, columns)), (1, 0)), (rows * columns,))
    trace = _trace(cells, rows, columns)
    length = rows + columns - 1

    def step(_: Term, place: Sequence[Term], __: Sequence[Term], captured: Sequence[Term]) -> tuple[list[Term], list[Term]]:
        row, column = place
        on_way = a.both(a.compare(row, "GE", 0), a.compare(column, "GE", 0))
        kind = element(captured[0], a.maximum(a.add(a.multiply(column, rows), row), 0))
        up, left = (a.both(on_way, a.compare(kind, "NE", other)) for other in (_RIGHT, _DOWN))
        moved = [a.subtract(row, convert(up, I32)), a.subtract(column, convert(left, I32))]
        return moved, [row, column, on_way]

    start = [splat(rows - 1, I32, ()), splat(columns - 1, I32, ())]
    _, (down, right, on_way) = scan(step, start, [], [trace], length, stacked=(True, True, True))
    count = a.fold(convert(on_way, I64), (0,), keep=False)
    numbers = front(a.iota((length,), 0), reshape(count, (1,)), dims.symbol("count"))
    places = a.add(numbers, a.subtract(a.counted(length, I64), count))
    return a.concatenate([a.unsqueeze(take(path, places, 0), 0) for path in (down, right)], 0)


_BOTH, _DOWN, _RIGHT = 0, 1, 2  # the step that leads to a cell


def _trace(cells: Term, rows: int, columns: int) -> Term:
    """The step that leads to each cell on its cheapest path, column by column."""
    wide = columns + 1
    costs = splat(a.INFINITY, F32, ((rows + 1) * wide,))
    costs = placed(costs, splat(0, F32, ()), splat(0, I32, ()))

    def step(index: Term, carried: Sequence[Term], cell: Sequence[Term], _: Sequence[Term]) -> tuple[list[Term], list[Term]]:
        (known,) = carried
        row, column = a.pointwise("remainder", index, rows), a.divide(index, rows)
        corner = a.add(a.multiply(row, wide), column)
        both, down, right = (element(known, a.add(corner, offset)) for offset in (0, 1, wide))
        is_both = a.both(a.compare(both, "LT", down), a.compare(both, "LT", right))
        is_down = a.both(a.compare(down, "LT", both), a.compare(down, "LT", right))
        kind = a.select(is_both, _BOTH, a.select(is_down, _DOWN, _RIGHT, dtype=I32))
        cost = a.add(a.select(is_both, both, a.select(is_down, down, right)), cell[0])
        return [placed(known, cost, a.add(corner, wide + 1))], [kind]

    _, (trace,) = scan(step, [costs], [cells], [], rows * columns)
    return trace
