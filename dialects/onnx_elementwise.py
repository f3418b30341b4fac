"""Elementwise ONNX ops by the definitions of `onnx_elementwise.rules`: what a node leaves out is filled in, and operands are broadcast."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from coset.dialects import onnx_ops
from coset.dialects.hub_terms import convert, numpy_broadcast
from coset.dialects.onnx_dtypes import USUAL
from coset.dialects.onnx_node import Built, Node, definition
from coset.dialects.onnx_pointwise import broadcast_all, named_attributes
from coset.ir.op import Op, get_op
from coset.ir.term import Term, make
from coset.ir.types import F32
from coset.rules.definition import defer_definitions

RULES = defer_definitions(Path(__file__).with_name("onnx_elementwise.rules"))
DEFINED_FIRST = onnx_ops  # and what it imports: the definitions mention those ops
_BROADCAST_SINCE = 7  # before, broadcasting was asked for by attributes


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


@definition("Shrink", "IsInf")
def _same_shape(node: Node) -> Built:
    """The op of the same name on the operands as they are."""
    op = get_op(f"onnx.{node.name}")
    return make(op, node.operands, known_attributes(op, node))


@definition("BitShift")
def _bit_shift(node: Node) -> Built:
    """In the direction that the node says."""
    direction = node.attributes.get("direction")
    if direction not in ("LEFT", "RIGHT"):
        return None
    return make("onnx.BitShift", broadcast_all(node.operands), {"to_left": int(direction == "LEFT")})


@definition("Mod")
def _mod(node: Node) -> Built:
    """Of floats before version 28 only C's remainder is said."""
    floor = not node.attributes.get("fmod", 0)
    if node.since < 28 and floor and node.operands[0].tensor.dtype.kind == "float":
        return None
    return make("onnx.Mod", broadcast_all(node.operands), {"fmod": int(not floor)})


@definition("Pow")
def _pow(node: Node) -> Built:
    """The operands are broadcast to one shape."""
    return make("onnx.Pow", broadcast_all(node.operands)) if node.since >= _BROADCAST_SINCE else None


@definition("PRelu")
def _prelu(node: Node) -> Built:
    """The slope is broadcast to the shape of the first operand."""
    x, slope = node.operands
    return make("onnx.PRelu", (x, numpy_broadcast(slope, x.tensor.dims))) if node.since >= _BROADCAST_SINCE else None
