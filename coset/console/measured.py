"""Measurements on stdout: a calibration, timings."""

from __future__ import annotations

from collections.abc import Mapping
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


def show_fitted(result: Mapping[str, Any]) -> None:
    """How well the numbers predict the rows of each op, and what no row determines."""
    CONSOLE.print(f"rows       {result['rows']}")
    table = new_table("op", ">rows", ">base: median", ">worst", ">fitted: median", ">worst")
    for row in result["ops"]:
        ratios = [row[when][what] for when in ("before", "after") for what in ("median", "worst")]
        table.add_row(row["op"], str(row["rows"]), *(f"{ratio:.2f}" for ratio in ratios))
    CONSOLE.print(table)
    CONSOLE.print("measured / predicted; worst: farthest from 1")
    before, after = (result["held_back"][name] for name in ("before", "after"))
    if before["median_relative_error"] is not None:
        line = f"{before['median_relative_error']:.0%} with the base, {after['median_relative_error']:.0%} fitted to the others"
        CONSOLE.print(f"held back  {before['cases']} rows, median error {line}", markup=False)
    if result["undetermined"]:
        table = new_table("kernel", "not determined", "rows that would determine it")
        for each in result["undetermined"]:
            at = f" ({', '.join(each['at'])})" if each["at"] else ""
            table.add_row(each["kernel"], each["number"] + at, each["needs"])
        CONSOLE.print(table)
        CONSOLE.print("not determined: the base's numbers, points of curves moved along with their neighbours")
    if result["unmeasured"]:
        kernels = ", ".join(f"{name} ({ops[0].removeprefix('stablehlo.')})" for name, ops in result["unmeasured"].items())
        CONSOLE.print(f"no row     {kernels}: the base's numbers", markup=False)
    CONSOLE.print(f"target     {result['output']}", markup=False)


NOISY = 0.05
"""Blocks of one program that differ by more than this part are those of a machine that does something else, too."""


def show_timings(result: Mapping[str, Any]) -> None:
    """Medians and minima, the ratio to the first line with its 95 % interval, and whether the machine was quiet enough for them."""
    sizes = ", ".join(f"{name} = {size}" for name, size in result["sizes"].items())
    if sizes:
        CONSOLE.print(f"sizes      {sizes}   (others: --dim NAME=N)", markup=False)
    table = new_table("variant", ">median ms", ">min ms", ">ratio", ">95 %", ">runs")
    for row in result["variants"]:
        interval = f"{row['ratio_low']:.3f} to {row['ratio_high']:.3f}"
        table.add_row(row["name"], f"{row['median_ms']:.3f}", f"{row['min_ms']:.3f}", f"{row['ratio']:.3f}", interval, str(row["runs"]))
    CONSOLE.print(table)
    noise = result["noise"]
    if noise > NOISY:
        said = f"the blocks of one variant differ by {noise:.0%}: smaller differences say nothing; --rounds makes the interval smaller"
        CONSOLE.print(f"noisy      {said}", markup=False)
