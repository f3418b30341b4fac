"""Products that no matrix unit does: of f32 in full. A library multiplies them sooner than tiles of scalars whose operands come from shared
memory, where both operands lie as matrices; what stands before and behind is kernels of its own then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from coset.ir.term import Term
from coset.ir.types import F32
from coset.lowering.kinds import LEAVES, NOTHING, is_light, is_product

Libraries = Callable[[Term], bool]  # product -> a library does it
FRONT = 24  # terms in front of an operand that are looked at


def may_be_librarys(term: Term) -> bool:
    """True for a product of f32 in full whose operands are matrices of any batch: a library need not copy them. False where both may be
    made from narrower numbers: a kernel multiplies them as such."""
    if not is_product(term) or term.tensor.dtype is not F32 or not _are_matrices(term):
        return False
    return all(operand.tensor.dtype is F32 for operand in term.operands) and not all(map(_is_from_narrow, term.operands))


def is_made_behind(term: Term) -> bool:
    """True for an operand that is computed from what another kernel makes, behind it: so it is in memory anyway."""
    return any(each.op.name not in LEAVES and each.op.name not in NOTHING and not is_light(each) for each in _front(term))


def _are_matrices(term: Term) -> bool:
    """True where dims of the batch come first in both operands, and those that are summed lie side by side, in the same order, before or
    behind the others: each operand is a matrix, or one turned, as a view."""
    batch = len(term.attribute("lhs_batch"))
    first = tuple(range(batch))
    return all(
        term.attribute(f"{side}_batch") == first and _is_end(term.attribute(f"{side}_contract"), batch, operand.tensor.rank)
        for side, operand in zip(("lhs", "rhs"), term.operands, strict=True)
    )


def _is_end(axes: Sequence[int], low: int, high: int) -> bool:
    """True for axes that are the first or the last of those from `low` to before `high`, in order."""
    count = len(axes)
    return tuple(axes) in (tuple(range(low, low + count)), tuple(range(high - count, high)))


def _is_from_narrow(term: Term) -> bool:
    return any(each.tensor.dtype.kind == "float" and each.tensor.dtype.bits < F32.bits for each in _front(term))


def _front(term: Term) -> list[Term]:
    """What is computed in front of a product in its kernel, from what; not more than `FRONT` terms of it."""
    found, stack = dict[Term, None](), [term]
    while stack and len(found) < FRONT:
        top = stack.pop()
        if top not in found:
            found[top] = None
            stack += top.operands if is_light(top) else ()
    return list(found)
