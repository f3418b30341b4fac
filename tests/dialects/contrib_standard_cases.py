"""Nodes of com.microsoft that standard definitions or `kernels.rules` define."""

from __future__ import annotations

import numpy as np
from contrib_cases import RANDOM, Case, cases, f32, factor, normal, whole

for name in ("Gelu", "QuickGelu", "FastGelu"):
    cases(name, Case([3 * normal(2, 3, 5)]), Case([normal(7)]))
cases("BiasGelu", Case([normal(2, 3, 5), normal(5)]))
cases("ScaledSiLU", Case([normal(2, 5)], {"alpha": 0.5}), Case([normal(2, 5), f32(2.5)]))
cases("GatedAdd", Case([normal(2, 3, 4), normal(2, 3, 4), normal(2, 3, 1)]))
cases(
    "GatedRMSNorm",
    Case([normal(2, 3, 8), normal(4), normal(2, 3, 8)]),
    Case([normal(3, 8), normal(8), normal(3, 8)], {"activation": "sigmoid"}),
)
for shapes in (((3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)), ((2, 3, 4), (4, 5))):
    cases("MatMulInteger16", Case([whole(np.int16, *shape, low=-3000, high=3000) for shape in shapes]))
cases("CDist", Case([normal(4, 5), normal(3, 5)], {"metric": "euclidean"}))
cases("FusedMatMul", Case([normal(2, 4, 3), normal(5, 4)], {"alpha": 0.5, "transA": 1, "transB": 1}))
cases("TransposeMatMul", Case([normal(4, 3), normal(5, 4)], {"alpha": 0.5, "transA": 1, "transB": 1}))
cases("FusedGemm", Case([normal(3, 4), normal(4, 5), normal(5)], {"activation": "Relu", "alpha": 0.5}))
convolution = [normal(2, 4, 7, 6), normal(6, 2, 3, 3), normal(6), normal(2, 6, 4, 3)]
for count in (2, 3, 4):
    for activation, parameters in (("Relu", None), ("Clip", [-0.5, 0.75])):
        given = {"strides": [2, 2], "pads": [1, 1, 1, 1], "group": 2, "activation": activation}
        cases("FusedConv", Case(convolution[:count], {**given, **({"activation_params": parameters} if parameters else {})}))
for skip in ((2, 3, 8), (1, 3, 8), (3, 8)):
    cases("SkipLayerNormalization", Case([normal(2, 3, 8), normal(*skip), normal(8), normal(8), normal(8)], outputs=4, skipped=(1, 2)))
    cases("SkipSimplifiedLayerNormalization", Case([normal(2, 3, 8), normal(*skip), normal(8)], outputs=4, skipped=(1, 2)))
ids = whole(np.int32, 2, 5, low=0, high=9)
tables = [normal(10, 8), normal(9, 8)]
mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
cases(
    "EmbedLayerNormalization",
    Case([ids, None, *tables, None, normal(8), normal(8), mask], {"epsilon": 1e-5}, outputs=2),
    Case([ids, ids % 2, *tables, normal(2, 8), normal(8), normal(8)], outputs=3, skipped=(1,)),
)
for rank4 in (False, True):
    x = normal(2, 2, 3, 8) if rank4 else normal(2, 3, 16)
    cases(
        "RotaryEmbedding", Case([x, whole(np.int64, 2, 3, low=0, high=9), normal(12, 4), normal(12, 4)], {"num_heads": 0 if rank4 else 2})
    )
