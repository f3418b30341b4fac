"""Two programs of any origin side by side: which of their values are one, by equal terms and by the classes of a short search of both."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import coset.dialects
from coset.comparing.feeds import Feed, cases
from coset.egraph.limits import Limits
from coset.egraph.saturate import saturate
from coset.ir.errors import CosetError
from coset.ir.program import Program
from coset.ir.program_source import source_of
from coset.ir.term import Term, topological
from coset.job.own_rules import NO_RULES, OwnRules
from coset.job.phases import permitted_phases, with_witnesses
from coset.prove.contents import by_content, dims_by_content, fitted
from coset.proving.alike import counts
from coset.proving.interface import in_order, paired
from coset.proving.join import joined_apart, kind_of
from coset.proving.parts import PARTS
from coset.proving.prints import Shelf, known_by
from coset.proving.refute import PairedNames
from coset.reporting.drawing import kinds_in_file, side_by_side
from coset.reporting.matching import CHANGED, KEPT, NEW, REMOVED, Match, beside

assert coset.dialects  # imported so that every op and definition is registered

MOST_TERMS = 6_000  # of both programs, up to which they are searched
SEARCH = Limits(nodes=100_000, iterations=6)
PIECE = Limits(seconds=2.0, nodes=20_000, iterations=6)
STRUCTURE = "equal terms"


@dataclass(frozen=True)
class Compared:
    """Two programs by content, the inputs and outputs of the second called as in the first where `interface` has them in pairs; what their
    values, and the ops that compute them, are called where they came from; and how they belong together."""

    programs: tuple[Program, Program]
    names: tuple[Mapping[Term, str], Mapping[Term, str]]
    kinds: tuple[Mapping[str, str], Mapping[str, str]]
    match: Match
    interface: PairedNames | None

    def graphs(self) -> dict[str, Any]:
        """Both as the page draws them."""
        return side_by_side(self.programs, self.names, self.match, (None, None), self.kinds)


def compared(
    first: Program, second: Program, binding: Mapping[str, int], *, numerics: str = "reassociates", seconds: float = 5.0,
    own: OwnRules = NO_RULES,
) -> Compared:  # fmt: skip
    """How two programs belong together. Rules, the user's `own` too, run for so many `seconds`, and both are evaluated on a drawn input,
    with the numbers of `binding` for dims; neither where that is 0, or where all outputs are equal terms.

    Raises:
        CosetError: a constant cannot be read, or there are no such numerics.
    """
    interface, called, alone = None, second, ""
    try:
        called = fitted(second, first)  # a dim is called otherwise in another file
        interface, _ = paired(first, called, {})
        called = in_order(first, called, interface)
    except CosetError as error:
        alone = f"; inputs and outputs do not correspond: {error.message}"
    programs = dims_by_content(by_content(first)), dims_by_content(by_content(called))
    names = _names(first, programs[0]), _names(called, programs[1], second)
    if not seconds or interface is None or programs[0].roots == programs[1].roots:
        why = " only: no rules were run" if not seconds else ""
        found = _match(programs, _Classes(programs), f"{STRUCTURE}{why}{alone}")
    else:
        found = _looked_for(programs, first, binding, numerics, seconds, own)
    return Compared(programs, names, (kinds_in_file(first), kinds_in_file(second)), found, interface)


def _names(program: Program, content: Program, origin: Program | None = None) -> dict[Term, str]:
    """What the values of `content`, which is `program` by content, are called where they come from."""
    given: dict[Term, str] = dict(source_of(program).names)
    if origin is not None and origin is not program:
        renamed = beside(origin.roots, program.roots) if len(origin.roots) == len(program.roots) else {}
        given |= {renamed[term]: name for term, name in source_of(origin).names.items() if term in renamed}
    return {other: given[term] for term, other in beside(program.roots, content.roots).items() if term in given}


class _Classes:
    """Terms of two programs by class: equal terms, what was said to be equal, and what is made of equals in one way."""

    def __init__(self, programs: tuple[Program, Program]) -> None:
        self.sides = tuple(list(topological(program.roots)) for program in programs)
        self.over: dict[Term, Term] = {}

    def find(self, term: Term) -> Term:
        """The term that stands for the class of `term`."""
        root = term
        while root in self.over:
            root = self.over[root]
        while term in self.over:  # the next time it is near
            self.over[term], term = root, self.over[term]
        return root

    def join(self, one: Term, other: Term) -> None:
        """These are equal."""
        roots = self.find(one), self.find(other)
        if roots[0] is not roots[1]:
            self.over[roots[1]] = roots[0]

    def key(self, term: Term) -> Hashable:
        """What a term is over classes: two with one key are equal."""
        return kind_of(term), tuple(self.find(operand) for operand in term.operands)

    def parts(self, one: Term, other: Term) -> bool:
        """Join two terms that are equal, one of each side, those below them first; whether they are made of equals in another way."""
        if self.find(one) is self.find(other):
            return False
        alike = kind_of(one) == kind_of(other) and len(one.operands) == len(other.operands)
        alike = alike and all(map(self._moved, one.operands, other.operands))
        self.join(one, other)
        return not alike

    def _moved(self, one: Term, other: Term) -> bool:
        """Whether two terms are equal, or equals that are moved in one way."""
        while self.find(one) is not self.find(other):
            if not one.op.has("movement") or len(one.operands) != 1 or kind_of(one) != kind_of(other):
                return False
            one, other = one.operands[0], other.operands[0]
        return True

    def close(self) -> None:
        """Join what is made of equals in one way."""
        known: dict[Hashable, Term] = {}
        for term in dict.fromkeys(term for side in self.sides for term in side):
            if term.operands:
                self.join(known.setdefault(self.key(term), term), term)

    def numbers(self) -> tuple[dict[Term, int], dict[Term, int]]:
        """The number of the class of each term of either side, from 1."""
        given: dict[Term, int] = {}
        one, other = ({term: given.setdefault(self.find(term), len(given) + 1) for term in side} for side in self.sides)
        return one, other


def _match(programs: tuple[Program, Program], classes: _Classes, by: str) -> Match:
    """What is in both programs, in one way or in two, and what is in one alone."""
    before, after = classes.numbers()
    keys = [{(side[term], classes.key(term) if term.operands else term) for term in side} for side in (before, after)]

    def states(here: Mapping[Term, int], there: Mapping[Term, int], ways: Set[Hashable], lone: str) -> dict[Term, str]:
        shared = set(there.values())
        way = {term: (number, classes.key(term) if term.operands else term) for term, number in here.items()}
        return {term: KEPT if way[term] in ways else CHANGED if number in shared else lone for term, number in here.items()}

    return Match(before, after, (states(before, after, keys[1], REMOVED), states(after, before, keys[0], NEW)), by=by)


def _looked_for(
    programs: tuple[Program, Program], first: Program, binding: Mapping[str, int], numerics: str, seconds: float, own: OwnRules
) -> Match:
    """The match by a search of both programs in one e-graph, and by values on a drawn input; it says what rests on which."""
    end = time.monotonic() + seconds
    classes = _Classes(programs)
    many = len({*classes.sides[0], *classes.sides[1]})
    phases = with_witnesses(permitted_phases(own, numerics, lambda rule: not rule.recognises), numerics)
    if many > MOST_TERMS:
        words = f"{STRUCTURE}, as {many} terms are too many to search"
    else:
        limits = Limits(seconds=seconds, nodes=SEARCH.nodes, iterations=SEARCH.iterations)
        found = saturate([*programs[0].roots, *programs[1].roots], [phase for phase in phases if phase.name != PARTS], limits)
        stands: dict[int, Term] = {}
        for term, (number, _) in found.source.items():
            classes.join(stands.setdefault(number, term), term)
        ended = "" if found.stop == "saturated" else f" (it ended by its limit: {found.stop})"
        words = f"the e-classes of a search with rules that promise {numerics} or better{ended}"
    left = max(0.0, end - time.monotonic())
    classes.close()
    shown = _shared(classes)
    pairs = list(_of_one_value(programs, next(cases(first, binding)).feed))
    unlike = [pair for pair in pairs if classes.parts(*pair)]
    classes.close()
    goals = list(zip(programs[0].roots, programs[1].roots, strict=True))
    joined = len(joined_apart(goals, pairs, unlike, phases, limits=PIECE, seconds=left))
    follow = len(_shared(classes) - shown) - len(unlike)
    parts = [f"{joined} pairs by rules over the pairs below them"] if joined else []
    parts += [f"{len(unlike) - joined} by their values on one drawn input only"] if len(unlike) > joined else []
    parts += [f"{follow} that are made of such in one way"] if follow > 0 else []
    return _match(programs, classes, "; ".join([words, ", ".join(parts)]) if parts else words)


def _of_one_value(programs: tuple[Program, Program], feed: Feed) -> Iterator[tuple[Term, Term]]:
    """Terms of both programs whose values on `feed` are no further apart than rounding errors in every node may put them, each of the
    second once where that can be; none where the evaluator does not know the values."""
    try:
        ours, theirs = (known_by(program, feed) for program in programs)
        moved = known_by(programs[0], feed, noisy=True)
    except (CosetError, ValueError):
        return
    shelf = Shelf((term.type, own, term) for term, own in theirs.items() if counts(term))
    taken: set[Term] = set()
    for term, own in ours.items():
        if not counts(term):
            continue
        kind = kind_of(term)
        near = [(kind_of(other) != kind, other in taken, own.distance(print_), other)
                for print_, other in shelf.near(term.type, own, own.allowed(moved.get(term)))]  # fmt: skip
        if near:
            found = min(near, key=lambda each: each[:3])[3]
            taken.add(found)
            yield term, found


def _shared(classes: _Classes) -> set[Term]:
    """The terms of the first program that the second has equals of."""
    theirs = {classes.find(term) for term in classes.sides[1]}
    return {term for term in classes.sides[0] if classes.find(term) in theirs}


def summary(found: Compared, graphs: Mapping[str, Any]) -> dict[str, Any]:
    """How many nodes are in both programs and in one alone, what that rests on, and the first node of the first program that the second has
    no value of, though it has all that this is made of."""
    counts = [Counter(graphs[side]["nodes"].get("state", ())) for side in ("before", "after")]
    return {
        "nodes": {
            "first": counts[0].total(), "second": counts[1].total(), "only_first": counts[0][REMOVED], "only_second": counts[1][NEW],
            "both": [each[KEPT] + each[CHANGED] for each in counts],
        },
        "matched_by": found.match.by,
        "first_unmatched": _first_alone(graphs["before"]),
    }  # fmt: skip


def _first_alone(graph: Mapping[str, Any]) -> str | None:
    nodes = graph["nodes"]
    states: Sequence[str] = nodes.get("state", ())
    below = {target for source, target, *_ in graph["edges"] if states[source] == REMOVED}
    for node, state in enumerate(states):
        if state == REMOVED and node not in below:
            name = nodes["name"][node]
            return f"`{graph['ops'][nodes['op'][node]]}` {graph['types'][nodes['type'][node]]}" + (f" (`{name}`)" if name else "")
    return None
