"""Highlighting comes from the grammar: nothing of a rule file is an error, and words are what the grammar says."""

from __future__ import annotations

import json
import re
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
from pygments.token import Error, Keyword, Name, Whitespace

from coset.cli import run
from coset.rules.facts import NUMBERS, PATTERNS
from coset.rules.format import format_text
from coset.rules.highlight import introducing, textmate
from coset.rules.parser import grammar, keywords
from coset.rules.pygments_lexer import RuleLexer

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "rules" / "rules.tmLanguage.json"
FILES = sorted([*(ROOT / "rules/library").glob("*.rules"), *(ROOT / "dialects").glob("*/*.rules"), *(ROOT / "tests/rules").glob("*.rules")])


def lexed(text: str) -> list[tuple[int, object, str]]:
    return [each for each in RuleLexer(stripnl=False, ensurenl=False).get_tokens_unprocessed(text) if each[1] is not Whitespace]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_tokens_of_a_file_are_its_text_and_those_of_the_grammar(path: Path) -> None:
    text = path.read_text()
    lexer = RuleLexer(stripnl=False, ensurenl=False)
    assert "".join(value for _, value in lexer.get_tokens(text)) == text
    tokens = lexed(text)
    assert not [each for each in tokens if each[1] is Error]
    spans = [(start, value) for start, _, value in tokens if not value.startswith("#")]
    assert spans == [(token.start_pos, str(token)) for token in grammar().lex(text)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_textmate_grammar_leaves_only_space_between_its_matches(path: Path) -> None:
    patterns = [re.compile(each["match"]) for each in json.loads(textmate())["patterns"]]
    for line in path.read_text().splitlines():
        end = 0
        while end < len(line):  # an editor takes the leftmost match, and of those the first in the list
            found = min((match for each in patterns if (match := each.search(line, end))), key=lambda match: match.start(), default=None)
            assert not line[end : found.start() if found else None].strip(), line
            if found is None:
                break
            end = found.end()


def test_a_word_is_a_keyword_where_it_stands_as_one() -> None:
    text = "use stablehlo as hlo\nrule limit_of for x: const F[S..], op f: unary onnx.Q(hlo.not(x), limit: _) => f(x) numerics exact\n"
    kinds = {(start, value): kind for start, kind, value in lexed(text)}
    words = {value for (_, value), kind in kinds.items() if kind in Keyword}
    assert words == {"use", "as", "rule", "for", "const", "op", "numerics"}
    named = {value for (_, value), kind in kinds.items() if kind is Name.Function}
    assert named == {"hlo", "limit_of", "f", "exact"}
    assert {value for (_, value), kind in kinds.items() if kind is Name.Builtin} == {"onnx.Q", "hlo.not", "f"}


def test_the_words_are_the_literal_strings_of_the_grammar() -> None:
    text = re.sub(r"//[^\n]*", "", (ROOT / "rules" / "grammar.lark").read_text())
    literals = set(re.findall(r'"([a-z]+)"', text))
    assert literals | {"const", "varying", *NUMBERS, *PATTERNS} == keywords()
    assert {"rule", "op", "phase", "numerics"} <= introducing() < keywords()
    assert format_text("rule r x => -x where not (a) numerics exact").count("not (a)") == 1, "the formatter knows them too"


def test_the_file_for_editors_is_up_to_date(tmp_path: Path) -> None:
    written = tmp_path / "rules.json"
    assert run(["rules", "--textmate", str(written)]) == 0
    assert KEPT.read_text() == written.read_text(), f"coset rules --textmate {KEPT.relative_to(ROOT)}"


def test_pygmentize_finds_the_lexer() -> None:
    entry = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["pygments.lexers"]["coset"]
    module, _, name = entry.partition(":")
    assert getattr(import_module(module), name) is RuleLexer
    assert RuleLexer.aliases == ["coset"] and RuleLexer.filenames == ["*.rules"]
