"""Patterns: the terms with holes on both sides of a rule. Attributes and types are not in them: `Rule.decide` knows those."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Union

from coset.ir.op import Op


@dataclass(frozen=True)
class Variable:
    """A hole for a term; the same name twice means the same term."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Application:
    """An op over patterns. `index` is the preorder number among the applications of its side, the key of attributes and types."""

    op: Op
    operands: tuple["Pattern", ...]
    index: int

    def __str__(self) -> str:
        return f"{self.op.name}({', '.join(map(str, self.operands))})" if self.operands else self.op.name


Pattern = Union[Variable, Application]


def applications(pattern: Pattern) -> Iterator[Application]:
    """The applications of `pattern` in preorder, so that the n-th one has index n."""
    if isinstance(pattern, Application):
        yield pattern
        for operand in pattern.operands:
            yield from applications(operand)
