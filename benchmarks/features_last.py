"""Convolutional programs with features last in memory where that is predicted to be faster, beside plans that have features first.

`python -m benchmarks.features_last [NAME ..] [--target NAME] [--half]`: NAMEs are built models (`python -m benchmarks.models`) or blocks of
`gpu_modules`; `--half` takes the models in f16. Programs are planned as imported, without search; microseconds are predictions, of which
none was measured. `told` is what was predicted before a library was known to turn what it multiplies otherwise than it lies, `first` is the
same plan with these copies, `last` is what is lowered now.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path

from benchmarks import models
from coset.egraph.limits import Limits
from coset.frontends.onnx.model import import_model
from coset.ir.program import Program
from coset.job.job import Job
from coset.lowering.arranging.layouts import turned
from coset.lowering.kernels.kernel import Library
from coset.packaging.searched import searched
from coset.pricing.plan_price import PlanPrices
from coset.pricing.windows import Planning
from coset.targets.target import Target, get_target

MODELS = ("train_cnn", "unet_gn", "resnet50_w025", "resnet50", "mobilenetv2", "squeezenet1_1", "resnext50_w050", "inception_v3_w050")
BLOCKS = ("bottleneck", "unet")


def model(name: str, *, half: bool) -> Program:
    """A built model, or a block of `gpu_modules`, as a program."""
    with tempfile.TemporaryDirectory() as folder:
        if name in BLOCKS:
            return _block(name, Path(folder) / "block.onnx")
        path = next(each.path for each in models.built() if each.name == name)
        if not half:
            return import_model(path)
        import onnx
        from onnxruntime.transformers.float16 import convert_float_to_float16

        halved = Path(folder) / "half.onnx"
        onnx.save(convert_float_to_float16(onnx.load(path), keep_io_types=False, op_block_list=[]), halved)
        return import_model(halved)


def _block(name: str, path: Path) -> Program:
    import torch

    from benchmarks.gpu_modules import BLOCKS as MODULES
    from benchmarks.gpu_modules import drawn

    made = drawn(name, MODULES[name], tiny=False)
    torch.onnx.export(made.module, tuple(made.inputs.values()), path, input_names=list(made.inputs), dynamo=True, verbose=False)
    return import_model(path)


def row(name: str, target: Target, *, half: bool) -> str:
    """One line of the table."""
    program = model(name, half=half)
    job = Job(program, target, "reassociates", Limits(), (), {}, lambda _: None)
    program = searched(job, program, recurrences=False).program
    binding = dict.fromkeys(program.symbols(), 8)
    deaf = replace(target, numbers={key: number for key, number in target.numbers.items() if key != "features_last"})
    prices, before = PlanPrices(target, binding), PlanPrices(deaf, binding)
    first, last = Planning(program, deaf, binding).cheapest(before), Planning(program, target, binding).cheapest(prices)
    bits = int(target.numbers["features_last"].value)
    turns = [sum(len(turned(each, kernel, bits)) for kernel in each.kernels if isinstance(kernel, Library)) for each in (first, last)]
    told, *taken = (seconds * 1e6 for seconds in (before.plan_seconds(first), *map(prices.plan_seconds, (first, last))))
    orders = sum(buffer.order is not None for buffer in last.buffers.values())
    return (f"{name:20s} {told:9.1f} {taken[0]:9.1f} {taken[1]:9.1f} {taken[0] / taken[1]:6.2f}x {turns[0]:4d} -> {turns[1]:3d} "
            f"{orders:4d} of {len(last.buffers)}")  # fmt: skip


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--target", default="nvidia-h200")
    parser.add_argument("--half", action="store_true")
    given = parser.parse_args()
    print(f"us predicted for {given.target}")
    print(f"{'program':20s} {'told':>9s} {'first':>9s} {'last':>9s} {'':7s} {'turned':>11s} values last")
    for name in given.names or [*BLOCKS, *MODELS]:
        print(row(name, get_target(given.target), half=given.half), flush=True)


if __name__ == "__main__":
    main()
