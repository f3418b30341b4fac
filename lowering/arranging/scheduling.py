"""Steps in an order, some of them done again, so that the values between them never take more than so many bytes.

A value that is needed later may be dropped and made again: what is dropped is chosen as caches choose, by what making it again costs
for each byte and for how long it frees them. Several orders and several weights of that choice are tried, always the same ones, and
the cheapest schedule is taken. No schedule of least cost is promised: that is hard even for chains with sizes.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from coset.lowering.arranging.ordering import by_growth, greedy_order

TRIES = 400  # changes of the best schedule so far
EFFORT = 200_000  # values that are weighed for it at most, a second or so
ROUGH = 10_000  # the same where only the fewest bytes are looked for
REPEATS = 4  # launches for each step, on the mean, beyond which a walk goes in circles
FARTHEST = 64  # dropped values that are looked at to say what one costs: more is dear enough


@dataclass(frozen=True)
class ScheduledStep:
    """A computation that takes `seconds`, reads values and writes values (by number).

    `ends`: it also has results outside, so it is done once in any case. `whole`: it makes all its values whenever it is done, others only
    those that are kept. `repeats`: it may be done more than once. `over`: for a value that it writes, one that it reads whose bytes it can
    take if nobody needs that one later; each time at most one value does.
    """

    seconds: float
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    ends: bool = False
    whole: bool = False
    repeats: bool = True
    over: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Done:
    """One step of a schedule: which it is, the values that it keeps, for one that takes another's bytes, that other, and those of the
    values whose memory is new."""

    step: int
    kept: tuple[int, ...]
    over: Mapping[int, int]
    new: tuple[int, ...] = ()


@dataclass(frozen=True)
class Schedule:
    """Steps as they are done, the seconds of all, the most bytes that values take at once."""

    done: tuple[Done, ...]
    seconds: float
    peak: int


@dataclass(frozen=True)
class ValueSizes:
    """The bytes of each value. Values of one number in `wholes` are parts of one piece of memory, of that many bytes: it is there while any
    of them is. A value of no bytes stays once it is there."""

    bytes: Sequence[int]
    wholes: Sequence[int] = ()

    def whole(self, value: int) -> int:
        """The memory that a value is in."""
        return self.wholes[value] if self.wholes else value

    def of(self, values: Iterable[int]) -> int:
        """The bytes of some values."""
        return sum({self.whole(value): self.bytes[value] for value in values}.values())

    @cached_property
    def apart(self) -> Sequence[int]:
        """Bytes that come to those of all memory: a whole's are those of its first part."""
        first: dict[int, int] = {}
        return [size if first.setdefault(self.whole(value), value) == value else 0 for value, size in enumerate(self.bytes)]


def schedule(steps: Sequence[ScheduledStep], sizes: ValueSizes, limit: int, effort: int = EFFORT) -> Schedule | None:
    """The cheapest schedule found whose values take at most `limit` bytes; None where none was found. `steps` stand in an order in which
    they can be done."""
    if limit < _at_once(steps, sizes):
        return None
    orders = _orders(steps, sizes.apart)
    best = min(_tried(steps, sizes, limit, order, power, None) for order in orders for power in (1.0, 0.0, 2.0))
    if best.found is not None and len(best.found.done) <= len(steps):
        return best.found  # nothing is done twice
    drawn, spent = random.Random(0), 0
    for _ in range(TRIES):
        tried = _tried(steps, sizes, limit, _moved(steps, best.order, drawn), drawn.uniform(0.0, 2.0), drawn)
        best, spent = min(best, tried), spent + tried.weighed + len(steps)
        if spent > effort:
            break
    return best.found


def _at_once(steps: Sequence[ScheduledStep], sizes: ValueSizes) -> int:
    """The bytes below which some step cannot be done at all: of what it reads and of the least that it must write."""
    most = 0
    for step in steps:
        read = sizes.of(step.reads)
        there = set(map(sizes.whole, step.reads))
        made = [0 if value in step.over or sizes.whole(value) in there else sizes.bytes[value] for value in step.writes]
        least = sum(made) if step.whole else 0 if step.ends else min(made, default=0)
        most = max(most, read + least)
    return most


@dataclass(frozen=True)
class _Try:
    """A schedule, or how many steps of `order` are left where the limit could not be kept to; how many values were weighed."""

    order: Sequence[int]
    left: int
    seconds: float
    weighed: int
    found: Schedule | None = None

    def __lt__(self, other: _Try) -> bool:
        return (self.left, self.seconds) < (other.left, other.seconds)


def _tried(
    steps: Sequence[ScheduledStep], sizes: ValueSizes, limit: int, order: Sequence[int], power: float, drawn: random.Random | None
) -> _Try:
    walk = _Walk(steps, sizes, limit, order, power, drawn)
    found = walk.schedule()
    left, seconds = (len(order) - walk.place, math.inf) if found is None else (0, found.seconds)
    return _Try(order, left, seconds, walk.weighed, found)


