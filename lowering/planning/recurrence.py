"""Loops as recurrences: how often they go round, and what a round is, as terms over what is outside of the loop.

A loop is one where a counter goes up by one to a bound that is known before. Of its state, what no round changes is what it was; what
counts is a dim over the round; a tensor into which each round writes its own place is a stack of what the rounds give; the rest is
carried from round to round.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from coset.ir.dims import Dim, add, multiply, substitute, subtract, symbol, symbols
from coset.ir.term import CONSTANT, GET, Term, constant, make, rebuild, topological
from coset.ir.types import TensorType, TupleType
from coset.lowering.kernels.index_arithmetic import Extents, is_natural, linear, range_of
from coset.lowering.planning.contraction import dot
from coset.lowering.planning.primitive import primitive_terms

ROUND = "loop:round"  # the symbol of the round, from 0 on
LOOP = "stablehlo.while"
_DIMS, _WRITE = "builtin.dims", "stablehlo.dynamic_update_slice"
_INT32 = 1 << 31
_MOVED = ("stablehlo.reshape", "stablehlo.convert", "stablehlo.broadcast_in_dim")


@dataclass(frozen=True)
class Carried:
    """A value that goes from round to round: `start` before the first, `next` what a round makes of those that it reads as parameters."""

    parameter: Term
    start: Term
    next: Term


@dataclass(frozen=True)
class Stack:
    """A tensor whose place `place`, a dim over the round, is `update` along `axis`, where that has size 1; each place is one round's."""

    update: Term
    axis: int
    place: Dim


@dataclass(frozen=True)
class Rounds:
    """A loop of `count` rounds. Its results by their numbers: what is `carried`, its `stacks`, and what is `known` without the loop: what
    no round changes, and numbers. `outside`: the terms of no round that rounds read."""

    count: Dim
    carried: Mapping[int, Carried]
    stacks: Mapping[int, Stack]
    known: Mapping[int, Term]
    outside: frozenset[Term]

    @property
    def extents(self) -> Extents:
        """How many values the round takes."""
        return {ROUND: self.count}

    def results(self) -> tuple[Term, ...]:
        """What a round gives, over the parameters of what is carried and what is outside."""
        return (*(each.next for each in self.carried.values()), *(each.update for each in self.stacks.values()))

    def moving(self) -> frozenset[Term]:
        """The terms of a round that depend on what is carried."""
        found = {each.parameter for each in self.carried.values()}
        for term in topological(self.results()):
            if any(operand in found for operand in term.operands):
                found.add(term)
        return frozenset(found)

    def turning(self) -> frozenset[Term]:
        """The terms of a round that differ from round to round."""
        found = set(self.moving())
        for term in topological(self.results()):
            if any(operand in found for operand in term.operands) or is_turning(term):
                found.add(term)
        return frozenset(found)


_KNOWN: WeakKeyDictionary[Term, dict[bool, Rounds | None]] = WeakKeyDictionary()


def rounds_of(loop: Term, *, opened: bool = False) -> Rounds | None:
    """The rounds of a loop; None for one whose rounds are not counted up to a bound that is known before, and for any other term. `opened`:
    products of few rows are what they are elsewhere, multiplications and folds."""
    if loop.op.name != LOOP or not isinstance(loop.type, TupleType):
        return None
    known = _KNOWN.setdefault(loop, {})
    if opened not in known:
        known[opened] = _Reading(loop, opened=opened).rounds()
    return known[opened]


def is_turning(term: Term) -> bool:
    """True for a number of the round."""
    return term.op.name == _DIMS and any(ROUND in symbols(dim) for dim in term.attribute("dims"))


def number_term(dim: Dim, like: Term) -> Term:
    """A number of rank 0 in the element type of `like`."""
    dtype = like.tensor.dtype
    return constant(dim, dtype) if isinstance(dim, int) else make(_DIMS, (), {"dims": (dim,), "type": TensorType(dtype, ())})


def replaced(roots: Sequence[Term], known: Mapping[Term, Term]) -> tuple[Term, ...]:
    """`roots` with other terms in the place of those that are `known`."""
    done = dict(known)
    for term in topological(roots, known=known):
        done[term] = rebuild(term, [done[operand] for operand in term.operands])
    return tuple(done[root] for root in roots)


