"""The named ONNX ops, each printed as the node that it is called by."""

from __future__ import annotations

import math

import numpy as np

from coset.dialects.hub.terms import is_splat
from coset.dialects.onnx.dtypes import clipped_at
from coset.dialects.onnx.own import domain_and_name
from coset.ir import dims
from coset.ir.builtin import ABSENT
from coset.ir.constants import constant_of
from coset.ir.op import get_op
from coset.ir.term import Term
from coset.ir.types import DTYPES, I64, DType
from coset.lowering.onnx import reduce as onnx_reduce
from coset.lowering.onnx.calls import Input, NodeCall, NoOnnxForm, PrintContext, Printer, vector
from coset.lowering.onnx.movement import counted, filled, is_positive, reshaped
from coset.lowering.onnx.reduce import given

_FLOATS = frozenset(DTYPES[name] for name in ("f16", "f32", "f64"))
_REAL = frozenset({"alpha", "beta", "gamma", "epsilon"})  # attributes that are floats to ONNX
# op: the version that first has it as we print it. Attributes go by their own names.
_SIMPLE = {
    "LeakyRelu": 6, "Elu": 6, "HardSigmoid": 6, "HardSwish": 14, "Softplus": 1, "Mish": 18, "Selu": 6, "GlobalAveragePool": 1, "Gelu": 20,
    "BatchNormalization": 7, "LayerNormalization": 17, "RMSNormalization": 23, "InstanceNormalization": 6, "GroupNormalization": 21,
    "Swish": 24, "PRelu": 7,
}  # fmt: skip


def _print_simple(term: Term, _: PrintContext) -> Input:
    name = term.op.name.removeprefix("onnx.")
    if term.tensor.dtype not in _FLOATS:
        raise NoOnnxForm(f"{name} takes no {term.tensor.dtype} elements")
    attributes = {key: float(value) if key in _REAL else value for key, value in term.attributes}  # a rule can find a whole number
    return NodeCall(name, given(term), attributes, since=_SIMPLE[name])


def _print_relu(term: Term, _: PrintContext) -> Input:
    dtype = term.tensor.dtype
    if dtype.kind == "uint" or dtype.kind == "bool":
        raise NoOnnxForm(f"Relu takes no {dtype} elements")
    return NodeCall("Relu", term.operands, since=6 if dtype in _FLOATS else 14)


def _print_softmax(term: Term, _: PrintContext) -> Input:
    """Over the last axis, and where only dims of 1 stand behind it, all versions agree; before 13 those behind it were flattened."""
    if term.tensor.dtype not in _FLOATS:
        raise NoOnnxForm(f"Softmax takes no {term.tensor.dtype} elements")
    axis, rank = term.attribute("axis"), term.tensor.rank
    axis += rank if axis < 0 else 0
    since = 1 if set(term.tensor.dims[axis + 1 :]) <= {1} else 13
    return NodeCall(term.op.name.removeprefix("onnx."), term.operands, {"axis": axis}, since=since)


def _print_gemm(term: Term, context: PrintContext) -> Input:
    if term.tensor.dtype.kind not in ("float", "int", "uint"):
        raise NoOnnxForm(f"Gemm takes no {term.tensor.dtype} elements")
    kinds = {"alpha": float, "beta": float, "transA": int, "transB": int}
    operands = given(term)
    since = 9 if term.tensor.dtype.kind != "float" else 7
    since = since if len(operands) > 2 and operands[2] is not None else 11
    return NodeCall("Gemm", operands, {name: kind(term.attribute(name)) for name, kind in kinds.items()}, since=since)


def _print_clip(term: Term, context: PrintContext) -> Input:
    """Bounds are operands from version 11 on (12 for integers), attributes before, or, where they are computed, bounds by Max and Min, the
    lower one first, as in the definition. Of floats a bound that is absent is an infinity here, and the largest number in ONNX."""
    dtype = term.tensor.dtype
    floats = dtype in _FLOATS
    if not floats:
        return NodeCall("Clip", given(term), since=12)
    if context.reaches(11):
        bounds = [_bound(bound, sign, dtype) for sign, bound in zip((-1, 1), term.operands[1:], strict=True)]
        return NodeCall("Clip", (term.operands[0], *bounds), since=11)
    named = dict(zip(("min", "max"), term.operands[1:], strict=True))
    values = {name: is_splat(bound) for name, bound in named.items() if bound.op is not ABSENT}
    if None not in values.values():
        attributes = {"min": -math.inf, "max": math.inf} | {
            name: float(value.array()) for name, value in values.items() if value is not None
        }
        return NodeCall("Clip", (term.operands[0],), attributes, since=6)
    found: Input = term.operands[0]
    for name, op in (("min", "Max"), ("max", "Min")):
        if name in values and context.reaches(8):
            found = NodeCall(op, (found, named[name]), since=8)
        elif name in values:  # of one shape
            found = NodeCall(op, (found, filled(named[name], term.tensor.dims)), since=6)
    return found


