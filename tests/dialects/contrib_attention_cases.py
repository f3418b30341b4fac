"""com.microsoft's attention nodes: masks in all forms, caches, packed operands, rotations, windows and sinks."""

from __future__ import annotations

import numpy as np
from contrib_cases import Case, cases, f32, factor, normal, whole

KEEP = np.array([[1, 1, 1, 0], [1, 1, 0, 0]], np.int32)
MASKS = {"none": None, "keys": KEEP, "pairs": whole(np.int32, 2, 4, 4, low=0, high=1), "ends": np.array([3, 2], np.int32),
         "both ends": np.array([4, 3, 1, 0], np.int32)}  # fmt: skip

# ---------------------------------------------------------------- Attention, QAttention

for mask in MASKS.values():
    for unidirectional in (0, 1):
        given = {"num_heads": 2, "unidirectional": unidirectional}
        cases("Attention", Case([normal(2, 4, 6), normal(6, 24), normal(24), mask], given))
cases("Attention", Case([normal(2, 4, 6), normal(6, 22), normal(22)], {"num_heads": 2, "qkv_hidden_sizes": [8, 8, 6]}))
cases("Attention", Case([normal(2, 4, 6), normal(6, 24), normal(24), None, None, normal(1, 2, 4, 4)], {"num_heads": 2, "scale": 0.5}))
for mask in (None, np.array([[1] * 7, [1] * 5 + [0] * 2], np.int32)):
    for unidirectional in (0, 1):
        given = {"num_heads": 2, "unidirectional": unidirectional}
        cases("Attention", Case([normal(2, 4, 6), normal(6, 24), normal(24), mask, normal(2, 2, 2, 3, 4)], given, outputs=2))
for kind in (np.uint8, np.int8):
    quantized = [whole(np.uint8, 2, 4, 6), factor(kind, 6, 24), normal(24), f32(0.01), f32(0.02)]
    for mask in (None, np.array([3, 2], np.int32)):
        given = {"num_heads": 2, "unidirectional": int(mask is None)}
        cases("QAttention", Case([*quantized, mask, np.array(120, np.uint8), np.array(3, kind)], given, outputs=2))
    cases("QAttention", Case([*quantized, None, None, None, normal(2, 2, 2, 3, 4)], {"num_heads": 2}, outputs=2))

# ---------------------------------------------------------------- MultiHeadAttention, DecoderMaskedMultiHeadAttention

query, key, value = normal(2, 3, 8), normal(2, 4, 8), normal(2, 4, 6)
for shift in (None, normal(22)):
    for mask in (None, KEEP, np.array([3, 2], np.int32)):
        cases("MultiHeadAttention", Case([query, key, value, shift, mask], {"num_heads": 2}))
cases("MultiHeadAttention", Case([query, key, value, None, None, normal(2, 2, 3, 4)], {"num_heads": 2, "scale": 0.3}))
cases("MultiHeadAttention", Case([query, normal(2, 2, 4, 4), normal(2, 2, 4, 4)], {"num_heads": 2}))
same = [normal(2, 3, 8) for _ in range(3)]
cases("MultiHeadAttention", Case([*same, normal(24)], {"num_heads": 2, "unidirectional": 1}, outputs=3))
cases("MultiHeadAttention", Case([*same, None, None, None, normal(2, 2, 5, 4), normal(2, 2, 5, 4)], {"num_heads": 2}, outputs=3))
past = [normal(2, 2, 5, 4), normal(2, 2, 5, 4)]
one = [normal(2, 1, 8) for _ in range(3)]
keep = np.array([[1, 1, 1, 1, 1, 1], [0, 1, 1, 1, 1, 1]], np.int32)
shared = {"num_heads": 2, "past_present_share_buffer": 1}
there = np.array([3], np.int32)
cases("DecoderMaskedMultiHeadAttention", Case([*one, None, None, *past, there], shared, outputs=3, known=(7,), shared={5: 1, 6: 2}))
masked = [*one, keep[:, :4].copy(), normal(1, 2, 1, 4), *past, there]
cases("DecoderMaskedMultiHeadAttention", Case(masked, {**shared, "scale": 0.3}, outputs=3, known=(7,), shared={5: 1, 6: 2}))
shifted = [*one, None, None, *past, there, None, None, normal(24)]
cases("DecoderMaskedMultiHeadAttention", Case(shifted, shared, outputs=3, known=(7,), shared={5: 1, 6: 2}))
cases("DecoderMaskedMultiHeadAttention", Case([one[0], *past], {"num_heads": 2}))

