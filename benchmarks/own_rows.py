"""`coset calibrate --from` on latencies of this machine: single ONNX nodes under ONNX Runtime, one thread, and sizes that the fit has not
seen.

    python -m benchmarks.own_rows [--seconds S] [--record FILE]

What a node takes is the processor time of a model with five of them on inputs of their own, less that of a model with one, over four: the
least of blocks that take turns. Second operands of products and convolutions are weights. The rows are written as somebody would write
them, fitted by the command, and both targets predict the rows of the other sizes.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import coset.dialects
from coset.calibration.rows import measured_rows
from coset.cli import run
from coset.extract.fit import predicted
from coset.job.machine import this_machine
from coset.targets.target import get_target

assert coset.dialects
COPIES = 5
BLOCKS = 12
WEIGHTED = {"MatMul", "Gemm", "Conv", "LayerNormalization"}
ELEMENTWISE = ("Add", "Mul", "Div", "Exp", "Tanh", "Erf", "Sigmoid")
SIZES = {"seen": (64, 1024, 8192, 65536, 262144, 1048576, 4194304), "unseen": (256, 30000, 150000, 600000, 2500000)}
ROWS = {"seen": ((8, 64), (64, 128), (512, 64), (512, 768), (2048, 768)), "unseen": ((32, 96), (256, 256), (1024, 512), (1024, 1536))}
PRODUCTS = {
    "seen": ((1, 256, 256), (4, 256, 256), (16, 64, 64), (64, 64, 64), (64, 256, 256), (128, 768, 768), (512, 768, 768), (1, 768, 3072)),
    "unseen": ((2, 512, 512), (32, 128, 128), (128, 256, 1024), (256, 512, 512), (197, 192, 768)),
}
PICTURES = {
    "seen": ((16, 112, 3), (32, 28, 3), (64, 56, 3), (128, 28, 3), (256, 14, 3), (64, 56, 1), (256, 14, 1), (512, 7, 1)),
    "unseen": ((32, 56, 3), (96, 28, 3), (192, 14, 3), (128, 28, 1), (384, 14, 1)),
}
Row = tuple[str, str, str]  # op, shapes, attributes


def rows(part: str) -> Iterator[Row]:
    """A dozen of ops at the sizes of a part."""
    for op in ELEMENTWISE:
        for size in SIZES[part]:
            yield op, f"{size};{size}" if op in ("Add", "Mul", "Div") else f"{size}", ""
    for m, n in ROWS[part]:
        yield "Softmax", f"{m}x{n}", ""
        yield "LayerNormalization", f"{m}x{n};{n};{n}", ""
        yield "Transpose", f"{m}x{n}", "perm=1,0"
        yield "ReduceSum", f"{m}x{n};=-1", ""
    for m, k, n in PRODUCTS[part]:
        yield "MatMul", f"{m}x{k};{k}x{n}", ""
        yield "Gemm", f"{m}x{k};{k}x{n};{n}", ""
    for channels, side, kernel in PICTURES[part]:
        pad = kernel // 2
        yield "Conv", f"1x{channels}x{side}x{side};{channels}x{channels}x{kernel}x{kernel}", f"pads={pad},{pad},{pad},{pad}"


def model(row: Row, copies: int) -> tuple[bytes, dict[str, Any]]:
    """A model of so many nodes beside each other, and its inputs."""
    op, shapes, attributes = row
    words = dict(word.split("=") for word in attributes.split())
    given = {name: [int(number) for number in text.split(",")] for name, text in words.items()}
    nodes, inputs, outputs, constants = [], [], [], []
    feed: dict[str, Any] = {}
    chance = np.random.default_rng(0)
    for copy in range(copies):
        names = []
        for place, shape in enumerate(shapes.split(";")):
            name = f"x{copy}_{place}"
            names.append(name)
            if shape.startswith("="):
                constants.append(numpy_helper.from_array(np.asarray([int(shape[1:])], np.int64), name))
                continue
            drawn = chance.uniform(0.5, 1.5, [int(size) for size in shape.split("x")]).astype(np.float32)
            if place and op in WEIGHTED:
                constants.append(numpy_helper.from_array(drawn * 0.05, name))
            else:
                inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, drawn.shape))
                feed[name] = drawn
        nodes.append(helper.make_node(op, names, [f"y{copy}"], **given))
        outputs.append(helper.make_tensor_value_info(f"y{copy}", TensorProto.FLOAT, None))
    graph = helper.make_graph(nodes, "rows", inputs, outputs, constants)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    return onnx.shape_inference.infer_shapes(made).SerializeToString(), feed


def microseconds(row: Row, seconds: float) -> float:
    """What a node takes."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    runs = []
    for copies in (1, COPIES):
        data, feed = model(row, copies)
        session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        session.run(None, feed)
        start = time.process_time()
        session.run(None, feed)
        runs.append((session, feed, max(1, int(seconds / BLOCKS / 2 / max(1e-6, time.process_time() - start)))))
    least = [float("inf")] * 2
    for _ in range(BLOCKS):
        for which, (session, feed, count) in enumerate(runs):
            start = time.process_time()
            for _ in range(count):
                session.run(None, feed)
            least[which] = min(least[which], (time.process_time() - start) / count)
    return (least[1] - least[0]) / (COPIES - 1) * 1e6


