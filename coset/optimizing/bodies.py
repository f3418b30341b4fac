"""Bodies of control flow that stay: each is optimized as a model of its own, whose inputs are its own and what it captures.

A body is compared with its original on inputs of its own: what is drawn for the whole model may not lead into it. Where a certificate is
asked for no rule looks into bodies, since no step of one speaks of what is inside a node: constants are computed, known branches taken.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256

from coset.comparing.runtime_fold import runtime_values
from coset.dialects.onnx.bodies import count, ops_of
from coset.frontends.onnx.inner import Rewriting
from coset.frontends.onnx.model import import_model
from coset.frontends.onnx.tensors import Model
from coset.job.job import Job
from coset.job.own_ops import has_form, meant_at_once
from coset.lowering.onnx.model import lower
from coset.optimizing.body_search import FEWEST, BodySearch
from coset.optimizing.formats import Flow
from coset.searching.inside import Inside
from coset.searching.solving import finish, solve_task
from coset.searching.task import Task, usual_dims


class Bodies(BodySearch):
    """The bodies of one ONNX model, equal ones looked at once; what comes when the time is up is looked at without rules. `flow` is what is
    done for a body."""

    def __init__(self, job: Job, flow: Callable[[Job], Flow]) -> None:
        super().__init__(job)
        self._flow, self._target, self._own = flow, job.target, job.own()
        self._searches = not job.certified
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
        if self._searches and self.left > 0 and (count(model.graph) >= FEWEST or self._must_go(model)):
            with self.spending(model.graph.name):
                return self._searched(model)
        return self._plain(model)

    def _searched(self, model: Model) -> Model | None:
        """The best body found, where it is predicted to be faster or has fewer nodes."""
        found = self.best(self._flow(self.job(model=model))).made
        made = lower(found.program)
        before, after = count(model.graph), count(made.graph)
        if after >= before and not found.solved.cost < found.solved.input_cost and not self._must_go(model):
            return None
        self.told.append(Inside(model.graph.name, before, after, list(found.usage), body=True))
        return made

    def _plain(self, model: Model) -> Model | None:
        """The body with its constants computed and its known branches taken, where it has fewer nodes then."""
        job = self.job(model=model)
        meant = meant_at_once(self._own, job.target, job.numerics)
        program = import_model(model, rewrite=Rewriting(self._write), own=self._own.ops, meant=meant)
        task = Task(job, program, usual_dims(program, job.dims), (), runtime_values)
        made = lower(finish(task, solve_task(task, (), self._flow(job).printable(task))[0])[0])
        return made if count(made.graph) < count(model.graph) or self._must_go(model) else None

    def _must_go(self, model: Model) -> bool:
        """Whether a body has nodes of the user's ops that the target does not run."""
        left = {op for op in self._own.ops if not has_form(self._target, op)}
        return bool(left and left & ops_of(model.graph.node).keys())
