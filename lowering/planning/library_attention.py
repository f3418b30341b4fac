"""Attention that a library does sooner than our kernel: of 16-bit floats without a mask or under a causal one, as torch's own fused kernels
have it. They take heads of rows and rows of heads, so transposes in front and behind go with them; all else there is kernels of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from coset.dialects.hub.terms import reshape, transpose
from coset.ir.builtin import ABSENT
from coset.ir.dims import Dim, multiply
from coset.ir.term import Term, make, rebuild, topological
from coset.ir.types import F32
from coset.lowering.planning.attention import KEPT
from coset.lowering.planning.library_products import HALVES, Libraries
from coset.lowering.planning.visible import LOW

BY_HEADS, BY_ROWS = CALLS = ("kernel.library_attention", "kernel.library_attention_of_rows")
WIDEST = 128  # elements of a head that all of torch's fused kernels take
_SIDE = 8  # of which they take multiples


def may_attend(term: Term) -> bool:
    """True for a call of attention that torch's fused kernels compute: queries, keys and values of one 16-bit float with heads of one
    width, no mask but a causal one over as many keys as queries. Their softmax is in f32, whatever precision is asked for, as our kernel's
    is where rounding waits for what is stored."""
    if term.op.name != KEPT:
        return False
    query, key, value = (operand.tensor for operand in term.operands[:3])
    width, batch = query.dims[-1], key.rank - 2
    if term.operands[3].op is not ABSENT or query.dtype not in HALVES or not key.dtype is value.dtype is query.dtype:
        return False
    if (
        term.attribute("precision") not in (F32, query.dtype)
        or value.dims[-1] != width
        or batch not in (1, 2)
        or query.rank - 1 - batch not in (1, 2)
    ):
        return False
    if not isinstance(width, int) or width % _SIDE or not 0 < width <= WIDEST:
        return False
    if not all(isinstance(dim, int) and dim > 0 for dim in query.dims[1:-2]):  # heads
        return False
    keys = key.dims[-2]
    if not (keys != 0 if isinstance(keys, int) else keys == query.dims[-2]):  # what sees no key is NaN, and anything by torch's kernels
        return False
    if not term.attribute("causal"):
        return True
    return term.attribute("offset") == 0 and term.attribute("fill") <= LOW and query.dims[-2] == key.dims[-2]


def with_attentions(roots: Sequence[Term], wanted: Libraries) -> tuple[Term, ...]:
    """`roots` where attentions that are `wanted` are a library's, with the transposes in front and behind."""
    order = list(topological(roots))
    calls = [term for term in order if may_attend(term) and wanted(term)]
    if not calls:
        return tuple(roots)
    users: dict[Term, list[Term]] = {root: [root] for root in roots}  # what is an output has a user that no transpose is
    for term in order:
        for operand in term.operands:
            users.setdefault(operand, []).append(term)
    ends = {_end(call, users): call for call in calls}
    done: dict[Term, Term] = {}
    for term in order:
        done[term] = rebuild(term, [done[operand] for operand in term.operands]) if term not in ends else _called(term, ends[term], done)
    return tuple(done[root] for root in roots)


def _called(end: Term, call: Term, done: Mapping[Term, Term]) -> Term:
    """What stands in place of `end`, which is a call or its result by rows: one of the library, by rows where that is all that is wanted of
    the result, or how an operand lies."""
    kept = {name: call.attribute(name) for name in ("scale", "precision", "causal")}
    operands = [done[operand] for operand in call.operands[:3]]
    lying = [_lying(operand) for operand in operands]
    if end is call and all(each is None for each in lying):
        return make(BY_HEADS, tuple(operands), kept)
    rows = [_turned(operand) if each is None else each for operand, each in zip(operands, lying, strict=True)]
    found = make(BY_ROWS, tuple(rows), kept)
    return reshape(found, end.tensor.dims) if end is not call else transpose(found, _to_heads(found.tensor.rank))


def _to_heads(rank: int) -> tuple[int, ...]:
    """The order in which heads take the dims of rows that have them: [batch, rows, heads.., width]."""
    return (0, *range(2, rank - 1), 1, rank - 1)


def _turned(x: Term) -> Term:
    """Heads of rows as rows that have them."""
    rank = x.tensor.rank
    return transpose(x, (0, rank - 2, *range(1, rank - 2), rank - 1))


def _lying(x: Term) -> Term | None:
    """The rows that an operand has the heads of, where it is a transpose of them; heads may be split behind it."""
    heads, rank = x, x.tensor.rank
    runs: list[tuple[int, ...]] | None = [(axis,) for axis in range(rank)]
    if x.op.name == "stablehlo.reshape":
        (heads,) = x.operands
        runs = _runs(heads.tensor.dims, x.tensor.dims)
    if rank < 4 or runs is None or not _is_turned(heads, _to_heads(heads.tensor.rank)) or [len(runs[0]), len(runs[-2])] != [1, 1]:
        return None
    dims = x.tensor.dims
    return reshape(heads.operands[0], (dims[0], dims[-2], *dims[1:-2], dims[-1]))


def _end(call: Term, users: Mapping[Term, Sequence[Term]]) -> Term:
    """The transpose by which alone a call's result becomes one of rows, perhaps with some heads as one; the call where there is none."""
    runs: list[tuple[int, ...]] | None = [(axis,) for axis in range(call.tensor.rank)]
    heads, after = call, _only(call, users)
    if after is not None and after.op.name == "stablehlo.reshape":
        heads, runs, after = after, _runs(after.tensor.dims, call.tensor.dims), _only(after, users)
    rank = heads.tensor.rank
    whole = runs is not None and rank >= 4 and len(runs[0]) == len(runs[-2]) == 1
    return after if whole and after is not None and _is_turned(after, (0, rank - 2, *range(1, rank - 2), rank - 1)) else call


def _is_turned(term: Term, axes: tuple[int, ...]) -> bool:
    return term.op.name == "stablehlo.transpose" and bool(term.attribute("permutation") == axes)


def _only(term: Term, users: Mapping[Term, Sequence[Term]]) -> Term | None:
    found = users.get(term, ())
    return found[0] if len(found) == 1 and found[0] is not term else None


def _runs(whole: Sequence[Dim], split: Sequence[Dim]) -> list[tuple[int, ...]] | None:
    """For each dim of `whole` the places of those of `split` that it is split into; None where it is not so, or the last one is split."""
    found: list[tuple[int, ...]] = []
    place = 0
    for dim in whole:
        begin = place
        size: Dim = 1
        while place < len(split) and (place == begin or size != dim):
            size = multiply(size, split[place])
            place += 1
        if size != dim or place == begin:
            return None
        found.append(tuple(range(begin, place)))
    return found if place == len(split) and len(found[-1]) == 1 else None
