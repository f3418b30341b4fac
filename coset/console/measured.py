"""Measurements on stdout: a calibration, timings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from coset.console.tables import CONSOLE, new_table


def show_calibrated(result: Mapping[str, Any]) -> None:
    """How well the numbers predict what they were not fitted to, before and after."""
    left = f", {result['left']} left for another run" if result["left"] else ""
    CONSOLE.print(f"cases      {result['cases']}, measured now: {result['measured']}{left}")
    table = new_table("cases held back", ">Spearman", ">median error")
    for name, label in (("before", "as shipped"), ("after", "calibrated")):
        found = result["held_back"][name]
        numbers = [found["spearman"], found["median_relative_error"]]
        shown = ["too few" if number is None else form.format(number) for number, form in zip(numbers, ("{:.3f}", "{:.0%}"), strict=True)]
        table.add_row(f"{label} ({found['cases']})", *shown)
    CONSOLE.print(table)
    CONSOLE.print(f"target     {result['output']}", markup=False)
    CONSOLE.print(f"profile    {result['profile']}", markup=False)


def show_timings(timings: Sequence[Mapping[str, Any]]) -> None:
    """Medians and minima, with the ratio to the first line."""
    table = new_table("variant", ">median ms", ">min ms", ">ratio", ">runs")
    first = timings[0]["median_ms"]
    for row in timings:
        table.add_row(row["name"], f"{row['median_ms']:.3f}", f"{row['min_ms']:.3f}", f"{row['median_ms'] / first:.3f}", str(row["runs"]))
    CONSOLE.print(table)
