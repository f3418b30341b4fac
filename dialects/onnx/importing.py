"""How ONNX nodes of known ops become terms: simple ones hub terms, those with kernels of their own named terms, all else stays opaque.

`BUILDERS` is the table of known ops. A builder gives None where it cannot be sure that the term means exactly what the
node does (old forms of an op, values that are not known, shapes that may not broadcast).
Source of every meaning: https://onnx.ai/onnx/operators/, versions up to `NEWEST`.
"""

from __future__ import annotations

from coset.dialects.onnx import linear as onnx_linear
from coset.dialects.onnx import moves as onnx_moves
from coset.dialects.onnx import pointwise as onnx_pointwise
from coset.dialects.onnx import quantized as onnx_quantized
from coset.dialects.onnx.dtypes import USUAL
from coset.dialects.onnx.node import BUILDERS, DEFINITIONS, Node, constant_elements
from coset.ir.builtin import ABSENT
from coset.ir.errors import TypeRuleError
from coset.ir.term import Term
from coset.ir.types import TensorType

__all__ = ["BUILDERS", "NEWEST", "Node", "build", "constant_elements", "known"]
NEWEST = 28  # the newest version of the default domain whose changes have been read
_ANY_TYPE = {"Identity", "Constant"}  # known for every element type
BUILDERS.update({**onnx_pointwise.BUILDERS, **onnx_moves.BUILDERS, **onnx_linear.BUILDERS, **onnx_quantized.BUILDERS})


def build(node: Node) -> tuple[Term, ...] | None:
    """The results of `node` as terms (at least the first `node.results`), or None where it is to stay opaque."""
    builder = BUILDERS.get(node.name)
    if builder is None or node.since > NEWEST or not (node.name in _ANY_TYPE or all(map(_usual, node.operands))):
        return None
    try:
        built = builder(node)
    except TypeRuleError:
        return None  # the hub cannot type it: symbolic shapes that may or may not fit, or a node that fails when it is run
    if built is None:
        return None
    results = (built,) if isinstance(built, Term) else built
    return results if len(results) >= node.results else None


def known(name: str, since: int) -> bool:
    """True when a node of the op in this version has a definition, so that it need not stay opaque."""
    return (name in DEFINITIONS or name in BUILDERS) and since <= NEWEST


def _usual(operand: Term) -> bool:
    type = operand.type
    return operand.op is ABSENT or (isinstance(type, TensorType) and type.shape is not None and type.dtype in USUAL)
