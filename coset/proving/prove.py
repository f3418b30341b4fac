"""`coset prove A B`: whether two programs are equal: shown by steps that are checked, refuted by inputs, or unknown and how far it got."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

import coset.dialects
from coset.answer import save_bytes
from coset.backends.onnxruntime import Session
from coset.check import CheckReport, Oracle
from coset.egraph.limits import Limits
from coset.feeds import Feed, cases
from coset.ir.errors import CosetError
from coset.ir.program import Program
from coset.prove.certificate import Certificate, by_content, renamed
from coset.proving.certify import accepted, certificate_of
from coset.proving.difference import first_difference
from coset.proving.join import PIECE, join
from coset.proving.steps import Uncertified
from coset.reference import against_reference, is_stablehlo, read_program, values_of
from coset.task import RECOGNISE, permitted_phases, with_witnesses

assert coset.dialects  # imported so that every op and definition is registered

PROVED, REFUTED, UNKNOWN = "proved", "refuted", "unknown"
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Proving:
    """What is asked for: the arguments of `coset prove`. `pairs`: inputs and outputs of B by the name that A has for them; those left
    out have the same name, or else correspond by their order. `certificate`, `counterexample`: where what shows the answer is written."""

    before: Path
    after: Path
    numerics: str = "reassociates"
    rules: Sequence[str | Path] = ()
    dims: Mapping[str, int] = field(default_factory=dict)
    pairs: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 20.0
    certificate: Path | None = None
    counterexample: Path | None = None
    progress: Progress = lambda _: None


def prove(asked: Proving) -> dict[str, Any]:
    """The answer, with `answer` one of proved, refuted and unknown.

    Raises:
        CosetError: a file cannot be read, or the programs have interfaces that do not correspond.
    """
    started = time.perf_counter()
    asked.progress("reading both models")
    before, after = read_program(asked.before), read_program(asked.after)
    names = _names(before, after, asked.pairs)
    read = time.perf_counter()
    asked.progress("comparing them on drawn inputs")
    report = _compared(asked, before, after, names)
    compared = time.perf_counter()
    seconds = {"read": read - started, "compare": compared - read}
    if not report.ok:
        found = _refuted(asked, before, after, names, report)
        seconds["locate"] = time.perf_counter() - compared
        return {"answer": REFUTED, "method": "inputs", "certificate": None, **found, "seconds": seconds}
    asked.progress("looking for the steps from one to the other")
    try:
        certificate, verdict = _shown(asked, before, after, names)
    except Uncertified as error:
        seconds["prove"] = time.perf_counter() - compared
        return {
            "answer": UNKNOWN,
            "method": "search",
            "reason": error.message,
            "certificate": None,
            "counterexample": None,
            "seconds": seconds,
        }
    seconds["prove"] = time.perf_counter() - compared
    if asked.certificate is not None:
        save_bytes(asked.certificate, certificate.packed())
    steps = verdict["steps"]
    return {
        "answer": PROVED, "method": "steps" if steps else "the same terms", **verdict,
        "certificate": None if asked.certificate is None else str(asked.certificate), "counterexample": None, "seconds": seconds,
    }  # fmt: skip


def _compared(asked: Proving, before: Program, after: Program, names: _Names) -> CheckReport:
    """Both programs on drawn inputs: by ONNX Runtime where it runs both as they are called."""
    own = [name for name, _ in before.outputs] == [name for name, _ in after.outputs] and names.head is None
    if own and not is_stablehlo(asked.before) and not is_stablehlo(asked.after):
        return Oracle(str(asked.before), before, asked.dims).compare(str(asked.after), exact=False)
    return against_reference(before, _second(asked, after, names), asked.dims)


def _second(asked: Proving, after: Program, names: _Names) -> Callable[[Feed], Feed]:
    """The second program as a function of inputs, and with outputs, that are called as in the first."""
    session = None if is_stablehlo(asked.after) else Session(str(asked.after))
    inputs = [(term.attribute("name"), names.inputs.get(term.attribute("name"), term.attribute("name"))) for term in after.inputs]

    def run(feed: Feed) -> Feed:
        given = {theirs: feed[ours] for theirs, ours in inputs}
        results = values_of(after, given) if session is None else session.run(given)
        return {names.outputs.get(name, name): value for name, value in results.items()}

    return run


@dataclass(frozen=True)
class _Names:
    """What inputs and outputs of the second program are called in the first."""

    inputs: Mapping[str, str]
    outputs: Mapping[str, str]

    @property
    def head(self) -> dict[str, Any] | None:
        """What the certificate says of them; None where all names are the same."""
        return {"inputs": dict(self.inputs), "outputs": dict(self.outputs)} if self.inputs or self.outputs else None


def _names(before: Program, after: Program, pairs: Mapping[str, str]) -> _Names:
    """Inputs and outputs in pairs: as the user says, by name where both have the same names, else by order.

    Raises:
        CosetError: there are more on one side, or types differ.
    """
    found = []
    ours = [[(term.attribute("name"), term.type) for term in before.inputs], [(name, term.type) for name, term in before.outputs]]
    theirs = [[(term.attribute("name"), term.type) for term in after.inputs], [(name, term.type) for name, term in after.outputs]]
    for what, one, other in zip(("inputs", "outputs"), ours, theirs, strict=True):
        if len(one) != len(other):
            raise CosetError(f"the first program has {len(one)} {what}, the second {len(other)}", help="leave out what only one has")
        types, left = dict(one), [name for name, _ in one]
        said = {name: pairs[name] for name, _ in other if name in pairs}
        for name in said.values():
            if name not in left:
                raise CosetError(
                    f"the first program has no {what[:-1]} `{name}`, or two are paired with it", help=f"it has: {', '.join(types)}"
                )
            left.remove(name)
        rest = [name for name, _ in other if name not in said]
        by_name = set(rest) == set(left)
        said |= {name: name if by_name else left[place] for place, name in enumerate(rest)}
        for name, type in other:
            if types[said[name]] != type:
                raise CosetError(f"`{said[name]}` is {types[said[name]]} in the first program, and `{name}` is {type} in the second")
        found.append({name: said[name] for name, _ in other if said[name] != name})
    return _Names(*found)


def _in_order(before: Program, after: Program, names: _Names) -> Program:
    """The second program with the names and in the order of the first."""
    same = renamed(after, names.inputs, names.outputs)
    outputs = dict(same.outputs)
    inputs = {term.attribute("name"): term for term in same.inputs}
    return replace(
        same, inputs=tuple(inputs[term.attribute("name")] for term in before.inputs),
        outputs=tuple((name, outputs[name]) for name, _ in before.outputs),
    )  # fmt: skip


def _shown(asked: Proving, before: Program, after: Program, names: _Names) -> tuple[Certificate, dict[str, Any]]:
    """A certificate that the checker accepts, and what it says of it.

    Raises:
        Uncertified: there is none.
    """
    phases = with_witnesses(permitted_phases(asked.rules, asked.numerics, lambda rule: not rule.family.endswith(RECOGNISE)))
    one, other = by_content(before), by_content(_in_order(before, after, names))
    limits = Limits(seconds=asked.seconds, nodes=PIECE.nodes, iterations=PIECE.iterations)
    steps = join(list(zip(one.roots, other.roots, strict=True)), phases, limits=limits)
    certificate = certificate_of(one, by_content(after), steps, names=names.head, shown=other)
    return certificate, accepted(certificate, before, after, phases)


def _refuted(asked: Proving, before: Program, after: Program, names: _Names, report: CheckReport) -> dict[str, Any]:
    """What is said of programs that differ, on the plainest inputs that show it: how far, from which node on, and where it was written."""
    shown = next(each for each in report.differences if not each.ok)
    failing = [each.output for each in report.differences if each.case == shown.case and not each.ok]
    (feed,) = (case.feed for case in cases(before, report.binding) if case.name == shown.case)
    try:
        parting = first_difference(before, after, feed, failing, inputs=names.inputs, outputs=names.outputs)
        place, values = parting.summary(), parting.values
    except CosetError as error:  # the runtime has values where the evaluator has none
        place, values = {"unknown": error.message}, {}
    found = {"difference": str(shown), "first_difference": place, "counterexample": None}
    if asked.counterexample is None:
        return found
    runs = {"first": lambda given: values_of(before, given), "second": _second(asked, after, names)}
    if not is_stablehlo(asked.before):
        runs["first"] = Session(str(asked.before)).run
    arrays: dict[str, Any] = {f"input {name}": value for name, value in feed.items()}
    for what, run in runs.items():
        arrays |= {f"{what} {name}": value for name, value in run(feed).items()}
    arrays |= {f"node {what}": value for what, value in values.items()}
    file = BytesIO()
    np.savez(file, **arrays)
    save_bytes(asked.counterexample, file.getvalue())
    return {**found, "counterexample": str(asked.counterexample)}
