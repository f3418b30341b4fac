"""A package's plan under a limit of memory: the cheapest of several equal programs, with kernels launched again where they must be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from coset.ir.errors import CosetError
from coset.ir.program import Program
from coset.lowering.arranging.recomputing import fewest_bytes, recomputed
from coset.lowering.kernels.kernel import Plan
from coset.lowering.kernels.memory import live_bytes
from coset.pricing.plan_price import PlanPrices
from coset.pricing.windows import Planning
from coset.searching.memory import PRICES
from coset.searching.regionwise import Solved
from coset.searching.solving import finish
from coset.searching.task import Task

Solve = Callable[[float], Solved]


@dataclass(frozen=True)
class PlannedPackage:
    """A program and its plan, with what `coset lower` reports of its temporaries."""

    solved: Solved
    program: Program
    folded: int
    plan: Plan | None
    memory: Mapping[str, Any] | None


def unplanned(task: Task, solved: Solved) -> PlannedPackage:
    """The cheapest program, for code that has no plan."""
    program, folded = finish(task, solved)
    return PlannedPackage(solved, program, folded, None, None)


def unlimited(task: Task, solved: Solved, *, atomics: bool = False, windows: bool = True, by: PlanPrices | None = None) -> PlannedPackage:
    """The cheapest program and its plan; `atomics` as in `Lowering`. `windows`: convolutions may be kernels (which are slow as torch code),
    chosen by the prices `by`, which are the target's own if none are given."""
    program, folded = finish(task, solved)
    prices = PlanPrices(task.job.target, task.binding, numerics=task.job.numerics)
    planning = Planning(program, task.job.target, task.binding, atomics, task.job.numerics)
    planned = planning.cheapest(by or prices) if windows else planning.library()
    return PlannedPackage(solved, program, folded, planned, {"default": _taken(planned, prices)})


def limited(task: Task, solve_at: Solve, limit: int, *, atomics: bool = False, windows: bool = True) -> PlannedPackage:
    """The cheapest plan found whose temporaries take at most `limit` bytes at once, for the sizes that the task has for dims.

    The programs tried are the cheapest ones where each byte that an op writes costs so much more (s/B), beginning at nothing.

    Raises:
        CosetError: none was found; the least that the plans tried can take is named.
    """
    prices = PlanPrices(task.job.target, task.binding, numerics=task.job.numerics)
    first = unlimited(task, solve_at(0.0), atomics=atomics, windows=windows)
    assert first.memory is not None
    default = first.memory["default"]
    scale = first.solved.cost / max(1, default["bytes"])
    found: list[tuple[float, PlannedPackage]] = []
    tried: list[Plan] = []
    for price in (0.0, *(share * scale for share in PRICES)):
        each = first if price == 0.0 else unlimited(task, solve_at(price), atomics=atomics, windows=windows)
        assert each.plan is not None
        kept = recomputed(each.plan, limit, prices.kernel, prices.bytes)
        if kept is None:
            tried.append(each.plan)
            continue
        taken = _taken(kept, prices)
        first_times = {kernel.name for kernel in each.plan.kernels}
        chosen = {**taken, "again": sum(kernel.name not in first_times for kernel in kept.kernels)}
        memory = {"limit": limit, "default": default, "chosen": chosen, "slowdown": taken["seconds"] / default["seconds"]}
        found.append((taken["seconds"], replace(each, plan=kept, memory=memory)))
        if taken["seconds"] <= default["seconds"]:
            break
    if not found:
        least = min(fewest_bytes(plan, prices.kernel, prices.bytes) for plan in (tried[0], tried[-1]))
        what = f"no plan found keeps temporaries to {limit} bytes: the least that one takes is {least}"
        raise CosetError(what, help="raise --max-memory, or give a smaller number for a dim (--dim)")
    return min(found, key=lambda pair: pair[0])[1]


def _taken(planned: Plan, prices: PlanPrices) -> dict[str, float]:
    """The most bytes of temporaries at once, without the gaps of an arena, and predicted seconds."""
    seconds = prices.plan_seconds(planned)
    return {"bytes": live_bytes(replace(planned, offsets={}, arena=0), prices.bytes), "seconds": seconds}
