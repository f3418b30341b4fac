"""Measures how fast ONNX Runtime works on this machine: the numbers behind `targets/cpu-onnxruntime.toml`.

    python benchmarks/cpu_rates.py [--json] [--only matmul,conv] [--threads 2] [--seconds 0.15]

Every case is a chain of equal nodes in two lengths; the difference of the two least times over the difference of the
lengths is the time of one node, with neither the call nor the feeding of inputs in it. Nodes are measured without ORT's
graph optimizer, except where the case says `all` (convolutions, which want its blocked layout, and the fusions).
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

SHORT, LONG = 2, 8  # nodes of the two chains
OFF, ALL = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL, onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
Array = np.ndarray[Any, Any]
Step = Callable[[str, str, int], tuple[list[onnx.NodeProto], list[tuple[str, Array]]]]


@dataclass(frozen=True)
class Case:
    """One measured kernel: `step(input, output, index)` gives the nodes and constants of one link of the chain."""

    kind: str
    label: str
    input: tuple[int, ...]
    step: Step
    flops: float
    bytes: float
    dtype: str = "float32"
    level: Any = OFF


def model_of(case: Case, length: int) -> onnx.ModelProto:
    """A chain of `length` links."""
    nodes: list[onnx.NodeProto] = []
    constants: list[tuple[str, Array]] = []
    for index in range(length):
        made, values = case.step(f"x{index}", f"x{index + 1}", index)
        nodes += made
        constants += values
    element = helper.np_dtype_to_tensor_dtype(np.dtype(case.dtype))
    graph = helper.make_graph(
        nodes,
        "chain",
        [helper.make_tensor_value_info("x0", element, case.input)],
        [onnx.ValueInfoProto(name=f"x{length}")],
        [numpy_helper.from_array(value, name) for name, value in constants],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)], ir_version=8)
    return onnx.shape_inference.infer_shapes(model)


def session_of(case: Case, length: int, threads: int) -> Callable[[], None]:
    """A call that runs the chain once, input bound and output kept inside ORT."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.graph_optimization_level = case.level
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model_of(case, length).SerializeToString(), options, ["CPUExecutionProvider"])
    binding = session.io_binding()
    generator = np.random.default_rng(0)
    value = np.asarray(generator.uniform(0.5, 1.5, case.input)).astype(case.dtype)
    binding.bind_cpu_input("x0", value)
    binding.bind_output(f"x{length}")
    return lambda: session.run_with_iobinding(binding)


def node_seconds(case: Case, threads: int, seconds: float) -> float:
    """The least time of one link: blocks of the short and the long chain in turn, so that both see the same machine."""
    calls = [session_of(case, length, threads) for length in (SHORT, LONG)]
    best = [float("inf"), float("inf")]
    for call in calls:
        call()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or best[1] == float("inf"):
        for index, call in enumerate(calls):
            call()
            for _ in range(5):
                start = time.perf_counter()
                call()
                best[index] = min(best[index], time.perf_counter() - start)
    return max(best[1] - best[0], 1e-9) / (LONG - SHORT)


# ---------------------------------------------------------------- links


def plain(op: str, **attributes: Any) -> Step:
    """A link `y = op(x)`."""
    return lambda x, y, _: ([helper.make_node(op, [x], [y], **attributes)], [])


def with_constants(op: str, *values: Array, shared: bool = False, **attributes: Any) -> Step:
    """A link `y = op(x, values..)`, each link with constants of its own unless `shared`."""

    def step(x: str, y: str, index: int) -> tuple[list[onnx.NodeProto], list[tuple[str, Array]]]:
        tag = 0 if shared else index
        names = [f"c{tag}_{place}" for place in range(len(values))]
        own = [] if shared and index else list(zip(names, values, strict=True))
        return [helper.make_node(op, [x, *names], [y], **attributes)], own

    return step


def there_and_back(first: Step, second: Step) -> Step:
    """A link of two nodes: the second undoes the change of shape of the first."""

    def step(x: str, y: str, index: int) -> tuple[list[onnx.NodeProto], list[tuple[str, Array]]]:
        nodes, constants = first(x, f"{y}_mid", 2 * index)
        more, others = second(f"{y}_mid", y, 2 * index + 1)
        return nodes + more, constants + others

    return step


