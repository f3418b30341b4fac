"""Two machines in one extraction problem: what the accelerator has no form for is computed by its host, at the price of the transfers.

Each class has four faces beside those of `faces.py`: computed here, computed on the host, and at hand here or there, which is either what
was computed there itself or what the other side sent. At hand never leads back to at hand, so that no value goes to and fro and the
problem has no cycle that the e-graph has not. Inputs come from the host and outputs go to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from coset.egraph.saturated import Saturated
from coset.extract.cost import Pricer
from coset.extract.faces import ITSELF, Faces, Origin, faces_of
from coset.extract.problem import Choice, Picks, Problem, needed
from coset.extract.solve import SolveEffort, solve
from coset.extract.storage import Folded
from coset.ir.evaluate import describe
from coset.ir.term import INPUT, intern
from coset.targets.target import Target, get_target

TRANSFER = "transfer"  # the kernel of a target with a host that moves a value between them
NOWHERE = "it is cheaper there"


@dataclass(frozen=True)
class Hosted:
    """An op that the host computes: what keeps the target from it, how often, and the seconds that it takes there."""

    op: str
    reason: str
    count: int
    seconds: float


@dataclass(frozen=True)
class Placement:
    """Where a program runs: what is on the host, how many nodes are not, and the values that cross, with their seconds."""

    hosted: tuple[Hosted, ...] = ()
    here: int = 0
    transfers: int = 0
    bytes: float = 0.0
    seconds: float = 0.0

    def times(self, count: int) -> Placement:
        """The same at `count` places."""
        hosted = tuple(Hosted(h.op, h.reason, h.count * count, h.seconds * count) for h in self.hosted)
        return Placement(hosted, self.here * count, self.transfers * count, self.bytes * count, self.seconds * count)

    def __add__(self, other: Placement) -> Placement:
        merged: dict[tuple[str, str], Hosted] = {}
        for h in (*self.hosted, *other.hosted):
            known = merged.get((h.op, h.reason), Hosted(h.op, h.reason, 0, 0.0))
            merged[h.op, h.reason] = Hosted(h.op, h.reason, known.count + h.count, known.seconds + h.seconds)
        return Placement(
            tuple(merged[key] for key in sorted(merged)), self.here + other.here, self.transfers + other.transfers,
            self.bytes + other.bytes, self.seconds + other.seconds,
        )  # fmt: skip


@dataclass(frozen=True)
class Machines:
    """A target's prices, and those of its host where it has one."""

    pricer: Pricer
    host: Pricer | None

    @staticmethod
    def of(target: Target, binding: Mapping[str, int], printable: Callable[..., str | None] | None) -> Machines:
        """The prices of both under one binding of the dim symbols."""
        host = None if target.host is None else Pricer(get_target(target.host), binding, printable=printable)
        return Machines(Pricer(target, binding, printable=printable), host)

    def faces(self, saturated: Saturated, constants: Folded) -> Faces:
        """The problem of both together, or of the target alone."""
        own = faces_of(saturated, self.pricer, constants)
        return own if self.host is None else self._together(saturated, own, faces_of(saturated, self.host, constants))

    def runs(self, saturated: Saturated, number: int, index: int) -> bool:
        """Whether one of them has a form for an e-node."""
        node, result = saturated.nodes[number][index], saturated.types[number]
        types = tuple(saturated.types[child] for child in node.children)
        both = (self.pricer, self.host)
        return any(each and each.form(node.op, node.attributes, result, types, original=node.original) is not None for each in both)

    def _transfer(self, saturated: Saturated, number: int) -> float:
        """Seconds to move the value of a class."""
        kernel = self.pricer.target.kernels[TRANSFER]
        size = self.pricer.sizes.bytes(saturated.types[number])
        return kernel.launch.value + (size / kernel.bandwidth.at(size) if kernel.bandwidth is not None and size else 0.0)

    def _together(self, saturated: Saturated, own: Faces, there: Faces) -> Faces:
        layout = _Layout(len(saturated.nodes), len(own.origins), len(there.origins))
        classes: list[list[Choice]] = [[] for _ in range(layout.size)]
        origins: list[list[Origin]] = [[] for _ in range(layout.size)]
        for faces, shift, made in ((own, 0, layout.here), (there, layout.own, layout.there)):
            for face, (choices, sources) in enumerate(zip(faces.problem.classes, faces.origins, strict=True)):
                for choice, origin in zip(choices, sources, strict=True):
                    if shift == 0 and _is_input(saturated, origin):
                        continue
                    place = made + face if face < layout.count else shift + face
                    classes[place].append(Choice(choice.cost, tuple(child + shift for child in choice.children)))
                    origins[place].append(Origin(origin.eclass, origin.node, tuple(child + shift for child in origin.operands)))
        for number in range(layout.count):
            moved = self._transfer(saturated, number)
            computed = (layout.here + number, layout.there + number)
            for place, (near, far) in ((number, computed), (layout.own + number, computed[::-1])):
                for source, cost in ((near, 0.0), (far, moved)):
                    if classes[source]:
                        classes[place].append(Choice(cost, (source,)))
                        origins[place].append(Origin(number, ITSELF, (source,)))
        roots = tuple(layout.own + root for root in own.problem.roots)
        return _Together(Problem([tuple(choices) for choices in classes], roots), origins, layout, (own, there))

    def without_transfers(self, faces: Faces, effort: SolveEffort) -> tuple[Picks | None, float]:
        """The program that is cheapest where values cross for nothing, placed as well as it can be: a start for the search of the whole;
        and what it costs at least, which nothing undercuts where values cross at a price. Nothing and 0 where there is one machine."""
        if not isinstance(faces, _Together):
            return None, 0.0
        relaxed, chosen_by = faces.relaxed()
        free = solve(relaxed, effort)
        if free is None:
            return None, 0.0
        node_of = {number: chosen_by[number][index] for number, index in free.picks.items() if number < faces.layout.count}
        kept = [
            [
                index
                for index, origin in enumerate(origins)
                if face < faces.layout.here or origin.node < 0 or node_of.get(origin.eclass) == origin.node
            ]
            for face, origins in enumerate(faces.origins)
        ]
        classes = [[choices[index] for index in indices] for choices, indices in zip(faces.problem.classes, kept, strict=True)]
        placed = solve(Problem(classes, faces.problem.roots), effort)
        picks = None if placed is None else {face: kept[face][index] for face, index in placed.picks.items()}
        return picks, free.lower_bound

    def placement(self, saturated: Saturated, faces: Faces, constants: Folded, picks: Picks) -> Placement:
        """Where the choices `picks` of `faces` run."""
        total = Placement()
        if not isinstance(faces, _Together):
            return total
        layout = faces.layout
        for face in needed(faces.problem, picks):
            choice, origin = faces.problem.classes[face][picks[face]], faces.origins[face][picks[face]]
            if layout.is_at_hand(face):
                if layout.is_far(face, origin.operands[0]) and not _is_free(saturated, constants, origin.eclass):
                    total += Placement((), 0, 1, self.pricer.sizes.bytes(saturated.types[origin.eclass]), choice.cost)
            elif origin.node >= 0 and choice.cost > 0:
                total += Placement((self._hosted(saturated, origin, choice.cost),)) if layout.is_there(face) else Placement(here=1)
        return total

    def hosted(self, faces: Faces, picks: Picks) -> frozenset[int]:
        """The classes that the host computes under the choices `picks`."""
        if not isinstance(faces, _Together):
            return frozenset()
        chosen = [(face, faces.origins[face][index], faces.problem.classes[face][index].cost) for face, index in picks.items()]
        return frozenset(origin.eclass for face, origin, cost in chosen if cost > 0 and origin.node >= 0 and faces.layout.is_there(face))

    def computed(self, faces: Faces, picks: Picks) -> dict[int, bool]:
        """The classes that a node computes under the choices `picks`, inputs and constants aside: True for those that the host alone
        computes."""
        assert isinstance(faces, _Together)
        found: dict[int, bool] = {}
        for face in needed(faces.problem, picks):
            origin = faces.origins[face][picks[face]]
            if origin.node >= 0 and origin.operands:
                found[origin.eclass] = found.get(origin.eclass, True) and faces.layout.is_there(face)
        return found

    def _hosted(self, saturated: Saturated, origin: Origin, seconds: float) -> Hosted:
        node = saturated.nodes[origin.eclass][origin.node]
        types = tuple(saturated.types[child] for child in node.children)
        result = saturated.types[origin.eclass]
        legal = self.pricer.form(node.op, node.attributes, result, types, original=node.original) is not None
        reason = NOWHERE if legal else self.pricer.why_illegal(node.op, node.attributes, types)
        return Hosted(describe(intern(node.op, (), node.attributes, node.regions, result)), reason, 1, seconds)


