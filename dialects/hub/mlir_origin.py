"""What the reader of StableHLO keeps of a module for those who write or refuse it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from coset.ir.place import Place
from coset.ir.program_source import ModelOrigin, ProgramSource
from coset.ir.term import Term


@dataclass(frozen=True)
class MlirOrigin(ModelOrigin):
    """`places` says where in the text each hinted term stands."""

    places: Mapping[Term, Place] = field(default_factory=dict)


NOWHERE = MlirOrigin()


def mlir_origin(source: ProgramSource | None) -> MlirOrigin:
    """The origin in the source of a program from StableHLO; of any other program one that says nothing."""
    return source.origin if source is not None and isinstance(source.origin, MlirOrigin) else NOWHERE
