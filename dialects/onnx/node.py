"""One ONNX node as the builders of terms see it, and what they have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any, Union

import numpy as np

from coset.dialects.hub.terms import is_splat
from coset.ir.builtin import ABSENT
from coset.ir.dims import Dim, Poly
from coset.ir.op import Array
from coset.ir.term import CONSTANT, Term
from coset.ir.types import ForeignType, TensorType


@dataclass(frozen=True)
class Node:
    """A node of a standard domain (`name` has it before the op's, but for the default one). A missing optional operand is `builtin.absent`.

    `attributes` hold numbers, text, tuples and Constants; `host[i]` are the elements of operand i as dims where they are
    known (an object array), else None; `since` is the version in which the op got its present form; `results` counts the
    results up to the last one that is used, `outputs` all that the node has.
    """

    name: str
    operands: tuple[Term, ...]
    attributes: dict[str, Any]
    host: tuple[Any, ...]
    since: int
    results: int = 1
    outputs: int = 1
    most: Mapping[str, int] = field(default_factory=dict)  # symbols and the numbers that they are never above

    def operand(self, index: int) -> Term | None:
        """Operand `index`, or None where it is not given."""
        found = self.operands[index] if index < len(self.operands) else None
        return None if found is None or found.op is ABSENT else found

    def dims(self, index: int) -> list[Dim] | None:
        """The elements of a vector (or single number) of the host, or None where operand `index` is none."""
        value = self.host[index] if index < len(self.host) else None
        return None if value is None or value.ndim > 1 else list(value.reshape(-1))

    def ints(self, index: int) -> list[int] | None:
        """The elements as `dims` gives them when they are plain numbers, else None."""
        found = self.dims(index)
        return None if found is None or any(isinstance(dim, Poly) for dim in found) else [dim for dim in found if isinstance(dim, int)]

    def given(self, index: int) -> bool:
        """True when operand `index` is given."""
        return self.operand(index) is not None


Built = Union[Term, tuple[Term, ...], None]
Builder = Callable[[Node], Built]  # None: the node is to stay opaque


def constant_elements(term: Term, limit: int) -> Array | None:
    """The elements of a constant (or splat) of at most `limit` elements, or None."""
    if not isinstance(term.type, TensorType) or term.type.static is None or prod(term.type.static) > limit:
        return None
    core = is_splat(term) or (term.attribute("value") if term.op is CONSTANT else None)
    return None if core is None or not core.has_elements else np.array(np.broadcast_to(core.array(), term.type.static))


def axis_of(axis: int, rank: int) -> int | None:
    """`axis` counted from the front; None where there is no such dim."""
    return axis % rank if -rank <= axis < rank else None


def axes_of(axes: list[int] | tuple[int, ...], rank: int) -> tuple[int, ...] | None:
    """`axes` counted from the front, sorted; None where one is no dim or twice there."""
    found = sorted(axis % rank for axis in axes if -rank <= axis < rank)
    return tuple(found) if len(found) == len(axes) and len(set(found)) == len(found) else None


# ---------------------------------------------------------------- definitions

DEFINITIONS: dict[str, Builder] = {}  # op -> the term that a node of it means, given what is known of its operands
BUILDERS: dict[str, Builder] = {}  # the same for nodes that become terms on import, because their terms can be written as ONNX again


def definition(*names: str) -> Callable[[Builder], Builder]:
    """Enter a builder as the definition of the ops `names`: what a node means, whether or not we could write the term as ONNX again."""

    def enter(builder: Builder) -> Builder:
        for name in names:
            assert name not in DEFINITIONS, f"{name} is defined twice"
            DEFINITIONS[name] = builder
        return builder

    return enter


def define(node: Node) -> tuple[Term, ...] | None:
    """The results of `node` by its op's definition; None where it has none, or none that fits, or an operand is no tensor of a known rank.

    Raises:
        TypeRuleError: the node is no valid one, or its shapes are not known well enough.
    """
    if any(isinstance(operand.type, ForeignType) or getattr(operand.type, "shape", ()) is None for operand in node.operands):
        return None
    for table in (DEFINITIONS, BUILDERS):
        built = table[node.name](node) if node.name in table else None
        if built is not None:
            results = (built,) if isinstance(built, Term) else built
            return results if len(results) >= node.results else None
    return None
