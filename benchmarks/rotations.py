"""Rotary embeddings as exporters write them beside ONNX Runtime's kernel, and what `coset optimize` makes of them.

    python -m benchmarks.rotations [--threads N] [--form NAME ..] [--record FILE]

Forms: heads in front of the length (`front`) or behind it (`behind`), angles of each sequence (`sequences`), pairs of neighbours
(`neighbours`), half of each head turned (`part`).

Microseconds of one rotation among others (the difference of chains of 8 and of 2), in its parts and as com.microsoft.RotaryEmbedding; then
of whole programs with one rotation, as they were and as `coset optimize` wrote them. Blocks in turn, medians.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import dataclass
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
from coset.comparing.timing import Protocol, measure, ratio

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
BESIDE = (
    "h{i} = Slice({x}, zero, end, last, two) g{i} = Slice({x}, one, end, last, two) n{i} = Neg(g{i}) u{i} = Unsqueeze(n{i}, last)"
    " v{i} = Unsqueeze(h{i}, last) w{i} = Concat<axis = -1>(u{i}, v{i}) r{i} = Reshape(w{i}, shape) a{i} = Mul({x}, cosines)"
    " b{i} = Mul(r{i}, sines) {y} = Add(a{i}, b{i})"
)
HALF = (
    "o{i}, p{i} = Split<axis = -1, num_outputs = 2>({x}) "
    + PARTS.replace("{x}", "o{i}").replace("{y}", "t{i}")
    + " {y} = Concat<axis = -1>(t{i}, p{i})"
)


@dataclass(frozen=True)
class Form:
    """A way to write rotations: its parts, the kernel in their place, and how often a table holds each number."""

    parts: str
    kernel: str = "{y} = com.microsoft.RotaryEmbedding({x}, zero, cosine, sine)"
    beside: bool = False
    behind: bool = False
    sequences: bool = False
    turned: int = 1  # so many parts of a head


FORMS = {
    "front": Form(PARTS),
    "behind": Form(
        PARTS, "f{i} = Transpose<perm = [0, 2, 1, 3]>({x}) k{i} = com.microsoft.RotaryEmbedding(f{i}, zero, cosine, sine)"
        " {y} = Transpose<perm = [0, 2, 1, 3]>(k{i})", behind=True,
    ),
    "sequences": Form(PARTS, "{y} = com.microsoft.RotaryEmbedding({x}, rows, cosine, sine)", sequences=True),
    "neighbours": Form(BESIDE, "{y} = com.microsoft.RotaryEmbedding<interleaved = 1>({x}, zero, cosine, sine)", beside=True),
    "part": Form(
        HALF, "{y} = com.microsoft.RotaryEmbedding<num_heads = HEADS, rotary_embedding_dim = TURNED>({x}, zero, cosine, sine)", turned=2,
    ),
}  # fmt: skip


def model(form: Form, body: str, shape: tuple[int, int, int, int], length: int = 1) -> Any:
    """So many rotations `body` of heads, one after the other."""
    batch, heads, rows, size = shape
    stored = (batch, rows, heads, size) if form.behind else shape
    pairs = size // 2 // form.turned
    names = [INPUT, *(f"x{i}" for i in range(1, length)), "y"]
    body = body.replace("HEADS", str(heads)).replace("TURNED", str(2 * pairs))
    body = " ".join(body.format(i=i, x=names[i], y=names[i + 1]) for i in range(length))
    text = f"float[{', '.join(map(str, stored))}]"
    found = onnx.parser.parse_model(f"<{HEAD}> g ({text} {INPUT}) => ({text} y) {{ {body} }}")
    sequences = batch if form.sequences else 1
    angles = np.linspace(0, 3, sequences * rows * pairs, dtype=np.float32).reshape(sequences * rows, pairs)
    place = (sequences, rows, 1, 2 * pairs) if form.behind else (sequences, 1, rows, 2 * pairs)
    twice = (np.repeat(angles, 2, -1) if form.beside else np.tile(angles, 2)).reshape(place)
    held = {
        "cosine": np.cos(angles), "sine": np.sin(angles), "cosines": np.cos(twice), "sines": np.sin(twice),
        "zero": [0], "one": [1], "two": [2], "last": [-1],
        "end": [1 << 60], "shape": stored, "rows": np.arange(sequences * rows).reshape(sequences, rows),
    }  # fmt: skip
    used = {name for node in found.graph.node for name in node.input}
    found.graph.initializer.extend(onnx.numpy_helper.from_array(np.asarray(held[name]), name) for name in sorted(used & held.keys()))
    return found


def main() -> None:
    """Measure all shapes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--form", nargs="*", choices=FORMS, default=list(FORMS))
    parser.add_argument("--record", type=Path, help="write what was measured")
    asked = parser.parse_args()
    lines = [f"ONNX Runtime {onnxruntime.__version__}, {asked.threads} thread(s): microseconds"]
    with tempfile.TemporaryDirectory() as folder:
        for name in asked.form:
            for shape in SHAPES:
                lines.append(f"{name:10} {measured(FORMS[name], shape, Path(folder), asked.threads)}")
                print(lines[-1], flush=True)
    if asked.record is not None:
        asked.record.write_text("\n".join(lines) + "\n")


def measured(form: Form, shape: tuple[int, int, int, int], folder: Path, threads: int) -> str:
    """What a rotation of heads of this shape takes in the form, as a line."""
    given = model(form, form.parts, shape)
    feed = {
        INPUT: np.random.default_rng(1).standard_normal([d.dim_value for d in given.graph.input[0].type.tensor_type.shape.dim], np.float32)
    }

    def program(source: Any) -> Any:
        session = Session(source, level="all", threads=threads, watched=False)
        return partial(session.run, feed)

    links = {}
    for name, body in (("parts", form.parts), ("kernel", form.kernel)):
        chains = {str(n): program(model(form, body, shape, n).SerializeToString()) for n in (SHORT, LONG)}
        links[name] = per_link(*measure(chains, PROTOCOL).values())[0] * 1e6
    before, after = (folder / name for name in ("before.onnx", "after.onnx"))
    onnx.save(given, before)
    coset.optimize(before).save(after)
    found = measure({"before": program(before), "after": program(after)}, PROTOCOL)
    times = ratio(found["before"], found["after"])
    kept = "kernel" if any(node.domain for node in onnx.load(after).graph.node) else "parts"
    return (
        f"{' x '.join(map(str, shape)):17} parts {links['parts']:7.2f}, kernel {links['kernel']:7.2f};   written as {kept}: "
        f"{found['before'].median * 1e6:7.1f} before, {found['after'].median * 1e6:7.1f} after,"
        f" {times.value:.2f} times as fast ({times.low:.2f} to {times.high:.2f})"
    )


if __name__ == "__main__":
    main()
