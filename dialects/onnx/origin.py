"""What the reader of ONNX keeps of a model for the writer of ONNX."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from coset.ir.constants import Constant
from coset.ir.program import Program
from coset.ir.program_source import ModelOrigin, ProgramSource, source_of
from coset.ir.term import Term


@dataclass(frozen=True)
class OnnxOrigin(ModelOrigin):
    """`model` is the serialized model without nodes and weights (None: there was none, or the program is a part of one), `opsets` the
    version of each domain.

    `defaults` are the constants of inputs that need not be given, by the input's name; `listed` the same for initializers before
    IR version 4, which are constants. `reserved` are names inside bodies. `positive` are symbols that are at least 1 in a run that
    does not fail. `external`: the model had external data. `values` has the term of each name, `nodes` the name of the node that
    computes a value, by the value's name, if the node has one, `kinds` the op of that node. `unused` counts the initializers that nothing
    reads, `ops` the nodes of each op. `unread` has nodes of the user's ops of which the definition says nothing, each with why.
    """

    model: bytes | None = None
    opsets: Mapping[str, int] = field(default_factory=dict)
    defaults: Mapping[str, Constant] = field(default_factory=dict)
    listed: Mapping[str, Constant] = field(default_factory=dict)
    reserved: frozenset[str] = frozenset()
    positive: frozenset[str] = frozenset()
    external: bool = False
    values: Mapping[str, Term] = field(default_factory=dict)
    nodes: Mapping[str, str] = field(default_factory=dict)
    kinds: Mapping[str, str] = field(default_factory=dict)
    unused: int = 0
    ops: Mapping[str, int] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)


NOWHERE = OnnxOrigin()


def onnx_origin(source: ProgramSource | None) -> OnnxOrigin:
    """The origin in the source of a program from ONNX; of any other program one that says nothing."""
    return source.origin if source is not None and isinstance(source.origin, OnnxOrigin) else NOWHERE


def header_bytes(program: Program) -> bytes:
    """The serialized model, without nodes and weights, that a program from ONNX was read from."""
    model = onnx_origin(program.source).model
    assert model is not None, "the program does not come from a model in ONNX"
    return model


def with_header(program: Program, model: bytes, *, opsets: Mapping[str, int] | None = None) -> Program:
    """A program from ONNX with another serialized `model`, and with other `opsets` if some are given."""
    origin = onnx_origin(program.source)
    changed = replace(origin, model=model, opsets=origin.opsets if opsets is None else opsets)
    return replace(program, source=replace(source_of(program), origin=changed))
