"""Two programs side by side on drawn inputs: whether they differ, on which inputs, and from which node on."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property, partial
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from coset.backends.onnxruntime import Session, Unending
from coset.comparing.check import CheckReport, Oracle
from coset.comparing.difference import difference
from coset.comparing.feeds import Draw, Feed, cases, cases_of_bits, with_other_sizes
from coset.comparing.fold import fallback_for
from coset.comparing.noise import floating
from coset.comparing.reference import against_reference, is_stablehlo, values_of
from coset.comparing.samples import spread
from coset.comparing.sizes import bindings, with_few_rows
from coset.comparing.tables import seeds_for
from coset.ir.errors import CosetError
from coset.ir.evaluate import evaluate_program
from coset.ir.program import Program
from coset.ir.term import Term
from coset.job.answer import save_bytes
from coset.proving.difference import first_difference
from coset.proving.inputs import further
from coset.proving.steps import Uncertified

ROUNDS = 8  # seeds of which all cases are tried
FURTHER_ROUNDS = 24  # ... and all further ones: a threshold is met by few of them


class Fails(Exception):
    """The second program has no value on inputs of the first: `feed`, which are called `case`."""

    def __init__(self, case: str, feed: Feed, reason: str) -> None:
        super().__init__(reason)
        self.case, self.feed, self.reason = case, feed, reason


@dataclass(frozen=True)
class PairedNames:
    """What inputs and outputs of the second program are called in the first, where that is another name."""

    inputs: Mapping[str, str]
    outputs: Mapping[str, str]

    @property
    def same(self) -> bool:
        """Whether both programs have the same names."""
        return not self.inputs and not self.outputs

    @property
    def mapping(self) -> dict[str, str]:
        """The names of the second program with those of the first, as the checker takes them.

        Raises:
            Uncertified: an input and an output have one name in the second, and two in the first.
        """
        for name in self.inputs.keys() & self.outputs.keys():
            if self.inputs[name] != self.outputs[name]:
                raise Uncertified(f"AFTER calls an input and an output `{name}`, and BEFORE calls them otherwise: no mapping says that")
        return {**self.inputs, **self.outputs}


class _Empty(Exception):
    """A value has no elements."""


def _full(term: Term, value: Any) -> Any:
    if term.operands and isinstance(value, np.ndarray) and floating(value) and not value.size:
        raise _Empty
    return value


def save_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write arrays, sequences and maps by name, as `--sample-inputs` reads them."""
    file = BytesIO()
    parts = [spread(name, value) for name, value in arrays.items()]
    np.savez(file, **{name: array for part in parts for name, array in part.items() if array.dtype.kind != "O"})
    save_bytes(path, file.getvalue())


