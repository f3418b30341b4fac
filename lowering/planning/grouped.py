"""Products of groups of rows as one kernel: rows are put in the order of their groups once, and each tile has rows of one group, whose
matrix it reads once. Between the products of one grouping, what is done row by row stays in that order.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from coset.dialects.hub.terms import convert, splat
from coset.dialects.onnx import arithmetic as a
from coset.dialects.onnx.selection import ordered, take
from coset.ir.dims import Dim
from coset.ir.term import Term, make, rebuild, rewritten, topological
from coset.ir.types import I32, I64
from coset.lowering.planning.group import GROUPED, loops_over
from coset.lowering.planning.picking import PICKED

if TYPE_CHECKING:
    from coset.lowering.planning.grouping import Grouper

KEPT = "kernel.grouped_product"
MOST = 1024  # groups that every tile looks through
FLOATS = frozenset({"f16", "bf16", "f32", "f64"})
_LAST = (1 << 31) - 1


def is_grouped(term: Term) -> bool:
    """True for a call of `kernel.grouped_product` that a kernel computes."""
    if term.op.name != KEPT:
        return False
    x, w, _ = (operand.tensor for operand in term.operands)
    groups = w.dims[0]
    return x.dtype.name in FLOATS and isinstance(groups, int) and 0 < groups <= MOST and 0 not in (*x.dims, *w.dims)


def by_groups(roots: Iterable[Term]) -> tuple[Term, ...]:
    """`roots` with the rows of each grouped product in the order of its groups."""
    orders: dict[tuple[Term, int], _Order] = {}

    def ordered(term: Term) -> Term:
        if not is_grouped(term):
            return term
        x, w, group = term.operands
        count = w.tensor.dims[0]
        assert isinstance(count, int)
        if (group, count) not in orders:
            orders[group, count] = _Order(group, count, ascending=term.attribute("ascending"))
        return orders[group, count].product(x, w)

    return rewritten(roots, ordered)


class _Order:
    """The rows in the order of `group`, of `count` groups: which row stands where, and the terms that are made in that order."""

    def __init__(self, group: Term, count: int, *, ascending: bool) -> None:
        rows = group.tensor.dims[0]
        kind = I32 if isinstance(rows, int) and rows <= _LAST else I64
        keys = convert(a.clamp(group, 0, min(count - 1, _most(group))), I32)
        self.there: Term | None = None  # the row that stands at each place
        self.keys = keys
        if not ascending and rows != 1:
            self.keys, self.there = ordered((keys, a.iota((rows,), 0, kind)))
            zero = splat(0, kind, (rows,))
            # each place is there once, so that adding is putting, in any order
            self.places = make("stablehlo.scatter", (zero, self.there, a.iota((rows,), 0, kind)), _PUT)
        self.made: dict[Term, Term] = {}  # a term over rows -> the same in this order

    def product(self, x: Term, w: Term) -> Term:
        """The product, back in the rows' own order."""
        found = make(KEPT, (self.inside(x), w, self.keys), {"ascending": True})
        if self.there is None:
            return found
        result = take(found, self.places, 0)
        self.made[result] = found
        return result

    def inside(self, x: Term) -> Term:
        """`x` with its rows in this order: what was computed from rows in this order, element by element, is computed in it."""
        if self.there is None:
            return x
        above = self._above(x)
        for term in above:
            if term not in self.made:
                self.made[term] = rebuild(term, [self._moved(operand) for operand in term.operands])
        return self.made[x] if x in self.made else take(x, self.there, 0)

    def _moved(self, x: Term) -> Term:
        """An operand of a term in this order."""
        assert self.there is not None
        same = x.op.name == "stablehlo.broadcast_in_dim" and 0 not in x.attribute("broadcast_dimensions")
        return x if same else self.made.get(x) or take(x, self.there, 0)

    def _above(self, x: Term) -> list[Term]:
        """The elementwise terms under `x` that are made from terms in this order, operands before users."""
        found: list[Term] = []
        known: set[Term] = set(self.made)
        for term in topological([x], known=set(self.made)):
            if term.op.has("elementwise") and any(operand in known for operand in term.operands) and _is_by_rows(term):
                known.add(term)
                found.append(term)
        return found


def _is_by_rows(term: Term) -> bool:
    """True for a term whose operands are all over its rows."""
    return bool(term.tensor.rank) and all(operand.tensor.dims == term.tensor.dims for operand in term.operands)


def _most(group: Term) -> int:
    dtype = group.tensor.dtype
    return int((1 << (dtype.bits - (dtype.kind == "int"))) - 1)


_PUT = {
    "update_window_dims": (), "inserted_window_dims": (0,), "input_batching_dims": (), "scatter_indices_batching_dims": (),
    "scatter_dims_to_operand_dims": (0,), "index_vector_dim": 1, "combiner": "add",
}  # fmt: skip


def place_grouped(walk: Grouper, term: Term) -> None:
    """Begin a kernel with a grouped product. Rows that are taken from elsewhere are read there."""
    x, w, keys = term.operands
    rows, depth = x.tensor.dims
    columns = w.tensor.dims[2]
    read = x.operands[0] if x.op.name in PICKED and x in walk.weight else x
    walk.store_operands((read, w), (_across(columns), _across(rows)))
    if keys in walk.weight:  # they are searched in memory
        walk.found.required.add(keys)
        if keys not in walk.home:
            walk.pointwise(keys)
    group = walk.open(GROUPED, term)
    each, m, n, k = (loops_over(group, role, (dim,)) for role, dim in zip("bmnk", (w.tensor.dims[0], rows, columns, depth), strict=True))
    group.heavy.append(term)
    group.reads[term] = ((*m, *k), (*each, *k, *n), m)
    walk.add(group, term, (*m, *n))


def _across(dim: Dim) -> tuple[Dim]:
    return (dim,)
