"""Regions: a program cut into pieces that are searched on their own, equal pieces once.

A piece is a stretch of the program in topological order. What it reads of earlier pieces is an input of its own, large
constants of a repeated piece are stand-ins (rules look at types and at small constants only), so that the layers of a
network are one piece. A run of equal pieces is cut where fewest values cross. The first and the last of them stay with
what stands before and after, so that all borders of a run are alike; two neighbours joined, a `NeighbourPair`, are searched beside it:
where that finds more than the piece found twice, the border loses something (see `coset.searching.regionwise`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from coset.egraph.doubled import doubled_axis
from coset.egraph.repeats import Repetition, find_runs
from coset.ir.constants import INLINE_ELEMENTS, Constant
from coset.ir.stored import is_finite
from coset.ir.term import CONSTANT, INPUT, PARAMETER, Term, constant, input_term, rebuild, topological
from coset.ir.types import TensorType

FEWEST_TERMS = 150  # below, the rules take longer to load than the program to search
FEWEST_TIMES = 7  # of a piece: five are searched anyway, at either end of the run, by itself, and two in the pair
LEAST_SAVING = 0.25  # share of the program
BROADCAST = "stablehlo.broadcast_in_dim"
FORBIDDEN = 1 << 20  # width of a border that must not be


@dataclass(frozen=True)
class ProgramRegion:
    """A piece as a program: `roots` over `inputs` and `constants`, which stand for what it is given at each of its places."""

    inputs: tuple[Term, ...]
    constants: tuple[Term, ...]
    roots: tuple[Term, ...]


@dataclass(frozen=True)
class RegionPlace:
    """Where a region occurs: the program's terms that its inputs, constants and roots are there."""

    region: int
    inputs: tuple[Term, ...]
    constants: tuple[Term, ...]
    outputs: tuple[Term, ...]


@dataclass(frozen=True)
class NeighbourPair:
    """Two neighbouring `places` of one region, and the region of both together, `joined`, which is no part of the program."""

    places: tuple[RegionPlace, RegionPlace]
    joined: RegionPlace
    run: Repetition


@dataclass(frozen=True)
class Cut:
    """A program in regions: `places` in order make it up; each run of equal ones has a pair that tests its borders."""

    regions: tuple[ProgramRegion, ...]
    places: tuple[RegionPlace, ...]
    pairs: tuple[NeighbourPair, ...]

    def borders(self, pair: NeighbourPair) -> set[Term]:
        """The terms that leave a place of the pair's run."""
        return {output for place in self.places if place.region == pair.places[0].region for output in place.outputs}


def cut(roots: Sequence[Term], *, whole: Collection[Term] = ()) -> Cut | None:
    """The program in regions, or None where that saves too little. No term of `whole` crosses a border of a run. Linear."""
    pieces = _Pieces(roots)
    if len(pieces.live) < FEWEST_TERMS:
        return None
    found = find_runs(pieces.signs(), FEWEST_TIMES)
    runs = [equal for run in found if (aligned := pieces.aligned(run, whole)) and (equal := pieces.equal(aligned))]
    saved = sum((run.times - 5) * run.period for run in runs)
    return pieces.assemble(runs) if saved >= LEAST_SAVING * len(pieces.live) else None


