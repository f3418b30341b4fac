"""ONNX's reductions and what is made of them, by the definitions of `reductions.rules` and the hub's reduce."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from coset.dialects.hub import stablehlo_regions
from coset.dialects.hub.terms import convert, reshape, splat
from coset.dialects.onnx import ops as onnx_ops
from coset.dialects.onnx.dtypes import USUAL
from coset.dialects.onnx.linear import kept, reduced_axes, softmax
from coset.dialects.onnx.node import Built, Node, axis_of, definition
from coset.ir import dims
from coset.ir.term import Term, make
from coset.ir.types import F32
from coset.rules.defining import defer_definitions

RULES = defer_definitions(Path(__file__).with_name("reductions.rules"))
DEFINED_FIRST = (onnx_ops, stablehlo_regions)  # the definitions mention their ops


@definition("ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean")
def _reduce(node: Node) -> Built:
    """Over the given axes, or over all of them where none are given unless `noop_with_empty_axes`; even over none, the op's own
    function of the one element is left."""
    x = node.operands[0]
    axes = reduced_axes(node, x.tensor.rank)
    if axes is None:
        return None
    whole = node.name == "ReduceMean" and x.tensor.dtype.kind != "float"
    reduced = _integer_mean(x, axes) if whole else make(f"onnx.{node.name}", (x,), {"dimensions": axes})
    return None if reduced is None else kept(node, reduced, x, axes)


def _integer_mean(x: Term, axes: Sequence[int]) -> Term | None:
    """The sum divided by the count, truncated."""
    total = make("stablehlo.reduce", (x,), {"dimensions": tuple(axes), "combiner": "add"})
    count = dims.product(x.tensor.dims[axis] for axis in axes)
    if not isinstance(count, int):
        return None
    return make("stablehlo.divide", (total, splat(count, x.tensor.dtype, total.tensor.dims)))


@definition("ArgMax", "ArgMin")
def _arg_extreme(node: Node) -> Built:
    """The place along one axis, counted from its beginning."""
    x = node.operands[0]
    axis = axis_of(node.attributes.get("axis", 0), x.tensor.rank)
    if axis is None:
        return None
    last = node.attributes.get("select_last_index", 0)
    return kept(node, make(f"onnx.{node.name}", (x,), {"axis": axis, "select_last_index": last}), x, (axis,))


@definition("Hardmax")
def _hardmax(node: Node) -> Built:
    """Along one axis since version 13 (default: the last); before, along all dims from `axis` (default 1) on, flattened."""
    x = node.operands[0]
    axis = axis_of(node.attributes.get("axis", -1 if node.since >= 13 else 1), x.tensor.rank)
    if axis is None:
        return None
    if node.since >= 13:
        return make("onnx.Hardmax", (x,), {"axis": axis})
    flat = reshape(x, (dims.product(x.tensor.dims[:axis]), dims.product(x.tensor.dims[axis:])))
    return reshape(make("onnx.Hardmax", (flat,), {"axis": 1}), x.tensor.dims)


@definition("Softmax", "LogSoftmax")
def _softmax(node: Node) -> Built:
    """Element types that are not built on import are computed as f32."""
    x = node.operands[0]
    result = None if x.tensor.dtype in USUAL else softmax(node, convert(x, F32))
    return None if result is None else convert(result, x.tensor.dtype)


@definition("CumSum", "CumProd")
def _cumulative(node: Node) -> Built:
    """Along the one axis that the second operand says."""
    x, axes = node.operands[0], node.ints(1)
    axis = axis_of(axes[0], x.tensor.rank) if axes is not None and len(axes) == 1 else None
    if axis is None:
        return None
    exclusive, backward = (int(bool(node.attributes.get(name, 0))) for name in ("exclusive", "reverse"))
    return make(f"onnx.{node.name}", (x,), {"axis": axis, "exclusive": exclusive, "backward": backward})
