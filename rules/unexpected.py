"""What is said of a text that is no rule file: where reading stopped, or the mistake before it that is meant, and what to write."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from coset.ir.place import Place, lines_of
from coset.rules.syntax import RuleError

ARROWS = ("->", "~>")  # which others have
_LETTERS = 'names, numbers, "texts" on one line and signs do; a comment begins with #'
SIGNS = {  # of other languages
    ";": "leave it out: the next word or line ends what is before", "'": 'a text stands in double quotes: "Twice."', "&": "write `and`",
    "|": "write `or`", "!": "write `not`, or `!=` between values", "^": "write power(a, b)", "`": "write the name without it",
}  # fmt: skip
_SPELLINGS = {
    "QUALIFIED": "a name", "NUMBER": "a number", "STRING": "a text in quotes", "LPAR": "(", "RPAR": ")", "LSQB": "[",
    "RSQB": "]", "NEVER": "not", "COMMA": ",", "COLON": ":", "EQUAL": "=", "DOTS": "..", "LBRACE": "{", "RBRACE": "}",
    "MINUS": "-", "SUM": "+", "PRODUCT": "* / // % @", "COMPARISON": "== != < <= > >=", "OPTIONAL": "?",
    "PARAMETRIC": "permutation, axes",
}  # fmt: skip
FACTS = ("const", "varying", "nonnegative", "positive", "finite", "unique_indices", "sparse")
_PARTS = ("for", "with", "where", "numerics", "test")  # of a rule, in order
_ORDER = "the parts of a rule stand in this order: for, left => right, with, where, numerics, test"
_CLOSING = {"(": ")", "[": "]"}


def unexpected(error: UnexpectedInput, text: str, path: str) -> RuleError:
    """The message for what the parser did not expect."""
    lines = lines_of(text) or [""]
    line = error.line if isinstance(error.line, int) and error.line > 0 else len(lines)
    source = lines[min(line, len(lines)) - 1]
    column = error.column if isinstance(error.column, int) and error.column > 0 else len(source) + 1
    if isinstance(error, UnexpectedToken) and error.token.type == "$END":
        line, source = len(lines), lines[-1]
        place = Place(path, line, len(source) + 1, source)
        help = "write the right side and the promise: => x numerics exact" if re.search("=>\\s*$", text) else _expected(error)
        return _left_open(text, path) or RuleError("the file ends too early", place=place, help=help)
    if isinstance(error, UnexpectedCharacters):
        place, sign = Place(path, line, column, source), source[column - 1 : column]
        if sign == '"':
            return RuleError("the text does not end on its line", place=place, help="a text has no quotes and no line breaks inside")
        return RuleError(f"`{sign}` does not belong to the rule language", place=place, help=SIGNS.get(sign, _LETTERS))
    assert isinstance(error, UnexpectedToken)
    place = Place(path, line, column, source, len(str(error.token)))
    if source[column - 2 : column] in ARROWS and column > 1:
        arrow = replace(place, column=column - 1, width=2)
        return RuleError(
            f"unexpected `{source[column - 2 : column]}`", place=arrow, help="`=>` stands between the sides of a rule, or `<=>`"
        )
    before = "\n".join([*lines[: line - 1], source[: column - 1]])
    return _in_the_head(before, lines, path) or _by_brackets(error, before, place, lines) or _other(error, before, place)


def _in_the_head(before: str, lines: Sequence[str], path: str) -> RuleError | None:
    """A mistake in the line that begins the rule, which shows behind it only."""
    starts = [number for number, line in enumerate(before.split("\n")) if re.match(r"\s*(rule|op|kernel)\b", line)]
    if not starts:
        return None
    line = lines[starts[-1]]
    dashed = re.match(r"\s*rule\s+([\w.]+(?:-[\w.]+)+)", line)
    if dashed is not None and "=>" not in before.split("\n", starts[-1])[-1]:
        name = dashed[1].replace("-", "_")
        place = Place(path, starts[-1] + 1, dashed.start(1) + 1, line, len(dashed[1]))
        return RuleError("a name has no `-`", place=place, help=f"write {name}")
    for number in range(starts[-1], before.count("\n") + 1):
        declared = _in_declarations(Place(path, number + 1, 1, lines[number]))
        if declared is not None:
            return declared
    colon = re.match(r"\s*rule\s+[\w.]+\s*(:)\s*$", line)
    if colon is not None:
        place = Place(path, starts[-1] + 1, colon.start(1) + 1, line)
        return RuleError("no tag stands behind the `:`", place=place, help="leave the colon out, or write a tag: rule r : fuse")
    return None


def _in_declarations(line: Place) -> RuleError | None:
    """A type that is written like a call, or a fact behind its type, in a line of declarations."""
    if not re.match(r"\s*for\b", line.source):
        return None
    called = re.search(r":\s*(?!permutation|axes)(\w+\s*\(.*)", line.source)
    if called is not None:
        place = replace(line, column=called.start(1) + 1, width=len(called[1]))
        return RuleError("this is no type", place=place, help="a tensor is declared as x: F[M, N], x: f32[S..] or x: const F[K]")
    behind = re.search(rf"\]\s+({'|'.join(FACTS)})\b", line.source)
    if behind is not None:
        place = replace(line, column=behind.start(1) + 1, width=len(behind[1]))
        return RuleError(f"`{behind[1]}` stands behind its type", place=place, help=f"write it before: {behind[1]} F[S..]")
    return None


def _brackets(before: str) -> list[int]:
    """Where the brackets begin that are open at the end of a text."""
    plain = re.sub(r'"[^"\n]*"|#[^\n]*', lambda match: " " * len(match[0]), before)
    found: list[int] = []
    for position, sign in enumerate(plain):
        if sign in "([":
            found.append(position)
        elif sign in ")]" and found:
            found.pop()
    return found


def _by_brackets(error: UnexpectedToken, before: str, place: Place, lines: Sequence[str]) -> RuleError | None:
    """A bracket that closes nothing, or one that is not closed where the next part of a rule begins."""
    token, opened = str(error.token), _brackets(before)
    if token in (")", "]"):
        if not opened:
            return RuleError(f"this `{token}` closes nothing", place=place, help="leave it out")
        sign = before[opened[-1]]
        if _CLOSING[sign] != token:
            help = f"write `{_CLOSING[sign]}` here, or `{'[' if token == ']' else '('}` there; lists stand in [ ]"
            return RuleError(f"this `{token}` does not close the `{sign}`", place=place, help=help)
    if opened and (token in ("=>", "<=>", *_PARTS, "rule", "op")):
        return _not_closed(before, opened[-1], place.file, lines)
    return None


def _left_open(text: str, path: str) -> RuleError | None:
    opened = _brackets(text)
    return _not_closed(text, opened[-1], path, lines_of(text)) if opened else None


def _not_closed(before: str, position: int, path: str, lines: Sequence[str]) -> RuleError:
    line = before.count("\n", 0, position)
    start = before.rfind("\n", 0, position) + 1
    source, sign = lines[line], before[position]
    return RuleError(
        f"this `{sign}` is not closed",
        place=Place(path, line + 1, position - start + 1, source),
        help=f"write `{_CLOSING[sign]}` behind its last item",
    )


def _other(error: UnexpectedToken, before: str, place: Place) -> RuleError:
    token, line = str(error.token), before.rsplit("\n", 1)[-1]
    help = _expected(error)
    if token == "//" and not line.strip():
        help = "a comment begins with #"
    elif token in ("import", "from", "include") or (error.token.type == "STRING" and re.search(r"\buse\s*$", line)):
        help = "write `use onnx`: dialects without quotes, parted by commas"
    elif token in _PARTS:
        help = _ORDER
    elif token == "=":
        help = _instead_of_equals(error, before)
    elif token == ":" and re.search(r"[\])]\s+\w+\s*$", line):
        help = "a comma stands between variables: for x: F[S..], y: F[S..]"
    elif token == ":" and re.fullmatch(r"\s*\w+(\s*,\s*\w+)*\s*", line) and not re.search(r"\bfor\b", before.rsplit("rule", 1)[-1]):
        help = "variables are declared behind `for`: for x: F[S..]"
    return RuleError(f"unexpected `{token}`", place=place, help=help)


def _instead_of_equals(error: UnexpectedToken, before: str) -> str:
    if _brackets(before):
        name = re.search(r"(\w+)\s*$", before)
        return f"an attribute is written `{name[1] if name else 'strides'}: ..`; equality is `==`"
    last = re.findall(r"\b(where|if|for|with)\b", before.rsplit("rule", 1)[-1])
    return "equality is written `==`" if last and last[-1] in ("where", "if") else "`=>` stands between the sides of a rule, or `<=>`"


def _expected(error: UnexpectedToken) -> str:
    names = sorted(error.accepts or error.expected)  # `expected` has what is possible elsewhere in the same state of the parser
    words = [_SPELLINGS.get(name, name.lower() if name.isidentifier() and not name.startswith("__") else "=> or <=>") for name in names]
    return f"expected one of: {', '.join(dict.fromkeys(words))}"
