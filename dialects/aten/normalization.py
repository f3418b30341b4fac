"""ATen's normalizations that torch leaves whole, as hub terms: statistics in f32 for floats of 16 bits, as torch keeps them."""

from __future__ import annotations

from coset.dialects.aten.node import AtenNode, Built, aten, convert, wide
from coset.dialects.aten.reductions import about_mean
from coset.dialects.hub.terms import reshape, splat
from coset.dialects.onnx import ops as onnx_ops
from coset.dialects.onnx.arithmetic import add
from coset.ir.term import Term, make

PRIMITIVES = (onnx_ops,)  # its ops are made here


@aten("native_group_norm.default")
def _group_norm(node: AtenNode) -> Built:
    """The result, and the mean and the inverse deviation of each group [N, groups]."""
    given = node.term("input")
    x = convert(given, wide(given.tensor.dtype))
    dtype, shape = x.tensor.dtype, x.tensor.dims
    groups, epsilon = int(node.number("group")), float(node.number("eps"))
    channels = shape[1:2]
    scale, bias = (
        splat(value, dtype, channels) if node[key] is None else convert(node[key], dtype) for key, value in (("weight", 1), ("bias", 0))
    )
    whole = make("onnx.GroupNormalization", (x, scale, bias), {"num_groups": groups, "epsilon": epsilon})
    mean, inverse = statistics(x, groups, epsilon)
    results = (convert(whole, given.tensor.dtype), mean, inverse)
    return tuple(each if type is None else convert(each, type.dtype) for each, type in zip(results, node.types, strict=True))


def statistics(x: Term, groups: int, epsilon: float) -> tuple[Term, Term]:
    """The mean, and 1 / sqrt(variance + epsilon), of each group of channels of x [N, C, ..]."""
    count, channels, *rest = x.tensor.dims
    parts = reshape(x, (count, groups, *_split(channels, groups), *rest))
    axes = tuple(range(2, parts.tensor.rank))
    mean, squares = about_mean(parts, axes)
    variance = make("onnx.ReduceMean", (squares,), {"dimensions": axes})
    return mean, make("stablehlo.rsqrt", (add(variance, epsilon),))


def _split(channels: object, groups: int) -> tuple[int]:
    assert isinstance(channels, int), "the channels of a group norm are a number: its weights are"
    return (channels // groups,)
