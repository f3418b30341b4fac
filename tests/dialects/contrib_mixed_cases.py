"""Nodes of com.microsoft over streams and gates, quantized numbers, images and sequences."""

from __future__ import annotations

import numpy as np
from contrib_cases import Case, cases, f32, factor, normal, whole

# ---------------------------------------------------------------- streams and gates

for scale in (None, (4,), (3, 4), (12,)):
    weights = None if scale is None else normal(*scale)
    cases("BranchwiseRMSNorm", Case([normal(2, 3, 4), weights]), Case([normal(2, 5, 12), weights], {"num_branches": 3, "epsilon": 0.1}))
cases("BranchwiseRMSNorm", Case([normal(2, 3, 4, dtype=np.float16)], rtol=2e-3, atol=2e-3))
for gates in ((2, 5, 3), (2, 5, 3, 1), (2, 5, 3, 4)):
    cases("HyperConnectionPreMix", Case([normal(2, 5, 3, 4), normal(*gates)], {"reduction_scale": 0.5}))
    for mix in (None, normal(2, 5, 3, 3)):
        cases("HyperConnectionPostMix", Case([normal(2, 5, 3, 4), normal(2, 5, 4), normal(*gates), mix]))
        cases("HyperConnectionPostMix", Case([normal(2, 5, 12), normal(2, 5, 4), normal(*gates), mix], {"num_branches": 3}))
cases("HyperConnectionPreMix", Case([normal(2, 5, 12), normal(2, 5, 12)], {"num_branches": 3}))
cases(
    "LinearAttentionGate",
    Case([normal(2, 3, 4), normal(4), -np.abs(normal(4)), normal(2, 3, 4)], outputs=2),
    Case([normal(2, 3, 4), normal(4), normal(4)]),
)
engram = [normal(2, 3, 2, 4), normal(2, 3, 2, 4), normal(2, 3, 4), normal(2, 4), normal(2, 4)]
cases("EngramGate", Case(engram), Case([*engram, normal(2, 4)], {"epsilon": 0.01}, outputs=2))
for queries, keys, values in ((2, 2, 2), (4, 2, 2), (2, 2, 4), (2, 4, 4)):
    x = [normal(2, 3, queries * 4), normal(2, 3, keys * 4), normal(2, 3, values * 5)]
    heads = {"q_num_heads": queries, "kv_num_heads": values}
    cases("LinearAttention", Case(x, {**heads, "update_rule": "linear"}, outputs=2))
    cases(
        "LinearAttention",
        Case([*x, normal(2, values, 4, 5), -np.abs(normal(2, 3, values))], {**heads, "update_rule": "gated", "scale": 0.5}, outputs=2),
    )
    cases("LinearAttention", Case([*x, None, -np.abs(normal(2, 3, values * 4)), np.abs(normal(2, 3, values))], heads, outputs=2))
for dilation in (1, 2):
    past = normal(2, 4, 2 * dilation)
    cases(
        "CausalConvWithState",
        Case([normal(2, 4, 7), normal(4, 1, 3), normal(4), past], {"dilation": dilation, "activation": "silu"}, outputs=2),
        Case([normal(2, 4, 7), normal(4, 1, 3)], {"dilation": dilation}, outputs=2),
        Case(
            [normal(2, 7, 2, 2), normal(4, 1, 3), None, past.transpose(0, 2, 1).reshape(2, -1, 2, 2).copy()],
            {"dilation": dilation, "channels_last": 1},
            outputs=2,
        ),
    )

# ---------------------------------------------------------------- quantized

for kind in (np.uint8, np.int8):
    scales = [f32(0.05), np.array(3, kind), f32(0.06), np.array(7, kind)]
    for last in (0, 1):
        x = whole(kind, 2, 7, 6, 3)
        for more in ({}, {"pads": [1, 1, 1, 0]}, {"pads": [1, 1, 1, 1], "count_include_pad": 1}, {"ceil_mode": 1, "strides": [2, 2]}):
            given = {"kernel_shape": [3, 2], **more, "channels_last": last}
            cases("QLinearAveragePool", Case([x if last else x.transpose(0, 3, 1, 2).copy(), *scales], given, quantum=1))
    for opset, axis in ((13, -1), (13, 1), (11, 1)):
        x = [whole(kind, 2, 3, 5), f32(0.05), np.array(3, kind), f32(1 / 256), np.array(0 if kind is np.uint8 else -128, kind)]
        cases("QLinearSoftmax", Case(x, {"opset": opset, "axis": axis}, known=(1, 2, 3, 4), quantum=1))
    triples = [whole(kind, 2, 3), f32(0.05), np.array(3, kind), whole(kind, 2, 4), f32(0.02), np.array(1, kind)]
    cases("QLinearConcat", Case([f32(0.04), np.array(2, kind), *triples], {"axis": 1}, quantum=1))
