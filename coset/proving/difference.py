"""Where two different programs part: the first value of one that the other has not, though it has all that this value is made of."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coset.comparing.feeds import Feed
from coset.comparing.fold import fallback_for
from coset.comparing.noise import floating, largest_step
from coset.ir.evaluate import describe, evaluate_program
from coset.ir.program import Program
from coset.ir.program_source import source_of
from coset.ir.term import INPUT, Term, input_term
from coset.prove.contents import hashed
from coset.proving.prints import Print, Prints, Shelf, Sums, known_by
from coset.proving.steps import Mapped

SHOWN = 40  # letters of an attribute that is shown


@dataclass(frozen=True)
class DescribedNode:
    """A term in words: `place` is its number among the `of` ops of its program, operands first; `name` what its source calls its value,
    or, where that has no name, the first one that has and is computed from it (`toward`)."""

    op: str
    name: str | None
    toward: bool
    place: int
    of: int
    type: str

    def __str__(self) -> str:
        called = f"{'on the way to ' if self.toward else ''}`{self.name}`, " if self.name else ""
        return f"`{self.op}` ({called}op {self.place} of {self.of}) {self.type}"


@dataclass(frozen=True)
class Parting:
    """The first node of one program whose value the other has not, though it has what that is computed from; `there` is the node in its
    place, where one is seen, and `apart` what tells the two from each other. `others`: nodes of the first program of which the same is
    true. `values`: what both nodes give."""

    here: DescribedNode
    there: DescribedNode | None
    apart: Sequence[str]
    others: int
    values: Feed

    @property
    def max_abs(self) -> float | None:
        """How far the two values are apart, where they are floats of one shape."""
        values = list(self.values.values())
        arrays = all(isinstance(value, np.ndarray) for value in values)
        alike = arrays and len(values) == 2 and values[0].shape == values[1].shape and floating(values[0]) and floating(values[1])
        return largest_step(*values) if alike else None

    def summary(self) -> dict[str, Any]:
        """What `--json` prints under `first_difference`."""
        there = None if self.there is None else vars(self.there)
        return {
            **vars(self.here),
            "there": there,
            "apart": list(self.apart),
            "others": self.others,
            "max_abs": self.max_abs,
            "words": str(self),
        }

    def __str__(self) -> str:
        text = f"{self.here}"
        text += " has no equal in the other program" if self.there is None else f", and in the other program {self.there}"
        return text + (f" ({'; '.join(self.apart)})" if self.apart else "")


def first_difference(
    before: Program, after: Program, feed: Feed, failing: Collection[str], *, inputs: Mapping[str, str], outputs: Mapping[str, str]
) -> Parting:
    """Where the programs part on `feed`, on which their outputs `failing` differ. `inputs`, `outputs`: what those of the second are called
    in the first, where that is another name. Values are equal that differ no more than rounding errors in every node may make them;
    what is made of constants alone is never looked at.

    Raises:
        CosetError: the evaluator has no value for one of them.
    """
    sides = _Side.of(before, {}, {}), _Side.of(after, inputs, outputs)
    values = _Values.of(*sides, feed)
    found = values.partings([(sides[0].outputs[name], sides[1].outputs[name]) for name in failing])
    places = {term: place for place, term in enumerate(sides[0].program.terms())}
    here, there = min(found, key=lambda pair: places[pair[0]])
    apart = [] if there is None else values.apart(here, there)
    shown = {"first": sides[0].value(here, feed)} | ({} if there is None else {"second": sides[1].value(there, feed)})
    return Parting(sides[0].node(here), None if there is None else sides[1].node(there), apart, len(found) - 1, shown)


@dataclass(frozen=True)
class _Side:
    """A program by content, its inputs and outputs called as in the first. `names`: of its terms, as its source has them."""

    program: Program
    outputs: Mapping[str, Term]
    names: Mapping[Term, str]

    @staticmethod
    def of(program: Program, inputs: Mapping[str, str], outputs: Mapping[str, str]) -> _Side:
        """The side that `program` is."""

        def leaf(term: Term) -> Term:
            if term.op is not INPUT:
                return hashed(term)
            name = term.attribute("name")
            return input_term(inputs.get(name, name), term.type)

        put = Mapped({}, leaf)
        introduces = dict(zip(program.introduces, put.all(list(program.introduces.values())), strict=True))
        same = replace(program.with_roots(put.all(program.roots)), inputs=put.all(program.inputs), introduces=introduces)
        names: dict[Term, str] = {}
        for exact in (True, False):  # what was only moved, and is not needed as such, names what it was moved from
            for term, name in source_of(program).names.items():
                while not exact and term not in put.known and term.op.has("movement") and len(term.operands) == 1:
                    term = term.operands[0]
                if term in put.known:
                    names.setdefault(put.known[term], name)
        return _Side(same, {outputs.get(name, name): term for name, term in same.outputs}, names)

    def node(self, term: Term) -> DescribedNode:
        """A term in words."""
        ops = [each for each in self.program.terms() if not each.op.has("leaf")]
        place = ops.index(term) + 1 if term in ops else 0
        above = {term}
        named = None
        for each in self.program.terms():
            if each in above or any(operand in above for operand in each.operands):
                above.add(each)
                named = each if named is None and each in self.names else named
        name = None if named is None else self.names[named]
        return DescribedNode(describe(term), name, named is not term and named is not None, place, len(ops), str(term.type))

    def value(self, term: Term, feed: Feed) -> Any:
        """What a term gives."""
        alone = replace(self.program, outputs=(("value", term),), effects=None)
        with np.errstate(all="ignore"):
            found = evaluate_program(alone, feed, fallback=fallback_for(self.program.source))[0]
        return found if isinstance(found, list | tuple | dict) else np.asarray(found)  # a sequence has parts of any shapes


def _equal(ours: Prints, allowed: Mapping[Term, Sums], theirs: Prints) -> tuple[set[Term], set[Term]]:
    """The terms of each side that have an equal value on the other."""
    same: dict[Hashable, tuple[Print, list[Term]]] = {}
    for term, own in theirs.items():
        same.setdefault((own.key, own.sums.tobytes()), (own, []))[1].append(term)
    shelf = Shelf((None, own, terms) for own, terms in same.values())
    found: tuple[set[Term], set[Term]] = set(), set()
    for term, own in ours.items():
        for _, terms in shelf.near(None, own, allowed[term]):
            found[0].add(term)
            found[1].update(terms)
    return found


@dataclass(frozen=True)
class _Values:
    """The prints of both programs. `allowed`: how far equal values may be from those of the first; `equal`: the terms of each side that
    have an equal one on the other."""

    ours: Prints
    theirs: Prints
    allowed: Mapping[Term, Sums]
    equal: tuple[Collection[Term], Collection[Term]]

    @staticmethod
    def of(before: _Side, after: _Side, feed: Feed) -> _Values:
        """The prints of both on `feed`."""
        ours, theirs = known_by(before.program, feed), known_by(after.program, feed)
        moved = known_by(before.program, feed, noisy=True)
        allowed = {term: own.allowed(moved.get(term)) for term, own in ours.items()}
        return _Values(ours, theirs, allowed, _equal(ours, allowed, theirs))

    def differ(self, one: Term, other: Term) -> bool:
        """Whether the first term, which is no constant, has another value than the second."""
        if one is other or one not in self.ours:
            return False
        return other not in self.theirs or not self.ours[one].close(self.theirs[other], self.allowed[one])

    def partings(self, ends: Sequence[tuple[Term, Term]]) -> list[tuple[Term, Term | None]]:
        """The terms under `ends`, which differ, at which the first program parts from the second, with what stands there in that.

        Both are walked down side by side as long as they have the same ops, to where all operands have equals, or the second has a value
        that the first has elsewhere. Where the ops are others it is the terms without an equal whose operands have one.
        """
        found: list[tuple[Term, Term | None]] = []
        others: tuple[list[Term], list[Term]] = ([], [])
        seen: set[Term] = set()
        stack = list(ends)
        while stack:
            one, other = stack.pop()
            if one in seen:
                continue
            seen.add(one)
            below = self._below(one, other)
            if below:
                stack += below
            elif below is not None or other not in self.theirs or other in self.equal[1]:
                found.append((one, other))
            else:
                others[0].append(one)
                others[1].append(other)
        there = _frontier(others[1], self.theirs, self.equal[1])
        return found + [(here, _in_place_of(here, there)) for here in _frontier(others[0], self.ours, self.equal[0])]

    def _below(self, one: Term, other: Term) -> list[tuple[Term, Term]] | None:
        """The pairs of operands of which the first has no equal; None where the terms are of other ops."""
        if one.op is not other.op or len(one.operands) != len(other.operands):
            return None
        orders = [other.operands, other.operands[::-1]] if one.op.has("commutative") else [other.operands]
        order = min(orders, key=lambda order: sum(map(self.differ, one.operands, order)))
        return [pair for pair in zip(one.operands, order, strict=True) if pair[0] in self.ours and pair[0] not in self.equal[0]]

    def apart(self, here: Term, there: Term) -> list[str]:
        """What tells two terms of one op from each other: attributes, or operands."""
        if here.op is not there.op:
            return []
        found = []
        for (name, one), (_, other) in zip(here.attributes, there.attributes, strict=True):
            if one != other:
                short = max(len(str(one)), len(str(other))) <= SHOWN
                found.append(f"{name} is {one} here and {other} there" if short else f"{name} is another")
        for place, (left, right) in enumerate(zip(here.operands, there.operands, strict=False), start=1):
            if left not in self.ours and left is not right:
                found.append(f"operand {place} is another constant")
            elif self.differ(left, right):
                found.append(f"operand {place} is another value")
        return found


def _frontier(roots: Iterable[Term], varying: Prints, equal: Collection[Term]) -> list[Term]:
    """The terms under `roots`, which have no equal, that have none either and are made of such as have one."""
    found: list[Term] = []
    seen: set[Term] = set()
    stack = list(roots)
    while stack:
        term = stack.pop()
        if term in seen:
            continue
        seen.add(term)
        below = [operand for operand in term.operands if operand in varying and operand not in equal]
        stack += below
        found += [] if below else [term]
    return found


def _in_place_of(here: Term, others: Sequence[Term]) -> Term | None:
    """The term of the other program that stands where `here` does: of one op and type, else of one type, else of one op."""
    op = [term for term in others if describe(term) == describe(here)]
    type = [term for term in others if term.type == here.type]
    return next(iter([*(term for term in type if term in op), *type, *op]), None)
