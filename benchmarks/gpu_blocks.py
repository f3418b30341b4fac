"""What `gpu` measures of whole programs: torch eager, torch.compile, and the package that `coset lower` writes, side by side.

The blocks of issue 4 run beside what torch.compile does by itself, the models of issue 10 beside its max-autotune, which tunes products and
convolutions and replays a CUDA graph.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.gpu_clock import measure, synchronize
from benchmarks.gpu_kernels import Row, loaded, seconds, shown
from benchmarks.gpu_models import MODELS
from benchmarks.gpu_modules import BLOCKS, Block, drawn
from coset.egraph.limits import Limits
from coset.lower import Check, Lowering, lower
from coset.targets.target import get_target
from coset.timing import Protocol, ratio

KINDS: dict[str, tuple[dict[str, Callable[[bool], Block]], tuple[str, ...]]] = {
    "blocks": (BLOCKS, ("eager", "compile", "compile_graph")),
    "models": (MODELS, ("eager", "compile_max")),
}
"""Programs by kind and name, and what they are timed beside."""
OFFERED = ("ours", "ours_graph")
OURS = (*OFFERED, "ours_in_turn")  # the latter: a captured graph without branches, to see what these bring
WORSE = 4.0
"""Times the error of torch eager that ours may have (both beside the same block in f32): other roundings, not other results."""
LEAST_ERROR = 1e-5  # of norms: where eager is exact by chance
SEARCH, TINY_SEARCH = Limits(seconds=15, nodes=40000), Limits(seconds=2, nodes=2000)


def prepare(kind: str, name: str, folder: Path, target: str, device: str, *, tiny: bool) -> Row:
    """Write the package of a program at `folder`/NAME and, on a GPU, fill the compilers' caches; what it took. Others prepare theirs at
    the same time: what tunes itself by a clock must not do it now."""
    programs, rivals = KINDS[kind]
    rivals = tuple(name for name in rivals if name != "compile_max")
    made = drawn(name, programs[name], tiny=tiny)
    folder.mkdir(parents=True, exist_ok=True)
    model = folder / f"{name}.onnx"
    started = time.perf_counter()
    torch.onnx.export(made.module, tuple(made.inputs.values()), model, input_names=list(made.inputs), dynamo=True, verbose=False)
    exported = time.perf_counter()
    report = lower(Lowering(model, get_target(target), limits=TINY_SEARCH if tiny else SEARCH, check=Check.NONE), folder / name)
    lowered = time.perf_counter()
    if device == "cuda":
        _variants(name, made, folder, device, rivals)
        synchronize(device)
    codes = [kernel["code"] for kernel in report["kernels"]]
    return {
        "export_s": exported - started, "lower_s": lowered - exported, "warm_s": time.perf_counter() - lowered,
        "kernels": {code: codes.count(code) for code in sorted(set(codes))}, "stop": report["egraph"]["stop"],
    }  # fmt: skip


def _variants(
    name: str, made: Block, folder: Path, device: str, rivals: Sequence[str]
) -> tuple[dict[str, Callable[[], Any]], dict[str, str]]:
    """Each way to run the program, called until it runs as it will; and why others do not run. On the CPU torch.compile stops before it
    generates code."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    module = made.module.to(device)
    inputs = tuple(value.to(device) for value in made.inputs.values())
    gpu = device == "cuda"

    def captured(*, beside: bool = True) -> Callable[..., Any]:
        model = loaded(folder / name).to(device)
        return model.capture(*inputs, beside=beside) if gpu else model  # type: ignore[no-any-return]

    ways: dict[str, Callable[[], Callable[..., Any]]] = {
        "eager": lambda: module,
        "compile": lambda: torch.compile(module, backend="inductor" if gpu else "aot_eager"),
        "compile_graph": lambda: torch.compile(module, mode="reduce-overhead") if gpu else module,
        "compile_max": lambda: torch.compile(module, mode="max-autotune") if gpu else module,
        "ours": lambda: loaded(folder / name).to(device),
        "ours_graph": captured,
        "ours_in_turn": lambda: captured(beside=False),
    }
    found: dict[str, Callable[[], Any]] = {}
    failed: dict[str, str] = {}
    for key in (*rivals, *OURS):
        try:
            function = ways[key]()
            run = _caller(function, inputs)
            for _ in range(3):  # reduce-overhead records its graph at the second call
                run()
            synchronize(device)
            found[key] = run
        except Exception as error:  # a rival that does not run is a fact about it; ours is a failure of the row
            failed[key] = f"{type(error).__name__}: {error}"[:500]
    return found, failed


def _caller(function: Callable[..., Any], inputs: Sequence[Tensor]) -> Callable[[], Any]:
    def run() -> Any:
        with torch.no_grad():
            return function(*inputs)

    return run


def timed(kind: str, name: str, folder: Path, device: str, protocol: Protocol, *, tiny: bool) -> Row:
    """The row of a program whose package lies at `folder`/NAME."""
    known, rivals = KINDS[kind]
    made = drawn(name, known[name], tiny=tiny)
    expected = _flat(_reference(made, device))
    programs, failed = _variants(name, made, folder, device, rivals)
    errors = {key: _error(_flat(run()), expected) for key, run in programs.items()}
    allowed = max(WORSE * errors.get("eager", 0.0), LEAST_ERROR)
    wrong = [key for key in OURS if key in errors and not errors[key] <= allowed]
    times = measure(programs, protocol, device)
    row: Row = {"block": name, **seconds(times), "error": errors, "failed": failed, "wrong": wrong, "eager_allowed_tf32": False}
    mine = min((key for key in OFFERED if key in times), key=lambda key: times[key].median, default=None)
    if mine is not None:
        row["ours_over"] = {key: shown(ratio(times[key], times[mine])) for key in rivals if key in times}
        row["ours_is"] = mine
    return row


def _reference(made: Block, device: str) -> Any:
    """The block in f32 from the same weights and inputs."""
    with torch.no_grad():
        module = copy.deepcopy(made.module).float().to(device)
        inputs = [value.to(device) for value in made.inputs.values()]
        return module(*(value.float() if value.is_floating_point() else value for value in inputs))


def _flat(results: Any) -> list[Tensor]:
    """The outputs in order, as they are now."""
    return [each.double().clone() for each in (results if isinstance(results, tuple | list) else (results,))]


def _error(found: Sequence[Tensor], expected: Sequence[Tensor]) -> float:
    """The largest norm of a difference over the norm of what is expected; infinite where something is no number."""
    errors = [float((a - b).norm() / b.norm()) for a, b in zip(found, expected, strict=True)]
    return max((error if error == error else float("inf") for error in errors), default=0.0)
