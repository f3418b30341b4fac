"""The page of the library has every entry with its text, its promise and what was shown."""

from __future__ import annotations

from pathlib import Path

import coset.dialects
from coset.cli import run
from coset.rules.library import load

assert coset.dialects


def test_every_rule_is_on_the_page(tmp_path: Path) -> None:
    assert run(["rules", "--docs", str(tmp_path)]) == 0
    page = (tmp_path / "library.md").read_text()
    for rule in load(with_definitions=False).rules:
        section = page.split(f"### {rule.family}\n", 1)[1].split("\n### ", 1)[0]
        assert rule.document in section
        assert f"Promise: {rule.numerics}." in section
        assert f"Shown: {rule.assurance}" in section
        assert f"rule {rule.family}" in section
