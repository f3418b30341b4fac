"""Nodes of com.microsoft on images, matrices, experts and tokens."""

from __future__ import annotations

import numpy as np
from contrib_cases import RANDOM, Case, cases, normal, whole

regions = RANDOM.uniform(-0.1, 1.1, (4, 4)).astype(np.float32)
regions[0] = [0.0, 0.0, 1.0, 1.0]
for mode in ("bilinear", "nearest"):
    for size in ([3, 4], [1, 1], [7, 2]):
        x = [normal(2, 3, 6, 5), regions, np.array([0, 1, 1, 0], np.int32), np.array(size, np.int32)]
        cases("CropAndResize", Case(x, {"mode": mode, "extrapolation_value": 2.5}, known=(3,)))
for shape, more in (((2, 3, 8), {"kernel_shape": [3], "strides": [2], "pads": [1, 1]}),
                    ((2, 3, 7, 6), {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]}),
                    ((1, 2, 4, 5, 6), {"kernel_shape": [2, 2, 3], "strides": [1, 2, 1]})):  # fmt: skip
    mask = (RANDOM.uniform(size=(1, 1, *shape[2:])) < 0.8).astype(np.int32)
    cases("MaxpoolWithMask", Case([normal(*shape), mask], more), Case([normal(*shape), np.ones_like(mask)], more))
cases("Inverse", Case([normal(4, 4)], rtol=2e-3, atol=2e-3), Case([normal(2, 3, 5, 5).astype(np.float64)]), Case([normal(2, 1, 1)]))
cases("Inverse", Case([np.array([[0, 1, 2], [1, 0, 0], [3, 1, 0]], np.float32)]))

for shape in ((4, 6), (1, 5, 3), (1, 7), (6, 1)):
    cases("DynamicTimeWarping", Case([np.abs(normal(*shape))]), Case([whole(np.int32, *shape, low=0, high=2).astype(np.float32)]))

# ---------------------------------------------------------------- experts

for activation in ("relu", "gelu", "silu", "identity", "swiglu"):
    wide = 2 if activation == "swiglu" else 1
    more = {"activation_type": activation, "swiglu_fusion": 1} if wide == 2 else {"activation_type": activation}
    if wide == 2:
        more |= {"activation_alpha": 1.5, "activation_beta": 0.5, "swiglu_limit": 2.0}
    for k, normalize in ((1, 0), (2, 1)):
        given = {**more, "k": k, "normalize_routing_weights": normalize}
        x = [normal(2, 3, 8), normal(6, 4), normal(4, wide * 5, 8), normal(4, wide * 5), normal(4, 8, 5), normal(4, 8)]
        cases("MoE", Case(x, given))
        cases("MoE", Case([x[0].reshape(6, 8), x[1], x[2], None, x[4]], given))
for bits in (4, 8):
    each = 8 // bits
    for block in (0, 16):
        scales = [np.abs(normal(4, n, *((32 // block,) if block else ()))) / (20 if bits == 4 else 400) for n in (64, 32)]
        x = [normal(6, 32), normal(6, 4), whole(np.uint8, 4, 64, 32 // each), scales[0], normal(4, 64)]
        x += [whole(np.uint8, 4, 32, 32 // each), scales[1], normal(4, 32)]
        given = {
            "k": 2,
            "expert_weight_bits": bits,
            "activation_type": "swiglu",
            "swiglu_fusion": 1,
            "activation_alpha": 1.702,
            "activation_beta": 1.0,
        }
        loose = {"rtol": 5e-2, "atol": 1e-1} if bits == 8 and block else {"rtol": 2e-3, "atol": 2e-3}  # rounds tokens to 8 bits there
        cases("QMoE", Case([*x], {**given, **({"block_size": block} if block else {})}, known=(2, 3, 5, 6), **loose))
        for normalize in (0, 1):
            routed = {"k": 2, "expert_weight_bits": bits, "activation_type": "silu", "normalize_routing_weights": normalize}
            x[2:5] = [whole(np.uint8, 4, 32, 32 // each), np.abs(normal(4, 32)) / (20 if bits == 4 else 400), normal(4, 32)]
            points = [whole(np.uint8, 4, 32 // each) for _ in range(2)] if not block else [None, None]
            more = [*x[:6], np.abs(normal(4, 32)) / (20 if bits == 4 else 400), x[7], None, None, None, *points, None, np.abs(normal(6, 4))]
            cases("QMoE", Case(more, routed, known=(2, 3, 5, 6, 11, 12) if not block else (2, 3, 5, 6), **loose))

# ---------------------------------------------------------------- tokens

for size in (1, 2, 3, 9):
    ids = whole(np.int64, 3, 7, low=0, high=2)
    cases("NGramRepeatBlock", Case([ids, normal(3, 5)], {"ngram_size": size}))
source = np.array([2, 3, 4, 5, 2, 3, 9, 7], np.int64)
for tail in ([2, 3, 4, 5, 2, 3, 9, 7, 1], [2, 3, 4, 9, 9, 9, 9, 9, 9], [8, 8, 8, 8, 8, 8, 8, 8, 8], [2, 3, 7, 1, 1, 1, 1, 1, 1]):
    for start in (0, 3):
        x = [source, np.array([1, 2, 3], np.int64), np.array(start, np.int64), np.array(tail[: 9 - start], np.int64)]
        for least, most in ((1, 3), (2, 4)):
            cases("BifurcationDetector", Case(x, {"min_ngram_size": least, "max_ngram_size": most}, outputs=2))
for tail in ([5, 2, 3], [7], [4, 5]):
    cases("BifurcationDetector", Case([source, np.array(tail, np.int64), np.array(0, np.int64)], outputs=2))
for data in (
    whole(np.int32, 2, 3),
    whole(np.uint32, 4),
    normal(2, 3),
    whole(np.int64, 2, 3),
    whole(np.uint64, 3),
    normal(4).astype(np.float64),
):
    cases("MurmurHash3", Case([data]), Case([data], {"positive": 0, "seed": 17}))
for kind in (np.int32, np.int64):
    x = [whole(kind, 2, 5, low=0, high=99), whole(kind, 3), np.array([7, 11, 13, 101], kind)]
    given = {"max_ngram_size": 3, "n_head_per_ngram": 2, "pad_id": 4}
    cases("NGramHashMapping", Case(x, given, outputs=2), Case([*x, whole(kind, 2, 2, low=0, high=99)], given, outputs=2))
    cases("NGramHashMapping", Case([*x, None, whole(kind, 4, low=0, high=99), np.array(5, kind)], given, outputs=2))
    ends = np.array([0, 3, 4, 9], np.int32)
    packed = [whole(kind, 9, low=0, high=99), x[1], x[2], ends]
    cases("VarlenNGramHashMapping", Case(packed, given, outputs=2))
    cases("VarlenNGramHashMapping", Case([*packed, whole(kind, 3, 2, low=0, high=99), whole(kind, 4, low=0, high=9)], given, outputs=2))
    cases("VarlenNGramHashMapping", Case([*packed, None, None, np.array(5, kind)], given, outputs=2))
letters = np.array([[3, 1, 4, 1, 5, 2], [2, 6, 0, 0, 0, 0], [5, 3, 5, 1, 0, 0], [7, 0, 0, 0, 0, 0]], np.int32)
cases("WordConvEmbedding", Case([letters, normal(5, 1, 3, 4), normal(5), normal(9, 4)], rtol=2e-3, atol=2e-4))
