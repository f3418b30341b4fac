"""docs/measurements.md is what the data file says, and the files that it names are there."""

from __future__ import annotations

import pytest

from benchmarks.measurements import KEYS, MACHINES, PAGE, RESULTS, page, read

MEASUREMENTS, TABLES = read()


def test_the_page_is_what_the_script_writes() -> None:
    assert PAGE.read_text() == page(MEASUREMENTS, TABLES), "run `python -m benchmarks.measurements --write`"


@pytest.mark.parametrize("entry", MEASUREMENTS, ids=lambda entry: entry["what"][:60])
def test_a_measurement_says_what_it_is_and_names_files_that_are_there(entry: dict[str, str]) -> None:
    assert entry.keys() <= KEYS and {"subject", "what", "figure", "id"} <= entry.keys()
    assert entry.get("machine", "2cpu") in MACHINES
    assert not [name for name in entry.get("results", []) if not (RESULTS / name).is_file()]


def test_tables_have_as_many_cells_as_columns_and_a_subject_that_the_page_has() -> None:
    subjects = {entry["subject"] for entry in MEASUREMENTS}
    for table in TABLES:
        assert table["subject"] in subjects
        assert {len(row) for row in table["rows"]} == {len(table["columns"])}, table["title"]


def test_the_status_stays_short() -> None:
    """It leads to the other pages, and says which goals are open and what no GPU has run."""
    lines = (PAGE.parent / "status.md").read_text().splitlines()
    assert len(lines) < 150 and max(map(len, lines)) <= 200
    assert {"## Goals that are not met yet", "## GPU"} <= set(lines)
