"""Highlighting from the grammar: what each token of a rule file is to an editor. There is no other list of the language's words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from coset.rules.parser import grammar, keywords

LOOKS = {  # terminal -> the token type of Pygments, the scope of TextMate
    "COMMENT": ("Comment.Single", "comment.line.number-sign"),
    "STRING": ("Literal.String", "string.quoted.double"),
    "NUMBER": ("Literal.Number", "constant.numeric"),
    "FACT": ("Keyword.Type", "storage.modifier"),
    "PARAMETRIC": ("Keyword.Type", "support.type"),
    "QUALIFIED": ("Name", "variable.other"),
}
KEYWORD = ("Keyword", "keyword.control")
INTRODUCED = ("Name.Function", "entity.name.function")  # a name behind a keyword: what `rule`, `op`, `phase` or `numerics` names
CALLED = ("Name.Builtin", "support.function")
OPERATOR, PUNCTUATION = ("Operator", "keyword.operator"), ("Punctuation", "punctuation")
OPERATORS = ("COMPARISON", "SUM", "MINUS", "PRODUCT")
START, END = r"(?<![\w.])", r"(?![\w.]|\s*:)"  # a word on its own: no part of a name, no name of an attribute


@dataclass(frozen=True)
class Look:
    """A regular expression and what it matches looks like; with two looks, what its first and its second group do."""

    pattern: str
    looks: tuple[tuple[str, str], ...]


def looks() -> Iterator[Look]:
    """Every look of a rule file, in the order in which they are tried."""
    terminals = {terminal.name: terminal.pattern for terminal in grammar().terminals}
    name = terminals["QUALIFIED"].to_regexp()
    yield from (Look(terminals[kind].to_regexp(), (LOOKS[kind],)) for kind in ("COMMENT", "STRING"))
    yield Look(f"{START}({_any(introducing())})\\s+({name})", (KEYWORD, INTRODUCED))
    yield from (Look(f"{START}{terminals[kind].to_regexp()}{END}", (LOOKS[kind],)) for kind in ("FACT", "PARAMETRIC"))
    yield Look(f"{START}(?:{_any(keywords())}){END}", (KEYWORD,))
    yield Look(f"{name}(?=\\()", (CALLED,))
    yield from (Look(terminals[kind].to_regexp(), (LOOKS[kind],)) for kind in ("QUALIFIED", "NUMBER"))
    signs = {kind: pattern for kind, pattern in terminals.items() if kind not in LOOKS and not kind.startswith("__IGNORE")}
    arrows = {kind for kind in signs if ">" in signs[kind].value}  # `=>` before `=`
    for kind in sorted(signs, key=lambda kind: (-signs[kind].max_width, kind)):
        if not signs[kind].value.isidentifier():
            yield Look(signs[kind].to_regexp(), (OPERATOR if kind in OPERATORS or kind in arrows else PUNCTUATION,))


def introducing() -> frozenset[str]:
    """The keywords that a name stands behind in the grammar."""
    words = {terminal.name: terminal.pattern.value for terminal in grammar().terminals}
    pairs = {pair for rule in grammar().rules for pair in zip(rule.expansion, rule.expansion[1:], strict=False)}
    return frozenset(words[first.name] for first, second in pairs if second.name == "QUALIFIED" and words.get(first.name) in keywords())


def _any(words: frozenset[str]) -> str:
    return "|".join(map(re.escape, sorted(words)))


def textmate() -> str:
    """The TextMate grammar of rule files, as editors and `rules/rules.tmLanguage.json` have it."""
    patterns: list[dict[str, object]] = []
    for look in looks():
        scopes = [f"{scope}.coset" for _, scope in look.looks]
        named = {str(group): {"name": scope} for group, scope in enumerate(scopes, 1)}
        patterns.append({"match": look.pattern, **({"name": scopes[0]} if len(scopes) == 1 else {"captures": named})})
    head = {"name": "coset rules", "scopeName": "source.coset", "fileTypes": ["rules"]}
    return json.dumps({**head, "patterns": patterns}, indent=2) + "\n"
