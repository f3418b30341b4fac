"""An order of steps that keeps few bytes live, found greedily."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush

Rank = Callable[[int, int], int]  # of the bytes that a step takes and those that it frees: the least comes next


def by_growth(taken: int, freed: int) -> int:
    """The step next after which fewest bytes more are live."""
    return taken - freed


def by_size(taken: int, freed: int) -> int:
    """The step next that frees most, else the one that takes least."""
    return taken if taken > freed else taken - freed


def greedy_order(
    takes: Sequence[int], needs: Sequence[Sequence[int]], reads: Sequence[Sequence[int]], sizes: Sequence[int], uses: Sequence[int],
    rank: Rank,
) -> list[int]:  # fmt: skip
    """All steps, of those that can come next the one of least `rank`; ties in the order given.

    `takes`: the bytes of what each step makes; `needs`: the steps that come before it; `reads`: the values that it reads, each once, of
    `sizes` bytes; `uses`: how often each value is read in all (more than it is, where it stays to the end). A rank is looked at again when
    a value has one reader left, so that the whole is near-linear.
    """
    missing = [len(each) for each in needs]
    users, readers = _turned(needs, len(needs)), _turned(reads, len(sizes))
    left = list(uses)
    done = [False] * len(needs)

    def entry(at: int) -> tuple[int, int]:
        return rank(takes[at], sum(sizes[value] for value in reads[at] if left[value] == 1)), at

    heap = [entry(at) for at, count in enumerate(missing) if not count]
    heapify(heap)
    order: list[int] = []
    while heap:
        key, at = heappop(heap)
        if done[at] or (key, at) != entry(at):
            continue  # an older rank: the newer one is in the heap too
        done[at] = True
        order.append(at)
        for value in reads[at]:
            left[value] -= 1
            if left[value] == 1:
                for reader in readers[value]:
                    if not done[reader] and not missing[reader]:
                        heappush(heap, entry(reader))
        for user in users[at]:
            missing[user] -= 1
            if not missing[user]:
                heappush(heap, entry(user))
    return order


def _turned(relation: Sequence[Sequence[int]], count: int) -> list[list[int]]:
    """For each of `count` numbers the places that name it, in order."""
    found: list[list[int]] = [[] for _ in range(count)]
    for at, named in enumerate(relation):
        for number in named:
            found[number].append(at)
    return found
