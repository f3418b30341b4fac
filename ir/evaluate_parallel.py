"""One program on a grid of processes (replicas times partitions) in lockstep: what collectives mean where there are others to talk to.

Every process runs the same program on inputs of its own. Each run stops at a term whose value depends on other processes; when all
have come to it, the op's joint meaning gives each its value. Process number `replica * partitions + partition` is that of the
StableHLO specification (https://openxla.org/stablehlo/spec#execution).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from coset.ir.errors import CosetError
from coset.ir.evaluate import Exchange, Fallback, Run, run_program
from coset.ir.op import Array
from coset.ir.program import Program
from coset.ir.term import Region, Term, topological


def evaluate_parallel(
    program: Program, inputs: Sequence[Mapping[str, Array]], *, partitions: int = 1, fallback: Fallback | None = None
) -> list[list[Any]]:
    """The values of the program's roots on each process, under the inputs of each (by name, in the order of process numbers).

    There are `len(inputs) // partitions` replicas. `fallback` is that of `evaluate`.

    Raises:
        CosetError: as `evaluate`; the processes are no whole number of replicas; an op names a process that is not there, or leaves out
            one that needs a value; a payload function talks to other processes, or the sizes of the inputs lead two processes apart.
    """
    if partitions < 1 or not inputs or len(inputs) % partitions:
        raise CosetError(f"{len(inputs)} processes are no whole number of replicas of {partitions} partitions")
    if len(inputs) > 1:
        _require_lockstep(program)
    grid = (len(inputs) // partitions, partitions)
    runs = [run_program(program, feed, fallback=fallback) for feed in inputs]
    answers: list[Any] = [None] * len(runs)
    while True:
        steps = [_step(run, answer) for run, answer in zip(runs, answers, strict=True)]
        results = [step for step in steps if isinstance(step, list)]
        if len(results) == len(runs):
            return results
        waiting = [step for step in steps if isinstance(step, tuple)]
        term = waiting[0][0]
        if len(waiting) < len(runs) or any(other is not term for other, _ in waiting):
            raise CosetError(f"not all processes come to `{term.op.name}`: dims of their inputs differ")
        assert term.op.joint is not None
        answers = term.op.joint(term, [operands for _, operands in waiting], grid, fallback)


def _step(run: Run, answer: Any) -> Exchange | list[Any]:
    """Where the run stops next, or its results."""
    try:
        return run.send(answer)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]


def _require_lockstep(program: Program) -> None:
    """Refuse collectives in payload functions: how often a loop runs, or which branch is taken, may differ between processes."""
    regions: list[tuple[Term, Region]] = [(term, region) for term in program.terms() for region in term.regions]
    seen: set[Region] = set()
    while regions:
        outer, region = regions.pop()
        if region in seen:
            continue
        seen.add(region)
        for term in topological(region.results):
            if term.op.joint is not None:
                raise CosetError(
                    f"`{term.op.name}` inside of `{outer.op.name}` cannot be evaluated on several processes",
                    help="processes are run in lockstep outside of loops and branches only",
                )
            regions += [(outer, inner) for inner in term.regions]
