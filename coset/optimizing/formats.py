"""What an optimization needs of a format: how models are read, written, run and compared. One class for each pair of formats."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any, Protocol

from coset.comparing.check import CheckReport
from coset.extract.cost import Printable
from coset.ir.program import Program
from coset.ir.term import Term
from coset.lowering.arranging.live import Steps
from coset.searching.task import Task
from coset.targets.running import Running


class Compare(Protocol):
    """The model at a path beside the original, on the original's cases."""

    def __call__(
        self, model: Any, *, exact: bool, running: Running | None = None, exceptions: AbstractSet[str] = frozenset()
    ) -> CheckReport: ...


class Flow(Protocol):
    """What depends on the formats of the model and of the result: `run_flow` is one for all."""

    @property
    def attempt(self) -> str:
        """The name of a file in the format of the result."""

    @property
    def bitwise(self) -> bool:
        """Whether what is compared has every bit where rules keep it: one program that runs both models."""

    def read(self) -> Task:
        """The model as it is searched."""

    def printable(self, task: Task) -> Printable:
        """What the format of the result can hold."""

    def chosen(self, program: Program, seconds: float) -> Running | None:
        """The options that the result is to be run with; None where it carries none."""

    def write(self, program: Program, path: Path, options: Running | None) -> None:
        """Write the result."""

    def comparison(self, task: Task, folder: Path) -> Compare:
        """How results are compared with the original, which may be put into `folder`."""

    def runs(self, compare: Compare) -> bool:
        """Whether what compares runs results as they will be run."""

    def given(self, program: Program) -> Mapping[str, int]:
        """How many nodes of each op the model has that `program` was read from, as it stands in its file; functions of the model's own
        count as the nodes of each call, unless they stay."""

    def ops(self, program: Program) -> Mapping[str, int]:
        """The same of what `program` is written as."""

    def names(self, program: Program) -> Mapping[Term, str]:
        """What the values of a program are called where it is written."""

    def kinds(self, program: Program) -> Mapping[str, str]:
        """What the ops that compute them are called there, by the names of the values; nothing where that is the name of the term's op."""

    def timed(self, path: Path, options: Running | None, task: Task) -> Callable[[], object] | None:
        """A call that runs what is written there, on inputs that are the same for all; None where nothing here runs it."""

    def steps(self, program: Program) -> Steps:
        """What a program does, in the order in which it is written."""

    @property
    def reorders(self) -> bool:
        """Whether what is written keeps the order that the program's source gives for its values (`places`)."""
