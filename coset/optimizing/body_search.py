"""What searches of bodies of control flow share, whatever the format: the options of the job that they keep, their time, their blame."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from coset.comparing.refused import Refused
from coset.egraph.growth import SILENT
from coset.ir.errors import CosetError
from coset.ir.held import working_folder
from coset.job.job import Job, Progress
from coset.optimizing.flow import CheckedProgram, checked
from coset.optimizing.formats import Flow
from coset.optimizing.report import Seconds
from coset.rules.elaborated import comes_with_coset
from coset.searching.inside import Inside
from coset.searching.task import Task

FEWEST = 2  # nodes of a body that is searched
_LEAST = 0.01  # seconds that a search is given which begins when the time is up


class BodySearch:
    """Looks for better bodies of one program. `told` are those that are better now. All searches together, and those of bodies in bodies,
    take about as long as the job's own may. `refused` says which rule of the user's breaks a body, if one does."""

    def __init__(self, job: Job) -> None:
        self.told: list[Inside] = []
        self.refused: Refused | None = None
        self._whole = job
        self._left = 0.0 if job.certified else job.limits.seconds  # no step of a certificate speaks of what is inside a node
        self._since: float | None = None

    @property
    def left(self) -> float:
        """Seconds that are left for searches."""
        return self._left - (0.0 if self._since is None else time.perf_counter() - self._since)

    @contextmanager
    def spending(self, what: str) -> Iterator[None]:
        """Takes the time of what is inside off that which is left; the time of a body inside another one is that of the other. A body that
        is no program of its own, as one that draws numbers, is not searched."""
        outermost = self._since is None
        if outermost:
            self._since = time.perf_counter()
        try:
            yield
        except CosetError as error:
            self._whole.progress(f"body `{what}` is not searched: {error.message}")
        finally:
            if outermost:
                self._left, self._since = self.left, None

    def job(self, **changed: Any) -> Job:
        """The job of one body: what is asked of the whole program alone is left out."""
        limits = replace(self._whole.limits, seconds=max(self.left, _LEAST))
        return replace(
            self._whole, extraction_problem=None, max_memory=None, keep=(), zones=(), samples=(), certified=False, measure=0, picture=None,
            keep_functions=False, watch=SILENT, limits=limits, progress=_warnings_of(self._whole.progress), **changed,
        )  # fmt: skip

    def best(self, flow: Flow) -> CheckedProgram:
        """The best body found, compared with the one that `flow` reads.

        Raises:
            CosetError: it cannot be compared, or a rule breaks it; `refused` is set where the user is to mend that rule.
        """
        task: Task | None = None
        with working_folder("coset-body-") as folder:
            try:
                task = flow.read()
                return checked(task, flow, folder / flow.attempt, folder, Seconds())
            except Refused as error:
                if task is None or _blamed(task, error):  # reading is refused where a body inside it is, for a rule of the user's
                    self.refused = self.refused or error
                raise


def _blamed(task: Task, error: Refused) -> bool:
    """Whether the rule that breaks a body is the user's, who is to mend it; without one of the library the body stays."""
    broken = (rule for phase in task.phases for rule in phase.rules if rule.name == error.rule)
    return any(not comes_with_coset(Path(rule.place.file)) for rule in broken)


def _warnings_of(progress: Progress) -> Progress:
    """Tells what a search inside warns of, and not its stages."""
    return lambda text: progress(text) if text.startswith("warning") else None
