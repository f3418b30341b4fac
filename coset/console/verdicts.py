"""Verdicts on rules on stdout, and how much of the library is shown."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from coset.console.shares import WORDS, by_use, families, median_seconds, recorded_usage, shares
from coset.console.tables import CONSOLE, new_table

if TYPE_CHECKING:
    from coset.ir.errors import CosetError
    from coset.prove.verdict import RuleVerdict


def range_words(grades: Mapping[str, str]) -> str:
    """Grades of a rule's range on one line: the classes of float types that have the same words together."""
    together: dict[str, list[str]] = {}
    for name, words in grades.items():
        together.setdefault(words, []).append(name)
    return "; ".join(f"{', '.join(names)} {words}" for words, names in together.items())


def show_verdicts(verdicts: Sequence[RuleVerdict], errors: Sequence[CosetError]) -> None:
    """One line a rule, the counterexamples of the refuted ones, the mistakes, the ratios; of files without a rule the mistakes alone."""
    if verdicts:
        _show_rules(verdicts)
    for error in errors:
        print(str(error), file=sys.stderr)
    summary = verdict_summary(verdicts, errors)
    if verdicts:
        _show_shares(summary)
    ratios = ", ".join(f"{summary['ratios'][word]:.0%} {word}" for word in WORDS if summary["ratios"][word])
    shares = f": {ratios}; {summary['ratios']['native']:.0%} with native functions" if verdicts else ""
    CONSOLE.print(f"{len(verdicts)} rules{shares}; {len(errors)} mistakes")


def _show_rules(verdicts: Sequence[RuleVerdict]) -> None:
    table = new_table("rule", "promise", "assurance", ">s", "how")
    for verdict in verdicts:
        table.add_row(escape(verdict.name), verdict.numerics, verdict.assurance, f"{verdict.seconds:.2f}", escape(verdict.method))
    CONSOLE.print(table)
    for verdict in verdicts:
        for direction, grades in verdict.range.items():
            if grades:
                CONSOLE.print(f"range      {verdict.name} {direction} {range_words(grades)}", markup=False)
    for verdict in verdicts:
        if verdict.counterexample:
            CONSOLE.print(f"\nrefuted: {verdict.name}\n{verdict.counterexample}", markup=False)
            for repair in verdict.repairs:
                CONSOLE.print(f"  true with: {repair}", markup=False)


def _show_shares(summary: Mapping[str, Any]) -> None:
    """What was shown, file by file and by use, and how long it took."""
    table = new_table("family", ">rules", *(f">{word}" for word in WORDS))
    for name, family in summary["families"].items():
        table.add_row(escape(name), str(family["rules"]), *(f"{family[word]:.0%}" for word in WORDS))
    used = summary["used"]
    if used is not None and used["uses"]:
        table.add_row("as used", str(used["rules"]), *(f"{used[word]:.0%}" for word in WORDS))
    CONSOLE.print()
    CONSOLE.print(table)
    if used is not None and used["uses"]:
        elsewhere = f"; {used['elsewhere']} uses are of definitions and rules elsewhere" if used["elsewhere"] else ""
        CONSOLE.print(f"as used: weighed by {used['uses']} uses in {used['models']} models (benchmarks/rule_usage.py){elsewhere}")
    seconds = summary["median_seconds"]
    CONSOLE.print("every verdict is from the lock file" if seconds is None else f"median time of what was verified now: {seconds:.2f} s")


def verdict_summary(verdicts: Sequence[RuleVerdict], errors: Sequence[CosetError]) -> dict[str, Any]:
    """What `check --json` prints."""
    keys = ("name", "file", "line", "numerics", "assurance", "seconds", "method", "counterexample", "repairs", "native", "range")
    usage = recorded_usage()
    return {
        "rules": [{key: getattr(verdict, key) for key in keys} for verdict in verdicts],
        "ratios": shares((verdict.assurance, 1) for verdict in verdicts)
        | {"native": sum(verdict.native for verdict in verdicts) / max(1, len(verdicts))},
        "families": families(verdicts),
        "used": None if usage is None else by_use(verdicts, usage),
        "median_seconds": median_seconds(verdicts),
        "errors": [
            {
                "file": e.place.file if e.place else "", "line": e.place.line if e.place else 0, "column": e.place.column if e.place else 0,
                "message": e.message, "help": e.help,
            }
            for e in errors
        ],
    }  # fmt: skip
