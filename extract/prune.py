"""Makes an extraction problem smaller without losing its best solution, and cuts it into parts that do not touch."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from coset.extract.graphs import connected_components, strong_components
from coset.extract.greedy import tree_order
from coset.extract.problem import Choice, Picks, Problem, needed

INLINED_CHILDREN = 16  # a free class with more children than this stays a class
BITSET_CLASSES = 40_000  # the sets of needed classes take n^2 / 8 bytes
NEAREST, PASSES = 24, 20  # classes of such a set where there are more, and how often sets may shrink before all is given up
ROUNDS = 8  # of dropping, at most; programs were seen to need 3, the last of which drops nothing
PAIRWISE_CHOICES = 200  # above, only choices without children are tried as dominators


@dataclass(frozen=True)
class ProblemPart:
    """A problem of its own: `problem` with classes 0..k-1, which are `classes[i]` of the whole."""

    classes: tuple[int, ...]
    problem: Problem


@dataclass(frozen=True)
class PrunedProblem:
    """Parts whose best solutions make a best solution of `whole`.

    `kept[c]` are the choices that class c still has; every class outside the parts has one.
    """

    whole: Problem
    parts: tuple[ProblemPart, ...]
    kept: Mapping[int, tuple[int, ...]]
    dominator: Mapping[tuple[int, int], int]

    def join(self, solutions: list[Picks]) -> Picks:
        """The whole's picks from one solution for each part (whose choices are numbered as in `kept`)."""
        picks = {number: indices[0] for number, indices in self.kept.items()}
        for part, solution in zip(self.parts, solutions, strict=True):
            for local, index in solution.items():
                number = part.classes[local]
                picks[number] = self.kept[number][index]
        return {number: picks[number] for number in needed(self.whole, picks)}

    def project(self, picks: Picks) -> list[Picks | None]:
        """For each part the solution that `picks` of the whole is there; None where it is none."""
        found: list[Picks | None] = []
        for part in self.parts:
            local: Picks = {}
            for place, number in enumerate(part.classes):
                index = picks.get(number)
                while index is not None and index not in self.kept[number]:
                    index = self.dominator.get((number, index))
                if index is not None:
                    local[place] = self.kept[number].index(index)
            found.append(local if _solves(part.problem, local) else None)
        return found


def _solves(problem: Problem, picks: Picks) -> bool:
    """The picks reach everything that they need (without a cycle, which the whole's picks rule out)."""
    stack, seen = list(problem.roots), set(problem.roots)
    while stack:
        number = stack.pop()
        if number not in picks:
            return False
        for child in problem.classes[number][picks[number]].children:
            if child not in seen:
                seen.add(child)
                stack.append(child)
    return True


def prune(problem: Problem) -> PrunedProblem | None:
    """`problem` without what cannot win, in independent parts; None when a root has no finite choice.

    Dropped: choices that need themselves or something infinite, classes that no root reaches, and choices that another
    one of the class beats at no more cost with no more children. Free classes with one choice are put into their users.
    A class that every solution needs is paid by its own part and free for all others. Each of these makes more of the others,
    so all are done again while that changes anything.
    """
    order, picks, _ = tree_order(problem, [1] * len(problem.classes))
    if any(root not in picks for root in problem.roots):
        return None
    reached = _reachable(problem, picks)
    work: dict[int, Work] = {}
    dominator: dict[tuple[int, int], int] = {}
    inlined: dict[int, frozenset[int]] = {}
    for number in order:  # operands of the picks first, so that most free classes are known before their users
        if number in reached:
            work[number] = _undominated(number, _usable(problem, number, picks, inlined), dominator)
            _inline_if_free(number, work[number], inlined)
    must: set[int] = set(problem.roots)
    live = _live(must, work)
    component: dict[int, int] = {}
    for _ in range(ROUNDS):
        before = sum(len(work[number]) for number in live), len(live), len(must), len(inlined)
        for number in [number for number in order if number in live]:
            again = ((index, cost, _reduced(number, own, inlined, must, component)) for index, (cost, own) in work[number].items())
            usable = {index: (cost, children) for index, cost, children in again if number not in children}
            work[number] = _undominated(number, usable, dominator)
            _inline_if_free(number, work[number], inlined)
        live = _live(must, work)
        must |= _must(must, work, [number for number in order if number in live])
        component = _components_strong(work, live)
        if before == (sum(len(work[number]) for number in live), len(live), len(must), len(inlined)):
            break
    kept = {number: tuple(sorted(choices)) for number, choices in work.items()}
    return PrunedProblem(problem, _parts(work, live, must, component), kept, dominator)