def followed(step: Step, *ops: tuple[str, Sequence[Array]]) -> Step:
    """A link whose result goes through further nodes (for ORT to fuse, or not)."""

    def chained(x: str, y: str, index: int) -> tuple[list[onnx.NodeProto], list[tuple[str, Array]]]:
        nodes, constants = step(x, f"{y}_0", index)
        for place, (op, values) in enumerate(ops):
            names = [f"f{index}_{place}_{i}" for i in range(len(values))]
            nodes.append(helper.make_node(op, [f"{y}_{place}", *names], [f"{y}_{place + 1}" if place + 1 < len(ops) else y]))
            constants += list(zip(names, values, strict=True))
        return nodes, constants

    return chained


def weights(*shape: int, dtype: str = "float32") -> Array:
    """Seeded values that keep a chain bounded."""
    fan = max(1, int(np.prod(shape[1:])) if len(shape) > 1 else shape[0])
    return (np.random.default_rng(sum(shape)).standard_normal(shape) / np.sqrt(fan)).astype(dtype)


# ---------------------------------------------------------------- cases


def elementwise_cases() -> Iterator[Case]:
    """Cheap ops over sizes (in and out of cache), costly ones at two sizes; launch from the tiniest."""
    for op in ("Add", "Mul"):
        for elements in (8, 1 << 10, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24):
            yield Case("elementwise", f"{op} f32[{elements}]", (elements,), with_constants(op, weights(elements), shared=True),
                       elements, 12 * elements)  # fmt: skip
    for elements in (8, 1 << 16, 1 << 20, 1 << 22):
        yield Case("elementwise", f"Add scalar f32[{elements}]", (elements,), with_constants("Add", np.float32(1)), elements, 8 * elements)
    for rows in (64, 512, 4096):
        yield Case("broadcast", f"Add row f32[{rows},768]", (rows, 768), with_constants("Add", weights(768)), rows * 768, rows * 768 * 8)
        yield Case("broadcast", f"Add column f32[{rows},768]", (rows, 768), with_constants("Add", weights(rows, 1)),
                   rows * 768, rows * 768 * 8)  # fmt: skip
    unary = ("Neg", "Relu", "Sqrt", "Reciprocal", "Exp", "Log", "Tanh", "Sigmoid", "Erf", "Sin", "Cos", "Floor", "Abs", "Softplus",
             "HardSigmoid", "LeakyRelu", "Elu", "HardSwish", "Not")  # fmt: skip
    for op in unary:
        for elements in (8, 1 << 14, 1 << 20):
            dtype = "bool" if op == "Not" else "float32"
            yield Case("unary", f"{op} {dtype}[{elements}]", (elements,), plain(op), elements, 8 * elements, dtype)
    for op, value in (("Div", 1.5), ("Pow", 2.0), ("Pow", 0.7), ("Max", 0.3), ("Min", 0.3), ("Mod", 3.0)):
        for elements in (1 << 14, 1 << 20):
            extra = {"fmod": 1} if op == "Mod" else {}
            yield Case("binary", f"{op} {value} f32[{elements}]", (elements,), with_constants(op, np.float32(value), **extra),
                       elements, 8 * elements)  # fmt: skip
    for dtype in ("float64", "int64", "int32"):
        yield Case("dtype", f"Add {dtype}[1048576]", (1 << 20,), with_constants("Add", np.ones(1 << 20, dtype), shared=True),
                   1 << 20, 3 * np.dtype(dtype).itemsize << 20, dtype)  # fmt: skip
    there = with_constants("Greater", np.float32(0))
    back = plain("Cast", to=TensorProto.FLOAT)
    for elements in (1 << 14, 1 << 20):
        yield Case("convert", f"Greater, Cast f32[{elements}]", (elements,), there_and_back(there, back), elements, 10 * elements)
        pair = there_and_back(plain("Cast", to=TensorProto.INT32), plain("Cast", to=TensorProto.FLOAT))
        yield Case("convert", f"Cast i32, Cast f32 [{elements}]", (elements,), pair, 2 * elements, 16 * elements)

        def where(x: str, y: str, index: int, elements: int = elements) -> tuple[list[onnx.NodeProto], list[tuple[str, Array]]]:
            values = [("p", np.arange(elements) % 3 == 0), ("z", np.zeros(elements, np.float32))]
            return [helper.make_node("Where", ["p", x, "z"], [y])], [] if index else values

        yield Case("select", f"Where f32[{elements}]", (elements,), where, elements, 13 * elements)


