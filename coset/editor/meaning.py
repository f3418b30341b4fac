"""What the word at a place of a rule file means, in words, and where that is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from coset.editor.buffer import PROVABLE, BufferEntry, BufferToken, RuleBuffer

Data = dict[str, Any]


@dataclass(frozen=True)
class Known:
    """What a rule may name: the catalogue (empty until it is there), and the ops that the file itself defines."""

    catalogue: Data = field(default_factory=dict)
    own: Mapping[str, Data] = field(default_factory=dict)

    def part(self, name: str) -> Data:
        """A part of the catalogue that is keyed by names."""
        found: Data = self.catalogue.get(name, {})
        return found

    def op(self, name: str) -> Data | None:
        """The op of this full name."""
        return self.own.get(name) or self.part("ops").get(name)

    def meant(self, name: str, buffer: RuleBuffer, entry: BufferEntry | None) -> str:
        """The full name of the op that an entry calls so; "" if there is none or more than one."""
        dialects = dialects_of(buffer, entry)
        head, dot, rest = name.partition(".")
        candidates = [f"{dialects[head]}.{rest}"] if dot and head in dialects else [] if dot else [f"{d}.{name}" for d in dialects.values()]
        found = [each for each in dict.fromkeys(candidates) if self.op(each) is not None]
        return found[0] if len(found) == 1 else ""


@dataclass(frozen=True)
class WordMeaning:
    """What a word means, in Markdown, and where that is written: a line of a file from 1, or an offset into the text itself."""

    markdown: str
    file: str = ""
    line: int = 0
    offset: int | None = None


def dialects_of(buffer: RuleBuffer, entry: BufferEntry | None) -> dict[str, str]:
    """The dialects that an entry may name: those in use, and that of the op that it defines."""
    own = entry.name.partition(".")[0] if entry is not None and "." in entry.name else ""
    return {**({own: own} if own else {}), **buffer.dialects}


def meaning_at(buffer: RuleBuffer, offset: int, known: Known) -> WordMeaning | None:
    """What the word at an offset means; None of signs, and of what is not known."""
    token = buffer.token_at(offset)
    entry = buffer.entry_at(offset)
    if token is None or token.kind != "QUALIFIED" or entry is None:
        return None
    place = entry.tokens.index(token) if token in entry.tokens else 0
    before = entry.tokens[place - 1].text if place else ""
    after = entry.tokens[place + 1].text if place + 1 < len(entry.tokens) else ""
    if token.start == entry.name_start and entry.kind in PROVABLE:
        return WordMeaning(_code(buffer.source(entry)), offset=entry.name_start)
    if entry.kind == "phase":
        return _rule(token.text, buffer, known)
    if after == ":" and before in ("(", ","):
        attribute = _attribute(buffer, entry, place, known)
        if attribute is not None:
            return attribute
    if token.text in entry.names and after != "(":
        return _name(entry, token)
    return _word(token, before, known) or _op(token.text, buffer, entry, known) or _function(token.text, known) or _declared(entry, token)


def _name(entry: BufferEntry, token: BufferToken) -> WordMeaning:
    declared = entry.names[token.text]
    return WordMeaning(_code(declared.said), offset=declared.start)


def _declared(entry: BufferEntry, token: BufferToken) -> WordMeaning | None:
    """An op variable, which is called as an op is."""
    return _name(entry, token) if token.text in entry.names else None


def _word(token: BufferToken, before: str, known: Known) -> WordMeaning | None:
    """A promise, a fact, or the trait of an op variable, where one stands."""
    for part, where in (("promises", before == "numerics"), ("traits", before == ":"), ("facts", before == ":")):
        if where and token.text in known.part(part):
            return WordMeaning(f"`{token.text}`: {known.part(part)[token.text]}")
    return None


def _function(name: str, known: Known) -> WordMeaning | None:
    found = known.part("functions").get(name)
    return None if found is None else WordMeaning(f"{_code(found['usage'])}\n{found['document']}")


def _op(name: str, buffer: RuleBuffer, entry: BufferEntry | None, known: Known) -> WordMeaning | None:
    full = known.meant(name, buffer, entry)
    op = known.op(full) if full else None
    if op is None:
        return None
    own = buffer.entry_named(full)
    text = "\n".join(line.strip() for line in op["lines"])
    parts = [_code(op["usage"]), op["document"], f"```text\n{text}\n```" if text else "", op_meaning(op)]
    return WordMeaning("\n\n".join(part for part in parts if part), op["file"], op["line"], None if own is None else own.name_start)


def op_meaning(op: Data) -> str:
    """What gives an op its meaning, in Markdown."""
    if not op["text"]:
        return ""
    return f"It means ({op['assurance'] or 'nothing is shown of it'}):\n\n{_code(op['text'])}"


def _rule(name: str, buffer: RuleBuffer, known: Known) -> WordMeaning | None:
    """The rule that a phase names: one of the file, or of the library."""
    own = buffer.entry_named(name)
    if own is not None:
        return WordMeaning(_code(buffer.source(own)), offset=own.name_start)
    found = known.part("rules").get(name)
    return None if found is None else WordMeaning(f"{found['assurance']}\n\n{_code(found['text'])}", found["file"], found["line"])


def _attribute(buffer: RuleBuffer, entry: BufferEntry, place: int, known: Known) -> WordMeaning | None:
    """The attribute that is named in a call, as its op has it."""
    call = call_around(entry, place)
    full = known.meant(call.text, buffer, entry) if call is not None else ""
    for attribute in (known.op(full) or {}).get("attributes", ()):
        if attribute["name"] == entry.tokens[place].text:
            return WordMeaning(_code(attribute_said(attribute)) + f"\nan attribute of `{full}`")
    return None


def attribute_said(attribute: Data) -> str:
    """An attribute with its kind and its default."""
    default = "" if attribute["required"] else f" = {attribute['default']}"
    return f"{attribute['name']}: {attribute['kind']}{default}"


def call_around(entry: BufferEntry, place: int) -> BufferToken | None:
    """The name in front of the round bracket that is open before the token number `place`."""
    depth = 0
    for index in range(place - 1, -1, -1):
        text = entry.tokens[index].text
        if text in (")", "]"):
            depth += 1
        elif text in ("(", "["):
            if not depth:
                named = text == "(" and index and entry.tokens[index - 1].kind == "QUALIFIED"
                return entry.tokens[index - 1] if named else None
            depth -= 1
    return None


def _code(text: str) -> str:
    return f"```coset\n{text}\n```"