@dataclass(frozen=True)
class ProgramPair:
    """Two programs that were read from these files."""

    files: tuple[Path, Path]
    before: Program
    after: Program
    names: PairedNames
    dims: Mapping[str, int]

    @cached_property
    def sizes(self) -> Mapping[str, int]:
        """Numbers for the free dims with which no value on the way is empty (the mean of no numbers is another one in each run), few for
        leading ones; what the user gave where there are none, or the evaluator does not know the values."""
        for binding in with_few_rows(self.before, self.dims) if self.before.symbols() else ():
            try:
                evaluate_program(self.before, next(cases(self.before, binding)).feed, fallback=fallback_for(self.before.source), tap=_full)
                return binding
            except (_Empty, CosetError):
                continue
        return self.dims

    @cached_property
    def by_runtime(self) -> bool:
        """Whether ONNX Runtime loads both; the evaluator runs them otherwise."""
        if any(map(is_stablehlo, self.files)):
            return False
        try:
            return bool([Session(file) for file in self.files])
        except CosetError:
            return False

    def compared(
        self, seed: int = 0, draw: Draw | None = None, *, exact: bool = False, exceptions: AbstractSet[str] = frozenset()
    ) -> CheckReport:
        """Both on the inputs that `seed` draws (by default plain ones, also with other numbers for dims that the user did not give): by
        ONNX Runtime where it loads both and they are called alike. Where it is to be `exact` every bit counts, else rules with these
        `exceptions` may have made one of the other.

        Raises:
            CosetError: the first runs on none of them.
            Fails: the second has no value on some on which the first has.
        """
        draw = with_other_sizes(cases_of_bits if exact else cases, self.dims) if draw is None else draw
        as_called = self.names.same and [name for name, _ in self.before.outputs] == [name for name, _ in self.after.outputs]
        try:
            if as_called and self.by_runtime:
                return Oracle(str(self.files[0]), self.before, self.sizes, seed=seed, draw=draw).compare(
                    str(self.files[1]), exact=exact, exceptions=exceptions
                )
            return against_reference(self.before, self._second(), self.sizes, seed=seed, draw=draw, exact=exact, exceptions=exceptions)
        except Unending:
            raise
        except CosetError:
            self._look_at_second(seed, draw)
            raise

    def _look_at_second(self, seed: int, draw: Draw) -> None:
        """Look whether it is the second program alone that has no value.

        Raises:
            Fails: it is.
        """
        first, second = self._first(), self._second()
        for binding in bindings(self.before, self.sizes):
            for case in draw(self.before, binding, seed):
                try:
                    first(case.feed)
                except (CosetError, ValueError):
                    break  # as the comparison does, which takes other sizes then
                try:
                    second(case.feed)
                except CosetError as error:
                    raise Fails(case.name, case.feed, error.message) from None
            else:
                return

    def failed(self, found: Fails, counterexample: Path | None) -> dict[str, Any]:
        """What is said of a second program that has no value where the first has."""
        if counterexample is not None:
            given = {f"input {name}": value for name, value in found.feed.items()}
            save_arrays(counterexample, given | {f"first {name}": value for name, value in self._first()(found.feed).items()})
        said = f"the second program has no value on {found.case} inputs: {found.reason}"
        written = None if counterexample is None else str(counterexample)
        return {"difference": said, "first_difference": {"unknown": found.reason}, "counterexample": written}

    def hunted(self, binding: Mapping[str, int], seconds: float) -> CheckReport | None:
        """The comparison on further inputs that shows a difference; None where none is found in `seconds`.

        All rows of tables are read. What differs by more than a few roundings is compared again, beside the noise of the original.

        Raises:
            Fails: the second has no value on some.
        """
        end = time.perf_counter() + seconds
        first, second, beside = self._first(), self._second(), further((self.before, self.after))
        seeds = range(max(ROUNDS, FURTHER_ROUNDS, seeds_for(self.before, binding)) + 1)
        for seed, draw in ((seed, draw) for seed in seeds for draw in (cases, beside)):
            if (draw is cases and seed == 0) or (draw is beside and seed > FURTHER_ROUNDS):
                continue  # the plainest were compared already
            for case in draw(self.before, binding, seed):
                if time.perf_counter() > end:
                    return None
                if draw is cases and seed > ROUNDS and case.name != "wide":
                    continue
                try:
                    expected = first(case.feed)
                except CosetError:
                    continue  # no input of the original
                try:
                    found = second(case.feed)
                except CosetError as error:
                    raise Fails(case.name, case.feed, error.message) from None
                if all(difference(case.name, name, value, found[name], 0.0, exact=False).ok for name, value in expected.items()):
                    continue
                report = self.compared(seed, draw)
                if not report.ok:
                    return report
                break
        return None

    def refuted(self, report: CheckReport, counterexample: Path | None) -> dict[str, Any]:
        """What is said of programs that differ, on the plainest inputs of a report that show it: how far and from which node on. The inputs
        are written to `counterexample`, with both outputs and what both nodes give."""
        shown = next(each for each in report.differences if not each.ok)
        failing = [each.output for each in report.differences if each.case == shown.case and not each.ok]
        feed = report.feeds[shown.case]
        try:
            names = self.names
            parting = first_difference(self.before, self.after, feed, failing, inputs=names.inputs, outputs=names.outputs)
            place, values = parting.summary(), parting.values
        except (CosetError, ValueError) as error:  # the runtime has values where the evaluator has none
            place, values = {"unknown": str(getattr(error, "message", error))}, {}
        if counterexample is not None:
            arrays: dict[str, Any] = {f"input {name}": value for name, value in feed.items()}
            for what, run in (("first", self._first()), ("second", self._second())):
                arrays |= {f"{what} {name}": value for name, value in run(feed).items()}
            arrays |= {f"node {what}": value for what, value in values.items()}
            save_arrays(counterexample, arrays)
        written = None if counterexample is None else str(counterexample)
        return {"difference": str(shown), "first_difference": place, "counterexample": written}

    def _first(self) -> Callable[[Feed], Feed]:
        """The first program as a function."""
        return Session(self.files[0]).run if self.by_runtime else partial(values_of, self.before)

    def _second(self) -> Callable[[Feed], Feed]:
        """The second program as a function of inputs, and with outputs, that are called as in the first."""
        session = Session(self.files[1]) if self.by_runtime else None
        own = [term.attribute("name") for term in self.after.inputs]

        def run(feed: Feed) -> Feed:
            given = {name: feed[self.names.inputs.get(name, name)] for name in own}
            results = values_of(self.after, given) if session is None else session.run(given)
            return {self.names.outputs.get(name, name): value for name, value in results.items()}

        return run
