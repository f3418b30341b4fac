"""PRelu beside its parts (Relu, Min, Mul, Add), LeakyRelu, and what `coset optimize` makes of it: ONNX Runtime, one thread.

    python -m benchmarks.slopes [--record FILE]

Inputs have signs drawn at random, others in each of many calls, which no branch foresees. Blocks in turn, medians; nanoseconds for each
element, and how many times as long PRelu takes as each of the others.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnxruntime

import coset
from coset.backends.onnxruntime import Session
from coset.comparing.timing import Protocol, measure, ratio

FORMS = {
    "PRelu": "y = PRelu(x, s)",
    "parts": "p = Relu(x) n = Min(x, zero) m = Mul(n, s) y = Add(p, m)",
    "LeakyRelu": "y = LeakyRelu<alpha = 0.25>(x)",
}
SHAPES = ((16, 8, 8), (16, 16, 16), (16, 24, 24), (16, 48, 48), (16, 96, 96), (64, 112, 112))
DRAWN = 1 << 20  # elements of all inputs of a shape
PROTOCOL = Protocol(rounds=12)


def model(body: str, shape: tuple[int, int, int]) -> Any:
    """A form on a picture of this shape, with a slope for each channel."""
    channels, high, wide = shape
    text = f"float[1, {channels}, {high}, {wide}]"
    found = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g ({text} x) => ({text} y) {{ {body} }}')
    slopes = np.random.default_rng(0).uniform(-0.3, 0.3, (channels, 1, 1)).astype(np.float32)
    held = {"s": slopes, "zero": np.float32(0)}
    used = {name for node in found.graph.node for name in node.input}
    found.graph.initializer.extend(onnx.numpy_helper.from_array(np.asarray(held[name]), name) for name in sorted(used & held.keys()))
    return found


def calls(session: Session, shape: tuple[int, int, int]) -> Callable[[], object]:
    """A call on the next of some inputs, which together are more than a processor remembers the branches of."""
    draw = np.random.default_rng(1)
    count = max(8, DRAWN // int(np.prod(shape)))
    feeds = itertools.cycle([{"x": draw.standard_normal((1, *shape)).astype(np.float32)} for _ in range(count)])
    return lambda: session.run(next(feeds))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", type=Path, help="write what was measured")
    asked = parser.parse_args()
    lines = [f"ONNX Runtime {onnxruntime.__version__}, one thread; ns an element, and how many times as long PRelu takes"]
    with tempfile.TemporaryDirectory() as folder:
        for shape in SHAPES:
            programs = {}
            for name, body in FORMS.items():
                path = Path(folder) / f"{name}.onnx"
                onnx.save(model(body, shape), path)
                programs[name] = calls(Session(path, level="all", threads=1, watched=False), shape)
            optimized = Path(folder) / "optimized.onnx"
            coset.optimize(Path(folder) / "PRelu.onnx").save(optimized)
            programs["coset"] = calls(Session(optimized, level="all", threads=1, watched=False), shape)
            found = measure(programs, PROTOCOL)
            count = int(np.prod(shape))
            said = [
                f"{name} {timing.median * 1e9 / count:.2f} ({ratio(found['PRelu'], timing).value:.2f} times)"
                for name, timing in found.items()
            ]
            lines.append(f"{count:8,d} elements: {', '.join(said)}")
            print(lines[-1], flush=True)
    if asked.record is not None:
        asked.record.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