def movement_cases() -> Iterator[Case]:
    """Reshapes, transposes, copies."""
    for rows in (16, 1024):
        shape = (rows, 1024)
        flat, full = np.array([rows * 1024]), np.array(shape)
        pair = there_and_back(with_constants("Reshape", flat), with_constants("Reshape", full))
        yield Case("reshape", f"Reshape twice f32{list(shape)}", shape, pair, 0, 0)
    for n in (64, 256, 1024, 2048):
        yield Case("transpose", f"Transpose (1,0) f32[{n},{n}]", (n, n), plain("Transpose", perm=[1, 0]), 0, 8 * n * n)
    for tokens in (16, 128, 512):
        pair = there_and_back(plain("Transpose", perm=[0, 2, 1, 3]), plain("Transpose", perm=[0, 2, 1, 3]))
        yield Case("transpose", f"Transpose (0,2,1,3) twice f32[1,{tokens},12,64]", (1, tokens, 12, 64), pair, 0, 16 * tokens * 768)
    pair = there_and_back(plain("Transpose", perm=[0, 1, 3, 2]), plain("Transpose", perm=[0, 1, 3, 2]))
    yield Case("transpose", "Transpose (0,1,3,2) twice f32[1,12,128,64]", (1, 12, 128, 64), pair, 0, 16 * 128 * 768)
    pair = there_and_back(plain("Transpose", perm=[0, 2, 3, 1]), plain("Transpose", perm=[0, 3, 1, 2]))
    yield Case("transpose", "Transpose NHWC and back f32[1,64,56,56]", (1, 64, 56, 56), pair, 0, 16 * 64 * 56 * 56)
    for n in (1 << 14, 1 << 18, 1 << 22):
        half = n // 2
        cut = with_constants("Slice", np.array([0]), np.array([half]))

        def glue(x: str, y: str, _: int) -> tuple[list[onnx.NodeProto], list[tuple[str, Array]]]:
            return [helper.make_node("Concat", [x, x], [y], axis=0)], []

        yield Case("copy", f"Slice, Concat f32[{n}]", (n,), there_and_back(cut, glue), 0, 4 * (n + n // 2 + n))
        widen = there_and_back(with_constants("Slice", np.array([0]), np.array([1])), with_constants("Expand", np.array([n])))
        yield Case("copy", f"Slice, Expand scalar f32[{n}]", (n,), widen, 0, 4 * n)
    for rows in (64, 1024):
        cut = with_constants("Slice", np.array([0]), np.array([384]), np.array([1]))

        def glue_columns(x: str, y: str, _: int) -> tuple[list[onnx.NodeProto], list[tuple[str, Array]]]:
            return [helper.make_node("Concat", [x, x], [y], axis=1)], []

        yield Case(
            "copy", f"Slice, Concat columns f32[{rows},768]", (rows, 768), there_and_back(cut, glue_columns), 0, rows * 768 * 4 * 2.5
        )
        padding = there_and_back(
            with_constants("Pad", np.array([0, 2, 0, 2])), with_constants("Slice", np.array([2]), np.array([770]), np.array([1]))
        )
        yield Case("copy", f"Pad, Slice f32[{rows},768]", (rows, 768), padding, 0, rows * 768 * 16)
        reverse = with_constants("Slice", np.array([-1]), np.array([-10000]), np.array([1]), np.array([-1]))
        yield Case("copy", f"Slice reversed f32[{rows},768]", (rows, 768), reverse, 0, rows * 768 * 8)


def row_cases() -> Iterator[Case]:
    """Softmax, normalizations and reductions."""
    for rows, columns in ((16, 768), (128, 768), (1024, 768), (1536, 128)):
        size, shape = rows * columns, (rows, columns)
        yield Case("softmax", f"Softmax f32{list(shape)}", shape, plain("Softmax", axis=-1), 5 * size, 8 * size)
        normalize = with_constants("LayerNormalization", weights(columns), weights(columns), axis=-1)
        yield Case("normalize", f"LayerNormalization f32{list(shape)}", shape, normalize, 8 * size, 8 * size)
        for op in ("ReduceMean", "ReduceMax"):
            for axis in (1, 0):
                reduce = there_and_back(plain(op, axes=[axis], keepdims=1), with_constants("Expand", np.array(shape)))
                yield Case("reduce", f"{op} axis {axis}, Expand f32{list(shape)}", shape, reduce, size, 8 * size)
    for channels, side in ((64, 56), (512, 7)):
        size, shape = channels * side * side, (1, channels, side, side)
        normalize = with_constants("BatchNormalization", *(np.abs(weights(channels)) + np.float32(0.5) for _ in range(4)))
        yield Case("normalize", f"BatchNormalization f32{list(shape)}", shape, normalize, 2 * size, 8 * size)
        pool = plain("MaxPool", kernel_shape=[3, 3], pads=[1, 1, 1, 1])
        yield Case("pool", f"MaxPool 3x3 f32{list(shape)}", shape, pool, 9 * size, 8 * size)


def matmul_cases() -> Iterator[Case]:
    """Constant right sides (prepacked) over row counts and widths, float64, and batched products of two variables."""
    for k, n in ((64, 64), (256, 256), (512, 512), (768, 768), (768, 3072), (1024, 1024), (2048, 2048)):
        for m in (1, 2, 4, 8, 16, 64, 128, 512):
            if m * k * n > 1 << 30:
                continue
            pair = there_and_back(with_constants("MatMul", weights(k, n)), with_constants("MatMul", weights(n, k)))
            yield Case("matmul", f"MatMul twice {m}x{k}x{n}", (m, k), pair, 4.0 * m * k * n, 8.0 * (m * k + m * n + k * n))
    for n in (1, 4, 8, 24):
        pair = there_and_back(with_constants("MatMul", weights(512, n)), with_constants("MatMul", weights(n, 512)))
        yield Case("matmul", f"MatMul twice 256x512x{n}", (256, 512), pair, 4.0 * 256 * 512 * n, 8.0 * (256 * 512 + 768 * n))
    for dtype in ("int32", "int64"):
        yield Case("matmul int", f"MatMul {dtype} 128x128x128", (128, 128), with_constants("MatMul", np.ones((128, 128), dtype)),
                   2.0 * 128**3, 0, dtype)  # fmt: skip
    for n in (128, 512):
        yield Case("matmul f64", f"MatMul f64 {n}x{n}x{n}", (n, n), with_constants("MatMul", weights(n, n, dtype="float64")),
                   2.0 * n**3, 24.0 * n * n, "float64")  # fmt: skip
    for batch, n, k in ((12, 16, 64), (12, 128, 64), (12, 512, 64), (64, 64, 64)):
        keys, values = weights(batch, k, n), weights(batch, n, k)

        def attend(x: str, y: str, index: int, keys: Array = keys, values: Array = values) -> Any:
            nodes = [helper.make_node("Neg", ["keys"], [f"k{index}"]), helper.make_node("MatMul", [x, f"k{index}"], [f"s{index}"]),
                     helper.make_node("MatMul", [f"s{index}", "values"], [y])]  # fmt: skip
            return nodes, [] if index else [("keys", keys), ("values", values)]

        yield Case("matmul batched", f"MatMul twice and Neg {batch}x{n}x{k}x{n}", (batch, n, k), attend, 4.0 * batch * n * n * k,
                   4.0 * batch * (4 * n * k + 2 * n * n))  # fmt: skip


def convolution_cases() -> Iterator[Case]:
    """Dense 1x1 and 3x3, grouped and depthwise, with ORT's blocked layout."""
    shapes = [(64, 56, 1, 1), (256, 14, 1, 1), (512, 7, 1, 1), (64, 56, 3, 1), (128, 28, 3, 1), (256, 14, 3, 1), (512, 7, 3, 1),
              (16, 112, 3, 1), (128, 28, 3, 32), (512, 14, 3, 32), (96, 56, 3, 96), (384, 14, 3, 384), (960, 7, 3, 960),
              (8, 28, 3, 1), (12, 28, 3, 1), (200, 14, 1, 1), (88, 14, 5, 88), (40, 14, 3, 1), (60, 14, 3, 6),
              (64, 14, 5, 1), (32, 14, 1, 1)]  # fmt: skip
    for channels, side, kernel, groups in shapes:
        conv = conv_link(channels, kernel, groups)
        size = channels * side * side
        flops = 2.0 * size * kernel * kernel * channels / groups
        moved = 8.0 * size + 4.0 * channels * channels // groups * kernel * kernel
        name = "depthwise" if groups == channels else f"groups {groups}" if groups > 1 else "dense"
        for level, tag in ((ALL, "all"), (OFF, "off")):
            kind = "conv" if level is ALL else "conv unblocked"
            yield Case(kind, f"Conv {kernel}x{kernel} {name} {channels}x{side}x{side} {tag}", (1, channels, side, side), conv, flops, moved,
                       level=level)  # fmt: skip


def conv_link(channels: int, kernel: int, groups: int) -> Step:
    """A convolution that keeps its shape."""
    weight = weights(channels, channels // groups, kernel, kernel)
    return with_constants("Conv", weight, weights(channels), kernel_shape=[kernel, kernel], pads=[kernel // 2] * 4, group=groups)


def fusion_cases() -> Iterator[Case]:
    """What ORT's optimizer makes of followers: each with and without, side by side."""
    conv, row = conv_link(64, 3, 1), weights(768)
    size = 64 * 56 * 56
    relu: tuple[tuple[str, Sequence[Array]], ...] = (("Relu", ()),)
    clip: tuple[tuple[str, Sequence[Array]], ...] = (("Clip", (np.float32(0), np.float32(6))),)
    for name, link in (("Conv", conv), ("Conv, Relu", followed(conv, *relu)), ("Conv, Clip", followed(conv, *clip)),
                       ("Conv, Sigmoid", followed(conv, ("Sigmoid", ())))):  # fmt: skip
        yield Case("fusion", f"{name} 64x56x56 all", (1, 64, 56, 56), link, 2.0 * size * 9 * 64, 8.0 * size, level=ALL)
    product = with_constants("MatMul", weights(768, 768))
    for name, link in (("MatMul", product), ("MatMul, Add", followed(product, ("Add", (row,)))),
                       ("MatMul, Add, Relu", followed(product, ("Add", (row,)), ("Relu", ()))),
                       ("MatMul, Add, Gelu parts", followed(product, ("Add", (row,)), ("Erf", ()))),
                       ("Gemm", with_constants("Gemm", weights(768, 768), row)),
                       ("Gemm transB", with_constants("Gemm", weights(768, 768), row, transB=1))):  # fmt: skip
        for rows in (16, 128):
            yield Case("fusion", f"{name} {rows}x768x768 all", (rows, 768), link, 2.0 * rows * 768 * 768, 4.0 * 768 * 768, level=ALL)
    for rows in (16, 128):
        yield Case("fusion", f"MatMul, Add {rows}x1x768x768 all", (rows, 1, 768), followed(product, ("Add", (row,))),
                   2.0 * rows * 768 * 768, 4.0 * 768 * 768, level=ALL)  # fmt: skip

    def scores(swap: bool) -> Step:
        def step(x: str, y: str, index: int) -> tuple[list[onnx.NodeProto], list[tuple[str, Array]]]:
            nodes = [helper.make_node("Transpose", [x], [f"t{index}"], perm=[0, 1, 3, 2])] if swap else []
            nodes.append(helper.make_node("MatMul", [x, f"t{index}" if swap else x], [y]))
            return nodes, []

        return step

    for name, link in (("MatMul(x, x)", scores(False)), ("MatMul(x, Transpose x)", scores(True))):
        for level, tag in ((ALL, "all"), (OFF, "off")):
            yield Case(
                "fusion", f"{name} 1x12x128x128 {tag}", (1, 12, 128, 128), link, 2.0 * 12 * 128**3, 3 * 4.0 * 12 * 128**2, level=level
            )


FAMILIES: dict[str, Callable[[], Iterator[Case]]] = {
    "elementwise": elementwise_cases, "movement": movement_cases, "rows": row_cases, "matmul": matmul_cases,
    "conv": convolution_cases, "fusion": fusion_cases,
}  # fmt: skip


def measure(families: Sequence[str], threads: int, seconds: float) -> Iterator[dict[str, Any]]:
    """One row for each case: seconds a link, and the rates that follow."""
    for family in families:
        for case in FAMILIES[family]():
            took = node_seconds(case, threads, seconds)
            yield {"family": family, "kind": case.kind, "case": case.label, "us": took * 1e6, "gflops": case.flops / took / 1e9,
                   "gbytes": case.bytes / took / 1e9}  # fmt: skip


def main() -> None:
    """Print the table, or with `--json` one object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--only", default=",".join(FAMILIES), help=f"families, of {','.join(FAMILIES)}")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=0.15, help="for each case")
    options = parser.parse_args()
    rows = []
    if not options.json:
        print(f"{'case':52} {'us/link':>10} {'GFLOP/s':>9} {'GB/s':>8}")
    for row in measure(options.only.split(","), options.threads, options.seconds):
        rows.append(row)
        if not options.json:
            print(f"{row['case']:52} {row['us']:10.2f} {row['gflops']:9.1f} {row['gbytes']:8.1f}", flush=True)
    if options.json:
        print(json.dumps({"machine": platform.processor() or platform.machine(), "date": datetime.date.today().isoformat(),
                          "onnxruntime": onnxruntime.__version__, "threads": options.threads, "rows": rows}))  # fmt: skip


if __name__ == "__main__":
    main()
