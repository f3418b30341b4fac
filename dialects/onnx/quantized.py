"""ONNX's quantized ops: scales and zero points of blocks are spread here over tensors; formulas are in `quantized.rules`."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes

from coset.dialects.hub.terms import broadcast, convert, reshape
from coset.dialects.onnx import arithmetic as a
from coset.dialects.onnx import linear as onnx_linear
from coset.dialects.onnx.dtypes import DTYPE_OF_CODE
from coset.dialects.onnx.node import Builder, Built, Node, axis_of, definition
from coset.dialects.onnx.sugar import sugar
from coset.dialects.onnx.windows import convolved
from coset.ir import dims
from coset.ir.builtin import ABSENT, absent
from coset.ir.dims import Dim, Shape
from coset.ir.errors import require
from coset.ir.term import Term, get, make
from coset.ir.types import DTYPES, F32, U8, DType
from coset.rules.defining import defer_definitions

PRIMITIVES = (onnx_linear,)  # the definitions mention its ops
RULES = defer_definitions(Path(__file__).with_name("quantized.rules"))
_COMPUTED = frozenset(DTYPES[name] for name in ("f64", "f32", "f16", "bf16"))  # the floats that divisions are done in
_ANY_AXIS = 1  # what a term says where its scale is one number: the default, so that rules need not write it


def _axis(node: Node) -> int:
    """The axis that the scales lie along."""
    scale, x = node.operands[1].tensor, node.operands[0]
    if _is_one(scale.dims):
        return _ANY_AXIS
    axis = axis_of(node.attributes.get("axis", 1), x.tensor.rank)
    require(axis is not None, f"{node.name} has no axis {node.attributes.get('axis', 1)} in {x.type}")
    assert axis is not None
    return axis


def _is_one(shape: Shape) -> bool:
    return len(shape) <= 1 and all(dim == 1 for dim in shape)


def _parameters(node: Node) -> list[Term]:
    """The scale and, where there is one, the zero point: each one number, or one for each index of the axis, or one for each element."""
    given, shape = [each for each in node.operands[1:3] if each.op is not ABSENT], node.operands[0].tensor.dims
    if all(_is_one(each.tensor.dims) for each in given):
        return [reshape(each, ()) for each in given]
    if all(each.tensor.dims == (shape[_axis(node)],) for each in given):
        return given
    return [_spread(each, node.operands[0], node) for each in given]


def _spread(parameter: Term, x: Term, node: Node) -> Term:
    """A scale or zero point for each element of `x`: one number, one for each index of an axis, or one for each block along it."""
    shape, given = x.tensor.dims, parameter.tensor.dims
    if _is_one(given):
        return broadcast(reshape(parameter, ()), shape, ())
    axis = _axis(node)
    block = node.attributes.get("block_size", 0)
    if len(given) == 1 and not (block and len(shape) == 1):
        return broadcast(parameter, shape, (axis,))
    require(len(given) == len(shape), f"a scale {parameter.type} does not fit {x.type}")
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
    limit = _limit(dtype) if node.attributes.get("saturate", 1) or dtype.bits < 8 else a.INFINITY  # floats of 4 bits always saturate
    steps, *points = _parameters(node)
    operands = (convert(x, precision), convert(steps, precision), *(points or [absent()]))
    return make("onnx.QuantizeLinear", operands, {"to": dtype, "limit": limit, "axis": _axis(node)})


def _limit(dtype: DType) -> float:
    """The greatest finite number of a float."""
    return float(ml_dtypes.finfo(dtype.numpy).max) if dtype.kind == "float" else a.INFINITY  # type: ignore[no-untyped-call]


@definition("DequantizeLinear")
def _dequantize(node: Node) -> Built:
    """The result has the scale's type, or `output_dtype`."""
    x, scale = node.operands[:2]
    dtype = DTYPE_OF_CODE.get(node.attributes.get("output_dtype", 0)) or (scale.tensor.dtype if scale.tensor.dtype in _COMPUTED else F32)
    steps, *points = _parameters(node)
    return make("onnx.DequantizeLinear", (x, convert(steps, dtype), *(points or [absent()])), {"axis": _axis(node)})


