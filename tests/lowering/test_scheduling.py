"""Schedules under a limit: replayed step by step, and beside the cheapest of all schedules of small graphs."""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Iterator, Sequence

import pytest

from coset.lowering.arranging.scheduling import Schedule, ScheduledStep, ValueSizes, least, schedule
from tests.sampled import sampled


def drawn(seed: int, most: int = 6) -> tuple[list[ScheduledStep], list[int]]:
    """Steps whose values are all read, with their sizes."""
    draw = random.Random(seed)
    count = draw.randint(3, most)
    steps: list[ScheduledStep] = []
    sizes: list[int] = []
    for at in range(count):
        reads = tuple(draw.sample(range(len(sizes)), min(len(sizes), draw.randint(1, 2))))
        writes = tuple(range(len(sizes), len(sizes) + (draw.randint(1, 2) if at < count - 1 else 0)))
        sizes += [draw.randint(1, 6) for _ in writes]
        whole = draw.random() < 0.2
        over = {}
        if reads and writes and not whole and draw.random() < 0.3:
            over = {writes[0]: reads[0]}
            sizes[writes[0]] = sizes[reads[0]]
        steps.append(ScheduledStep(draw.randint(1, 5), reads, writes, ends=not writes or draw.random() < 0.3, whole=whole, over=over))
    for value in set(range(len(sizes))) - {value for step in steps for value in step.reads}:
        maker = next(at for at, step in enumerate(steps) if value in step.writes)
        at = draw.randrange(maker + 1, count)
        step = steps[at]
        steps[at] = ScheduledStep(step.seconds, (*step.reads, value), step.writes, step.ends, step.whole, step.repeats, step.over)
    return steps, sizes


def parts(seed: int) -> tuple[list[ScheduledStep], ValueSizes]:
    """Drawn steps of which several write into one piece of memory."""
    steps, sizes = drawn(seed, most=14)
    draw = random.Random(seed)
    alone = {value for step in steps for pair in step.over.items() for value in pair}
    alone |= {value for step in steps if step.whole for value in step.writes}
    free = [value for value in range(len(sizes)) if value not in alone]
    wholes = list(range(len(sizes)))
    while len(free) > 1 and draw.random() < 0.8:
        together = [free.pop(draw.randrange(len(free))) for _ in range(min(len(free), draw.randint(2, 4)))]
        for value in together:
            wholes[value], sizes[value] = together[0], sizes[together[0]]
    return steps, ValueSizes(sizes, wholes)


def replay(found: Schedule, steps: Sequence[ScheduledStep], sizes: ValueSizes) -> int:
    """The peak of a schedule, done step by step: a value goes when no later step reads it before it is made again. Memory is new where
    nothing of it is there."""
    live: set[int] = set()
    begun: set[int] = set()
    peak = 0
    for place, done in enumerate(found.done):
        step = steps[done.step]
        assert set(step.reads) <= live, "what a step reads is there"
        assert set(done.kept) <= set(step.writes)
        made = set(step.writes) if step.whole else set(done.kept)
        for value, taken in done.over.items():
            assert step.over[value] == taken
        there = {sizes.whole(value) for value in live}
        assert all(sizes.whole(value) not in there for value in done.new), "memory that is new has nothing in it"
        begun |= {sizes.whole(value) for value in done.new}
        assert all(sizes.whole(value) in begun for value in done.kept), "memory is new once"
        again = sizes.of(value for value in made if value in live)
        taken_over = sizes.of(done.over)
        peak = max(peak, sizes.of({*live, *made}) + again - taken_over)
        live = {value for value in live - set(done.over.values()) | set(done.kept) if read_later(value, found, steps, place)}
    assert {at for at, step in enumerate(steps) if step.ends} <= {done.step for done in found.done}
    for at, step in enumerate(steps):
        assert step.repeats or sum(done.step == at for done in found.done) <= 1
    return peak


def read_later(value: int, found: Schedule, steps: Sequence[ScheduledStep], place: int) -> bool:
    for done in found.done[place + 1 :]:
        if value in steps[done.step].reads:
            return True
        if value in done.kept:
            return False
    return False


def cheapest(steps: Sequence[ScheduledStep], sizes: Sequence[int], limit: int) -> float | None:
    """The least seconds of all schedules, by Dijkstra's algorithm over what is live and what is done."""
    ends = frozenset(at for at, step in enumerate(steps) if step.ends)
    start: tuple[frozenset[int], frozenset[int]] = (frozenset(), frozenset())
    best = {start: 0.0}
    count = itertools.count()
    heap = [(0.0, next(count), start)]
    while heap:
        seconds, _, state = heapq.heappop(heap)
        if best[state] < seconds:
            continue
        live, done = state
        if ends <= done:
            return seconds
        for at, step in enumerate(steps):
            if not set(step.reads) <= live:
                continue
            for after in states_after(step, live, sizes, limit):
                new = (after, done | ({at} & ends))
                if seconds + step.seconds < best.get(new, float("inf")):
                    best[new] = seconds + step.seconds
                    heapq.heappush(heap, (best[new], next(count), new))
    return None


