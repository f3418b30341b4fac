"""Values inside a model as outputs of it: copies for comparisons, in which what a program keeps can be seen."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import onnx

from coset.dialects.onnx.dtypes import CODE_OF_DTYPE
from coset.dialects.onnx.origin import header_bytes, with_header
from coset.ir.errors import CosetError
from coset.ir.program import Program
from coset.ir.types import TensorType


def unlisted(program: Program) -> tuple[str, ...]:
    """The outputs of a program from ONNX that its header does not list: the values that it keeps."""
    return tuple(name for name, _ in program.outputs if name not in {value.name for value in _header(program).graph.output})


def listed(program: Program) -> Program:
    """The program with all of its outputs in its header.

    Raises:
        CosetError: one is no tensor.
    """
    header = _header(program)
    header.graph.output.extend(outputs_of(program, unlisted(program)))
    return with_header(program, header.SerializeToString())


def outputs_of(program: Program, names: Sequence[str]) -> list[onnx.ValueInfoProto]:
    """Descriptions of the outputs called `names`, of any shape.

    Raises:
        CosetError: one is no tensor.
    """
    found = []
    for name, term in program.outputs:
        if name in names:
            if not isinstance(term.type, TensorType):
                raise CosetError(
                    f"the value `{name}` cannot be kept: it is {term.type}, no tensor", help="keep a tensor that is made of it"
                )
            found.append(onnx.helper.make_tensor_value_info(name, CODE_OF_DTYPE[term.type.dtype], None))
    return found


def copy_with_outputs(model: Path, more: Sequence[onnx.ValueInfoProto], copy: Path) -> None:
    """Write the model at `model` with further outputs to `copy`, which is beside it: the weights in a file of their own are both's."""
    proto = onnx.load(str(model), load_external_data=False)
    proto.graph.output.extend(more)
    copy.write_bytes(proto.SerializeToString())


def _header(program: Program) -> onnx.ModelProto:
    header = onnx.ModelProto()
    header.ParseFromString(header_bytes(program))
    return header
