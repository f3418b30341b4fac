"""Rotary embeddings as exporters write them beside ONNX Runtime's kernel, and what `coset optimize` makes of them.

    python -m benchmarks.rotations [--threads N] [--record FILE]

Microseconds of one rotation among others (the difference of chains of 8 and of 2), in its parts and as com.microsoft.RotaryEmbedding; then
of whole programs with one rotation, as they were and as `coset optimize` wrote them. Blocks in turn, medians.
"""

from __future__ import annotations

import argparse
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnxruntime

import coset
from coset.backends.onnxruntime import Session
from coset.calibration.calibrate import per_link
from coset.calibration.cases import INPUT, LONG, SHORT
from coset.timing import Protocol, measure, ratio

SHAPES = (
    (1, 4, 1024, 4), (1, 4, 1024, 8), (1, 4, 1024, 16), (2, 4, 16, 32), (1, 8, 1, 64), (1, 12, 128, 64), (4, 8, 128, 32), (1, 4, 64, 128),
    (1, 32, 512, 64),
)  # B, heads, L, D  # fmt: skip
PROTOCOL = Protocol(rounds=12)
HEAD = 'ir_version: 8, opset_import: ["" : 18, "com.microsoft" : 1]'
PARTS = (
    "a{i} = Mul({x}, cosines) h{i}, g{i} = Split<axis = -1, num_outputs = 2>({x}) n{i} = Neg(g{i}) r{i} = Concat<axis = -1>(n{i}, h{i})"
    " b{i} = Mul(r{i}, sines) {y} = Add(a{i}, b{i})"
)
KERNEL = "{y} = com.microsoft.RotaryEmbedding({x}, zero, cosines, sines)"


def model(form: str, shape: tuple[int, int, int, int], length: int = 1) -> Any:
    """So many rotations, one after the other."""
    *_, rows, columns = shape
    names = [INPUT, *(f"x{i}" for i in range(1, length)), "y"]
    body = " ".join(form.format(i=i, x=names[i], y=names[i + 1]) for i in range(length))
    text = f"float[{', '.join(map(str, shape))}]"
    found = onnx.parser.parse_model(f"<{HEAD}> g ({text} {INPUT}) => ({text} y) {{ {body} }}")
    angles = np.linspace(0, 3, rows * columns // 2, dtype=np.float32).reshape(rows, -1)
    times = 1 if form == KERNEL else 2
    held = {"cosines": np.tile(np.cos(angles), times), "sines": np.tile(np.sin(angles), times), "zero": np.zeros(1, np.int64)}
    used = {name for node in found.graph.node for name in node.input}
    found.graph.initializer.extend(onnx.numpy_helper.from_array(held[name], name) for name in sorted(used & held.keys()))
    return found


def main() -> None:
    """Measure all shapes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--record", type=Path, help="write what was measured")
    asked = parser.parse_args()
    lines = [f"ONNX Runtime {onnxruntime.__version__}, {asked.threads} thread(s): microseconds"]
    with tempfile.TemporaryDirectory() as folder:
        for shape in SHAPES:
            feed = {INPUT: np.random.default_rng(1).standard_normal(shape).astype(np.float32)}

            def program(given: Any, feed: dict[str, Any] = feed) -> Any:
                session = Session(given, level="all", threads=asked.threads, watched=False)
                return partial(session.run, feed)

            links = {}
            for name, form in (("parts", PARTS), ("kernel", KERNEL)):
                chains = {str(n): program(model(form, shape, n).SerializeToString()) for n in (SHORT, LONG)}
                links[name] = per_link(*measure(chains, PROTOCOL).values())[0] * 1e6
            before, after = (Path(folder) / name for name in ("before.onnx", "after.onnx"))
            onnx.save(model(PARTS, shape), before)
            coset.optimize(before).save(after)
            found = measure({"before": program(before), "after": program(after)}, PROTOCOL)
            times = ratio(found["before"], found["after"])
            kept = "one node" if len(onnx.load(after).graph.node) == 1 else "parts"
            lines.append(
                f"{' x '.join(map(str, shape)):17} parts {links['parts']:7.2f}, kernel {links['kernel']:7.2f};   written as {kept}: "
                f"{found['before'].median * 1e6:7.1f} before, {found['after'].median * 1e6:7.1f} after,"
                f" {times.value:.2f} times as fast ({times.low:.2f} to {times.high:.2f})"
            )
            print(lines[-1], flush=True)
    if asked.record is not None:
        asked.record.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
