"""How long extraction takes where every value stands in two layouts: ConvNeXt, whose blocks go from channels first to last and back.

    python -m benchmarks.two_layouts [--blocks 3 3 9 3] [--widths 96 192 384 768] [--image 224] [--repeat N] [--json]

The model is what torch's exporter writes of the published network (Liu et al. 2022), with seeded weights. Seconds of the clock, as the
report of `coset.optimize` has them: of search and of extraction, the comparison left out.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

import onnx

import coset
from benchmarks.stacks import Builder

BACK = [0, 3, 1, 2]  # to channels first
CLASSES = 100


def convnext(blocks: Sequence[int], widths: Sequence[int], image: int) -> onnx.ModelProto:
    """Stages of so many blocks of such widths; `image` is a multiple of 32."""
    b = Builder()
    x = _normalized(b, _patches(b, b.input("x", 1, 3, image, image), 3, widths[0], 4), widths[0])
    for stage, (count, width) in enumerate(zip(blocks, widths, strict=True)):
        if stage:
            x = _patches(b, _normalized(b, x, widths[stage - 1]), widths[stage - 1], width, 2)
        for _ in range(count):
            x = _block(b, x, width)
    pooled = b.node("GlobalAveragePool", x)
    flat = b.node("Flatten", _normalized(b, pooled, widths[-1]))
    return b.model(b.linear(flat, widths[-1], CLASSES), (1, CLASSES))


def _patches(b: Builder, x: str, channels: int, width: int, size: int) -> str:
    """A convolution over patches that do not touch."""
    return b.node("Conv", x, b.weight(width, channels, size, size), b.weight(width), strides=[size] * 2, kernel_shape=[size] * 2)


def _norm(b: Builder, x: str, width: int) -> str:
    return b.node("LayerNormalization", x, b.weight(width), b.weight(width), axis=-1, epsilon=1e-6)


def _normalized(b: Builder, x: str, width: int) -> str:
    """LayerNorm over the channels of a value that has them first."""
    return b.node("Transpose", _norm(b, b.node("Transpose", x, perm=[0, 2, 3, 1]), width), perm=BACK)


def _block(b: Builder, x: str, width: int) -> str:
    y = b.node("Conv", x, b.weight(width, 1, 7, 7), b.weight(width), pads=[3] * 4, kernel_shape=[7] * 2, group=width)
    hidden = b.linear(_norm(b, b.node("Transpose", y, perm=[0, 2, 3, 1]), width), width, 4 * width)
    inner = b.node("Add", b.node("Erf", b.node("Div", hidden, b.number(2**0.5))), b.number(1))
    gelu = b.node("Mul", b.node("Mul", hidden, inner), b.number(0.5))
    y = b.node("Transpose", b.linear(gelu, 4 * width, width), perm=BACK)
    return b.node("Add", x, b.node("Mul", b.weight(width, 1, 1, share=0.1), y))


def main() -> None:
    """Optimize the model as often as asked and print a line each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, nargs="+", default=[3, 3, 9, 3])
    parser.add_argument("--widths", type=int, nargs="+", default=[96, 192, 384, 768])
    parser.add_argument("--image", type=int, default=224)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    model = convnext(arguments.blocks, arguments.widths, arguments.image)
    for _ in range(arguments.repeat):
        report = coset.optimize(model).report
        row = {key: report[key] for key in ("egraph", "seconds", "cost", "nodes")}
        if arguments.json:
            print(json.dumps(row))
            continue
        seconds, cost, egraph = row["seconds"], row["cost"], row["egraph"]
        print(
            f"{egraph['enodes']} e-nodes, stop {egraph['stop']}: search {seconds['saturate']:.2f} s, extraction {seconds['extract']:.2f}, "
            f"predicted {cost['input'] * 1e3:.3f} -> {cost['output'] * 1e3:.4f} ms, gap {100 * cost['gap']:.2f} %, {cost['method']}",
            flush=True,
        )


if __name__ == "__main__":
    main()
