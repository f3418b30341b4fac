"""What `gpu` measures of whole programs: torch eager, torch.compile, and the package that `coset lower` writes, side by side.

The blocks of issue 4 run beside what torch.compile does by itself, the models of issue 10 beside its max-autotune too, which tunes products
and convolutions and replays a CUDA graph.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.gpu_clock import measure, profiled, synchronize, tuned_in_turn
from benchmarks.gpu_kernels import Row, furthest, loaded, seconds, shown
from benchmarks.gpu_models import MODELS
from benchmarks.gpu_modules import BLOCKS, Block, drawn
from benchmarks.gpu_turn import turn
from coset.comparing.timing import Protocol, ratio
from coset.egraph.limits import Limits
from coset.packaging.asked import Check, Lowering
from coset.packaging.lower import lower
from coset.targets.target import get_target

KINDS: dict[str, tuple[dict[str, Callable[[bool], Block]], tuple[str, ...]]] = {
    "blocks": (BLOCKS, ("eager", "compile", "compile_graph")),
    "models": (MODELS, ("eager", "compile_graph", "compile_max")),
}
"""Programs by kind and name, and what they are timed beside."""
OFFERED = ("ours", "ours_graph")
OURS = (*OFFERED, "ours_in_turn")  # the latter: a captured graph without branches, to see what these bring
WORSE = 4.0
"""Times the error of torch eager that ours may have (both beside the same block in f32): other roundings, not other results."""
SHOWN = 40  # kernels of a profile
LEAST_ERROR = 1e-5  # of norms: where eager is exact by chance
SEARCH, TINY_SEARCH = Limits(seconds=15, nodes=40000), Limits(seconds=2, nodes=2000)


def prepare(kind: str, name: str, folder: Path, target: str, device: str, *, tiny: bool) -> Row:
    """Write the package of a program at `folder`/NAME and, for a GPU, compile its kernels, which takes the host's cores only; what it
    took, and the seconds of a run that are predicted."""
    programs, _ = KINDS[kind]
    made = drawn(name, programs[name], tiny=tiny)
    folder.mkdir(parents=True, exist_ok=True)
    model = folder / f"{name}.onnx"
    started = time.perf_counter()
    torch.onnx.export(made.module, tuple(made.inputs.values()), model, input_names=list(made.inputs), dynamo=True, verbose=False)
    exported = time.perf_counter()
    report = lower(Lowering(model, get_target(target), limits=TINY_SEARCH if tiny else SEARCH, check=Check.NONE), folder / name)
    lowered = time.perf_counter()
    if device == "cuda":
        compiled(folder / name)
    codes = [kernel["code"] for kernel in report["kernels"]]
    return {
        "export_s": exported - started, "lower_s": lowered - exported, "compile_s": time.perf_counter() - lowered,
        "kernels": {code: codes.count(code) for code in sorted(set(codes))}, "stop": report["egraph"]["stop"],
        "predicted_s": report["cost"]["output"],
    }  # fmt: skip


def compiled(package: Path) -> None:
    """Fill Triton's cache with the package's kernels for sizes that all are known: the program is run over tensors that have no memory, and
    its kernels are compiled where they would be started."""
    model = loaded(package).to("meta")

    def start(kernel: Any, grid: tuple[int, ...], *arguments: Any, **numbers: Any) -> None:
        if all(grid):
            kernel.warmup(*arguments, grid=grid, **numbers)

    model.program.__globals__["start"] = start
    model(*(torch.empty([int(size) for size in one.shape], dtype=one.dtype, device="meta") for one in model.inputs))


class Ways:
    """The ways to run a program, by name; why others do not run is in `failed`. Where there is no GPU, torch.compile stops before it
    generates code."""

    def __init__(self, name: str, made: Block, folder: Path, device: str) -> None:
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        self.device, self.package = device, folder / name
        self.module = made.module.to(device)
        self.inputs = tuple(value.to(device) for value in made.inputs.values())
        self.programs: dict[str, Callable[[], Any]] = {}
        self.failed: dict[str, str] = {}

    def add(self, keys: Sequence[str]) -> None:
        """Make each, and call it until it runs as it will."""
        for key in keys:
            try:
                run = _caller(self._function(key), self.inputs)
                for _ in range(3):  # reduce-overhead records its graph at the second call
                    run()
                synchronize(self.device)
                self.programs[key] = run
            except Exception as error:  # a rival that does not run is a fact about it; ours is a failure of the row
                self.failed[key] = f"{type(error).__name__}: {error}"[:500]

    def _function(self, key: str) -> Callable[..., Any]:
        gpu = self.device == "cuda"
        modes = {"compile": {}, "compile_graph": {"mode": "reduce-overhead"}, "compile_max": {"mode": "max-autotune"}}
        if key == "eager":
            return self.module
        if key in modes:
            return torch.compile(self.module, **(modes[key] if gpu else {"backend": "aot_eager"}))  # type: ignore[call-overload,no-any-return]
        model = loaded(self.package).to(self.device)
        return model if key == "ours" or not gpu else model.capture(*self.inputs, beside=key == "ours_graph")  # type: ignore[no-any-return]


def _caller(function: Callable[..., Any], inputs: Sequence[Tensor]) -> Callable[[], Any]:
    def run() -> Any:
        with torch.no_grad():
            return function(*inputs)

    return run


def measured(kind: str, name: str, folder: Path, target: str, device: str, protocol: Protocol, *, tiny: bool) -> Iterator[Row]:
    """What is known of a program, row by row; each adds to the ones before."""
    yield {"prepared": prepare(kind, name, folder, target, device, tiny=tiny)}
    yield from timed(kind, name, folder, device, protocol, tiny=tiny)


def timed(kind: str, name: str, folder: Path, device: str, protocol: Protocol, *, tiny: bool) -> Iterator[Row]:
    """The row of a program whose package lies at `folder`/NAME: at first beside torch eager alone, then beside the others one by one, which
    may take long to compile. What other processes of this run do on the GPU waits for what is timed here."""
    known, rivals = KINDS[kind]
    made = drawn(name, known[name], tiny=tiny)
    with turn():
        expected = _flat(_reference(made, device))
        ways = Ways(name, made, folder, device)
        ways.add(("eager", *OURS))
        row = _row(name, ways, expected, protocol)
        profiles = _profiles(ways, ("eager", *OFFERED[-1:]))
    yield {**row, "profile": profiles}
    tuned_in_turn()
    for rival in rivals[1:]:
        ways.add((rival,))
        with turn():
            row = _row(name, ways, expected, protocol)
            profiles |= _profiles(ways, (rival,))
        yield {**row, "profile": profiles}


def _row(name: str, ways: Ways, expected: Sequence[Tensor], protocol: Protocol) -> Row:
    errors = {key: furthest(_flat(run()), expected) for key, run in ways.programs.items()}
    allowed = max(WORSE * errors.get("eager", 0.0), LEAST_ERROR)
    wrong = [key for key in OURS if key in errors and not errors[key] <= allowed]
    times = measure(ways.programs, protocol, ways.device)
    row: Row = {"block": name, **seconds(times), "error": errors, "failed": ways.failed, "wrong": wrong, "eager_allowed_tf32": False}
    mine = min((key for key in OFFERED if key in times), key=lambda key: times[key].median, default=None)
    if mine is not None:
        row["ours_over"] = {key: shown(ratio(times[key], times[mine])) for key in times if key not in OURS}
        row["ours_is"] = mine
    return row


def _profiles(ways: Ways, keys: Sequence[str]) -> Row:
    """Where the time of a call goes, kernel by kernel: [times started, seconds], the most expensive first."""
    return {key: dict(list(profiled(ways.programs[key]).items())[:SHOWN]) for key in keys if ways.device == "cuda" and key in ways.programs}


def _reference(made: Block, device: str) -> Any:
    """The block in f32 from the same weights and inputs."""
    with torch.no_grad():
        module = copy.deepcopy(made.module).float().to(device)
        inputs = [value.to(device) for value in made.inputs.values()]
        return module(*(value.float() if value.is_floating_point() else value for value in inputs))


def _flat(results: Any) -> list[Tensor]:
    """The outputs in order, as they are now."""
    return [each.double().clone() for each in (results if isinstance(results, tuple | list) else (results,))]