def _as_node(define: Builder) -> Builder:
    """The definition, of nodes that can be written again as what they mean: floats of the scale's type on one side and integers of the
    zero point's type on the other, with a scale for all or for each index of an axis."""

    def build(node: Node) -> Built:
        x, scale = node.operands[:2]
        zero = node.operand(2)
        wide, narrow = (scale, x) if node.name == "DequantizeLinear" else (x, zero)
        stored = U8 if narrow is None else narrow.tensor.dtype
        typed = wide.tensor.dtype == scale.tensor.dtype and scale.tensor.dtype in _WRITTEN and stored in _STORED
        said = {key for key, value in node.attributes.items() if value} <= {"axis", "saturate"}
        found = define(node) if typed and said else None
        return found if isinstance(found, Term) and found.operands[1].tensor.rank <= 1 else None

    return build


_WRITTEN = frozenset(DTYPES[name] for name in ("f32", "f16"))
_STORED = frozenset(DTYPES[name] for name in ("u8", "i8", "u16", "i16", "i32"))
BUILDERS: dict[str, Builder] = {"QuantizeLinear": _as_node(_quantize), "DequantizeLinear": _as_node(_dequantize)}


def spread(term: Term) -> Term | None:
    """A QuantizeLinear or DequantizeLinear with its scale and zero point repeated for each element; None for one that has them so, and for
    any other term."""
    if term.op.name.removeprefix("onnx.") not in BUILDERS:
        return None
    x, scale, zero = term.operands
    if scale.tensor.rank == x.tensor.rank:
        return None
    axes = (term.attribute("axis"),) if scale.tensor.rank else ()
    parameters = [p if p.op is ABSENT else broadcast(p, x.tensor.dims, axes) for p in (scale, zero)]
    return make(term.op.name, (x, *parameters), dict(term.attributes))


@definition("DynamicQuantizeLinear")
def _dynamic(node: Node) -> Built:
    results = make("onnx.DynamicQuantizeLinear", node.operands[:1])
    return get(results, 0), get(results, 1), get(results, 2)


# ---------------------------------------------------------------- products

definition("MatMulInteger")(sugar)


@definition("QLinearMatMul")
def _quantized_matmul(node: Node) -> Built:
    """The definition, of matrices and of zero points in the shape of their scales, told what the greatest number of a float is."""
    a_, a_scale, a_zero, b_, b_scale, b_zero, scale, zero = node.operands
    if not a_.tensor.rank or not b_.tensor.rank:
        return None
    rows, columns = (a.unsqueeze(a_, 0) if a_.tensor.rank == 1 else a_), (a.unsqueeze(b_, 1) if b_.tensor.rank == 1 else b_)
    operands = (rows, a_scale, _like(a_zero, a_scale), columns, b_scale, _like(b_zero, b_scale), scale, _like(zero, scale))
    result = make("onnx.QLinearMatMul", operands, {"limit": _limit(zero.tensor.dtype)})
    batch, ends = result.tensor.dims[:-2], result.tensor.dims[-2:]
    return reshape(result, (*batch, *ends[a_.tensor.rank == 1 : 2 - (b_.tensor.rank == 1)]))


def _like(zero: Term, scale: Term) -> Term:
    """A zero point in the shape of its scale: one number may be written with a dim of 1 or without."""
    return reshape(zero, scale.tensor.dims) if dims.product((*zero.tensor.dims, *scale.tensor.dims)) == 1 else zero


@definition("ConvInteger")
def _conv_integer(node: Node) -> Built:
    """The definition, with the padding in numbers; what lies around x is its zero point."""
    x, w, zero = *node.operands[:2], node.operand(2)
    operands = (w, zero or absent(), node.operand(3) or absent())
    around = 0 if zero is None else reshape(zero, ())
    return convolved(node, x, w, around, lambda wide, given: make("onnx.ConvInteger", (wide, *operands), given))


@definition("QLinearConv")
def _quantized_conv(node: Node) -> Built:
    """The definition, with the padding in numbers; what lies around x is its zero point."""
    x, w, bias = node.operands[0], node.operands[3], node.operand(8)
    x_scale, zero, scale, end = (reshape(node.operands[i], ()) for i in (1, 2, 6, 7))
    filters = [_each(node.operands[i], w.tensor.dims[0]) for i in (4, 5)]
    operands = (x_scale, zero, w, *filters, scale, end, absent() if bias is None else bias)
    more = {"limit": _limit(end.tensor.dtype)}
    return convolved(node, x, w, zero, lambda wide, given: make("onnx.QLinearConv", (wide, *operands), {**given, **more}))


def _each(parameter: Term, channels: Dim) -> Term:
    """A number for each output channel, given as such or one for all."""
    one = dims.product(parameter.tensor.dims) == 1
    return broadcast(reshape(parameter, ()), (channels,), ()) if one else a.sized(parameter, 0, channels)
