"""ONNX's normalizations: their attributes and casts completed, for the definitions in `normalization.rules`."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from coset.dialects.hub.terms import broadcast, convert, numpy_broadcast, reshape, splat
from coset.dialects.onnx import arithmetic as a
from coset.dialects.onnx.dtypes import DTYPE_OF_CODE
from coset.dialects.onnx.node import Built, Node, axis_of, definition
from coset.dialects.onnx.ops import RULES as EARLIER
from coset.ir import dims
from coset.ir.builtin import absent
from coset.ir.errors import require
from coset.ir.term import Term, make
from coset.ir.types import DType
from coset.rules.defining import load_definitions

assert EARLIER  # the definitions mention onnx.ReduceMean
RULES = load_definitions(Path(__file__).with_name("normalization.rules"))
_EPSILON = float(np.float32(1e-5))


def _stash(node: Node) -> DType:
    """The element type that statistics are computed in: f32 unless `stash_type` says otherwise (or the operand is wider)."""
    own = node.operands[0].tensor.dtype
    stated = DTYPE_OF_CODE.get(node.attributes.get("stash_type", 1))
    require(stated is not None, f"{node.name} has no `stash_type` {node.attributes.get('stash_type')}")
    assert stated is not None
    return own if own.bits > stated.bits else stated


@definition("LayerNormalization")
def _layer_normalization(node: Node) -> Built:
    """The normalized operand, its means and the inverses of its deviations: the latter two in the stash type, normalized dims 1."""
    x, scale = node.operands[:2]
    axis = axis_of(node.attributes.get("axis", -1), x.tensor.rank)
    if axis is None:
        return None
    dtype, stash, epsilon = x.tensor.dtype, _stash(node), node.attributes.get("epsilon", _EPSILON)
    wide = convert(x, stash)
    bias = node.operand(2)
    rest = x.tensor.dims[axis:]
    operands = (wide, *(convert(numpy_broadcast(w, rest), stash) if w is not None else absent() for w in (scale, bias)))
    result = convert(make("onnx.LayerNormalization", operands, {"axis": axis, "epsilon": epsilon}), dtype)
    kept = (*x.tensor.dims[:axis], *(1,) * len(rest))
    mean = _mean(wide, axis)
    deviation = make("stablehlo.subtract", (wide, broadcast(mean, x.tensor.dims, tuple(range(axis)))))
    variance = _mean(make("stablehlo.multiply", (deviation, deviation)), axis)
    raised = make("stablehlo.add", (variance, splat(epsilon, stash, variance.tensor.dims)))
    stated = DTYPE_OF_CODE[node.attributes.get("stash_type", 1)]
    return result, *(convert(reshape(part, kept), stated) for part in (mean, make("stablehlo.rsqrt", (raised,))))


def _mean(x: Term, axis: int) -> Term:
    return make("onnx.ReduceMean", (x,), {"dimensions": tuple(range(axis, x.tensor.rank))})


@definition("RMSNormalization")
def _rms_normalization(node: Node) -> Built:
    x, scale = node.operands
    axis = axis_of(node.attributes.get("axis", -1), x.tensor.rank)
    if axis is None:
        return None
    stash = _stash(node)
    operands = (convert(x, stash), convert(numpy_broadcast(scale, x.tensor.dims[axis:]), stash))
    result = make("onnx.RMSNormalization", operands, {"axis": axis, "epsilon": node.attributes.get("epsilon", _EPSILON)})
    return convert(result, scale.tensor.dtype)


@definition("InstanceNormalization")
def _instance_normalization(node: Node) -> Built:
    return make("onnx.InstanceNormalization", node.operands, {"epsilon": node.attributes.get("epsilon", _EPSILON)})


@definition("GroupNormalization")
def _group_normalization(node: Node) -> Built:
    """Scale and bias belong to channels since version 21, to groups before."""
    x, scale, bias = node.operands
    groups = node.attributes["num_groups"]
    stash = _stash(node) if node.since >= 21 else x.tensor.dtype
    if node.since < 21:
        channels = x.tensor.dims[1]
        each = (groups, dims.floordiv(channels, groups))
        scale, bias = (reshape(broadcast(a.sized(w, 0, groups), each, (0,)), (channels,)) for w in (scale, bias))
    operands = tuple(convert(term, stash) for term in (x, scale, bias))
    attributes = {"num_groups": groups, "epsilon": node.attributes.get("epsilon", _EPSILON)}
    return convert(make("onnx.GroupNormalization", operands, attributes), x.tensor.dtype)
