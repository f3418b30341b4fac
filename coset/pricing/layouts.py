"""Which values of a plan lie features last: by the price of the whole plan, for what a convolution saves its neighbours may lose.

A buffer's order changes the prices of the kernels that touch it and of no others, so that a change is judged by these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from coset.lowering.arranging.layouts import Order, followed, laid_out, movable, wanted
from coset.lowering.kernels.kernel import Kernel, Plan, reads, writes

Seconds = Callable[[Plan, Kernel], float]
ROUNDS = 4  # of single changes
GAIN = 1e-9  # s that a change saves at least: what is less is rounding


def with_layouts(plan: Plan, seconds: Seconds, gains: Callable[[Kernel], bool], *, rounds: int = ROUNDS) -> Plan:
    """The plan with orders of dims that are cheaper by `seconds`, the price of a kernel in a plan; as it is where none are. `gains`: a
    kernel that would save something if all that it touches had its features last. `rounds`: how often regions are looked at in parts."""
    seeds = [name for kernel in plan.kernels if gains(kernel) for name in _touched(kernel)]
    orders = wanted(plan, seeds, movable(plan)) if seeds else {}
    return laid_out(plan, _Search(plan, seconds, orders).found(rounds)) if orders else plan


def _touched(kernel: Kernel) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*reads(kernel), *writes(kernel))))


class _Search:
    """Which of the `orders` are worth having."""

    def __init__(self, plan: Plan, seconds: Seconds, orders: Mapping[str, Order]) -> None:
        self.plan, self.seconds, self.orders = plan, seconds, orders
        self.users: dict[str, list[int]] = {}
        self.touched: list[tuple[str, ...]] = []  # of each kernel, what may have another order
        self.known: dict[tuple[int, frozenset[str]], float] = {}
        for place, kernel in enumerate(plan.kernels):
            self.touched.append(tuple(name for name in _touched(kernel) if name in orders))
            for name in self.touched[-1]:
                self.users.setdefault(name, []).append(place)
        self.chosen: frozenset[str] = frozenset()

    def found(self, rounds: int) -> dict[str, Order]:
        """Regions that hang together are taken as a whole or not at all; then what all of a kernel touches, and single values, change as
        long as that saves something."""
        for region in self._regions():
            self._try(region)
        changes = [*(frozenset(names) for names in self.touched if names), *(frozenset({name}) for name in self.orders)]
        for _ in range(rounds):
            saved = [change for change in dict.fromkeys(changes) if self._try(change)]
            if not saved:
                break
        return {name: order for name, order in self.orders.items() if name in self.chosen}

    def _try(self, names: frozenset[str]) -> bool:
        """Change those to the other order, if that saves something: all of them to one, where they differ."""
        saved = False
        for changed in dict.fromkeys((self.chosen | names, self.chosen - names)):
            if self._saves(changed):
                self.chosen, saved = changed, True
        return saved

    def _saves(self, changed: frozenset[str]) -> bool:
        places = {place for name in changed ^ self.chosen for place in self.users.get(name, ())}
        return sum(self._price(place, self.chosen) - self._price(place, changed) for place in sorted(places)) > GAIN

    def _price(self, place: int, chosen: frozenset[str]) -> float:
        mine = chosen.intersection(self.touched[place])
        if (place, mine) not in self.known:
            kernel = self.plan.kernels[place]
            orders = {name: self.orders[name] for name in mine}
            buffers = {name: replace(self.plan.buffers[name], order=orders.get(name)) for name in _touched(kernel)}
            self.known[place, mine] = self.seconds(replace(self.plan, buffers=buffers), followed(kernel, orders))
        return self.known[place, mine]

    def _regions(self) -> Iterator[frozenset[str]]:
        """The values that kernels join."""
        left = dict.fromkeys(self.orders)
        while left:
            found, stack = set[str](), [next(iter(left))]
            while stack:
                name = stack.pop()
                if name in left:
                    del left[name]
                    found.add(name)
                    stack += self._beside(name)
            yield frozenset(found)

    def _beside(self, name: str) -> Iterable[str]:
        return (other for place in self.users.get(name, ()) for other in self.touched[place])