class _Reading:
    """What is read off one loop."""

    def __init__(self, loop: Term, *, opened: bool) -> None:
        self.loop = loop
        condition, body = loop.regions
        self.parameters = body.parameters
        self.results = primitive_terms(body.results, product=dot if opened else lambda _: None)
        (self.goes_on,) = primitive_terms(condition.results)
        self.given = condition.parameters
        self.same = {k for k, (p, r) in enumerate(zip(self.parameters, self.results, strict=True)) if p is r}

    def rounds(self) -> Rounds | None:
        counters = self._counters()
        fixed = {k: found for k in self.same if (found := known_number(self.loop.operands[k])) is not None}
        count = self._count({**fixed, **counters})
        if count is None or count == 0:
            return None
        extents = {ROUND: count}
        dims = numbers(self.results, {self.parameters[k]: dim for k, dim in {**fixed, **counters}.items()}, extents)
        outside = {self.parameters[k]: self.loop.operands[k] for k in self.same}
        written = {term: number_term(dim, term) for term, dim in dims.items() if term.op is not CONSTANT}
        results = replaced(self.results, {**outside, **written})
        last = {k: number_term(substitute(dim, {ROUND: count}), self.parameters[k]) for k, dim in counters.items()}
        known = {**{k: self.loop.operands[k] for k in self.same}, **last}
        stacks = self._stacks(results, known, count)
        carried = {
            k: Carried(self.parameters[k], self.loop.operands[k], result)
            for k, result in enumerate(results)
            if k not in known and k not in stacks
        }
        gone = {self.parameters[k] for k in (*stacks, *counters)}
        left = [*(each.next for each in carried.values()), *(each.update for each in stacks.values())]
        assert not any(term in gone for term in topological(left)), "what counts is a number, and a stack is only written"
        return Rounds(count, carried, stacks, known, frozenset(outside.values()))

    def _counters(self) -> dict[int, Dim]:
        """What counts rounds, as dims over the round."""
        found: dict[int, Dim] = {}
        for k, (parameter, result) in enumerate(zip(self.parameters, self.results, strict=True)):
            if not _is_integer(parameter) or result.op.name != "stablehlo.add" or parameter not in result.operands:
                continue
            step = known_number(result.operands[1 - result.operands.index(parameter)])
            start = known_number(self.loop.operands[k])
            if isinstance(step, int) and start is not None:
                found[k] = add(start, multiply(step, symbol(ROUND)))
        return found

    def _count(self, known: Mapping[int, Dim]) -> Dim | None:
        """The bound less where the counter begins."""
        term = self.goes_on
        if term.op.name != "stablehlo.compare" or term.attribute("direction") not in ("LT", "GT"):
            return None
        sides = [*term.operands] if term.attribute("direction") == "LT" else [*reversed(term.operands)]
        if not all(map(_is_integer, sides)):
            return None
        dims = numbers(sides, {self.given[k]: dim for k, dim in known.items()}, {})
        if not all(side in dims for side in sides):
            return None
        counter, bound = (dims[side] for side in sides)
        if linear(counter, ROUND) != 1 or ROUND in symbols(bound):
            return None
        count = add(subtract(bound, counter), symbol(ROUND))
        if isinstance(count, int):
            return max(count, 0) if count < _INT32 else None
        return count if is_natural(count) else None

    def _stacks(self, results: Sequence[Term], known: Mapping[int, Term], count: Dim) -> dict[int, Stack]:
        uses: dict[Term, int] = {}
        for term in topological(results):
            for operand in term.operands:
                uses[operand] = uses.get(operand, 0) + 1
        found: dict[int, Stack] = {}
        for k, (parameter, result) in enumerate(zip(self.parameters, results, strict=True)):
            alone = uses.get(parameter, 0) == 1 and uses.get(result, 0) == 0 and sum(result is each for each in results) == 1
            if k not in known and alone and result.op.name == _WRITE and result.operands[0] is parameter:
                stack = _stack(result, count)
                if stack is not None:
                    found[k] = stack
        return found


def _is_integer(term: Term) -> bool:
    return isinstance(term.type, TensorType) and term.tensor.dims == () and term.tensor.dtype.name in ("i32", "i64")