def written(path: Path, part: str, seconds: float) -> int:
    """The rows of a part as a CSV file; how many there are."""
    found = [(row, microseconds(row, seconds)) for row in rows(part)]
    kept = [(row, took) for row, took in found if took > 0.05]  # the others are lost in the calls
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["op", "shapes", "dtype", "attributes", "microseconds"])
        writer.writerows([op, shapes, "f32", attributes, f"{took:.4g}"] for (op, shapes, attributes), took in kept)
    return len(kept)


def judged(path: Path, stock: str, fitted: Path) -> list[str]:
    """How both targets predict the rows at `path`, by op."""
    targets = [get_target(stock), get_target(fitted)]
    links = measured_rows(path, targets[0])
    lines = [f"{'op':20} rows  stock: median error, worst ratio   fitted: median error, worst ratio"]
    groups = {op: [row.link for row in links if row.op == op] for op in dict.fromkeys(row.op for row in links)}
    for op, found in {**groups, "all": [row.link for row in links]}.items():
        line = f"{op:20} {len(found):4}"
        for target in targets:
            ratios = [link.seconds / predicted(link, target) for link in found]
            off = median(abs(1 / ratio - 1) for ratio in ratios)
            line += f"  {off:6.0%}  {max(ratios, key=lambda ratio: max(ratio, 1 / ratio)):8.2f}           "
        lines.append(line.rstrip())
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=0.4, help="of the processor for each row")
    parser.add_argument("--record", type=Path)
    given = parser.parse_args()
    place = this_machine()
    lines = [f"{place.device}, onnxruntime {onnxruntime.__version__}, one thread, {time.strftime('%Y-%m-%d')}"]
    with tempfile.TemporaryDirectory() as folder:
        seen, unseen, fitted = (Path(folder) / name for name in ("seen.csv", "unseen.csv", "fitted.toml"))
        lines.append(f"rows: {written(seen, 'seen', given.seconds)} seen, {written(unseen, 'unseen', given.seconds)} of other sizes")
        assert run(["calibrate", "--from", str(seen), "--target", "cpu-onnxruntime", "-o", str(fitted)]) == 0
        lines += ["", "Rows of other sizes, which the fit has not seen (measured / predicted):", *judged(unseen, "cpu-onnxruntime", fitted)]
        lines += ["", "Rows that it was fitted to:", *judged(seen, "cpu-onnxruntime", fitted)]
    text = "\n".join(lines) + "\n"
    print(text)
    if given.record is not None:
        given.record.write_text(text)


if __name__ == "__main__":
    main()
