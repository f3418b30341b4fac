"""One ONNX node as a program: what somebody has timed is told by its op, the types of its operands and its attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import onnx
from onnx import helper

from coset.dialects.onnx.dtypes import CODE_OF_DTYPE
from coset.dialects.onnx.importing import BUILDERS
from coset.dialects.onnx.kept import opened
from coset.frontends.onnx.model import import_model
from coset.ir.errors import CosetError
from coset.ir.program import Program
from coset.ir.suggestions import like
from coset.ir.types import DTYPES

OPSET = 20  # where the op is no newer: newer versions differ in nothing that a price is made of
PARTS = 2  # outputs of a node that may have any number, where nothing says how many


@dataclass(frozen=True)
class NodeOperand:
    """An operand: an input of `dtype` and `shape`, or the `values` of a constant of one dim, or, without both, one that is left out."""

    dtype: str = "f32"
    shape: tuple[int, ...] | None = None
    values: tuple[int, ...] | None = None


def single_node(op: str, operands: Sequence[NodeOperand], attributes: Mapping[str, str]) -> Program:
    """The program of one node `op` of ONNX's own domain. Attributes are texts, read as the op declares them: numbers, or lists of numbers
    with commas between them.

    Raises:
        CosetError: there is no such op, or it has no such attributes, or does not take these operands.
    """
    schema = _schema(op)
    if not schema.min_input <= len(operands) <= schema.max_input:
        many = f"{schema.min_input}" if schema.min_input == schema.max_input else f"{schema.min_input} to {schema.max_input}"
        raise CosetError(f"`{op}` takes {many} operands, not {len(operands)}", help=", ".join(each.name for each in schema.inputs))
    given = {name: _attribute(schema, name, text) for name, text in attributes.items()}
    names = [f"x{place}" if each.shape is not None or each.values is not None else "" for place, each in enumerate(operands)]
    count = int(given.get("num_outputs", PARTS)) if schema.outputs and _is_variadic(schema.outputs[0]) else max(1, schema.min_output)
    node = helper.make_node(op, names, [f"y{place}" for place in range(count)], **given)
    inputs = [
        helper.make_tensor_value_info(name, CODE_OF_DTYPE[DTYPES[each.dtype]], each.shape)
        for name, each in zip(names, operands, strict=True)
        if each.shape is not None
    ]
    constants = [
        helper.make_tensor(name, onnx.TensorProto.INT64, [len(each.values)], each.values)
        for name, each in zip(names, operands, strict=True)
        if each.values is not None
    ]
    graph = helper.make_graph([node], "one", inputs, [], constants)
    program = import_model(_typed(helper.make_model(graph, opset_imports=[helper.make_opsetid("", max(OPSET, schema.since_version))])))
    if op in BUILDERS and any(term.op.name == "onnx.node" and opened(term) is None for term in program.terms()):  # ONNX looks at less
        raise CosetError(f"`{op}` does not take these operands", help="look at the shapes and the attributes")
    return program


def _schema(op: str) -> Any:
    """What ONNX says of the op.

    Raises:
        CosetError: it has no such op.
    """
    try:
        return onnx.defs.get_schema(op, OPSET, "")
    except onnx.defs.SchemaError:
        pass
    try:
        return onnx.defs.get_schema(op, onnx.defs.onnx_opset_version(), "")
    except onnx.defs.SchemaError:
        known = {schema.name for schema in onnx.defs.get_all_schemas() if schema.domain == ""}
        help = like(op, sorted(known)) or "the name of an ONNX op, as Conv or MatMul"
        raise CosetError(f"there is no ONNX op `{op}`", help=help) from None


def _is_variadic(parameter: Any) -> bool:
    return bool(parameter.option == onnx.defs.OpSchema.FormalParameterOption.Variadic)


def _attribute(schema: Any, name: str, text: str) -> Any:
    """The value of an attribute that is written as `text`."""
    declared = schema.attributes.get(name)
    if declared is None:
        known = sorted(schema.attributes)
        help = like(name, known) or f"it has: {', '.join(known) or 'none'}"
        raise CosetError(f"`{schema.name}` has no attribute `{name}`", help=help)
    kinds = onnx.defs.OpSchema.AttrType
    try:
        if declared.type in (kinds.INT, kinds.FLOAT):
            return int(text) if declared.type == kinds.INT else float(text)
        if declared.type in (kinds.INTS, kinds.FLOATS):
            return [int(word) if declared.type == kinds.INTS else float(word) for word in text.split(",")]
    except ValueError:
        raise CosetError(f"the attribute `{name}` is `{text}`", help="a number, or numbers with commas between them") from None
    if declared.type == kinds.STRING:
        return text
    raise CosetError(f"the attribute `{name}` cannot be told here", help="numbers, lists of numbers and texts can")


def _typed(model: Any) -> Any:
    """The model with its outputs, as ONNX infers their types.

    Raises:
        CosetError: the node does not take such operands.
    """
    try:
        outputs = {name for node in model.graph.node for name in node.output}
        model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in sorted(outputs))
        inferred = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
        onnx.checker.check_model(inferred, full_check=True)
    except (onnx.shape_inference.InferenceError, onnx.checker.ValidationError, RuntimeError, ValueError) as error:
        said = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise CosetError(
            f"ONNX refuses these operands: {said[-1] if said else error}", help="look at the shapes and element types"
        ) from None
    return inferred
