"""What the reader of StableHLO keeps of a module for those who write it again, or refuse it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from coset.dialects.hub.mlir_text import DimBounds
from coset.ir.place import Place
from coset.ir.program_source import ModelOrigin, ProgramSource
from coset.ir.term import Term

Named = tuple[tuple[str, str], ...]  # attributes: a name and the text of its value, sorted by name


@dataclass(frozen=True)
class KeptOperation:
    """An operation that is written before all others: `payload` is its text between operands and types, `results` the types of its results.
    An operand n >= 0 is result n, counted through all kept operations; ~i is the program's input i."""

    name: str
    operands: tuple[int, ...]
    payload: str
    results: tuple[str, ...]


@dataclass(frozen=True)
class MlirOrigin(ModelOrigin):
    """`places` says where in the text each hinted term stands.

    `module` and `function` are what the module and the program's function are called ("": the module has no name). `module_attributes`,
    `function_attributes`, and for each input and each output in order `arguments` and `results`, are attributes that say nothing of the
    program itself. `beside` are the other operations of the module that stay, as text, by their names. `resources` has the bytes of
    `dense_resource` constants in all of these as MLIR writes them, by their names. `checks` are the program's assertions about sizes and
    what they are computed from. `bounds` are the largest numbers of dim symbols;
    `argument_bounds` and `result_bounds` are those of the dims of each input and output, as the module has them. `constraints` counts
    the values of which the program says how they lie on devices. `lost` names what could not be kept.
    """

    places: Mapping[Term, Place] = field(default_factory=dict)
    module: str = ""
    function: str = "main"
    module_attributes: Named = ()
    function_attributes: Named = ()
    arguments: tuple[Named, ...] = ()
    results: tuple[Named, ...] = ()
    beside: Mapping[str, str] = field(default_factory=dict)
    resources: Mapping[str, str] = field(default_factory=dict)
    bounds: Mapping[str, int] = field(default_factory=dict)
    argument_bounds: tuple[DimBounds, ...] = ()
    result_bounds: tuple[DimBounds, ...] = ()
    checks: tuple[KeptOperation, ...] = ()
    constraints: int = 0
    lost: tuple[str, ...] = ()


NOWHERE = MlirOrigin()


def mlir_origin(source: ProgramSource | None) -> MlirOrigin:
    """The origin in the source of a program from StableHLO; of any other program one that says nothing."""
    return source.origin if source is not None and isinstance(source.origin, MlirOrigin) else NOWHERE
