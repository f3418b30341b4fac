"""Small ONNX models of the kinds that people run: a function each, which gives the serialized model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

FLOAT, INT64 = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
Built = tuple["Graph", dict[str, list[Any]], dict[str, list[Any]]]


class Graph:
    """Nodes and weights as they are added; every method gives the name of a value."""

    def __init__(self, opset: int = 17) -> None:
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        self.opset = opset

    def op(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        """A node; its result's name, or their names."""
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, **attributes))
        return names[0] if outputs == 1 else names

    def constant(self, value: Any) -> str:
        """An initializer with this value."""
        self.weights.append(numpy_helper.from_array(np.asarray(value), f"c{len(self.weights)}"))
        return str(self.weights[-1].name)

    def weight(self, *shape: int, scale: float = 0.3) -> str:
        """An initializer with drawn values."""
        draw = np.random.default_rng(len(self.weights))
        return self.constant((draw.standard_normal(shape) * scale).astype(np.float32))

    def ints(self, *values: int) -> str:
        """An initializer of shape or index numbers."""
        return self.constant(np.array(values, np.int64))


def mlp() -> Built:
    g = Graph()
    hidden = g.op("Relu", g.op("Gemm", "x", g.weight(16, 32), g.weight(32)))
    return g, {"x": ["batch", 16]}, {g.op("Softmax", g.op("MatMul", hidden, g.weight(32, 8)), axis=-1): ["batch", 8]}


def _heads(g: Graph, x: str, length: int, heads: int, width: int) -> str:
    """[batch, length, heads * width] as [batch, heads, length, width]."""
    return str(g.op("Transpose", g.op("Reshape", x, g.ints(0, length, heads, width)), perm=[0, 2, 1, 3]))


def _attention(g: Graph, q: str, k: str, v: str, width: int, mask: str | None = None) -> str:
    scores = g.op("Mul", g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2])), g.constant(np.float32(width**-0.5)))
    scores = g.op("Add", scores, mask) if mask else scores
    return str(g.op("MatMul", g.op("Softmax", scores, axis=-1), v))


def transformer() -> Built:
    length, heads, width = 6, 2, 8
    model = heads * width
    g = Graph()
    y = g.op("LayerNormalization", "x", g.weight(model), g.weight(model), axis=-1, epsilon=1e-5)
    q, k, v = (_heads(g, g.op("Add", g.op("MatMul", y, g.weight(model, model)), g.weight(model)), length, heads, width) for _ in range(3))
    mixed = g.op("Reshape", g.op("Transpose", _attention(g, q, k, v, width), perm=[0, 2, 1, 3]), g.ints(0, length, model))
    x = g.op("Add", "x", g.op("MatMul", mixed, g.weight(model, model)))
    y = g.op("LayerNormalization", x, g.weight(model), g.weight(model), axis=-1, epsilon=1e-5)
    y = g.op("Add", g.op("MatMul", y, g.weight(model, 32)), g.weight(32))
    inner = g.op("Add", g.op("Erf", g.op("Div", y, g.constant(np.float32(2**0.5)))), g.constant(np.float32(1)))
    y = g.op("Mul", g.op("Mul", y, inner), g.constant(np.float32(0.5)))
    out = g.op("Add", x, g.op("Add", g.op("MatMul", y, g.weight(32, model)), g.weight(model)))
    return g, {"x": ["batch", length, model]}, {out: ["batch", length, model]}


def _rms_norm(g: Graph, x: str, width: int) -> str:
    mean = g.op("ReduceMean", g.op("Mul", x, x), axes=[-1], keepdims=1)
    scale = g.op("Sqrt", g.op("Add", mean, g.constant(np.float32(1e-5))))
    return str(g.op("Mul", g.op("Div", x, scale), g.weight(width)))


