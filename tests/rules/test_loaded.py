"""The library as it was last loaded: equal to what its files say, whatever the program has brought along, and made anew when it is not."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import coset.dialects
from coset.ir.registry import all_ops
from coset.rules import cache, library, loaded
from coset.rules.equation import Compiled
from coset.rules.library import DEFAULT, RuleSet, load
from coset.rules.rule import Rule
from tests.sampled import sampled

assert coset.dialects


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv(cache.FOLDER, str(tmp_path))
    library._load_cached.cache_clear()
    yield tmp_path / "loaded"
    library._load_cached.cache_clear()


def again() -> RuleSet:
    library._load_cached.cache_clear()
    return load(DEFAULT)


def plain(value: Any) -> str:
    """A value as text; sets, which have no order of their own, sorted."""
    if isinstance(value, Compiled):
        return str([plain(getattr(value, field.name)) for field in fields(Compiled)])
    return re.sub(r"frozenset\(\{(.*?)\}\)", lambda found: str(sorted(found[1].split(", "))), repr(value))


@pytest.mark.slow
def test_every_rule_is_the_one_that_was_elaborated(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    all_ops()  # so that op variables range over the same ops each time
    fresh = again()
    assert len(list(folder.iterdir())) == 1

    def refuse(*_: object) -> None:
        raise AssertionError("the files were read")

    monkeypatch.setattr(library, "_load", refuse)
    found = again()
    assert [phase.name for phase in found.phases] == [phase.name for phase in fresh.phases]
    kept = 0
    for one, other in zip(fresh.phases, found.phases, strict=True):
        assert [rule.name for rule in other.rules] == [rule.name for rule in one.rules]
        for before, after in zip(one.rules, other.rules, strict=True):
            kept += isinstance(after, loaded._LoadedRule)
            for field in fields(Rule):
                if field.name not in ("mirrors", "hints"):
                    assert plain(getattr(after, field.name)) == plain(getattr(before, field.name)), f"{before.name}.{field.name}"
            assert [mirror.name for mirror in after.mirrors] == [mirror.name for mirror in before.mirrors]
            assert dict(after.hints) == dict(before.hints)
            assert (after.reads, after.makes, after.edges) == (before.reads, before.makes, before.edges)
    assert kept > 1_500, "nearly all come from the one file"


SCRIPT = """
import sys
import coset.dialects
from coset.ir.registry import all_ops
from coset.ir.op import get_op
from coset.rules.library import DEFAULT, load
from pathlib import Path
for name in {ops}:
    all_ops() if name == "*" else get_op(name)
for path in {files}:
    load([*DEFAULT, Path(path)])
for phase in load(DEFAULT).phases:
    print(*(f"{{phase.name}} {{rule.name}} {{rule.assurance}} {{rule.limit}}" for rule in phase.rules), sep="\\n")
"""


def rules_of(ops: list[str], files: list[str], folder: str) -> list[str]:
    """The library's rules in a process of its own where these ops were looked up, and these files loaded, before."""
    script = SCRIPT.format(ops=ops, files=files)
    environment = {**os.environ, cache.FOLDER: folder}
    return subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True, env=environment).stdout.split("\n")


@pytest.mark.slow
def test_what_a_program_brings_along_is_added_in_its_place(tmp_path: Path) -> None:
    """The same rules in the same order as without anything that is kept, also where another program's start wrote it."""
    ops = ["onnx.GlobalMaxPool", "onnx.ReduceL2"]
    without = rules_of(ops, [], "")
    assert any(ops[0] in line for line in without)
    rules_of([], [], str(tmp_path))
    assert rules_of(ops, [], str(tmp_path)) == without
    assert rules_of(ops, [], str(tmp_path)) == without
    assert not any(ops[0] in line for line in rules_of([], [], str(tmp_path)))
    assert len(list((tmp_path / "loaded").iterdir())) == 1, "one file serves all programs"


@pytest.mark.slow
def test_a_process_with_every_op_leaves_its_rules_to_itself(tmp_path: Path) -> None:
    """Its op variables range over more ops. Reading what it kept once registered these ops, so that they were there from then on."""
    few = rules_of([], [], "")
    every = rules_of(["*"], [], str(tmp_path))
    assert len(every) > len(few)
    assert rules_of([], [], str(tmp_path)) == few
    assert rules_of(["*"], [], str(tmp_path)) == every


@pytest.mark.slow
def test_definitions_of_users_are_in_no_other_process(tmp_path: Path) -> None:
    mine = tmp_path / "mine.rules"
    mine.write_text('use stablehlo\nop probe.TwiceAsMuch(x: F[S..]) -> F[S..]\n  "Twice x."\n  means x + x\n  numerics exact\n')
    kept = str(tmp_path / "kept")
    without = rules_of([], [], kept)
    assert any("TwiceAsMuch" in line for line in rules_of([], [str(mine)], kept))
    assert rules_of([], [], kept) == without


@pytest.mark.parametrize("damage", sampled([b"{}\n[8]", b"[7]"], 2))
def test_what_is_not_as_it_was_written_is_made_anew(damage: bytes, folder: Path) -> None:
    names = [rule.name for rule in again().rules]
    (file,) = folder.iterdir()
    before = file.read_bytes()
    cache.write(file, damage)
    assert [rule.name for rule in again().rules] == names
    assert file.read_bytes() == before
    file.write_bytes(before[:-7])
    assert [rule.name for rule in again().rules] == names


@pytest.mark.slow
def test_other_sources_and_other_ranges_are_read_anew(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    again()
    monkeypatch.setattr(library, "ranged_over", lambda: "other ops")
    again()
    assert len(list(folder.iterdir())) == 2
    monkeypatch.setattr(library, "sources", lambda: "changed")
    again()
    assert len(list(folder.iterdir())) == 3
