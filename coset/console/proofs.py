"""Proofs and certificates on stdout."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coset.console.comparison import show_not_shown
from coset.console.tables import CONSOLE


def show_proved(result: Mapping[str, Any]) -> None:
    """What comparing two programs gave."""
    show_not_shown(result)
    print_line = CONSOLE.print
    print_line(f"{result['answer']:10s} {sum(result['seconds'].values()):.2f} s, by {result['method']}", markup=False)
    if result["method"] == "finite fields":
        print_line(
            f"rests on   values at {result['points']} random points of finite fields; no certificate: {result['reason']}", markup=False
        )
        print_line(
            f"error      at most {result['error']:.1e}: how probable it is that other polynomials agree there; no rounding is looked at"
        )
    elif result["method"] == "normal forms":
        how = "normal forms and Z3" if result["solver"] else "normal forms"
        print_line(f"rests on   {how}, for all sizes; numerics {_promise(result)}; no certificate: {result['reason']}", markup=False)
    elif result["answer"] == "proved":
        print_line(f"rests on   {result['steps']} steps, rules that are {result['assurance']} or better; numerics {_promise(result)}")
        _show_conditions(result)
    else:
        print_line(f"           {result.get('difference') or result.get('reason')}", markup=False)
    if "first_difference" in result:
        place = result["first_difference"]
        print_line(f"first      {place.get('words') or 'no node is named: ' + place['unknown']}", markup=False)
    for key in ("certificate", "counterexample"):
        if result[key] is not None:
            print_line(f"{key:14s} {result[key]}", markup=False)


def _promise(result: Mapping[str, Any]) -> str:
    """The weakest word of what was used, with all exceptions."""
    exceptions = result["exceptions"]
    return f"{result['numerics']}" + (f" except {', '.join(exceptions)}" if exceptions else " or stronger")


def _show_conditions(result: Mapping[str, Any]) -> None:
    """Under what the answer holds: names in pairs, other orders, inputs that nothing reads, rules of the user's own."""

    def line(head: str, text: str) -> None:
        CONSOLE.print(f"{head:10s} {text}", markup=False)

    if result["names"]:
        pairs = " ".join(f"--map {after}={before}" for after, before in sorted(result["names"].items()))
        line("under", f"{pairs}: names of AFTER and of BEFORE, which the certificate does not say: give them to `coset verify` too")
    if result["reordered"]:
        line("order", f"the {' and '.join(result['reordered'])} stand in another order in the two files: they are paired by name")
    if result["unread"]:
        line("unread", f"inputs that only one program has, and that nothing reads: {', '.join(result['unread'])}")
    if result["own"]:
        line("own", f"rules of yours: {', '.join(f'{name} ({shown})' for name, shown in sorted(result['own'].items()))}")
    rounding = result["largest_rounding"]
    if rounding["absolute"]:
        text = f"constants are rounded, by at most {rounding['absolute']:.1e} an element, {rounding['relative']:.1e} of it"
        line("rounded", f"{text}; {result['rounded']} of them by somebody else")


def show_verified(result: Mapping[str, Any]) -> None:
    """What checking a certificate gave."""
    show_not_shown(result)
    if not result["ok"]:
        CONSOLE.print(f"rejected   {result['reason']}", markup=False)
        if result["help"]:
            CONSOLE.print(f"           {result['help']}", markup=False)
        return
    print_line = CONSOLE.print
    print_line(f"holds      {result['steps']} steps, {result['computed']} constants computed, {result['seconds']['verify']:.2f} s")
    print_line(f"rests on   rules that are {result['assurance']} or better; numerics {_promise(result)}")
    _show_conditions(result)
    if "proved_anew" in result:
        print_line(
            f"anew       {result['proved_anew']} rules were shown again to be what they are locked as, {result['seconds']['prove']:.2f} s"
        )
    for promise, names in result["promises"].items():
        print_line(f"promise    {promise}: {', '.join(names)}", markup=False)
