"""Sorts as kernels: a program holds whole rows and sorts them, so that rows have to be short. Where only the first elements of each are
asked for, the others are dropped on the way, and longer rows are gone over in parts first: what is among the first of a row is among the
first of its part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from coset.dialects.hub.scalars import cast
from coset.dialects.hub.tensors import identity
from coset.dialects.hub.terms import reshape, splat, transpose
from coset.ir.term import GET, Term, get, make, rebuild, topological
from coset.ir.types import DType, TensorType, TupleType
from coset.lowering.planning.group import SORT, KernelGroup, loops_over

if TYPE_CHECKING:
    from coset.lowering.planning.grouping import Grouper

FIRST = "kernel.first_sorted"
LONGEST = 4096  # elements of a row that one program sorts
LONGEST_WIDE = 1024  # of rows whose keys have 64 bits: they are sorted by halves, one after the other
DIRECTIONS = frozenset({"LT", "GT", "LE", "GE"})


def sorts_rows(term: Term) -> bool:
    """True for a sort, or its first elements, by a direction along rows that one program holds; the elements may be of any kind."""
    if not _is_directed(term):
        return False
    key = term.operands[0].tensor
    length = key.dims[_axis(term)] if key.rank else 1
    short = isinstance(length, int) and 2 <= length <= longest(key.dtype)
    return short and 0 not in key.dims and (term.op.name != FIRST or term.attribute("k") > 0)


def _is_directed(term: Term) -> bool:
    return term.op.name in ("stablehlo.sort", FIRST) and term.attribute("direction") in DIRECTIONS


def longest(dtype: DType) -> int:
    """The elements of a row that one program sorts by keys of this type."""
    return LONGEST_WIDE if dtype.bits == 64 else LONGEST


def too_long(term: Term) -> str:
    """Why a sort is none of a kernel though its elements would be; empty where that is not it."""
    if term.op.name != "stablehlo.sort" or term.attribute("direction") not in DIRECTIONS or not term.operands[0].tensor.rank:
        return ""
    key = term.operands[0].tensor
    length, most = key.dims[_axis(term)], longest(key.dtype)
    if isinstance(length, int) and length <= most:
        return ""
    return f"rows of {length} elements of {key.dtype.bits} bits are sorted by torch: one program holds {most}"


def _axis(term: Term) -> int:
    return int(term.attribute("dimension")) if term.op.name == "stablehlo.sort" else term.operands[0].tensor.rank - 1


# ---------------------------------------------------------------- the first elements alone


def first_sorted(roots: Sequence[Term], plain: Callable[[TensorType], bool]) -> tuple[Term, ...]:
    """`roots` with each sort of two `plain` operands, of whose results only the first elements are used, as one that gives these alone."""
    order = list(topological(roots))
    users: dict[Term, list[Term]] = {}
    for term in order:
        for operand in term.operands:
            users.setdefault(operand, []).append(term)
    ends = set(roots)
    sorts = [term for term in order if _is_directed(term) and all(plain(operand.tensor) for operand in term.operands)]
    counts = {term: count for term in sorts if (count := _count(term, users, ends))}
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
    limit = tuple(count if at == axis else dim for at, dim in enumerate(shape))
    wanted = ((0,) * len(shape), limit, (1,) * len(shape))
    alike = all(tuple(each.attribute(key) for key in ("start", "limit", "strides")) == wanted for each in slices)
    if not alike or not isinstance(count, int) or not isinstance(length, int) or not 0 < count <= length // 2:
        return 0
    return count if sorts_rows(term) or _parts(term, count) else 0


def _parts(term: Term, count: int) -> int:
    """In how many parts a longer row is gone over, from which so many first elements come; 0 where that is no way."""
    key = term.operands[0].tensor
    length, most = key.dims[_axis(term)], longest(key.dtype)
    plain = term.attribute("direction") in ("LT", "GT") and not term.attribute("total") and key.dtype.kind in ("float", "int", "uint")
    if not plain or not isinstance(length, int) or 0 in key.dims:
        return 0
    parts = -(-length // most)
    return parts if parts > 1 and parts * count <= most else 0


def _first(whole: Term, count: int, index: int) -> Term:
    """The first elements of result `index` of the sort `whole`."""
    axis, rank = whole.attribute("dimension"), whole.operands[0].tensor.rank
    order = (*(at for at in range(rank) if at != axis), axis)
    operands = [transpose(operand, order) for operand in whole.operands]
    attributes = {"k": count, "direction": whole.attribute("direction"), "total": whole.attribute("total")}
    if not sorts_rows(whole):
        operands = _of_parts(operands, _parts(whole, count), attributes)
    back = tuple(order.index(at) for at in range(rank))
    return transpose(get(make(FIRST, operands, attributes), index), back)


def _of_parts(operands: Sequence[Term], parts: int, attributes: dict[str, object]) -> list[Term]:
    """The first elements of each part of the rows, one part after the other: equal ones still stand in the order of their places. The last
    part is filled up with what comes last, behind all that is equal to it."""
    (*lead, length), count = operands[0].tensor.dims, attributes["k"]
    assert isinstance(length, int) and isinstance(count, int)
    size = -(-length // parts)
    found = []
    for place, operand in enumerate(operands):
        dtype = operand.tensor.dtype
        last = identity("minimum" if attributes["direction"] == "LT" else "maximum", dtype) if place == 0 else np.zeros((), dtype.numpy)
        if place == 0 and dtype.kind == "float" and attributes["direction"] == "LT":
            last = cast(np.asarray(np.nan), dtype)  # is above infinity
        if size * parts != length:
            rest = splat(last, dtype, (*lead, size * parts - length))
            operand = make("stablehlo.concatenate", (operand, rest), {"dimension": len(lead)})
        found.append(reshape(operand, (*lead, parts, size)))
    both = make(FIRST, found, attributes)
    return [reshape(get(both, index), (*lead, parts * count)) for index in (0, 1)]


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


def results_of(whole: Term, group: KernelGroup) -> dict[Term, str]:
    """The names of a sort's results in its kernel, by their terms."""
    if isinstance(whole.type, TensorType):
        return {whole: "sorted0"}
    assert isinstance(whole.type, TupleType)
    return {term: f"sorted{term.attribute('index')}" for term in group.at if term.op is GET and term.operands[0] is whole}
