"""What the checker imports is what docs/trust.md lists: no dialect, no prover, no search, no reader of files."""

from __future__ import annotations

import pytest

from benchmarks.trusted import BEFORE, PAGE, closure, written

SPREAD = 1.1  # lines of a module that is edited may grow so far until the page is written again


@pytest.fixture(scope="module")
def found() -> dict[str, int]:
    return closure()


def test_the_page_lists_the_modules_that_the_checker_imports(found: dict[str, int]) -> None:
    said = written(PAGE.read_text())
    assert said.keys() == found.keys(), "python -m benchmarks.trusted --write"
    far = {name: (said[name], lines) for name, lines in found.items() if not lines / SPREAD - 10 <= said[name] <= lines * SPREAD + 10}
    assert not far, "python -m benchmarks.trusted --write"


def test_the_checker_imports_no_dialect_prover_or_search(found: dict[str, int]) -> None:
    folders = {name.split(".")[1] for name in found if "." in name}
    assert folders == {"ir", "prove", "rules"}
    assert (
        not {"coset.rules.definition", "coset.rules.parser", "coset.rules.syntax", "coset.ir.evaluate", "coset.prove.check"} & found.keys()
    )


def test_what_is_trusted_stays_small(found: dict[str, int]) -> None:
    assert sum(found.values()) < BEFORE / 4
