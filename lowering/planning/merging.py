"""Kernels side by side: pointwise kernels over the same loops, none of which waits for another, are one launch."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from coset.lowering.kernels.kernel import Loop
from coset.lowering.planning.group import POINTWISE, Grouping, KernelGroup
from coset.lowering.planning.kinds import KernelLimits
from coset.lowering.planning.storing import StoredTerms


def merge(grouping: Grouping, stored: StoredTerms, limits: KernelLimits) -> None:
    """Put groups of one depth (the longest way from the inputs) and with the same loops together, up to the limit of a kernel's size.
    Groups of one depth do not need each other, and putting them together changes no depth."""
    known: dict[tuple[int, tuple[Loop, ...]], KernelGroup] = {}
    instead: dict[KernelGroup, KernelGroup] = {}
    for group, depth in depths(grouping, stored).items():
        if group.kind != POINTWISE:
            continue
        key = depth, tuple(group.loops.values())
        into = known.get(key)
        if into is None or into.size + group.size > limits.scalars:
            known[key] = group
            continue
        into.first, into.last = min(into.first, group.first), max(into.last, group.last)
        into.at |= group.at
        into.part |= group.part
        into.outside |= group.outside
        into.size += group.size
        stored.live[into] |= stored.live.pop(group)
        for term in group.at:
            grouping.home[term] = into
        instead[group] = into
    if instead:
        for term, readers in stored.readers.items():
            stored.readers[term] = {instead.get(reader, reader) for reader in readers}


def depths(grouping: Grouping, stored: StoredTerms) -> dict[KernelGroup, int]:
    """How many kernels lie before each live one on the longest way, by the groups' order of launch."""
    found: dict[KernelGroup, int] = {}
    for group in ordered(grouping, stored):
        found.setdefault(group, 0)
        for term in group.at:
            if term in stored.terms:
                for reader in stored.readers[term]:
                    if reader is not group:
                        found[reader] = max(found.get(reader, 0), found[group] + 1)
    return found


def ordered(grouping: Grouping, stored: StoredTerms) -> list[KernelGroup]:
    """The groups with live terms, each after those whose buffers it reads; of several the one that comes first in the program."""
    live = [group for group in grouping.groups if group in stored.live]
    users: dict[KernelGroup, list[KernelGroup]] = {group: [] for group in live}
    waits = dict.fromkeys(live, 0)
    for term in stored.terms:
        home = grouping.home[term]
        for reader in stored.readers[term]:
            if reader is not home:
                users[home].append(reader)
                waits[reader] += 1
    ready = [(group.first, group.number, group) for group in live if not waits[group]]
    heapify(ready)
    order: list[KernelGroup] = []
    while ready:
        group = heappop(ready)[2]
        order.append(group)
        for user in users[group]:
            waits[user] -= 1
            if not waits[user]:
                heappush(ready, (user.first, user.number, user))
    assert len(order) == len(live), "kernels wait for each other in a circle"
    return order
