"""Which heavy classes of an e-graph a program may store after all: those without which nothing runs what the input has.

A target that has no form of a defined op runs its parts, whatever they weigh; whether the program keeps its range then is seen where it is
compared with the original.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import replace

from coset.egraph.saturated import Saturated
from coset.extract.storage import BROADCAST

Runs = Callable[[int, int], bool]  # whether something has a form for an e-node, by class and index


def without_heavy(saturated: Saturated, runs: Runs, constants: AbstractSet[int]) -> Saturated:
    """The e-graph, of whose heavy classes those are left that no class of the input needs. `constants` are made at build time."""
    if not saturated.heavy:
        return saturated
    users = _users(saturated, runs)
    possible = _made(saturated, users, constants, frozenset())
    wanted = {number for number, _ in saturated.source} & possible
    heavy = saturated.heavy
    while missing := wanted - _made(saturated, users, constants, heavy):
        needed = _below(saturated, runs, missing, _made(saturated, users, constants, heavy)) & heavy
        assert needed, "a class is out of reach though nothing heavy is below it"
        heavy -= needed
    return replace(saturated, heavy=heavy)


_Users = dict[int, list[tuple[int, int]]]  # class -> the e-nodes that read it, as class and index; -1: those that read nothing


def _users(saturated: Saturated, runs: Runs) -> _Users:
    """The e-nodes that something runs by what they read; a broadcast needs no kernel."""
    users: _Users = {}
    for number, nodes in enumerate(saturated.nodes):
        for index, node in enumerate(nodes):
            if node.op.name == BROADCAST or runs(number, index):
                for child in set(node.children) or {-1}:
                    users.setdefault(child, []).append((number, index))
    return users


def _made(saturated: Saturated, users: _Users, constants: AbstractSet[int], heavy: AbstractSet[int]) -> set[int]:
    """The classes that can be computed without storing the heavy ones."""
    found = set(constants)
    lacking: dict[tuple[int, int], int] = {}
    pending = [*found, -1]
    while pending:
        for number, index in users.get(pending.pop(), ()):
            if number in found or number in heavy:
                continue
            children = len(set(saturated.nodes[number][index].children) or {-1})
            lacking[number, index] = left = lacking.get((number, index), children) - 1
            if not left:
                found.add(number)
                pending.append(number)
    return found


def _below(saturated: Saturated, runs: Runs, numbers: Iterable[int], made: AbstractSet[int]) -> set[int]:
    """The classes below those of `numbers`, themselves too, that are not `made`."""
    found = set(numbers)
    pending = list(found)
    while pending:
        number = pending.pop()
        for index, node in enumerate(saturated.nodes[number]):
            if node.op.name == BROADCAST or runs(number, index):
                new = set(node.children) - found - made
                found |= new
                pending += new
    return found