def states_after(step: ScheduledStep, live: frozenset[int], sizes: Sequence[int], limit: int) -> Iterator[frozenset[int]]:
    """What can be live after a step, whatever is dropped before it."""
    others = [value for value in live if value not in step.reads]
    for dropped in subsets(others):
        left = live - set(dropped)
        held = sum(sizes[value] for value in left)
        makes = [value for value in step.writes if value not in left]
        for kept in [tuple(makes)] if step.whole else subsets(makes):
            made = sum(sizes[value] for value in (step.writes if step.whole else kept))
            for over in [None, *(value for value in kept if value in step.over)]:
                if held + made - (0 if over is None else sizes[over]) <= limit:
                    yield left - ({step.over[over]} if over is not None else set()) | set(kept)


def subsets(values: Sequence[int]) -> Iterator[tuple[int, ...]]:
    return itertools.chain.from_iterable(itertools.combinations(values, count) for count in range(len(values) + 1))


CASES = range(24)


@pytest.mark.parametrize("seed", sampled(CASES))
@pytest.mark.parametrize("several", [False, True])
def test_a_schedule_keeps_to_its_limit_and_does_everything(seed: int, several: bool) -> None:
    steps, sizes = parts(seed) if several else (drawn(seed, most=14)[0], ValueSizes(drawn(seed, most=14)[1]))
    fewest = least(steps, sizes)
    whole = sum(sizes.apart)
    for limit in (fewest.peak, fewest.peak + 2, fewest.peak + 6, whole):
        found = schedule(steps, sizes, limit)
        assert found is not None
        assert replay(found, steps, sizes) <= found.peak <= limit
        assert found.seconds == sum(steps[done.step].seconds for done in found.done)
    assert len(schedule(steps, sizes, whole).done) == len(steps), "with room enough nothing is done twice"  # type: ignore[union-attr]


def test_what_takes_no_bytes_stays() -> None:
    """However cheaply it could be made again: it may be an output."""
    sizes = ValueSizes([0, 3, 3, 3])
    first, last = ScheduledStep(0.1, (), (0,), ends=True), ScheduledStep(1.0, (0, 1, 3), (), ends=True)
    steps = [first, ScheduledStep(1.0, (0,), (1,)), ScheduledStep(1.0, (0,), (2,)), ScheduledStep(1.0, (2,), (3,)), last]
    found = schedule(steps, sizes, 6)
    assert found is not None and [done.step for done in found.done].count(0) == 1 and replay(found, steps, sizes) <= 6


def test_schedules_are_near_the_cheapest_ones() -> None:
    """Of small graphs: never below the cheapest, equal to it mostly, and the fewest bytes nearly always."""
    ratios: list[float] = []
    missed = 0
    for seed in CASES:
        steps, sizes = drawn(seed)
        fewest = least(steps, ValueSizes(sizes))
        missed += cheapest(steps, sizes, fewest.peak - 1) is not None
        for limit in (fewest.peak, fewest.peak + 2):
            found, best = schedule(steps, ValueSizes(sizes), limit), cheapest(steps, sizes, limit)
            assert found is not None
            assert best is not None
            assert found.seconds >= best
            ratios.append(found.seconds / best)
    assert missed <= len(CASES) // 6
    assert sum(ratio == 1 for ratio in ratios) >= 0.75 * len(ratios)
    assert sum(ratios) / len(ratios) < 1.1


def chain(count: int) -> tuple[list[ScheduledStep], list[int]]:
    """Forward steps and the backward ones that read their results, as in training."""
    forward = [ScheduledStep(1.0, () if at == 0 else (at - 1,), (at,)) for at in range(count)]
    backward = [ScheduledStep(1.0, (count - 1 - at, *([count + at - 1] if at else [])), (count + at,), ends=True) for at in range(count)]
    last = ScheduledStep(1.0, (2 * count - 1,), (), ends=True)
    return [*forward, *backward, last], [1] * (2 * count)


@pytest.mark.parametrize("count", [10, 60])
def test_a_deep_chain_is_done_again_in_few_pieces(count: int) -> None:
    """Of n results about 2 sqrt(n) are enough where each step is done twice; half of them costs less."""
    steps, sizes = chain(count)
    assert schedule(steps, ValueSizes(sizes), count + 2) is not None
    half = schedule(steps, ValueSizes(sizes), count // 2 + 2)
    assert half is not None
    assert half.seconds <= 1.6 * len(steps)


def test_what_must_not_be_repeated_is_kept() -> None:
    steps, sizes = chain(6)
    once = [ScheduledStep(step.seconds, step.reads, step.writes, step.ends, repeats=False) for step in steps]
    assert schedule(steps, ValueSizes(sizes), 5) is not None
    assert schedule(once, ValueSizes(sizes), 5) is None
    kept = schedule(once, ValueSizes(sizes), 8)
    assert kept is not None
    assert len(kept.done) == len(once)


def test_nothing_fits_below_what_one_step_needs() -> None:
    steps, sizes = chain(4)
    assert schedule(steps, ValueSizes(sizes), 1) is None
    assert schedule([], ValueSizes([]), 0) == Schedule((), 0.0, 0)
