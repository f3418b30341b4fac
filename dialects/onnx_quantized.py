"""ONNX's quantized ops: scales and zero points are spread here over tensors, axes and blocks; formulas are in `onnx_quantized.rules`."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes

from coset.dialects import onnx_arithmetic as a
from coset.dialects.hub_terms import broadcast, convert, from_numpy_matmul, numpy_broadcast, reshape, splat
from coset.dialects.onnx_dtypes import DTYPE_OF_CODE
from coset.dialects.onnx_linear import _padding
from coset.dialects.onnx_node import Built, Node, axis_of, definition
from coset.ir import dims
from coset.ir.errors import require
from coset.ir.term import Term, absent, get, make
from coset.ir.types import DTYPES, F32, I32, U8, DType
from coset.rules.definition import defer_definitions

RULES = defer_definitions(Path(__file__).with_name("onnx_quantized.rules"))
_COMPUTED = frozenset(DTYPES[name] for name in ("f64", "f32", "f16", "bf16"))  # the floats that divisions are done in


def _spread(parameter: Term, x: Term, node: Node) -> Term:
    """A scale or zero point for each element of `x`: one number, one for each index of an axis, or one for each block along it."""
    shape, given = x.tensor.dims, parameter.tensor.dims
    if all(dim == 1 for dim in given) and len(given) <= 1:
        return broadcast(reshape(parameter, ()), shape, ())
    axis = axis_of(node.attributes.get("axis", 1), len(shape))
    require(axis is not None, f"{node.name} has no axis {node.attributes.get('axis', 1)} in {x.type}")
    assert axis is not None
    if len(given) == 1:
        return broadcast(parameter, shape, (axis,))
    require(len(given) == len(shape), f"a scale {parameter.type} does not fit {x.type}")
    block = node.attributes.get("block_size", 0)
    require(block > 0, f"{node.name} with a scale {parameter.type} needs `block_size`")
    parts = (*given[: axis + 1], block, *given[axis + 1 :])
    repeated = broadcast(parameter, parts, tuple(i for i in range(len(parts)) if i != axis + 1))
    whole = reshape(repeated, (*given[:axis], dims.multiply(given[axis], block), *given[axis + 1 :]))
    return a.take(whole, axis, 0, shape[axis])


@definition("QuantizeLinear")
def _quantize(node: Node) -> Built:
    """The type is that of the zero point, or `output_dtype`, or u8; divided in `precision`, or in the scale's type where it is a float."""
    x, scale = node.operands[:2]
    zero = node.operand(2)
    asked = DTYPE_OF_CODE.get(node.attributes.get("output_dtype", 0))
    dtype = zero.tensor.dtype if zero is not None else asked or U8
    precision = DTYPE_OF_CODE.get(node.attributes.get("precision", 0)) or next(
        (kind for kind in (scale.tensor.dtype, x.tensor.dtype) if kind in _COMPUTED), F32
    )
    steps = convert(_spread(scale, x, node), precision)
    return quantized(
        convert(x, precision), steps, None if zero is None else _spread(zero, x, node), dtype, node.attributes.get("saturate", 1)
    )


def quantized(x: Term, scale: Term, zero: Term | None, dtype: DType, saturate: int = 1) -> Term:
    """`x / scale + zero` as `dtype`; floats beyond the greatest number become it with `saturate`, which 4-bit ones always do."""
    bounded = dtype.kind == "float" and (saturate or dtype.bits < 8)
    limit = float(ml_dtypes.finfo(dtype.numpy).max) if bounded else a.INFINITY  # type: ignore[no-untyped-call]
    return make("onnx.QuantizeLinear", (x, scale, zero or absent()), {"to": dtype, "limit": limit})


@definition("DequantizeLinear")
def _dequantize(node: Node) -> Built:
    """The result has the scale's type, or `output_dtype`."""
    x, scale = node.operands[:2]
    zero = node.operand(2)
    dtype = DTYPE_OF_CODE.get(node.attributes.get("output_dtype", 0)) or (scale.tensor.dtype if scale.tensor.dtype in _COMPUTED else F32)
    steps = convert(_spread(scale, x, node), dtype)
    return make("onnx.DequantizeLinear", (x, steps, absent() if zero is None else _spread(zero, x, node)))


