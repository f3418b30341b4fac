"""Products with weights whose last rows or columns are zeros, beside the smaller products (docs/decisions/0061).

    python -m benchmarks.zero_weights [--record FILE]

Microseconds of whole programs in ONNX Runtime with one thread: MatMul by the weight; Slice in front of MatMul by its other rows; Pad behind
MatMul by its other columns. Blocks in turn, medians.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnxruntime

from coset.backends.onnxruntime import Session
from coset.comparing.timing import Protocol, measure, ratio

SHAPES = ((1, 16, 64, 64), (1, 128, 768, 768), (1, 128, 256, 1024), (8, 64, 64, 64), (12, 128, 64, 128))  # batch, M, K, N
FORMS = {
    "zeros": "y = MatMul(x, w)",
    "rows": "part = Slice(x, first, rows, last) y = MatMul(part, w)",
    "columns": "part = MatMul(x, w) y = Pad(part, pads)",
}
PROTOCOL = Protocol(rounds=16)


def program(form: str, shape: tuple[int, int, int, int], kept: int) -> Any:
    """The product of a batch of matrices in the form, where one of `kept` parts of the rows or columns is not zero."""
    batch, m, k, n = shape
    lead = (batch,) if batch > 1 else ()
    weight = np.random.default_rng(0).standard_normal((*lead, k, n)).astype(np.float32)
    rows, columns = k // kept, n // kept
    if form == "zeros":
        weight[..., rows:, :] = 0
    held = {
        "w": {"zeros": weight, "rows": weight[..., :rows, :], "columns": weight[..., :columns]}[form],
        "first": [0], "rows": [rows], "last": [-1], "pads": [0] * (2 * len(lead) + 3) + [n - columns],
    }  # fmt: skip
    text, result = (f"float[{', '.join(map(str, (*lead, m, size)))}]" for size in (k, n))
    found = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> g ({text} x) => ({result} y) {{ {FORMS[form]} }}')
    used = {name for node in found.graph.node for name in node.input} & held.keys()
    found.graph.initializer.extend(onnx.numpy_helper.from_array(np.ascontiguousarray(held[name]), name) for name in sorted(used))
    session = Session(found.SerializeToString(), level="all", threads=1, watched=False)
    return partial(session.run, {"x": np.random.default_rng(1).standard_normal((*lead, m, k)).astype(np.float32)})


def main() -> None:
    """Measure all shapes, with a half and a quarter left."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", type=Path, help="write what was measured")
    asked = parser.parse_args()
    lines = [f"ONNX Runtime {onnxruntime.__version__}, 1 thread: microseconds"]
    for shape in SHAPES:
        for kept in (2, 4):
            found = measure({form: program(form, shape, kept) for form in FORMS}, PROTOCOL)
            parts = [f"zeros {found['zeros'].median * 1e6:6.1f}"]
            for form in ("rows", "columns"):
                times = ratio(found["zeros"], found[form]).value
                parts.append(f"{form} {found[form].median * 1e6:6.1f} ({times:.2f} times as fast)")
            lines.append(f"{' x '.join(map(str, shape)):20} 1 / {kept} left: {', '.join(parts)}")
            print(lines[-1], flush=True)
    if asked.record is not None:
        asked.record.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
