"""`coset calibrate --from`: a target's numbers fitted to somebody's own measurements, and what these say and do not say of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path
from statistics import median
from typing import Any

from coset.calibration.rows import MeasuredRow, measured_rows
from coset.extract.determined import DETERMINED, shares_held
from coset.extract.fit import MeasuredLink, Number, Quality, fit, predicted, quality
from coset.ir.errors import CosetError
from coset.targets.target import EVERY, Kernel, Target
from coset.targets.write import overlay

HELD_BACK = 4  # one row in so many of its op takes no part in the fit that is judged
SHOWN_OPS = 4  # of those that would be measured for a kernel


@dataclass(frozen=True)
class Undetermined:
    """Numbers of a kernel that no row determines, with the rows that would. They are the base's; points of a curve may have moved along
    with their neighbours."""

    kernel: str
    number: str  # launch, piece, rates, bandwidth, rows or work
    at: tuple[str, ...]  # element types of rates, x of a curve's points
    needs: str


@dataclass(frozen=True)
class FittedRows:
    """The `target` fitted to all rows. `before` and `after`: how well the numbers that were there, and those of a fit without the rows
    held back, predict these rows. `undetermined`: numbers of kernels that rows have to do with; `unmeasured`: the kernels that no row has
    to do with, each with ops that run as it."""

    target: Target
    rows: tuple[MeasuredRow, ...]
    base: Target
    before: Quality
    after: Quality
    undetermined: tuple[Undetermined, ...]
    unmeasured: dict[str, tuple[str, ...]]

    def summary(self) -> dict[str, Any]:
        """For people and for `--json`: ratios are measured / predicted."""
        held = {
            name: {"cases": found.cases, "spearman": _finite(found.spearman), "median_relative_error": _finite(found.error)}
            for name, found in (("before", self.before), ("after", self.after))
        }
        return {
            "rows": len(self.rows), "ops": [self._op(name) for name in dict.fromkeys(row.op for row in self.rows)], "held_back": held,
            "undetermined": [{**vars(each), "at": list(each.at)} for each in self.undetermined],
            "unmeasured": {name: list(ops) for name, ops in self.unmeasured.items()},
        }  # fmt: skip

    def _op(self, name: str) -> dict[str, Any]:
        rows = [row for row in self.rows if row.op == name]
        return {"op": name, "rows": len(rows), "before": _ratios(rows, self.base), "after": _ratios(rows, self.target)}


def fit_rows(path: Path, base: Target, *, progress: Callable[[str], None] = lambda _: None) -> FittedRows:
    """`base` with the numbers of its kernels moved to where they explain the measurements in the CSV file at `path`, by the robust least
    squares of `coset.extract.fit`. What no row determines stays what it was.

    Raises:
        CosetError: as `measured_rows`, or the target has a host, where a row does not say what ran where.
    """
    if base.host is not None:
        help = f"fit `{base.host}`, or the target without `host`, and name the result as its base"
        raise CosetError(f"`{base.name}` has a host: a row does not say which of the two was timed", help=help)
    rows = measured_rows(path, base)
    source = f"measured: {path.name}, {len(rows)} rows, fitted on {time.strftime('%Y-%m-%d')} by `coset calibrate --from`"
    held, shown = _parted(rows)
    links = [row.link for row in rows]
    after = quality(held, fit(base, shown, source, progress=progress))
    fitted = fit(base, links, source, progress=progress)
    shares = shares_held(fitted, links)
    undetermined = [each for name, numbers in shares.items() for each in _undetermined(name, fitted.kernels[name], numbers)]
    unmeasured = {name: tuple(_ops(base, name)) for name in sorted(base.kernels) if name not in shares and _has_numbers(base.kernels[name])}
    named = {name: ops for name, ops in unmeasured.items() if ops}
    return FittedRows(fitted, tuple(rows), base, quality(held, base), after, tuple(undetermined), named)


def as_target_file(found: FittedRows, name: str) -> str:
    """The fitted target as a target file; `name` is that of the measurements."""
    return overlay(found.target, found.base, f"{found.base.title}, fitted to the {len(found.rows)} rows of {name}")


def _parted(rows: Sequence[MeasuredRow]) -> tuple[list[MeasuredLink], list[MeasuredLink]]:
    """The rows held back, and the others: of each op every fourth by its time, never the first or the last, beyond which a fit cannot know
    anything."""
    held: list[MeasuredLink] = []
    shown: list[MeasuredLink] = []
    for op in dict.fromkeys(row.op for row in rows):
        ordered = sorted((row.link for row in rows if row.op == op), key=lambda link: link.seconds)
        for place, link in enumerate(ordered):
            (held if place % HELD_BACK == HELD_BACK // 2 and place < len(ordered) - 1 else shown).append(link)
    return held, shown


def _ratios(rows: Sequence[MeasuredRow], target: Target) -> dict[str, float]:
    found = [row.link.seconds / predicted(row.link, target) for row in rows]
    return {"median": median(found), "worst": max(found, key=lambda ratio: abs(log(ratio)))}


def _finite(value: float) -> float | None:
    return value if value == value else None


# ---------------------------------------------------------------- what is not known


NEEDS = {
    "launch": "rows of a few elements, which take little more than the launch",
    "piece": "rows of several pieces: a batch of products, more operands, more slices",
    "rates": "rows of these element types whose work takes longer than their bytes and the launch",
    "bandwidth": "rows that read and write about so many bytes, and do little work",
    "rows": "products of about so many rows",
    "work": "rows of about so many FLOP",
}
"""The rows that would determine a number of a kernel."""


def _undetermined(name: str, kernel: Kernel, shares: Mapping[Number, float]) -> Iterator[Undetermined]:
    """The numbers of a kernel that its former numbers hold more than the rows do."""
    for field, needs in NEEDS.items():
        places = [which for (each, which), share in shares.items() if each == field and share > DETERMINED]
        if places:
            yield Undetermined(name, field, tuple(_at(kernel, field, which) for which in places if which != ""), needs)


def _at(kernel: Kernel, field: str, which: str | int) -> str:
    """Of which of its numbers a field speaks: an element type, or the x of a point."""
    if isinstance(which, str):
        return "others" if which == EVERY else which
    return f"{getattr(kernel, field).points[which][0]:.3g}"


def _has_numbers(kernel: Kernel) -> bool:
    return kernel.launch.value > 0 or bool(kernel.rates) or kernel.bandwidth is not None


def _ops(target: Target, kernel: str) -> Iterator[str]:
    """The first ops that run as a kernel."""
    found = (op for op, forms in target.forms.items() if any(form.kernel == kernel for form in forms))
    for _, op in zip(range(SHOWN_OPS), found, strict=False):
        yield op
