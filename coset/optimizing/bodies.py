"""Bodies of control flow that stay: each is optimized as a model of its own, whose inputs are its own and what it captures.

A body is compared with its original on inputs of its own: what is drawn for the whole model may not lead into it. Where a certificate is
asked for no rule looks into bodies, since no step of one speaks of what is inside a node: constants are computed, known branches taken.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from coset.comparing.refused import Refused
from coset.comparing.runtime_fold import runtime_values
from coset.dialects.onnx.bodies import count, ops_of
from coset.egraph.growth import SILENT
from coset.frontends.onnx.inner import Rewriting
from coset.frontends.onnx.model import import_model
from coset.frontends.onnx.tensors import Model
from coset.ir.errors import CosetError
from coset.ir.held import working_folder
from coset.job.job import Job, Progress
from coset.job.own_ops import has_form, meant_at_once
from coset.lowering.onnx.model import lower
from coset.optimizing.flow import checked
from coset.optimizing.formats import Flow
from coset.optimizing.report import Seconds
from coset.rules.elaborated import comes_with_coset
from coset.searching.inside import Inside
from coset.searching.solving import finish, solve_task
from coset.searching.task import Task, usual_dims

FEWEST = 2  # nodes of a body that is searched


class Bodies:
    """The bodies of one model, equal ones looked at once. `told` are those that are better now. All searches together take about as long as
    the job's own may: what comes then is looked at without rules. `refused` says which rule of the user's breaks a body, if one does."""

    def __init__(self, job: Job, flow: Callable[[Job], Flow]) -> None:
        self.told: list[Inside] = []
        self.refused: Refused | None = None
        self._flow = flow
        self._job = replace(
            job, extraction_problem=None, max_memory=None, keep=(), zones=(), samples=(), certified=False, measure=0, picture=None,
            keep_functions=False, watch=SILENT,
        )  # fmt: skip
        self._searches, self._end = not job.certified, job.limits.seconds
        self._known: dict[bytes, Model | None] = {}

    @property
    def rewriting(self) -> Rewriting:
        """What the importer asks."""
        return Rewriting(self._write, known=self._searches)

    def _write(self, model: Model) -> Model | None:
        """The body `model` written anew; None where it stays."""
        key = sha256(model.SerializeToString(deterministic=True)).digest()
        if key not in self._known:
            self._known[key] = self._better(model)
        return self._known[key]

    def _better(self, model: Model) -> Model | None:
        if self._searches and self._end > 0 and (count(model.graph) >= FEWEST or self._must_go(model)):
            started = time.perf_counter()
            try:
                return self._searched(model)
            except CosetError as error:  # it is no program of its own, as a body that draws numbers
                self._job.progress(f"body `{model.graph.name}` is not searched: {error.message}")
            finally:
                self._end -= time.perf_counter() - started
        return self._plain(model)

    def _searched(self, model: Model) -> Model | None:
        """The best body found, where it is predicted to be faster or has fewer nodes."""
        flow = self._flow(replace(self._job, model=model, progress=warnings_of(self._job.progress)))
        task: Task | None = None
        with working_folder("coset-body-") as folder:
            try:
                task = flow.read()
                found = checked(task, flow, folder / "body.onnx", folder, Seconds())
            except Refused as error:
                if task is None or blamed(task, error):  # reading is refused where a body inside it is, for a rule of the user's
                    self.refused = self.refused or error
                raise
        made = lower(found.made.program)
        before, after = count(model.graph), count(made.graph)
        solved = found.made.solved
        if after >= before and not solved.cost < solved.input_cost and not self._must_go(model):
            return None
        self.told.append(Inside(model.graph.name, before, after, list(found.made.usage), body=True))
        return made

    def _plain(self, model: Model) -> Model | None:
        """The body with its constants computed and its known branches taken, where it has fewer nodes then."""
        job = replace(self._job, model=model)
        own = job.own()
        meant = meant_at_once(own, job.target, job.numerics)
        program = import_model(model, rewrite=Rewriting(self._write), own=own.ops, meant=meant)
        task = Task(job, program, usual_dims(program, job.dims), (), runtime_values)
        made = lower(finish(task, solve_task(task, (), self._flow(job).printable(task))[0])[0])
        return made if count(made.graph) < count(model.graph) or self._must_go(model) else None

    def _must_go(self, model: Model) -> bool:
        """Whether a body has nodes of the user's ops that the target does not run."""
        left = {op for op in self._job.own().ops if not has_form(self._job.target, op)}
        return bool(left and left & ops_of(model.graph.node).keys())


def blamed(task: Task, error: Refused) -> bool:
    """Whether the rule that breaks a body is the user's, who is to mend it; without one of the library the body stays."""
    broken = (rule for phase in task.phases for rule in phase.rules if rule.name == error.rule)
    return any(not comes_with_coset(Path(rule.place.file)) for rule in broken)


def warnings_of(progress: Progress) -> Progress:
    """Tells what a search inside warns of, and not its stages."""
    return lambda text: progress(text) if text.startswith("warning") else None
