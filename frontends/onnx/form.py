"""What an op asks of its nodes: how many operands and results, which of them must be there, and attributes of which kinds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import onnx


@dataclass(frozen=True)
class OpSchema:
    """The least and the most operands and results of an op, the operands (place, name) that must be given, and its attributes: the kind of
    each, and whether it must be given. `operands`: what all of them are called, as far as that is known. `help`: what to do about a node
    that is otherwise, if it is not to follow the op's form."""

    inputs: tuple[int, int]
    required: tuple[tuple[int, str], ...]
    outputs: tuple[int, int]
    attributes: Mapping[str, tuple[str, bool]]
    variadic: int | None = None  # from which operand on all must be given
    help: str = ""
    operands: tuple[str, ...] = ()

    @cached_property
    def needed(self) -> tuple[str, ...]:
        """The attributes that must be given."""
        return tuple(name for name, (_, required) in self.attributes.items() if required)


def form_of(schema: Any) -> OpSchema:
    """The form that a schema of `onnx.defs` says."""
    single, variadic = onnx.defs.OpSchema.FormalParameterOption.Single, onnx.defs.OpSchema.FormalParameterOption.Variadic
    return OpSchema(
        (schema.min_input, schema.max_input),
        tuple((place, formal.name) for place, formal in enumerate(schema.inputs) if formal.option == single),
        (schema.min_output, schema.max_output),
        {name: (formal.type.name.lower(), bool(formal.required)) for name, formal in sorted(schema.attributes.items())},
        next((place for place, formal in enumerate(schema.inputs) if formal.option == variadic), None),
        operands=tuple(formal.name for formal in schema.inputs),
    )
