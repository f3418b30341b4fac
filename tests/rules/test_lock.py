"""Lock files: what `coset check` wrote is believed, what was edited is refused, what nobody sealed is not known."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import coset.dialects
from coset.cli import run
from coset.dialects import __file__ as dialects_file
from coset.ir.errors import CosetError
from coset.rules.library import DEFAULT, load
from coset.rules.lock import NAME, Locked, assure, read_lock, save_lock, text_hash

assert coset.dialects  # ops are registered
DIALECTS = ("dialects/hub", "dialects/onnx", "dialects/composite", "dialects/ort")
RULE = """use stablehlo as hlo
rule planted
  "True, but said to be more."
  for x, y: F[S..]
  hlo.negate(x - y) => y - x
  numerics exact except signed_zero
"""


def locked(folder: Path, assurance: str = "tested") -> Path:
    """A rule with a lock file that says what it was shown to be."""
    (folder / "planted.rules").write_text(RULE)
    (rule,) = (rule for rule in load([folder]).rules if rule.name == "planted")
    save_lock(folder / NAME, {"planted": Locked(text_hash(rule.text), assurance, "36 comparisons of 1 form")})
    return folder / NAME


def edited(lock: Path, change: Callable[[dict[str, Any]], None]) -> None:
    file = json.loads(lock.read_text())
    change(file)
    lock.write_text(json.dumps(file))


def assurance_of(folder: Path) -> str:
    (rule,) = (rule for rule in load([folder]).rules if rule.name == "planted")
    return assure([rule], folder)[0].assurance


EDITS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "proved": lambda file: file["rules"]["planted"].update(assurance="proved"),
    "a method": lambda file: file["rules"]["planted"].update(method="normal forms"),
    "a seal": lambda file: file["rules"]["planted"].update(seal="0" * 16),
    "another name": lambda file: file["rules"].update(other=file["rules"].pop("planted")),
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_line_is_refused_and_named(edit: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lock = locked(tmp_path)
    assert assurance_of(tmp_path) == "tested"
    edited(lock, EDITS[edit])
    with pytest.raises(CosetError, match=r"rules.lock: the line of `(planted|other)` is not what `coset check` wrote"):
        read_lock(lock)
    assert run(["check", str(tmp_path)]) == 2
    assert "take the line out" in capsys.readouterr().err
    edited(lock, lambda file: file["rules"].clear())
    assert run(["check", str(tmp_path)]) == 0
    assert read_lock(lock)["planted"].assurance == "proved", "shown anew, as the message says"


def test_a_line_without_a_seal_and_a_file_of_another_prover_say_nothing(tmp_path: Path) -> None:
    lock = locked(tmp_path, "proved")
    edited(lock, lambda file: file["rules"]["planted"].pop("seal"))
    assert assurance_of(tmp_path) == "assumed"
    lock = locked(tmp_path, "proved")
    assert assurance_of(tmp_path) == "proved"
    edited(lock, lambda file: file.update(prover="of tomorrow"))
    assert assurance_of(tmp_path) == "assumed"


@pytest.mark.parametrize("folder", [DEFAULT[0], *(Path(dialects_file).parents[1] / folder for folder in DIALECTS)])
def test_the_lines_that_are_shipped_are_sealed(folder: Path) -> None:
    assert read_lock(folder / NAME).keys() == json.loads((folder / NAME).read_text())["rules"].keys()


def test_definitions_are_read_at_once_where_no_lock_file_knows_them() -> None:
    program = """
import coset.rules.lock as lock
lock.PROVER = "another"
import coset.dialects
from coset.ir.op import DEFERRED, find_op
assert all(find_op(name) is not None for name in list(DEFERRED))
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("folder", ["rules/library", *DIALECTS, "benchmarks"])
def test_the_lock_files_here_are_those_of_this_prover(folder: str) -> None:
    """What another prover wrote is not known: the rules of such a folder would be judged anew by whoever uses them."""
    assert read_lock(Path(__file__).resolve().parents[2] / folder / NAME)
