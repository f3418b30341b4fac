"""What exporters leave behind: scales, normalizations and layout changes that nobody needs."""

from __future__ import annotations

import numpy as np
import onnx

from benchmarks.graphs import Writer
from benchmarks.workload import matrix, workload


@workload
def scaled_convolutions() -> tuple[onnx.ModelProto, dict[str, onnx.ModelProto]]:
    """Convolution, learned scale and shift, BatchNormalization, ReLU, eight times at 32 channels, 56 x 56; weights scaled by constants."""
    return _scaled_convolutions(raw=True), {"folded": _scaled_convolutions(raw=False)}


def _scaled_convolutions(*, raw: bool, channels: int = 32, size: int = 56) -> onnx.ModelProto:
    w = Writer()
    x = w.input("x", 1, channels, size, size)
    for layer in range(8):
        rng = np.random.default_rng(layer)
        weight = rng.standard_normal((channels, channels, 3, 3)) / np.sqrt(9 * channels)
        scale, shift, gain, offset = (rng.uniform(0.5, 1.5, (channels, 1, 1)) for _ in range(4))
        mean, variance = rng.standard_normal(channels) * 0.1, rng.uniform(0.5, 1.5, channels)
        factor = gain[:, 0, 0] / np.sqrt(variance + 1e-5)
        if raw:
            halved = w.op("Mul", w.constant(weight / 0.125), w.op("CastLike", w.constant(0.125), x))
            y = w.op("Conv", x, halved, pads=[1, 1, 1, 1])
            y = w.op("Add", w.op("Mul", w.constant(scale), y), w.constant(shift))
            parameters = [w.constant(value.reshape(-1)) for value in (gain, offset, mean, variance)]
            x = w.op("Relu", w.op("BatchNormalization", y, *parameters, epsilon=1e-5))
        else:
            bias = (shift[:, 0, 0] - mean) * factor + offset[:, 0, 0]
            folded = weight * (scale[:, 0, 0] * factor)[:, None, None, None]
            x = w.op("Relu", w.op("Conv", x, w.constant(folded), w.constant(bias), pads=[1, 1, 1, 1]))
    return w.model(x)


@workload
def scale_chain() -> tuple[onnx.ModelProto, dict[str, onnx.ModelProto]]:
    """Products with scalar factors before and after, each a CastLike of a constant: six layers of width 256, 128 rows."""
    return _scale_chain(raw=True), {"scales in weights": _scale_chain(raw=False)}


def _scale_chain(*, raw: bool, width: int = 256) -> onnx.ModelProto:
    w = Writer()
    x = w.input("x", 128, width)
    for layer in range(6):
        weight = matrix(layer, width, width)
        if raw:
            scaled = w.op("Mul", x, w.op("CastLike", w.constant(0.5), x))
            product = w.op("Mul", w.matmul(scaled, w.constant(weight)), w.op("CastLike", w.constant(3.0), x))
            x = w.op("Tanh", w.op("Div", product, w.op("CastLike", w.constant(1.5), x)))
        else:
            x = w.op("Tanh", w.matmul(x, w.constant(weight)))
    return w.model(x)


@workload
def layout_ping_pong() -> tuple[onnx.ModelProto, dict[str, onnx.ModelProto]]:
    """Convolutions in NCHW between elementwise steps in NHWC, as a TensorFlow exporter writes them: six, 32 channels, 56 x 56."""
    return _layout(turned=True), {"one layout": _layout(turned=False)}


def _layout(*, turned: bool, channels: int = 32, size: int = 56) -> onnx.ModelProto:
    w = Writer()
    x = w.input("x", 1, size, size, channels)
    x = x if turned else w.transpose(x, 0, 3, 1, 2)
    for layer in range(6):
        rng = np.random.default_rng(layer)
        weight = w.constant(rng.standard_normal((channels, channels, 3, 3)) / np.sqrt(9 * channels))
        bias = rng.standard_normal(channels) * 0.1
        if turned:
            y = w.transpose(w.op("Conv", w.transpose(x, 0, 3, 1, 2), weight, pads=[1, 1, 1, 1]), 0, 2, 3, 1)
            y = w.op("Add", y, w.constant(bias))
            x = w.op("Add", x, w.op("Mul", y, w.op("Sigmoid", y)))
        else:
            y = w.op("Conv", x, weight, w.constant(bias), pads=[1, 1, 1, 1])
            x = w.op("Add", x, w.op("Mul", y, w.op("Sigmoid", y)))
    return w.model(x if turned else w.transpose(x, 0, 2, 3, 1))


@workload
def transposed_products() -> tuple[onnx.ModelProto, dict[str, onnx.ModelProto]]:
    """(B^T A^T)^T with elementwise steps between, six times, in columns instead of rows: width 512, 64 columns."""
    return _transposed(turned=True), {"rows": _transposed(turned=False)}


def _transposed(*, turned: bool, width: int = 512) -> onnx.ModelProto:
    w = Writer()
    x = w.input("x", 64, width)
    for layer in range(6):
        weight = matrix(layer, width, width)
        if turned:
            columns = w.matmul(w.transpose(w.constant(weight), 1, 0), w.transpose(x, 1, 0))
            x = w.transpose(w.op("Softplus", columns), 1, 0)
        else:
            x = w.op("Softplus", w.matmul(x, w.constant(weight)))
    return w.model(x)


@workload
def separate_normalizations() -> tuple[onnx.ModelProto, dict[str, onnx.ModelProto]]:
    """A LayerNormalization's gain and offset left as Mul and Add before a linear layer that can hold them: width 512, 128 rows, four."""
    return _normalizations(apart=True), {"gain and offset in weights": _normalizations(apart=False)}


def _normalizations(*, apart: bool, width: int = 512) -> onnx.ModelProto:
    w = Writer()
    x = w.input("x", 1, 128, width)
    for layer in range(4):
        rng = np.random.default_rng(layer)
        weight, bias = matrix(layer, width, width), rng.standard_normal(width) * 0.1
        gain, offset = rng.uniform(0.5, 1.5, width), rng.standard_normal(width) * 0.1
        normal = w.layer_norm(x, width)
        if apart:
            shifted = w.op("Add", w.op("Mul", normal, w.constant(gain)), w.constant(offset))
            y = w.op("Add", w.matmul(shifted, w.constant(weight)), w.constant(bias))
        else:
            y = w.op("Add", w.matmul(normal, w.constant(gain[:, None] * weight)), w.constant(bias + offset @ weight))
        x = w.op("Add", x, y)
    return w.model(x)