@definition("DynamicQuantizeLinear")
def _dynamic(node: Node) -> Built:
    results = make("onnx.DynamicQuantizeLinear", node.operands[:1])
    return get(results, 0), get(results, 1), get(results, 2)


# ---------------------------------------------------------------- products


def _centred(x: Term, zero: Term | None, axis: int) -> Term:
    """`x - zero` in 32 bits (f32 where they are floats); a vector of zero points goes along `axis`, others broadcast."""
    wide = F32 if x.tensor.dtype.kind == "float" else I32
    if zero is None:
        return convert(x, wide)
    return a.subtract(convert(x, wide), numpy_broadcast(_along(convert(zero, wide), x, axis), x.tensor.dims))


def _along(parameter: Term, x: Term, axis: int) -> Term:
    """A scale or zero point that NumPy broadcasts with `x`, a vector going along `axis`."""
    if parameter.tensor.rank == 1 and parameter.tensor.dims != (1,) and x.tensor.rank > 1:
        return reshape(parameter, tuple(parameter.tensor.dims[0] if i == axis % x.tensor.rank else 1 for i in range(x.tensor.rank)))
    return reshape(parameter, ()) if parameter.tensor.dims == (1,) else parameter


@definition("MatMulInteger")
def _matmul_integer(node: Node) -> Built:
    """The product of what is left when the zero points (for all, each row of a, each column of b) are taken off, in 32 bits."""
    first, second = node.operands[:2]
    return from_numpy_matmul(_centred(first, node.operand(2), -2), _centred(second, node.operand(3), -1))


@definition("QLinearMatMul")
def _quantized_matmul(node: Node) -> Built:
    """The product in 32 bits, scaled by the operands' scales over the result's, rounded and moved by its zero point."""
    first, first_scale, first_zero, second, second_scale, second_zero, scale, zero = node.operands
    product = from_numpy_matmul(_centred(first, first_zero, -2), _centred(second, second_zero, -1))
    steps = a.multiply(_along(convert(first_scale, F32), first, -2), _along(convert(second_scale, F32), second, -1))
    return _requantized(product, steps, convert(scale, F32), zero)


def _requantized(product: Term, steps: Term, scale: Term, zero: Term) -> Term:
    """A product in 32 bits as the type of `zero`: multiplied by the steps of its operands over the step of the result."""
    shape = product.tensor.dims
    factor = numpy_broadcast(a.divide(steps, _along(scale, product, -1)), shape)
    one = splat(1.0, F32, shape)
    return quantized(a.multiply(convert(product, F32), factor), one, numpy_broadcast(_along(zero, product, -1), shape), zero.tensor.dtype)


@definition("QLinearConv")
def _quantized_conv(node: Node) -> Built:
    """The convolution in 32 bits plus the bias, scaled (for each output channel) and moved as a quantized product is."""
    x, x_scale, x_zero, w, w_scale, w_zero, scale, zero = node.operands[:8]
    sums = integer_convolution(node, x, x_zero, w, w_zero)
    if sums is None:
        return None
    bias = node.operand(8)
    if bias is not None:
        sums = a.add(sums, _along(bias, sums, 1))
    return _requantized(sums, a.multiply(reshape(x_scale, ()), _along(w_scale, sums, 1)), scale, zero)


def integer_convolution(node: Node, x: Term, x_zero: Term | None, w: Term, w_zero: Term | None) -> Term | None:
    """The convolution of what is left when the zero points are taken off (padding is the zero point), in 32 bits."""
    window = w.tensor.static
    if window is None or x.tensor.rank != len(window) or len(window) < 3:
        return None
    spatial = len(window) - 2
    strides, dilations = (tuple(node.attributes.get(name, (1,) * spatial)) for name in ("strides", "dilations"))
    padding = _padding(node, x, window[2:], strides, dilations)
    if padding is None:
        return None
    return make("stablehlo.convolution", (_centred(x, x_zero, 1), _centred(w, w_zero, 0)),
                {"strides": strides, "padding": padding, "lhs_dilation": (1,) * spatial, "rhs_dilation": dilations,
                 "feature_group_count": node.attributes.get("group", 1), "batch_group_count": 1})  # fmt: skip
