"""ONNX's pools and convolutions against ONNX Runtime (or ONNX's reference where it has no kernel), over drawn shapes and attributes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx_oracle import expected, same
from onnx_runs import assert_close, by_reference, by_runtime, model_of, ours, symbolic

SEEDS = range(12)
MODES = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")


def pool(rng: np.random.Generator, *, ceil: bool, dilated: bool = True) -> tuple[tuple[int, ...], dict[str, Any]]:
    """A shape [n, c, spatial..] and attributes of windows that fit into it."""
    count = int(rng.integers(1, 4))
    window = [int(k) for k in rng.integers(1, 4, count)]
    dilations = [int(d) for d in rng.integers(1, 3, count)] if dilated else [1] * count
    reach = [(k - 1) * d + 1 for k, d in zip(window, dilations, strict=True)]
    spatial = [int(r + rng.integers(0, 5)) for r in reach]
    attributes: dict[str, Any] = {"kernel_shape": window, "strides": [int(s) for s in rng.integers(1, 4, count)]}
    if any(d > 1 for d in dilations):
        attributes["dilations"] = dilations
    mode = str(rng.choice(MODES))
    if mode == "NOTSET":
        attributes["pads"] = [int(rng.integers(0, k)) for k in (*window, *window)]
        attributes["ceil_mode"] = int(ceil and rng.integers(0, 2))
    else:
        attributes["auto_pad"] = mode
        attributes["strides"] = [min(s, k) for s, k in zip(attributes["strides"], window, strict=True)]  # else padding is below 0
        attributes.pop("dilations", None)
    return (int(rng.integers(1, 3)), int(rng.integers(1, 3)), *spatial), attributes


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.uint8])
def test_max_pool(seed: int, dtype: Any) -> None:
    rng = np.random.default_rng(seed)
    shape, attributes = pool(rng, ceil=True)
    x = rng.permutation(np.arange(int(np.prod(shape)))).reshape(shape).astype(dtype)  # wraps in 8 bits: equal elements too
    same("MaxPool", [x], attributes)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("order", [0, 1])
def test_max_pool_says_where_the_maximum_is(seed: int, order: int) -> None:
    rng = np.random.default_rng(seed)
    shape, attributes = pool(rng, ceil=True)
    x = rng.integers(-5, 5, shape).astype(np.float32)
    same("MaxPool", [x], {**attributes, "storage_order": order}, outputs=2)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("inside", [0, 1])
def test_average_pool(seed: int, inside: int) -> None:
    rng = np.random.default_rng(100 + seed)
    shape, attributes = pool(rng, ceil=True)
    x = rng.normal(size=shape).astype(np.float32)
    same("AveragePool", [x], {**attributes, "count_include_pad": inside})


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("p", [1, 2, 3])
def test_lp_pool(seed: int, p: int) -> None:
    rng = np.random.default_rng(200 + seed)
    shape, attributes = pool(rng, ceil=False)
    attributes.pop("ceil_mode", None)
    same("LpPool", [rng.normal(size=shape).astype(np.float32)], {**attributes, "p": p})


GLOBAL = [("GlobalMaxPool", {}), ("GlobalAveragePool", {}), *(("GlobalLpPool", {"p": p}) for p in (1, 2, 3))]


@pytest.mark.parametrize(("op", "attributes"), GLOBAL)
@pytest.mark.parametrize("shape", [(2, 3, 4), (1, 2, 3, 4), (2, 1, 2, 3, 2)])
def test_global_pools(op: str, attributes: dict[str, Any], shape: tuple[int, ...]) -> None:
    same(op, [np.random.default_rng(1).normal(size=shape).astype(np.float32)], attributes, opset=21)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_conv(seed: int, dtype: Any) -> None:
    rng = np.random.default_rng(300 + seed)
    shape, attributes = pool(rng, ceil=False)
    attributes.pop("ceil_mode", None)
    group = int(rng.integers(1, 3))
    channels, outputs = group * int(rng.integers(1, 3)), group * int(rng.integers(1, 3))
    x = rng.integers(-3, 4, (shape[0], channels, *shape[2:])).astype(dtype)
    w = rng.integers(-3, 4, (outputs, channels // group, *attributes["kernel_shape"])).astype(dtype)
    bias = [rng.integers(-3, 4, outputs).astype(dtype)] if seed % 2 else []
    if dtype is np.float16:  # ONNX Runtime has no kernel; the reference is slow and has no auto_pad with strides in it
        wide = [array.astype(np.float32) for array in (x, w, *bias)]
        wanted = [value.astype(dtype) for value in expected("Conv", wide, {**attributes, "group": group})[1]]
        assert_close(ours(model_of("Conv", [x, w, *bias], {**attributes, "group": group}, opset=22), [x, w, *bias]), wanted)
        return
    same("Conv", [x, w, *bias], {**attributes, "group": group})


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kinds", [(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)])
def test_conv_integer(seed: int, kinds: tuple[Any, Any]) -> None:
    rng = np.random.default_rng(400 + seed)
    shape, attributes = pool(rng, ceil=False)
    attributes.pop("ceil_mode", None)
    outputs = int(rng.integers(1, 4))
    x = rng.integers(0, 100, shape).astype(kinds[0])
    w = rng.integers(0, 100, (outputs, shape[1], *attributes["kernel_shape"])).astype(kinds[1])
    zeros = [np.array(rng.integers(0, 9), kinds[0]), np.array(rng.integers(0, 9), kinds[1])][: int(rng.integers(0, 3))]
    same("ConvInteger", [x, w, *zeros], attributes, opset=10)


def test_conv_integer_with_a_zero_point_for_each_channel() -> None:
    """As the sum over the taps of integers, by hand: ONNX Runtime takes one zero point only."""
    rng = np.random.default_rng(1)
    x, w = rng.integers(0, 255, (1, 2, 5)).astype(np.uint8), rng.integers(0, 255, (3, 2, 2)).astype(np.uint8)
    inputs = [x, w, np.array(7, np.uint8), np.array([1, 100, 255], np.uint8)]
    found = ours(model_of("ConvInteger", inputs, {}, opset=10), inputs)[0]
    a, b = x.astype(np.int64) - 7, w.astype(np.int64) - np.array([1, 100, 255])[:, None, None]
    wanted = np.stack([sum((a[0, :, k : k + 4] * b[o, :, k : k + 1]).sum(0) for k in range(2)) for o in range(3)])[None]
    assert found.dtype == np.int32 and np.array_equal(found, wanted)


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize("given", ["pads", "auto_pad", "output_shape"])
def test_conv_transpose(seed: int, given: str) -> None:
    rng = np.random.default_rng(500 + seed)
    count = int(rng.integers(1, 3))
    window, strides = [int(k) for k in rng.integers(1, 4, count)], [int(s) for s in rng.integers(1, 4, count)]
    dilations = [int(d) for d in rng.integers(1, 3, count)]
    group = int(rng.integers(1, 3))
    channels, outputs = group * int(rng.integers(1, 3)), int(rng.integers(1, 3))
    attributes: dict[str, Any] = {"strides": strides, "dilations": dilations, "group": group}
    spatial = [int(d) for d in rng.integers(2, 5, count)]
    after = [int(rng.integers(0, s)) for s in strides]
    full = [s * (d - 1) + (k - 1) * g + 1 for s, d, k, g in zip(strides, spatial, window, dilations, strict=True)]
    if given == "pads":
        attributes["pads"] = [int(rng.integers(0, max(1, min(k, f // 3)))) for k, f in zip(window * 2, full * 2, strict=True)]
        attributes["output_padding"] = after
    elif given == "auto_pad":
        attributes["auto_pad"] = str(rng.choice(MODES))
        if any(f < s * d for f, s, d in zip(full, strides, spatial, strict=True)):
            attributes["auto_pad"] = "VALID"  # padding would be negative, which ONNX Runtime takes for 0
    else:
        attributes["output_shape"] = [int(f - rng.integers(0, min(3, f))) for f in full]
        attributes["auto_pad"] = str(rng.choice(["NOTSET", "SAME_UPPER", "SAME_LOWER"]))
    x = rng.integers(-3, 4, (2, channels, *spatial)).astype(np.float32)
    w = rng.integers(-3, 4, (channels, outputs, *window)).astype(np.float32)
    bias = [rng.integers(-3, 4, outputs * group).astype(np.float32)] if seed % 2 else []
    same("ConvTranspose", [x, w, *bias], attributes)


@pytest.mark.parametrize("seed", SEEDS)
def test_col_to_image(seed: int) -> None:
    rng = np.random.default_rng(600 + seed)
    count = int(rng.integers(1, 4))
    block, strides, dilations = ([int(k) for k in rng.integers(1, 4, count)] for _ in range(3))
    pads = [int(rng.integers(0, 2)) for _ in range(2 * count)]
    reach = [(k - 1) * d + 1 for k, d in zip(block, dilations, strict=True)]
    image = [max(1, int(r + rng.integers(0, 4)) - pads[i] - pads[i + count]) for i, r in enumerate(reach)]
    counts = [(s + pads[i] + pads[i + count] - reach[i]) // strides[i] + 1 for i, s in enumerate(image)]
    if min(counts) < 1:
        pytest.skip("no block fits")
    x = rng.integers(-5, 6, (2, 2 * int(np.prod(block)), int(np.prod(counts)))).astype(np.float32)
    inputs = [x, np.array(image), np.array(block)]
    model = model_of("Col2Im", inputs, {"strides": strides, "dilations": dilations, "pads": pads}, opset=18)
    oracle = by_reference if count == 3 else by_runtime  # ONNX Runtime 1.31 gives another image than the reference for three dims
    assert_close(ours(model, inputs), oracle(model, inputs))


@pytest.mark.parametrize("seed", SEEDS)
def test_max_unpool_undoes_max_pool(seed: int) -> None:
    rng = np.random.default_rng(700 + seed)
    window, strides = ([int(k) for k in rng.integers(1, 4, 2)] for _ in range(2))
    x = rng.permutation(np.arange(2 * 49)).reshape(1, 2, 7, 7).astype(np.float32)
    attributes = {"kernel_shape": window, "strides": strides}
    pooled, places = by_runtime(model_of("MaxPool", [x], attributes, outputs=2, opset=12), [x])
    size = [(d - 1) * s + k for d, s, k in zip(pooled.shape[2:], strides, window, strict=True)]
    places = np.ravel_multi_index(  # the positions in the image that MaxUnpool makes, which may be smaller
        tuple(part for part in np.unravel_index(places, (2, 7, 7))), (2, *size), mode="clip"
    )
    same("MaxUnpool", [pooled, places], attributes, opset=11)


# ---------------------------------------------------------------- symbolic batches, empty tensors


WINDOWED: list[tuple[str, list[Any], dict[str, Any]]] = [
    ("MaxPool", [(2, 3, 6, 6)], {"kernel_shape": (2, 3), "strides": (2, 1), "pads": (0, 1, 1, 0)}),
    ("AveragePool", [(2, 3, 6, 6)], {"kernel_shape": (2, 3), "pads": (1, 1, 1, 1), "count_include_pad": 1}),
    ("AveragePool", [(2, 3, 6, 6)], {"kernel_shape": (2, 3), "pads": (1, 1, 1, 1)}),
    ("LpPool", [(2, 3, 6, 6)], {"kernel_shape": (2, 3)}),
    ("GlobalMaxPool", [(2, 3, 6, 6)], {}),
    ("GlobalLpPool", [(2, 3, 6, 6)], {}),
    ("Conv", [(2, 3, 6, 6), (4, 3, 2, 2)], {"strides": (2, 2)}),
    ("ConvTranspose", [(2, 4, 5, 5), (4, 3, 2, 2)], {"strides": (2, 3)}),
]


@pytest.mark.parametrize(("op", "shapes", "attributes"), WINDOWED, ids=lambda value: value if isinstance(value, str) else "")
def test_symbolic_batch_and_image(op: str, shapes: list[Any], attributes: dict[str, Any]) -> None:
    rng = np.random.default_rng(5)
    inputs = [rng.normal(size=shape).astype(np.float32) for shape in shapes]
    found = symbolic(op, inputs, attributes, {0: {0: "B", 2: "H", 3: "W"}}, since=21)
    assert_close(found, expected(op, inputs, attributes, opset=21)[1])


@pytest.mark.parametrize(("op", "shapes", "attributes"), WINDOWED, ids=lambda value: value if isinstance(value, str) else "")
def test_no_images(op: str, shapes: list[Any], attributes: dict[str, Any]) -> None:
    inputs = [np.zeros((0, *shapes[0][1:]), np.float32), *(np.ones(shape, np.float32) for shape in shapes[1:])]
    full = [np.zeros(shapes[0], np.float32), *inputs[1:]]
    wanted = expected(op, full, attributes, opset=21)[1][0]
    assert ours(model_of(op, inputs, attributes, opset=21), inputs)[0].shape == (0, *wanted.shape[1:])
