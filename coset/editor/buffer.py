"""The text in an editor, read by its tokens alone: what is half typed has tokens and entries too."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import blake2b
from itertools import pairwise
from typing import NamedTuple

from coset.editor.positions import UTF16, Lines
from coset.rules.parser import grammar, keywords
from coset.rules.unexpected import FACTS

ITEMS = ("use", "rule", "op", "kernel", "phase")  # the words that an entry begins with
DEFINING = ("op", "kernel")
PROVABLE = ("rule", *DEFINING)
OPENING, CLOSING = ("(", "[", "{"), (")", "]", "}")
STORED = ("utf-8", "surrogatepass")  # an editor may send half of a pair


class BufferToken(NamedTuple):
    """A token: its kind (a terminal of the grammar), its text and where it stands."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        """Where what is behind it begins."""
        return self.start + len(self.text)


@dataclass(frozen=True)
class DeclaredName:
    """A name of an entry: what is said of it, by its declaration or its definition, and where."""

    name: str
    said: str
    start: int


@dataclass(frozen=True)
class BufferEntry:
    """An entry of a file, complete or not: its first word, its name (empty if there is none yet) and its tokens."""

    kind: str
    name: str
    name_start: int
    tokens: Sequence[BufferToken]

    @property
    def start(self) -> int:
        """Where it begins."""
        return self.tokens[0].start

    @property
    def end(self) -> int:
        """Where its last token ends."""
        return self.tokens[-1].end

    @cached_property
    def names(self) -> dict[str, DeclaredName]:
        """The names that it declares, defines with `with`, or uses in the types of declarations."""
        found: dict[str, DeclaredName] = {}
        for each in (*_declared(self), *_locals(self)):
            found.setdefault(each.name, each)
        for each in _in_types(self):
            found.setdefault(each.name, each)
        return found


@lru_cache(maxsize=1)
def _pattern() -> re.Pattern[str]:
    """Every terminal of the grammar, the longest sign first; what is none of them is a token of its own."""
    patterns = {terminal.name: terminal.pattern for terminal in grammar().terminals}
    first = ("COMMENT", "STRING", "QUALIFIED", "NUMBER")
    words = {name for name, pattern in patterns.items() if pattern.value.isidentifier() or name in ("FACT", "PARAMETRIC")}
    signs = [name for name in patterns if name not in first and name not in words and not name.startswith("__IGNORE")]
    signs.sort(key=lambda name: -patterns[name].max_width)
    groups = [f"(?P<{name}>{patterns[name].to_regexp()})" for name in (*first, *signs)]
    return re.compile("|".join([*groups, r"(?P<OTHER>\S)"]))


@dataclass(frozen=True)
class RuleBuffer:
    """The text of a rule file as an editor has it."""

    text: str
    encoding: str = UTF16

    @cached_property
    def lines(self) -> Lines:
        """Its lines, which tell places from offsets."""
        return Lines(self.text, self.encoding)

    @cached_property
    def tokens(self) -> tuple[BufferToken, ...]:
        """Its tokens without comments."""
        return tuple(token for token in self._all if token.kind != "COMMENT")

    @cached_property
    def _all(self) -> tuple[BufferToken, ...]:
        found = _pattern().finditer(self.text)
        return tuple(BufferToken(match.lastgroup or "", match[0], match.start()) for match in found)

    @cached_property
    def entries(self) -> tuple[BufferEntry, ...]:
        """Its entries: each begins with a word of `ITEMS` that is the first one of its line."""
        starts = [place for place, token in enumerate(self.tokens) if token.text in ITEMS and self._leads(token)]
        return tuple(_entry(self.tokens[start:end]) for start, end in pairwise([*starts, len(self.tokens)]))

    def _leads(self, token: BufferToken) -> bool:
        """Whether nothing but space stands before a token in its line, and it is no further in than a clause."""
        line = self.text.rfind("\n", 0, token.start) + 1
        return token.start == line or (not self.text[line : token.start].strip() and token.text in ("rule", "kernel", "use"))

    def token_at(self, offset: int) -> BufferToken | None:
        """The token that stands at an offset or ends there: a name rather than a sign; no comment."""
        place = bisect_right([token.start for token in self._all], offset) - 1
        near = [self._all[index] for index in (place, place - 1) if index >= 0]
        touching = [token for token in near if token.start <= offset <= token.end and token.kind != "COMMENT"]
        return next((token for token in touching if token.kind == "QUALIFIED"), touching[0] if touching else None)

    def is_comment(self, offset: int) -> bool:
        """Whether what is typed at an offset goes into a comment or a text in quotes."""
        line = self.text.rfind("\n", 0, offset) + 1
        before = self.text[line:offset]
        plain = re.sub(r'"[^"]*"', "", before)
        return "#" in plain or '"' in plain

    def entry_at(self, offset: int) -> BufferEntry | None:
        """The entry that begins at or before an offset, and before which no other one does."""
        found = [entry for entry in self.entries if entry.start <= offset]
        return found[-1] if found else None

    def entry_named(self, name: str) -> BufferEntry | None:
        """The rule or definition of this name."""
        return self._named.get(name)

    @cached_property
    def _named(self) -> dict[str, BufferEntry]:
        return {entry.name: entry for entry in reversed(self.entries) if entry.kind in PROVABLE}

    @cached_property
    def dialects(self) -> dict[str, str]:
        """The dialects in use by the name that they have here."""
        found: dict[str, str] = {}
        for entry in self.entries:
            if entry.kind == "use":
                words = [token.text for token in entry.tokens[1:] if token.kind == "QUALIFIED"]
                place = 0
                while place < len(words):
                    renamed = words[place + 1 : place + 2] == ["as"] and place + 2 < len(words)
                    found[words[place + 2] if renamed else words[place]] = words[place]
                    place += 3 if renamed else 1
        return found

    @cached_property
    def _context(self) -> bytes:
        """The hash of what every rule of the file may rest on: the dialects in use and the ops that it defines."""
        return _hash("\n".join(self.source(entry) for entry in self.entries if entry.kind in ("use", *DEFINING)).encode(*STORED))

    def source(self, entry: BufferEntry) -> str:
        """The text of an entry."""
        return self.text[entry.start : entry.end]

    def key(self, entry: BufferEntry) -> str:
        """The hash of an entry and of what it rests on in the file: what was found of it holds as long as this stays."""
        return _hash(self._context + self.source(entry).encode(*STORED)).hex()

    def without(self, keys: Collection[str]) -> str:
        """The text with space in the place of the rules that have one of these keys. Rules that a phase names stay, and those that share
        their name with another entry."""
        counts = Counter(entry.name for entry in self.entries if entry.kind in PROVABLE)
        phased = {token.text for entry in self.entries if entry.kind == "phase" for token in entry.tokens}
        parts, end = list[str](), 0
        for entry in self.entries:
            if entry.kind == "rule" and counts[entry.name] == 1 and entry.name not in phased and self.key(entry) in keys:
                parts += [self.text[end : entry.start], re.sub(r"[^\n]", " ", self.source(entry))]
                end = entry.end
        return "".join([*parts, self.text[end:]])


def _hash(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()


def _entry(tokens: Sequence[BufferToken]) -> BufferEntry:
    named = len(tokens) > 1 and tokens[0].text != "use" and tokens[1].kind == "QUALIFIED"
    return BufferEntry(tokens[0].text, tokens[1].text if named else "", tokens[1].start if named else tokens[0].start, tokens)


def _declared(entry: BufferEntry) -> Iterator[DeclaredName]:
    """What stands behind `for`, or between the brackets of a definition, as `a, b: F[M, N]`."""
    for names, kind in _declarations(entry):
        said = _written(kind)
        yield from (DeclaredName(each.text, f"{each.text}: {said}", each.start) for each in names)


def _declarations(entry: BufferEntry) -> Iterator[tuple[list[BufferToken], Sequence[BufferToken]]]:
    """The names of each declaration with the tokens of their type."""
    level = int(entry.kind in DEFINING)
    depth, begun, run = 0, bool(level), list[BufferToken]()
    for place, token in enumerate(entry.tokens[1:], 1):
        before = entry.tokens[place - 1].text
        if token.text in CLOSING:
            depth -= 1
            if level and not depth:
                return
        elif not level and not depth and token.text == "for":
            begun = True
        elif begun and depth == level and token.kind == "QUALIFIED" and before in ("for", "(", ",", "op") and token.text != "op":
            run = [*run, token] if before == "," else [token]
        elif begun and depth == level and token.text == ":" and run:
            yield run, _kind(entry.tokens[place + 1 :])
            run = []
        depth += token.text in OPENING


def _kind(tokens: Sequence[BufferToken]) -> Sequence[BufferToken]:
    """The tokens of the type that a declaration has, with its default."""
    end = 1 if len(tokens) > 1 and tokens[0].text in FACTS and tokens[1].kind == "QUALIFIED" else 0
    word = tokens[end].text if end < len(tokens) else ""
    end += 1
    if end < len(tokens) and (tokens[end].text == "[" or (tokens[end].text == "(" and word in ("permutation", "axes"))):
        end = _closed(tokens, end)
    if end < len(tokens) and tokens[end].text == "=":
        end += 1 + (tokens[end + 1 : end + 2] != [] and tokens[end + 1].text == "-")
        end = _closed(tokens, end) if end < len(tokens) and tokens[end].text == "[" else end + 1
    return tokens[:end]


def _closed(tokens: Sequence[BufferToken], start: int) -> int:
    """Behind the bracket that closes the one at `start`; behind the last token if none does."""
    depth = 0
    for place in range(start, len(tokens)):
        depth += (tokens[place].text in OPENING) - (tokens[place].text in CLOSING)
        if not depth:
            return place + 1
    return len(tokens)


def _written(tokens: Sequence[BufferToken]) -> str:
    """Tokens as they would be written on one line."""
    text = " ".join(token.text for token in tokens)
    return re.sub(r"(?<=[(\[]) | (?=[)\],])| (?=\.\.)|(?<=\w) (?=[(\[])", "", text)


def _locals(entry: BufferEntry) -> Iterator[DeclaredName]:
    """What stands behind `with`, as `name = term`."""
    depth, begun, start = 0, False, -1
    name: BufferToken | None = None
    for place, token in enumerate((*entry.tokens, BufferToken("END", "", entry.end))):
        over = depth == 0 and (token.kind == "END" or token.text in ("with", "where", "numerics", "test", "means"))
        following = entry.tokens[place + 1].text if place + 1 < len(entry.tokens) else ""
        if begun and name is not None and depth == 0 and (over or (token.text == "," and _names_next(entry.tokens, place))):
            words = [each for each in entry.tokens if start <= each.start < token.start]
            yield DeclaredName(name.text, f"{name.text} = {_written(words)}", name.start)
            name = None
        if over:
            begun = token.text == "with"
        elif begun and depth == 0 and name is None and token.kind == "QUALIFIED" and following == "=":
            name, start = token, entry.tokens[place + 2].start if place + 2 < len(entry.tokens) else token.end
        depth += (token.text in OPENING) - (token.text in CLOSING)


def _names_next(tokens: Sequence[BufferToken], place: int) -> bool:
    """Whether `name =` stands behind a comma."""
    following = tokens[place + 1 : place + 3]
    return len(following) == 2 and following[0].kind == "QUALIFIED" and following[1].text == "="


def _in_types(entry: BufferEntry) -> Iterator[DeclaredName]:
    """The element types, dims and packs in the types of declarations."""
    for names, kind in _declarations(entry):
        declared = f"{names[0].text}: {_written(kind)}"
        opened = next((place for place, token in enumerate(kind) if token.text in ("[", "(")), len(kind))
        inside = kind[max(0, opened - 1) if opened < len(kind) and kind[opened].text == "[" else opened :]
        for token in inside:
            if token.kind == "QUALIFIED" and token.text not in keywords():
                yield DeclaredName(token.text, f"{token.text}, from {declared}", token.start)