def _stack(write: Term, count: Dim) -> Stack | None:
    """An update that is one place of one axis and the whole of all others, where the rounds write each place once."""
    shape, update = write.tensor.dims, write.operands[1]
    places = [known_number(start) for start in write.operands[2:]]
    axes = [axis for axis, place in enumerate(places) if place is None or (not isinstance(place, int) and ROUND in symbols(place))]
    if len(axes) != 1 or any(own != dim for axis, (own, dim) in enumerate(zip(update.tensor.dims, shape, strict=True)) if axis != axes[0]):
        return None
    (axis,) = axes
    place = places[axis]
    if place is None or update.tensor.dims[axis] != 1 or shape[axis] != count:
        return None
    each, turned = symbol(ROUND), subtract(subtract(count, 1), symbol(ROUND))
    return Stack(update, axis, place) if place in (each, turned) else None


def known_number(term: Term) -> Dim | None:
    """An integer of one element that is known before anything runs, as a dim; None for anything else. A dim is one that its type holds, as
    the size of a tensor is."""
    while term.op.name in _MOVED and _is_one_integer(term):
        (term,) = term.operands
    if not _is_one_integer(term):
        return None
    if term.op is CONSTANT:
        value = int(term.attribute("value").array().reshape(()).item())
        return value if abs(value) < _INT32 else None
    found: Dim | None = term.attribute("dims")[0] if term.op.name == _DIMS else None
    return found


def _is_one_integer(term: Term) -> bool:
    return isinstance(term.type, TensorType) and term.tensor.dtype.name in ("i32", "i64") and term.tensor.elements == 1


def numbers(roots: Sequence[Term], known: Mapping[Term, Dim], extents: Extents) -> dict[Term, Dim]:
    """The integers under `roots` that are dims over the round where these are `known`."""
    found = dict(known)
    for term in topological(roots):
        if term in found or not _is_integer(term):
            continue
        dim = known_number(term)
        if dim is None:
            dim = _computed(term, found, extents)
        if dim is not None and _fits(dim, extents):
            found[term] = dim
    return found


def _fits(dim: Dim, extents: Extents) -> bool:
    """Whether a dim is what its type counts: numbers of 32 bits, and dims of the program less or more than such."""
    ends = range_of(dim, extents)
    return ends is not None and not any(isinstance(end, int) and abs(end) >= _INT32 for end in ends)


def _computed(term: Term, known: Mapping[Term, Dim], extents: Extents) -> Dim | None:
    name = term.op.name.removeprefix("stablehlo.")
    if name == "select":
        return _selected(term, known, extents)
    values = [known.get(operand) for operand in term.operands]
    if not values or None in values:
        return None
    first = values[0]
    assert first is not None
    if name in ("reshape", "convert"):
        return first
    if name == "negate":
        return subtract(0, first)
    if name in ("add", "subtract", "multiply"):
        second = values[1]
        assert second is not None
        if name == "multiply" and not (isinstance(first, int) or isinstance(second, int)):
            return None
        return {"add": add, "subtract": subtract, "multiply": multiply}[name](first, second)
    return None


def _selected(term: Term, known: Mapping[Term, Dim], extents: Extents) -> Dim | None:
    """A choice by a comparison that comes out the same in all rounds: places below 0 are counted from the end."""
    condition, *sides = term.operands
    if condition.op.name != "stablehlo.compare" or condition.attribute("direction") not in ("LT", "GE"):
        return None
    left, right = (known.get(operand) for operand in condition.operands)
    if left is None or right is None:
        return None
    ends = range_of(subtract(left, right), extents)
    if ends is None:
        return None
    below = condition.attribute("direction") == "LT"
    if is_natural(ends[0]):
        return known.get(sides[1] if below else sides[0])
    return known.get(sides[0] if below else sides[1]) if is_natural(subtract(-1, ends[1])) else None


def without_known(roots: Iterable[Term]) -> tuple[Term, ...]:
    """`roots` with what loops give and no round changes as what it was."""
    given = tuple(roots)
    done: dict[Term, Term] = {}
    for term in topological(given):
        done[term] = rebuild(term, [done[operand] for operand in term.operands])
        if term.op is GET:
            rounds = rounds_of(done[term].operands[0])
            index = term.attribute("index")
            if rounds is not None and index in rounds.known:
                done[term] = rounds.known[index]
    return tuple(done[root] for root in given)
