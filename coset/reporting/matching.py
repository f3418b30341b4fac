"""Which terms of a program and of what was made of it are one value: those in one e-class of the search."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from coset.egraph.regions import Filling, RegionPlace
from coset.egraph.saturated import Saturated
from coset.ir.term import INPUT, Term, exact_key, topological
from coset.searching.regionwise import RegionPart, Solved

KEPT, CHANGED, NEW, REMOVED = "kept", "changed", "new", "removed"
STATES = (KEPT, CHANGED, NEW, REMOVED)
MOST_RULES = 3  # that are named for one node


@dataclass(frozen=True)
class Match:
    """How two programs belong together: terms with one number in `before` and `after` are one value. `states`: what became of each
    term of either side; `rules`: the names of those that made a term that the first has not. `by`: what the classes are from."""

    before: Mapping[Term, int]
    after: Mapping[Term, int]
    states: tuple[Mapping[Term, str], Mapping[Term, str]]
    rules: Mapping[Term, Sequence[str]] = field(default_factory=dict)
    by: str = "the e-classes of the search"


def matched(roots: Sequence[Term], solved: Solved, final: Sequence[Term]) -> Match:
    """The match of the program of `roots` and `final`, which is what was chosen with its constants computed."""
    if solved.terms == tuple(roots):
        return _finished(structural(roots, solved.terms), solved, final)
    matching = _Matching(solved)
    for part, place in _in_order(roots, solved.parts):
        matching.enter(part, place)
    return _finished(matching.match(roots), solved, final)


def structural(one: Sequence[Term], other: Sequence[Term], *, by: str = "equal terms") -> Match:
    """The match of two programs in which only equal terms, which are one object, are one value."""
    sides = tuple(dict.fromkeys(topological(roots)) for roots in (one, other))
    numbers: dict[Term, int] = {}
    for side in sides:
        for term in side:
            numbers.setdefault(term, len(numbers))
    before, after = ({term: numbers[term] for term in side} for side in sides)
    states = tuple(
        {term: KEPT if term in there else lone for term in here}
        for here, there, lone in ((sides[0], sides[1], REMOVED), (sides[1], sides[0], NEW))
    )
    return Match(before, after, (states[0], states[1]), by=by)


def called(one: Sequence[Term], other: Sequence[Term], names: tuple[Mapping[Term, str], Mapping[Term, str]]) -> Match:
    """The match of two programs in which equal terms are one value, and values of one name: for what was searched in parts."""
    match = structural(one, other, by="names: parts were searched apart")
    before, after, states = dict(match.before), dict(match.after), (dict(match.states[0]), dict(match.states[1]))
    ours = {name: term for term, name in names[0].items() if states[0].get(term) == REMOVED}
    for term, name in names[1].items():
        if states[1].get(term) == NEW and name in ours:
            was = ours.pop(name)
            after[term] = before[was]
            same = was.op is term.op and exact_key(was.attributes) == exact_key(term.attributes)
            states[0][was] = states[1][term] = KEPT if same else CHANGED
    return Match(before, after, states, match.rules, match.by)


def _in_order(roots: Sequence[Term], parts: Sequence[RegionPart]) -> list[tuple[RegionPart, RegionPlace | None]]:
    """Each part at each of its places, those first that others read."""
    if any(part.region is None for part in parts):
        return [(part, None) for part in parts]
    position = {term: place for place, term in enumerate(topological(roots))}
    found = [(part, place) for part in parts for place in part.places]
    found.sort(key=lambda each: max((position[output] for output in each[1].outputs), default=0))
    return [*found]


def _finished(match: Match, solved: Solved, final: Sequence[Term]) -> Match:
    """`match` for the program `final`, whose terms stand where those of `solved` do."""
    stands = beside(solved.terms, final)

    def moved(values: Mapping[Term, object]) -> dict[Term, object]:
        return {stands[term]: value for term, value in values.items() if term in stands}

    after, states, rules = moved(match.after), moved(match.states[1]), moved(match.rules)
    return Match(match.before, after, (match.states[0], states), rules, match.by)  # type: ignore[arg-type]


def beside(chosen: Sequence[Term], final: Sequence[Term]) -> dict[Term, Term]:
    """For each term under `chosen` the one that stands in its place under `final`; below a value that was computed there is none."""
    found: dict[Term, Term] = {}
    stack = list(zip(chosen, final, strict=True))
    while stack:
        term, other = stack.pop()
        if term in found:
            continue
        found[term] = other
        if term.op is other.op and len(term.operands) == len(other.operands):
            stack += zip(term.operands, other.operands, strict=True)
    return found


class _Matching:
    """The match in the making, place by place."""

    def __init__(self, solved: Solved) -> None:
        self.solved = solved
        self.built: dict[Term, Term] = {}
        self.before: dict[Term, int] = {}
        self.after: dict[Term, int] = {}
        self.states: tuple[dict[Term, str], dict[Term, str]] = ({}, {})
        self.rules: dict[Term, Sequence[str]] = {}
        self.entered = tuple(dict.fromkeys(each.rule.name for each in solved.entered if each.rule is not None))
        self.count = 0
        self.known: dict[int, tuple[dict[Term, tuple[int, int]], tuple[Filling, Filling] | None]] = {}  # by the id of a part

    def enter(self, part: RegionPart, place: RegionPlace | None) -> None:
        """What a part is at a place, or as the whole program."""
        chosen, fillings = self._of(part)
        if fillings is None or place is None:
            ours, theirs = ({term: term for term in order} for order in (part.source, chosen))
        else:
            ours, theirs = fillings[0].fill(place, {}), fillings[1].fill(place, self.built)
        numbers: dict[int, int] = {}
        for term, (eclass, _) in part.source.items():
            actual = ours[term]
            number = self.before.get(actual)  # a constant, or a broadcast, that is part of other places too
            if number is None:
                number = self.before[actual] = numbers.setdefault(eclass, self._next())
            numbers.setdefault(eclass, number)
        positions = {where[0]: where[1] for where in chosen.values()}
        standins = set() if part.region is None else {*part.region.inputs, *part.region.constants}
        for term, (eclass, position) in part.source.items():
            if term not in standins:
                state = REMOVED if eclass not in positions else KEPT if positions[eclass] == position else CHANGED
                if self.states[0].get(ours[term]) != KEPT:
                    self.states[0][ours[term]] = state
        original = dict.fromkeys(part.source.values())
        for term, where in chosen.items():
            actual = theirs[term]
            if term in standins or self.states[1].get(actual) == KEPT:
                continue
            known = where[0] in numbers
            self.after[actual] = numbers.setdefault(where[0], self._next())
            self.states[1][actual] = KEPT if where in original else CHANGED if known else NEW
            if where not in original:
                made = self.solved.saturation.origins.get(where, ())
                names = [self.solved.saturation.rules[number].name for number in made[:MOST_RULES]]
                self.rules[actual] = names or self.entered

    def _of(self, part: RegionPart) -> tuple[dict[Term, tuple[int, int]], tuple[Filling, Filling] | None]:
        """Where the terms that were chosen for a part are in the whole e-graph, and how both forms of it are put at a place."""
        if id(part) not in self.known:
            assert part.selection.choices is not None
            found = dict(_found(part.selection.terms, part.selection.choices.saturated))
            chosen = {term: (part.numbers[eclass], position) for term, (eclass, position) in found.items()}
            region = part.region
            fillings = None if region is None else (Filling.of(region, region.roots), Filling.of(region, part.selection.terms))
            self.known[id(part)] = chosen, fillings
        return self.known[id(part)]

    def _next(self) -> int:
        self.count += 1
        return self.count

    def match(self, roots: Sequence[Term]) -> Match:
        """What was found, with the inputs of the program, which are none of a region."""
        for term in topological(roots):
            if term.op is INPUT and term not in self.states[0]:
                self.after[term] = self.before.setdefault(term, self._next())
                self.states[0][term] = self.states[1][term] = KEPT
        return Match(self.before, self.after, self.states, self.rules)


def _found(roots: Sequence[Term], graph: Saturated) -> Iterator[tuple[Term, tuple[int, int]]]:
    """Where each term under `roots` is in an e-graph that holds them: its class, and its place among the e-nodes there."""
    index: dict[Hashable, tuple[int, int]] = {}
    for number, nodes in enumerate(graph.nodes):
        for position, node in enumerate(nodes):
            index.setdefault((node.op, exact_key(node.attributes), node.regions, node.children), (number, position))
    classes: dict[Term, int] = {}
    for term in topological(roots):
        operands = tuple(classes.get(operand, -1) for operand in term.operands)
        where = index.get((term.op, exact_key(term.attributes), term.regions, operands))
        if where is not None:
            classes[term] = where[0]
            yield term, where
