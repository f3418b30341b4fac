"""The one layout of rule files: an entry's clauses on lines of their own, single spaces, comments kept where they are.

Works on tokens: nothing is reordered, a line break inside a clause stays one, and formatting twice changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from coset.rules.parser import Lexeme, keywords, lexemes

CLAUSE, BREAK, ITEM = 2, 6, 0  # indentation of a clause, of a kept line break inside it, and of an entry


@dataclass(frozen=True)
class _Gap:
    """What stands between two tokens: comments at the end of the line, comments on their own lines, and line breaks."""

    trailing: str
    own: tuple[str, ...]
    breaks: int


def format_text(text: str, path: str | Path = "<text>") -> str:
    """`text` in the one layout.

    Raises:
        RuleError: the text is no rule file.
    """
    tokens, starts = lexemes(text, str(path))
    lines: list[str] = []
    current, end = "", 0
    depth = 0
    for position, token in enumerate(tokens):
        gap = _gap(text[end : token.start], first=position == 0)
        kind = starts.get(token.start)
        if gap.trailing:
            current += f"  {gap.trailing}" if current else gap.trailing
        indent = _indent(kind, depth, token.text, starts, gap)
        if position == 0 or indent is not None:
            if current:
                lines.append(current.rstrip())
            margin = " " * (indent or 0)
            if kind == "item" and lines and (position == 0 or not _compact(tokens, position, starts, text)):
                lines.append("")
            lines += [margin + comment if comment else "" for comment in gap.own if comment or kind == "item"]
            current = margin + token.text
        else:
            current += (" " if _spaced(tokens, position, starts) else "") + token.text
        depth += token.text in ("{",)
        depth -= token.text in ("}",)
        end = token.end
    tail = _gap(text[end:], first=not tokens)
    if current:
        lines.append(current + (f"  {tail.trailing}" if tail.trailing else ""))
    lines += [""] * bool(lines and tail.own) + list(tail.own)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n") + "\n" if lines else ""


def _gap(text: str, *, first: bool) -> _Gap:
    trailing, own = "", list[str]()
    for line_number, line in enumerate(text.split("\n")):
        comment = line.strip()
        if not comment and own and own[-1] and line_number < text.count("\n"):
            own.append("")
        elif comment.startswith("#"):
            if line_number == 0 and not first:
                trailing = comment
            else:
                own.append(comment)
    return _Gap(trailing, tuple(own), text.count("\n"))


def _indent(kind: str | None, depth: int, token: str, starts: Mapping[int, str], gap: _Gap) -> int | None:
    """The indentation of the new line that starts here, or None to go on in the same line."""
    if kind == "item":
        return ITEM
    if kind == "clause":
        return CLAUSE
    if gap.breaks or gap.own or gap.trailing:
        if depth:
            return ITEM if token == "}" else CLAUSE
        return ITEM if token == "then" else BREAK
    return None


def _compact(tokens: Sequence[Lexeme], position: int, starts: Mapping[int, str], text: str) -> bool:
    """True between two `use` lines, which stand together."""
    previous = next((t.text for t in reversed(tokens[:position]) if starts.get(t.start) == "item"), "")
    return tokens[position].text == "use" and previous == "use"


def _spaced(tokens: Sequence[Lexeme], position: int, starts: Mapping[int, str]) -> bool:
    """Whether a space stands between a token and the one before it."""
    before, token = tokens[position - 1], tokens[position]
    word = before.text not in keywords() and (before.text[0].isalnum() or before.text[0] in "_")
    if token.text in (")", "]", ",", "?") or before.text in ("(", "["):
        return False
    if before.text == "-" and position >= 2:
        return not _unary(tokens, position - 1, starts)
    if token.text == ":":
        return starts.get(token.start) == "tags"
    if token.text in ("(", "["):
        return not (word or before.text in (")", "]"))
    if token.text == "..":
        return not (word or before.text in (")", "]"))
    if before.text == "..":
        return not (token.text[0].isalnum() or token.text[0] == "_")
    return True


def _unary(tokens: Sequence[Lexeme], position: int, starts: Mapping[int, str]) -> bool:
    """True when the `-` at `position` is a sign."""
    if tokens[position].start in starts:
        return True
    before = tokens[position - 1].text
    return before in keywords() or not (before[0].isalnum() or before[0] in '_)]"')
