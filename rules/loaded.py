"""The rules of the library as they were last loaded, in one file: a start reads it instead of the library's files, their lock lines and
what is kept of each entry.

Rules of definitions are in it where rules of the library lead to them, whatever the program; those that a program brings along are added
when they are read. What a search does not ask of most rules stays text until it is asked for.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from coset.ir.op import get_op
from coset.ir.place import Place
from coset.rules import cache
from coset.rules.codec import compact
from coset.rules.definition import definition_of
from coset.rules.elaborated import CODEC, KeptRule, edge_words, lines_of_file
from coset.rules.equation import Numerics
from coset.rules.parsed import UNREADABLE
from coset.rules.rule import Rule, with_parts

Phases = tuple[tuple[str, tuple[Rule, ...]], ...]


@dataclass(frozen=True)
class Loaded:
    """The phases with the rules of the library and of `definitions`."""

    phases: Phases
    definitions: frozenset[str]


@dataclass(frozen=True)
class _Family:
    """What rules of one family share."""

    name: str
    file: str
    text: str
    document: str
    tests: str
    tags: str


@dataclass(frozen=True)
class _Kept:
    """Where the rest of a rule is: its family, its place there, and the lines with its sides and what it compares."""

    family: _Family
    place: tuple[int, int, int]
    sides: bytes
    compiled: bytes

    def decoded(self, line: str | bytes) -> Any:
        return CODEC.decoder(lines_of_file(self.family.file), self.family.file)(json.loads(line))


class _LoadedRule(KeptRule):
    """A `Rule` that reads what is kept of it when it is first asked for."""

    def __getattr__(self, name: str) -> Any:
        kept: _Kept | None = self.__dict__.get("_kept")
        if kept is None or name not in _LATER:
            raise AttributeError(name)
        self.__dict__.update(_LATER[name](kept))
        return self.__dict__[name]

    @cached_property
    def tests(self) -> Any:
        kept: _Kept = self.__dict__["_kept"]
        return kept.decoded(kept.family.tests)

    @cached_property
    def mirrors(self) -> Any:
        return () if self.definition is None else self._defined.mirrors

    @cached_property
    def hints(self) -> Any:
        return {} if self.definition is None else self._defined.hints

    @property
    def _defined(self) -> Rule:
        """The rule as its definition has it."""
        assert self.definition is not None
        both = definition_of(get_op(self.definition)).rules
        return next(rule for own in both for rule in own if rule.name == self.own_name)


def _place(kept: _Kept) -> dict[str, Any]:
    line, column, width = kept.place
    file = kept.family.file
    return {"place": Place(file, line, column, lines_of_file(file)[line - 1], width) if line else Place(file)}


def _sides(kept: _Kept) -> dict[str, Any]:
    return dict(zip(("left", "right"), kept.decoded(kept.sides), strict=True))


_LATER: Mapping[str, Callable[[_Kept], dict[str, Any]]] = {
    "left": _sides,
    "right": _sides,
    "compiled": lambda kept: {"compiled": kept.decoded(kept.compiled)},
    "place": _place,
}


def read(file: Path | None) -> Loaded | None:
    """What was kept in `file`; None where anything is not as it was written."""
    body = cache.read(file)
    if body is None:
        return None
    try:
        first, *lines = body.split(b"\n")
        found = json.loads(first)
        for name in found["others"]:
            get_op(name)
        families = [_Family(*words) for words in found["families"]]
        numerics = [Numerics(word, frozenset(exceptions), bound) for word, exceptions, bound in found["numerics"]]
        phases = tuple((name, tuple([_rule(name, row, families, numerics, lines) for row in rows])) for name, rows in found["phases"])
        return Loaded(phases, frozenset(found["definitions"]))
    except (*UNREADABLE, OSError):
        return None


def _rule(phase: str, row: Sequence[Any], families: Sequence[_Family], numerics: Sequence[Numerics], lines: Sequence[bytes]) -> Rule:
    family, name, reads, makes, edges, variables, facts, promise, place, typed, roots, definition, targets, shown, limit, body = row
    shared, asked = families[family], facts.split()
    rule = object.__new__(_LoadedRule)
    rule.__dict__.update({
        "name": name, "family": shared.name, "variables": tuple(variables.split()),
        "facts": tuple(zip(asked[::2], asked[1::2], strict=True)), "numerics": numerics[promise], "document": shared.document,
        "typed": tuple(typed), "definition": definition, "assurance": shown[0], "grades": tuple(map(tuple, shown[1:])),
        "phase": phase, "limit": limit,
        "tags": tuple(shared.tags.split()), "text": shared.text, "natives": (), "roots": roots, "targets": tuple(targets),
        "reads": frozenset(reads.split()), "makes": frozenset(makes.split()), "_edges": edges,
        "_kept": _Kept(shared, place, lines[body], lines[body + 1]),
    })  # fmt: skip
    return rule


def keep(file: Path | None, phases: Iterable[tuple[str, Sequence[Rule]]], base: Iterable[str]) -> None:
    """Keep the rules of `phases` but for those of definitions that neither the ops of the library's rules nor the definitions `base` lead
    to. Nothing is kept where a rule of the library calls functions of other code."""
    if file is None:
        return
    staged = [(name, list(rules)) for name, rules in phases]
    own = [rule for _, rules in staged for rule in rules if rule.definition is None]
    if any(rule.natives for rule in own):
        return
    defined: dict[str, list[Rule]] = {}
    for _, rules in staged:
        for rule in rules:
            if rule.definition is not None:
                defined.setdefault(rule.definition, []).append(rule)
    led = _led_to(own, defined, base)
    writer = _Writer()
    others = {name for name in led if not writer.takes(defined[name])}
    try:
        rows = [[name, [writer.row(r) for r in rules if r.definition is None or r.definition in led - others]] for name, rules in staged]
    except TypeError:
        return  # a rule of the library has a value that cannot be kept
    first = {
        "others": sorted(others), "definitions": sorted(led - others), "families": writer.families, "numerics": writer.numerics,
        "phases": rows,
    }  # fmt: skip
    cache.write(file, b"\n".join([compact(first).encode(), *writer.lines]))


def _led_to(own: Iterable[Rule], defined: Mapping[str, Sequence[Rule]], base: Iterable[str]) -> set[str]:
    """The definitions, of those `defined`, that reading the rules `own` brings along, or is there without them."""
    waiting = [*(name for name in base if name in defined), *_named(own)]
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in defined and name not in found:
            found.add(name)
            waiting += _named(defined[name])
    return found


def _named(rules: Iterable[Rule]) -> set[str]:
    return {spelled.rpartition("/")[0] for rule in rules for spelled in (*rule.reads, *rule.makes)}


class _Writer:
    """The first line and the others of what is kept."""

    def __init__(self) -> None:
        self.families: list[list[Any]] = []
        self.numerics: list[list[Any]] = []
        self.lines: list[bytes] = []
        self._numbers: dict[Any, int] = {}

    def takes(self, rules: Iterable[Rule]) -> bool:
        """Whether all of `rules` can be kept."""
        try:
            return not any(rule.natives for rule in rules) and all(self.body(rule) >= 0 for rule in rules)
        except TypeError:
            return False

    def body(self, rule: Rule) -> int:
        """The number of the first of the lines with its sides and what it compares; copies of a rule for several phases share them.

        Raises:
            TypeError: a value that cannot be kept.
        """
        key = (rule.family, rule.own_name)
        if key not in self._numbers:
            parts = [CODEC.encode((rule.left, rule.right)), CODEC.encode(with_parts(rule.compiled))]
            self._numbers[key] = len(self.lines)
            self.lines += [compact(part).encode() for part in parts]
        return self._numbers[key]

    def row(self, rule: Rule) -> list[Any]:
        """The rule as numbers and words.

        Raises:
            TypeError: as `body`.
        """
        tests = compact(CODEC.encode(rule.tests))
        family = [rule.family, rule.place.file, rule.text, rule.document, tests, " ".join(rule.tags)]
        promise = [rule.numerics.word, sorted(rule.numerics.exceptions), rule.numerics.bound]
        place = [rule.place.line, rule.place.column, rule.place.width]
        return [
            self._number(self.families, family), rule.name, " ".join(sorted(rule.reads)), " ".join(sorted(rule.makes)),
            edge_words(rule), " ".join(rule.variables),
            " ".join(word for fact in rule.facts for word in fact), self._number(self.numerics, promise), place, list(rule.typed),
            rule.roots, rule.definition, list(rule.targets), [rule.assurance, *rule.grades], rule.limit, self.body(rule),
        ]  # fmt: skip

    def _number(self, table: list[list[Any]], value: list[Any]) -> int:
        key = (id(table), compact(value))
        if key not in self._numbers:
            self._numbers[key] = len(table)
            table.append(value)
        return self._numbers[key]
