"""Long reductions in two steps: where few rows are very long, each is folded in parts, so that the whole machine works on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from coset.dialects.hub_tensors import identity
from coset.dialects.hub_terms import broadcast, convert, reshape
from coset.ir.dims import add, evaluate, floordiv, multiply, product, subtract
from coset.ir.term import Term, constant, make, rewritten
from coset.ir.types import F32
from coset.lowering.kinds import Limits, is_fold

PARTS = 512  # rows and parts together: some programs for each of a GPU's processors


def split(roots: Iterable[Term], limits: Limits, binding: Mapping[str, int]) -> tuple[Term, ...]:
    """`roots` with each reduction of few long rows as one over parts of rows and one over the parts. Which these are is said by the sizes,
    with typical numbers of dim symbols from `binding`; the result holds for all. Sums of floats are rounded in another order; between the
    steps they are f32."""
    return rewritten(roots, lambda term: _split(term, limits, binding) if is_fold(term) else term)


def _split(term: Term, limits: Limits, binding: Mapping[str, int]) -> Term:
    x, axes = term.operands[0], term.attribute("dimensions")
    shape = x.tensor.dims
    sizes = [evaluate(dim, binding) for dim in shape]
    if 0 in sizes:
        return term
    rows = evaluate(product(dim for axis, dim in enumerate(shape) if axis not in axes), binding)
    columns = evaluate(product(shape[axis] for axis in axes), binding)
    if rows > limits.few_rows or columns < limits.long_row:
        return term
    axis = max(axes, key=lambda axis: sizes[axis])
    parts = _parts(sizes[axis], max(2, PARTS // rows))
    if parts == columns:
        return term  # nothing would be left to fold in a part
    length = floordiv(add(shape[axis], parts - 1), parts)
    dtype, combiner = term.tensor.dtype, term.attribute("combiner")
    if dtype.kind == "float" and dtype.bits < 32:
        x = convert(x, F32)
    missing = subtract(multiply(parts, length), shape[axis])
    if missing != 0:
        edge = constant(identity(combiner, x.tensor.dtype), x.tensor.dtype)
        rest = broadcast(edge, (*shape[:axis], missing, *shape[axis + 1 :]), ())
        x = make("stablehlo.concatenate", (x, rest), {"dimension": axis})
    folded = reshape(x, (*shape[:axis], parts, length, *shape[axis + 1 :]))
    inner = tuple(place + (place >= axis) for place in axes)  # the dim of parts stays
    first = make("stablehlo.reduce", (folded,), {"dimensions": inner, "combiner": combiner})
    place = axis - sum(1 for other in axes if other < axis)
    return convert(make("stablehlo.reduce", (first,), {"dimensions": (place,), "combiner": combiner}), dtype)


def _parts(length: int, wanted: int) -> int:
    """A number of parts near `wanted`, one that divides the length where there is one between a half and twice that."""
    if length <= wanted:
        return length
    dividing = [parts for parts in range(max(2, wanted // 2), 2 * wanted + 1) if length % parts == 0]
    return min(dividing, key=lambda parts: abs(parts - wanted)) if dividing else wanted
