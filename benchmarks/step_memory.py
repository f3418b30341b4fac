"""Training steps in a share of the memory that their temporaries take by default: what `max_memory` keeps, and what it costs.

`python -m benchmarks.step_memory [NAME ..] [--share 0.5] [--device cpu|cuda] [--json]`: loss and gradients of small models are one graph
(`torch.func.grad_and_value`), compiled by coset twice, and compared with torch. On the CPU the sizes are tiny and the kernels run as torch
functions; bytes and slowdown are those that coset predicts for the target. On a GPU both programs are timed in turn, and `measured` is what
torch's allocator saw at most beyond inputs and results. The models `train_*` (`python -m benchmarks.models`) are lowered as files.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import coset
from benchmarks import models
from benchmarks.gpu_clock import measure
from benchmarks.gpu_modules import Bottleneck, Classifier, Transformer, UNet
from coset.comparing.timing import Protocol, ratio
from coset.compiling import forget_graphs
from coset.ir.errors import CosetError
from coset.packaging.asked import Lowering
from coset.packaging.lower import lower
from coset.targets.target import get_target


class Cnn(nn.Module):
    """Two convolutions, the mean over places, a classifier."""

    def __init__(self, channels: int, classes: int) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, channels, 3, padding=1), nn.Conv2d(channels, 2 * channels, 3, stride=2, padding=1)
        self.head = nn.Linear(2 * channels, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(F.relu(self.second(F.relu(self.first(x)))).mean((2, 3)))


class Fallen(Exception):
    """torch runs a part of the step."""


@dataclass(frozen=True)
class Case:
    """A module and its inputs, for one size."""

    module: nn.Module
    inputs: tuple[Tensor, ...]


def mlp(tiny: bool) -> Case:
    rows, widths = (64, (32, 64, 64, 10)) if tiny else (8192, (1024, 4096, 4096, 1000))
    return Case(Classifier(*widths), (torch.randn(rows, widths[0]),))


def cnn(tiny: bool) -> Case:
    batch, size, channels = (8, 16, 16) if tiny else (256, 64, 64)
    return Case(Cnn(channels, 10), (torch.randn(batch, 3, size, size),))


def transformer(tiny: bool) -> Case:
    batch, length, width, heads = (2, 6, 32, 4) if tiny else (16, 512, 768, 12)
    return Case(Transformer(width, heads, 4 * width), (torch.randn(batch, length, width),))


def bottleneck(tiny: bool) -> Case:
    batch, channels, inner, size = (2, 16, 4, 8) if tiny else (64, 256, 64, 56)
    return Case(Bottleneck(channels, inner, channels).eval(), (torch.randn(batch, channels, size, size),))


def unet(tiny: bool) -> Case:
    batch, channels, size = (2, 16, 8) if tiny else (16, 128, 64)
    return Case(UNet(channels, 4 * channels), (torch.randn(batch, channels, size, size), torch.randn(batch, 4 * channels)))


CASES: dict[str, Callable[[bool], Case]] = {make.__name__: make for make in (mlp, cnn, transformer, bottleneck, unet)}


def built(name: str, path: Path, share: float) -> dict[str, Any]:
    """The same of a step that is an ONNX model, as `coset lower` lowers it; the error is that of its own comparison."""
    with tempfile.TemporaryDirectory() as folder:
        asked = Lowering(path, get_target("nvidia-h200"), code="torch")
        default = int(lower(asked, Path(folder) / "default")["memory"]["default"]["bytes"])
        found: dict[str, Any] = {"name": name, "default_bytes": default, "limit": int(default * share)}
        try:
            report = lower(replace(asked, max_memory=found["limit"]), Path(folder) / "kept")
        except CosetError as error:
            return {**found, "kept": False, "why": error.message}
    chosen, check = report["memory"]["chosen"], report["check"]
    kept = {"kept": True, "bytes": chosen["bytes"], "again": chosen["again"], "slowdown": report["memory"]["slowdown"]}
    return {**found, **kept, "error": check["max_rel"]}


def row(name: str, share: float, device: str) -> dict[str, Any]:
    """What one step takes by default and under the limit."""
    torch.manual_seed(sum(map(ord, name)))
    case = CASES[name](device == "cpu")
    module, inputs = case.module.to(device), tuple(each.to(device) for each in case.inputs)
    parameters = {key: value.detach() for key, value in module.named_parameters()}

    def loss(parameters: dict[str, Tensor], *inputs: Tensor) -> Tensor:
        return torch.func.functional_call(module, parameters, inputs).square().mean()

    step = torch.func.grad_and_value(loss)
    code = "triton" if device == "cuda" else "torch"
    wanted = flat(step(parameters, *inputs))

    def compiled(**options: Any) -> tuple[Callable[..., Any], Any]:
        torch._dynamo.reset()
        forget_graphs()
        call = coset.compile(lambda *given: step(*given), dynamic=False, fullgraph=True, code=code, seconds=20.0, **options)
        call(parameters, *inputs)
        (graph,) = coset.compiled_graphs()
        if graph.fallbacks:
            raise Fallen("; ".join(each.reason for each in graph.fallbacks))
        (part,) = graph.parts
        return call, part.memory

    plain, memory = compiled()
    default = int(memory["default"]["bytes"])
    found: dict[str, Any] = {"name": name, "default_bytes": default, "limit": int(default * share)}
    times = {"default": plain}
    found["default_error"] = error(flat(plain(parameters, *inputs)), wanted)
    try:
        kept, memory = compiled(max_memory=found["limit"])
    except Fallen as why:
        return {**found, "kept": False, "why": str(why)}
    times["kept"] = kept
    found |= {"kept": True, "bytes": memory["chosen"]["bytes"], "again": memory["chosen"]["again"], "slowdown": memory["slowdown"]}
    found["error"] = error(flat(kept(parameters, *inputs)), wanted)
    if device == "cuda":
        for key, call in times.items():
            found[f"{key}_measured"] = peak(lambda call=call: call(parameters, *inputs))
        timed = measure({key: lambda call=call: call(parameters, *inputs) for key, call in times.items()}, Protocol(15, 20.0), device)
        against = ratio(timed["kept"], timed["default"])
        found["slowdown_measured"] = [against.value, against.low, against.high]
    return found


def flat(step: Any) -> list[Tensor]:
    """The loss, then the gradients."""
    gradients, value = step
    return [value, *gradients.values()]


def error(found: list[Tensor], wanted: list[Tensor]) -> float:
    """The largest difference, as a share of the largest element of its tensor; of one that is nothing but rounding, such as the gradient
    of the keys' bias, as a share of a thousandth of the largest gradient."""
    least = 1e-3 * max(float(each.abs().max()) for each in wanted[1:])
    return max(float((a - b).abs().max()) / max(least, float(b.abs().max())) for a, b in zip(found, wanted, strict=True))


