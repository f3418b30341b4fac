"""com.microsoft nodes on quantized numbers: scales and zero points around the standard ops, and weights packed into bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from coset.dialects.hub.terms import broadcast, convert, dot, literal, reshape, transpose
from coset.dialects.onnx import arithmetic as a
from coset.dialects.onnx import indexing as onnx_indexing
from coset.dialects.onnx import linear as onnx_linear
from coset.dialects.onnx import ops as onnx_ops
from coset.dialects.onnx import quantized as onnx_quantized
from coset.dialects.onnx.node import Built, Node, axis_of, define
from coset.dialects.onnx.recurrent import lstm_cell, recurrent
from coset.dialects.ort.nodes import accept, applied, as_standard, channels_first, channels_last, contrib, number, parts, scalar
from coset.ir import dims
from coset.ir.builtin import ABSENT, absent
from coset.ir.errors import require
from coset.ir.term import Term, make
from coset.ir.types import F32, I32, I64, U8

PRIMITIVES = (onnx_linear, onnx_ops, onnx_quantized, onnx_indexing)  # their ops are made here

# ---------------------------------------------------------------- standard ops between scales and zero points


def _around(node: Node, x: Term, compute: Callable[[Term], Built]) -> Term:
    """What `compute` makes of the numbers that `x` stands for, quantized again: operands x, scale, zero point, scale, zero point."""
    real = applied("Dequantized", (x, scalar(node, 1), scalar(node, 2, like=x)), {})
    found = compute(real)
    assert found is not None
    result = found[0] if isinstance(found, tuple) else found
    return applied("Quantized", (result, scalar(node, 3), scalar(node, 4, like=x)), {})


@contrib("QLinearAveragePool")
def _average_pool(node: Node) -> Built:
    """The average pool of what the numbers stand for; channels may be last."""
    last = bool(node.attributes.get("channels_last", 0))
    x = channels_first(node.operands[0]) if last else node.operands[0]
    attributes = {key: value for key, value in node.attributes.items() if key != "channels_last"}

    def pooled(real: Term) -> Built:
        return define(replace(node, name="AveragePool", operands=(real,), host=(None,), attributes=attributes, since=19, results=1))

    result = _around(node, x, pooled)
    return channels_last(result) if last else result


@contrib("QLinearSoftmax")
def _softmax(node: Node) -> Built:
    """Along the axis, or before opset 13 along all dims from it on."""
    x = node.operands[0]
    since = 13 if node.attributes["opset"] >= 13 else 11
    attributes = {"axis": node.attributes.get("axis", -1)}

    def normalized(real: Term) -> Built:
        return define(replace(node, name="Softmax", operands=(real,), host=(None,), attributes=attributes, since=since))

    return _around(node, x, normalized)


@contrib("QLinearConcat")
def _concatenation(node: Node) -> Built:
    """Parts, each with its own scale and zero point, one after the other."""
    triples = [node.operands[i : i + 3] for i in range(2, len(node.operands), 3)]
    whole = all(len(triple) == 3 and triple[0].op is not ABSENT for triple in triples)
    require(whole and bool(triples), f"{node.name} takes parts, each with a scale and a zero point")
    axis = axis_of(node.attributes["axis"], triples[0][0].tensor.rank)
    require(axis is not None, f"{node.name} has no axis {node.attributes['axis']}")
    assert axis is not None
    real = [applied("Dequantized", (x, number(scale), number(zero)), {}) for x, scale, zero in triples]
    return applied("Quantized", (a.concatenate(real, axis), scalar(node, 0), scalar(node, 1)), {})


@contrib("QLinearConv")
def _convolution(node: Node) -> Built:
    """The standard op; channels may be last."""
    last = bool(node.attributes.get("channels_last", 0))
    operands = (channels_first(node.operands[0]), *node.operands[1:]) if last else node.operands
    found = as_standard(replace(node, operands=operands), "QLinearConv", channels_last=None)
    if found is None or not last:
        return found
    return channels_last(found[0] if isinstance(found, tuple) else found)


@contrib("DynamicQuantizeMatMul")
def _dynamic_product(node: Node) -> Built:
    """The product with a quantized matrix, after a was quantized to 8 bits between its least and greatest element."""
    x, w, scale = node.operands[:3]
    numbers, step, zero = parts(make("onnx.DynamicQuantizeLinear", (x,)))
    operands = (numbers, w, step, number(scale), zero, scalar(node, 3), node.operand(4))
    return applied("MatMulIntegerToFloat", operands, {})


@contrib("QEmbedLayerNormalization")
def _embedding(node: Node) -> Built:
    """EmbedLayerNormalization of what the tables stand for: tables 2, 3, 4, 5, 6, their scales from 8 and zero points from 13 on."""
    real: list[Term | None] = []
    for position, table in enumerate((2, 3, 4, 5, 6)):
        x = node.operand(table)
        made = None if x is None else applied("Dequantized", (x, scalar(node, 8 + position), scalar(node, 13 + position)), {})
        real.append(made)
    words, places, kinds, gamma, beta = real
    operands = (node.operand(0), words, places, gamma, beta, node.operand(1), kinds, node.operand(7))
    return parts(applied("EmbedLayerNormalization", operands, node.attributes))[:2]


# ---------------------------------------------------------------- weights packed into bytes


def unpacked(x: Term, bits: int) -> Term:
    """The numbers of `bits` bits in the bytes of the last dim, low ones first."""
    if bits == 8:
        return x
    fields = [a.pointwise("and", a.pointwise("shift_right_logical", x, low), (1 << bits) - 1) for low in range(0, 8, bits)]
    *lead, count = x.tensor.dims
    return reshape(a.concatenate([a.unsqueeze(field, -1) for field in fields], -1), (*lead, dims.multiply(count, len(fields))))


@contrib("GatherBlockQuantized")
def _gather(node: Node) -> Built:
    """The slices at the indices of what the blocks stand for; a slice that is not there is 0."""
    data, indices, scales, zeros = node.operands[0], node.operands[1], node.operands[2], node.operand(3)
    given = node.attributes
    packed, bits = data.tensor.dtype is U8, given.get("bits", 4)
    axis, along = axis_of(given.get("gather_axis", 0), data.tensor.rank), axis_of(given.get("quantize_axis", 1), data.tensor.rank)
    require(axis is not None and along is not None, f"{node.name} has no such axis in {data.type}")
    assert axis is not None and along is not None
    require(scales.tensor.rank == data.tensor.rank, f"{node.name} has scales {scales.type} for {data.type}")
    block = given.get("block_size", 128) or data.tensor.dims[along]
    if packed:
        data = unpacked(data, bits)
        middle = literal(np.full((1,) * scales.tensor.rank, 1 << (bits - 1), np.uint8))
        zeros = broadcast(reshape(middle, ()), scales.tensor.dims, ()) if zeros is None else unpacked(zeros, bits)
        for place, dim in enumerate(scales.tensor.dims):
            zeros = a.take(zeros, place, 0, dim)
    shape = tuple(dim if i == along else data.tensor.dims[i] for i, dim in enumerate(scales.tensor.dims))
    scales = broadcast(scales, shape, tuple(range(len(shape))))
    operands = (data, scales) if zeros is None else (data, scales, zeros)
    attributes = {"axis": along, "block_size": block}
    real = define(replace(node, name="DequantizeLinear", operands=operands, host=(None,) * len(operands), attributes=attributes, since=25))
    assert real is not None
    size = data.tensor.dims[axis]
    places = a.select(a.compare(indices, "LT", 0), a.add(indices, size), indices)
    there = a.both(a.compare(places, "GE", 0), a.compare(places, "LT", size))
    found = make("onnx.Gather", (real[0], a.select(there, places, 0)), {"axis": axis})
    around = tuple(range(axis, axis + indices.tensor.rank))
    return a.select(broadcast(there, found.tensor.dims, around), found, 0)


# What 4 bits stand for: Dettmers et al., "QLoRA" (2023), appendix E (NF4); 1 bit of sign, 2 of exponent, 1 of mantissa (FP4), times 1/12.
_NF4 = (-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
        -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
        0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0)  # fmt: skip
_FP4_HALF = (0.0, 0.0052083333, 0.66666667, 1.0, 0.33333333, 0.5, 0.16666667, 0.25)
_TABLES = ((*_FP4_HALF, *(-x for x in _FP4_HALF)), _NF4)


@contrib("MatMulBnb4")
def _product_of_code(node: Node) -> Built:
    """a times the transpose of a weight [N, K] (or itself) of 16 numbers, the upper half of each byte first, times a scale a block."""
    accept(node, training_mode=0)
    x, weight, scales = node.operands[:3]
    given = node.attributes
    n, k, block = given["N"], given["K"], given["block_size"]
    require(given["quant_type"] in (0, 1), f"{node.name} has no type of weights {given['quant_type']}")
    table = literal(np.array(_TABLES[given["quant_type"]], np.float32))
    low, high = a.pointwise("and", weight, 15), a.pointwise("shift_right_logical", weight, 4)
    codes = reshape(a.concatenate([a.unsqueeze(high, -1), a.unsqueeze(low, -1)], -1), (2 * -(-n * k // 2),))
    codes = a.take(codes, 0, 0, n * k)
    each = reshape(broadcast(scales, (-(-n * k // block), block), (0,)), (-(-n * k // block) * block,))
    values = a.multiply(make("onnx.Gather", (table, convert(codes, I64)), {"axis": 0}), a.take(each, 0, 0, n * k))
    contracted = 1 if given.get("transB", 1) else 0
    return dot(x, reshape(values, (n, k)), lhs_contract=(x.tensor.rank - 1,), rhs_contract=(contracted,))


# The numbers in a block, and whether it has a zero point. Type 2 is said to be (64, False), but the kernels of 1.31 take it as type 1.
_Q4 = {0: (32, False), 1: (32, True)}


@contrib("MatMulFpQ4")
def _product_of_blob(node: Node) -> Built:
    """a times a weight [K, N] in blocks along K: for each column and block a scale in f32, a zero point in a byte, if any, and the numbers;
    of each 32 of them the first 16 are the lower halves of 16 bytes, the others their upper halves."""
    x, blob, shape = node.operands[0], node.operands[1], node.ints(2)
    kind = node.attributes.get("blk_quant_type", 1)
    if shape is None or len(shape) != 2 or kind not in _Q4:
        return None
    (k, n), (block, has_zero) = shape, _Q4[kind]
    blocks, start = -(-k // block), 5 if has_zero else 4
    rows = reshape(blob, (n, blocks, start + block // 2))
    scale = make("stablehlo.bitcast_convert", (a.take(rows, 2, 0, 4),), {"dtype": F32})
    numbers = reshape(a.take(rows, 2, start, start + block // 2), (n, blocks, block // 32, 16))
    halves = [a.pointwise("and", numbers, 15), a.pointwise("shift_right_logical", numbers, 4)]
    codes = reshape(a.concatenate(halves, 3), (n, blocks, block))
    zero = convert(a.take(rows, 2, 4, 5), I32) if has_zero else 8
    centred = convert(a.subtract(convert(codes, I32), zero), F32)
    weight = a.take(reshape(a.multiply(centred, a.unsqueeze(scale, -1)), (n, blocks * block)), 1, 0, k)
    return dot(x, transpose(weight, (1, 0)), lhs_contract=(x.tensor.rank - 1,), rhs_contract=(0,))


# ---------------------------------------------------------------- a recurrent layer


@contrib("DynamicQuantizeLSTM")
def _lstm(node: Node) -> Built:
    """The LSTM with quantized weights [directions, in, 4 hidden], whose input, and in each step state, is quantized to 8 bits before."""
    weights = [_recurrent_weights(node, *positions) for positions in ((1, 8, 9), (2, 10, 11))]
    operands = (_rounded(node.operands[0]), *weights, *(node.operand(i) or absent() for i in range(3, 8)))
    lstm = replace(node, name="LSTM", operands=operands, host=(None,) * len(operands), since=14)
    return recurrent(lstm, 4, ("Sigmoid", "Tanh", "Tanh"), partial(lstm_cell, seen=_rounded), 2)


def _rounded(x: Term) -> Term:
    """What is left of x when it is quantized to 8 bits between its least and greatest element."""
    numbers, step, zero = parts(make("onnx.DynamicQuantizeLinear", (x,)))
    return applied("Dequantized", (numbers, step, zero), {})


def _recurrent_weights(node: Node, weight: int, scale: int, zero: int) -> Term:
    """[directions, 4 hidden, in] of what the numbers [directions, in, 4 hidden] stand for; scales are of directions, or of columns too."""
    numbers, steps, points = (node.operands[i] for i in (weight, scale, zero))
    axes = (0,) if steps.tensor.rank == 1 else (0, 2)
    shape = numbers.tensor.dims
    centred = a.subtract(convert(numbers, F32), broadcast(convert(points, F32), shape, axes))
    return transpose(a.multiply(centred, broadcast(steps, shape, axes)), (0, 2, 1))
