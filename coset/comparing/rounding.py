"""Models of short floats that the runtime rounds elsewhere as soon as they are written anew: at the ends of the range they are judged by
the evaluator, which rounds at every node."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import replace

from coset.comparing.check import EXTREME, CheckReport
from coset.comparing.feeds import Feed
from coset.comparing.reference import against_reference, values_in_order, work_of
from coset.ir.errors import CosetError
from coset.ir.program import Program, tensors_in

SHORT = 16  # bits of floats for which ONNX Runtime's CPU has few kernels: it computes in f32, and rounds where two nodes happen to meet
MOST_WORK = 1 << 31  # FLOP, above which no program is evaluated
AT_ENDS = (
    "the runtime rounds short floats elsewhere as soon as the model is written anew, without any rule: at the ends of their range both"
    " were judged by the evaluator, which rounds at every node (docs/undefined.md, bits)"
)


def only_at_ends(report: CheckReport) -> bool:
    """Whether what differs does so on inputs alone that are huge, not finite or at the ends of their types."""
    return all(each.ok or each.case in EXTREME for each in report.differences)


def usual(report: CheckReport) -> CheckReport:
    """The report on the other inputs."""
    return replace(report, differences=[each for each in report.differences if each.case not in EXTREME])


def by_rounding(original: Program, other: Program, report: CheckReport, *, exact: bool, exceptions: AbstractSet[str]) -> CheckReport | None:
    """`report`, of two programs that differ at the ends alone as the runtime runs them, with what the evaluator says of them there: they
    are the same, bit by bit where that is `exact`. None where that is not so, or cannot be said."""
    short = any(type.dtype.kind == "float" and type.dtype.bits <= SHORT for term in original.terms() for type in tensors_in(term.type))
    if not short or original.effects is not None or work_of(original, report.binding) > MOST_WORK:
        return None

    def run(feed: Feed) -> Feed:
        return values_in_order(original, other, feed)

    try:
        found = against_reference(original, run, report.binding, exact=exact, exceptions=exceptions)
    except CosetError:
        return None
    if not found.ok:
        return None
    ends = [each for each in found.differences if each.case in EXTREME]
    return replace(report, differences=[*usual(report).differences, *ends], loose=AT_ENDS)
