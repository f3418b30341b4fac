"""Sorts as kernels: a program holds whole rows and sorts them, so that rows have to be short. Where only the first elements of each are
asked for, the others are dropped on the way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from coset.dialects.hub_terms import transpose
from coset.ir.term import GET, Term, get, make, rebuild, topological
from coset.ir.types import TensorType, TupleType
from coset.lowering.group import SORT, Group, loops_over

if TYPE_CHECKING:
    from coset.lowering.grouping import Grouper

FIRST = "kernel.first_sorted"
LONGEST = 4096  # elements of a row that one program sorts
LONGEST_WIDE = 1024  # of rows whose keys have 64 bits: they are sorted by halves, one after the other
DIRECTIONS = frozenset({"LT", "GT", "LE", "GE"})


def sorts_rows(term: Term) -> bool:
    """True for a sort, or its first elements, by a direction along rows that one program holds; the elements may be of any kind."""
    if term.op.name not in ("stablehlo.sort", FIRST) or term.attribute("direction") not in DIRECTIONS:
        return False
    key = term.operands[0].tensor
    length = key.dims[_axis(term)] if key.rank else 1
    longest = LONGEST_WIDE if key.dtype.bits == 64 else LONGEST
    return isinstance(length, int) and 2 <= length <= longest and 0 not in key.dims and (term.op.name != FIRST or term.attribute("k") > 0)


def too_long(term: Term) -> str:
    """Why a sort is none of a kernel though its elements would be; empty where that is not it."""
    if term.op.name != "stablehlo.sort" or term.attribute("direction") not in DIRECTIONS or not term.operands[0].tensor.rank:
        return ""
    key = term.operands[0].tensor
    length, longest = key.dims[_axis(term)], LONGEST_WIDE if key.dtype.bits == 64 else LONGEST
    if isinstance(length, int) and length <= longest:
        return ""
    return f"rows of {length} elements of {key.dtype.bits} bits are sorted by torch: one program holds {longest}"


def _axis(term: Term) -> int:
    return int(term.attribute("dimension")) if term.op.name == "stablehlo.sort" else term.operands[0].tensor.rank - 1


# ---------------------------------------------------------------- the first elements alone


def first_sorted(roots: Sequence[Term]) -> tuple[Term, ...]:
    """`roots` with each sort of two operands, of whose results only the first elements are used, as one that gives these alone."""
    order = list(topological(roots))
    users: dict[Term, list[Term]] = {}
    for term in order:
        for operand in term.operands:
            users.setdefault(operand, []).append(term)
    counts = {term: count for term in order if sorts_rows(term) and (count := _count(term, users, set(roots)))}
    done: dict[Term, Term] = {}
    for term in order:
        current = rebuild(term, [done[operand] for operand in term.operands])
        if term.op.name == "stablehlo.slice" and term.operands[0].op is GET and term.operands[0].operands[0] in counts:
            part = term.operands[0]
            current = _first(done[part.operands[0]], counts[part.operands[0]], part.attribute("index"))
        done[term] = current
    return tuple(done[root] for root in roots)


def _count(term: Term, users: dict[Term, list[Term]], roots: set[Term]) -> int:
    """How many elements of each row are used; 0 where more than half are, or it is not known."""
    if len(term.operands) != 2 or term.op.name == FIRST or term in roots:
        return 0
    parts = users.get(term, [])
    slices = [each for part in parts for each in users.get(part, [])]
    plain = all(part.op is GET and part not in roots for part in parts)
    if not plain or not slices or any(each.op.name != "stablehlo.slice" for each in slices):
        return 0
    axis, shape = _axis(term), term.operands[0].tensor.dims
    count, length = slices[0].attribute("limit")[axis], shape[axis]
    assert isinstance(length, int)
    limit = tuple(count if at == axis else dim for at, dim in enumerate(shape))
    wanted = ((0,) * len(shape), limit, (1,) * len(shape))
    alike = all(tuple(each.attribute(key) for key in ("start", "limit", "strides")) == wanted for each in slices)
    return count if alike and isinstance(count, int) and 0 < count <= length // 2 else 0


def _first(whole: Term, count: int, index: int) -> Term:
    """The first elements of result `index` of the sort `whole`."""
    axis, rank = whole.attribute("dimension"), whole.operands[0].tensor.rank
    order = (*(at for at in range(rank) if at != axis), axis)
    operands = [transpose(operand, order) for operand in whole.operands]
    attributes = {"k": count, "direction": whole.attribute("direction"), "total": whole.attribute("total")}
    back = tuple(order.index(at) for at in range(rank))
    return transpose(get(make(FIRST, operands, attributes), index), back)


# ---------------------------------------------------------------- a kernel's terms


def place_sort(walk: Grouper, term: Term) -> None:
    """Begin a kernel with a sort; what its operands are computed from is computed where they are read."""
    group = walk.open(SORT, term)
    axis, shape = _axis(term), term.operands[0].tensor.dims
    count = term.attribute("k") if term.op.name == FIRST else shape[axis]
    rows = loops_over(group, "i", tuple(dim for at, dim in enumerate(shape) if at != axis))
    column, front = loops_over(group, "c", shape[axis : axis + 1]), loops_over(group, "f", (count,))
    read, result = ((*rows[:axis], *along, *rows[axis:]) for along in (column, front))
    group.heavy.append(term)
    group.reads[term] = tuple(read for _ in term.operands)
    walk.add(group, term, result)


def results_of(whole: Term, group: Group) -> dict[Term, str]:
    """The names of a sort's results in its kernel, by their terms."""
    if isinstance(whole.type, TensorType):
        return {whole: "sorted0"}
    assert isinstance(whole.type, TupleType)
    return {term: f"sorted{term.attribute('index')}" for term in group.at if term.op is GET and term.operands[0] is whole}
