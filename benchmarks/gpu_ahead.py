"""Compile what `gpu` will run on a machine that has no GPU, so that the minutes of one that is lent go to running.

    python -m benchmarks.gpu_ahead [--part NAME ..] [--only NAME ..] [--tune] [--target nvidia-h200]
        parts: bandwidth, matmul, attention, models, blocks (all)

It needs the Triton of the other machine (a compiled kernel is found by the bytes of Triton, too), and writes `.triton.tar.xz` in the
repository's root, which `gpu.sh` unpacks there. What a program's package holds depends on limits of the search that are seconds: a kernel
that comes out another way there is compiled there.
"""

from __future__ import annotations

import argparse
import os
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
CACHE = Path("/tmp/coset-triton")  # the same place on both machines: what is in a cache is named by whole paths
PACKED = ROOT / ".triton.tar.xz"
PARTS = ("bandwidth", "matmul", "attention", "models", "blocks")
KEPT = (".json", ".cubin")  # texts of the steps on the way to these are not needed to run


def main() -> int:
    """Compile, pack, and say how many kernels there are."""
    given = _arguments()
    cache, packed = Path(given.cache), Path(given.out)
    os.environ["TRITON_CACHE_DIR"] = str(cache)
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    _without_gpu(given.target)
    for part in given.part or PARTS:
        for name in _programs(part, given) if part in ("models", "blocks") else _kernels(part, given):
            print(f"{part} {name}: {sum(1 for _ in cache.iterdir())} kernels", file=sys.stderr, flush=True)
    with tarfile.open(packed, "w:xz") as archive:
        for path in sorted(cache.rglob("*")):
            if path.suffix in KEPT:
                archive.add(path, path.relative_to(cache))
    print(f"{packed.name}: {packed.stat().st_size / 1e6:.1f} MB")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", action="append", choices=PARTS)
    parser.add_argument("--only", action="append", default=[], help="only these groups, products, attentions or programs")
    parser.add_argument("--tune", action="store_true", help="other tiles of products and attentions too")
    parser.add_argument("--target", default="nvidia-h200")
    parser.add_argument("--cache", default=str(CACHE), help="where the kernels lie on both machines")
    parser.add_argument("--out", default=str(PACKED))
    return parser.parse_args()


def _without_gpu(target: str) -> None:
    """Give Triton a driver that knows what it would compile for, and can do nothing else."""
    from triton.backends.compiler import GPUTarget
    from triton.runtime import driver

    from coset.backends.triton_runtime import architecture
    from coset.targets.target import get_target

    name = architecture(get_target(target))
    if name is None or not name.startswith("sm_"):
        raise SystemExit(f"the target {target} is no GPU of NVIDIA's: give one that is")
    machine = GPUTarget("cuda", int(name.removeprefix("sm_")), 32)
    driver.set_active(
        SimpleNamespace(get_current_target=lambda: machine, get_current_device=lambda: 0, get_current_stream=lambda _: 0)  # type: ignore[arg-type]
    )


def _kernels(part: str, given: argparse.Namespace) -> Iterator[str]:
    """The cases of a part of single kernels, each when it is compiled."""
    from benchmarks.gpu_attention import attention_forms
    from benchmarks.gpu_kernels import NOWHERE, Kernels, product_forms
    from benchmarks.gpu_programs import ATTENTION, BANDWIDTH, PRODUCTS
    from coset.backends.triton_runtime import Device
    from coset.ir.errors import CosetError

    for case in {"bandwidth": BANDWIDTH, "matmul": PRODUCTS, "attention": ATTENTION}[part]:
        if given.only and case.name not in given.only:
            continue
        kernels = Kernels(case, NOWHERE, given.target)
        forms = product_forms(kernels, tiny=False, tune=given.tune) if part == "matmul" else {}
        forms = attention_forms(kernels, tune=given.tune, tiny=False)[1] if part == "attention" else forms
        texts = [(kernels.source(), kernels.launches)]
        for choice, options in forms.values():
            try:
                texts.append(kernels.other(choice, options))
            except CosetError:  # a form that does not fit is said to by `gpu`
                continue
        for source, launches in texts:
            with Device(source) as module:
                module.compile(launches, kernels.tensors, {})
        yield case.title


def _programs(part: str, given: argparse.Namespace) -> Iterator[str]:
    """The programs of a part, each when its package is compiled."""
    from benchmarks.gpu import PROGRAMS
    from benchmarks.gpu_blocks import compiled, prepare

    names: Sequence[str] = PROGRAMS[part]
    for name in names:
        if given.only and name not in given.only:
            continue
        with tempfile.TemporaryDirectory() as place:
            prepare(part, name, Path(place), given.target, "cpu", tiny=False)
            compiled(Path(place) / name)
        yield name


if __name__ == "__main__":
    sys.exit(main())
