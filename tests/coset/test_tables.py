"""Tables on stdout: a line for each row, and only the last column is cut."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from coset.console.tables import new_table
from coset.console.verdicts import show_verdicts
from coset.prove.verdict import RuleVerdict


def printed(rows: list[tuple[str, ...]], *columns: str) -> list[str]:
    table = new_table(*columns)
    for row in rows:
        table.add_row(*row)
    out = io.StringIO()
    Console(file=out, width=60, highlight=False).print(table)
    return out.getvalue().splitlines()


def test_a_long_last_column_takes_no_room_from_the_others() -> None:
    head, *lines = printed(
        [("a_rule", "proved", "0.64", "normal forms " * 30), ("other", "tested", "12.00", "short")], "rule", "assurance", ">s", "how"
    )
    assert head.split() == ["rule", "assurance", "s", "how"] and len(lines) == 2
    assert lines[0].startswith("a_rule  proved      0.64  normal forms") and lines[0].rstrip().endswith("…") and len(lines[0]) <= 60
    assert lines[1].split() == ["other", "tested", "12.00", "short"]


def test_how_a_rule_was_shown_is_said_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    show_verdicts([RuleVerdict("mine", "/x/m.rules", 1, "exact", "tested", 0.5, "open for f32[n], f32[1]: left is x[i]")], [])
    assert "open for f32[n], f32[1]: left is x[i]" in capsys.readouterr().out