def _moved(steps: Sequence[ScheduledStep], order: Sequence[int], drawn: random.Random) -> list[int]:
    """`order` with one of the steps that have results outside at another place, and the others as late as it allows."""
    ends = [at for at in order if steps[at].ends]
    if len(ends) > 1:
        moved = ends.pop(drawn.randrange(len(ends)))
        ends.insert(drawn.randrange(len(ends) + 1), moved)
    return _late(steps, [*ends, *(at for at in order if not steps[at].ends)])


def least(steps: Sequence[ScheduledStep], sizes: ValueSizes) -> Schedule:
    """A schedule of the fewest bytes that is found, by halving the limit's range."""
    found = schedule(steps, sizes, sum(sizes.apart))
    assert found is not None, "everything at once fits"
    low, best = _at_once(steps, sizes) - 1, found
    while best.peak - low > max(1, best.peak // 256):
        middle = (low + best.peak) // 2
        tried = schedule(steps, sizes, middle, ROUGH)
        if tried is None:
            low = middle
        else:
            best = tried
    return best


# ---------------------------------------------------------------- orders of first times


def _orders(steps: Sequence[ScheduledStep], sizes: Sequence[int]) -> list[list[int]]:
    """The order given, the one that adds fewest bytes at each step, and both with each step as late as those who read it allow."""
    given = list(range(len(steps)))
    freeing = _greedy(steps, sizes)
    orders = [given, _late(steps, given), freeing, _late(steps, freeing)]
    return [order for place, order in enumerate(orders) if order not in orders[:place]]


def _late(steps: Sequence[ScheduledStep], order: Sequence[int]) -> list[int]:
    """`order` with every step that has no results outside right before the first that needs it."""
    maker = {value: at for at in order for value in steps[at].writes}
    found: list[int] = []
    done: set[int] = set()
    for end in order:
        if not steps[end].ends:
            continue
        stack = [end]
        while stack:
            at = stack[-1]
            waiting = [maker[value] for value in steps[at].reads if maker[value] not in done]
            if at in done or not waiting:
                stack.pop()
                if at not in done:
                    done.add(at)
                    found.append(at)
            else:
                stack += reversed(waiting)
    return found + [at for at in order if at not in done]


def _greedy(steps: Sequence[ScheduledStep], sizes: Sequence[int]) -> list[int]:
    """The step next that adds fewest bytes."""
    maker = {value: at for at, step in enumerate(steps) for value in step.writes}
    uses = [0] * len(sizes)
    for step in steps:
        for value in step.reads:
            uses[value] += 1
    takes = [sum(sizes[value] for value in step.writes) for step in steps]
    needs = [sorted({maker[value] for value in step.reads}) for step in steps]
    return greedy_order(takes, needs, [step.reads for step in steps], sizes, uses, by_growth)


# ---------------------------------------------------------------- one try


class _Walk:
    """One walk along an order under a limit. `power` says how much it counts for how long a value is not needed; what is dropped is
    `drawn` near the best choice, where that is given."""

    def __init__(
        self, steps: Sequence[ScheduledStep], sizes: ValueSizes, limit: int, order: Sequence[int], power: float, drawn: random.Random | None
    ) -> None:
        self.steps, self.sizes, self.limit, self.order, self.power, self.drawn = steps, sizes, limit, order, power, drawn
        self.place = 0
        self.maker = {value: at for at, step in enumerate(steps) for value in step.writes}
        self.uses: dict[int, list[int]] = {value: [] for value in self.maker}
        for place, at in enumerate(order):
            for value in steps[at].reads:
                self.uses[value].append(place)
        self.live: dict[int, dict[int, None]] = {}  # by memory: the values that are there
        self.bytes = self.peak = 0
        self.done: list[Done] = []
        self.once: set[int] = set()  # steps that were done and must not be done again
        self.weighed = 0

    def schedule(self) -> Schedule | None:
        """The schedule; None where the limit cannot be kept to in this way."""
        for at in self.order:
            if not self._do(at):
                return None
            self.place += 1
        return Schedule(tuple(self.done), math.fsum(self.steps[each.step].seconds for each in self.done), self.peak)

    def _do(self, at: int) -> bool:
        """Do a step, after those that make again what it reads and was dropped."""
        stack = [at]
        while stack:
            step = self.steps[stack[-1]]
            missing = [value for value in step.reads if not self._is_live(value)]
            if missing:
                maker = self.maker[missing[0]]
                if not self._may_do(maker):
                    return False
                stack.append(maker)
            elif not self._step(stack[-1], {value for below in stack[:-1] for value in self.steps[below].reads}):
                return False
            else:
                stack.pop()
            if len(self.done) + len(stack) > REPEATS * (len(self.steps) + 10):
                return False
        return True

    def _may_do(self, at: int) -> bool:
        return self.steps[at].repeats or at not in self.once

    def _step(self, at: int, wanted: set[int]) -> bool:
        """Make room for what a step writes, do it, and drop what nobody needs any more. `wanted`: values that steps wait for."""
        step, sizes = self.steps[at], self.sizes
        kept = [value for value in step.writes if not self._is_live(value) and (step.whole or self._needed(value, wanted))]
        if not kept and step.writes and not step.ends:
            kept = list(step.writes[:1])
        fitting = [(value, read) for value, read in step.over.items() if value in kept and not self._needed(read, wanted)]
        over = dict(sorted(fitting, key=lambda pair: -sizes.bytes[pair[0]])[:1])
        again = sizes.of(value for value in step.writes if self._is_live(value)) if step.whole else 0
        while self.bytes + again + self._added(kept, over) > self.limit:
            dropped = self._victim(at, kept, wanted)
            if dropped is None:
                return False
            if dropped in kept:
                kept.remove(dropped)
                over.pop(dropped, None)
            else:
                self._drop_whole(dropped)
        added = self._added(kept, over)
        self.peak = max(self.peak, self.bytes + again + added)
        self.bytes += added
        for value in over.values():
            del self.live[sizes.whole(value)]  # its bytes are those of the value that it became
        self.done.append(Done(at, tuple(kept), over, tuple(value for value in kept if sizes.whole(value) not in self.live)))
        for value in kept:
            self.live.setdefault(sizes.whole(value), {})[value] = None
        if not step.repeats:
            self.once.add(at)
        for value in (*step.reads, *kept):
            if self._is_live(value) and not self._needed(value, wanted):
                self._drop(value)
        return True

    def _is_live(self, value: int) -> bool:
        return value in self.live.get(self.sizes.whole(value), ())

    def _added(self, kept: Sequence[int], over: Mapping[int, int]) -> int:
        """The bytes of memory that is new."""
        return self.sizes.of(value for value in kept if value not in over and self.sizes.whole(value) not in self.live)

    def _needed(self, value: int, wanted: set[int]) -> bool:
        return value in wanted or not self.sizes.bytes[value] or self._next(value) < math.inf

    def _next(self, value: int) -> float:
        """The place in the order after this one where a value is read."""
        uses = self.uses[value]
        found = bisect_right(uses, self.place)
        return uses[found] if found < len(uses) else math.inf

    def _drop(self, value: int) -> None:
        whole = self.sizes.whole(value)
        del self.live[whole][value]
        if not self.live[whole]:
            self._drop_whole(value)

    def _drop_whole(self, value: int) -> None:
        del self.live[self.sizes.whole(value)]
        self.bytes -= self.sizes.bytes[value]

    def _victim(self, at: int, kept: Sequence[int], wanted: set[int]) -> int | None:
        """The value to be without: one that is there (with the others of its memory) and that this step does not touch, or one that it
        would write into memory of its own. Those that steps wait for come last."""
        step, sizes = self.steps[at], self.sizes
        touched = {sizes.whole(value) for value in (*step.reads, *kept)}
        free = [next(iter(parts)) for whole, parts in self.live.items() if whole not in touched]
        free = [value for value in free if sizes.bytes[value]]
        if not step.whole and (len(kept) > 1 or step.ends):
            alone = Counter(map(sizes.whole, kept))
            free += [
                v for v in kept if v not in wanted and sizes.bytes[v] and alone[sizes.whole(v)] == 1 and sizes.whole(v) not in self.live
            ]
        return min(free, key=lambda value: (any(part in wanted for part in self._with(value)), self._loss(value)), default=None)

    def _with(self, value: int) -> Iterable[int]:
        """The values that go where a value goes."""
        return self.live.get(self.sizes.whole(value), (value,))

    def _loss(self, value: int) -> float:
        """Seconds to make a value again, with those that go with it, for each byte and for the time that none is needed."""
        parts = list(self._with(value))
        away = min(min(map(self._next, parts)) - self.place, len(self.order))
        loss = sum(map(self._again, parts)) / (max(1, self.sizes.bytes[value]) * math.pow(away, self.power))
        return loss if self.drawn is None else loss * self.drawn.lognormvariate(0.0, 1.0)

    def _again(self, value: int) -> float:
        """Seconds of the steps that make a value of what is there."""
        stack, found, seconds = [self.maker[value]], set[int](), 0.0
        while stack and len(found) < FARTHEST:
            self.weighed += 1
            at = stack.pop()
            if at not in found:
                found.add(at)
                seconds += self.steps[at].seconds if self._may_do(at) else math.inf
                stack += [self.maker[read] for read in self.steps[at].reads if not self._is_live(read)]
        return seconds
