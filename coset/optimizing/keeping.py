"""Values inside a model that must survive under their names: they are roots of the search, written, compared, and listed nowhere."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coset.comparing.check import CheckReport, Oracle
from coset.job.own_ops import as_written
from coset.lowering.onnx.listed import copy_with_outputs, listed, outputs_of, unlisted
from coset.lowering.onnx.model import write
from coset.optimizing.formats import Compare
from coset.searching.task import Task
from coset.targets.running import Running

SHOWN = "shown.onnx"


@dataclass(frozen=True)
class KeptValues:
    """A comparison that, where the outputs pass, holds the kept values to the same: of copies of both models that list them as outputs.

    The copy of the original is what import and export make of it, which the comparison of the outputs has seen to be the same.
    """

    task: Task
    outputs: Compare
    values: Oracle

    @staticmethod
    def of(outputs: Compare, task: Task, folder: Path) -> KeptValues:
        """What compares the values that the job keeps, with the copy of the original in `folder`."""
        shown = listed(task.program)
        write(as_written(shown, task.job.target), folder / SHOWN)
        return KeptValues(task, outputs, Oracle(folder / SHOWN, shown, task.job.dims))

    def __call__(
        self, model: Any, *, exact: bool, running: Running | None = None, exceptions: AbstractSet[str] = frozenset()
    ) -> CheckReport:
        """The comparison of the outputs where they differ, else that of the outputs and the kept values."""
        report = self.outputs(model, exact=exact, running=running, exceptions=exceptions)
        if not report.ok:
            return report
        copy = Path(model).with_name(f"copy-{SHOWN}")
        try:
            copy_with_outputs(Path(model), outputs_of(self.task.program, unlisted(self.task.program)), copy)
            return self.values.compare(copy, exact=exact, running=running, exceptions=exceptions)
        finally:
            copy.unlink(missing_ok=True)