class _Pieces:
    """The program in order, and what can be said of a stretch of it."""

    def __init__(self, roots: Sequence[Term]) -> None:
        self.roots = dict.fromkeys(roots)
        self.live: list[Term] = []
        # terms that go with whoever uses them, equal ones meet again: those that need no input, and broadcasts, which are views to
        # most users and would be values in memory as outputs of a piece. By what they read of the others.
        self.carried: dict[Term, tuple[Term, ...]] = {}
        self.known: dict[tuple[int, int], tuple[ProgramRegion, RegionPlace]] = {}
        self.users: Counter[Term] = Counter()
        self.last: dict[Term, int] = {}  # place of the last user; a root is no value kept for later, but an output of its piece
        for term in topological(roots):
            read = dict.fromkeys(below for operand in term.operands for below in self.carried.get(operand, (operand,)))
            given = term.op is INPUT or term.op is PARAMETER or term.op.has("effect")
            if not given and (not read or term.op.name == BROADCAST):
                self.carried[term] = tuple(read)
            elif term.op is not INPUT:
                self.users.update(list(read))
                self.last.update(dict.fromkeys(read, len(self.live)))
                self.live.append(term)

    def signs(self) -> list[int]:
        """A number for each live term, equal where op, attributes and type are, and the operands' ops and types."""
        numbers: dict[Any, int] = {}
        signs = []
        for term in self.live:
            below = tuple((operand.op.name, operand.type, operand in self.carried) for operand in term.operands)
            key = (term.op.name, term.exact, term.regions, term.type, below)
            signs.append(numbers.setdefault(key, len(numbers)))
        return signs

    def aligned(self, run: Repetition, whole: Collection[Term]) -> Repetition | None:
        """The run in whole periods that begin where fewest values cross; of equal ones, where those have most users: what is read
        often is made in any case. None where nothing may cross or too few periods are left."""
        period, middle = run.period, run.start + run.period * (run.times // 2)
        width, users = [0] * (2 * period + 1), [0] * (2 * period + 1)
        for place in range(middle - period, middle + period):
            term = self.live[place]
            first, end = max(place + 1, middle), min(self.last.get(term, place), place + period) + 1
            if first < end:
                weight = 1 if isinstance(term.type, TensorType) and term not in whole else FORBIDDEN
                for change, amount in ((width, weight), (users, self.users[term])):
                    change[first - middle] += amount
                    change[end - middle] -= amount
        best, widest, read = (FORBIDDEN, 0, 0), 0, 0
        for offset in range(period):
            widest, read = widest + width[offset], read + users[offset]
            best = min(best, (widest, -read, offset))
        start = run.start + (middle + best[2] - run.start) % period
        times = (run.end - start) // period
        return Repetition(start, start + times * period, period) if best[0] < FORBIDDEN and times >= FEWEST_TIMES else None

    def equal(self, run: Repetition) -> Repetition | None:
        """The longest part of the run whose pieces are one region."""
        best, begin, before = (0, 0), 0, None
        for number in range(run.times):
            start = run.start + number * run.period
            region, _ = self.unnamed(start, start + run.period)
            if region != before:
                begin, before = number, region
            best = max(best, (number + 1 - begin, -begin))
        start = run.start - best[1] * run.period
        return Repetition(start, start + best[0] * run.period, run.period) if best[0] >= FEWEST_TIMES else None

    def unnamed(self, start: int, end: int) -> tuple[ProgramRegion, RegionPlace]:
        """The piece of a run with stand-ins of no name, which is looked at when the run is found and when it is put together."""
        if (start, end) not in self.known:
            self.known[start, end] = self.piece(start, end, "", general=True)
        return self.known[start, end]

    def piece(self, start: int, end: int, name: str, *, general: bool) -> tuple[ProgramRegion, RegionPlace]:
        """The terms from `start` to `end` as a region whose inputs, and if it is `general` large constants, are stand-ins called `name`
        with a number, by first use: equal pieces are equal regions. The number of the region in the place is left open (-1)."""
        made: dict[Term, Term] = {}
        inputs: dict[Term, Term] = {}
        constants: dict[Term, Term] = {}

        def enter(operand: Term) -> None:
            stack = [operand]
            while stack:
                term = stack[-1]
                missing = [below for below in term.operands if below not in made] if term in self.carried else []
                if missing:
                    stack.extend(reversed(missing))
                    continue
                stack.pop()
                if term in made:
                    continue
                if term not in self.carried:
                    made[term] = inputs[term] = input_term(f"{name} input {len(inputs)}", term.type)
                elif general and _unread(term):
                    made[term] = constants[term] = constant(Constant(term.tensor, f"{name} constant {len(constants)}"))
                else:
                    made[term] = rebuild(term, [made[operand] for operand in term.operands])

        outputs = []
        for term in self.live[start:end]:
            for operand in term.operands:
                if operand not in made:
                    enter(operand)
            made[term] = rebuild(term, [made[operand] for operand in term.operands])
            if term in self.roots or self.last.get(term, -1) >= end:
                outputs.append(term)
        if end == len(self.live):
            for root in self.roots:
                if root in self.carried:
                    enter(root)
                    outputs.append(root)
        region = ProgramRegion(tuple(inputs.values()), tuple(constants.values()), tuple(made[term] for term in outputs))
        return region, RegionPlace(-1, tuple(inputs), tuple(constants), tuple(outputs))

    def assemble(self, runs: Sequence[Repetition]) -> Cut:
        """The program in pieces: of each run all but the first and the last one, and what stands between runs."""
        regions: list[ProgramRegion] = []
        places: list[RegionPlace] = []
        pairs: list[NeighbourPair] = []

        def add(start: int, end: int, *, general: bool) -> RegionPlace:
            region, place = self.piece(start, end, f"region {len(regions)}", general=general)
            regions.append(region)
            return RegionPlace(len(regions) - 1, place.inputs, place.constants, place.outputs)

        done = 0
        for run in runs:
            first = run.start + run.period
            places.append(add(done, first, general=False))
            single = add(first, first + run.period, general=True)
            own = [single]
            for start in range(first + run.period, run.end - run.period, run.period):
                _, place = self.unnamed(start, start + run.period)
                own.append(RegionPlace(single.region, place.inputs, place.constants, place.outputs))
            pairs.append(NeighbourPair((own[0], own[1]), add(first, first + 2 * run.period, general=True), run))
            places += own
            done = run.end - run.period
        places.append(add(done, len(self.live), general=False))
        return Cut(tuple(regions), tuple(places), tuple(pairs))


def _unread(term: Term) -> bool:
    """True for a constant whose elements no rule looks at: of floats they look at single numbers, whether all are finite, and whether each
    row holds its numbers twice, of the others at short lists too."""
    if term.op is not CONSTANT:
        return False
    elements = prod(term.tensor.static or ())
    large = elements > INLINE_ELEMENTS or (term.tensor.rank > 0 and term.tensor.dtype.kind == "float")
    return large and is_finite(term.attribute("value")) and doubled_axis(term.attribute("value")) is None


@dataclass(frozen=True)
class Filling:
    """What a region was found to equal: `terms` for its roots. `fill` puts it at a place of the program."""

    region: ProgramRegion
    terms: tuple[Term, ...]
    order: tuple[Term, ...] = field(repr=False)

    @staticmethod
    def of(region: ProgramRegion, terms: Sequence[Term]) -> Filling:
        """A filling, with the order of its terms worked out once."""
        return Filling(region, tuple(terms), tuple(topological(terms)))

    def fill(self, place: RegionPlace, built: dict[Term, Term]) -> dict[Term, Term]:
        """Enter what the outputs of `place` are now into `built` (old term -> new one), which has its inputs; the terms by what they were
        in the region."""
        made = {standin: built.get(actual, actual) for standin, actual in zip(self.region.inputs, place.inputs, strict=True)}
        made.update(zip(self.region.constants, (built.get(actual, actual) for actual in place.constants), strict=True))
        for term in self.order:
            if term not in made:
                made[term] = rebuild(term, [made[operand] for operand in term.operands])
        built.update((output, made[term]) for output, term in zip(place.outputs, self.terms, strict=True))
        return made
