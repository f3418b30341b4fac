"""Orders of nodes: operands before users, near the places that the nodes had."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from typing import Any

from coset.dialects.onnx.bodies import captured_names
from coset.ir.term import Term


class CyclicShapes(Exception):
    """A dim is computed from the shape of a value that needs it."""


def sorted_nodes(nodes: Sequence[Any]) -> list[Any]:
    """The nodes, operands before users, else in the order given.

    Raises:
        CyclicShapes: there is no such order.
    """
    producer = {name: index for index, node in enumerate(nodes) for name in node.output if name}
    needs = [{producer[name] for name in (*node.input, *captured_names(node)) if name in producer} for node in nodes]
    if all(other < index for index, needed in enumerate(needs) for other in needed):
        return list(nodes)
    users: dict[int, list[int]] = {}
    for index, needed in enumerate(needs):
        for other in needed:
            users.setdefault(other, []).append(index)
    left = [len(needed) for needed in needs]
    ready = [index for index, count in enumerate(left) if not count]
    result = []
    while ready:
        index = heappop(ready)
        result.append(nodes[index])
        for user in users.get(index, ()):
            left[user] -= 1
            if not left[user]:
                heappush(ready, user)
    if len(result) < len(nodes):
        raise CyclicShapes
    return result


def by_places(order: Sequence[Term], places: Mapping[Term, int]) -> list[Term]:
    """The terms by their places; one without a place comes right behind the last of its operands."""
    place: dict[Term, int] = {}
    for term in order:
        below = max((place[operand] for operand in term.operands if operand in place), default=-1)
        place[term] = max(places.get(term, below), below)
    return sorted(order, key=place.__getitem__)