def peak(call: Callable[[], Any]) -> int:
    """Bytes that a call takes at most beyond what is there before and after it."""
    kept = call()
    torch.cuda.synchronize()
    del kept
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    results = call()
    torch.cuda.synchronize()
    after, most = torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated()
    del results
    return int(most - max(before, after))


def line(found: dict[str, Any]) -> str:
    """One row of the table."""
    head = f"{found['name']:12s} {found['default_bytes']:13,d} {found['limit']:13,d}"
    if not found["kept"]:
        return f"{head}  {found['why']}"
    text = f"{head} {found['bytes']:13,d} {found['bytes'] / found['default_bytes']:6.2f} {found['again']:6d}"
    text += f" {found['slowdown']:9.2f} {found['error']:9.1e}"
    if "slowdown_measured" in found:
        value, low, high = found["slowdown_measured"]
        text += f"  measured {found['default_measured']:,d} -> {found['kept_measured']:,d}, {value:.2f} [{low:.2f}, {high:.2f}]"
    return text


def main() -> None:
    """Print the table, or with --json one object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--share", type=float, default=0.5)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", choices=("cpu", "cuda"))
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    files = {model.name: model.path for model in models.built() if model.name.startswith("train_")}
    given.names = given.names or [*files, *CASES]
    unknown = [name for name in given.names if name not in CASES and name not in files]
    if unknown:
        parser.error(f"no such step: {', '.join(unknown)}; there are {', '.join((*files, *CASES))}")
    rows = []
    if not given.json:
        print(
            f"{'step':12s} {'default B':>13s} {'limit B':>13s} {'kept B':>13s} {'share':>6s} {'again':>6s} {'predicted':>9s} {'error':>9s}"
        )
    for name in given.names:
        rows.append(built(name, files[name], given.share) if name in files else row(name, given.share, given.device))
        if not given.json:
            print(line(rows[-1]), flush=True)
    if given.json:
        print(json.dumps({"device": given.device, "share": given.share, "steps": rows}))


if __name__ == "__main__":
    main()
