"""Loops over a sequence as one kernel each, beside the same loops with their rounds one after the other.

`python -m benchmarks.recurrences [NAME ..] [--target NAME] [--device cpu|cuda] [--json]`: each program is lowered both ways. Without a GPU
only what coset predicts is printed, in us: predictions, of which none was measured, and the seconds that lowering took. With `--device
cuda` both packages run on the GPU in turn.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.recurrent_programs import Layer, Scan, scans
from coset.egraph.limits import Limits
from coset.packaging.asked import Check, Lowering
from coset.packaging.lower import lower
from coset.pricing.looping import Loops
from coset.targets.target import Target, get_target

PROGRAMS: dict[str, Scan | Layer] = {
    **{f"{name}, 64 rounds": scan for name, scan in scans(64, 16, 128, 64).items()},
    **{f"{name}, 512 rounds": scan for name, scan in scans(512, 16, 128, 64).items() if name in ("moving average", "state space", "RNN")},
    "RNN of 128 in f32, 64 rounds": scans(64, 16, 128, 128)["RNN"],
    "LSTM of 128 in f16, 64 rounds": scans(64, 16, 128, 128, "float16")["LSTM"],
    "ONNX LSTM, both ways, 50 steps": Layer("LSTM", 50, 4, 64, 64, "bidirectional"),
    "ONNX GRU, 24 steps": Layer("GRU", 24, 4, 64, 64),
    "ONNX LSTM, length unknown": Layer("LSTM", None, 4, 64, 64),
}
WAYS = ("unrolled", "one kernel", "chosen")


def way(name: str) -> Any:
    """The context in which loops become this."""
    return nullcontext() if name == "chosen" else patch.object(Loops, "_pays", lambda *_: name == "one kernel")


def row(name: str, target: Target, device: str) -> dict[str, Any]:
    """What one program takes in each way."""
    found: dict[str, Any] = {"program": name}
    with tempfile.TemporaryDirectory() as folder:
        model = PROGRAMS[name].write(Path(folder))
        for each in WAYS:
            package = Path(folder) / each.replace(" ", "_")
            with way(each):
                report = lower(Lowering(model, target, limits=Limits(seconds=20, nodes=4000), check=Check.NONE), package)
            kernels = [kernel["name"] for kernel in report["kernels"]]
            found[each] = {"predicted": report["cost"]["output"], "kernels": len(kernels), "seconds": sum(report["seconds"].values())}
            found[each]["recurrences"] = sum("recurrence" in kernel for kernel in kernels)
        if device == "cuda":
            found["measured"] = measured(Path(folder))
    return found


def measured(folder: Path) -> dict[str, Any]:
    """Median seconds of both packages on the GPU, in turn."""
    import torch

    from benchmarks.gpu_clock import measure
    from coset.backends.torch_loaded import LoadedPackage
    from coset.comparing.timing import Protocol

    calls = {}
    for each in WAYS[:2]:
        package = LoadedPackage(folder / each.replace(" ", "_"), "cuda")
        given = []
        for one in package.manifest["inputs"]:
            shape = [dim if isinstance(dim, int) else 64 for dim in one["shape"]]
            given.append(0.5 * torch.randn(shape, device="cuda").to(getattr(torch, one["dtype"])))
        calls[each] = lambda package=package, given=given: package(given)
    timed = measure(calls, Protocol(15, 20.0), "cuda")
    return {name: timing.median for name, timing in timed.items()}


def text(found: dict[str, Any], way_: str) -> str:
    """One way's figures; none for one kernel where the loop cannot be one."""
    if way_ == "one kernel" and not found["recurrences"]:
        return "-"
    return f"{1e6 * found['predicted']:.1f} {found['kernels']:6d} {found['seconds']:7.1f}"


def main() -> None:
    """Print the table, or with --json one object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="*", default=list(PROGRAMS))
    parser.add_argument("--target", default="nvidia-h200")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    unknown = [name for name in given.programs if name not in PROGRAMS]
    if unknown:
        parser.error(f"no such program: {', '.join(unknown)}; there are {'; '.join(PROGRAMS)}")
    file = sys.stderr if given.json else sys.stdout
    heads = "".join(f"{f'{each}: us, kernels, s':>32s}" for each in WAYS)
    print(f"predicted for {given.target}, not measured\n{'program':34s}{heads}", file=file)
    rows = []
    for name in given.programs:
        found = row(name, get_target(given.target), given.device)
        rows.append(found)
        texts = [text(found[each], each) for each in WAYS]
        timed = "".join(f"  {key} {1e6 * seconds:.1f} us measured" for key, seconds in found.get("measured", {}).items())
        print(f"{name:34s}{''.join(f'{each:>32s}' for each in texts)}{timed}", file=file, flush=True)
    if given.json:
        print(json.dumps({"target": given.target, "rows": rows}))


if __name__ == "__main__":
    main()
