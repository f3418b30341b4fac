"""Products that a library multiplies sooner than our kernels: of f32 in full, which no matrix unit does, so that operands come from shared
memory, scalar by scalar; and of 16-bit floats by weights, as a library finishes one tile while it multiplies the next. What stands before
and behind is kernels of its own then, but for a bias, which the library adds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Sequence

from coset.dialects.hub.terms import dot
from coset.ir.term import Term, make, rebuild, topological
from coset.ir.types import BF16, F16, F32
from coset.lowering.kernels.indexing import MOVEMENTS
from coset.lowering.planning.kinds import LEAVES, NOTHING, is_light, is_product

Libraries = Callable[[Term], bool]  # product -> a library does it
LINEAR, DENSE = "kernel.linear", "kernel.dense"  # such a product with its bias, by rows or by columns of its weights
BIASED = (LINEAR, DENSE)
FRONT = 24  # terms in front of an operand that are looked at
HALVES = (F16, BF16)


def may_be_librarys(term: Term) -> bool:
    """True for a product of matrices that a library need not copy: of f32 in full in any batch, of 16-bit floats by weights. False where
    our kernels multiply narrower numbers: both operands in f32 come from such, or one in 16-bit floats."""
    if not is_product(term) or not _are_matrices(term) or any(operand.tensor.dtype is not term.tensor.dtype for operand in term.operands):
        return False
    if is_half(term):
        return not term.attribute("lhs_batch") and any(map(_is_weight, term.operands)) and not any(map(_is_from_narrow, term.operands))
    return term.tensor.dtype is F32 and not all(map(_is_from_narrow, term.operands))


def is_half(term: Term) -> bool:
    """True for a result of 16-bit floats."""
    return term.tensor.dtype in HALVES


def is_half_product(term: Term) -> bool:
    """True for a product of 16-bit floats, perhaps with its bias."""
    return is_product(product_in(term)) and is_half(term)


def is_made_behind(term: Term) -> bool:
    """True for an operand that is computed from what another kernel makes, behind it: so it is in memory anyway."""
    return any(each.op.name not in LEAVES and each.op.name not in NOTHING and not is_light(each) for each in _front(term))


def with_biases(roots: Sequence[Term], wanted: Libraries) -> tuple[Term, ...]:
    """`roots` where biases that are added to products of 16-bit floats of a library's are its to add, before it rounds the sum."""
    order = list(topological(roots))
    if not any(is_half(term) for term in order if term.op.name == "stablehlo.dot_general"):
        return tuple(roots)
    uses = Counter(operand for term in order for operand in term.operands) + Counter(roots)
    done: dict[Term, Term] = {}
    for term in order:
        found = _biased(term, uses, wanted)
        if found is None:
            done[term] = rebuild(term, [done[operand] for operand in term.operands])
        else:
            product, bias = found
            name = LINEAR if product.attribute("rhs_contract") == (1,) else DENSE
            done[term] = make(name, tuple(done[each] for each in (*product.operands, bias)))
    return tuple(done[root] for root in roots)


def product_in(term: Term) -> Term:
    """The product in one that has its bias; any other product itself."""
    if term.op.name not in BIASED:
        return term
    x, w, _ = term.operands
    return dot(x, w, lhs_contract=(x.tensor.rank - 1,), rhs_contract=(1 if term.op.name == LINEAR else 0,))


def _biased(term: Term, uses: Counter[Term], wanted: Libraries) -> tuple[Term, Term] | None:
    """The product and the bias of a sum of both, where nothing else needs the product."""
    if term.op.name != "stablehlo.add":
        return None
    for product, added in (term.operands, term.operands[::-1]):
        if product.op.name != "stablehlo.dot_general" or not (is_half(product) and is_product(product) and uses[product] == 1):
            continue
        features, last = product.tensor.dims[-1], product.tensor.rank - 1
        if added.op.name != "stablehlo.broadcast_in_dim" or added.attribute("broadcast_dimensions") != (last,):
            continue
        (bias,), (lhs, rhs) = added.operands, product.operands
        rows_first = rhs.tensor.rank == 2 and product.attribute("lhs_contract") == (lhs.tensor.rank - 1,)
        if rows_first and bias.tensor.dims == (features,) and wanted(product):
            return product, bias
    return None


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


def _is_weight(term: Term) -> bool:
    """True for what is given, perhaps moved."""
    while term.op.name in MOVEMENTS and len(term.operands) == 1:
        (term,) = term.operands
    return term.op.name in LEAVES


def _is_from_narrow(term: Term) -> bool:
    """True for numbers that are made of narrower floats, and for 16-bit floats that are made of 8-bit integers."""
    least = term.tensor.dtype.bits
    kinds: Container[str] = ("float", "int", "uint") if is_half(term) else ("float",)
    return any(each.tensor.dtype.kind in kinds and each.tensor.dtype.bits < least for each in _front(term))


def _front(term: Term) -> list[Term]:
    """What is computed in front of a product in its kernel, from what; not more than `FRONT` terms of it."""
    found, stack = dict[Term, None](), [term]
    while stack and len(found) < FRONT:
        top = stack.pop()
        if top not in found:
            found[top] = None
            stack += top.operands if is_light(top) else ()
    return list(found)
