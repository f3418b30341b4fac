"""What a finished search hands to extraction: e-classes as plain data, without egglog."""

from __future__ import annotations

from dataclasses import dataclass

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
    its roots reach, operands before users: the class, and the index of the term's e-node in `nodes[class]`.
    """

    types: list[Type]
    nodes: list[tuple[ENode, ...]]
    roots: tuple[int, ...]
    constant: frozenset[int]
    source: tuple[tuple[int, int], ...]