# ---------------------------------------------------------------- GroupQueryAttention

HEADS = {"num_heads": 4, "kv_num_heads": 2}
angles = [normal(16, 8), normal(16, 8)]


def prompt(length: int = 5, size: int = 16) -> list[np.ndarray]:
    return [normal(2, length, 4 * size), normal(2, length, 2 * size), normal(2, length, 2 * size)]


def total(count: int, *lengths: int) -> list[np.ndarray]:
    return [np.array(lengths, np.int32) - 1, np.array(count, np.int32)]


KNOWN = (6,)
for more in ({}, {"local_window_size": 2}, {"softcap": 5.0}, {"smooth_softmax": 1}, {"scale": 0.2}):
    cases("GroupQueryAttention", Case([*prompt(), None, None, *total(5, 5, 5)], {**HEADS, **more}, outputs=3, known=KNOWN))
    cache = [normal(2, 2, 6, 16), normal(2, 2, 6, 16)]
    cases("GroupQueryAttention", Case([*prompt(1), *cache, *total(7, 7, 7)], {**HEADS, **more}, outputs=3, known=KNOWN))
for interleaved in (0, 1):
    given = {**HEADS, "do_rotary": 1, "rotary_interleaved": interleaved}
    cases("GroupQueryAttention", Case([*prompt(), None, None, *total(5, 5, 5), *angles], given, outputs=3, known=KNOWN))
    cases("GroupQueryAttention", Case([*prompt(1), *cache, *total(7, 7, 5), *angles], given, outputs=3, known=KNOWN))
    packed = [np.concatenate(prompt(), 2), None, None, None, None]
    cases("GroupQueryAttention", Case([*packed, *total(5, 5, 5), *angles], given, outputs=3, known=KNOWN))
cases("GroupQueryAttention", Case([*prompt(), None, None, *total(5, 5, 5), None, None, None, normal(1, 4, 5, 5)], HEADS, known=KNOWN))
cases("GroupQueryAttention", Case([*prompt(), None, None, *total(5, 5, 5), None, None, None, None, normal(4)], HEADS, known=KNOWN))
cases("GroupQueryAttention", Case([*prompt(), None, None, *total(5, 5, 5)], {**HEADS, "causal": 0}, known=KNOWN))
halves = [x.astype(np.float16) for x in prompt()]
cases("GroupQueryAttention", Case([*halves, None, None, *total(5, 5, 5)], HEADS, known=KNOWN, rtol=4e-3, atol=4e-3))

# ---------------------------------------------------------------- SparseAttention, MRotaryEmbedding

rows = np.array([[0, 1, 3], [0, 1, 2]], np.int32)
columns = np.array([[0, 0, 1], [0, 1, -1]], np.int32)
sparse = {**HEADS, "sparse_block_size": 16, "scale": 0.35}
for length in (20, 1):
    cache = [normal(2, 2, 32, 16), normal(2, 2, 32, 16)]
    counts = [np.array(20, np.int32), np.array([20, 20], np.int32)]
    cases("SparseAttention", Case([*prompt(length), *cache, rows, columns, *counts], sparse, outputs=3, known=(7,), shared={3: 1, 4: 2}))
    tables = [normal(32, 8), normal(32, 8)]
    cases(
        "SparseAttention",
        Case(
            [*prompt(length), *cache, rows, columns, *counts, *tables],
            {**sparse, "do_rotary": 1},
            outputs=3,
            known=(7,),
            shared={3: 1, 4: 2},
        ),
    )
for layout, section in ((0, [1, 1, 2]), (1, [2, 1, 1]), (0, [4, 0, 0])):
    places = whole(np.int64, 3, 2, 3, low=0, high=9)
    tables = [normal(12, 4), normal(12, 4)]
    for interleaved in (0, 1):
        given = {"mrope_section": section, "mrope_layout": layout, "interleaved": interleaved, "num_heads": 2}
        cases("MRotaryEmbedding", Case([normal(2, 3, 16), places, *tables], given), Case([normal(2, 2, 3, 8), places, *tables], given))