for last in (0, 1):
    for kind in (np.uint8, np.int8):
        x, w = whole(kind, 2, 4, 6, 5), factor(np.int8, 6, 2, 3, 2)
        scales = [
            f32(0.02),
            np.array(5, kind),
            w,
            np.abs(normal(6)) / 50,
            np.zeros(6, np.int8),
            f32(0.5),
            np.array(9, kind),
            whole(np.int32, 6, low=-99, high=99),
        ]
        given = {"pads": [1, 0, 1, 1], "strides": [2, 1], "group": 2, "channels_last": last}
        cases("QLinearConv", Case([x.transpose(0, 2, 3, 1).copy() if last else x, *scales], given, quantum=1))
for kind in (np.uint8, np.int8):
    cases("DynamicQuantizeMatMul", Case([normal(2, 3, 4), factor(kind, 4, 5), f32(0.02), np.array(3, kind), normal(5)]))
    cases("DynamicQuantizeMatMul", Case([normal(3, 4), factor(kind, 4, 5), np.abs(normal(5)), whole(kind, 5)]))
    cases("DynamicQuantizeMatMul", Case([normal(3, 4), factor(kind, 4, 5), f32(0.02)]))
for kind in (np.uint8, np.int8):
    ids = whole(np.int32, 2, 5, low=0, high=9)
    tables = [whole(kind, 10, 8), whole(kind, 9, 8), whole(kind, 2, 8), whole(kind, 8), whole(kind, 8)]
    numbers = [f32(0.1), f32(0.2), f32(0.3), f32(0.01), f32(0.02), *(np.array(z, kind) for z in (3, 4, 5, 6, 7))]
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
    cases("QEmbedLayerNormalization", Case([ids, ids % 2, *tables, mask, *numbers], outputs=2))
for bits in (2, 4, 8):
    data = whole(np.uint8, 5, 32 * bits // 8)
    places = [data, np.array([[0, 4], [2, -1]], np.int64), np.abs(normal(5, 2))]
    given = {"bits": bits, "block_size": 16, "quantize_axis": 1, "gather_axis": 0}
    cases("GatherBlockQuantized", Case(places, given, known=(0, 2)))
    cases("GatherBlockQuantized", Case([*places, whole(np.uint8, 5, max(1, 2 * bits // 8))], given, known=(0, 2, 3)))
for quant in (0, 1):
    for block in (16, 64):
        weight, scales = whole(np.uint8, 6 * 32 // 2), np.abs(normal(6 * 32 // block))
        cases("MatMulBnb4", Case([normal(2, 3, 32), weight, scales], {"N": 6, "K": 32, "block_size": block, "quant_type": quant}))
for quant, (block, head) in enumerate(((32, 4), (32, 5))):
    blob = whole(np.uint8, 6, 3, head + block // 2)
    blob[..., :4] = np.abs(normal(6, 3, 1)).view(np.uint8).reshape(6, 3, 4)
    if head == 5:
        blob[..., 4] = whole(np.uint8, 6, 3, low=0, high=15)
    x = [normal(5, 3 * block), blob.reshape(-1), np.array([3 * block, 6], np.int64)]
    cases("MatMulFpQ4", Case(x, {"blk_quant_type": quant}, known=(1, 2), rtol=2e-3, atol=2e-3))
for kind in (np.uint8, np.int8):
    for direction, count in (("forward", 1), ("reverse", 1), ("bidirectional", 2)):
        x = [normal(5, 1, 6), factor(kind, count, 6, 16), factor(kind, count, 4, 16), normal(count, 32)]
        scales = [np.full(count, 0.01, np.float32), np.full(count, 0 if kind is np.int8 else 130, kind)]
        more = [None, normal(count, 1, 4), normal(count, 1, 4), None]
        given = {"hidden_size": 4, "direction": direction}
        rounded = {"rtol": 2e-2, "atol": 2e-2}  # an element in the middle of two steps may be rounded to the other one
        cases("DynamicQuantizeLSTM", Case([*x, *more, *scales, *scales], given, outputs=3, known=(1, 2), **rounded))
        columns = [np.abs(normal(count, 16)) / 50, np.full((count, 16), scales[1][0], kind)]
        cases("DynamicQuantizeLSTM", Case([*x, *more, *columns, *scales], given, outputs=3, known=(1, 2), **rounded))
