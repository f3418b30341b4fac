"""The Pygments lexer of rule files (`pygmentize -l coset`), made from the grammar."""

from __future__ import annotations

from typing import ClassVar

from pygments.lexer import RegexLexer, bygroups
from pygments.token import Whitespace, string_to_tokentype

from coset.rules.highlight import Look, looks


def _entry(look: Look) -> tuple[str, object]:
    kinds = [string_to_tokentype(kind) for kind, _ in look.looks]
    if len(kinds) == 1:
        return look.pattern, kinds[0]
    return look.pattern.replace(r")\s+(", r")(\s+)(", 1), bygroups(kinds[0], Whitespace, kinds[1])


class RuleLexer(RegexLexer):  # type: ignore[misc]  # Pygments has no types
    """Tokens of a rule file; together they are its text."""

    name = "coset rules"
    aliases: ClassVar = ["coset"]
    filenames: ClassVar = ["*.rules"]
    tokens: ClassVar = {"root": [(r"\s+", Whitespace), *map(_entry, looks())]}
