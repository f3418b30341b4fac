"""A program: named inputs and outputs over one term graph, with what its source said beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from coset.ir import dims
from coset.ir.term import Term, topological
from coset.ir.types import TensorType


@dataclass(frozen=True)
class Program:
    """Inputs (`builtin.input` terms, in order) and outputs (name, term), in order.

    `effects` is the last token of the effectful terms, or None. `source` holds what the frontend needs to write the
    program back in its own format (names, metadata, functions, versions); nothing else reads it.
    """

    inputs: tuple[Term, ...]
    outputs: tuple[tuple[str, Term], ...]
    effects: Term | None = None
    source: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @property
    def roots(self) -> tuple[Term, ...]:
        """What must be computed: the outputs, and the last token where there are effects."""
        outputs = tuple(term for _, term in self.outputs)
        return outputs if self.effects is None else (*outputs, self.effects)

    def terms(self) -> Iterator[Term]:
        """Every term that the roots need, operands before users."""
        return topological(self.roots)

    def with_roots(self, roots: tuple[Term, ...]) -> "Program":
        """The same interface over other root terms, in the order of `roots`."""
        outputs = tuple((name, term) for (name, _), term in zip(self.outputs, roots, strict=False))
        return replace(self, outputs=outputs, effects=None if self.effects is None else roots[len(self.outputs)])

    def symbols(self) -> tuple[str, ...]:
        """The dim symbols of the inputs, sorted."""
        found: set[str] = set()
        for term in self.inputs:
            if isinstance(term.type, TensorType) and term.type.shape is not None:
                for dim in term.type.shape:
                    found |= dims.symbols(dim)
        return tuple(sorted(found))
