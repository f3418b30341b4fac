"""Search and extraction by regions: the regions of a program in one e-graph, what was found for each put back at its places.

One e-graph holds all regions, so limits, stops and counts are of all together, and rules are loaded once. They share
nothing that costs: their inputs are told apart. A border must lose nothing: two neighbours joined are searched as a region too,
and where the joined pair costs less than both apart, the border is moved, and if that does not help the program stays whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import fsum

from coset.egraph.chains import Entered, find_chains, inner_products
from coset.egraph.regions import Cut, Filling, NeighbourPair, ProgramRegion, RegionPlace, cut
from coset.egraph.saturate import CUT_SHORT, Saturation
from coset.egraph.saturated import Saturated
from coset.extract.placement import Placement
from coset.extract.select import Selection
from coset.extract.solve import METHODS
from coset.ir.term import Term, topological

ATTEMPTS = 3  # at borders
SAME = 1e-6  # relative difference of costs that are one: new e-nodes are priced a little above equal ones of the input
Search = Callable[[Sequence[Term]], tuple[Saturation, Sequence[Entered]]]
Select = Callable[[Saturated], Selection]
Price = Callable[[Sequence[Term]], float]
Refine = Callable[[Selection], Selection]


@dataclass(frozen=True)
class RegionPart:
    """A region with what was chosen for it, at `times` places: e-nodes by class and index in the whole e-graph, which has the classes of
    the region as `numbers` say. `region` and its `places` are None and empty where the program stayed whole."""

    selection: Selection
    times: int
    numbers: Sequence[int]
    source: Mapping[Term, tuple[int, int]]
    region: ProgramRegion | None = None
    places: tuple[RegionPlace, ...] = ()

    @cached_property
    def chosen(self) -> Mapping[int, int]:
        """Class of the whole e-graph -> e-node taken for it."""
        return {self.numbers[eclass]: index for eclass, index in self.selection.chosen.items()}


@dataclass(frozen=True)
class PlanPrediction:
    """Predicted seconds of whole programs as kernels: of the one chosen, of the input, and what none of the e-graph undercuts. `judged`:
    programs of regions that were looked at."""

    cost: float
    input_cost: float
    lower_bound: float
    judged: int


@dataclass(frozen=True)
class Solved:
    """An equal, cheaper program: `terms` of its roots, `storable` as in `Selection`; with its history. Costs are sums over the places
    of regions: what several places share is counted at each; where ops share kernels they are those of whole programs, `planned`."""

    terms: tuple[Term, ...]
    storable: frozenset[Term]
    saturation: Saturation
    entered: Sequence[Entered]
    parts: tuple[RegionPart, ...]
    planned: PlanPrediction | None = None
    zones: tuple[Solved, ...] = ()  # what was found for parts that were searched apart: their costs count too

    def _sum(self, name: str) -> float:
        own = getattr(self.planned, name) if self.planned else fsum(getattr(part.selection, name) * part.times for part in self.parts)
        return fsum((own, *(getattr(zone, name) for zone in self.zones)))

    @property
    def placement(self) -> Placement:
        """What runs on the host of a target that has one."""
        own = sum((part.selection.placement.times(part.times) for part in self.parts), Placement())
        return sum((zone.placement for zone in self.zones), own)

    @property
    def cost(self) -> float:
        """Predicted seconds."""
        return self._sum("cost")

    @property
    def input_cost(self) -> float:
        """Predicted seconds of the input."""
        return self._sum("input_cost")

    @property
    def lower_bound(self) -> float:
        """What no choice among the e-nodes found undercuts."""
        return self._sum("lower_bound")

    @property
    def gap(self) -> float:
        """How far the cost may be above the best of the e-graph, as a share of the cost."""
        return 0.0 if self.cost <= 0 else max(0.0, (self.cost - self.lower_bound) / self.cost)

    @property
    def method(self) -> str:
        """That of the region with the weakest one."""
        methods = (*(part.selection.method for part in self.parts), *(zone.method for zone in self.zones))
        return max(methods, key=lambda method: ("input", *METHODS).index(method))

    @property
    def places(self) -> int:
        """How many pieces the program was put together from; 1 when it stayed whole."""
        return sum(part.times for part in self.parts) + sum(zone.places for zone in self.zones)


def solve(
    roots: Sequence[Term], search: Search, select: Select, price: Price, *, whole: bool = False, refine: Refine | None = None
) -> Solved:
    """Search the programs that equal `roots` and choose one. `price` says what a plain program costs. As a `whole` the program is not cut:
    where what is computed beyond a border decides what a region costs. `refine` makes something better of what was selected for a region
    of the program; borders stand by then. Where a search was cut short the best program so far counts, also that of an earlier one.

    Raises:
        CosetError: as `search` and `select` do.
    """
    attempts: list[_Attempt] = []
    avoid = {term for chain in find_chains(roots) for term in inner_products(chain)}  # whose order is chosen as a whole
    while True:
        pieces = None if whole or len(attempts) == ATTEMPTS else cut(roots, whole=avoid)
        attempts.append(_attempt(roots, pieces, search, select))
        if attempts[-1].saturation.stop in CUT_SHORT:  # it may know less than one before it, with other borders
            return _solved(roots, min(reversed(attempts), key=lambda each: each.cost), refine)
        lossy = [] if pieces is None else [pair for pair in pieces.pairs if _loses(pieces, pair, attempts[-1].parts, price)]
        if pieces is None or not lossy:
            return _solved(roots, attempts[-1], refine)
        avoid |= {term for pair in lossy for term in pieces.borders(pair)}


@dataclass(frozen=True)
class _Attempt:
    """What was found with a program cut into `pieces`, or whole."""

    pieces: Cut | None
    parts: tuple[RegionPart, ...]
    saturation: Saturation
    entered: Sequence[Entered]

    @property
    def cost(self) -> float:
        """Predicted seconds, before anything is refined."""
        return fsum(part.selection.cost * part.times for part in self.parts)


def _attempt(roots: Sequence[Term], pieces: Cut | None, search: Search, select: Select) -> _Attempt:
    if pieces is not None:
        saturation, entered = search([root for region in pieces.regions for root in region.roots])
        return _Attempt(pieces, tuple(_parts(pieces, saturation, select)), saturation, entered)
    saturation, entered = search(roots)
    graph = saturation.graph
    return _Attempt(None, (RegionPart(select(graph), 1, range(len(graph.nodes)), saturation.source),), saturation, entered)


def _solved(roots: Sequence[Term], attempt: _Attempt, refine: Refine | None) -> Solved:
    parts = tuple(_refined(part, refine) for part in attempt.parts)
    if attempt.pieces is not None:
        return _joined(roots, attempt.pieces, parts, attempt.saturation, attempt.entered)
    return Solved(parts[0].selection.terms, parts[0].selection.storable, attempt.saturation, attempt.entered, parts)


def _refined(part: RegionPart, refine: Refine | None) -> RegionPart:
    return part if refine is None or not part.times else replace(part, selection=refine(part.selection))


def _parts(pieces: Cut, saturation: Saturation, select: Select) -> Iterator[RegionPart]:
    times = [0] * len(pieces.regions)
    for place in pieces.places:
        times[place.region] += 1
    first = 0
    for number, region in enumerate(pieces.regions):
        classes = saturation.graph.roots[first : first + len(region.roots)]
        first += len(region.roots)
        source = {term: saturation.source[term] for term in topological(region.roots) if term in saturation.source}
        graph, numbers = saturation.graph.below(classes, source.values())
        yield RegionPart(select(graph), times[number], numbers, source, region, tuple(p for p in pieces.places if p.region == number))


def _loses(pieces: Cut, pair: NeighbourPair, parts: Sequence[RegionPart], price: Price) -> bool:
    """True when the pair joined is cheaper than its two places put together."""
    joined = pieces.regions[pair.joined.region]
    single = pair.places[0].region
    built = dict(zip(pair.joined.inputs, joined.inputs, strict=True))
    built.update(zip(pair.joined.constants, joined.constants, strict=True))
    filling = Filling.of(pieces.regions[single], parts[single].selection.terms)
    for place in pair.places:
        filling.fill(place, built)
    apart = price([built[output] for output in pair.joined.outputs])
    return parts[pair.joined.region].selection.cost < apart * (1 - SAME)


def _joined(roots: Sequence[Term], pieces: Cut, parts: Sequence[RegionPart], saturation: Saturation, entered: Sequence[Entered]) -> Solved:
    fillings = [Filling.of(region, part.selection.terms) for region, part in zip(pieces.regions, parts, strict=True)]
    built: dict[Term, Term] = {}
    storable: set[Term] = set()
    for place in pieces.places:
        made = fillings[place.region].fill(place, built)
        storable.update(made[term] for term in parts[place.region].selection.storable if term in made)
    terms = tuple(built.get(root, root) for root in roots)
    return Solved(terms, frozenset(storable), saturation, entered, tuple(part for part in parts if part.times))
