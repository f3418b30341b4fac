"""The words of a rule file."""

from __future__ import annotations

import re
from dataclasses import dataclass

from coset.prove.second.answer import CannotSay

TOKEN = re.compile(
    r"(?P<blank>\s+|\#[^\n]*)|(?P<number>\d+(\.\d+)?([eE][+-]?\d+)?)|(?P<name>[A-Za-z_]\w*(\.[A-Za-z_]\w*)*)"
    r'|(?P<text>"[^"\n]*")|(?P<mark><=>|=>|->|==|!=|<=|>=|//|\.\.|[-+*/%@<>=()\[\]{},:?])'
)


@dataclass(frozen=True)
class Token:
    """A word of the text; `column` and `leads` say where on its line it stands."""

    kind: str
    text: str
    column: int
    leads: bool


def tokens(text: str) -> list[Token]:
    """The words of a rule file, without comments.

    Raises:
        CannotSay: a character is none of the language's.
    """
    found: list[Token] = []
    place, start, fresh = 0, 0, True
    while place < len(text):
        match = TOKEN.match(text, place)
        if match is None:
            raise CannotSay(f"the character `{text[place]}` in a rule file")
        kind, word = str(match.lastgroup), match.group(0)
        if kind == "blank":
            if "\n" in word:
                start, fresh = place + word.rindex("\n") + 1, True
        else:
            found.append(Token(kind, word, place - start, fresh))
            fresh = False
        place = match.end()
    return found
