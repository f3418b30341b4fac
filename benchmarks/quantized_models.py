"""Models that `onnxruntime.quantization` quantized: nodes of ours, nodes of ONNX Runtime's own optimizer, and times of both.

    python -m benchmarks.quantized_models [--turns 40] [NAME ..]

Small networks are made here with weights from a seed, then quantized per tensor and per channel, in u8 and s8. Models that
`benchmarks.models` built and that hold quantized nodes are taken, too. Nodes: of the model, of what `coset optimize` writes, and of
what ONNX Runtime saves at level basic, of the model and of ours. Times: of a session at level all on one thread, processor seconds,
the model and ours in turn.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime import quantization

import coset
from benchmarks import feeds as inputs
from benchmarks import models

OPSET = 17


class Net:
    """A network that is written node by node, with weights from a seed."""

    def __init__(self, seed: int) -> None:
        self.draw = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def array(self, values: np.ndarray[Any, Any]) -> str:
        """The name of a new constant."""
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(values, name))
        return name

    def weight(self, *shape: int) -> str:
        """The name of a new weight."""
        fan = int(np.prod(shape[1:])) if len(shape) > 1 else 1
        return self.array((self.draw.standard_normal(shape) / np.sqrt(fan)).astype(np.float32))

    def integers(self, *numbers: int) -> str:
        """The name of a new vector of integers."""
        return self.array(np.array(numbers, np.int64))

    def scalar(self, number: float, dtype: Any = np.float32) -> str:
        """The name of a new number."""
        return self.array(np.array(number, dtype))

    def node(self, op: str, *operands: str, **attributes: Any) -> str:
        """The name of the result of a new node."""
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, [*operands], [name], **attributes))
        return name

    def conv(self, x: str, inner: int, outer: int, size: int = 3, **attributes: Any) -> str:
        """A convolution that keeps the picture's size."""
        return self.node("Conv", x, self.weight(outer, inner, size, size), self.weight(outer), pads=[size // 2] * 4, **attributes)

    def model(self, result: str, given: list[int], made: list[int]) -> onnx.ModelProto:
        """The model from `x` to `result`."""
        values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", given), (result, made))]
        graph = helper.make_graph(self.nodes, "net", values[:1], values[1:], self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)


def cnn() -> onnx.ModelProto:
    """Convolutions with Relu and pools, a residual sum, a dense layer."""
    net = Net(1)
    x = net.node("Relu", net.conv("x", 3, 16))
    x = net.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    for _ in range(3):
        y = net.node("Relu", net.conv(x, 16, 16))
        x = net.node("Relu", net.node("Add", net.conv(y, 16, 16), x))
    x = net.node("Flatten", net.node("GlobalAveragePool", x))
    return net.model(net.node("Gemm", x, net.weight(16, 10), net.weight(10)), [1, 3, 32, 32], [1, 10])


def shuffled() -> onnx.ModelProto:
    """Groups of channels that are shuffled, parts that are cut and joined, features last, a clip at 6."""
    net = Net(2)
    x = net.node("Clip", net.conv("x", 3, 16), net.scalar(0.0), net.scalar(6.0))
    for _ in range(3):
        x = net.node("Reshape", x, net.integers(1, 4, 4, 32, 32))
        x = net.node("Reshape", net.node("Transpose", x, perm=[0, 2, 1, 3, 4]), net.integers(1, 16, 32, 32))
        left = net.node("Slice", x, net.integers(0), net.integers(8), net.integers(1))
        right = net.node("Slice", x, net.integers(8), net.integers(16), net.integers(1))
        right = net.node("Relu", net.conv(right, 8, 8))
        x = net.node("Concat", left, right, axis=1)
    x = net.node("Reshape", net.node("Transpose", x, perm=[0, 2, 3, 1]), net.integers(1, 1024, 16))
    return net.model(net.node("MatMul", x, net.weight(16, 8)), [1, 3, 32, 32], [1, 1024, 8])


def mlp() -> onnx.ModelProto:
    """Dense layers with Relu."""
    net = Net(3)
    x = "x"
    for inner, outer in ((64, 256), (256, 256), (256, 256)):
        x = net.node("Relu", net.node("Gemm", x, net.weight(inner, outer), net.weight(outer)))
    return net.model(net.node("Gemm", x, net.weight(256, 16), net.weight(16)), [8, 64], [8, 16])


def chain() -> onnx.ModelProto:
    """Movement, pools, pads and rectifiers, each between a pair of one scale: 127 nodes of which most cancel."""
    net = Net(4)
    scale, zero = net.scalar(0.05), net.scalar(0, np.uint8)
    pair: Callable[[str], str] = lambda x: net.node("DequantizeLinear", net.node("QuantizeLinear", x, scale, zero), scale, zero)  # noqa: E731
    x = pair(net.conv("x", 3, 16))
    for _ in range(6):
        x = pair(net.node("Transpose", x, perm=[0, 2, 3, 1]))
        x = pair(net.node("Reshape", x, net.integers(1, 16, 16, 4, 4)))
        x = pair(net.node("Relu", pair(net.node("Transpose", x, perm=[0, 3, 4, 1, 2]))))
        x = pair(net.node("Clip", pair(net.node("Reshape", x, net.integers(1, 16, 16, 16))), net.scalar(0.0), net.scalar(50.0)))
        x = pair(net.node("MaxPool", x, kernel_shape=[3, 3], pads=[1, 1, 1, 1]))
    return net.model(net.conv(x, 16, 8), [1, 3, 16, 16], [1, 8, 16, 16])


# ---------------------------------------------------------------- quantizing

WAYS = {"tensor-u8": (False, "QUInt8", "QUInt8"), "channel-u8s8": (True, "QUInt8", "QInt8"), "channel-s8": (True, "QInt8", "QInt8")}


class _Calibration(quantization.CalibrationDataReader):  # type: ignore[misc]
    def __init__(self, shape: list[int]) -> None:
        draw = np.random.default_rng(0)
        self.left = iter([{"x": draw.standard_normal(shape).astype(np.float32)} for _ in range(4)])

    def get_next(self) -> Any:
        return next(self.left, None)


def quantized(model: onnx.ModelProto, way: str, folder: Path) -> onnx.ModelProto:
    """`model` with QuantizeLinear and DequantizeLinear around its ops, as `quantize_static` writes it."""
    channels, activations, weights = WAYS[way]
    shape = [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim]
    source, result = folder / "float.onnx", folder / "quantized.onnx"
    kinds = [quantization.QuantType[each] for each in (activations, weights)]
    onnx.save(model, source)
    quantization.quantize_static(
        source, result, _Calibration(shape), quant_format=quantization.QuantFormat.QDQ, per_channel=channels,
        activation_type=kinds[0], weight_type=kinds[1],
    )  # fmt: skip
    return onnx.load(result)


def every(folder: Path) -> Iterator[tuple[str, onnx.ModelProto]]:
    """The models by name."""
    yield "chain", chain()
    for make in (cnn, shuffled, mlp):
        for way in WAYS:
            yield f"{make.__name__}-{way}", quantized(make(), way, folder)
    for path in sorted(models.cache().glob("*_qdq.onnx")):
        yield path.stem, onnx.load(path)


# ---------------------------------------------------------------- counting and timing


def session(model: bytes, level: str, written: Path | None = None) -> onnxruntime.InferenceSession:
    """A session of one thread at a level, which may save what it makes of the model."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, f"ORT_{level}")
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    if written is not None:
        options.optimized_model_filepath = str(written)
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def saved(model: bytes, level: str, folder: Path) -> onnx.ModelProto:
    """What the runtime makes of a model at a level."""
    session(model, level, folder / "saved.onnx")
    return onnx.load(folder / "saved.onnx")


def kernels(model: bytes, folder: Path) -> Counter[str]:
    """How many kernels of integers the runtime makes of a model, by name, and of how many other nodes."""
    found: Counter[str] = Counter()
    for node in saved(model, "ENABLE_EXTENDED", folder).graph.node:
        found[node.op_type if node.op_type.startswith(("QLinear", "QGemm", "MatMulInteger")) else "others"] += 1
    return found


def seconds(first: onnxruntime.InferenceSession, second: onnxruntime.InferenceSession, given: Any, turns: int) -> tuple[float, float]:
    """The median processor seconds of a run of each, in turn."""
    taken: tuple[list[float], list[float]] = ([], [])
    for _ in range(3):
        first.run(None, given), second.run(None, given)
    for _ in range(turns):
        for each, times in ((first, taken[0]), (second, taken[1])):
            start = time.process_time()
            for _ in range(5):
                each.run(None, given)
            times.append((time.process_time() - start) / 5)
    return statistics.median(taken[0]), statistics.median(taken[1])


def row(name: str, model: onnx.ModelProto, folder: Path, turns: int) -> str:
    """The line of a model in the table, and the kernels of both below it."""
    coset.optimize(model).save(folder / "ours.onnx")
    ours = (folder / "ours.onnx").read_bytes()
    given = inputs.make(model, name.partition("_int8")[0], 0)
    theirs = model.SerializeToString()
    before, after = seconds(session(theirs, "ENABLE_ALL"), session(ours, "ENABLE_ALL"), given, turns)
    counts = [
        len(each.graph.node) for each in (model, onnx.load_from_string(ours), *(saved(m, "ENABLE_BASIC", folder) for m in (theirs, ours)))
    ]
    line = (
        f"{name:28} {counts[0]:6} {counts[1]:6} {counts[2]:6} {counts[3]:6} {before * 1e3:10.3f} {after * 1e3:10.3f} {after / before:6.2f}"
    )
    found = [" ".join(f"{op}:{count}" for op, count in sorted(kernels(each, folder).items())) for each in (theirs, ours)]
    return "\n    ".join([line, *found])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="models; default: all")
    parser.add_argument("--turns", type=int, default=40)
    parser.add_argument("--save", type=Path, help="write the models into this folder and end")
    asked = parser.parse_args()
    print(f"{'model':28} {'nodes':>6} {'ours':>6} {'basic':>6} {'both':>6} {'ms':>10} {'ours ms':>10} {'ratio':>6}")
    with tempfile.TemporaryDirectory() as folder:
        for name, model in every(Path(folder)):
            if asked.save is not None:
                onnx.save(model, asked.save / f"{name}.onnx")
            elif not asked.names or name in asked.names:
                print(row(name, model, Path(folder), asked.turns), flush=True)


if __name__ == "__main__":
    main()
