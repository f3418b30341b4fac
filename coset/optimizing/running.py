"""How an optimized ONNX program is run: its options are chosen from the program and the target, compared, stored in the model, and read."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from coset.backends.onnxruntime import Session
from coset.comparing.check import CheckReport
from coset.comparing.feeds import cases
from coset.frontends.onnx.tensors import open_model
from coset.ir.errors import CosetError
from coset.ir.evaluate import describe
from coset.ir.program import Program
from coset.job.alone import alone
from coset.searching.task import Task
from coset.targets.running import AS_STORED, KEY, Running, parse_running
from coset.targets.target import Target


@dataclass(frozen=True)
class Settled:
    """The options that a program is handed out with. `refused`: the levels before theirs, each with how its outputs differ. `apart`: how
    the runtime's optimizer changes the original at their level, where it does; then the outputs are those of that."""

    running: Running
    refused: tuple[tuple[str, str], ...] = ()
    apart: str = ""

    def summary(self) -> dict[str, Any]:
        """What `--json` prints under `session`."""
        refused = [{"level": level, "problem": problem} for level, problem in self.refused]
        return {**self.running.summary(), "refused": refused, "original_apart": self.apart}


def chosen(target: Target, program: Program, seconds: float) -> Running | None:
    """The fastest options that `target` knows for a program of `seconds` predicted; None where it knows none. No clock decides.

    The second thread is left out only where the sizes and every op are known: of others the seconds say too little.
    """
    sessions = target.sessions
    if sessions is None:
        return None
    known = not program.symbols() and not any(term.op.has("foreign") or term.regions for term in program.terms())
    alone = known and seconds < sessions.alone.value
    disabled = sessions.disabled.keys() - (frozenset() if _stacks(program) else sessions.stacked)
    dequantizes = any(describe(term).rpartition(".")[2] == "DequantizeLinear" for term in program.terms())
    return Running(sessions.levels[0], tuple(sorted(disabled)), 1 if alone else None, ((AS_STORED, "1"),) if dequantizes else ())


def _stacks(program: Program) -> bool:
    """True where a product of one matrix with a stack of them occurs, as a layer on sequences has it."""
    products = (term for term in program.terms() if term.op.name == "stablehlo.dot_general")
    return any(term.tensor.rank > 2 and not term.attribute("lhs_batch") for term in products)


def settle(
    wanted: Running, levels: tuple[str, ...], compare: Callable[[Running], CheckReport], rewrite: Callable[[Running], None]
) -> Settled:
    """`wanted` at the first of `levels` at which the outputs of the written program are the original's.

    The model was written with `wanted` and compared at the last level, which changes nothing; `rewrite` writes it with other options.
    """
    refused: list[tuple[str, str]] = []
    for level in levels:
        running = replace(wanted, level=level)
        problem, apart = ("", "") if level == levels[-1] else _problem(running, compare)
        if not problem:
            if running != wanted:
                rewrite(running)
            return Settled(running, tuple(refused), apart)
        refused.append((level, problem))
    raise AssertionError("the last level is never refused")


def _problem(running: Running, compare: Callable[[Running], CheckReport]) -> tuple[str, str]:
    """How a run with these options differs from the original, empty where it does not; and how the original differs from itself."""
    try:
        report = compare(running)
    except CosetError as error:  # an optimizer made a graph that does not load or run: as bad as a wrong output, and mended likewise
        return error.message, ""
    return "" if report.ok or report.worst is None else str(report.worst), report.apart


def stored(path: str | Path) -> Running | None:
    """The options that the ONNX file at `path` carries; None where it carries none.

    Raises:
        CosetError: the file cannot be read, or the options are malformed.
    """
    text = open_model(path).metadata.get(KEY)
    return None if text is None else parse_running(text)


def timed(path: Path, options: Running | None, task: Task) -> Callable[[], object]:
    """A call that runs the ONNX model at `path` with `options`, or ONNX Runtime's own, on the first inputs that are drawn for the task.

    Raises:
        CosetError: it does not load, or does not run on them.
    """
    session = Session.told(path, options or Running())
    feed = next(iter(cases(task.program, task.binding))).feed
    session.run(feed)
    return lambda: session.run(feed)


@alone
def load(path: str | Path) -> Session:
    """The ONNX model at `path`, ready to run on inputs by name, with the options that it carries or ONNX Runtime's full optimization.
    A run takes as long as it takes.

    Malformed options, and options under which it does not load, are passed over with a warning.

    Raises:
        CosetError: the file cannot be read or loaded.
    """
    try:
        running = stored(path)
        if running is not None:
            return Session.told(path, running, watched=False)
    except CosetError as error:
        session = Session.told(path, Running(), watched=False)  # which raises its own error where it is the model that is wrong
        warnings.warn(f"{path}: {error.message}; it runs with ONNX Runtime's own options", stacklevel=2)
        return session
    return Session.told(path, Running(), watched=False)
