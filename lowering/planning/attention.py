"""Attention in one kernel: which calls of `kernel.attention` are, the parts that the planner sees of them, and how it puts these together.

The parts are a product of queries and keys, what is done to each score (scale, mask), the softmax over the keys, and a product with the
values. None of the scores is kept in memory: they are folded as they are made (Milakov and Gimelshein, arXiv:1805.02867; Dao et al.,
arXiv:2205.14135).
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from coset.dialects.expansion import opened_once
from coset.dialects.hub.region_terms import applied
from coset.ir.dims import Dim, add
from coset.ir.term import PARAMETER, Region, Term, make, rebuild, topological
from coset.lowering.kernels.indexing import Index
from coset.lowering.planning.attention_gradients import GRADIENTS, Traced, Tracer, Unattended, by_term, place
from coset.lowering.planning.group import ATTENTION, KernelGroup, loops_over
from coset.lowering.planning.kinds import WEIGHTS
from coset.lowering.planning.primitive import primitive_terms
from coset.lowering.planning.visible import LOW

if TYPE_CHECKING:
    from coset.lowering.planning.grouping import Grouper

KEPT = "kernel.attention"
WIDEST = 256  # elements of a query, key or value that a tile has room for
FLOATS = frozenset({"f16", "bf16", "f32", "f64"})


@dataclass(frozen=True, eq=False)
class Attended:
    """A call of `kernel.attention`, `whole`, as the product `dot`, the `weights` and the `result`; `scores` lie between the first two.
    `number`: its place among the calls of the program."""

    number: int
    whole: Term
    dot: Term
    scores: frozenset[Term]
    weights: Term
    result: Term

    def seen(self, index: Index) -> Dim | None:
        """The number of keys that the query at this index of `dot` sees, where a causal mask says it; None: all of them.

        Those it does not see have the weight 0: where they are filled with -inf, and where with a large negative number and each query sees
        a key, unless that overflows. That their values need not be read either is exact except for NaN and infinities.
        """
        fill, offset, dtype = self.whole.attribute("fill"), self.whole.attribute("offset"), self.dot.tensor.dtype
        weightless = fill == float("-inf") or (fill <= LOW and offset >= 0 and dtype.name != "f16")
        return add(index[-2], offset + 1) if self.whole.attribute("causal") and weightless else None


def attends(term: Term) -> bool:
    """True for a call that a kernel computes, of attention or of its gradients: floats of one precision, and rows that fit into a tile."""
    if term.op.name != KEPT and term.op.name not in GRADIENTS:
        return False
    operands = [operand.tensor for name, operand in zip(term.op.operands, term.operands, strict=True) if name != "mask"]
    precisions = {*(operand.dtype for operand in operands), term.attribute("precision")}
    if any(dtype.name not in FLOATS for dtype in precisions) or len({dtype.bits > 32 for dtype in precisions}) > 1:
        return False
    return all(isinstance(operand.dims[-1], int) and 0 < operand.dims[-1] <= WIDEST for operand in operands)


@dataclass(frozen=True)
class AttentionCalls:
    """Calls that are to be kernels: attentions, and the kernels that gradients of attention take."""

    attentions: tuple[Attended, ...] = ()
    gradients: tuple[Traced, ...] = ()


def attending(roots: Sequence[Term], opened: Container[int]) -> tuple[tuple[Term, ...], AttentionCalls]:
    """`roots` with the parts of each call that `attends` in its place; those with a number of `opened` over primitive ops."""
    done: dict[Term, Term] = {}
    found: list[Attended] = []
    tracer = Tracer()
    count = 0
    for term in topological(roots):
        done[term] = rebuild(term, [done[operand] for operand in term.operands])
        if term.op.name != KEPT and term.op.name not in GRADIENTS:
            continue
        if count in opened:
            done[term] = _opened(done[term])
        elif term.op.name == KEPT:
            found.append(_parts(count, done[term]))
            done[term] = found[-1].result
        else:
            done[term] = tracer.opened(count, done[term])
        count += 1
    return tuple(done[root] for root in roots), AttentionCalls(tuple(found), tuple(tracer.kernels.values()))


def _opened(term: Term) -> Term:
    parameters = tuple(make(PARAMETER, (), {"index": i, "type": operand.type}) for i, operand in enumerate(term.operands))
    region = Region(parameters, primitive_terms([rebuild(term, parameters)]))
    return applied(region, term.operands)[0]


def _parts(number: int, call: Term) -> Attended:
    result = opened_once(call)
    weights = result.operands[0]
    assert weights.op.name == WEIGHTS, f"{call} is not defined by a softmax"
    query, key = call.operands[:2]
    scores = list(topological(weights.operands, known=set(call.operands)))
    (dot,) = (each for each in scores if each.op.name == "stablehlo.dot_general" and each.operands == (query, key))
    above = {dot}
    for each in scores:
        if any(operand in above for operand in each.operands):
            above.add(each)
    return Attended(number, call, dot, frozenset(above), weights, result)


def shared(found: Sequence[Attended], order: Sequence[Term], roots: Sequence[Term]) -> Attended | None:
    """One of `found` of which something inside is needed outside too, or None."""
    if not found:
        return None
    users: dict[Term, list[Term]] = {}
    for term in order:
        for operand in term.operands:
            users.setdefault(operand, []).append(term)
    ends = set(roots)
    for each in found:
        inside = {*each.scores, each.weights}
        allowed = {*inside, each.result}
        if not ends.isdisjoint(inside) or any(user not in allowed for term in inside for user in users.get(term, ())):
            return each
    return None


class Attentions:
    """What the walk that makes groups asks about the attentions of a program and their gradients."""

    def __init__(self, found: AttentionCalls) -> None:
        self.by_dot = {each.dot: each for each in found.attentions}
        self.by_weights = {each.weights: each for each in found.attentions}
        self.by_result = {each.result: each for each in found.attentions}
        self.by_score = {term: each for each in found.attentions for term in each.scores}
        self.traced = by_term(found.gradients)
        self.inside = {term: each for each in found.gradients for term in each.inside}

    def __contains__(self, term: Term) -> bool:
        own = term in self.by_dot or term in self.by_weights or term in self.by_result
        return own or term in self.traced

    def home(self, walk: Grouper, term: Term) -> KernelGroup | None:
        """The kernel in which a term has to be made, or None for one that may be made anywhere."""
        if term in self.inside:
            return self.inside[term].group
        return walk.home[self.by_score[term].dot] if term in self.by_score else None

    def refused(self, term: Term) -> Unattended:
        """What says that a term is not made in its `home`."""
        return Unattended(self.inside[term].numbers if term in self.inside else {self.by_score[term].number})

    def place(self, walk: Grouper, term: Term) -> None:
        """The product of queries and keys begins a kernel; the softmax of its scores and the product with the values join it.

        Raises:
            Unattended: they do not.
        """
        if term in self.traced:
            place(walk, self.traced[term], term)
            return
        if term in self.by_dot:
            walk.store_operands(term.operands[1:], [self._rows(term)])  # what is done to queries is done once: rotary embeddings, say
            group = walk.open(ATTENTION, term)
            index = self._begin(group, term)
        elif term in self.by_weights:
            group = self._scored(term, walk.home)
            index = group.at[term.operands[0]]
        else:
            walk.store_operands(term.operands[1:], [self._rows(self.by_result[term].dot)])
            group = walk.home[term.operands[0]]
            if walk.waits(term.operands[1:], group):
                raise Unattended({self.by_result[term].number})
            index = self._end(group, term)
        group.heavy.append(term)
        walk.add(group, term, index)

    @staticmethod
    def _rows(dot: Term) -> tuple[Dim, ...]:
        """The dims of queries that share their keys."""
        query, key = (operand.tensor.rank for operand in dot.operands)
        return dot.operands[0].tensor.dims[key - 2 : query - 1]

    def _begin(self, group: KernelGroup, dot: Term) -> Index:
        """Give a new group its loops over queries, keys and what they are compared by; the index of `dot`."""
        query, key = (operand.tensor.dims for operand in dot.operands)
        batch = len(key) - 2
        outer = loops_over(group, "b", key[:batch])
        rows = loops_over(group, "m", query[batch:-1])
        keys = loops_over(group, "s", key[batch : batch + 1])
        depth = loops_over(group, "k", query[-1:])
        group.reads[dot] = ((*outer, *rows, *depth), (*outer, *keys, *depth))
        return (*outer, *rows, *keys)

    def _end(self, group: KernelGroup, result: Term) -> Index:
        """Give the group its loops over the values' columns; the index of `result`."""
        each = self.by_result[result]
        index, value = group.at[each.dot], result.operands[1].tensor.dims
        batch = len(value) - 2
        columns = loops_over(group, "n", value[-1:])
        group.reads[result] = ((*index[:batch], index[-1], *columns),)
        return (*index[:-1], *columns)

    def _scored(self, weights: Term, home: Mapping[Term, KernelGroup]) -> KernelGroup:
        """The kernel in which the scores of `weights` are made."""
        each = self.by_weights[weights]
        group = home.get(weights.operands[0])
        if group is None or group.kind != ATTENTION or group is not home[each.dot] or group.at[weights.operands[0]] != group.at[each.dot]:
            raise Unattended({each.number})
        return group
