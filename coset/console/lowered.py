"""One lowering to a package on stdout."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coset.console.comparison import show_check, show_not_shown
from coset.console.tables import CONSOLE


def show_lowered(result: Mapping[str, Any]) -> None:
    """Where the package is, what it rests on, and how it compared."""
    show_not_shown(result)
    CONSOLE.print(f"wrote      {result['output']}: {', '.join(result['files'])}", markup=False)
    cost = result["cost"]
    CONSOLE.print(f"predicted  {cost['input'] * 1e6:.1f} us as given, {cost['output'] * 1e6:.1f} us as lowered ({cost['method']})")
    if result["memory"] is not None:
        CONSOLE.print(f"memory     {_temporaries(result['memory'])}", markup=False)
    if result["streams"] is not None:
        CONSOLE.print(f"streams    {_streams(result['streams'])}", markup=False)
    CONSOLE.print(f"rules      {', '.join(rule['name'] for rule in result['rules']) or 'none'}", markup=False)
    for kernel in result["kernels"]:
        tuned = f", tuned {kernel['tuned']['factor']:.2f} times as fast" if "tuned" in kernel else ""
        noted = f" ({kernel['note']})" if "note" in kernel else ""
        CONSOLE.print(f"kernel     {kernel['name']} ({kernel['code']}{tuned}): {', '.join(kernel['ops'])}{noted}", markup=False)
    profile = result["profile"]
    if profile is not None and profile["device"] is not None:
        CONSOLE.print(
            f"profile    {len(profile['tuned'])} of {len(result['kernels'])} kernels as tuned on {profile['device']['name']}", markup=False
        )
        if profile["program"]["strayed"]:
            CONSOLE.print(f"program    another one, {profile['program']['factor']:.2f} times as fast as the first", markup=False)
    if result["check"]["ok"] is None:
        CONSOLE.print(f"check      none: {result['check']['why']}")
    else:
        show_check(result["check"])


def _temporaries(memory: Mapping[str, Any]) -> str:
    """Bytes of temporaries, and what a limit costs."""
    default = f"{memory['default']['bytes']} bytes of temporaries"
    if "chosen" not in memory:
        return default
    chosen = memory["chosen"]
    return (
        f"{chosen['bytes']} bytes of temporaries (limit {memory['limit']}; {default} without), {chosen['again']} kernels launched again, "
        f"predicted {memory['slowdown']:.2f} times as long"
    )


def _streams(streams: Mapping[str, Any]) -> str:
    """What branches of a captured graph are predicted to bring, and what they cost."""
    seconds = (
        f"{streams['seconds'] * 1e6:.1f} us predicted on {streams['count']} streams once captured, {streams['in_turn'] * 1e6:.1f} on one"
    )
    return f"{seconds}; an arena of {streams['arena']} bytes, {streams['arena_in_turn']} on one"
