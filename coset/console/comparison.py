"""Comparisons of two programs on stdout."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coset.console.tables import CONSOLE
from coset.job.own_rules import not_shown_lines


def show_not_shown(result: Mapping[str, Any]) -> None:
    """Which rules of the user's may have fired although nothing is shown of them."""
    for line in not_shown_lines(result):
        CONSOLE.print(f"not shown  {line}", markup=False)


def show_check(check: Mapping[str, Any]) -> None:
    """The comparison with the original."""
    verdict = "equal within tolerance" if check["ok"] else f"DIFFERENT: {check['problem'] or 'beyond the tolerance'}"
    skipped = f", not run by the original: {', '.join(check['skipped'])}" if check["skipped"] else ""
    largest = f"largest difference {check['max_abs']:.3g} ({check['max_rel']:.3g} relative)"
    CONSOLE.print(f"check      {verdict} on {', '.join(check['inputs'])} inputs{skipped}; {largest}")
    if check.get("by"):
        CONSOLE.print(f"           compared by {check['by']}", markup=False)
    if check.get("loose"):
        CONSOLE.print(f"           not bit by bit: {check['loose']}")
    if check.get("blind"):
        CONSOLE.print(f"           little is seen: {check['blind']}; inputs that matter are given with --sample-inputs FILE")


def show_differing(result: Mapping[str, Any]) -> None:
    """How two programs compared: their outputs, then their nodes."""
    show_check(result)
    nodes = result["nodes"]
    one, other = nodes["both"]
    both = f"{one} in both" if one == other else f"{one} and {other} in both"
    print_line = CONSOLE.print
    print_line(f"nodes      {both}, {nodes['only_first']} only in the first, {nodes['only_second']} only in the second")
    print_line(f"paired by  {result['matched_by']}", markup=False)
    if result["first_difference"] is not None:
        place = result["first_difference"]
        print_line(f"first      {place.get('words') or 'no node is named: ' + place['unknown']}", markup=False)
    elif result["first_unmatched"] is not None:
        print_line(f"first      {result['first_unmatched']} has no equal in the second", markup=False)
    if "html" in result:
        print_line(f"written    {result['html']}", markup=False)
