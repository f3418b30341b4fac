"""One operation of a module as builders of terms see it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from coset.frontends.stablehlo.attributes import Foreign, attribute_of, sized, value_of
from coset.ir import dims
from coset.ir.dims import Dim, Shape
from coset.ir.term import Region, Term
from coset.ir.types import DType, Type


class KnownDim(Exception):
    """Every run that does not fail has `symbol` equal to `dim`: the import begins again with it."""

    def __init__(self, symbol: str, dim: Dim) -> None:
        super().__init__(symbol, dim)
        self.symbol, self.dim = symbol, dim


class Importer(Protocol):
    """What builders may ask the import for."""

    def fresh(self, hint: str) -> Dim:
        """A new symbol; a repeated import gives the same names in the same order."""

    def equal(self, a: Dim, b: Dim) -> None:
        """State that a run that does not fail has a = b."""

    def region(self, region: Any, parameters: Sequence[Term], outer: Any) -> Region:
        """The payload function of a region, whose outer values are `outer` (Value -> Term)."""

    def function(self, name: str, types: Sequence[Type]) -> Region:
        """The private function `name` as a payload function of parameters of these types."""

    def remember(self, term: Term, op: Any) -> None:
        """Where `term` stands in the module: errors about it say so."""

    def keep_check(self, op: Any) -> None:
        """Keep an assertion about sizes beside the program: it is no term of it."""

    def inline(self, region: Any, arguments: Sequence[Term], scope: Any) -> list[Term]:
        """The terms that a region returns, its operations put into the program at this place."""


@dataclass(frozen=True)
class MlirOperation:
    """An operation: its name with dialect, operand terms, and the bindings' object for the rest."""

    op: Any
    name: str
    operands: tuple[Term, ...]
    scope: Any  # Value -> Term at this place
    importer: Importer

    def value(self, name: str, default: Any = None) -> Any:
        """The plain value of the attribute `name`, or `default` where it is not there."""
        attribute = attribute_of(self.op, name)
        return default if attribute is None else value_of(attribute)

    def text(self, name: str) -> str | None:
        """The attribute `name` as it is written, or None."""
        attribute = attribute_of(self.op, name)
        return None if attribute is None else str(attribute)

    @property
    def regions(self) -> list[Any]:
        return list(self.op.regions)

    def result(self, index: int = 0) -> tuple[DType, tuple[int | None, ...]]:
        """Element type and sizes of a result.

        Raises:
            Foreign: it is no ranked tensor of our element types.
        """
        found = sized(self.op.results[index].type)
        if found is None:
            raise Foreign
        return found

    def shape(self, index: int = 0) -> Shape:
        """The static shape of a result.

        Raises:
            Foreign: a size is dynamic.
        """
        sizes = self.result(index)[1]
        if any(size is None for size in sizes):
            raise Foreign
        return tuple(size for size in sizes if size is not None)

    def open_shape(self, index: int = 0) -> Shape:
        """The shape of a result, a fresh symbol for each dynamic size."""
        return tuple(self.importer.fresh("d") if size is None else size for size in self.result(index)[1])


Built = Term | Sequence[Term]
Builder = Callable[[MlirOperation], Built | None]


def solve(a: Dim, b: Dim, age: Callable[[str], int]) -> tuple[str, Dim] | None:
    """A symbol and the dim that it must be for a = b: the youngest that stands alone with factor 1 or -1; None where there is none."""
    difference = dims.subtract(a, b)
    if isinstance(difference, int):
        return None
    candidates = []
    for monomial, coefficient in difference.terms:
        if len(monomial) == 1 and not monomial[0].args and abs(coefficient) == 1:
            name = monomial[0].name
            rest = dims.subtract(difference, dims.multiply(coefficient, dims.symbol(name)))
            if name not in dims.symbols(rest):
                candidates.append((age(name), name, dims.multiply(-coefficient, rest)))
    if not candidates:
        return None
    _, name, value = max(candidates, key=lambda candidate: candidate[:2])
    return None if isinstance(value, int) and value < 0 else (name, value)
