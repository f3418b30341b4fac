"""Elementwise ONNX ops by the definitions of `elementwise.rules`: what a node leaves out is filled in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from coset.dialects.hub.terms import convert
from coset.dialects.onnx import ops as onnx_ops
from coset.dialects.onnx.dtypes import USUAL
from coset.dialects.onnx.node import Built, Node, definition
from coset.dialects.onnx.pointwise import named_attributes, prelu
from coset.dialects.onnx.sugar import sugar
from coset.ir.op import Op, get_op
from coset.ir.term import Term, make
from coset.ir.types import F32
from coset.rules.defining import defer_definitions

RULES = defer_definitions(Path(__file__).with_name("elementwise.rules"))
DEFINED_FIRST = onnx_ops  # and what it imports: the definitions mention those ops


def known_attributes(op: Op, node: Node) -> dict[str, Any]:
    """Those attributes of `node` that the definition of `op` has too; what is left out has its default there."""
    return {attribute.name: node.attributes[attribute.name] for attribute in op.attributes if attribute.name in node.attributes}


@definition("Celu", "Swish", "SwiGLU", "ThresholdedRelu", "Softsign")
def _activation(node: Node) -> Built:
    """The op of the same name; floats narrower than f32 are computed as f32, as kernels do, and rounded once."""
    return _computed_wide(node, known_attributes(get_op(f"onnx.{node.name}"), node))


@definition("Elu", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Mish", "Selu", "Softplus")
def _activation_with_kernel(node: Node) -> Built:
    """Those that are built on import, for element types that are not: as `_activation` has it."""
    if node.operands[0].tensor.dtype in USUAL:
        return None  # as it is built on import
    return _computed_wide(node, named_attributes(node))


def _computed_wide(node: Node, attributes: dict[str, Any]) -> Term:
    dtype = node.operands[0].tensor.dtype
    narrow = dtype.kind == "float" and dtype.bits < F32.bits
    operands = [convert(operand, F32) if narrow else operand for operand in node.operands]
    return convert(make(f"onnx.{node.name}", operands, attributes), dtype)


@definition("Shrink")
def _shrink(node: Node) -> Built:
    """The op of the same name on the operand as it is."""
    op = get_op("onnx.Shrink")
    return make(op, node.operands, known_attributes(op, node))


definition("PRelu")(prelu)


definition("IsInf", "BitShift", "Pow")(sugar)


@definition("Mod")
def _mod(node: Node) -> Built:
    """Of floats before version 28 only C's remainder is said."""
    floats = node.operands[0].tensor.dtype.kind == "float"
    return None if node.since < 28 and floats and not node.attributes.get("fmod", 0) else sugar(node)
