"""Scatter as a kernel: each row of the result goes over the updates that hit it, in their order; what that asks of a term.

The kernel takes a scatter by rows: one index for each update, which is the number of a row along the first dim, and whole rows as updates.
`scatter_rows` brings others to that form.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coset.ir.term import Term
from coset.ir.types import TupleType
from coset.lowering.kernels.kernel import ATOMIC, LOOP, SORTED
from coset.lowering.planning.group import SCATTER, loops_over

if TYPE_CHECKING:
    from coset.lowering.planning.grouping import Grouper
    from coset.lowering.planning.kinds import KernelLimits

FEW = 32  # updates that are looked at for every row
COMBINERS = frozenset({"add", "multiply", "maximum", "minimum", "and", "or", "second"})
_IN_ANY_ORDER = frozenset({"add", "maximum", "minimum", "and", "or"})  # of integers; the others have no atomic instruction


def is_by_rows(term: Term) -> bool:
    """True for a scatter of whole rows at the places that a vector of signed integers names."""
    if term.op.name != "stablehlo.scatter" or isinstance(term.type, TupleType) or term.attribute("combiner") not in COMBINERS:
        return False
    x, keys, updates = (operand.tensor for operand in term.operands)
    rows = (term.attribute("inserted_window_dims"), term.attribute("scatter_dims_to_operand_dims"), term.attribute("input_batching_dims"))
    if rows != ((0,), (0,), ()) or keys.rank != 1 or keys.dtype.name not in ("i32", "i64"):
        return False
    return term.attribute("update_window_dims") == tuple(range(1, x.rank)) and updates.dims[1:] == x.dims[1:] and 0 not in x.dims


def is_unordered(term: Term, limits: KernelLimits) -> bool:
    """True where the updates may be combined into memory in any order: a sum of floats only where two runs may differ."""
    dtype, combiner = term.tensor.dtype, term.attribute("combiner")
    if dtype.bits not in (32, 64):
        return False
    return combiner in _IN_ANY_ORDER if dtype.kind in ("int", "uint") else limits.atomics and combiner == "add" and dtype.kind == "float"


def form_of(term: Term, limits: KernelLimits) -> str:
    """How the kernel of a scatter by rows finds the updates of a row."""
    if term.attribute("indices_are_sorted"):
        return SORTED
    count = term.operands[1].tensor.dims[0]
    few = isinstance(count, int) and count <= FEW
    return ATOMIC if not few and is_unordered(term, limits) else LOOP


def place_scatter(walk: Grouper, term: Term) -> None:
    """Begin a kernel with a scatter by rows: it takes in what its operand is computed from. Updates and keys are computed where they are
    read."""
    _, keys, updates = term.operands
    form = form_of(term, walk.limits)
    if form == SORTED and keys in walk.weight:  # the bisection reads them in memory
        walk.found.required.add(keys)
        if keys not in walk.home:
            walk.pointwise(keys)
    group = walk.open(SCATTER, term)
    group.form = form
    row, columns = (loops_over(group, role, shape) for role, shape in (("r", term.tensor.dims[:1]), ("c", term.tensor.dims[1:])))
    update = loops_over(group, "s", updates.tensor.dims[:1])
    group.heavy.append(term)
    group.reads[term] = ((*row, *columns), update, (*update, *columns))
    walk.add(group, term, (*row, *columns))
    walk.adopt(group, term, (*row, *columns))
