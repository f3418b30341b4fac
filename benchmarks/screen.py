"""Search, with a clock, for the best form of a program that a person could make by hand."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import onnx

from benchmarks import hand
from benchmarks.rivals import OPTIONS, Run, open_ort
from coset.comparing import timing

GAIN = 0.99
"""A step is kept when it takes at most this part of the time without it; less is noise."""
PREFERRED = 0.9
"""Options of the unchanged graph that beat ONNX Runtime's own by this much are those under which steps are tried."""
FINALISTS = 3
SLOW = 0.005
"""Seconds of a call from which a trial has one round, and not three."""


@dataclass(eq=False)
class Candidate:
    """A form of the program under session options; `score` is its time over that of ONNX Runtime with everything on."""

    form: str
    options: str
    model: onnx.ModelProto
    surgeries: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    score: float = float("inf")

    @property
    def name(self) -> str:
        """What was done, for a table."""
        return self.form if self.options == "all" else f"{self.form} [{self.options}]"


def fingerprint(model: onnx.ModelProto) -> str:
    """Return a hash of a model's nodes and of the names, sizes and first bytes of its constants: big weights are not read."""
    digest = hashlib.sha256()
    for node in model.graph.node:
        digest.update(node.SerializeToString(deterministic=True))
    for tensor in model.graph.initializer:
        digest.update(f"{tensor.name} {list(tensor.dims)}".encode() + tensor.raw_data[:256])
    return digest.hexdigest()


@dataclass
class Screen:
    """One search: `check` returns the error of a program, or raises; `note` is told what begins, so that a crash has a name."""

    baseline: timing.Program
    check: Callable[[Run], float]
    program: Callable[[Run], timing.Program]
    tolerance: float
    note: Callable[[str], None]
    skip: frozenset[str]
    deadline: float
    tried: list[Candidate] = field(default_factory=list)
    wrong: dict[str, float] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    late: int = 0
    slow: bool = field(init=False)
    _seen: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.slow = min(timing.block(self.baseline)) > SLOW

    def trial(self, candidate: Candidate) -> Candidate:
        """Check and time a candidate; its score stays infinite when it is wrong, fails, was seen, or time is up."""
        if time.monotonic() > self.deadline:
            self.late += 1
            return candidate
        if candidate.name in self.skip:
            return candidate
        self.note(candidate.name)
        try:
            run = open_ort(candidate.model, OPTIONS[candidate.options])
            error = self.check(run)
        except Exception as problem:  # a runtime refuses a model with its own exceptions: the row says which and why
            self.failed[candidate.name] = str(problem).splitlines()[0][:200]
            return candidate
        if not error <= self.tolerance:
            self.wrong[candidate.name] = error
            return candidate
        rounds = 1 if self.slow else 3
        found = timing.measure({"all": self.baseline, "it": self.program(run)}, timing.Protocol(rounds, calls=4))
        candidate.score = found["it"].median / found["all"].median
        self.tried.append(candidate)
        return candidate

    def search(self, naive: onnx.ModelProto, forms: Mapping[str, onnx.ModelProto]) -> list[Candidate]:
        """Return the best candidates, best first: options, given forms, the clean form, single steps, then joined steps and options."""
        for form, model in forms.items():
            self.trial(Candidate(form, "all", model))
        clean = self._perform(naive, "", (), "all")
        for options in OPTIONS:
            if options not in ("all", "off"):
                self.trial(Candidate("unchanged", options, naive))
        best = min(self.tuned(), key=lambda candidate: candidate.score, default=None)
        preferred = best.options if best is not None and best.score < PREFERRED else "all"
        self._surgeries(naive if clean is None else clean.model, 1.0 if clean is None else clean.score, "", preferred)
        for form, model in forms.items():
            self._surgeries(model, 1.0, f"{form} + ", preferred)
        for candidate in self._best(1):
            for options in OPTIONS:
                if options != candidate.options:
                    self.trial(Candidate(candidate.form, options, candidate.model, candidate.surgeries, candidate.steps))
        given = [candidate for candidate in self.tried if candidate.form in forms and candidate.options == "all"]
        best_ones = self._best(FINALISTS)
        return best_ones + [candidate for candidate in given if candidate not in best_ones]

    def tuned(self) -> list[Candidate]:
        """Return the best session options of the unchanged graph, best first."""
        unchanged = [candidate for candidate in self.tried if candidate.form == "unchanged"]
        return sorted(unchanged, key=lambda candidate: candidate.score)[:FINALISTS]

    def _best(self, count: int) -> list[Candidate]:
        changed = [candidate for candidate in self.tried if candidate.form != "unchanged"]
        return sorted(changed, key=lambda candidate: candidate.score)[:count]

    def _surgeries(self, base: onnx.ModelProto, score: float, prefix: str, options: str) -> None:
        """Try each step on top of a form with a score, and the steps that won, joined while that still wins."""
        floor = min(1.0, score)
        singles = [trial for step in hand.STEPS if (trial := self._perform(base, prefix, (step,), options)) is not None]
        winners = sorted((trial for trial in singles if trial.score < floor * GAIN), key=lambda trial: trial.score)
        for joined in winners[:1]:
            best = joined
            for other in winners[1:]:
                trial = self._perform(base, prefix, (*best.steps, *other.steps), options)
                best = trial if trial is not None and trial.score < best.score * GAIN else best

    def _perform(self, model: onnx.ModelProto, prefix: str, steps: tuple[str, ...], options: str) -> Candidate | None:
        """Return a trial of the steps and the clean form; None where they change nothing, or give a form already tried."""
        if time.monotonic() > self.deadline:
            self.late += 1
            return None
        label = prefix + (" + ".join(steps) or "clean")
        self.note(f"surgery {label}")
        if f"surgery {label}" in self.skip:
            return None
        try:
            performed = hand.perform(model, hand.recipe(steps))
        except Exception as problem:  # a surgery that breaks on a graph must not end the run; it is reported
            self.failed[label] = f"surgery: {type(problem).__name__}: {problem}"[:200]
            return None
        if performed is None:
            return None
        digest = fingerprint(performed[0])
        if digest in self._seen:
            return None
        self._seen.add(digest)
        return self.trial(Candidate(label, options, performed[0], performed[1], steps))
