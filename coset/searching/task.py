"""The program that was read, with the job that it is searched for, the rules and the numbers of its dim symbols."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import coset.dialects
from coset.comparing.fold import Runtime
from coset.comparing.sizes import bindings
from coset.egraph.request import Phase
from coset.ir import dims
from coset.ir.program import Program
from coset.ir.program_source import source_of
from coset.ir.term import Term
from coset.job.job import Job

if TYPE_CHECKING:
    from coset.searching.inside import AsItCame, Inside

assert coset.dialects  # imported so that every op and definition is registered


@dataclass(frozen=True)
class Task:
    """The program that was read and what it is searched with: `binding` gives numbers to its dim symbols; `runtime` computes its constants,
    where the result is for one. `functions`: those of the model's own that stay, smaller or as they came."""

    job: Job
    program: Program
    binding: Mapping[str, int]
    phases: Sequence[Phase]
    runtime: Runtime | None = None
    functions: Sequence[Inside | AsItCame] = ()


def usual_dims(program: Program, given: Mapping[str, int]) -> dict[str, int]:
    """Numbers to predict costs with: the first of `bindings`, and what is likely then of dims that only a run tells.

    Raises:
        CosetError: as `bindings`.
    """
    binding = dict(next(bindings(program, given)))
    for name, dim in source_of(program).likely.items():
        if name not in binding and dims.symbols(dim) <= binding.keys():
            binding[name] = max(1, dims.evaluate(dim, binding))
    return binding


def wanted_roots(task: Task) -> tuple[Term, ...]:
    """What is searched: the program's roots, and what its dim symbols are read from."""
    return (*task.program.roots, *task.program.sources.values())
