"""The rules of files and of definitions, elaborated, kept from run to run: a start reads only the sides of rules, and of those that a
search comes to use the attributes, types and conditions.

What is kept belongs to a text, to the sources that decide what its entries mean (the language and the ops), and to the ops that its op
variables range over when it is read. Only files of the library and of the dialects are kept: others may speak of ops that users define.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, TypeVar

from coset.ir.op import get_op
from coset.ir.place import Place, lines_of
from coset.ir.types import TensorType
from coset.rules import algebra, cache, syntax
from coset.rules.codec import Codec, compact
from coset.rules.equation import Attributes, Compiled, Kind, Numerics, TypePattern
from coset.rules.names import ranged_over
from coset.rules.parsed import UNREADABLE
from coset.rules.pattern import Application, Variable
from coset.rules.rule import Rule

ROOT = Path(__file__).resolve().parents[1]
LIBRARY, DIALECTS = ROOT / "rules" / "library", ROOT / "dialects"
MEANING = ("ir/*.py", "rules/*.py", "rules/*.lark", "dialects/**/*.py", "dialects/*/*.rules")  # the sources that decide what an entry means


@lru_cache(maxsize=256)
def in_dialects(path: Path) -> bool:
    """Whether a file or folder is one of the dialects; packages may be found through a link."""
    return path.resolve().is_relative_to(DIALECTS)


def comes_with_coset(path: Path) -> bool:
    """Whether a rule file or folder is one of the library or of the dialects; all others are a user's."""
    return in_dialects(path) or path.resolve().is_relative_to(LIBRARY)


def called(file: Path) -> str:
    """What a rule file is called in tables: by its name, one of the dialects by that of its folder too (`onnx/ops.rules`)."""
    return f"{file.parent.name}/{file.name}" if in_dialects(file.parent) else file.name


@dataclass(frozen=True)
class FileRules:
    """A file of rules without definitions: where its entries stand, its phases, the rules."""

    entries: tuple[tuple[str, Place], ...]
    phases: tuple[syntax.PhaseEntry, ...]
    rules: tuple[Rule, ...]


@dataclass(frozen=True)
class _Head:
    """A rule without what `compiled` holds; `entry` is the number of its entry in the file, or of its family in a definition. The `sides`
    are text that is read when they are asked for: of most rules only the ops in them are, and their `edges`, triples parted by spaces."""

    entry: int
    name: str
    reads: tuple[str, ...]
    makes: tuple[str, ...]
    edges: str
    sides: str
    variables: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    numerics: Numerics
    place: Place
    typed: tuple[int, ...]
    roots: int = 1


@dataclass(frozen=True)
class _Entry:
    """What the rules of one entry share."""

    name: str
    place: Place
    document: str
    tags: tuple[str, ...]
    text: str
    tests: tuple[syntax.Ground, ...] = ()


@dataclass(frozen=True)
class _Definition:
    """The first line of what is kept of a definition: the rules that expand `op`, `expand` many, then those that recognise it; of each of
    these the numbers of its mirrors."""

    op: str
    expand: int
    heads: tuple[_Head, ...]
    mirrors: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class _File:
    """The first line of what is kept; each rule's `compiled` is a line of its own, in the same order."""

    entries: tuple[_Entry, ...]
    phases: tuple[syntax.PhaseEntry, ...]
    heads: tuple[_Head, ...]


_Kept = TypeVar("_Kept", _File, _Definition)
_Made = TypeVar("_Made")
CODEC = Codec((
    _File, _Definition, _Entry, _Head, syntax.PhaseEntry, Application, Variable, Numerics, Compiled, TypePattern,
    Attributes, Kind, algebra.Literal, algebra.Ref, algebra.Splice, algebra.Listing, algebra.Call, algebra.MappedList, algebra.Wild,
    algebra.TypeOf, algebra.Scalar, algebra.PayloadFunction, TensorType, syntax.Ground, syntax.Written, syntax.Number, syntax.Text,
    syntax.Name, syntax.Spread, syntax.Brackets, syntax.Invocation, syntax.Comprehension, syntax.Operation, syntax.Lambda,
))  # fmt: skip


