"""ONNX's Det: Gaussian elimination with the largest pivot of each column, as a loop over the columns."""

from __future__ import annotations

from collections.abc import Sequence

from coset.dialects.hub.terms import convert, reshape, splat
from coset.dialects.onnx import arithmetic as a
from coset.dialects.onnx.loops import scan
from coset.dialects.onnx.node import Built, Node, definition
from coset.ir import dims
from coset.ir.term import Term, make
from coset.ir.types import F32, F64, I32


@definition("Det")
def _determinant(node: Node) -> Built:
    """The product of the pivots, with the sign of the exchanges of rows; 1 for a matrix without rows. In f32 or wider."""
    x = node.operands[0]
    if x.tensor.rank < 2:
        return None
    size, lead = x.tensor.dims[-2], x.tensor.dims[:-2]
    wide = convert(a.sized(x, x.tensor.rank - 1, size), F64 if x.tensor.dtype is F64 else F32)
    batch = dims.product(lead)
    start = [reshape(wide, (batch, size, size)), splat(1, wide.tensor.dtype, (batch, 1))]
    (_, product), _ = scan(_eliminated, start, [], [], size)
    return convert(reshape(product, lead), x.tensor.dtype)


def _eliminated(index: Term, carried: Sequence[Term], _: Sequence[Term], __: Sequence[Term]) -> tuple[list[Term], list[Term]]:
    """Column `index` of the matrices [b, n, n] below the diagonal made 0, and the products [b, 1] times the pivots.

    A column without a pivot other than 0 is left: the product is 0 then. NaN in a column makes the product NaN.
    """
    matrix, product = carried
    batch, size = matrix.tensor.dims[:2]
    zero = splat(0, I32, ())
    rows = a.iota((batch, size), 1, I32)
    column = _column(matrix, index)
    magnitude = a.select(a.compare(rows, "GE", index), a.absolute(column), -1.0)
    largest = a.fold(magnitude, (1,), "maximum")
    place = a.fold(a.select(a.compare(magnitude, "EQ", largest), rows, size), (1,), "minimum")
    chosen, own = a.compare(rows, "EQ", place), a.compare(rows, "EQ", index)
    pivot_row = a.fold(a.select(a.unsqueeze(chosen, 2), matrix, 0.0), (1,))
    own_row = make("stablehlo.dynamic_slice", (matrix, zero, index, zero), {"slice_sizes": (batch, 1, size)})
    exchanged = a.select(a.unsqueeze(own, 2), pivot_row, a.select(a.unsqueeze(chosen, 2), own_row, matrix))
    found = a.fold(a.select(chosen, column, 0.0), (1,))
    pivot = a.select(a.compare(largest, "EQ", largest), found, largest)
    cleared = a.both(a.compare(rows, "GT", index), a.compare(pivot, "NE", 0.0))
    share = a.select(cleared, a.divide(_column(exchanged, index), pivot), 0.0)
    signed = a.select(a.compare(place, "EQ", index), pivot, a.negate(pivot))
    return [a.subtract(exchanged, a.multiply(a.unsqueeze(share, 2), pivot_row)), a.multiply(product, signed)], []


def _column(matrix: Term, index: Term) -> Term:
    """[b, n]: column `index` of each matrix."""
    batch, size = matrix.tensor.dims[:2]
    zero = splat(0, I32, ())
    cut = make("stablehlo.dynamic_slice", (matrix, zero, zero, index), {"slice_sizes": (batch, size, 1)})
    return reshape(cut, (batch, size))