def _reduced(
    number: int, children: frozenset[int], inlined: Mapping[int, frozenset[int]], must: set[int], component: Mapping[int, int]
) -> frozenset[int]:
    """What a choice still has to pay for. A cycle lies within one strong component, so only there must a class that is needed in any
    case stay a child."""
    left = _expand(children, inlined)
    if left.isdisjoint(must):
        return left
    return frozenset(c for c in left if c not in must or component.get(c) == component.get(number))


def _reachable(problem: Problem, finite: Picks) -> set[int]:
    seen = set(problem.roots)
    stack = list(seen)
    while stack:
        number = stack.pop()
        for entry in problem.classes[number]:
            if number in entry.children or not all(child in finite for child in entry.children):
                continue
            for child in entry.children:
                if child not in seen:
                    seen.add(child)
                    stack.append(child)
    return seen


Work = dict[int, tuple[float, frozenset[int]]]  # choice -> cost, children


def _expand(children: frozenset[int], inlined: Mapping[int, frozenset[int]]) -> frozenset[int]:
    if not any(child in inlined for child in children):
        return children
    return frozenset(grandchild for child in children for grandchild in inlined.get(child, (child,)))


def _usable(problem: Problem, number: int, finite: Picks, inlined: Mapping[int, frozenset[int]]) -> Work:
    found: Work = {}
    for index, entry in enumerate(problem.classes[number]):
        if all(child in finite for child in entry.children):
            children = _expand(frozenset(entry.children), inlined)
            if number not in children and number not in entry.children:
                found[index] = (entry.cost, children)
    return found


def _undominated(number: int, usable: Work, dominator: dict[tuple[int, int], int]) -> Work:
    """Without the choices that another beats; ties stay with the lower index."""
    ranked = sorted(usable, key=lambda index: (len(usable[index][1]), usable[index][0], index))
    kept: list[int] = []
    few = len(usable) <= PAIRWISE_CHOICES
    for index in ranked:
        cost, children = usable[index]
        rivals = kept if few else kept[:1]  # the cheapest without children, if there is one, beats what any other of them does
        winner = next((k for k in rivals if usable[k][0] <= cost and usable[k][1] <= children), None)
        if winner is None:
            kept.append(index)
        else:
            dominator[number, index] = winner
    return {index: usable[index] for index in sorted(kept)}


def _inline_if_free(number: int, choices: Work, inlined: dict[int, frozenset[int]]) -> None:
    if len(choices) == 1:
        ((cost, children),) = choices.values()
        if cost == 0 and len(children) <= INLINED_CHILDREN:
            inlined[number] = children


def _parts(work: Mapping[int, Work], live: set[int], must: set[int], component: Mapping[int, int]) -> tuple[ProblemPart, ...]:
    """Connected components once the classes that every solution needs are roots of their own."""
    inner: dict[int, list[tuple[float, frozenset[int]]]] = {}
    for number in sorted(live):
        inner[number] = [(cost, _reduced(number, children, {}, must, component)) for _, (cost, children) in sorted(work[number].items())]
    links = ((number, child) for number, choices in inner.items() for _, children in choices for child in children)
    parts = []
    for members in sorted(sorted(group) for group in connected_components(links, inner)):
        place = {number: local for local, number in enumerate(members)}
        classes = tuple(tuple(Choice(cost, tuple(sorted(place[c] for c in children))) for cost, children in inner[n]) for n in members)
        parts.append(ProblemPart(tuple(members), Problem(classes, tuple(place[n] for n in members if n in must))))
    return tuple(parts)


