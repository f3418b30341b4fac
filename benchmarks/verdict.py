"""What the times of one program say: is coset slower than the best that ONNX Runtime does alone, and what of the headroom did it reach."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, fsum, log
from typing import Any

from coset.comparing.timing import Ratio, Timing, ratio

RIVALS = ("off", "basic", "all", "onnxsim", "onnxscript")
"""The unchanged program at ONNX Runtime's levels, and after a converter at its full level."""
SLOWER = 1.02
"""A program is slower when the 95 % interval of its time over the rival's lies wholly above this."""
SHARE = 0.8
"""The part of the headroom that is to be reached."""

Row = dict[str, Any]


def judged(found: Mapping[str, Timing]) -> Row:
    """The ratios of a row: `slowdown` (coset over the best rival), `gain` (ONNX Runtime's full level over coset), `headroom` (the best
    rival over the form made by hand) and `share`, of those that were measured."""
    rivals = [name for name in RIVALS if name in found]
    row: Row = {"best_rival": min(rivals, key=lambda name: found[name].median)} if rivals else {}
    if not row or "coset" not in found:
        return row
    best, ours = found[row["best_rival"]], found["coset"]
    slowdown = ratio(ours, best)
    row["slowdown"] = vars(slowdown)
    if "all" in found:
        row["gain"] = vars(ratio(found["all"], ours))
    if "hand" in found:
        headroom = ratio(best, found["hand"])
        row |= {"headroom": vars(headroom), "share": share(slowdown, headroom), "behind_hand": vars(ratio(ours, found["hand"]))}
    return row


def share(slowdown: Ratio, headroom: Ratio) -> float | None:
    """The part of the headroom that was reached, in logarithms: two wins of 1.5x are as much as one of 2.25x. None where the interval
    of the headroom is not wholly above `SLOWER`: there is nothing to reach. Above 1 the form made by hand is beaten."""
    if headroom.low <= SLOWER:
        return None
    return -log(slowdown.value) / log(headroom.value)


def slower(row: Row) -> bool:
    """True for a program that coset made slower than the best rival."""
    return "slowdown" in row and row["slowdown"]["low"] > SLOWER


def short(row: Row) -> bool:
    """True for a program of which too little headroom was reached."""
    reached = row.get("share")
    return reached is not None and reached < SHARE


def mean_gain(rows: Sequence[Row]) -> float | None:
    """The geometric mean of the gains against ONNX Runtime's full level; None without any."""
    gains = [log(row["gain"]["value"]) for row in rows if "gain" in row]
    return exp(fsum(gains) / len(gains)) if gains else None


def summary(rows: Sequence[Row]) -> str:
    """The three numbers that are wanted, and the programs that miss them."""
    timed = [row for row in rows if "slowdown" in row]
    untimed = [f"{row['name']} ({why(row)})" for row in rows if "slowdown" not in row]
    gained = sum("gain" in row for row in rows)
    mean, wide = mean_gain(rows), [row for row in timed if row.get("share") is not None]
    lost = [f"{row['name']} {row['slowdown']['value']:.2f} (from {row['slowdown']['low']:.2f})" for row in timed if slower(row)]
    missed = [f"{row['name']} {row['share']:.0%} of {row['headroom']['value']:.2f}x" for row in wide if short(row)]
    return "\n".join(
        [
            "",
            f"{len(rows)} programs, {len(timed)} timed against a rival",
            f"slower than the best rival (interval of the ratio wholly above {SLOWER}): {len(lost)}{_listed(lost)}",
            f"geometric mean against ONNX Runtime's full level, over {gained}: {'none' if mean is None else f'{mean:.3f}'}",
            f"headroom by hand above {SLOWER}: {len(wide)}, of which under {SHARE:.0%} reached: {len(missed)}{_listed(missed)}",
            f"not compared: {len(untimed)}{_listed(untimed)}",
        ]
    )


def why(row: Row) -> str:
    """Why a row has no comparison."""
    if "error" in row:
        return str(row["error"])[:120]
    if "coset" in row.get("wrong", {}):
        return f"coset is off by {row['wrong']['coset']:.1e}, allowed {row['tolerance']:.0e}"
    return str(row.get("failed", {}).get("coset", "not timed"))[:120]


def _listed(names: Sequence[str]) -> str:
    return "".join(f"\n    {name}" for name in names)
