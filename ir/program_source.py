"""What is known of a program beside its terms: names of values, inputs that its user gave, and the model that it was read from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from coset.ir.dims import Dim
from coset.ir.program import Program
from coset.ir.term import Term


@dataclass(frozen=True)
class ModelOrigin:
    """What only the reader and the writer of one format know of a model: each such format has a subclass."""


@dataclass(frozen=True)
class ProgramSource:
    """What each layer may read of where a program comes from.

    `names` is what values are called in the model. `likely` is what a dim symbol that no input has most likely is. `samples` are
    inputs that the user gave, arrays by the names of inputs. `places` is where each term stands in an order that was chosen (None:
    none was). `origin` is what the format's own writer needs (None: nothing).
    """

    names: Mapping[Term, str] = field(default_factory=dict)
    likely: Mapping[str, Dim] = field(default_factory=dict)
    samples: tuple[dict[str, Any], ...] = ()
    places: Mapping[Term, int] | None = None
    origin: ModelOrigin | None = None


NO_SOURCE = ProgramSource()


def source_of(program: Program) -> ProgramSource:
    """The source of a program; of one that was read from nothing a source that says nothing."""
    return NO_SOURCE if program.source is None else program.source
