"""Measures attention under ONNX Runtime: written out, as MultiHeadAttention behind its projections, and as Attention with them inside.

    python -m benchmarks.cpu_attention [--json] [--threads 2] [--seconds 0.3]

Each row is self-attention of x [batch, length, width], with biases and, where it says so, a summand [1, 1, length, length] of the scores:
microseconds of one link of a chain (see `cpu_rates.py`), and what `targets/cpu-onnxruntime.toml` predicts for the three forms.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import platform
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper

from benchmarks.cpu_rates import ALL, Array, Case, Step, node_seconds, weights

# batch, length, width, heads
SHAPES = (
    (1, 1, 256, 8), (1, 8, 64, 4), (1, 16, 128, 4), (8, 16, 128, 4), (1, 32, 128, 4), (1, 64, 64, 4), (1, 64, 256, 8), (4, 64, 256, 8),
    (1, 128, 192, 3), (1, 128, 384, 12), (1, 128, 768, 12), (4, 128, 192, 3), (1, 197, 192, 3), (1, 197, 768, 12), (1, 384, 384, 6),
    (1, 512, 256, 8), (1, 512, 768, 12), (1, 1024, 384, 6),
)  # fmt: skip
FORMS = ("written out", "MultiHeadAttention", "Attention")


def link(form: str, length: int, width: int, heads: int, *, masked: bool) -> Step:
    """Attention as one step of a chain."""
    size = width // heads
    scale = 1 / math.sqrt(size)
    kept = {f"w{name}": weights(width, width) * np.float32(factor) for name, factor in zip("qkv", (0.1, 0.2, 0.3), strict=True)}
    kept |= {f"b{name}": weights(width) * np.float32(factor) for name, factor in zip("qkv", (1, 2, 3), strict=True)}
    kept |= {"packed": np.concatenate([kept[f"w{name}"] for name in "qkv"], axis=1)}
    kept |= {"biases": np.concatenate([kept[f"b{name}"] for name in "qkv"]), "scale": np.float32(scale)}
    kept |= {"apart": np.array([0, length, heads, size]), "joined": np.array([0, length, width])}
    kept |= {"mask": np.triu(np.full((1, 1, length, length), -1e4, np.float32), 1)}

    def step(x: str, y: str, index: int) -> tuple[list[onnx.NodeProto], list[tuple[str, Array]]]:
        own = {name: f"{name}_{index}" for name in kept}
        nodes: list[onnx.NodeProto] = []

        def node(op: str, *inputs: str, out: str = "", domain: str = "", **attributes: Any) -> str:
            name = out or f"v{index}_{len(nodes)}"
            nodes.append(helper.make_node(op, inputs, [name], domain=domain, **attributes))
            return name

        given = {"num_heads": heads, "scale": scale, "domain": "com.microsoft", "out": y}
        mask = ["", "", own["mask"]] if masked else []
        if form == "Attention":
            node("Attention", x, own["packed"], own["biases"], *mask, **given)
        else:
            q, k, v = (node("Add", node("MatMul", x, own[f"w{name}"]), own[f"b{name}"]) for name in "qkv")
            if form == "MultiHeadAttention":
                node("MultiHeadAttention", q, k, v, *mask, **given)
            else:
                q, k, v = (node("Transpose", node("Reshape", part, own["apart"]), perm=perm)
                           for part, perm in ((q, (0, 2, 1, 3)), (k, (0, 2, 3, 1)), (v, (0, 2, 1, 3))))  # fmt: skip
                scores = node("MatMul", node("Mul", q, own["scale"]), k)
                scores = node("Add", scores, own["mask"]) if masked else scores
                seen = node("MatMul", node("Softmax", scores, axis=3), v)
                node("Reshape", node("Transpose", seen, perm=(0, 2, 1, 3)), own["joined"], out=y)
        read = {name for made in nodes for name in made.input}
        return nodes, [(own[name], value) for name, value in kept.items() if own[name] in read]

    return step


def measure(threads: int, seconds: float) -> list[dict[str, Any]]:
    """A row for each shape, with and without a summand: microseconds by form."""
    rows = []
    for batch, length, width, heads in SHAPES:
        for masked in (False, True):
            row: dict[str, Any] = {"shape": [batch, length, width], "heads": heads, "masked": masked}
            for form in FORMS:
                step = link(form, length, width, heads, masked=masked)
                row[form] = 1e6 * node_seconds(Case("attention", form, (batch, length, width), step, 0, 0, level=ALL), threads, seconds)
            rows.append(row)
    return rows


def main() -> None:
    """Print the table, or with `--json` one object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=0.3, help="for each case")
    options = parser.parse_args()
    rows = measure(options.threads, options.seconds)
    if options.json:
        print(json.dumps({"machine": platform.processor() or platform.machine(), "date": datetime.date.today().isoformat(),
                          "onnxruntime": onnxruntime.__version__, "threads": options.threads, "rows": rows}))  # fmt: skip
        return
    print(f"{'shape, heads':28} {'written out':>12} {'MultiHead':>12} {'Attention':>12}   us; over written out")
    for row in rows:
        name = f"{row['shape']}, {row['heads']}{' masked' if row['masked'] else ''}"
        first, second, third = (row[form] for form in FORMS)
        print(f"{name:28} {first:12.1f} {second:12.1f} {third:12.1f}   {second / first:.2f} {third / first:.2f}")


if __name__ == "__main__":
    main()
