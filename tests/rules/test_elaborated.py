"""Kept rules of the library: equal to those that are elaborated from the text, and made anew when what decides them has changed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import coset.dialects
from coset.ir.registry import all_ops
from coset.prove.conditions import unconditional
from coset.rules import cache, definition, definition_rules, elaborated, library
from coset.rules.elaborated import ROOT, comes_with_coset
from coset.rules.equation import Compiled
from coset.rules.library import DEFAULT, load, rule_files
from coset.rules.rule import Rule
from tests.sampled import sampled

assert coset.dialects
all_ops()  # so that reading rules registers no op, and op variables range over the same ones each time
FILES = rule_files(DEFAULT)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(cache.FOLDER, str(tmp_path))
    library._load_cached.cache_clear()
    return tmp_path / "elaborated"


def loaded() -> dict[str, Rule]:
    library._load_cached.cache_clear()
    return {rule.name: rule for rule in load(DEFAULT, with_definitions=False).rules}


def plain(value: Any) -> Any:
    """A value as texts; sets, which have no order of their own, sorted."""
    if isinstance(value, Compiled):
        return [plain(getattr(value, field.name)) for field in fields(Compiled)]
    return re.sub(r"frozenset\(\{(.*?)\}\)", lambda found: str(sorted(found[1].split(", "))), repr(value))


def test_every_kept_rule_is_the_one_that_was_elaborated(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = loaded()
    assert len(list(folder.iterdir())) == len(FILES), "every file of the library can be kept"

    def refuse(*_: object) -> None:
        raise AssertionError("elaborated again")

    monkeypatch.setattr(library, "rules_of", refuse)
    again = loaded()
    assert list(again) == list(fresh)
    for name, rule in fresh.items():
        for field in fields(Rule):
            assert plain(getattr(again[name], field.name)) == plain(getattr(rule, field.name)), f"{name}.{field.name}"


@pytest.mark.slow
def test_every_kept_definition_is_the_one_that_was_elaborated(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over the definitions of every dialect; what of them cannot be kept is elaborated each time."""

    def read() -> list[tuple[list[Rule], list[Rule]]]:
        return [definition_rules.rules_of_entry(entry, each.op, each.dialects) for each in known for entry in each.few]

    definition.definitions()
    known = [each for name, each in sorted(definition.DEFINED.items()) if not each.is_sugar]
    fresh = read()
    files = folder.parent / "definitions"
    assert len(list(files.iterdir())) > 0.9 * len(fresh)
    asked: list[str] = []
    elaborate = definition_rules.elaborated_rules
    monkeypatch.setattr(definition_rules, "elaborated_rules", lambda *given: (asked.append(given[1].name), elaborate(*given))[1])
    for before, after in zip(fresh, read(), strict=True):
        for one, other in zip([*before[0], *before[1]], [*after[0], *after[1]], strict=True):
            for field in fields(Rule):
                if field.name != "mirrors":
                    assert plain(getattr(other, field.name)) == plain(getattr(one, field.name)), f"{one.name}.{field.name}"
            assert [mirror.name for mirror in other.mirrors] == [mirror.name for mirror in one.mirrors]
    assert len(asked) < 0.1 * len(fresh), asked


def test_attributes_and_conditions_are_read_only_when_they_are_asked_for() -> None:
    loaded()
    rule = next(iter(loaded().values()))
    assert set(vars(rule.compiled)) == {"_read"}
    assert rule.compiled.left_places
    assert set(vars(rule.compiled)) > {field.name for field in fields(Compiled)}


def test_changed_sources_and_other_ranges_are_elaborated_anew(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = loaded()
    monkeypatch.setattr(elaborated, "sources", lambda: "changed")
    assert list(loaded()) == list(fresh)
    assert len(list(folder.iterdir())) == 2 * len(FILES)
    ranged = next(path for path in FILES if re.search(r"op \w+: (unary|binary|commutative)", path.read_text()))
    assert elaborated.kept(ranged.read_text(), ranged) is not None
    monkeypatch.setattr(elaborated, "ranged_over", lambda: "other ops")
    assert elaborated.kept(ranged.read_text(), ranged) is None


@pytest.mark.parametrize("damage", sampled([b"[7]\n[8]", b"", b"[7]", b"nonsense"], 4))
def test_what_is_not_as_it_was_written_is_elaborated_anew(damage: bytes, folder: Path) -> None:
    fresh = loaded()
    for file in folder.iterdir():
        cache.write(file, damage)
    assert list(loaded()) == list(fresh)


def test_files_of_users_are_not_kept(tmp_path: Path, folder: Path) -> None:
    path = tmp_path / "mine.rules"
    path.write_text("use stablehlo\nrule twice for x: F[S..]\n  x + x => x * 2\n  numerics exact\n")
    assert [rule.name for rule in load([path], with_definitions=False).rules]
    assert not folder.exists()


def test_a_kept_rule_can_be_had_without_its_conditions(folder: Path) -> None:
    loaded()
    free = [unconditional(rule) for rule in loaded().values()]
    assert sum(each is not None for each in free) > 100


@pytest.mark.slow
def test_a_second_process_has_the_rules_of_the_first(folder: Path) -> None:
    """What is kept brings along the ops that reading it anew registers, and with them their definitions."""
    script = (
        "import coset.dialects\nfrom coset.rules.library import DEFAULT, load\n"
        "print(*sorted(f'{phase.name} {rule.name}' for phase in load(DEFAULT).phases for rule in phase.rules), sep='\\n')"
    )
    first, second = (
        subprocess.run(
            [sys.executable, "-c", script], check=True, capture_output=True, text=True, env={**os.environ, cache.FOLDER: str(folder)}
        )
        for _ in range(2)
    )
    assert first.stdout == second.stdout
    assert "ort.SelfAttention.recognise" in first.stdout, "what only the library speaks of is there"


def test_every_rule_file_of_the_repository_comes_with_coset_and_no_other(tmp_path: Path) -> None:
    """By whichever link it is found, as a file and as its folder."""
    own = [*(ROOT / "rules" / "library").glob("*.rules"), *(ROOT / "dialects").glob("*/*.rules")]
    linked = [ROOT / "coset" / path.relative_to(ROOT) for path in own]
    assert len(own) > 20 and all(comes_with_coset(path) and comes_with_coset(path.parent) for path in (*own, *linked))
    others = [tmp_path / "library" / "mine.rules", ROOT / "rules" / "mine.rules", ROOT / "tests" / "rules" / "samples.rules"]
    assert not any(comes_with_coset(path) for path in others)
