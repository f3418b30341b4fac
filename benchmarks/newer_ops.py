"""Ops of ONNX 21 and 23 beside what they stand for, in ONNX Runtime: does it pay to make them?

    python -m benchmarks.newer_ops [--threads N] [--record FILE]

Attention and RotaryEmbedding of version 23 and GroupNormalization of version 21, each beside the nodes that exporters write for it, with
the runtime's full optimizer. Blocks in turn, medians; how many times as long the nodes take.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnxruntime

from coset.backends.onnxruntime import Session
from coset.comparing.timing import Protocol, measure, ratio

PROTOCOL = Protocol(rounds=12)
ATTENTIONS = ((2, 4, 16, 16, 32), (1, 12, 128, 128, 64), (1, 3, 197, 197, 64), (1, 12, 512, 512, 64), (1, 8, 1, 512, 64))  # B, H, L, S, D
ROTATIONS = ((2, 4, 16, 32), (1, 12, 128, 64), (1, 8, 1, 64), (1, 32, 512, 64))  # B, H, L, D
PICTURES = ((1, 8, 4, 4), (1, 32, 32, 32), (1, 128, 64, 64))  # N, C, H, W
SPELLED = {
    "Attention": "t = Transpose<perm = [0, 1, 3, 2]>(k) s = MatMul(q, t) c = Mul(s, scale) p = Softmax<axis = -1>(c) y = MatMul(p, v)",
    "RotaryEmbedding": "a = Mul(x, cs) h, g = Split<axis = -1, num_outputs = 2>(x) n = Neg(g) r = Concat<axis = -1>(n, h)"
    " b = Mul(r, sn) y = Add(a, b)",
    "GroupNormalization": "a = Reshape(x, groups) b = InstanceNormalization(a, one, nil) c = Reshape(b, whole) d = Mul(c, g) y = Add(d, t)",
}
NAMED = {
    "Attention": "y = Attention(q, k, v)", "RotaryEmbedding": "y = RotaryEmbedding(x, cosines, sines)",
    "GroupNormalization": "y = GroupNormalization<num_groups = 2>(x, scales, shifts)",
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """An op on inputs of these shapes, with the constants that the two forms read."""

    op: str
    inputs: dict[str, tuple[int, ...]]
    constants: dict[str, Any]

    def model(self, body: str) -> Any:
        """One of the two forms."""
        head = ", ".join(f"float{list(shape)} {name}" for name, shape in self.inputs.items())
        shape = list(next(iter(self.inputs.values())))
        text = f'<ir_version: 11, opset_import: ["" : 23]> g ({head}) => (float{shape} y) {{ {body} }}'
        found = onnx.parser.parse_model(text)
        used = {name for node in found.graph.node for name in node.input}
        held = sorted(used & self.constants.keys())
        found.graph.initializer.extend(onnx.numpy_helper.from_array(np.asarray(self.constants[name]), name) for name in held)
        return found


def cases() -> Iterator[Case]:
    """All of them."""
    draw = np.random.default_rng(0)

    def numbers(*shape: int) -> Any:
        return draw.standard_normal(shape).astype(np.float32)

    for b, h, length, s, d in ATTENTIONS:
        yield Case("Attention", {"q": (b, h, length, d), "k": (b, h, s, d), "v": (b, h, s, d)}, {"scale": np.float32(d**-0.5)})
    for b, h, length, d in ROTATIONS:
        cosines, sines = numbers(length, d // 2), numbers(length, d // 2)
        tables = {"cs": np.tile(cosines, 2), "sn": np.tile(sines, 2)}
        yield Case(
            "RotaryEmbedding", {"x": (b, h, length, d)}, tables | {"cosines": np.stack([cosines] * b), "sines": np.stack([sines] * b)}
        )
    for n, c, h, w in PICTURES:
        scales, shifts = numbers(c), numbers(c)
        shapes = {"groups": np.array([0, 2, -1]), "whole": np.array([n, c, h, w])}
        units = {"one": np.ones(2, np.float32), "nil": np.zeros(2, np.float32)}
        behind = {"g": scales.reshape(c, 1, 1), "t": shifts.reshape(c, 1, 1), "scales": scales, "shifts": shifts}
        yield Case("GroupNormalization", {"x": (n, c, h, w)}, shapes | units | behind)


def main() -> None:
    """Measure all cases."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--record", type=Path, help="write what was measured")
    asked = parser.parse_args()
    lines = [f"ONNX Runtime {onnxruntime.__version__}, {asked.threads} thread(s): microseconds of the nodes and of the one op"]
    for case in cases():
        feed = {name: np.random.default_rng(1).standard_normal(shape).astype(np.float32) for name, shape in case.inputs.items()}
        programs = {}
        for name, body in (("nodes", SPELLED[case.op]), ("op", NAMED[case.op])):
            session = Session(case.model(body).SerializeToString(), level="all", threads=asked.threads, watched=False)
            programs[name] = partial(session.run, feed)
        one, other = (programs[name]() for name in programs)
        assert np.allclose(one["y"], other["y"], rtol=1e-3, atol=1e-4), case.op
        found = measure(programs, PROTOCOL)
        times = ratio(found["nodes"], found["op"])
        shape = " x ".join(map(str, next(iter(case.inputs.values()))))
        took = f"{found['nodes'].median * 1e6:9.1f} {found['op'].median * 1e6:9.1f}"
        lines.append(f"{case.op:18} {shape:20} {took}   {times.value:.2f} times ({times.low:.2f} to {times.high:.2f})")
        print(lines[-1], flush=True)
    if asked.record is not None:
        asked.record.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
