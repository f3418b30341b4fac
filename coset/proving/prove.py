"""`coset prove A B`: whether two programs are equal: shown by steps that are checked, refuted by inputs, or unknown and how far it got."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from math import prod
from pathlib import Path
from typing import Any

import coset.dialects
from coset.comparing.check import CheckReport
from coset.comparing.feeds import Sample
from coset.comparing.infinities import REORDERED
from coset.comparing.reference import read_program
from coset.comparing.samples import with_samples
from coset.comparing.sizes import sampled_sizes
from coset.comparing.weights import NARROW
from coset.egraph.limits import Limits
from coset.frontends.onnx.functions import two_of_one_name
from coset.ir.errors import CosetError
from coset.ir.program import Program, tensors_in
from coset.ir.term import topological
from coset.job.answer import save_bytes
from coset.job.own_rules import OwnRules, own_rules, warn
from coset.job.phases import permitted_phases, with_witnesses
from coset.prove.certificate import Certificate
from coset.prove.certificate_file import packed
from coset.prove.contents import by_content, dims_by_content
from coset.prove.fields import Identity, NoQuotient, identical
from coset.proving.alike import by_values, drawn
from coset.proving.certify import accepted, certificate_of
from coset.proving.constants import Goal
from coset.proving.forms import by_forms
from coset.proving.interface import in_order, paired
from coset.proving.join import PIECE, join
from coset.proving.meanings import meaning_within
from coset.proving.reach import reach_alike
from coset.proving.refute import Fails, ProgramPair
from coset.proving.rounded import in_an_order
from coset.proving.sizes import require_one_size, with_shared_dims
from coset.proving.steps import CertificateStep, Uncertified
from coset.rules.equation import EXCEPTIONS, Numerics
from coset.rules.ranges import class_of
from coset.rules.rule import permitted
from coset.rules.written import WrittenRule

assert coset.dialects  # imported so that every op and definition is registered

FIELD_ELEMENTS = 1 << 20  # of all values of two programs that are computed in finite fields: integers are slow
PROVED, REFUTED, UNKNOWN = "proved", "refuted", "unknown"
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Proving:
    """What is asked for: the arguments of `coset prove`. `pairs`: inputs and outputs of B by the name that A has for them; those left
    out have the same name, or else correspond by their order. `certificate`, `counterexample`: where what shows the answer is written."""

    before: Path
    after: Path
    numerics: str = "reassociates"
    rules: Sequence[str | Path | WrittenRule] = ()
    dims: Mapping[str, int] = field(default_factory=dict)
    pairs: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 20.0
    certificate: Path | None = None
    counterexample: Path | None = None
    progress: Progress = lambda _: None
    allow_assumed: bool = False
    samples: Sequence[Sample] = ()  # inputs of A to compare on, beside drawn ones


def prove(asked: Proving) -> dict[str, Any]:
    """The answer, with `answer` one of proved, refuted and unknown, and what of the user's rules is `not_shown`.

    Raises:
        CosetError: a file cannot be read, the programs have interfaces that do not correspond, or as `own_rules`.
    """
    own = own_rules(asked.rules, allow_assumed=asked.allow_assumed, seconds=asked.seconds, progress=asked.progress)
    warn(own, asked.progress)
    return {"not_shown": own.told(), **_answer(asked, own)}


def _answer(asked: Proving, own: OwnRules) -> dict[str, Any]:
    started = time.perf_counter()
    asked.progress("reading both models")
    before, after = (read_program(path, inline=True, own=own.ops) for path in (asked.before, asked.after))
    before = with_samples(before, asked.samples)
    names, spare = paired(before, after, asked.pairs)
    read = time.perf_counter()
    asked.progress("comparing them on drawn inputs")
    given = {**sampled_sizes(before), **asked.dims}
    pair = ProgramPair((asked.before, asked.after), replace(before, inputs=(*before.inputs, *spare)), after, names, given)
    seconds = {"read": read - started}
    try:
        # steps that are looked for may except as much: what differs so is refuted where there are none
        exact = asked.numerics == "exact"
        report = pair.compared(exact=exact, exceptions=_exceptions(asked.numerics))
    except Fails as fails:
        return _refuted_by(pair.failed(fails, asked.counterexample), {**seconds, "compare": time.perf_counter() - read})
    compared = time.perf_counter()
    seconds["compare"] = compared - read
    if not report.ok:
        return _refuted(asked, pair, report, seconds)
    asked.progress("looking for the steps from one to the other")
    try:
        certificate, verdict = _shown(asked, own, before, pair, report.binding)
    except Uncertified as error:
        seconds["prove"] = time.perf_counter() - compared
        return _without_steps(asked, before, pair, report.binding, error.message, seconds, compared)
    seconds["prove"] = time.perf_counter() - compared
    if asked.certificate is not None:
        save_bytes(asked.certificate, packed(certificate))
    steps = verdict["steps"]
    return {
        "answer": PROVED, "method": "steps" if steps else "the same terms", **verdict,
        "certificate": None if asked.certificate is None else str(asked.certificate), "counterexample": None, "seconds": seconds,
    }  # fmt: skip


def _without_steps(
    asked: Proving, before: Program, pair: ProgramPair, binding: Mapping[str, int], reason: str, seconds: dict[str, float], compared: float
) -> dict[str, Any]:
    """The answer where no steps were found, for some `reason`: by finite fields, or by inputs on which the programs differ."""
    exact = asked.numerics == "exact"
    asked.progress("comparing their normal forms")
    after = in_order(before, pair.after, pair.names)
    one, other = (dims_by_content(by_content(each)) for each in (before, after))
    forms = by_forms(one, other, asked.numerics, asked.seconds)
    if forms is not None:
        said = {
            "numerics": "exact" if forms.bits else asked.numerics, "exceptions": [] if forms.bits else ["nonfinite"],
            "solver": forms.solver, "reason": reason,
        }  # fmt: skip
        return {"answer": PROVED, "method": "normal forms", **said, "certificate": None, "counterexample": None, "seconds": seconds}
    identity = None if exact else _identity(before, after)
    if identity is not None:
        said = {
            "numerics": "reassociates", "exceptions": ["nonfinite"], "points": identity.points, "error": identity.error, "reason": reason,
        }  # fmt: skip
        return {"answer": PROVED, "method": "finite fields", **said, "certificate": None, "counterexample": None, "seconds": seconds}
    if not exact and not (strict := pair.compared(exceptions=_exceptions(asked.numerics) - REORDERED)).ok:
        return _refuted(asked, pair, strict, seconds)
    asked.progress("looking for inputs on which they differ")
    try:
        found = pair.hunted(binding, asked.seconds)
    except Fails as fails:
        return _refuted_by(pair.failed(fails, asked.counterexample), {**seconds, "look": time.perf_counter() - compared - seconds["prove"]})
    seconds["look"] = time.perf_counter() - compared - seconds["prove"]
    if found is not None:
        return _refuted(asked, pair, found, seconds)
    return {**unanswered(reason), "seconds": seconds}


def _exceptions(numerics: str) -> frozenset[str]:
    """What steps that are looked for may except; a word weaker than `reassociates` says nothing of infinities and NaN."""
    return frozenset() if numerics == "exact" else REORDERED if numerics == "reassociates" else frozenset({*REORDERED, *EXCEPTIONS})


def unanswered(reason: str) -> dict[str, Any]:
    """What is said where neither was found out."""
    return {"answer": UNKNOWN, "method": "search", "reason": reason, "certificate": None, "counterexample": None, "seconds": {}}


def _refuted(asked: Proving, pair: ProgramPair, report: CheckReport, seconds: dict[str, float]) -> dict[str, Any]:
    started = time.perf_counter()
    asked.progress("looking for the first node that differs")
    found = pair.refuted(report, asked.counterexample)
    return _refuted_by(found, {**seconds, "locate": time.perf_counter() - started})


def _refuted_by(found: Mapping[str, Any], seconds: Mapping[str, float]) -> dict[str, Any]:
    return {"answer": REFUTED, "method": "inputs", "certificate": None, **found, "seconds": dict(seconds)}


def _identity(before: Program, after: Program) -> Identity | None:
    """At how many points of finite fields two programs agree that are polynomials of their inputs, with the probability that different
    ones do so; None where they are something else, or too large to compute so. Rounding and range are not looked at, so all floats must be
    of one type, with 8 bits of exponent at least; infinities reach the same outputs (`reach_alike`)."""
    if len(before.roots) != len(after.roots):  # one has effects
        return None
    goals = list(zip(before.roots, after.roots, strict=True))
    types = [type for term in topological([*before.roots, *after.roots]) for type in tensors_in(term.type)]
    formats = {type.dtype for type in types if type.dtype.kind not in ("int", "uint", "bool")}
    large = any(type.static is None for type in types) or sum(prod(type.static or ()) for type in types) > FIELD_ELEMENTS
    narrow = any(class_of(dtype) in NARROW for dtype in formats)
    if before.effects is not None or large or len(formats) != 1 or narrow or any(one.type != other.type for one, other in goals):
        return None
    try:
        found = [identical(one, other) for one, other in goals]
    except (NoQuotient, CosetError):
        return None
    shown = [each for each in found if each is not None and not each.denominator]
    if not shown or len(shown) != len(found) or not reach_alike(goals):
        return None
    return Identity(min(each.points for each in shown), sum(each.error for each in shown))


def _shown(
    asked: Proving, own: OwnRules, before: Program, pair: ProgramPair, binding: Mapping[str, int]
) -> tuple[Certificate, dict[str, Any]]:
    """A certificate that the checker accepts, and what it says of it. `binding`: numbers for dims, to look at values.

    Raises:
        Uncertified: there is none.
    """
    name = two_of_one_name(before, pair.after)
    if name is not None:
        raise Uncertified(f"the models have two functions `{name}`, which cannot be opened")
    phases = with_witnesses(permitted_phases(own, asked.numerics, lambda rule: not rule.recognises), asked.numerics)
    one, other = by_content(before), by_content(in_order(before, pair.after, pair.names))
    first, second = dims_by_content(one), dims_by_content(other)
    limits = Limits(seconds=asked.seconds, nodes=PIECE.nodes, iterations=PIECE.iterations)

    def show(second: Program, goals: Sequence[Goal]) -> list[CertificateStep]:
        feeds = chain(drawn(pair.before, binding), drawn(pair.before, asked.dims))
        alike = partial(by_values, first, second, feeds)
        return join(goals, phases, limits=limits, alike=alike, means=partial(meaning_within, numerics=asked.numerics))

    sized, second = with_shared_dims(first, second, show)
    require_one_size(first.roots, second.roots)
    goals = list(zip(first.roots, second.roots, strict=True))
    steps = [*sized, *show(second, goals)]
    certificate, verdict = in_an_order(
        steps,
        phases,
        lambda steps: certificate_of(one, by_content(pair.after), steps, shown=other),
        lambda found: accepted(found, before, pair.after, phases, pair.names.mapping),
    )
    promised = Numerics(verdict["numerics"], frozenset(verdict["exceptions"]))
    if not permitted(promised, asked.numerics):  # by definitions, or by constants that round
        raise Uncertified(f"the steps that were found promise `{promised}` only")
    return certificate, verdict