class _Later(Compiled):
    """A `Compiled` that is read when something in it is first asked for."""

    def __init__(self, read: Callable[[], Compiled]) -> None:
        self.__dict__["_read"] = read

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self.__dict__.update(vars(self.__dict__["_read"]()))
        return self.__dict__[name]


class KeptRule(Rule):
    """A `Rule` whose sides, and the edges of its left side, are read when they are first asked for."""

    def __getattr__(self, name: str) -> Any:
        if name not in ("left", "right"):
            raise AttributeError(name)
        self.__dict__.update(zip(("left", "right"), self.__dict__["_sides"](), strict=True))
        return self.__dict__[name]

    @cached_property
    def edges(self) -> frozenset[tuple[str, int, str]]:
        words = self.__dict__["_edges"].split()
        return frozenset((above, int(place), below) for above, place, below in zip(*[iter(words)] * 3, strict=True))


def edge_words(rule: Rule) -> str:
    """The edges of a rule's left side as they are kept."""
    return " ".join(f"{above} {place} {below}" for above, place, below in sorted(rule.edges))


def kept(text: str, path: Path) -> FileRules | None:
    """What was kept of the file at `path` with this text, from when op variables ranged over the same ops."""

    def made(found: _File, rules: list[Rule]) -> FileRules:
        return FileRules(tuple((entry.name, entry.place) for entry in found.entries), found.phases, tuple(rules))

    if path.resolve().parent != LIBRARY:
        return None
    return _read(_file(text), text.splitlines, str(path), _File, lambda found: found.entries, made)


def _read(
    file: Path | None,
    text: Callable[[], Sequence[str]],
    path: str,
    kind: type[_Kept],
    entries: Callable[[_Kept], Sequence[_Entry]],
    made: Callable[[_Kept, list[Rule]], _Made | None],
) -> _Made | None:
    """What is `made` of the first line of what is kept in `file` and of its rules, which belong to `entries`; None where anything in it is
    not as it was written. `text`: the lines of `path`."""
    body = cache.read(file)
    if body is None:
        return None
    first, *rest = body.split(b"\n")
    try:
        decode = CODEC.decoder(text(), path)
        found = decode(json.loads(first))
        if not isinstance(found, kind) or len(rest) != len(found.heads):
            return None
        _look_up(found.heads)
        own, op = entries(found), found.op if isinstance(found, _Definition) else None
        return made(found, [_rule(head, own[head.entry], decode, line, op) for head, line in zip(found.heads, rest, strict=True)])
    except (*UNREADABLE, OSError):
        return None


def _look_up(heads: Sequence[_Head]) -> None:
    """Look every op of the rules up, which brings the definitions of its file along: they take part in a search."""
    for op in {used.rpartition("/")[0] for head in heads for used in (*head.reads, *head.makes)}:
        get_op(op)


def _rule(head: _Head, entry: _Entry, decode: Callable[[Any], Any], line: bytes, definition: str | None) -> Rule:
    def read() -> Compiled:
        found = decode(json.loads(line))
        assert isinstance(found, Compiled), "the digest of the file was right"
        return found

    def sides() -> Any:
        return decode(json.loads(head.sides))

    rule = object.__new__(KeptRule)
    fields = {
        "name": head.name, "family": entry.name, "variables": head.variables, "facts": head.facts, "numerics": head.numerics,
        "place": head.place, "document": entry.document, "compiled": _Later(read), "typed": head.typed, "definition": definition,
        "tags": entry.tags, "text": entry.text, "tests": entry.tests, "roots": head.roots,
    }  # fmt: skip
    rule.__dict__.update(**fields, hints={}, reads=frozenset(head.reads), makes=frozenset(head.makes), _sides=sides, _edges=head.edges)
    return rule


