"""What may be written at a place of a rule file."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from coset.editor.buffer import DEFINING, ITEMS, BufferEntry, BufferToken, RuleBuffer
from coset.editor.meaning import Known, attribute_said, call_around, dialects_of, op_meaning
from coset.rules.parser import keywords

OP, ATTRIBUTE, NAME, FUNCTION, RULE, DIALECT, WORD = "op", "attribute", "name", "function", "rule", "dialect", "word"
CLAUSES = {"rule": ("for", "with", "where", "numerics", "test"), **dict.fromkeys(DEFINING, ("means", "with", "where", "numerics", "test"))}
EXPRESSION = ("if", "then", "else", "lambda", "and", "or", "not", "in")


@dataclass(frozen=True)
class Suggestion:
    """Something to write: its label, what it is, a line about it, a longer text, and what is inserted."""

    label: str
    kind: str
    detail: str = ""
    document: str = ""
    insert: str = ""


@dataclass(frozen=True)
class _Place:
    """Where something is typed: the entry, the tokens of it that stand before what is typed, and the start of the word itself."""

    buffer: RuleBuffer
    entry: BufferEntry | None
    before: tuple[BufferToken, ...]
    prefix: str

    def last(self, back: int = 1) -> str:
        """The token so many before."""
        return self.before[-back].text if len(self.before) >= back else ""


def suggestions(buffer: RuleBuffer, offset: int, known: Known) -> list[Suggestion]:
    """What may stand at an offset, best first; an editor chooses from it by what is typed. Nothing in comments and quotes."""
    if buffer.is_comment(offset):
        return []
    prefix = re.search(r"[\w.]*$", buffer.text[max(0, offset - 200) : offset])
    start = offset - len(prefix[0] if prefix else "")
    entry = buffer.entry_at(start - 1) if start else None
    tokens = entry.tokens if entry is not None else ()
    before = tuple(tokens[: bisect_left([token.start for token in tokens], start)])
    place = _Place(buffer, entry, before, prefix[0] if prefix else "")
    line = buffer.text.rfind("\n", 0, start) + 1
    found = list(_at(place, known, first=not buffer.text[line:start].strip(), column=start - line))
    return list({(each.label, each.kind): each for each in found}.values())


def _at(place: _Place, known: Known, *, first: bool, column: int) -> Iterator[Suggestion]:
    """What may stand at a place, which may be the `first` one of its line."""
    last, entry = place.last(), place.entry
    if "." in place.prefix:
        yield from _ops(place, known)
    elif entry is None or (first and not column):
        yield from (Suggestion(word, WORD) for word in ITEMS)
    elif entry.kind == "use":
        yield from (Suggestion(name, DIALECT, insert=name) for name in known.catalogue.get("dialects", ()))
    elif last == "numerics":
        yield from (Suggestion(word, WORD, document=said) for word, said in known.part("promises").items())
    elif last == "except" or (last == "," and _in_exceptions(place)):
        yield from (Suggestion(word, WORD) for word in known.catalogue.get("exceptions", ()))
    elif entry.kind == "phase":
        yield from _rules(place, known)
    elif last == ":" and _declares(place):
        yield from _types(place, known)
    else:
        if first or last in (")", "]"):
            yield from (Suggestion(word, WORD) for word in CLAUSES[entry.kind])
        yield from _in_expression(place, entry, known)


def _in_expression(place: _Place, entry: BufferEntry, known: Known) -> Iterator[Suggestion]:
    """Attributes of the call, names of the entry, functions and ops."""
    call = call_around(entry, len(place.before))
    full = known.meant(call.text, place.buffer, entry) if call is not None else ""
    if full and place.last() in ("(", ","):
        written = {a.text for a, b in zip(place.before, place.before[1:], strict=False) if b.text == ":" and call and a.start > call.start}
        for attribute in (known.op(full) or {})["attributes"]:
            if attribute["name"] not in written:
                told = f"an attribute of `{full}`"
                yield Suggestion(attribute["name"], ATTRIBUTE, attribute_said(attribute), told, f"{attribute['name']}: ")
    yield from (Suggestion(name, NAME, each.said) for name, each in entry.names.items())
    for name, each in known.part("functions").items():
        yield Suggestion(name, FUNCTION, each["usage"], each["document"])
    yield from _ops(place, known)
    yield from (Suggestion(word, WORD) for word in EXPRESSION if word in keywords())


def _ops(place: _Place, known: Known) -> Iterator[Suggestion]:
    """The ops of the dialects in use: all by their full names behind a dot, else by their own if only one dialect has it."""
    dialects = dialects_of(place.buffer, place.entry)
    ops: Mapping[str, Any] = {**known.part("ops"), **known.own}
    head, dot, _ = place.prefix.partition(".")
    if dot:
        for name, op in ops.items():
            if head in dialects and name.startswith(f"{dialects[head]}."):
                yield _op(f"{head}.{name.partition('.')[2]}", name, op)
        return
    names: dict[str, list[str]] = {}
    for name in ops:
        dialect, _, own = name.partition(".")
        if dialect in dialects.values():
            names.setdefault(own, []).append(name)
    here = {dialect: name for name, dialect in dialects.items()}
    for own, found in names.items():
        for name in found:
            yield _op(own if len(found) == 1 else f"{here[name.partition('.')[0]]}.{own}", name, ops[name])


def _op(label: str, name: str, op: Mapping[str, Any]) -> Suggestion:
    return Suggestion(label, OP, op["usage"], "\n\n".join(part for part in (op["document"], op_meaning(dict(op))) if part), label)


def _rules(place: _Place, known: Known) -> Iterator[Suggestion]:
    """The rules that a phase may name."""
    if place.last() in ("{", ","):
        yield from (Suggestion(entry.name, RULE, "of this file") for entry in place.buffer.entries if entry.kind == "rule" and entry.name)
        for name, rule in known.part("rules").items():
            yield Suggestion(name, RULE, "of the library", rule["document"])
    else:
        yield from (Suggestion(word, WORD) for word in ("once", "limit"))


def _types(place: _Place, known: Known) -> Iterator[Suggestion]:
    """What may stand behind the colon of a declaration."""
    if place.last(3) == "op":
        yield from (Suggestion(name, WORD, document=said) for name, said in known.part("traits").items())
        return
    yield from (Suggestion(fact, WORD, document=said) for fact, said in known.part("facts").items())
    yield from (Suggestion(name, WORD, f"{word} elements") for name, word in known.catalogue.get("conventional", {}).items())
    for word in ("kinds", "classes", "dtypes"):
        yield from (Suggestion(name, WORD, word) for name in known.catalogue.get(word, ()))


def _declares(place: _Place) -> bool:
    """Whether the colon in front belongs to a declaration, and not to an attribute of a call."""
    assert place.entry is not None
    texts = [token.text for token in place.before]
    if place.entry.kind in DEFINING:
        return "means" not in texts and texts.count("(") > texts.count(")")
    return "for" in texts and texts.count("(") == texts.count(")") and "=>" not in texts


def _in_exceptions(place: _Place) -> bool:
    """Whether a list behind `except` goes on."""
    for token in reversed(place.before):
        if token.text == "except":
            return True
        if token.kind != "QUALIFIED" and token.text != ",":
            return False
    return False
