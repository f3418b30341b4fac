"""A bench for tuning whose clock is a function of the choice, and what the tests of tuning are about. For tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import coset.dialects  # noqa: F401  (fills the registry)
from coset.backends.profile import MeasuredAt
from coset.backends.triton_runtime import Runner
from coset.backends.tuning_profile import CompilerFacts, Tunings
from coset.comparing import timing
from coset.comparing.feeds import Feed
from coset.ir.program import Program
from coset.ir.types import F32
from coset.lowering.planning.plan import plan
from coset.lowering.triton.choice import KernelChoice
from coset.lowering.triton.launch import EmitOptions
from coset.lowering.triton.source import EmittedKernel, can_emit
from coset.targets.target import get_target
from coset.tuning.measuring import KernelBench
from coset.tuning.tunable import Tunable, tunables
from coset.tuning.tune import Tuning, tune_model
from tests.lowering.plan_cases import CASES, fold, gelu_of, op, x_

TARGET = get_target("nvidia-h200")
ROOT = Path(__file__).parents[2]
PLACE = MeasuredAt("a GPU of ours", "version 1")


def model() -> Program:
    """A pointwise kernel and one of rows."""
    x = x_("x", F32, 12, 40)
    y = gelu_of(x)
    return Program((x,), (("y", y), ("s", fold(op("multiply", y, y), "add", 1))))


def asked(**given: Any) -> Tuning:
    return Tuning(**{"model": model(), "target": TARGET, "jobs": 2, "seconds": 500.0, **given})


def kernels_of(name: str, sizes: Mapping[str, int] | None = None) -> list[Tunable]:
    return tunables([plan(CASES[name]()[0], computes=can_emit)], EmitOptions(), TARGET, sizes or {"n": 5, "s": 7})


def several() -> Program:
    """A program of which strayed prices find another form."""
    return CASES["training_step"]()[0]


# ---------------------------------------------------------------- a bench of ours


@dataclass
class FakeBench:
    """Kernels run in the interpreter; a call takes what `seconds` says of its numbers. After `calls` blocks the user presses Ctrl-C."""

    runner: Runner
    seconds: Callable[[KernelChoice], float] = lambda choice: 1.0
    broken: Callable[[KernelChoice], bool] = lambda choice: False
    calls: int = 1 << 30
    programs: Callable[[str], float] = lambda name: 1.0
    timed: list[str] = field(default_factory=list)

    def bench(self) -> KernelBench:
        return KernelBench(
            PLACE, lambda: KeptRunner(self), self.running, self.package, self.calling, self.clock, timing.Protocol(5, 9.0, 5, 1)
        )

    @contextmanager
    def running(self, _: str, emission: EmittedKernel, __: Any, ___: Any) -> Iterator[timing.Program]:
        assert emission.choice is not None
        yield _Call(self.seconds(emission.choice), emission.choice.text())

    @contextmanager
    def calling(self, folder: Path, _: Feed) -> Iterator[timing.Program]:
        yield _Call(self.programs(folder.name), folder.name)

    def package(self, folder: Path) -> AbstractContextManager[Any]:
        from coset.backends.torch_package import TorchPackage

        return TorchPackage(folder, interpreted=True)

    def clock(self, program: timing.Program, calls: int) -> list[float]:
        assert isinstance(program, _Call)
        self.calls -= 1
        if self.calls < 0:
            raise KeyboardInterrupt
        self.timed.append(program.name)
        return [program.seconds * (1.0 + 0.001 * (len(self.timed) % 3))] * calls


@dataclass(frozen=True)
class _Call:
    seconds: float
    name: str

    def __call__(self) -> None:
        """Nothing: the clock knows."""


class KeptRunner:
    """The runner of a bench, which stays open; what is broken gives other values."""

    def __init__(self, bench: FakeBench) -> None:
        self.bench = bench

    def __enter__(self) -> KeptRunner:
        return self

    def __exit__(self, *_: object) -> None:
        """It is closed by the fixture."""

    def run(self, source: str, launches: Any, arrays: Any, binding: Any) -> dict[str, Any]:
        found = self.bench.runner.run(source, launches, arrays, binding)
        numbers = dict(launches[0].constexprs)
        choice = KernelChoice(tuple(numbers.items()), launches[0].num_warps, launches[0].num_stages)
        if not self.bench.broken(choice):
            return found
        changed = {name: np.array(value) for name, value in found.items()}
        for name, value in changed.items():
            if value.dtype.kind == "f" and name not in ("x",):
                value.reshape(-1)[-1:] += 1.0
        return changed


def quicker(choice: KernelChoice) -> float:
    """A clock's opinion: the more warps the slower, the more elements a program the faster."""
    return (1.0 + choice.warps / 16) / (1.0 + sum(number for _, number in choice.numbers) / 4096)


def tuned(store: Tunings, ours: FakeBench, **given: Any) -> dict[str, Any]:
    return tune_model(asked(**given), store, bench=ours.bench())


def rows_of(store: Tunings) -> dict[str, dict[str, float]]:
    found = store.timed(TARGET.name, PLACE)
    return {key: {text: each.ratio for text, each in timed.items()} for key, timed in found.items()}


def facts(kernel: Tunable, **given: CompilerFacts) -> dict[str, CompilerFacts]:
    """Facts of all alternatives: those given by place, else all is well."""
    return {choice.text(): given.get(f"n{place}", CompilerFacts(32, 0, 1024)) for place, choice in enumerate(kernel.ranked)}
