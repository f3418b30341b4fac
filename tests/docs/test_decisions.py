"""The list of decisions has every file of docs/decisions, with its title, in order."""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "decisions"
FILES = sorted(FOLDER.glob("[0-9]*.md"))
ROWS = re.findall(r"^\| (\d+) \| \[(.+)\]\(([\w.-]+)\) \| \d{4}-\d\d-\d\d \| (.+) \|$", (FOLDER / "README.md").read_text(), re.M)


def test_every_decision_has_a_row_with_its_title() -> None:
    titles = [(number, title, path.name) for path in FILES for number, title in re.findall(r"\A# (\d+)\. (.+)\n", path.read_text())]
    assert len(titles) == len(FILES)
    assert [row[:3] for row in ROWS] == titles


def test_numbers_are_those_of_the_files_without_a_gap() -> None:
    assert [int(number) for number, *_ in ROWS] == [int(path.name[:4]) for path in FILES] == list(range(1, len(FILES) + 1))


def test_what_is_superseded_names_what_takes_its_place() -> None:
    for *_, status in ROWS:
        assert status.startswith(("in force", "superseded"))
        assert not [link for link in re.findall(r"\]\(([^)]+)\)", status) if not (FOLDER / link).exists()]
        assert not status.startswith("superseded") or "](" in status
