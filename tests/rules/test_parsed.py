"""Kept parses: equal to fresh ones, places included; anything wrong with the cache costs time and nothing else."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from coset.rules import cache, parsed, parser
from coset.rules.syntax import RuleError

ROOT = Path(__file__).resolve().parents[2]
TESTS = [path for path in (ROOT / "tests").rglob("*.rules") if path.parent.name not in ("fail", "wrong")]  # mistakes are not kept
FILES = sorted([*(ROOT / "rules/library").glob("*.rules"), *(ROOT / "dialects").glob("*/*.rules"), *TESTS])
TEXT = "use stablehlo\nrule twice for x: F[S..]\n  x + x => x * 2\n  numerics exact\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(cache.FOLDER, str(tmp_path))
    return tmp_path / "parsed"


def kept(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.exists() else []


@pytest.fixture
def forbidden(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From the call on the parser must not be asked."""

    def forbid() -> None:
        def refuse(*_: str) -> None:
            raise AssertionError("parsed again")

        monkeypatch.setattr(parser, "parse", refuse)

    return forbid


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_what_is_kept_is_what_was_parsed(path: Path, forbidden: Callable[[], None]) -> None:
    text = path.read_text()
    fresh, errors = parser.parse(text, str(path))
    assert parsed.parse(text, str(path)) == (fresh, errors)
    if not errors:
        forbidden()
    again, _ = parsed.parse(text, str(path))
    assert repr(again) == repr(fresh)  # `==` passes over places and texts


def test_the_place_is_that_of_the_file_at_hand(forbidden: Callable[[], None]) -> None:
    parsed.parse(TEXT, "one.rules")
    forbidden()
    found, _ = parsed.parse(TEXT, "other.rules")
    assert found.path == "other.rules"
    assert found.rules[0].place.file == "other.rules"
    assert found.rules[0].left.place.source == "  x + x => x * 2"


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda body: b"",
    "cut off": lambda body: body[: len(body) // 2],
    "another number": lambda body: body[:-4] + b"7" + body[-3:],
    "no text": lambda body: b"\xff" * len(body),
    "whole, of another shape": lambda body: cache.digest(b"[7]") + b"\n[7]",
    "whole, too deep for the kinds": lambda body: cache.digest(b"[99,1]") + b"\n[99,1]",
    "whole, a line that is not there": lambda body: cache.digest(b"[2,99,1,1]") + b"\n[2,99,1,1]",
    "whole, a plain value": lambda body: cache.digest(b"1") + b"\n1",
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_file_is_parsed_anew_and_mended(damage: Callable[[bytes], bytes], folder: Path, forbidden: Callable[[], None]) -> None:
    fresh, _ = parsed.parse(TEXT, "one.rules")
    (file,) = kept(folder)
    whole = file.read_bytes()
    file.write_bytes(damage(whole))
    assert repr(parsed.parse(TEXT, "one.rules")[0]) == repr(fresh)
    assert file.read_bytes() == whole
    forbidden()
    assert repr(parsed.parse(TEXT, "one.rules")[0]) == repr(fresh)


def test_mistakes_are_not_kept(folder: Path) -> None:
    wrong = TEXT.replace("numerics exact", "")
    for _ in range(2):
        assert [error.message for error in parsed.parse(wrong, "one.rules")[1]] == ["the rule does not say what it promises about numbers"]
        with pytest.raises(RuleError, match="ends too early"):
            parsed.parse("rule rule", "one.rules")
    assert not kept(folder)


def test_another_version_of_the_parser_is_another_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed.parse(TEXT, "one.rules")
    monkeypatch.setattr(parsed, "version", lambda: "another")
    parsed.parse(TEXT, "one.rules")
    assert len(kept(folder)) == 2


def test_a_folder_that_cannot_be_made_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(cache.FOLDER, str(tmp_path / "file"))
    assert parsed.parse(TEXT, "one.rules")[0].rules[0].name == "twice"


def test_no_folder_where_the_user_wants_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache.FOLDER, "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert parsed.parse(TEXT, "one.rules")[0].rules[0].name == "twice"
    assert not kept(tmp_path)
    monkeypatch.delenv(cache.FOLDER)
    parsed.parse(TEXT, "one.rules")
    assert len(kept(tmp_path / "coset" / "parsed")) == 1


def test_the_folder_does_not_grow_without_end(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MOST", 6)
    for number in range(30):
        parsed.parse(TEXT.replace("twice", f"twice{number}"), "one.rules")
    assert 3 <= len(kept(folder)) <= 6
    assert all(stat.S_ISREG(file.stat().st_mode) and file.suffix == ".json" for file in kept(folder))


def test_a_start_loads_neither_the_parser_nor_what_most_programs_do_without(tmp_path: Path) -> None:
    code = "import sys, coset.optimizing.pipeline; from coset.rules.library import load; load(); print(*sys.modules)"
    environment = {**os.environ, cache.FOLDER: str(tmp_path)}
    for _ in range(2):  # the first one fills the cache
        done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment)
    loaded = set(done.stdout.split())
    assert not loaded & {"lark", "scipy", "egglog", "black", "z3", "torch", "jax", "triton"}
    assert not loaded & {
        "networkx",
        "rich",
        "onnx.reference",
        "coset.searching.planner",
        "coset.lowering.kernels.kernel",
        "coset.proving.certify",
    }
