"""Loops whose rounds do less: what a round makes of no state is made for all rounds at once before the loop, what no state needs of a
round is made for all rounds at once behind it (sums over rounds, projections), and what nobody needs is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

from coset.dialects.hub.region_terms import while_term
from coset.dialects.hub.terms import broadcast, reshape, splat, transpose
from coset.ir.dims import Dim, add, substitute, subtract, symbol
from coset.ir.term import CONSTANT, GET, INPUT, Term, constant, get, make, rebuild, topological
from coset.ir.types import I32, TensorType
from coset.lowering.kernels.index_arithmetic import linear
from coset.lowering.planning.kinds import is_light
from coset.lowering.planning.recurrence import LOOP, ROUND, Rounds, Stack, is_turning, known_number, number_term, replaced, rounds_of
from coset.lowering.planning.round_terms import (
    FOLD,
    PRODUCT,
    READ,
    SUM,
    WRITE,
    counted_by,
    is_inside,
    number_of_round,
    part_of_round,
    stack_shape,
)


class Apart(Exception):
    """A term that cannot be made for all rounds at once."""


def lighter(loop: Term, live: Iterable[int], *, sums: bool) -> dict[int, Term] | None:
    """What stands for the `live` results of a loop by their numbers, where its rounds do less; None for a loop whose rounds are not known,
    or that stays as it is. `sums`: sums over rounds may be made in another order."""
    rounds = rounds_of(loop)
    if rounds is None:
        return None
    return _Lighter(rounds, sums).results(sorted(live))


@dataclass
class _Lighter:
    """`stacked`: what each round gives to what is behind the loop, with what stands for all of it; `made`: what is made before the loop, by
    what it is in a round."""

    rounds: Rounds
    sums: bool
    stacked: dict[Term, Term] = field(default_factory=dict)
    made: dict[Term, Term] = field(default_factory=dict)
    done: dict[Term, tuple[Term, bool]] = field(default_factory=dict)

    def results(self, live: Sequence[int]) -> dict[int, Term]:
        rounds = self.rounds
        self.moving, self.turning = rounds.moving(), rounds.turning()
        found = {number: rounds.known[number] for number in live if number in rounds.known}
        summed = {number: found_ for number in live if (found_ := self._summand(number)) is not None}
        ends = [*summed.values(), *(rounds.stacks[number].update for number in live if number in rounds.stacks)]
        by = {each.parameter: number for number, each in rounds.carried.items()}
        read = [by[term] for term in topological(ends) if term in by]
        self.inner = self._needed([*(number for number in live if number in rounds.carried and number not in summed), *read])
        for number, summand in list(summed.items()):
            total = self._tried(partial(self._total, summand))
            if total is None:
                del summed[number]
                self.inner = self._needed([number, *self.kept])
                self.done.clear()
            else:
                found[number] = make(SUM, (rounds.carried[number].start, total))
        behind = {}
        for number in (number for number in live if number in rounds.stacks):
            stack = self._tried(partial(self._behind, number))
            if stack is None:
                self.inner = self._needed([*self.kept], [rounds.stacks[number].update])
            else:
                behind[number] = stack
        return self._loop(live, {**found, **behind})

    def _tried(self, make_: Callable[[], Term | None]) -> Term | None:
        before = dict(self.stacked)
        try:
            return make_()
        except Apart:
            self.stacked = before
            self.done.clear()
            return None

    # ------------------------------------------------------------ what is needed in a round

    def _needed(self, numbers: Iterable[int], more: Iterable[Term] = ()) -> set[Term]:
        """The terms of a round that states need which something needs; `kept` are these."""
        rounds, by = self.rounds, {each.parameter: number for number, each in self.rounds.carried.items()}
        self.kept: dict[int, None] = {}
        inner: set[Term] = set()
        waiting, roots = [*numbers], [*more]
        while waiting or roots:
            for number in waiting:
                if number not in self.kept:
                    self.kept[number] = None
                    roots.append(rounds.carried[number].next)
            waiting = []
            for term in topological(roots, known=inner):
                inner.add(term)
                if term in by and by[term] not in self.kept:
                    waiting.append(by[term])
            roots = []
        return inner

    def _summand(self, number: int) -> Term | None:
        """What each round adds to a state that nothing else reads."""
        each = self.rounds.carried.get(number)
        if each is None or each.next.op.name != SUM or each.parameter not in each.next.operands:
            return None
        dtype = each.parameter.tensor.dtype
        if dtype.kind not in ("int", "uint") and not (self.sums and dtype.kind == "float" and dtype.bits >= 32):
            return None
        others = [*(other.next for other in self.rounds.carried.values() if other is not each)]
        others += [stack.update for stack in self.rounds.stacks.values()]
        (summand, *rest) = [operand for operand in each.next.operands if operand is not each.parameter] or [each.parameter]
        assert not rest
        used = set(topological([summand, *others]))
        return None if each.parameter in used or summand.tensor.dims != each.parameter.tensor.dims else summand

    # ------------------------------------------------------------ behind the loop

    def _total(self, summand: Term) -> Term:
        """The sum of what all rounds add."""
        if (
            summand.op.name in ("stablehlo.transpose", "stablehlo.reshape", "stablehlo.broadcast_in_dim")
            and summand.operands[0] not in self.inner
        ):
            return rebuild(summand, [self._total(summand.operands[0])])
        if summand.op.name == FOLD and summand.attribute("combiner") == "add" and summand not in self.inner:
            whole, turns = self._all(summand.operands[0])
            if turns:
                axes = (0, *(axis + 1 for axis in summand.attribute("dimensions")))
                return make(FOLD, (whole,), {**dict(summand.attributes), "dimensions": axes})
        if summand.op.name == PRODUCT and summand not in self.inner:
            (left, turns), (right, turns_too) = (self._all(operand) for operand in summand.operands)
            if turns and turns_too:
                given = {name: tuple(axis + 1 for axis in axes) for name, axes in summand.attributes}
                given["lhs_contract"], given["rhs_contract"] = (0, *given["lhs_contract"]), (0, *given["rhs_contract"])
                return make(PRODUCT, (left, right), given)
        whole = self._whole(summand)
        return make(FOLD, (whole,), {"dimensions": (0,), "combiner": "add"})

    def _behind(self, number: int) -> Term | None:
        """A stack made behind the loop, where a round makes something for it that no state needs and that multiplies, or that is of no
        state; None for any other."""
        stack = self.rounds.stacks[number]
        new = topological([stack.update], known=self.inner | self.rounds.outside)
        if stack.update in self.moving and not any(term in self.moving and term.op.name == PRODUCT for term in new):
            return None
        whole = self._whole(stack.update)
        dims = stack.update.tensor.dims
        place = linear(stack.place, ROUND)
        if place == -1:
            whole = make("stablehlo.reverse", (whole,), {"dimensions": (0,)})
        order = (*range(1, stack.axis + 1), 0, *range(stack.axis + 1, len(dims)))
        flat = reshape(whole, (self.rounds.count, *(dim for axis, dim in enumerate(dims) if axis != stack.axis)))
        return transpose(flat, order)

    def _whole(self, term: Term) -> Term:
        """A term of all rounds, with the round as its first dim."""
        whole, turns = self._all(term)
        return whole if turns else broadcast(whole, (self.rounds.count, *term.tensor.dims), tuple(range(1, term.tensor.rank + 1)))

    def _all(self, root: Term) -> tuple[Term, bool]:
        """A term of all rounds, and whether it differs between them: then the round is its first dim.

        Raises:
            Apart: it cannot be made at once.
        """
        for term in topological([root], known=self.done):
            if term not in self.done and term not in self.rounds.outside:
                self.done[term] = self._one(term)
        return self.done.get(root, (root, False))

    def _one(self, term: Term) -> tuple[Term, bool]:
        if term in self.moving and (term in self.inner or term.op.name == "builtin.parameter"):
            if term not in self.inner:
                raise Apart
            if term not in self.stacked:
                type_ = TensorType(term.tensor.dtype, (self.rounds.count, *term.tensor.dims))
                self.stacked[term] = make(INPUT, (), {"name": f"rounds {len(self.stacked)}", "type": type_})
            return self.stacked[term], True
        if term not in self.turning:
            return rebuild(term, [self.done.get(operand, (operand, False))[0] for operand in term.operands]), False
        if is_turning(term):
            return self._counted(term), True
        if term.op.name == READ:
            return self._read(term), True
        operands = [self.done.get(operand, (operand, False)) for operand in term.operands]
        if term.op.has("elementwise"):
            return make(term.op, [self._spread(*each, term) for each in operands], dict(term.attributes)), True
        if term.op.name == PRODUCT:
            return self._product(term, *operands), True
        return make(term.op, (operands[0][0],), self._moved(term)), True

    def _counted(self, term: Term) -> Term:
        """A number of the round in all rounds."""
        (dim,), dtype, shape = term.attribute("dims"), term.tensor.dtype, (self.rounds.count,)
        step = linear(dim, ROUND)
        if not isinstance(step, int) or term.tensor.rank:
            raise Apart
        rest = number_term(substitute(dim, {ROUND: 0}), term)
        rounds = make("stablehlo.iota", (), {"shape": shape, "dimension": 0, "dtype": dtype})
        scaled = make("stablehlo.multiply", (rounds, splat(step, dtype, shape)))
        return make(SUM, (scaled, broadcast(rest, shape, ())))

    def _spread(self, whole: Term, turns: bool, user: Term) -> Term:
        """An operand of an elementwise op over all rounds."""
        shape = (self.rounds.count, *user.tensor.dims)
        if whole.tensor.rank == len(shape) and turns:
            return whole
        axes = tuple(range(len(shape) - (whole.tensor.rank - turns), len(shape))) if whole.tensor.rank > turns else ()
        return broadcast(whole, shape, (0, *axes) if turns else axes)

    def _moved(self, term: Term) -> dict[str, object]:
        """The attributes of a movement or a fold with one more dim in front."""
        given: dict[str, object] = dict(term.attributes)
        count, rank = self.rounds.count, term.operands[0].tensor.rank
        name = term.op.name.removeprefix("stablehlo.")
        later = {"reduce": "dimensions", "reverse": "dimensions"}
        if name in later:
            return {**given, "dimensions": tuple(axis + 1 for axis in term.attribute("dimensions"))}
        if name == "reshape":
            return {"shape": (count, *term.tensor.dims)}
        if name == "transpose":
            return {"permutation": (0, *(axis + 1 for axis in term.attribute("permutation")))}
        if name == "slice":
            starts = {"start": (0, *term.attribute("start")), "limit": (count, *term.attribute("limit"))}
            return {**starts, "strides": (1, *term.attribute("strides"))}
        if name == "broadcast_in_dim":
            axes = tuple(axis + 1 for axis in term.attribute("broadcast_dimensions"))
            assert len(axes) == rank
            return {"shape": (count, *term.tensor.dims), "broadcast_dimensions": (0, *axes)}
        raise Apart

    def _product(self, term: Term, left: tuple[Term, bool], right: tuple[Term, bool]) -> Term:
        given: dict[str, tuple[int, ...]] = dict(term.attributes)
        batch = len(given["lhs_batch"])
        free = term.operands[0].tensor.rank - batch - len(given["lhs_contract"])
        for word, (_, turns) in (("lhs", left), ("rhs", right)):
            for name in (f"{word}_batch", f"{word}_contract"):
                given[name] = tuple(axis + turns for axis in given[name])
        if left[1] and right[1]:
            given["lhs_batch"], given["rhs_batch"] = (0, *given["lhs_batch"]), (0, *given["rhs_batch"])
            return make(PRODUCT, (left[0], right[0]), given)
        found = make(PRODUCT, (left[0], right[0]), given)
        at = batch if left[1] else batch + free
        return transpose(found, (at, *(axis for axis in range(found.tensor.rank) if axis != at)))

    def _read(self, term: Term) -> Term:
        """One place a round of what is outside, as all places that rounds read, in their order."""
        x, sizes, shape = term.operands[0], term.attribute("slice_sizes"), term.operands[0].tensor.dims
        starts: list[Dim] = []
        for dim, size, start in zip(shape, sizes, term.operands[1:], strict=True):
            place = known_number(start)
            if place is None:
                raise Apart
            starts.append(0 if size == dim else place)
        axes = [axis for axis, start in enumerate(starts) if linear(start, ROUND) != 0]
        if x in self.turning or (axes and (len(axes) != 1 or sizes[axes[0]] != 1)):
            raise Apart
        if not axes and all(start == 0 for start in starts) and sizes == shape:  # wherever it is asked for, it is the whole
            return broadcast(x, (self.rounds.count, *sizes), tuple(range(1, len(sizes) + 1)))
        if not axes:
            raise Apart
        (axis,) = axes
        # places of another step leave the round in where they begin, which is then not seen to be inside
        step, count = linear(starts[axis], ROUND), self.rounds.count
        low = subtract(starts[axis], symbol(ROUND)) if step == 1 else subtract(add(starts[axis], symbol(ROUND)), subtract(count, 1))
        begin, end = [*starts], [*map(add, starts, sizes)]
        begin[axis], end[axis] = low, add(low, count)
        if not is_inside(begin, end, shape):
            raise Apart
        found = x
        if any(low != 0 or high != dim for low, high, dim in zip(begin, end, shape, strict=True)):
            found = make("stablehlo.slice", (x,), {"start": tuple(begin), "limit": tuple(end), "strides": (1,) * len(shape)})
        if step == -1:
            found = make("stablehlo.reverse", (found,), {"dimensions": (axis,)})
        found = transpose(found, (axis, *(other for other in range(len(shape)) if other != axis)))
        return reshape(found, (count, *term.tensor.dims))

    # ------------------------------------------------------------ the loop

    def _loop(self, live: Sequence[int], found: dict[int, Term]) -> dict[int, Term]:
        """All results, of a loop that carries and stacks what is left."""
        rounds, count = self.rounds, self.rounds.count
        kept = [rounds.carried[number] for number in self.kept]
        stacks = {number: rounds.stacks[number] for number in live if number in rounds.stacks and number not in found}
        if not kept and not stacks and not self.stacked:
            return found
        roots = [*(each.next for each in kept), *(stack.update for stack in stacks.values()), *self.stacked]
        outside = self._outside(roots)
        piles = [splat(0, stack.update.tensor.dtype, stack_shape(stack.update.tensor.dims, stack.axis, count)) for stack in stacks.values()]
        piles += [splat(0, whole.tensor.dtype, whole.tensor.dims) for whole in self.stacked.values()]
        zero = constant(0, I32)
        state = [zero, *(each.start for each in kept), *piles, *outside.values()]
        bound = number_term(count, zero)

        def body(*inner: Term) -> list[Term]:
            first, second = 1 + len(kept), 1 + len(kept) + len(piles)
            known = dict(zip((each.parameter for each in kept), inner[1:first], strict=True))
            for term, given in zip(outside, inner[second:], strict=True):
                known[term] = (
                    given if term not in self.made or term not in self.turning else part_of_round(given, inner[0], term.tensor.dims)
                )
            for term in topological(roots, known=known):
                if is_turning(term):
                    known[term] = number_of_round(term, inner[0])
            values = replaced(roots, known)
            new, updates = values[: len(kept)], values[len(kept) :]
            grown = _grown(inner[first:second], updates, [*stacks.values(), *(None for _ in self.stacked)], inner[0])
            return [make(SUM, (inner[0], constant(1, I32))), *new, *grown, *inner[second:]]

        loop = while_term(state, lambda *inner: make("stablehlo.compare", (inner[0], bound), {"direction": "LT"}), body)
        places = dict(zip((*self.kept, *stacks), range(1, len(state)), strict=False))
        first = 1 + len(kept) + len(stacks)
        wholes = {whole: get(loop, first + place) for place, whole in enumerate(self.stacked.values())}
        done = replaced(list(found.values()), wholes)
        ends = dict(zip(found, done, strict=True))
        return {number: ends[number] if number in ends else get(loop, places[number]) for number in live}

    def _outside(self, roots: Sequence[Term]) -> dict[Term, Term]:
        """What the loop captures: what is in a round, with what is given for it from outside."""
        given: dict[Term, Term] = {}
        stack, seen = [*roots], set[Term]()
        while stack:
            term = stack.pop()
            if term in seen:
                continue
            seen.add(term)
            if term in self.rounds.outside or term.op is CONSTANT:
                if term.op is not CONSTANT or term.tensor.rank:
                    given[term] = term
                continue
            heavy = term not in self.moving and not is_light(term) and bool(term.operands)
            if heavy and self._is_made(term):
                given[term] = self.made[term]
                continue
            stack += reversed(term.operands)
        return given

    def _is_made(self, term: Term) -> bool:
        """Whether a term of no state is made before the loop."""
        if term not in self.made:
            try:
                whole, _ = self._all(term)
            except Apart:
                return False
            self.made[term] = whole
        return True


def _grown(piles: Sequence[Term], updates: Sequence[Term], stacks: Sequence[Stack | None], counter: Term) -> list[Term]:
    """The piles of a loop with what a round adds to each: where its stack says, or in the place of the round."""
    grown = []
    for pile, update, stack in zip(piles, updates, stacks, strict=True):
        whole = reshape(update, (1, *update.tensor.dims)) if stack is None else update
        axis, place = (0, symbol(ROUND)) if stack is None else (stack.axis, stack.place)
        starts = [counted_by(place, counter) if at == axis else constant(0, I32) for at in range(whole.tensor.rank)]
        grown.append(make(WRITE, (pile, whole, *starts)))
    return grown


def lighter_loops(
    roots: Iterable[Term], wanted: Callable[[Term, Sequence[int]], bool], *, sums: bool
) -> tuple[tuple[Term, ...], frozenset[Term]]:
    """`roots` with the loops that are `wanted`, by themselves and the results that are used, over rounds that do less; and these loops."""
    given = tuple(roots)
    live: dict[Term, set[int]] = {}
    order = list(topological(given))
    whole: set[Term] = {operand for term in order if term.op is not GET for operand in term.operands} | set(given)
    for term in order:
        if term.op is GET:
            live.setdefault(term.operands[0], set()).add(term.attribute("index"))
    done: dict[Term, Term] = {}
    found: dict[Term, dict[int, Term]] = {}
    loops: set[Term] = set()
    for term in order:
        if term.op is GET and term.operands[0] in found:
            done[term] = found[term.operands[0]][term.attribute("index")]
            continue
        done[term] = rebuild(term, [done[operand] for operand in term.operands])
        if term in live and term not in whole and wanted(done[term], sorted(live[term])):
            results = lighter(done[term], live[term], sums=sums)
            if results is not None:
                found[term] = results
                loops |= {each for each in topological(results.values(), known=set(done[term].operands)) if each.op.name == LOOP}
    return tuple(done[root] for root in given), frozenset(loops)
