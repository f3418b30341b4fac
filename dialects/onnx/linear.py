"""ONNX's products, convolutions, reductions and normalizations as terms."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from coset.dialects.hub.terms import reshape
from coset.dialects.onnx.einsum import einsum
from coset.dialects.onnx.node import DEFINITIONS, Builder, Built, Node, axes_of, axis_of, definition
from coset.dialects.onnx.sugar import BROADCASTING_SINCE, sugar, sugar_builders
from coset.dialects.onnx.windows import average_pool, conv_transpose, max_pool, padding_of
from coset.ir import dims
from coset.ir.builtin import absent
from coset.ir.op import find_op
from coset.ir.term import Term, make
from coset.ir.types import DTYPES

_FLOATS = frozenset(DTYPES[name] for name in ("f16", "f32", "f64"))
_WIDE = _FLOATS | frozenset(DTYPES[name] for name in ("i32", "i64", "u32", "u64"))
_COMPUTED = frozenset(DTYPES[name] for name in ("f32", "f64"))  # without a cast around the kernel
_EPSILON = float(np.float32(1e-5))


def _optional(node: Node, index: int) -> Term:
    return node.operand(index) or absent()


def _matmul(node: Node) -> Built:
    return sugar(node) if node.operands[0].tensor.dtype in _WIDE else None


def _gemm(node: Node) -> Built:
    return gemm(node) if node.operands[0].tensor.dtype in _WIDE else None


@definition("Gemm")
def gemm(node: Node) -> Built:
    """The named term, for every element type."""
    if find_op("onnx.Gemm") is None or node.since < BROADCASTING_SINCE:
        return None
    defaults = {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 0}
    attributes = {name: node.attributes.get(name, default) for name, default in defaults.items()}
    return make("onnx.Gemm", (*node.operands[:2], _optional(node, 2)), attributes)


# ---------------------------------------------------------------- einsum


def _einsum(node: Node) -> Built:
    """No diagonals and no ellipsis: what they mean has no short form in ONNX."""
    equation = "".join(str(node.attributes["equation"]).split())
    plain = "." not in equation and all(len(set(term)) == len(term) for term in equation.partition("->")[0].split(","))
    return einsum(node) if plain and node.operands[0].tensor.dtype in _WIDE else None


# ---------------------------------------------------------------- reductions


def _reduce(node: Node) -> Built:
    allowed = _WIDE | {DTYPES["i8"], DTYPES["u8"]} if node.name in ("ReduceMax", "ReduceMin") else _WIDE
    return sugar(node) if node.operands[0].tensor.dtype in allowed else None


def _mean(node: Node) -> Built:
    """No axes means all of them, unless `noop_with_empty_axes`."""
    x = node.operands[0]
    axes = reduced_axes(node, x.tensor.rank)
    if axes is None or x.tensor.dtype not in _FLOATS or find_op("onnx.ReduceMean") is None:
        return None
    return kept(node, make("onnx.ReduceMean", (x,), {"dimensions": axes}), x, axes) if axes else x


def kept(node: Node, reduced: Term, x: Term, axes: Sequence[int]) -> Term:
    """The reduction of `x` over `axes` with these as dims of 1, unless the node says otherwise."""
    if not node.attributes.get("keepdims", 1):
        return reduced
    return reshape(reduced, tuple(1 if axis in axes else dim for axis, dim in enumerate(x.tensor.dims)))


def reduced_axes(node: Node, rank: int) -> tuple[int, ...] | None:
    """The axes that a reduction goes over; None where they are not known or wrong."""
    if "axes" in node.attributes:
        axes: Sequence[int] | None = node.attributes["axes"]
    elif node.given(1):
        axes = node.ints(1)
        if axes is None:
            return None
    else:
        axes = ()
    if axes:
        return axes_of(tuple(axes), rank)
    return () if node.attributes.get("noop_with_empty_axes", 0) else tuple(range(rank))


# ---------------------------------------------------------------- softmax and normalizations


def _softmax(node: Node) -> Built:
    return softmax(node, node.operands[0]) if node.operands[0].tensor.dtype in _FLOATS else None


def softmax(node: Node, x: Term) -> Term | None:
    """Along one axis since version 13 (default: the last); before, along all dims from `axis` (default 1) on, flattened."""
    name = f"onnx.{node.name}"
    rank = x.tensor.rank
    axis = axis_of(node.attributes.get("axis", -1 if node.since >= 13 else 1), rank)
    if find_op(name) is None or axis is None:
        return None
    wide = [position for position in range(axis, rank) if x.tensor.dims[position] != 1]
    if node.since >= 13 or len(wide) <= 1:  # over dims of 1 and one other: over that one
        return make(name, (x,), {"axis": wide[0] if wide and node.since < 13 else axis})
    flat = reshape(x, (dims.product(x.tensor.dims[:axis]), dims.product(x.tensor.dims[axis:])))
    return reshape(make(name, (flat,), {"axis": 1}), x.tensor.dims)


def _layer_normalization(node: Node) -> Built:
    x = node.operands[0]
    axis = axis_of(node.attributes.get("axis", -1), x.tensor.rank)
    if find_op("onnx.LayerNormalization") is None or axis is None or node.results > 1 or node.attributes.get("stash_type", 1) != 1:
        return None
    operands = (x, node.operands[1], _optional(node, 2))
    if any(operand.op.name != "builtin.absent" and operand.tensor.shape != x.tensor.dims[axis:] for operand in operands[1:]):
        return None
    return make("onnx.LayerNormalization", operands, {"axis": axis, "epsilon": node.attributes.get("epsilon", _EPSILON)})


def _batch_normalization(node: Node) -> Built:
    """Inference only, over the channels of dim 1."""
    training = node.attributes.get("training_mode", 0) or node.results > 1 or not node.attributes.get("spatial", 1)
    if find_op("onnx.BatchNormalization") is None or training or node.since < 7 or len({x.tensor.dtype for x in node.operands}) > 1:
        return None
    return make("onnx.BatchNormalization", node.operands, {"epsilon": node.attributes.get("epsilon", _EPSILON)})


def _rms_normalization(node: Node) -> Built:
    """Of one element type that the statistics are computed in too."""
    x, scale = node.operands
    axis = axis_of(node.attributes.get("axis", -1), x.tensor.rank)
    stash = node.attributes.get("stash_type", 1) == 1 and x.tensor.dtype in _COMPUTED
    if axis is None or not stash or scale.tensor.dtype != x.tensor.dtype or scale.tensor.shape != x.tensor.dims[axis:]:
        return None
    return make("onnx.RMSNormalization", (x, scale), {"axis": axis, "epsilon": node.attributes.get("epsilon", _EPSILON)})


def _instance_normalization(node: Node) -> Built:
    x = node.operands[0]
    if x.tensor.dtype not in _COMPUTED or x.tensor.rank < 3 or node.since < 6:
        return None
    return make("onnx.InstanceNormalization", node.operands, {"epsilon": node.attributes.get("epsilon", _EPSILON)})


def _group_normalization(node: Node) -> Built:
    """As its definition has it: before version 21 with a scale and a bias for each group, which become those of its channels."""
    x = node.operands[0]
    kept = x.tensor.dtype not in _COMPUTED or x.tensor.rank < 3 or not isinstance(x.tensor.dims[1], int)
    return None if kept or node.attributes.get("stash_type", 1) != 1 else DEFINITIONS[node.name](node)


def _swish(node: Node) -> Built:
    x = node.operands[0]
    return make("onnx.Swish", (x,), {"alpha": node.attributes.get("alpha", 1.0)}) if x.tensor.dtype in _COMPUTED else None


def _composed_reduction(node: Node) -> Built:
    """Norms and sums of squares: reductions of something, written as one."""
    x = node.operands[0]
    axes = reduced_axes(node, x.tensor.rank)
    if not axes or x.tensor.dtype not in _COMPUTED:
        return None
    return kept(node, make(f"onnx.{node.name}", (x,), {"dimensions": axes}), x, axes)


def _global_average_pool(node: Node) -> Built:
    x = node.operands[0]
    return make("onnx.GlobalAveragePool", (x,)) if find_op("onnx.GlobalAveragePool") and x.tensor.rank >= 3 else None


# ---------------------------------------------------------------- convolution


def _conv(node: Node) -> Built:
    """Padding in numbers: `auto_pad` is worked out where the shape is static."""
    x, w = node.operands[:2]
    window = w.tensor.static
    if find_op("onnx.Conv") is None or x.tensor.dtype not in _FLOATS:
        return None
    if window is None or len(window) < 3 or x.tensor.rank != len(window):
        return None
    spatial = len(window) - 2
    given = node.attributes
    attributes: dict[str, Any] = {
        "strides": given.get("strides", (1,) * spatial), "dilations": given.get("dilations", (1,) * spatial),
        "group": given.get("group", 1),
    }  # fmt: skip
    if tuple(given.get("kernel_shape", window[2:])) != window[2:]:
        return None
    reaches = [(width - 1) * dilation + 1 for width, dilation in zip(window[2:], attributes["dilations"], strict=True)]
    padding = padding_of(node, x.tensor.dims[2:], reaches, attributes["strides"])
    if padding is None or not all(isinstance(pad, int) and pad >= 0 for pads in padding for pad in pads):
        return None
    return make("onnx.Conv", (x, w, _optional(node, 2)), {**attributes, "padding": padding})


def _transposed_conv(node: Node) -> Built:
    """Padding in numbers, of the convolution that it is, where the sizes are known (see `_pool`)."""
    x, w = node.operands[:2]
    window = w.tensor.static
    if x.tensor.dtype not in _FLOATS or window is None or len(window) < 3 or x.tensor.rank != len(window):
        return None
    if tuple(node.attributes.get("kernel_shape", window[2:])) != window[2:] or not all(isinstance(size, int) for size in x.tensor.dims[2:]):
        return None
    built = conv_transpose(node)
    known = isinstance(built, Term) and built.op.name == "onnx.ConvTranspose" and built.operands[:2] == (x, w)
    return built if known else None


def _pool(node: Node) -> Built:
    """A pool of known sizes, with padding in numbers, and counted all or none of it. Where a size is free, what the node says of it by its
    windows, and the model by its declarations, is worth more (`frontends/onnx/results.py`)."""
    x = node.operands[0]
    window = node.attributes.get("kernel_shape", ())
    plain = not node.attributes.get("ceil_mode", 0) and node.results == 1 and x.tensor.rank == len(window) + 2 > 2
    if not plain or x.tensor.dtype not in _POOLED[node.name] or not all(isinstance(size, int) for size in x.tensor.dims[2:]):
        return None
    built = max_pool(node) if node.name == "MaxPool" else average_pool(node)
    if not isinstance(built, Term) or built.op.name != f"onnx.{node.name}" or built.operands != (x,):
        return None
    padding = [pair for key, value in built.attributes if key in ("padding", "counted", "uncounted") for pair in value]
    return built if all(low >= 0 and high >= 0 for low, high in padding) else None


_EIGHT_BITS = frozenset((DTYPES["i8"], DTYPES["u8"]))
_POOLED = {"MaxPool": _FLOATS | _EIGHT_BITS, "AveragePool": _FLOATS}
definition(*sugar_builders(Path(__file__).with_name("linear.rules")))(sugar)
BUILDERS: dict[str, Builder] = {
    "MatMul": _matmul, "Gemm": _gemm, "Einsum": _einsum, "Softmax": _softmax, "LogSoftmax": _softmax, "Conv": _conv,
    "ConvTranspose": _transposed_conv, "MaxPool": _pool, "AveragePool": _pool,
    "LayerNormalization": _layer_normalization, "BatchNormalization": _batch_normalization, "GlobalAveragePool": _global_average_pool,
    "RMSNormalization": _rms_normalization, "InstanceNormalization": _instance_normalization, "Swish": _swish,
    "GroupNormalization": _group_normalization,
    **dict.fromkeys(("ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp"), _composed_reduction),
    **dict.fromkeys(("ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin"), _reduce), "ReduceMean": _mean,
}  # fmt: skip
