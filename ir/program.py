"""A program: named inputs and outputs over one term graph, with what its source said beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from coset.ir import dims
from coset.ir.term import INPUT, Term, topological
from coset.ir.types import TensorType, TupleType, Type

if TYPE_CHECKING:  # nothing here reads it
    from coset.ir.program_source import ProgramSource


@dataclass(frozen=True)
class Program:
    """Inputs (`builtin.input` terms, in order) and outputs (name, term), in order.

    `effects` is the last token of the effectful terms, or None. `introduces` has, for dim symbols that no input has, the term whose
    result has that dim; `source` says where the program comes from. Programs that differ in these two alone are equal.
    """

    inputs: tuple[Term, ...]
    outputs: tuple[tuple[str, Term], ...]
    effects: Term | None = None
    introduces: Mapping[str, Term] = field(default_factory=dict, compare=False)
    source: ProgramSource | None = field(default=None, compare=False)

    @property
    def roots(self) -> tuple[Term, ...]:
        """What must be computed: the outputs, and the last token where there are effects."""
        outputs = tuple(term for _, term in self.outputs)
        return outputs if self.effects is None else (*outputs, self.effects)

    def terms(self) -> Iterator[Term]:
        """Every term that the roots need, operands before users."""
        return topological(self.roots)

    def unread(self) -> tuple[Term, ...]:
        """The inputs that no output depends on, neither on their values nor on dims that only they have."""
        needed = [term for term in topological((*self.roots, *self.sources.values())) if term.op is INPUT]
        known = spelled(needed)
        return tuple(term for term in self.inputs if term not in needed and spelled([term]) <= known)

    @cached_property
    def sources(self) -> Mapping[str, Term]:
        """The terms that have dim symbols which the roots' terms speak of and none of them has: they are computed for their shapes."""
        found: dict[str, Term] = {}
        while self.introduces:
            spoken: set[str] = set()
            spelled = set(self.symbols())
            for term in topological((*self.roots, *found.values())):
                spoken.update(symbols_in(term.type), symbols_of(term))
                if term.op is INPUT or term.op.has("foreign"):
                    shapes = [type.shape or () for type in tensors_in(term.type)]
                    spelled.update(name for shape in shapes for dim in shape if (name := dims.alone(dim)) is not None)
            more = {name: self.introduces[name] for name in sorted(spoken - spelled - set(found)) if name in self.introduces}
            if not more:
                break
            found |= more
        return found

    def with_sources(self, terms: Sequence[Term]) -> "Program":
        """The same program with `terms` in place of its `sources`, in their order."""
        return replace(self, introduces={**self.introduces, **dict(zip(self.sources, terms, strict=True))})

    def with_roots(self, roots: tuple[Term, ...]) -> "Program":
        """The same interface over other root terms, in the order of `roots`."""
        outputs = tuple((name, term) for (name, _), term in zip(self.outputs, roots, strict=False))
        return replace(self, outputs=outputs, effects=None if self.effects is None else roots[len(self.outputs)])

    def symbols(self) -> tuple[str, ...]:
        """The dim symbols of the inputs, sorted."""
        return tuple(sorted(spelled(self.inputs)))


def spelled(terms: Sequence[Term]) -> set[str]:
    """The symbols in the types of `terms`."""
    return {name for term in terms for name in symbols_in(term.type)}


def symbols_of(term: Term) -> set[str]:
    """The symbols in the attributes of `term`."""
    return {name for _, value in term.attributes for name in symbols_in(value)}


def symbols_in(value: Any) -> Iterator[str]:
    """The dim symbols of a type or an attribute's value."""
    if isinstance(value, dims.Poly):
        yield from sorted(dims.symbols(value))
    elif isinstance(value, TensorType):
        yield from symbols_in(value.shape or ())
    elif isinstance(value, TupleType):
        yield from symbols_in(value.items)
    elif type(value) is tuple:
        for item in value:
            if not isinstance(item, int):
                yield from symbols_in(item)


def tensors_in(type: Type) -> list[TensorType]:
    """The tensor types of a value: its own, or those of a tuple's items."""
    return [item for item in (type.items if isinstance(type, TupleType) else (type,)) if isinstance(item, TensorType)]
