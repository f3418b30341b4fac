"""ONNX's sampling ops, pools over regions and NonMaxSuppression against ONNX Runtime without optimization or ONNX's reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx_oracle import same
from onnx_runs import assert_close, by_reference, by_runtime, model_of, ours, symbolic

SEEDS = range(8)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("aligned", [0, 1])
def test_grid_sample(seed: int, mode: str, padding: str, aligned: int) -> None:
    rng = np.random.default_rng(seed)
    count = 2 if mode == "cubic" else int(rng.integers(2, 4))
    shape = (2, 2, *rng.integers(2, 5, count))
    x = rng.normal(size=shape).astype(np.float32)
    grid = rng.uniform(-2.5, 2.5, (2, *rng.integers(1, 4, count), count)).astype(np.float32)
    same("GridSample", [x, grid], {"mode": mode, "padding_mode": padding, "align_corners": aligned}, opset=20, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_grid_sample_of_version_16(mode: str) -> None:
    rng = np.random.default_rng(3)
    inputs = [rng.normal(size=(1, 2, 4, 5)).astype(np.float32), rng.uniform(-1.2, 1.2, (1, 3, 2, 2)).astype(np.float32)]
    same("GridSample", inputs, {"mode": mode}, opset=16, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_grid_sample_with_open_dims(padding: str) -> None:
    rng = np.random.default_rng(4)
    inputs = [rng.normal(size=(2, 3, 4, 5)).astype(np.float32), rng.uniform(-2, 2, (2, 3, 2, 2)).astype(np.float32)]
    attributes = {"padding_mode": padding}
    found = symbolic("GridSample", inputs, attributes, {0: {0: "B", 1: "C", 2: "H", 3: "W"}, 1: {0: "B", 1: "P"}})
    assert_close(found, by_runtime(model_of("GridSample", inputs, attributes, opset=20), inputs), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("size", [(2, 3, 4, 5), (1, 1, 2, 2), (2, 1, 3, 2, 4)])
@pytest.mark.parametrize("aligned", [0, 1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_affine_grid(size: tuple[int, ...], aligned: int, dtype: Any) -> None:
    count = len(size) - 2
    theta = np.random.default_rng(5).normal(size=(size[0], count, count + 1)).astype(dtype)
    model = model_of("AffineGrid", [theta, np.array(size)], {"align_corners": aligned}, opset=20)
    wanted = [value.astype(dtype) for value in by_reference(model, [theta, np.array(size)])]
    assert_close(ours(model, [theta, np.array(size)]), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("mask", [False, True])
def test_deform_conv(seed: int, mask: bool) -> None:
    rng = np.random.default_rng(seed)
    window, strides, dilations = ([int(k) for k in rng.integers(1, 3, 2)] for _ in range(3))
    pads = [int(p) for p in rng.integers(0, 2, 4)]
    group, shifts = (int(g) for g in rng.integers(1, 3, 2))
    channels, outputs = 2 * group * shifts, group * 2
    image = [int(size) for size in rng.integers(4, 7, 2)]
    places = [(image[i] + pads[i] + pads[i + 2] - (window[i] - 1) * dilations[i] - 1) // strides[i] + 1 for i in range(2)]
    x = rng.normal(size=(2, channels, *image)).astype(np.float32)
    w = rng.normal(size=(outputs, channels // group, *window)).astype(np.float32)
    taps = window[0] * window[1] * shifts
    offset = rng.normal(size=(2, 2 * taps, *places)).astype(np.float32)
    rest = [rng.normal(size=outputs).astype(np.float32), rng.random((2, taps, *places)).astype(np.float32)] if mask else []
    attributes = {"strides": strides, "dilations": dilations, "pads": pads, "group": group, "offset_group": shifts, "kernel_shape": window}
    same("DeformConv", [x, w, offset, *rest], attributes, opset=19, rtol=1e-3, atol=1e-3)


def regions(rng: np.random.Generator, count: int) -> Any:
    """(x1, y1, x2, y2), some of them partly outside an image of 8 by 9."""
    start = rng.uniform(-2, 6, (count, 2))
    return np.concatenate([start, start + rng.uniform(0.2, 6, (count, 2))], axis=1).astype(np.float32)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("transformation", ["half_pixel", "output_half_pixel"])
@pytest.mark.parametrize("ratio", [0, 1, 3])
def test_roi_align(seed: int, mode: str, transformation: str, ratio: int) -> None:
    rng = np.random.default_rng(seed)
    inputs = [rng.normal(size=(2, 2, 8, 9)).astype(np.float32), regions(rng, 3), rng.integers(0, 2, 3)]
    attributes = {"mode": mode, "coordinate_transformation_mode": transformation, "sampling_ratio": ratio, "output_height": 2,
                  "output_width": 3, "spatial_scale": float(rng.choice([0.5, 1.0]))}  # fmt: skip
    same("RoiAlign", inputs, attributes, opset=16, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("seed", range(16))
def test_max_roi_pool(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(2, 3, 8, 9)).astype(np.float32)
    rois = np.concatenate([rng.integers(0, 2, (4, 1)).astype(np.float32), np.floor(regions(rng, 4))], axis=1)
    same("MaxRoiPool", [x, rois], {"pooled_shape": [2, 3], "spatial_scale": float(rng.choice([0.5, 1.0]))}, opset=21)


@pytest.mark.parametrize("seed", range(16))
@pytest.mark.parametrize("centred", [0, 1])
def test_non_max_suppression(seed: int, centred: int) -> None:
    rng = np.random.default_rng(seed)
    batches, classes, count = (int(n) for n in rng.integers(1, [3, 4, 12]))
    boxes = rng.uniform(0, 1, (batches, count, 4)).astype(np.float32)
    scores = (rng.integers(0, 8, (batches, classes, count)) / 8).astype(np.float32)  # equal ones too
    rest = [np.array([int(rng.integers(0, 5))]), np.array([rng.choice([0.0, 0.2, 0.5])], np.float32), np.array([0.3], np.float32)]
    inputs = [boxes, scores, *rest[: int(rng.integers(1, 4))]]
    same("NonMaxSuppression", inputs, {"center_point_box": centred}, opset=11)


def test_nothing_to_sample() -> None:
    empty = np.zeros((0, 4), np.float32)
    model = model_of("RoiAlign", [np.ones((1, 2, 4, 4), np.float32), empty, np.zeros(0, np.int64)], {"sampling_ratio": 2}, opset=16)
    assert ours(model, [np.ones((1, 2, 4, 4), np.float32), empty, np.zeros(0, np.int64)])[0].shape == (0, 2, 1, 1)
    same("NonMaxSuppression", [np.zeros((1, 0, 4), np.float32), np.zeros((1, 1, 0), np.float32), np.array([3])], {}, opset=11)
