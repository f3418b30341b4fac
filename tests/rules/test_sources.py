"""Each rule of the library says where its idea is from, and the library's page says which files there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import coset.dialects
from coset.cli import run
from coset.rules.library import DEFAULT, read_text, rule_files
from coset.rules.parsed import parse
from coset.rules.sources import sources

assert coset.dialects
FILES = rule_files(DEFAULT)
TEXT = """# What it is about.
# Source: the file.
use stablehlo

rule a
  -(-x) => x

# a remark
rule b
  -(-x) => x

# Source: the rule.
rule c
  -(-x) => x

# ---------------------------------------------------------------- a section
# Source: the section.

rule d
  -(-x) => x

# Source: the other rule.
rule e
  -(-x) => x

# ---------------------------------------------------------------- another section

rule f
  -(-x) => x
"""


def test_the_nearest_source_counts() -> None:
    found, lines = sources(TEXT), TEXT.splitlines()
    assert {lines[line - 1][-1]: source for line, source in found.items() if lines[line - 1].startswith("rule")} == {
        "a": "the file.", "b": "the file.", "c": "the rule.", "d": "the section.", "e": "the other rule.", "f": "the file.",
    }  # fmt: skip
    assert sources("use stablehlo\nrule a\n") == {}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_each_rule_of_the_library_has_a_source_and_a_sentence(path: Path) -> None:
    text = read_text(path)
    found = sources(text)
    for rule in parse(text, str(path))[0].rules:
        assert rule.document.endswith((".", ")", "!")), f"{rule.name} has no sentence"
        assert len(found.get(rule.place.line, "")) > 10, f"{rule.name}: write `# Source: ..` above it or at the head of the file"


def test_the_page_of_the_library_tells_the_source(tmp_path: Path) -> None:
    assert run(["rules", "--docs", str(tmp_path)]) == 0
    page = (tmp_path / "library.md").read_text()
    merge = page.split("### adapter_merge\n", 1)[1].split("\n### ", 1)[0]
    assert "Source: low-rank adapters" in merge
    assert "Source: products are associative" in page.split("### matmul_assoc\n", 1)[1].split("\n### ", 1)[0]
    rules = sum(len(parse(read_text(path), str(path))[0].rules) for path in FILES)
    assert page.count("\nSource: ") == rules


def test_the_laws_name_every_family_and_rules_that_are_there() -> None:
    laws = (DEFAULT[0] / "README.md").read_text()
    families = re.findall(r"^\| `(\w+)` \|", laws, re.M)
    assert families == sorted(path.stem for path in FILES)
    there = {rule.name for path in FILES for rule in parse(read_text(path), str(path))[0].rules}
    named = set(re.findall(r"`(\w+_\w+)`", laws)) - {"signed_zero"}
    assert named and named <= there, named - there
