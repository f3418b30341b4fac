"""What a package's first run compiles: how many Triton functions its kernels have, shared and with one of its own for each, and the seconds
that Triton takes for them.

`python -m benchmarks.kernel_functions [MODEL ..] [--target NAME] [--json]`: the models (`python -m benchmarks.models`; names or paths) are
lowered, and the functions compiled ahead of time for the target's architecture, without a device, one after the other, as a first run does
it; both ways once, each with an empty cache. Without Triton's launchers and the driver's part, which a device adds.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks import models
from coset.backends.triton_runtime import Compiler, architecture
from coset.egraph.limits import Limits
from coset.lowering.kernels.kernel import Kernel, Plan
from coset.lowering.package import plan as package_plan
from coset.lowering.triton.launch import EmitOptions, EmittedKernel
from coset.lowering.triton.shared import emitted, functions_of
from coset.lowering.triton.source import emit, module_of
from coset.packaging.asked import Check, Lowering
from coset.packaging.lower import lower
from coset.targets.target import Target, get_target

MODELS = ("bert_12l_d192", "bert_2l", "vit_ti16_2l_sdpa", "gpt2_4l_d256_static", "llama_2l_static", "resnet50_w025", "lstm_bi")


def row(model: Path, target: Target) -> dict[str, Any]:
    """The functions of one model and their seconds, shared and alone."""
    kept: list[tuple[Sequence[Kernel], Plan, EmitOptions]] = []

    def watched(kernels: Sequence[Kernel], plan: Plan, options: EmitOptions) -> list[EmittedKernel]:
        kept.append((kernels, plan, options))
        return emitted(kernels, plan, options)

    with tempfile.TemporaryDirectory() as folder, patch.object(package_plan, "emitted", watched):
        lower(Lowering(model, target, limits=Limits(), check=Check.NONE), Path(folder) / "package")
    ((kernels, plan, options),) = kept
    ways = {"shared": emitted(kernels, plan, options), "alone": [emit(kernel, plan, options=options) for kernel in kernels]}
    found: dict[str, Any] = {"model": model.stem, "kernels": len(kernels)}
    for name, emissions in ways.items():
        own = [each for each in emissions if each.source]
        found |= {name: sum(len(functions_of(each.source)) for each in own), f"{name}_seconds": compiled(own, target)}
    return found


def compiled(emissions: Sequence[EmittedKernel], target: Target) -> float:
    """Seconds for the functions of these kernels, where nothing was compiled before."""
    where = architecture(target)
    assert where is not None, f"{target.name} has no architecture"
    with tempfile.TemporaryDirectory() as cache, patch.dict(os.environ, {"TRITON_CACHE_DIR": cache}), Compiler() as compiler:
        first = emissions[0]
        compiler.run(module_of([first]), first.launches[:1], where, {})  # the child has started, and Triton is imported
        started = time.perf_counter()
        for each in emissions[1:]:
            compiler.run(module_of([each]), each.launches, where, {})
        return time.perf_counter() - started


def main() -> None:
    """Print the table, or with --json one object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", default=MODELS)
    parser.add_argument("--target", default="nvidia-h200")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    built = {model.name: model.path for model in models.built()}
    unknown = [name for name in given.models if name not in built and not Path(name).exists()]
    if unknown:
        parser.error(f"no such model: {', '.join(unknown)}; there are {', '.join(built)}")
    file = sys.stderr if given.json else sys.stdout
    print(f"{'model':24s} {'kernels':>8s} {'alone':>12s} {'shared':>12s}", file=file)
    rows = []
    for name in given.models:
        found = row(built.get(name, Path(name)), get_target(given.target))
        rows.append(found)
        texts = (f"{found[way]:4d} {found[f'{way}_seconds']:5.1f} s" for way in ("alone", "shared"))
        print(f"{found['model']:24s} {found['kernels']:8d} {' '.join(f'{text:>12s}' for text in texts)}", file=file, flush=True)
    if given.json:
        print(json.dumps({"target": given.target, "rows": rows}))


if __name__ == "__main__":
    main()
