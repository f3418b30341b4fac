"""Extraction problems with many merges that share operands, and a planted optimum whose cost is known by construction.

The class of problem of TENSAT's BERT e-graph: products `x @ w` of one operand or one weight are computed alone, or cut out of one
merged product, which pays only when several of its users take it. Towers of layers run side by side and share weights, so merges
join layers and towers, and taking one can close a cycle.

Why the optimum is known. Every product u has a price p(u), and the planted groups cover all products for the cost that they claim:

* a plain group is one merge, and the prices of its members add up to its cost (splits included);
* a ring of five products with merges of neighbours only has no cover by whole merges that its fractions would suggest (the linear
  relaxation takes half of each). Its best cover, f(all), is found by trying, and its prices are such that f(all) - f(rest) is at
  most the prices of what a solution computes elsewhere.

Anything else costs at least the prices of what it covers: a product alone, any other merge of a set T (its own cost plus its
splits), a join that does without a product. A trap is cheaper than its prices say, but one of its two products lies before the
other in every program, so that at most one can be cut out of it. A form of a merge by a larger or a smaller one adds nothing: each of
its at most five users could be cut out of that directly, for at most `SPREAD` more each, and the form costs five times that. So no
solution costs less than the planted one.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass

from coset.extract.problem import Choice, Picks, Problem, choice, cost_of

SPLIT, SPREAD = 0.04, 0.02  # of a product that is cut out of a merge, and how much more it may cost
FORM = 5 * SPREAD  # of a merge that is made from another one
CONCAT = 0.02  # of weights that are put side by side
RING = 5  # products of a ring


@dataclass(frozen=True)
class Planted:
    """A problem, the picks that were planted and what they cost: no solution costs less."""

    problem: Problem
    picks: Picks
    cost: float


@dataclass(frozen=True)
class _Product:
    """The class of `x @ w` in one layer of one tower, and the class that it is multiplied with."""

    number: int
    tower: int
    layer: int
    x: int
    weight: int


def shared_merges(nodes: int, seed: int, *, towers: int = 4, width: int = 7, rings: float = 0.2, traps: float = 0.03) -> Planted:
    """About `nodes` e-nodes: `towers` of layers with two operands and `width` products of each. `rings`: how often products of one
    operand are a ring; `traps`: share of the merges besides that cannot be used as they seem to."""
    draw = random.Random(seed)
    builder = _Builder(draw, towers, max(1, round(nodes / (towers * 27 * width))))
    builder.lay_out(width)
    builder.plant(rings)
    for _ in range(20 * nodes):  # few products have few merges
        if builder.size >= nodes:
            break
        builder.add_trap() if draw.random() < traps else builder.add_decoy()
    return builder.planted()


class _Builder:
    def __init__(self, draw: random.Random, towers: int, layers: int) -> None:
        self.draw, self.towers, self.layers = draw, towers, layers
        self.classes: list[list[Choice]] = []
        self.picks: Picks = {}
        self.size = 0
        self.products: list[_Product] = []
        self.price: dict[int, float] = {}
        self.concats: dict[frozenset[int], int] = {}
        self.merges: dict[frozenset[int], int] = {}
        self.skipped: set[int] = set()
        self.join: dict[int, int] = {}
        self.root = -1
        self.by_x: dict[int, list[_Product]] = {}
        self.by_weight: dict[int, list[_Product]] = {}

    def _new(self, *choices: Choice, pick: int | None = 0) -> int:
        self.classes.append([])
        number = len(self.classes) - 1
        if pick is not None:
            self.picks[number] = pick
        for entry in choices:
            self._add(number, entry)
        return number

    def _add(self, number: int, entry: Choice) -> None:
        self.classes[number].append(entry)
        self.size += 1

    def lay_out(self, width: int) -> None:
        """Towers of layers: operands, products, and joins that need every product of the layer."""
        draw = self.draw
        source = self._new(choice(0.0))
        weights = [self._new(choice(0.0)) for _ in range(max(width + 1, self.layers * 3))]
        outputs = []
        for tower in range(self.towers):
            value = source
            for layer in range(self.layers):
                operands = [self._new(choice(draw.uniform(0.1, 0.4), [value])) for _ in range(2)]
                own = [self._product(tower, layer, x, weight) for x in operands for weight in draw.sample(weights, width)]
                names = [product.number for product in own]
                draw.shuffle(names)
                joins = []
                for at in range(0, len(names), 4):
                    joins.append(self._new(choice(draw.uniform(0.1, 0.3), names[at : at + 4])))
                    self.join.update(dict.fromkeys(names[at : at + 4], joins[-1]))
                value = self._new(choice(0.2, joins))
            outputs.append(value)
        self.root = self._new(choice(0.1, outputs))
        for product in self.products:
            self.by_x.setdefault(product.x, []).append(product)
            self.by_weight.setdefault(product.weight, []).append(product)

    def _product(self, tower: int, layer: int, x: int, weight: int) -> _Product:
        product = _Product(self._new(pick=None), tower, layer, x, weight)
        self.products.append(product)
        return product

    def plant(self, rings: float) -> None:
        """Cover every product by a group, and give it a price."""
        left = {product.number: product for product in self.products}
        for product in self.draw.sample(self.products, len(self.products)):
            if product.number not in left:
                continue
            across = self.draw.random() < 0.3
            near = [p for p in self._near(product, across) if p.number in left and p != product and (p.layer == product.layer)]
            if not across and len(near) >= RING - 1 and self.draw.random() < rings:
                group = [product, *self.draw.sample(near, RING - 1)]
                self._ring(group)
            else:
                group = [product, *self.draw.sample(near, min(len(near), self.draw.choice((1, 2, 2, 3, 4))))]
                self._group(group)
            for each in group:
                del left[each.number]
        for product in self.products:
            if self.draw.random() < 0.1:
                self._skip(product)

    def _near(self, product: _Product, across: bool) -> list[_Product]:
        return self.by_weight[product.weight] if across else self.by_x[product.x]

    def _group(self, group: Sequence[_Product]) -> None:
        """One merge for all; a product without company is alone."""
        draw = self.draw
        if len(group) == 1:
            cost = draw.uniform(0.6, 1.4)
            self._alone(group[0], cost, picked=True)
            self.price[group[0].number] = cost
            return
        concat = self._concat(group)
        cost = draw.uniform(0.5, 0.9) * len(group)
        merge = self._merge(group, cost, picked=True)
        shares = [draw.uniform(0.7, 1.3) for _ in group]
        # the concat may have several planted users: the first pays, the others get it for nothing
        paid = cost + (0.0 if concat in self.picks else CONCAT)
        self.picks[concat] = 0
        for product, share in zip(group, shares, strict=True):
            split = self._split(product, merge, picked=True)
            self.price[product.number] = price = split + paid * share / sum(shares)
            self._alone(product, price * draw.uniform(1.15, 1.7))

    def _ring(self, group: Sequence[_Product]) -> None:
        """Merges of neighbours on a ring, the best cover by trying, and prices that it cannot lose by."""
        draw = self.draw
        unit = draw.uniform(1.0, 1.6)
        alone = [unit * draw.uniform(0.75, 0.95) for _ in group]
        merges = [_Pair((at, (at + 1) % RING), unit * draw.uniform(0.95, 1.05), (self._drawn(), self._drawn())) for at in range(RING)]
        best = _covers([_Use(None, (at,), cost) for at, cost in enumerate(alone)] + [use for pair in merges for use in pair.uses()])
        everything = frozenset(range(RING))
        total, cover = best[everything]
        for at, product in enumerate(group):
            losses = [(total - best[everything - lost][0]) / len(lost) for lost in best if at in lost]
            self.price[product.number] = max(losses)
            self._alone(product, alone[at], picked=any(use.pair is None and at in use.places for use in cover))
        for pair in merges:
            used = [place for use in cover if use.pair is pair for place in use.places]
            two = [group[place] for place in pair.places]
            concat = self._new(choice(CONCAT, [product.weight for product in two]), pick=0 if used else None)
            merge = self._new(choice(pair.cost, [concat, two[0].x]), pick=0 if used else None)
            for place, product, split in zip(pair.places, two, pair.splits, strict=True):
                self._offer(product.number, choice(split, [merge]), place in used)

    def _alone(self, product: _Product, cost: float, *, picked: bool = False) -> None:
        self._offer(product.number, choice(cost, [product.x, product.weight]), picked)

    def _split(self, product: _Product, merge: int, *, picked: bool = False) -> float:
        cost = self._drawn()
        self._offer(product.number, choice(cost, [merge]), picked)
        return cost

    def _drawn(self) -> float:
        """What it costs to cut a product out of a merge."""
        return SPLIT + SPREAD * self.draw.random()

    def _offer(self, number: int, entry: Choice, picked: bool) -> None:
        if picked:
            self.picks[number] = len(self.classes[number])
        self._add(number, entry)

    def _concat(self, group: Sequence[_Product]) -> int:
        """The weights of a group side by side: one class for all merges of the same weights."""
        key = frozenset(product.weight for product in group)
        if key not in self.concats:
            self.concats[key] = self._new(choice(CONCAT, key), pick=None)
        return self.concats[key]

    def _merge(self, group: Sequence[_Product], cost: float, *, picked: bool = False) -> int:
        """The merged product, with forms by merges of one product more and of one less, which make cycles."""
        key = frozenset(product.number for product in group)
        number = self._new(choice(cost, [self._concat(group), *(product.x for product in group)]), pick=0 if picked else None)
        for rest in sorted(key) if len(key) > 2 else ():
            smaller = self.merges.get(key - {rest})
            if smaller is not None:
                self._add(smaller, choice(FORM, [number]))
                self._add(number, choice(FORM, [smaller, rest]))
        self.merges[key] = number
        return number

    def add_decoy(self) -> None:
        """A merge of products of one operand, or of one weight across layers and towers, at a little more than their prices."""
        draw = self.draw
        product = draw.choice(self.products)
        near = [p for p in self._near(product, draw.random() < 0.5) if p != product]
        if not near:
            return
        group = [product, *draw.sample(near, min(len(near), draw.choice((1, 2, 2, 3, 4))))]
        if frozenset(p.number for p in group) in self.merges:
            return
        cost = sum(self.price[p.number] - SPLIT for p in group)
        merge = self._merge(group, max(0.0, cost) * (1 + draw.uniform(0.01, 0.3)))
        for each in group:
            self._split(each, merge)

    def add_trap(self) -> None:
        """A merge of a product with one that every program computes before it: as cheap as the later one alone is worth."""
        draw = self.draw
        late = draw.choice(self.products)
        early = [p for p in self.by_weight[late.weight] if p.tower == late.tower and p.layer < late.layer and p.number not in self.skipped]
        if not early:
            return self.add_decoy()
        group = [draw.choice(early), late]
        if frozenset(p.number for p in group) in self.merges:
            return None
        merge = self._merge(group, (self.price[late.number] - SPLIT) * (1 + draw.uniform(0.01, 0.3)))
        for each in group:
            self._split(each, merge)
        return None

    def _skip(self, product: _Product) -> None:
        """Another form of the join of a product, over something else instead, at the price of the product."""
        self.skipped.add(product.number)
        join = self.join[product.number]
        entry = self.classes[join][0]
        others = [child for child in entry.children if child != product.number]
        instead = self.draw.choice(self.products).number
        self._add(join, choice(entry.cost + self.price[product.number] + self.draw.uniform(0.0, 0.1), [*others, instead]))

    def planted(self) -> Planted:
        problem = Problem([tuple(choices) for choices in self.classes], (self.root,))
        return Planted(problem, self.picks, cost_of(problem, self.picks))


@dataclass(frozen=True, eq=False)
class _Pair:
    """A merge of two neighbours on a ring, and what each costs to be cut out of it."""

    places: tuple[int, int]
    cost: float
    splits: tuple[float, float]

    def uses(self) -> list[_Use]:
        """For one of them, for the other, for both."""
        whole, (one, other) = self.cost + CONCAT, self.splits
        first, second = self.places
        return [_Use(self, (first,), whole + one), _Use(self, (second,), whole + other), _Use(self, self.places, whole + one + other)]


@dataclass(frozen=True, eq=False)
class _Use:
    """Products of a ring that are computed together: by a pair, or alone."""

    pair: _Pair | None
    places: tuple[int, ...]
    cost: float


def _covers(uses: Sequence[_Use]) -> dict[frozenset[int], tuple[float, tuple[_Use, ...]]]:
    """For each set of places of a ring the cheapest of `uses` that compute them, and what that costs."""
    best: dict[frozenset[int], tuple[float, tuple[_Use, ...]]] = {frozenset(): (0.0, ())}
    for size in range(1, RING + 1):
        for some in itertools.combinations(range(RING), size):
            key = frozenset(some)
            fitting = [use for use in uses if some[0] in use.places and key.issuperset(use.places)]
            ways = [(best[key.difference(use.places)][0] + use.cost, at) for at, use in enumerate(fitting)]
            cost, at = min(ways)
            best[key] = cost, (*best[key.difference(fitting[at].places)][1], fitting[at])
    return best
