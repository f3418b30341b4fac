"""Gradients of attention in kernels: the parts that the planner sees of a call, and how it puts these together.

Scores are made anew in each kernel, from what a softmax over them is made with: the largest score of each query, one over the sum of
the exponentials, and the sum of its weights times the gradients that reach them (Dao et al., arXiv:2205.14135, algorithm 4). One kernel
finds these numbers for each query; one goes through the keys for the gradient of the queries; one goes through the queries for those of
keys and values, which no two programs write.

The last of the numbers is not taken as the sum of the result times its gradient, as it may be on paper: that is summed along another axis
than what it is subtracted from, so that a weight of 1 would leave their rounding, and not 0, where the weights are as good as chosen.

Each kernel has products of its own: they are marked with its number, so that what is made of them belongs to no other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from coset.dialects.expansion import opened_once
from coset.dialects.hub.terms import broadcast, convert
from coset.ir.term import Term, intern, make, rebuild, topological
from coset.lowering.kernels.indexing import Index
from coset.lowering.planning.group import CHAIN, STATISTICS, KernelGroup, loops_over
from coset.lowering.planning.kinds import STATISTICAL, WEIGHTS, wide

if TYPE_CHECKING:
    from coset.lowering.planning.grouping import Grouper

GRADIENTS = frozenset(f"kernel.attention_gradient_{side}" for side in ("query", "key", "value"))
TOP, SHARE, SLOPE = STATISTICAL
SOFTMAX_GRADIENT = "kernel.softmax_gradient"
DEPTHS, COLUMNS = "kefghij", "nopqruv"  # roles of loops: what products sum along, and the columns of results, which are no more


class Unattended(Exception):
    """The scores of attentions or of their gradients (calls, by their `numbers`) cannot be computed in a kernel: they have to be opened."""

    def __init__(self, numbers: Iterable[int]) -> None:
        super().__init__("an attention's scores are not made in one kernel")
        self.numbers = frozenset(numbers)


@dataclass(eq=False)
class Traced:
    """A kernel that makes scores anew, by its place in the list of such kernels (`mark`). `inside`: what lies between its products
    `dots` and its `ends`, namely statistics of rows or results; `score`: what the softmax is of. `turned`: its tiles are of keys, and it
    goes through the queries. `numbers`: of the calls that need it."""

    mark: int
    kind: str
    turned: bool = False
    safe: bool = False
    score: Term | None = None
    numbers: set[int] = field(default_factory=set)
    dots: list[Term] = field(default_factory=list)
    inside: set[Term] = field(default_factory=set)
    ends: list[Term] = field(default_factory=list)
    group: KernelGroup | None = None

    def dot(self, term: Term) -> Term:
        """A product as this kernel's own."""
        found = intern(term.op, term.operands, (*term.attributes, ("kernel", self.mark)), (), term.type)
        if found not in self.dots:
            self.dots.append(found)
        return found

    def end(self, term: Term) -> Term:
        """A term that the kernel makes of its products, entered with all that lies between."""
        if term in self.ends:
            return term
        self.ends.append(term)
        above = set(self.dots)
        for each in topological(term.operands):
            if any(operand in above for operand in each.operands):
                above.add(each)
                self.inside.add(each)
        return term


class Tracer:
    """Opens calls into `kernels`."""

    def __init__(self) -> None:
        self.kernels: dict[tuple[object, ...], Traced] = {}

    def opened(self, number: int, call: Term) -> Term:
        """The result of a call over the parts of its kernels."""
        whole = opened_once(call)
        given = set(call.operands)
        terms = list(topological([whole], known=given))
        (softmax,) = (term for term in terms if term.op.name == WEIGHTS)
        score, safe = softmax.operands[0], bool(softmax.attribute("safe"))
        turned, gradient = not call.op.name.endswith("query"), call.operands[call.op.operands.index("g")]
        kernel = self._kernel(number, CHAIN, *((score, safe, gradient) if turned else (number,)))
        kernel.turned, kernel.safe = turned, safe
        top, share = self._largest_and_share(number, softmax, given)
        precise = top.tensor.dtype
        done: dict[Term, Term] = {term: term for term in given}
        for term in terms[:-1]:
            operands = [done[operand] for operand in term.operands]
            if _is_given(term, given):
                done[term] = kernel.dot(term)
            elif term is softmax:
                kernel.score = operands[0]
                powers = make("stablehlo.exponential", (_less(convert(operands[0], precise), top),))
                weights = make("stablehlo.multiply", (powers, _spread(share, powers)))
                done[term] = convert(weights, term.tensor.dtype)
            elif term.op.name == SOFTMAX_GRADIENT:
                slope = self._slope(number, softmax, term.operands[1], given)
                weights, reached = (convert(operand, precise) for operand in operands)
                done[term] = convert(make("stablehlo.multiply", (weights, _less(reached, slope))), term.tensor.dtype)
            else:
                done[term] = rebuild(term, operands)
        return kernel.end(rebuild(whole, [done[operand] for operand in whole.operands]))

    def _kernel(self, number: int, kind: str, *key: object) -> Traced:
        found = self.kernels.setdefault((kind, *key), Traced(len(self.kernels), kind))
        found.numbers.add(number)
        return found

    def _statistics(self, number: int, softmax: Term, given: set[Term]) -> tuple[Traced, Term]:
        """The kernel of the rows of a softmax, and its scores there."""
        kernel = self._kernel(number, STATISTICS, softmax.operands[0], bool(softmax.attribute("safe")))
        kernel.safe, kernel.score = bool(softmax.attribute("safe")), _within(kernel, softmax.operands[0], given)
        return kernel, kernel.score

    def _largest_and_share(self, number: int, softmax: Term, given: set[Term]) -> tuple[Term, Term]:
        """The largest score of each row and one over the sum of the exponentials."""
        attributes = {"precision": wide(softmax.attribute("precision")), "safe": bool(softmax.attribute("safe"))}
        kernel, score = self._statistics(number, softmax, given)
        return kernel.end(make(TOP, (score,), attributes)), kernel.end(make(SHARE, (score,), attributes))

    def _slope(self, number: int, softmax: Term, reached: Term, given: set[Term]) -> Term:
        """The sum of the weights times what reached them, of each row."""
        attributes = {"precision": wide(softmax.attribute("precision")), "safe": bool(softmax.attribute("safe"))}
        kernel, score = self._statistics(number, softmax, given)
        return kernel.end(make(SLOPE, (score, _within(kernel, reached, given)), attributes))