for first, rows, turned in ((0, 3, 8), (0, 12, 8), (4, 7, 8), (4, 12, 8), (4, 12, 6)):  # positions in order, which are known
    given = {"num_heads": 2, "rotary_embedding_dim": turned} if turned < 8 else {}
    inputs = [normal(2, 2, 3, 8), np.array([first]), normal(rows, turned // 2), normal(rows, turned // 2)]
    cases("RotaryEmbedding", Case(inputs, given, known=(1,)), Case(inputs, {**given, "interleaved": 1}, known=(1,)))
packed = [normal(2, 40), whole(np.uint8, 6, 3, 8), np.abs(normal(6, 3)), whole(np.uint8, 6, 2)]
cases("MatMulNBits", Case(packed, {"K": 40, "N": 6, "bits": 4, "block_size": 16}, known=(1, 2, 3)))
for kind in (np.uint8, np.int8):
    a, b, zero, scale = whole(kind, 2, 3, 4), whole(kind, 3, 1), np.array(3, kind), f32(0.05)
    for name in ("QLinearAdd", "QLinearMul"):
        cases(name, Case([a, scale, zero, b, f32(0.02), np.array(1, kind), f32(0.1), np.array(5, kind)], quantum=1))
    cases("QLinearSigmoid", Case([a, scale, zero, f32(1 / 256), np.array(0, kind)], quantum=1))
    cases("QLinearLeakyRelu", Case([a, scale, zero, f32(0.06), np.array(2, kind)], {"alpha": 0.1}, quantum=1))
    where = [
        whole(np.uint8, 2, 3, 1, low=0, high=1).astype(bool),
        a,
        scale,
        zero,
        b,
        f32(0.02),
        np.array(1, kind),
        f32(0.1),
        np.array(5, kind),
    ]
    cases("QLinearWhere", Case(where, quantum=1))
for last in (0, 1):
    pooled = [whole(np.uint8, 2, 3, 5, 4), f32(0.1), np.array(120, np.uint8), f32(0.02), np.array(100, np.uint8)]
    cases("QLinearGlobalAveragePool", Case(pooled, {"channels_last": last}, quantum=1))
a, b = whole(np.uint8, 3, 4), factor(np.int8, 4, 5)
cases(
    "MatMulIntegerToFloat",
    Case([a, b, f32(0.1), f32(0.2), np.array(120, np.uint8), np.array(-3, np.int8), normal(5)]),
    Case([a, b, f32(0.1), np.abs(normal(5)), np.array(120, np.uint8), whole(np.int8, 5)]),
    Case([a, b, f32(0.1), np.abs(normal(5))]),
)
gemm = [a, f32(0.1), np.array(120, np.uint8), b.T.copy(), f32(0.2), np.array(-3, np.int8), whole(np.int32, 5, low=-500, high=500)]
cases("QGemm", Case(gemm, {"transB": 1, "alpha": 0.5}), Case([*gemm, f32(2.0), np.array(90, np.uint8)], {"transB": 1}, quantum=1))

# ---------------------------------------------------------------- twins of standard ops

cases("SampleOp", Case([normal(2, 3)]))
for data in (normal(3, 4, 5), whole(np.int64, 3, 4, 5), whole(np.uint8, 3, 4, 5), normal(3, 4, 5) > 0):
    cases("GatherND", Case([data, np.array([[[0, 1], [2, -1]]], np.int64)]), Case([data, np.array([[2], [0]], np.int32)]))
    cases("ExpandDims", Case([data, np.array(-1, np.int32)], known=(1,)), Case([data, np.array(1, np.int32)], known=(1,)))
    if data.itemsize < 4:
        continue  # no kernel
    cases(
        "UnfoldTensor",
        Case([data], {"size": 2}),
        Case([data], {"size": 3, "step": 1, "dim": 1}),
        Case([data], {"size": 2, "step": 3, "dim": -1}),
    )
for mode in ("bilinear", "nearest", "bicubic"):
    for padding in ("zeros", "border", "reflection"):
        grid = RANDOM.uniform(-1.3, 1.3, (2, 3, 2, 2)).astype(np.float32)
        cases(
            "GridSample", Case([normal(2, 3, 5, 4), grid], {"mode": mode, "padding_mode": padding, "align_corners": int(mode == "bicubic")})
        )
for upper in (0, 1):
    cases(
        "Trilu",
        Case([normal(2, 4, 5)], {"upper": upper}),
        Case([normal(4, 4).astype(np.float64), np.array(-1, np.int64)], {"upper": upper}),
    )
for kind in (np.uint8, np.int8, np.uint16, np.int16):
    cases("QuantizeLinear", Case([5 * normal(3, 4), f32(0.03), np.array(3, kind)]))
    cases("QuantizeLinear", Case([5 * normal(3, 4), np.abs(normal(4)) + f32(0.01), whole(kind, 4)], {"axis": 1}))
    cases("DequantizeLinear", Case([whole(kind, 3, 4), f32(0.03), np.array(3, kind)]))
    cases("DequantizeLinear", Case([whole(kind, 3, 4), np.abs(normal(3)), whole(kind, 3)], {"axis": 0}))
cases("DequantizeLinear", Case([whole(np.int32, 3, 4, low=-9999, high=9999), f32(0.03)]))
for mode in ("constant", "reflect", "edge"):
    cases("Pad", Case([normal(4, 5), np.array([1, 2, 0, 1], np.int64)], {"mode": mode}, known=(1,)))
    cases("Pad", Case([normal(4, 5), np.array([[1, 0, 0, 3]], np.int64), np.array([2.5], np.float32)], {"mode": mode}, known=(1,)))
for kind in (np.int32, np.int64, np.float32, np.float64, np.int16):
    cases("Range", Case([np.array(2, kind), np.array(11, kind), np.array(3, kind)]), Case([np.array([2], kind), np.array([7], kind)]))
cases(
    "Unique",
    Case([np.array([2, 1, 1, 3, 4, 3, 2], np.float32)], outputs=3),
    Case([whole(np.int32, 30, low=0, high=5).astype(np.float32)], outputs=3),
)
cases(
    "ConvTransposeWithDynamicPads",
    Case([normal(2, 3, 5, 4), normal(3, 2, 3, 3), np.array([1, 0, 1, 1], np.int64)], {"strides": [2, 1]}, known=(2,)),
    Case([normal(1, 3, 5), normal(3, 2, 3), np.array([1, 1], np.int64), normal(2)], known=(2,)),
)
for kind in (np.uint8, np.int8):
    cases("NhwcMaxPool", Case([whole(kind, 2, 7, 6, 3)], {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]}))
    cases("NhwcMaxPool", Case([whole(kind, 1, 9, 5)], {"kernel_shape": [3], "ceil_mode": 1, "strides": [2]}))
