"""`coset diff A B`: outputs on drawn inputs, nodes by class, the first value that differs, and the page that shows both graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coset.backends.onnxruntime import NotLoaded
from coset.comparing.check import CheckReport, Oracle
from coset.comparing.drawing import INFINITE
from coset.comparing.evaluated import compared as by_evaluator
from coset.comparing.feeds import Sample
from coset.comparing.reference import is_stablehlo, read_program
from coset.comparing.samples import with_samples
from coset.ir.program import Program
from coset.job.answer import save
from coset.job.own_rules import NO_RULES, OwnRules
from coset.optimizing.hub_pipeline import compare_files
from coset.proving.refute import PairedNames, ProgramPair
from coset.reporting.compare import compared, summary
from coset.reporting.page import diff_page

ALLOWED = frozenset({INFINITE})  # a program that was optimized may exchange a NaN and an infinity on infinite inputs


@dataclass(frozen=True)
class Asked:
    """The arguments of `coset diff`. `seconds` of search, 0 for none; `html`: where the page goes."""

    first: str
    second: str
    dims: Mapping[str, int]
    numerics: str = "reassociates"
    seconds: float = 5.0
    html: Path | None = None
    samples: Sequence[Sample] = ()  # inputs of the first to compare on, beside drawn ones
    own: OwnRules = NO_RULES  # the user's rules, which say what nodes of ops of the user's mean


def differing(asked: Asked) -> dict[str, Any]:
    """What `--json` prints: the comparison of the outputs, and how the nodes of both programs belong together.

    Raises:
        CosetError: a file cannot be read, or the first model runs on no drawn input.
    """
    ops = asked.own.ops
    one, other = with_samples(read_program(asked.first, own=ops), asked.samples), read_program(asked.second, own=ops)
    exact = asked.numerics == "exact"
    if is_stablehlo(asked.first) or is_stablehlo(asked.second):
        report = compare_files(asked.first, asked.second, asked.dims, exact=exact, exceptions=ALLOWED, samples=asked.samples, own=ops)
    else:
        try:
            report = Oracle(asked.first, one, asked.dims, exact=exact).compare(asked.second, exact=exact, exceptions=ALLOWED)
        except NotLoaded:
            report = by_evaluator(one, other, asked.dims, exact=exact, exceptions=ALLOWED)
    found = compared(one, other, report.binding, numerics=asked.numerics, seconds=asked.seconds, own=asked.own)
    graphs = found.graphs()
    said = {**report.summary(), **summary(found, graphs), "first_difference": _parting(asked, one, other, report, found.interface)}
    if asked.html is not None:
        save(asked.html, diff_page(_shown(said), graphs, asked.first, asked.second))
        said["html"] = str(asked.html)
    return said


def _parting(asked: Asked, one: Program, other: Program, report: CheckReport, names: PairedNames | None) -> dict[str, Any] | None:
    """The first value that differs, where outputs do and their names say which."""
    if report.ok or names is None or not all(each.output for each in report.differences):
        return None
    pair = ProgramPair((Path(asked.first), Path(asked.second)), one, other, names, asked.dims)
    found: dict[str, Any] = pair.refuted(report, None)["first_difference"]
    return found


def _shown(said: Mapping[str, Any]) -> dict[str, Any]:
    """What the page is to say."""
    place = said["first_difference"]
    first = said["first_unmatched"] if place is None else place.get("words") or place["unknown"]
    nodes = said["nodes"]
    return {
        "check": {key: value for key, value in said.items() if key not in ("nodes", "matched_by", "first_unmatched", "first_difference")},
        "nodes": {"before": nodes["first"], "after": nodes["second"]},
        "matched_nodes": {"both": nodes["both"], "first": nodes["only_first"], "second": nodes["only_second"]},
        "matched": said["matched_by"], "first_unmatched": first,
    }  # fmt: skip
