"""Live bytes of activations: what a program takes, and the cheapest program found that takes no more than a limit."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from coset.extract.work import WorkSizes
from coset.ir.errors import CosetError
from coset.ir.program import Program
from coset.ir.program_source import source_of
from coset.lowering.arranging.live import Steps, lessened, peak, places_of
from coset.searching.regionwise import Solved
from coset.searching.solving import finish
from coset.searching.task import Task

PRICES = (0.01, 0.1, 1.0, 10.0)  # of a byte that is written, in the cost of the cheapest program for each byte of its peak


@dataclass(frozen=True)
class ChosenProgram:
    """A program as it is written, with what it came from."""

    solved: Solved
    program: Program
    folded: int


def live_bytes(task: Task, steps: Steps) -> int:
    """The peak of `steps`, with the numbers that the task has for dims."""
    sizes = WorkSizes(task.binding)
    return peak(steps, lambda term: math.ceil(sizes.bytes(term.type)))


def choose(task: Task, solve_at: Callable[[float], Solved], steps: Callable[[Program], Steps], *, reorders: bool) -> ChosenProgram:
    """The cheapest program that keeps to the job's `max_memory`: the cheapest of all where there is no limit, or it keeps to it.

    `solve_at` finds the best program where each byte that is written costs so much more (s/B). `reorders`: the printer keeps an order.

    Raises:
        CosetError: no program found keeps to the limit; the least that one takes is named.
    """
    limit = task.job.max_memory
    best = _finished(task, solve_at(0.0))
    if limit is None:
        return best
    least = best_peak = live_bytes(task, steps(best.program))
    fitting: list[ChosenProgram] = []
    scale = best.solved.cost / max(1, best_peak)
    for price in (0.0, *(share * scale for share in PRICES)):
        chosen = best if price == 0.0 else _finished(task, solve_at(price))
        found = steps(chosen.program)
        taken = live_bytes(task, found)
        if taken > limit and reorders:
            sizes = WorkSizes(task.binding)
            found = lessened(found, lambda term, sizes=sizes: math.ceil(sizes.bytes(term.type)))  # type: ignore[misc]
            ordered = replace(chosen.program, source=replace(source_of(chosen.program), places=places_of(found)))
            taken = min(taken, live_bytes(task, steps(ordered)))
            chosen = replace(chosen, program=ordered)
        least = min(least, taken)
        if taken <= limit:
            if price == 0.0:
                return chosen
            fitting.append(chosen)
    if not fitting:
        what = f"no program found keeps to {limit} live bytes: the least that one takes is {least}"
        raise CosetError(what, help="raise --max-memory, or give a smaller number for a dim (--dim)")
    return min(fitting, key=lambda chosen: chosen.solved.cost)


def _finished(task: Task, solved: Solved) -> ChosenProgram:
    program, folded = finish(task, solved)
    return ChosenProgram(solved, program, folded)
