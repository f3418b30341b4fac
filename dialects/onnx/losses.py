"""ONNX's losses, and normalizations without weights: attributes completed; the formulas are in `losses.rules`."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from coset.dialects.hub import stablehlo_regions
from coset.dialects.onnx import ops as onnx_ops
from coset.dialects.onnx.node import Built, Node, axes_of, axis_of, definition
from coset.ir.builtin import absent
from coset.ir.errors import require
from coset.ir.term import Term, make
from coset.rules.defining import defer_definitions

PRIMITIVES = (onnx_ops, stablehlo_regions)  # the definitions mention their ops
RULES = defer_definitions(Path(__file__).with_name("losses.rules"))


@definition("NegativeLogLikelihoodLoss")
def _likelihood(node: Node) -> Built:
    return _loss("onnx.NegativeLogLikelihoodLoss", node, node.operands[0])


@definition("SoftmaxCrossEntropyLoss")
def _cross_entropy(node: Node) -> Built:
    """The loss and the logarithms of the probabilities."""
    return _loss("onnx.SoftmaxCrossEntropyLoss", node, node.operands[0]), make("onnx.LogSoftmax", node.operands[:1], {"axis": 1})


def _loss(op: str, node: Node, x: Term) -> Term:
    """No target is ignored where nothing is said: -1 is no class."""
    reduction = node.attributes.get("reduction", "mean")
    require(reduction in ("none", "sum", "mean"), f"{node.name} has no reduction `{reduction}`")
    given = {"reduction": reduction, "ignore_index": node.attributes.get("ignore_index", -1)}
    return make(op, (x, node.operands[1], node.operand(2) or absent()), given)


@definition("LpNormalization")
def _lp(node: Node) -> Built:
    x = node.operands[0]
    axis = axis_of(node.attributes.get("axis", -1), x.tensor.rank)
    order = node.attributes.get("p", 2)
    return None if axis is None or order not in (1, 2) else make("onnx.LpNormalization", (x,), {"axis": axis, "p": order})


@definition("MeanVarianceNormalization")
def _mean_variance(node: Node) -> Built:
    x = node.operands[0]
    axes = axes_of(node.attributes.get("axes", (0, 2, 3)), x.tensor.rank)
    return None if axes is None else make("onnx.MeanVarianceNormalization", (x,), {"axes": axes})


@definition("LRN")
def _local_response(node: Node) -> Built:
    """Neighbours beyond the first and the last channel count as zeros."""
    x = node.operands[0]
    defaults = {"alpha": float(np.float32(1e-4)), "beta": 0.75, "bias": 1.0}
    given = {name: float(node.attributes.get(name, default)) for name, default in defaults.items()}
    return make("onnx.LRN", (x,), {**given, "size": node.attributes["size"]})
