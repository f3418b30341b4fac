"""Networks of any depth as ONNX models, small in width: what a deep program costs to optimize does not depend on its weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WIDTH, HEADS, TOKENS, IMAGE = 64, 4, 16, 8
QUERY_HEADS, KEY_HEADS, HEAD = 16, 4, 4  # where they are written out one by one
OPSET = 18


class Builder:
    """An ONNX graph in the making: nodes in order, seeded weights."""

    def __init__(self, seed: int = 0) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.tensors: list[onnx.TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self._random = np.random.default_rng(seed)
        self._named: dict[bytes, str] = {}

    def input(self, name: str, *shape: int, dtype: int = TensorProto.FLOAT) -> str:
        """An input, of floats unless said otherwise."""
        self.inputs.append(helper.make_tensor_value_info(name, dtype, shape))
        return name

    def node(self, op: str, *operands: str, **attributes: object) -> str:
        """The result of a node."""
        return self.results(op, *operands, count=1, **attributes)[0]

    def results(self, op: str, *operands: str, count: int, **attributes: object) -> list[str]:
        """The results of a node that has several."""
        names = [f"v{len(self.nodes)}" + (f"_{place}" if place else "") for place in range(count)]
        self.nodes.append(helper.make_node(op, list(operands), names, **attributes))
        return names

    def weight(self, *shape: int, share: float = 1.0) -> str:
        """A fresh weight; a small `share` keeps what is added to a residual from making a deep network chaotic."""
        scale = np.prod(shape[1:]) ** -0.5 if len(shape) > 1 else 1.0
        return self._tensor((self._random.standard_normal(shape) * scale * share).astype(np.float32))

    def positive(self, *shape: int) -> str:
        """A fresh weight above zero: a variance."""
        return self._tensor((1 + self._random.random(shape)).astype(np.float32))

    def number(self, value: object, dtype: type = np.float32) -> str:
        """A constant, shared by all that use it."""
        array = np.asarray(value, dtype)
        key = array.tobytes() + str((array.shape, array.dtype)).encode()
        if key not in self._named:
            self._named[key] = self._tensor(array)
        return self._named[key]

    def _tensor(self, array: np.ndarray) -> str:
        name = f"w{len(self.tensors)}"
        self.tensors.append(numpy_helper.from_array(array, name))
        return name

    def linear(self, x: str, rows: int, columns: int, *, bias: bool = True) -> str:
        """x W + b."""
        product = self.node("MatMul", x, self.weight(rows, columns, share=(columns / rows) ** 0.5))  # by what a column sums up
        return self.node("Add", product, self.weight(columns)) if bias else product

    def model(self, output: str, shape: Sequence[int]) -> onnx.ModelProto:
        """The finished model."""
        proto = self._proto(output, shape)
        onnx.checker.check_model(proto)
        return proto

    def _proto(self, output: str, shape: Sequence[int]) -> onnx.ModelProto:
        outputs = [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)]
        graph = helper.make_graph(self.nodes, "stack", self.inputs, outputs, self.tensors)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)


def _heads(b: Builder, x: str) -> str:
    split = b.node("Reshape", x, b.number([1, TOKENS, HEADS, WIDTH // HEADS], np.int64))
    return b.node("Transpose", split, perm=[0, 2, 1, 3])


def _attention(b: Builder, q: str, k: str, v: str, mask: str | None, *, bias: bool) -> str:
    scores = b.node("MatMul", q, b.node("Transpose", k, perm=[0, 1, 3, 2]))
    scores = b.node("Div", scores, b.number((WIDTH // HEADS) ** 0.5))
    if mask is not None:
        scores = b.node("Add", scores, mask)
    mixed = b.node("Transpose", b.node("MatMul", b.node("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
    return b.linear(b.node("Reshape", mixed, b.number([1, TOKENS, WIDTH], np.int64)), WIDTH, WIDTH, bias=bias)


def _layer_norm(b: Builder, x: str) -> str:
    return b.node("LayerNormalization", x, b.weight(WIDTH), b.weight(WIDTH), axis=-1, epsilon=1e-5)


def _gelu_mlp(b: Builder, x: str) -> str:
    hidden = b.linear(x, WIDTH, 4 * WIDTH)
    inner = b.node("Add", b.node("Erf", b.node("Div", hidden, b.number(2**0.5))), b.number(1))
    gelu = b.node("Mul", b.node("Mul", hidden, inner), b.number(0.5))
    return b.linear(gelu, 4 * WIDTH, WIDTH)


def bert(layers: int) -> onnx.ModelProto:
    """Normalization last, an additive mask made once from a mask of ones and zeros."""
    b = Builder()
    x = _layer_norm(b, b.input("x", 1, TOKENS, WIDTH))
    mask = b.node("Reshape", b.input("mask", 1, TOKENS), b.number([1, 1, 1, TOKENS], np.int64))
    mask = b.node("Mul", b.node("Sub", b.number(1), mask), b.number(-10000))
    for _ in range(layers):
        q, k, v = (_heads(b, b.linear(x, WIDTH, WIDTH)) for _ in range(3))
        x = _layer_norm(b, b.node("Add", _attention(b, q, k, v, mask, bias=True), x))
        x = _layer_norm(b, b.node("Add", _gelu_mlp(b, x), x))
    return b.model(b.linear(x, WIDTH, 8), (1, TOKENS, 8))


def vit(layers: int) -> onnx.ModelProto:
    """Normalization first, no mask."""
    b = Builder()
    x = b.node("Add", b.input("x", 1, TOKENS, WIDTH), b.weight(1, TOKENS, WIDTH))
    for _ in range(layers):
        y = _layer_norm(b, x)
        x = b.node("Add", x, _attention(b, *(_heads(b, b.linear(y, WIDTH, WIDTH)) for _ in range(3)), None, bias=True))
        x = b.node("Add", x, _gelu_mlp(b, _layer_norm(b, x)))
    return b.model(b.linear(_layer_norm(b, x), WIDTH, 8), (1, TOKENS, 8))


def _rms_norm(b: Builder, x: str) -> str:
    mean = b.node("ReduceMean", b.node("Mul", x, x), b.number([-1], np.int64), keepdims=1)
    root = b.node("Sqrt", b.node("Add", mean, b.number(1e-6)))
    return b.node("Mul", b.node("Mul", x, b.node("Reciprocal", root)), b.weight(WIDTH))


def _rotated(b: Builder, x: str, cosine: str, sine: str) -> str:
    half = WIDTH // HEADS // 2
    axes, large = b.number([3], np.int64), b.number([1 << 40], np.int64)
    low = b.node("Slice", x, b.number([0], np.int64), b.number([half], np.int64), axes)
    high = b.node("Slice", x, b.number([half], np.int64), large, axes)
    turned = b.node("Concat", b.node("Neg", high), low, axis=-1)
    return b.node("Add", b.node("Mul", x, cosine), b.node("Mul", turned, sine))


def llama(layers: int) -> onnx.ModelProto:
    """Root-mean-square normalization, rotary positions from tables made once, a gated perceptron, a mask as an input."""
    b = Builder()
    x, mask = b.input("x", 1, TOKENS, WIDTH), b.input("mask", 1, 1, TOKENS, TOKENS)
    angles = b.node("Mul", b.input("positions", 1, 1, TOKENS, 1), b.weight(1, 1, 1, WIDTH // HEADS))
    cosine, sine = b.node("Cos", angles), b.node("Sin", angles)
    for _ in range(layers):
        y = _rms_norm(b, x)
        q, k, v = (_heads(b, b.linear(y, WIDTH, WIDTH, bias=False)) for _ in range(3))
        q, k = _rotated(b, q, cosine, sine), _rotated(b, k, cosine, sine)
        x = b.node("Add", x, _attention(b, q, k, v, mask, bias=False))
        y = _rms_norm(b, x)
        gate = b.linear(y, WIDTH, 2 * WIDTH, bias=False)
        gated = b.node("Mul", b.node("Mul", gate, b.node("Sigmoid", gate)), b.linear(y, WIDTH, 2 * WIDTH, bias=False))
        x = b.node("Add", x, b.linear(gated, 2 * WIDTH, WIDTH, bias=False))
    return b.model(b.linear(_rms_norm(b, x), WIDTH, 8), (1, TOKENS, 8))


def llama_by_heads(layers: int) -> onnx.ModelProto:
    """The same with grouped queries, every head and every softmax written out: some 340 nodes a layer."""
    b = Builder()
    x, mask = b.input("x", TOKENS, WIDTH), b.input("mask", TOKENS, TOKENS)
    angles = b.node("Mul", b.input("positions", TOKENS, 1), b.weight(1, HEAD))
    cosine, sine = b.node("Cos", angles), b.node("Sin", angles)
    axis = b.number([-1], np.int64)

    def rotated(x: str) -> str:
        cuts = [b.number([place], np.int64) for place in (0, HEAD // 2, HEAD)]
        low, high = (b.node("Slice", x, start, stop, axis) for start, stop in pairwise(cuts))
        turned = b.node("Concat", b.node("Neg", high), low, axis=-1)
        return b.node("Add", b.node("Mul", x, cosine), b.node("Mul", turned, sine))

    def attended(q: str, k: str, v: str) -> str:
        scores = b.node("Add", b.node("Mul", b.node("MatMul", q, k), b.number(HEAD**-0.5)), mask)
        e = b.node("Exp", b.node("Sub", scores, b.node("ReduceMax", scores, axis, keepdims=1)))
        return b.node("MatMul", b.node("Div", e, b.node("ReduceSum", e, axis, keepdims=1)), v)

    for _ in range(layers):
        y = _rms_norm(b, x)
        parts = []
        for _ in range(KEY_HEADS):
            k = b.node("Transpose", rotated(b.linear(y, WIDTH, HEAD, bias=False)), perm=[1, 0])
            v = b.linear(y, WIDTH, HEAD, bias=False)
            parts += [attended(rotated(b.linear(y, WIDTH, HEAD, bias=False)), k, v) for _ in range(QUERY_HEADS // KEY_HEADS)]
        x = b.node("Add", x, b.node("MatMul", b.node("Concat", *parts, axis=-1), b.weight(WIDTH, WIDTH, share=0.5)))
        y = _rms_norm(b, x)
        gate = b.linear(y, WIDTH, 2 * WIDTH, bias=False)
        gated = b.node("Mul", b.node("Mul", gate, b.node("Sigmoid", gate)), b.linear(y, WIDTH, 2 * WIDTH, bias=False))
        x = b.node("Add", x, b.node("MatMul", gated, b.weight(2 * WIDTH, WIDTH, share=0.4)))
    return b.model(b.linear(_rms_norm(b, x), WIDTH, 8), (TOKENS, 8))


def _convolution(b: Builder, x: str, inputs: int, outputs: int, size: int, stride: int = 1) -> str:
    pad = size // 2
    made = b.node("Conv", x, b.weight(outputs, inputs, size, size), pads=[pad] * 4, strides=[stride] * 2, kernel_shape=[size] * 2)
    return b.node("BatchNormalization", made, b.weight(outputs), b.weight(outputs), b.weight(outputs), b.positive(outputs))


def resnet(layers: int) -> onnx.ModelProto:
    """Bottleneck blocks with batch normalization in two stages of different width."""
    b = Builder()
    x = b.node("Relu", _convolution(b, b.input("x", 1, 3, 2 * IMAGE, 2 * IMAGE), 3, 32, 3))
    width = 32
    for number in range(layers):
        wide = 32 if number < layers // 2 else 64
        stride = 1 if wide == width else 2
        y = b.node("Relu", _convolution(b, x, width, wide // 4, 1))
        y = b.node("Relu", _convolution(b, y, wide // 4, wide // 4, 3, stride))
        y = _convolution(b, y, wide // 4, wide, 1)
        x = b.node("Relu", b.node("Add", y, x if stride == 1 else _convolution(b, x, width, wide, 1, stride)))
        width = wide
    pooled = b.node("Flatten", b.node("GlobalAveragePool", x))
    return b.model(b.linear(pooled, 64, 8), (1, 8))


STACKS: dict[str, Callable[[int], onnx.ModelProto]] = {
    "bert": bert, "vit": vit, "llama": llama, "llama_by_heads": llama_by_heads, "resnet": resnet,
}  # fmt: skip