@dataclass(frozen=True)
class _Layout:
    """Where the faces of both problems are: `count` classes; the target's `own` faces from 0, whose first are what is at hand here; the
    host's after them, in the same way; then what is computed here, and what is computed there."""

    count: int
    own: int
    other: int

    @property
    def here(self) -> int:
        return self.own + self.other

    @property
    def there(self) -> int:
        return self.here + self.count

    @property
    def size(self) -> int:
        return self.there + self.count

    def is_at_hand(self, face: int) -> bool:
        return face < self.count or self.own <= face < self.own + self.count

    def is_there(self, face: int) -> bool:
        return face >= self.there or self.own <= face < self.here

    def is_far(self, face: int, source: int) -> bool:
        return self.is_there(face) != self.is_there(source)


@dataclass(frozen=True)
class _Together(Faces):
    """The problem of a target and its host."""

    layout: _Layout
    machines: tuple[Faces, Faces]  # each by itself, the target first

    def relaxed(self) -> tuple[Problem, list[list[int]]]:
        """The problem where a value is at hand on both machines once it is on one, and the e-node of each choice."""
        own, there = self.machines
        shift = len(own.origins) - self.layout.count
        classes = [list(choices) for choices in own.problem.classes]
        nodes = [[origin.node for origin in origins] for origins in own.origins]
        for face, (choices, origins) in enumerate(zip(there.problem.classes, there.origins, strict=True)):
            moved = [
                Choice(c.cost, tuple(sorted(child if child < self.layout.count else child + shift for child in c.children)))
                for c in choices
            ]
            if face < self.layout.count:
                classes[face] += moved
                nodes[face] += [origin.node for origin in origins]
            else:
                classes.append(moved)
                nodes.append([origin.node for origin in origins])
        return Problem([tuple(choices) for choices in classes], own.problem.roots), nodes


def _is_input(saturated: Saturated, origin: Origin) -> bool:
    return origin.node >= 0 and saturated.nodes[origin.eclass][origin.node].op is INPUT


def _is_free(saturated: Saturated, constants: Folded, number: int) -> bool:
    """True of what needs no transfer: values made at build time are stored where they are used."""
    return number in constants.classes