def _is_given(term: Term, given: set[Term]) -> bool:
    """True for a product of operands of the call."""
    return term.op.name == "stablehlo.dot_general" and all(operand in given for operand in term.operands)


def _within(kernel: Traced, top: Term, given: set[Term]) -> Term:
    """`top` over the products of `kernel`."""
    done: dict[Term, Term] = {term: term for term in given}
    for term in topological([top], known=given):
        done[term] = kernel.dot(term) if _is_given(term, given) else rebuild(term, [done[operand] for operand in term.operands])
    return done[top]


def _spread(row: Term, like: Term) -> Term:
    return broadcast(row, like.tensor.dims, tuple(range(row.tensor.rank)))


def _less(whole: Term, row: Term) -> Term:
    return make("stablehlo.subtract", (whole, _spread(row, whole)))


# ---------------------------------------------------------------- placing


def place(walk: Grouper, each: Traced, term: Term) -> None:
    """Put a product, a statistic or a result of `each` into its kernel, which the first product begins.

    Raises:
        Unattended: it does not fit.
    """
    if term in each.dots:
        _place_dot(walk, each, term)
    elif term.op.name in (TOP, SHARE, SLOPE):
        assert each.group is not None
        require_scores(walk, term.operands, each.group, each.group.at[each.group.heavy[0]], each.numbers)
        _enter(walk, each.group, term, each.group.at[each.group.heavy[0]][:-1])
    else:
        _place_result(walk, each, term)


def require_scores(walk: Grouper, terms: Sequence[Term], group: KernelGroup, index: Index, numbers: Iterable[int]) -> None:
    """See that all of `terms` are made at the place of the scores.

    Raises:
        Unattended: one is not.
    """
    if any(walk.home.get(term) is not group or group.at[term] != index for term in terms):
        raise Unattended(numbers)


def _enter(walk: Grouper, group: KernelGroup, term: Term, index: Index) -> None:
    group.heavy.append(term)
    walk.add(group, term, index)


def _place_dot(walk: Grouper, each: Traced, dot: Term) -> None:
    left, right = (operand.tensor.dims for operand in dot.operands)
    batch = len(right) - 2
    again = 0 if each.turned else 1  # the side that is read in each tile of the other
    walk.store_operands(dot.operands[again : again + 1], [right[batch:-1] if each.turned else left[batch:-1]])
    if each.group is None:
        group = each.group = walk.open(each.kind, dot)
        rows = (*loops_over(group, "b", right[:batch]), *loops_over(group, "m", left[batch:-1]))
        index = (*rows, *loops_over(group, "s", right[batch : batch + 1]))
    else:
        group = each.group
        index = group.at[group.heavy[0]]
        if walk.waits(dot.operands, group):
            raise Unattended(each.numbers)
    count = sum(other in each.dots for other in group.heavy)
    if count == len(DEPTHS):
        raise Unattended(each.numbers)
    depth = loops_over(group, DEPTHS[count], left[-1:])
    group.reads[dot] = ((*index[:-1], *depth), (*index[:batch], index[-1], *depth))
    _enter(walk, group, dot, index)


def _place_result(walk: Grouper, each: Traced, result: Term) -> None:
    """A result has rows of its own: keys where the kernel is turned, queries where not. It does not wait for the kernel, as it is of
    operands of the products."""
    group, (weights, value) = each.group, result.operands
    assert group is not None
    index = group.at[group.heavy[0]]
    batch = len(result.tensor.dims) - 2 if each.turned else len(value.tensor.dims) - 2
    walk.store_operands((value,), [weights.tensor.dims[-1:] if each.turned else weights.tensor.dims[batch:-1]])
    require_scores(walk, (weights,), group, index, each.numbers)
    role = COLUMNS[sum(other in each.ends for other in group.heavy)]
    columns = loops_over(group, role, value.tensor.dims[-1:])
    if each.turned:
        group.reads[result] = ((*index[:-1], *columns),)
        _enter(walk, group, result, (*index[:batch], index[-1], *columns))
        return
    group.reads[result] = ((*index[:batch], index[-1], *columns),)
    _enter(walk, group, result, (*index[:-1], *columns))


def by_term(kernels: Iterable[Traced]) -> Mapping[Term, Traced]:
    """The kernel that each product, statistic and result belongs to."""
    return {term: each for each in kernels for term in (*each.dots, *each.ends)}
