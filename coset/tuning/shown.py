"""What `coset tune` says to people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coset.console.comparison import show_not_shown
from coset.console.tables import CONSOLE, new_table


def show_tuned(result: Mapping[str, Any]) -> None:
    """What was left of each family, and what the clock chose."""
    show_not_shown(result)
    CONSOLE.print(f"target     {result['target']} ({result['architecture']}), {result['compiler']}", markup=False)
    if result["sizes"]:
        CONSOLE.print(f"sizes      {', '.join(f'{name}={size}' for name, size in result['sizes'].items())}", markup=False)
    rows = new_table("family", ">kernels", ">alternatives", ">compiled", ">survive")
    for name, counts in result["families"].items():
        rows.add_row(name, *(str(counts[each]) for each in ("kernels", "alternatives", "compiled", "survivors")))
    CONSOLE.print(rows)
    for kernel in result["kernels"]:
        if kernel.get("chosen") is not None:
            text = "the default" if kernel["chosen"] == kernel["default"] else f"{kernel['factor']:.2f} times as fast: {kernel['chosen']}"
            CONSOLE.print(f"kernel     {kernel['name']}: {text}", markup=False)
        if kernel.get("not_measured"):
            CONSOLE.print(f"kernel     {kernel['name']}: not measured: {kernel['not_measured']}", markup=False)
        for text, problem in kernel.get("problems", {}).items():
            CONSOLE.print(f"  dropped  {text}: {problem}", markup=False)
    for each in result.get("raced", []):
        told = each["problem"] or f"{1 / each['ratio']:.2f} times as fast as the first" if each["strayed"] else "the first"
        CONSOLE.print(f"program    {each['digest']}: {told}", markup=False)
    if result["stop"] == "time":
        CONSOLE.print("stopped    time is over: another run goes on")
    CONSOLE.print(f"profile    {result['profile']}", markup=False)