def _live(roots: set[int], work: Mapping[int, Work]) -> set[int]:
    seen, stack = set(roots), sorted(roots)
    while stack:
        for _, children in work[stack.pop()].values():
            for child in children - seen:
                seen.add(child)
                stack.append(child)
    return seen


def _components_strong(work: Mapping[int, Work], live: set[int]) -> dict[int, int]:
    edges = ((number, child) for number in sorted(live) for _, children in work[number].values() for child in children)
    return {number: place for place, group in enumerate(strong_components(edges, sorted(live))) for number in group}


def _must(roots: set[int], work: Mapping[int, Work], order: list[int]) -> set[int]:
    """Classes that every solution picks: those of every derivation of a root.

    must(c) = {c} and, over all choices, what they have in common of the union of must(child); any fixed point is sound,
    by induction on the derivation. Sets are the bits of integers.
    """
    if len(order) > BITSET_CLASSES:
        return _must_of_the_nearest(roots, work, order)
    place = {number: bit for bit, number in enumerate(order)}
    everything = (1 << len(order)) - 1
    sets = [everything] * len(order)
    changed = True
    while changed:
        changed = False
        for number in order:
            common = everything
            for _, children in work[number].values():
                union = 0
                for child in children:
                    union |= sets[place[child]]
                common &= union
            found = common | 1 << place[number]
            if found != sets[place[number]]:
                sets[place[number]] = found
                changed = True
    total = 0
    for root in roots:
        total |= sets[place[root]]
    return {number for number in order if total >> place[number] & 1}


def _must_of_the_nearest(roots: set[int], work: Mapping[int, Work], order: list[int]) -> set[int]:
    """As `_must`, in about linear time, with sets of at most `NEAREST` classes, those fewest steps below: what such a set has no room
    for is found by way of those that it has. First, what comes later in the order is left out; then the sets shrink until they hold."""
    sets: dict[int, frozenset[int]] = {}
    far: dict[int, dict[int, int]] = {}  # of a class: how far below it those of its set are
    users: dict[int, list[int]] = {number: [] for number in order}
    for number in order:
        for child in sorted(frozenset().union(*(children for _, children in work[number].values()))):
            users[child].append(number)
        steps: dict[int, int] = {}
        known = next(children for _, children in work[number].values() if all(child in sets for child in children))
        for child in known:
            for other, distance in far[child].items():
                steps[other] = min(steps.get(other, distance + 1), distance + 1)
        common = _common(work[number], sets) - {number}
        near = sorted(common, key=lambda other: (steps[other], other))[: NEAREST - 1]
        sets[number] = frozenset((number, *near))
        far[number] = {number: 0, **{other: steps[other] for other in near}}
    queue, queued = deque(order), set(order)
    for _ in range(PASSES * len(order)):
        if not queue:
            break
        number = queue.popleft()
        queued.discard(number)
        found = sets[number] & (_common(work[number], sets) | {number}) if len(sets[number]) > 1 else sets[number]
        if found != sets[number]:
            sets[number] = found
            queue.extend(user for user in users[number] if user not in queued)
            queued.update(users[number])
    if queue:
        return set(roots)
    seen, stack = set(roots), sorted(roots)
    while stack:
        for child in sorted(sets[stack.pop()] - seen):
            seen.add(child)
            stack.append(child)
    return seen


def _common(choices: Work, sets: Mapping[int, frozenset[int]]) -> frozenset[int]:
    """What all choices whose children have sets need."""
    common: frozenset[int] | None = None
    for _, children in choices.values():
        if all(child in sets for child in children):
            needs = frozenset().union(*(sets[child] for child in children))
            common = needs if common is None else common & needs
            if not common:
                break
    return common or frozenset()
