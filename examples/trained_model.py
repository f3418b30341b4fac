"""Optimize a trained network: the text detector of PP-OCRv4, which the package rapidocr-onnxruntime ships, or any model you name.

    python examples/trained_model.py [MODEL.onnx [NAME=N ...]]

Prints nodes, predicted and measured time before and after, the rules that were used with what they promise, and the largest difference.
"""

from __future__ import annotations

import sys
from functools import partial
from importlib.metadata import files
from pathlib import Path

from coset.backends.onnxruntime import Session
from coset.bench import working_feed
from coset.comparing.timing import Protocol, measure
from coset.console.optimized import show_optimized
from coset.optimizing.pipeline import optimize

PACKAGE, MODEL = "rapidocr-onnxruntime", "ch_PP-OCRv4_det_infer.onnx"
OUTPUT = Path("build/trained_model.onnx")


def shipped_model() -> Path:
    """The path of the model inside the installed package."""
    found = [file for file in files(PACKAGE) or () if file.name == MODEL]
    return Path(str(found[0].locate()))


def main() -> None:
    """Optimize, check, time, print."""
    model = Path(sys.argv[1]) if len(sys.argv) > 1 else shipped_model()
    dims = {name: int(number) for name, _, number in (argument.partition("=") for argument in sys.argv[2:])}
    print(f"model      {model}")
    optimized = optimize(model, dims=dims, progress=lambda text: print(f"... {text}", file=sys.stderr))
    OUTPUT.parent.mkdir(exist_ok=True)
    optimized.save(OUTPUT)
    show_optimized({**optimized.report, "output": str(OUTPUT)})

    feed = working_feed(str(model), dims)
    variants = {}
    for name, path in (("before", model), ("after", OUTPUT)):
        for level in ("off", "all"):
            session = Session(path, level=level)
            variants[f"{name}, ORT level {level}"] = partial(session.run, feed)
    for name, timing in measure(variants, Protocol(rounds=8)).items():
        print(f"measured   {name:26s} median {timing.median * 1e3:8.3f} ms, least {timing.minimum * 1e3:8.3f} ms")


if __name__ == "__main__":
    main()
