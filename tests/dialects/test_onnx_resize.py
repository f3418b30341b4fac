"""ONNX's Resize and Upsample against ONNX Runtime without optimization or ONNX's reference, over drawn sizes and attributes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx_runs import assert_close, by_reference, by_runtime, model_of, ours, symbolic

SEEDS = range(10)
COORDINATES = ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric")
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


def image(rng: np.random.Generator, shape: Any, dtype: Any = np.float32) -> Any:
    return rng.integers(0, 100, shape).astype(dtype)


def resize(x: Any, attributes: dict[str, Any], *, scales: Any = None, sizes: Any = None, roi: Any = None) -> tuple[Any, list[Any]]:
    """The model and its inputs."""
    last = [None if scales is None else np.array(scales, np.float32)]
    last += [] if sizes is None else [np.array(sizes, np.int64)]
    inputs = [x, None if roi is None else np.array(roi, np.float32), *last]
    return model_of("Resize", inputs, attributes, opset=19), inputs


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_nearest(seed: int, coordinates: str, rounding: str) -> None:
    """Sizes are such that no coordinate is a tie up to rounding of a scale."""
    rng = np.random.default_rng(seed)
    attributes = {"mode": "nearest", "coordinate_transformation_mode": coordinates, "nearest_mode": rounding}
    shape = (1, 2, *(int(size) for size in rng.integers(1, 6, 2)))
    factors = rng.choice([0.5, 1, 2, 3, 4], 2)
    sizes = [1, 2, *(max(1, int(size * factor)) for size, factor in zip(shape[2:], factors, strict=True))]
    model, inputs = resize(image(rng, shape), attributes, sizes=sizes)
    found = ours(model, inputs)
    assert_close(found, by_runtime(model, inputs))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_interpolation(seed: int, coordinates: str, mode: str, dtype: Any) -> None:
    rng = np.random.default_rng(seed)
    shape = (1, 2, *(int(size) for size in rng.integers(2, 7, 2)))
    attributes: dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": coordinates}
    attributes |= {"exclude_outside": int(rng.integers(0, 2)), "cubic_coeff_a": -0.5} if mode == "cubic" else {}
    if seed % 2 and coordinates != "align_corners":  # whose length by scales ONNX Runtime rounds down, unlike the standard's cases
        scales = [1, 1, *rng.choice([0.4, 0.5, 0.75, 1.5, 2, 2.7], 2)]
        if coordinates == "pytorch_half_pixel":
            shape = (1, 2, 5, 6)  # of a result of one element the reference takes another coordinate than the standard's text
        model, inputs = resize(image(rng, shape, dtype), attributes, scales=scales)
    else:
        model, inputs = resize(image(rng, shape, dtype), attributes, sizes=[1, 2, *rng.integers(2, 10, 2)])
    oracle = by_runtime if dtype is np.float32 and mode == "linear" else by_reference  # ONNX Runtime has no other cubic than of f32
    assert_close(ours(model, inputs), oracle(model, inputs), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_antialias(seed: int, mode: str) -> None:
    rng = np.random.default_rng(seed)
    shape = (1, 1, *(int(size) for size in rng.integers(4, 12, 2)))
    attributes: dict[str, Any] = {"mode": mode, "antialias": 1, "exclude_outside": int(rng.integers(0, 2))}
    model, inputs = resize(image(rng, shape), attributes, sizes=[1, 1, *rng.integers(1, 12, 2)])
    assert_close(ours(model, inputs), by_reference(model, inputs), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_crop_and_resize(seed: int, mode: str) -> None:
    rng = np.random.default_rng(seed)
    attributes: dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 7.0}
    start, end = rng.uniform(-0.2, 0.6, 2), rng.uniform(0.5, 1.3, 2)
    roi = [0, 0, *start, 1, 1, *end]
    sizes = [1, 2, *rng.integers(1, 8, 2)]
    if seed % 2:
        attributes["axes"], roi, sizes = [3, 2], [*start, *end], sizes[2:]
    model, inputs = resize(image(rng, (1, 2, 5, 6)), attributes, sizes=sizes, roi=roi)
    assert_close(ours(model, inputs), by_reference(model, inputs), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("policy", ["stretch", "not_larger", "not_smaller"])
def test_aspect_ratio(seed: int, policy: str) -> None:
    rng = np.random.default_rng(seed)
    attributes = {"mode": "linear", "keep_aspect_ratio_policy": policy, "axes": [2, 3]}
    model, inputs = resize(image(rng, (1, 1, *rng.integers(2, 9, 2))), attributes, sizes=rng.integers(2, 12, 2))
    assert_close(ours(model, inputs), by_reference(model, inputs), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int32, np.float16])
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_element_types(dtype: Any, mode: str) -> None:
    """Scales and coordinates of few bits, so that weighted sums are exact; of integers the fraction is cut off."""
    x = image(np.random.default_rng(8), (1, 2, 3, 4), dtype)
    model, inputs = resize(x, {"mode": mode}, scales=[1, 1, 2, 2])
    wide_model, wide_inputs = resize(x.astype(np.float32), {"mode": mode}, scales=[1, 1, 2, 2])
    assert_close(ours(model, inputs), [value.astype(dtype) for value in by_runtime(wide_model, wide_inputs)])


@pytest.mark.parametrize("op", ["Upsample", "Resize"])
@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("scales", [(2, 3), (1.5, 2.5), (1, 2)])
def test_versions_of_old(op: str, mode: str, scales: tuple[float, float]) -> None:
    x = image(np.random.default_rng(9), (1, 2, 4, 3))
    inputs = [x, np.array([1, 1, *scales], np.float32)]
    model = model_of(op, inputs, {"mode": mode}, opset=9 if op == "Upsample" else 10)
    assert_close(ours(model, inputs), by_runtime(model, inputs), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("scales", [(0.5, 0.5), (0.6, 0.75), (0.3, 2)])
def test_version_10_shrinks_by_the_next_pixel(scales: tuple[float, float]) -> None:
    inputs = [image(np.random.default_rng(9), (1, 2, 7, 8)), np.array([1, 1, *scales], np.float32)]
    model = model_of("Resize", inputs, {"mode": "nearest"}, opset=10)
    assert_close(ours(model, inputs), by_runtime(model, inputs))


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("scale", [2.0, 0.5, 1.5])
def test_symbolic_images(mode: str, coordinates: str, scale: float) -> None:
    """All dims but the channels are open; the scale is known."""
    attributes = {"mode": mode, "coordinate_transformation_mode": coordinates}
    x = image(np.random.default_rng(10), (2, 3, 4, 6))
    scales = np.array([1, 1, scale, scale], np.float32)
    found = symbolic("Resize", [x, None, scales], attributes, {0: {0: "B", 2: "H", 3: "W"}}, known=(2,))
    model, inputs = resize(x, attributes, scales=scales)
    assert_close(found, by_reference(model, inputs), rtol=1e-4, atol=1e-3)


def test_nothing_to_resize() -> None:
    model, inputs = resize(np.zeros((0, 2, 3, 4), np.float32), {"mode": "linear"}, sizes=[0, 2, 6, 6])
    assert ours(model, inputs)[0].shape == (0, 2, 6, 6)
