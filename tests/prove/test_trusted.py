"""What the checker imports is what docs/trust.md lists: no dialect, no prover, no search, no reader of files."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from benchmarks.trusted import PAGE, ROOT, closure, file_of, written
from tests.prove.test_kernel import check, example

MOST = 4_800  # lines: a fifth of what the checker imported when that was first counted
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
    assert sum(found.values()) <= MOST


def test_a_check_runs_nothing_else_of_these_folders(found: dict[str, int]) -> None:
    """But for what is given to it, as the page says: rules propose values of their names, and are read when they are first looked at."""
    before, after, certificate = example()
    ran: set[Path] = set()
    proposing: list[FrameType] = []

    def seen(frame: FrameType, event: str, _: Any) -> None:
        file = Path(frame.f_code.co_filename).resolve()
        if event == "call" and file == ROOT / "rules" / "rule.py" and frame.f_code.co_name == "proposed":
            proposing.append(frame)
        elif event == "return" and proposing and proposing[-1] is frame:
            proposing.pop()
        elif event == "call" and not proposing and file.parent in {ROOT / folder for folder in ("ir", "prove", "rules")}:
            ran.add(file)

    sys.setprofile(seen)
    try:
        check(certificate, before, after)
    finally:
        sys.setprofile(None)
    own = {path.resolve() for name in found if (path := file_of(name)) is not None}
    assert ROOT / "prove" / "kernel.py" in ran and ROOT / "rules" / "applied.py" in ran
    assert {path.name for path in ran - own} <= READING


READING = {"elaborated.py", "loaded.py", "codec.py"}  # of rules that are kept from run to run
