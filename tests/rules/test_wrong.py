"""What newcomers get wrong: `wrong/` says the one mistake of each file in full, and `wrong/mended/` has the file as the message says.

COSET_REWRITE_GOLDENS=1 writes the messages anew; read the difference.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import coset.dialects
from coset.cli import run
from coset.rules.library import check_files
from tests.rules.test_folders import MARK, REWRITE, said

assert coset.dialects
FOLDER = Path(__file__).parent / "wrong"
WRONG = sorted(FOLDER.glob("*.rules"))


@pytest.mark.parametrize("path", WRONG, ids=lambda path: path.stem)
def test_the_message_names_the_place_the_cause_and_the_remedy(path: Path, tmp_path: Path) -> None:
    text, _, expected = path.read_text().partition(MARK)
    errors = said(path, tmp_path)
    assert len(errors) == 1, "what follows from a mistake is not said"
    messages = "\n".join(f"# {line}".rstrip() for line in str(errors[0]).splitlines()) + "\n"
    if os.environ.get(REWRITE):
        path.write_text(text + MARK + messages)
        expected = messages
    assert messages == expected
    place = errors[0].place
    assert place and place.line and place.column and "^" in messages
    assert errors[0].help and not errors[0].help.startswith("expected one of"), "a list of all words is no remedy"


@pytest.mark.parametrize("path", WRONG, ids=lambda path: path.stem)
def test_the_mended_file_is_read_without_mistakes(path: Path) -> None:
    rules, errors = check_files([FOLDER / "mended" / path.name])
    assert errors == [] and any(rule.place.file.endswith(path.name) for rule in rules.rules)


@pytest.mark.slow
def test_check_accepts_every_mended_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in WRONG:
        (tmp_path / path.name).write_text((FOLDER / "mended" / path.name).read_text().replace("rule r\n", f"rule {path.stem}\n"))
    assert run(["check", "--require", "tested", str(tmp_path)]) == 0
    assert "; 0 mistakes" in capsys.readouterr().out


def test_every_wrong_file_has_a_mended_one() -> None:
    assert {path.name for path in WRONG} == {path.name for path in (FOLDER / "mended").glob("*.rules")}
    assert len(WRONG) >= 40