def _bound(bound: Term, sign: int, dtype: DType) -> Input:
    """An operand of Clip for a bound, which is left out where it is the one that ONNX takes then."""
    if bound.op is ABSENT:
        return constant_of(np.full((), sign * math.inf, dtype.numpy), dtype)
    value = is_splat(bound)
    return None if value is not None and float(value.array()) == sign * clipped_at(dtype) else bound


def _print_attention(term: Term, _: PrintContext) -> Input:
    """Operands that we never give stand between those that we give: a bias of the projections, masks, caches."""
    scale = term.attribute("scale")
    if scale == 0:
        raise NoOnnxForm("a scale of 0 means another one to the kernel")
    operands = given(term)
    attributes = {"num_heads": term.attribute("num_heads"), "scale": scale}
    return NodeCall(_CONTRIB[term.op.name], (*operands[:3], None, None, *operands[3:]), attributes, domain="com.microsoft")


def _print_rotation(term: Term, context: PrintContext) -> Input:
    """Its second operand is the position of the first rows of each sequence, or, if a sequence has angles of its own, the row of each
    position in the tables."""
    x, *tables = term.operands
    batch, heads, length, size = x.tensor.dims
    turned = dims.multiply(2, tables[0].tensor.dims[1])
    attributes = {"interleaved": 1} if term.attribute("interleaved") else {}
    if size != turned:
        if not isinstance(heads, int) or not isinstance(turned, int) or 0 in (heads, turned):
            raise NoOnnxForm("RotaryEmbedding of a part of each head takes a known number of heads and pairs")
        attributes |= {"num_heads": heads, "rotary_embedding_dim": turned}
    positions: Input = vector(0)
    if term.op.name in _OF_SEQUENCES:
        rows = dims.multiply(batch, length)
        # it fails where the tables have fewer rows than a sequence has positions
        if not is_positive(batch, context) and dims.subtract(tables[0].tensor.dims[0], rows) != length:
            raise NoOnnxForm("RotaryEmbedding by tables for each sequence takes a batch that is known not to be empty")
        if isinstance(batch, int) and isinstance(length, int):
            positions = constant_of(np.arange(batch * length).reshape(batch, length))
        else:
            positions = reshaped(counted(rows, I64), (rows,), (batch, length), context)
    return NodeCall("RotaryEmbedding", (x, positions, *tables), attributes, domain="com.microsoft")


def _print_quantization(term: Term, _: PrintContext) -> Input:
    """Scales for each index of an axis are of version 13, integers of 16 bits of 21."""
    name = term.op.name.removeprefix("onnx.")
    x, scale, zero = term.operands
    stored = term.attribute("to") if name == "QuantizeLinear" else x.tensor.dtype
    if scale.tensor.rank > 1 or stored.kind not in ("int", "uint") or scale.tensor.dtype not in _FLOATS - {DTYPES["f64"]}:
        raise NoOnnxForm(f"{name} of {stored} elements takes no {scale.type} as its scale")
    if zero.op is ABSENT and name == "QuantizeLinear" and stored.name != "u8":
        raise NoOnnxForm(f"{name} into {stored} needs a zero point")
    since = 21 if stored.bits not in (8, 32) else 19 if scale.tensor.dtype.name == "f16" else 13 if scale.tensor.rank else 10
    return NodeCall(name, given(term), {"axis": term.attribute("axis")} if scale.tensor.rank else {}, since=since)


_QUANTIZING = ("QuantizeLinear", "DequantizeLinear")
_OF_SEQUENCES = frozenset({"ort.RotatedSequences", "ort.RotatedSequenceParts"})
_ROTATIONS = frozenset({"ort.RotatedHeads", "ort.RotatedParts"}) | _OF_SEQUENCES
_CONTRIB = {"ort.MultiHead": "MultiHeadAttention", "ort.SelfAttention": "Attention"}


PRINTERS: dict[str, Printer] = {
    **dict.fromkeys(_CONTRIB, _print_attention),
    **dict.fromkeys(_ROTATIONS, _print_rotation),
    **dict.fromkeys((f"onnx.{name}" for name in _SIMPLE), _print_simple),
    "onnx.Relu": _print_relu,
    "onnx.Softmax": _print_softmax,
    "onnx.LogSoftmax": _print_softmax,
    "onnx.Gemm": _print_gemm,
    "onnx.Clip": _print_clip,
    **dict.fromkeys((f"onnx.{name}" for name in _QUANTIZING), _print_quantization),
}


NEVER = 1 << 30


def first_version(name: str) -> int:
    """The version of the ONNX operators in which every form of the named op `name` (`onnx.Relu`) can be written, or NEVER. A user's own op
    is of no version."""
    if name not in PRINTERS and name not in onnx_reduce.PRINTERS:
        return NEVER if domain_and_name(get_op(name)) is None else 1
    return {"Softmax": 13, "LogSoftmax": 13, "Relu": 14, "Clip": 12, "Gemm": 11, **dict.fromkeys(_QUANTIZING, 21), **_SIMPLE}.get(
        name.removeprefix("onnx."), 1
    )
