"""Bytes moved and kernels of plans, beside the graph one op at a time and the least possible. Needs no GPU.

`python -m benchmarks.plans [NAME ..] [--dims 16]`: NAMEs are cases of tests/lowering/plan_cases.py or built models (default: the
blocks that issue 4 names); dim symbols are bound to `--dims`. A case is a small program: its dims are symbols or small numbers.
"""

from __future__ import annotations

import argparse
from collections import Counter

from benchmarks import models
from coset.frontends.onnx.model import import_model
from coset.ir.program import Program
from coset.lowering.planning.plan import plan
from coset.lowering.planning.traffic import least, traffic, unfused
from tests.lowering.plan_cases import CASES

BLOCKS = (
    "mlp",
    "bert_2l_d128_dyn",
    "llama_2l_static",
    "resnet50",
    "unet_gn",
    "dlrm",
    "train_mlp",
    "vit_ti16_2l_sdpa",
    "gpt2_4l_d256_static",
)


def programs(names: list[str]) -> dict[str, Program]:
    """The programs called `names`: cases, and models that are built."""
    built = {model.name: model.path for model in models.built()}
    found = {}
    for name in names:
        if name in CASES:
            found[name] = CASES[name]()[0]
        elif name in built:
            found[name] = import_model(built[name])
        else:
            print(f"{name}: no such case, and no such model is built (python -m benchmarks.models)")
    return found


def row(name: str, program: Program, dims: int) -> str:
    """One line of the table."""
    planned = plan(program)
    binding = dict.fromkeys(planned.symbols, dims)
    ours, plain, floor = traffic(planned, binding), unfused(program, binding), least(planned, binding)
    kinds = Counter(type(kernel).__name__ for kernel in planned.kernels)
    shape = "/".join(str(kinds[kind]) for kind in ("Pointwise", "Rows", "Product", "Attention", "Library"))
    return (f"{name:24s} {ours.kernels:5d} {plain.kernels:5d}  {shape:>14s}  {ours.bytes / 1e6:9.3f} {plain.bytes / 1e6:9.3f} "
            f"{floor / 1e6:9.3f}  {ours.bytes / floor:6.2f} {plain.bytes / floor:6.2f}  {planned.arena / 1e6:8.3f}")  # fmt: skip


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--dims", type=int, default=1024, help="what dim symbols are bound to")
    given = parser.parse_args()
    print(f"dim symbols are {given.dims}; MB; p/r/m/l: pointwise, rows, product, library; moved / least, ops / least")
    numbers, ratios = "{:>9s} {:>9s} {:>9s}".format("moved", "unfused", "least"), "{:>6s} {:>6s}".format("moved", "ops")
    print(f"{'program':24s} {'plan':>5s} {'ops':>5s}  {'p/r/m/l':>14s}  {numbers}  {ratios}  {'arena':>8s}")
    for name, program in programs(given.names or [*CASES, *BLOCKS]).items():
        print(row(name, program, given.dims))


if __name__ == "__main__":
    main()
