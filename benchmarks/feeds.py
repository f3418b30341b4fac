"""Make valid random inputs for any ONNX model."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
from onnx import helper

MOVES = {"Identity", "Cast", "Reshape", "Unsqueeze", "Squeeze", "Transpose", "Slice", "Flatten", "Expand", "Concat"}
"""Ops whose result holds only values of their first operand, as far as an index's range goes."""

SYMBOL_SIZES = (("batch", 1), ("seq", 64), ("sample", 16000), ("channel", 3), ("height", 224), ("width", 224), ("time", 64))
"""The size of a dimension whose symbol contains a word; the first that fits."""

SHAPES: dict[str, dict[str, tuple[int, ...]]] = {
    "ch_PP-OCRv4_det_infer": {"x": (1, 3, 320, 320)},
    "ch_PP-OCRv4_rec_infer": {"x": (1, 3, 48, 320)},
    "ch_ppocr_mobile_v2.0_cls_infer": {"x": (1, 3, 48, 192)},
    "silero_vad": {"input": (1, 576), "state": (2, 1, 128)},
    "silero_vad_16k_op15": {"input": (1, 576)},
    "silero_vad_half": {"input": (1, 576)},
    "silero_vad_op18_ifless": {"input": (1, 576)},
    "silero_vad_16k_sequence": {"input": (32, 576)},
    "embedding_model": {"input_1": (1, 76, 32, 1)},
    "melspectrogram": {"input": (1, 16000)},
}
"""What the authors of trained models feed them: image sizes of PP-OCR; silero-vad's 64 samples of context and 512 new ones at 16 kHz."""

PAGES = ("ch_PP-OCRv4_det_infer", "ch_PP-OCRv4_rec_infer", "ch_ppocr_mobile_v2.0_cls_infer")
"""Models that read images of text: noise makes them say nothing, with outputs below 1e-5, so they get dark strokes on white."""

VALUES: dict[str, int] = {"sr": 16000}
"""Integer inputs that mean one quantity: silero-vad's sample rate in Hz."""


def make(model: onnx.ModelProto, name: str, seed: int) -> dict[str, np.ndarray]:
    """Return one value for each input of `model`: normal floats, indices inside the tables they index, masks that keep most.

    A symbol has one size everywhere. `name` is the model's file stem, which finds the sizes of trained models.
    """
    rng = np.random.default_rng(seed)
    known = {tensor.name for tensor in model.graph.initializer}
    sizes: dict[str, int] = {}
    feeds = {}
    for value in model.graph.input:
        if value.name in known:
            continue
        dtype = np.dtype(helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type))
        shape = SHAPES.get(name, {}).get(value.name) or _shape(value, sizes)
        feeds[value.name] = _page(shape, rng) if name in PAGES else _value(model, value.name, dtype, shape, rng)
    return feeds


def _page(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Return an image of lines of strokes, white 1 and black -1 as PP-OCR scales pixels, with a little noise."""
    page = np.ones(shape, np.float32)
    height, width = shape[-2:]
    for top in range(height // 8, height - 24, 48):
        for left in range(16, width - 24, 14):
            x, y = left + rng.integers(0, 6), top + rng.integers(0, 10)
            page[..., y : top + 22, x : x + 3] = -1
            page[..., top + 10 : top + 13, left : left + rng.integers(4, 12)] = -1
    return page + rng.normal(0, 0.02, shape).astype(np.float32)


def _shape(value: onnx.ValueInfoProto, sizes: dict[str, int]) -> tuple[int, ...]:
    dims = value.type.tensor_type.shape.dim
    return tuple(dim.dim_value if dim.dim_value > 0 else _size(dim.dim_param, axis, len(dims), sizes) for axis, dim in enumerate(dims))


def _size(symbol: str, axis: int, rank: int, sizes: dict[str, int]) -> int:
    """Return the size of an open dimension: by its symbol's words, else 1 for the first axis, 224 for images and 64 for the rest."""
    guess = next((size for word, size in SYMBOL_SIZES if word in symbol.lower()), 1 if axis == 0 else 224 if rank == 4 else 64)
    return sizes.setdefault(symbol, guess) if symbol not in ("", "?") else guess


def _value(model: onnx.ModelProto, name: str, dtype: np.dtype, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    if name in VALUES:
        return np.full(shape, VALUES[name], dtype)
    if dtype.kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    if "mask" in name:
        keep = np.ones(shape, dtype)
        keep[..., shape[-1] - int(rng.integers(0, shape[-1] // 4 + 1)) :] = 0
        return keep
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    return rng.integers(0, _rows(model, name) or 2, shape).astype(dtype)


def _rows(model: onnx.ModelProto, name: str) -> int | None:
    """Return the rows of the smallest constant table that a Gather indexes with the values of `name`; None when there is none."""
    tables: Mapping[str, onnx.TensorProto] = {tensor.name: tensor for tensor in model.graph.initializer}
    same, rows = {name}, []
    for node in model.graph.node:
        if node.op_type == "Gather" and node.input[1] in same and node.input[0] in tables:
            axis = next((entry.i for entry in node.attribute if entry.name == "axis"), 0)
            rows.append(tables[node.input[0]].dims[axis])
        if node.input and node.input[0] in same and node.op_type in MOVES | {"Gather"}:
            same.add(node.output[0])
    return min(rows, default=None)