def _rotated(g: Graph, x: str, length: int, width: int) -> str:
    angles = np.outer(np.arange(length), 10000.0 ** (-np.arange(0, width, 2) / width))
    cosine, sine = (f(np.concatenate([angles, angles], -1)).astype(np.float32) for f in (np.cos, np.sin))
    low = g.op("Slice", x, g.ints(0), g.ints(width // 2), g.ints(3))
    high = g.op("Slice", x, g.ints(width // 2), g.ints(width), g.ints(3))
    turned = g.op("Concat", g.op("Neg", high), low, axis=-1)
    return str(g.op("Add", g.op("Mul", x, g.constant(cosine)), g.op("Mul", turned, g.constant(sine))))


def llama() -> Built:
    length, heads, width = 5, 2, 8
    model = heads * width
    g = Graph()
    y = _rms_norm(g, "x", model)
    q, k, v = (_heads(g, g.op("MatMul", y, g.weight(model, model)), length, heads, width) for _ in range(3))
    mask = g.constant(np.triu(np.full((length, length), -1e9, np.float32), 1))
    mixed = _attention(g, _rotated(g, q, length, width), _rotated(g, k, length, width), v, width, mask)
    mixed = g.op("Reshape", g.op("Transpose", mixed, perm=[0, 2, 1, 3]), g.ints(0, length, model))
    x = g.op("Add", "x", g.op("MatMul", mixed, g.weight(model, model)))
    y = _rms_norm(g, x, model)
    gate = g.op("MatMul", y, g.weight(model, 24))
    gated = g.op("Mul", g.op("Mul", gate, g.op("Sigmoid", gate)), g.op("MatMul", y, g.weight(model, 24)))
    out = g.op("Add", x, g.op("MatMul", gated, g.weight(24, model)))
    return g, {"x": ["batch", length, model]}, {out: ["batch", length, model]}


def _normalized(g: Graph, x: str, channels: int) -> str:
    variance = g.constant(np.linspace(0.5, 1.5, channels).astype(np.float32))
    return str(g.op("BatchNormalization", x, g.weight(channels), g.weight(channels), g.weight(channels), variance))


def bottleneck() -> Built:
    g = Graph()
    x = g.op("MaxPool", "x", kernel_shape=[3, 3], strides=[1, 1], pads=[1, 1, 1, 1])
    y = g.op("Relu", _normalized(g, g.op("Conv", x, g.weight(4, 8, 1, 1)), 4))
    y = g.op("Relu", _normalized(g, g.op("Conv", y, g.weight(4, 4, 3, 3), pads=[1, 1, 1, 1], strides=[2, 2]), 4))
    y = _normalized(g, g.op("Conv", y, g.weight(16, 4, 1, 1)), 16)
    shortcut = _normalized(g, g.op("Conv", x, g.weight(16, 8, 1, 1), strides=[2, 2]), 16)
    out = g.op("GlobalAveragePool", g.op("Relu", g.op("Add", y, shortcut)))
    return g, {"x": ["batch", 8, 9, 9]}, {out: ["batch", 16, 1, 1]}


def unet() -> Built:
    g = Graph()
    ones, zeros = g.constant(np.ones(4, np.float32)), g.constant(np.zeros(4, np.float32))
    groups = g.op("InstanceNormalization", g.op("Reshape", "x", g.ints(0, 4, -1)), ones, zeros, epsilon=1e-5)  # as torch exports it
    y = g.op("Reshape", groups, g.op("Shape", "x"))
    y = g.op("Add", g.op("Mul", y, g.weight(8, 1, 1)), g.weight(8, 1, 1))
    y = g.op("Mul", y, g.op("Sigmoid", y))
    down = g.op("Conv", y, g.weight(12, 8, 3, 3), g.weight(12), pads=[1, 1, 1, 1], strides=[2, 2])
    up = g.op("ConvTranspose", down, g.weight(12, 8, 2, 2), strides=[2, 2])
    both = g.op("Concat", up, "x", axis=1)
    out = g.op("Conv", both, g.weight(8, 16, 3, 3), pads=[1, 1, 1, 1])
    return g, {"x": ["batch", 8, 8, 8]}, {out: ["batch", 8, 8, 8]}


def dlrm() -> Built:
    g = Graph()
    bottom = g.op("Relu", g.op("Gemm", "dense", g.weight(13, 8), g.weight(8)))
    rows = [g.op("Unsqueeze", bottom, g.ints(1))]
    rows += [g.op("Unsqueeze", g.op("Gather", g.weight(20, 8), f"ids{i}", axis=0), g.ints(1)) for i in range(3)]
    features = g.op("Concat", *rows, axis=1)
    products = g.op("MatMul", features, g.op("Transpose", features, perm=[0, 2, 1]))
    flat = g.op("Reshape", products, g.ints(-1, 16))
    lower = [4 * i + j for i in range(4) for j in range(i)]
    top = g.op("Concat", bottom, g.op("Gather", flat, g.ints(*lower), axis=1), axis=1)
    out = g.op("Sigmoid", g.op("Gemm", top, g.weight(14, 1), g.weight(1)))
    return g, {"dense": ["batch", 13], **{f"ids{i}": ["batch"] for i in range(3)}}, {out: ["batch", 1]}


MODELS: dict[str, Callable[[], Built]] = {f.__name__: f for f in (mlp, transformer, llama, bottleneck, unet, dlrm)}


def saved(name: str, folder: Path) -> Path:
    """The model of that name as a file."""
    g, inputs, outputs = MODELS[name]()

    def ends(shapes: dict[str, list[Any]]) -> list[Any]:
        return [helper.make_tensor_value_info(one, INT64 if one.startswith("ids") else FLOAT, shape) for one, shape in shapes.items()]

    graph = helper.make_graph(g.nodes, name, ends(inputs), ends(outputs), g.weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", g.opset)]), folder / f"{name}.onnx")
    return folder / f"{name}.onnx"
