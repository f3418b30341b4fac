"""What a forward pass keeps for its backward pass under limits, and what that costs: `max_kept` of coset's torch.compile.

`python -m benchmarks.step_kept [NAME ..] [--shares 0.5 0.25 0] [--target NAME] [--device cpu|cuda] [--json]`: modules of real sizes
(`benchmarks/step_memory.py`), compiled by coset with what torch's partitioner keeps as the limit's whole. Bytes and slowdown are those that
coset predicts for the target, against torch's choice; the comparison of parts is off, for it would take minutes at these sizes (tests
compare gradients at small ones). On a GPU the bytes that are allocated between forward and backward are measured too, and the seconds of
a step, in turn with those of torch's choice.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import torch

import coset
from benchmarks.gpu_clock import measure
from benchmarks.step_memory import CASES, Case
from coset.comparing.timing import Protocol, ratio
from coset.compiling import forget_graphs
from coset.frontends.torch.kept import Keeping, Kept

Step = Callable[[], Any]


def rows(name: str, shares: list[float], target: str, device: str) -> list[dict[str, Any]]:
    """One row without a limit, and one for each share of what torch keeps."""
    torch.manual_seed(sum(map(ord, name)))
    case = CASES[name](False)
    case = Case(case.module.to(device).train(), tuple(each.to(device) for each in case.inputs))
    free = row(name, case, None, target, device)
    return [free, *(row(name, case, int(share * free["torch_bytes"]), target, device) for share in shares)]


def row(name: str, case: Case, limit: int | None, target: str, device: str) -> dict[str, Any]:
    """What is kept under one limit."""
    call = compiled(case, target, device, max_kept=limit)
    loss = call()
    kept = next(graph.kept for graph in coset.compiled_graphs() if graph.kind == "forward")
    assert isinstance(kept, Kept), name
    found = {"name": name, "limit": limit, "bytes": kept.bytes, "torch_bytes": kept.default_bytes}
    found["slowdown"] = kept.seconds / kept.default_seconds
    if device == "cuda":
        found |= on_gpu(case, call, target)
    del loss
    return found


def compiled(case: Case, target: str, device: str, **options: Any) -> Step:
    """The forward pass to a loss, as a function of nothing."""
    torch._dynamo.reset()
    forget_graphs()
    code = "triton" if device == "cuda" else "torch"
    module = coset.compile(case.module, dynamic=False, fullgraph=True, code=code, target=target, check=False, **options)
    return lambda: module(*case.inputs).square().mean()


def on_gpu(case: Case, call: Step, target: str) -> dict[str, Any]:
    """Allocated bytes between forward and backward, and the seconds of a step against those of torch's choice."""
    with patch.object(Keeping, "choose", lambda *_: 1.0):
        default = compiled(case, target, "cuda")
        default().backward()
    steps = {"kept": lambda: call().backward(), "torch": lambda: default().backward()}
    timed = measure(steps, Protocol(15, 20.0), "cuda")
    against = ratio(timed["kept"], timed["torch"])
    between = {key: between_passes(each) for key, each in (("measured_bytes", call), ("torch_measured_bytes", default))}
    return {**between, "slowdown_measured": [against.value, against.low, against.high]}


def between_passes(call: Step) -> int:
    """Bytes that are allocated after a forward pass and before its backward pass."""
    call()
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    loss = call()
    torch.cuda.synchronize()
    after = torch.cuda.memory_allocated()
    del loss
    return int(after - before)


def line(found: dict[str, Any]) -> str:
    """One row of the table."""
    limit = "none" if found["limit"] is None else f"{found['limit'] / 1e6:,.1f}"
    text = f"{found['name']:12s} {limit:>9s} {found['torch_bytes'] / 1e6:9,.1f} {found['bytes'] / 1e6:9,.1f} {found['slowdown']:9.3f}"
    if "slowdown_measured" in found:
        value, low, high = found["slowdown_measured"]
        measured = found["torch_measured_bytes"] / 1e6, found["measured_bytes"] / 1e6
        text += f"  measured {measured[0]:,.1f} -> {measured[1]:,.1f}, {value:.3f} [{low:.3f}, {high:.3f}]"
    return text


def main() -> None:
    """Print the table, or with --json one object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=", ".join(CASES))
    parser.add_argument("--shares", type=float, nargs="*", default=[0.5, 0.25, 0.0])
    parser.add_argument("--target", default="nvidia-h200")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", choices=("cpu", "cuda"))
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    unknown = [name for name in given.names if name not in CASES]
    if unknown:
        parser.error(f"no such module: {', '.join(unknown)}; there are {', '.join(CASES)}")
    found: list[dict[str, Any]] = []
    print(
        f"{'module':12s} {'limit MB':>9s} {'torch MB':>9s} {'kept MB':>9s} {'predicted':>9s}", file=sys.stderr if given.json else sys.stdout
    )
    for name in given.names or CASES:
        for each in rows(name, given.shares, given.target, given.device):
            found.append(each)
            print(line(each), flush=True, file=sys.stderr if given.json else sys.stdout)
    if given.json:
        print(json.dumps({"device": given.device, "target": given.target, "rows": found}))


if __name__ == "__main__":
    main()