def keep(text: str, file: syntax.RuleFile, rules: list[list[Rule]]) -> None:
    """Keep the `rules` of each entry of a file without mistakes, if it is one of the library's and has no definitions, and no functions
    of other code."""
    if Path(file.path).resolve().parent != LIBRARY or file.ops or any(rule.natives for own in rules for rule in own):
        return
    entries = tuple(_Entry(entry.name, entry.place, entry.document, entry.tags, entry.text, entry.tests) for entry in file.rules)
    heads = tuple(_head(number, rule) for number, own in enumerate(rules) for rule in own)
    _write(_file(text), _File(entries, file.phases, heads), [rule for own in rules for rule in own])


def kept_definition(entry: syntax.OpEntry, op: str) -> tuple[list[Rule], list[Rule]] | None:
    """What was kept of the rules that expand `op`, which `entry` defines, and of those that recognise it."""
    path = entry.place.file
    families = [_Entry(family, entry.place, entry.document, (), entry.text) for family in (op, f"{op}.recognise")]

    def made(found: _Definition, rules: list[Rule]) -> tuple[list[Rule], list[Rule]]:
        recognise = zip(rules[found.expand :], found.mirrors, strict=True)
        return rules[: found.expand], [rule.changed(mirrors=tuple(rules[number] for number in own)) for rule, own in recognise]

    return _read(_definition_file(entry, op), lambda: lines_of_file(path), path, _Definition, lambda _: families, made)


def keep_definition(entry: syntax.OpEntry, op: str, expand: Sequence[Rule], recognise: Sequence[Rule]) -> None:
    """Keep the rules of a definition that stands in a file of the dialects."""
    heads = [*(_head(0, rule) for rule in expand), *(_head(1, rule) for rule in recognise)]
    mirrors = tuple(tuple(expand.index(mirror) for mirror in rule.mirrors) for rule in recognise)
    _write(_definition_file(entry, op), _Definition(op, len(expand), tuple(heads), mirrors), [*expand, *recognise])


def _definition_file(entry: syntax.OpEntry, op: str) -> Path | None:
    if not in_dialects(Path(entry.place.file).parent):
        return None
    names = ",".join(parameter.name for parameter in entry.parameters)  # of a variadic operand as many as this reading has
    return cache.cache_file("definitions", sources(), op, f"{entry.place.file}:{entry.place.line}", names, entry.text)


@lru_cache(maxsize=64)
def lines_of_file(path: str) -> list[str]:
    """The lines of a file that something kept stands in."""
    return lines_of(Path(path).read_text(encoding="utf-8"))


def _write(file: Path | None, first: _File | _Definition, rules: Sequence[Rule]) -> None:
    if file is None:
        return
    try:
        parts = [CODEC.encode(first), *(CODEC.encode(rule.compiled) for rule in rules)]
    except TypeError:
        return  # a value that cannot be kept: these are elaborated each time
    cache.write(file, b"\n".join(compact(part).encode() for part in parts))


def _head(number: int, rule: Rule) -> _Head:
    sides = compact(CODEC.encode((rule.left, rule.right)))
    reads, makes = tuple(sorted(rule.reads)), tuple(sorted(rule.makes))
    return _Head(
        number, rule.name, reads, makes, edge_words(rule), sides, rule.variables, rule.facts, rule.numerics, rule.place, rule.typed,
        rule.roots,
    )  # fmt: skip


def _file(text: str) -> Path | None:
    return cache.cache_file("elaborated", sources(), ranged_over(), text)


@lru_cache(maxsize=1)
def sources() -> str:
    """Which sources decide what entries mean, by size and time of change."""
    files = sorted(file for pattern in MEANING for file in ROOT.glob(pattern))
    stamps = ((str(file), file.stat()) for file in files)
    return "\n".join(f"{name} {status.st_size} {status.st_mtime_ns}" for name, status in stamps)
