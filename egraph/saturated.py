"""What a finished search hands to extraction: e-classes as plain data, without egglog."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from coset.ir.op import Op
from coset.ir.term import AttributeItems, Region
from coset.ir.types import Type


@dataclass(frozen=True, slots=True)
class ENode:
    """An op over e-classes (by number). `original`: the node stands in the input program."""

    op: Op
    children: tuple[int, ...]
    attributes: AttributeItems
    regions: tuple[Region, ...] = ()
    original: bool = False


@dataclass(frozen=True)
class Saturated:
    """E-classes numbered 0..n-1 in a deterministic order: the type and the e-nodes of each.

    `constant` are the classes whose value is known at build time. `source` lists the terms of the input program that
    its roots reach, operands before users: the class, and the index of the term's e-node in `nodes[class]`. `heavy`: classes that no
    program may store where it can do without (`egraph.heavy`).
    """

    types: list[Type]
    nodes: list[tuple[ENode, ...]]
    roots: tuple[int, ...]
    constant: frozenset[int]
    source: tuple[tuple[int, int], ...]
    heavy: frozenset[int] = frozenset()

    def below(self, roots: Sequence[int], source: Iterable[tuple[int, int]]) -> tuple[Saturated, list[int]]:
        """The classes that `roots` reach, numbered anew in their order, with those e-nodes of the input that are given; and the old
        number of each class."""
        seen = set(roots)
        stack = list(seen)
        while stack:
            for node in self.nodes[stack.pop()]:
                for child in node.children:
                    if child not in seen:
                        seen.add(child)
                        stack.append(child)
        numbers = sorted(seen)
        place = {number: new for new, number in enumerate(numbers)}
        nodes = [
            tuple(replace(node, children=tuple(place[child] for child in node.children)) for node in self.nodes[number])
            for number in numbers
        ]
        return Saturated(
            [self.types[number] for number in numbers], nodes, tuple(place[root] for root in roots),
            frozenset(place[number] for number in numbers if number in self.constant), tuple((place[c], index) for c, index in source),
            frozenset(place[number] for number in numbers if number in self.heavy),
        ), numbers  # fmt: skip
