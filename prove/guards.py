"""What would make a refuted rule true: the language's own facts, tried one by one and then in pairs, until the time is up.

A repair changes the element types to another class, the promise to a weaker one, or adds a condition on a constant of the rule. It
is offered only where the changed rule passes the tests (and says whether it was proved too); that nothing is offered says nothing.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path

from coset.ir.errors import CosetError
from coset.ir.place import Place
from coset.rules import syntax
from coset.rules.elaborate import rules_of
from coset.rules.library import read_text
from coset.rules.parser import parse
from coset.rules.rule import Rule

SECONDS = 2.5  # of the processor, for all repairs of one rule
MOST = 3  # repairs that are offered
CLASSES = ("float", "int", "signed", "unsigned", "bool")
# from the least that is given up to the most
PROMISES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("exact", ("signed_zero",)), ("reassociates", ()), ("reassociates", ("nonfinite",)), ("real", ()),
)  # fmt: skip
WORDS = ("exact", "reassociates", "real")

Judge = Callable[[Sequence[Rule]], str]  # the assurance that rules have, `refuted` or `assumed` where they have none


@dataclass(frozen=True)
class Repair:
    """A change of an entry: the words for it, what it makes, and what kind it is."""

    text: str
    entry: syntax.RuleEntry
    kind: str


def repairs(rule: Rule, judge: Judge, *, seconds: float = SECONDS) -> tuple[str, ...]:
    """The changes with which the entry of the refuted `rule` holds, in words with what was shown; none for definitions."""
    ends = time.process_time() + seconds
    found = _entry(rule)
    if found is None:
        return ()
    entry, dialects = found
    singles = list(_changes(entry))
    offered: list[str] = []
    kept: list[Repair] = []
    for repair in itertools.chain(singles, _pairs(singles)):
        if time.process_time() > ends or len(offered) == MOST or (offered and " and " in repair.text):
            break  # a pair is offered only where no single change helps
        if any(_gives_more(repair, other) for other in kept):
            continue
        try:
            rules, errors = rules_of(repair.entry, dialects)
        except CosetError:
            continue
        assurance = judge(rules) if rules and not errors else "assumed"
        if assurance not in ("refuted", "assumed"):
            offered.append(f"{repair.text} ({assurance})")
            kept.append(repair)
    return tuple(offered)


def _gives_more(repair: Repair, other: Repair) -> bool:
    """Whether a promise is weaker than one that holds already."""
    if repair.kind != "promise" or other.kind != "promise":
        return False
    mine, its = repair.entry.promise, other.entry.promise
    if mine.word == its.word:
        return set(mine.exceptions) > set(its.exceptions)
    return its.word != "exact" and WORDS.index(mine.word) > WORDS.index(its.word)


def _entry(rule: Rule) -> tuple[syntax.RuleEntry, Mapping[str, str]] | None:
    """The entry of the rule as it stands in its file, and the dialects there."""
    path = Path(rule.place.file)
    if rule.definition is not None or not path.exists():
        return None
    file, _ = parse(read_text(path), str(path))
    entry = next((entry for entry in file.rules if entry.name == rule.family), None)
    return None if entry is None else (entry, {name: dialect for name, dialect, _ in file.dialects})


def _changes(entry: syntax.RuleEntry) -> Iterator[Repair]:
    yield from _weaker(entry)
    yield from _classes(entry)
    yield from _conditions(entry)


def _pairs(singles: Sequence[Repair]) -> Iterator[Repair]:
    """Two changes of different kinds: the second one is made to what the first one made."""
    for first in singles:
        changes = {"promise": _weaker, "class": _classes, "condition": _conditions}
        for kind, change in changes.items():
            if kind > first.kind:  # each pair of kinds once
                for second in change(first.entry):
                    yield replace(second, text=f"{first.text} and {second.text}")


def _weaker(entry: syntax.RuleEntry) -> Iterator[Repair]:
    promise = entry.promise
    if promise.word not in WORDS:
        return
    for word, exceptions in PROMISES:
        same = word == promise.word and set(exceptions) > set(promise.exceptions)
        if same or WORDS.index(word) > WORDS.index(promise.word):
            text = word + (f" except {', '.join(exceptions)}" if exceptions else "")
            yield Repair(f"numerics {text}", replace(entry, promise=replace(promise, word=word, exceptions=exceptions)), "promise")


def _variables(entry: syntax.RuleEntry) -> list[str]:
    """The names of element types that are no element type: the implicit ones and those that are declared with a class."""
    tensors = [d.kind for d in entry.declarations if isinstance(d, syntax.Declaration) and isinstance(d.kind, syntax.TensorKind)]
    return sorted({kind.dtype for kind in tensors if kind.dtype.isupper()})


def _classes(entry: syntax.RuleEntry) -> Iterator[Repair]:
    for name in _variables(entry):
        others = tuple(d for d in entry.declarations if d.name != name)
        old = next((d for d in entry.declarations if d.name == name and isinstance(d, syntax.Declaration)), None)
        for word in CLASSES:
            if old is not None and isinstance(old.kind, syntax.ValueKind) and old.kind.word == word:
                continue
            kind = syntax.ValueKind(word, (), entry.place)
            declared = syntax.Declaration(name, kind, False, None, entry.place)
            yield Repair(f"{name}: {word}", replace(entry, declarations=(*others, declared)), "class")


def _conditions(entry: syntax.RuleEntry) -> Iterator[Repair]:
    place = entry.place
    for name in _variables(entry):
        call = syntax.Invocation("bits", (syntax.Name(name, place),), (), None, place)
        yield _with(entry, f"where bits({name}) >= 16", ">=", call, 16, place)
    whole = [d.name for d in entry.declarations if isinstance(d, syntax.Declaration) and _is(d, "int")]
    for name in [*whole, *(d.name for d in entry.declarations if isinstance(d, syntax.Declaration) and _is(d, "float"))]:
        for operator in (">", ">=", "!="):
            yield _with(entry, f"where {name} {operator} 0", operator, syntax.Name(name, place), 0, place)
    for first, second in itertools.permutations(whole, 2):
        rest = syntax.Operation("%", (syntax.Name(first, place), syntax.Name(second, place)), place)
        yield _with(entry, f"where {first} % {second} == 0", "==", rest, 0, place)


def _is(declaration: syntax.Declaration, word: str) -> bool:
    """A scalar of the rule, not the class of an element type."""
    return isinstance(declaration.kind, syntax.ValueKind) and declaration.kind.word == word and not declaration.name.isupper()


def _with(entry: syntax.RuleEntry, text: str, operator: str, left: syntax.Expression, number: int, place: Place) -> Repair:
    """The entry with one more condition, a comparison with a number."""
    condition: syntax.Expression = syntax.Operation(operator, (left, syntax.Number(Decimal(number), place)), place)
    whole = condition if entry.condition is None else syntax.Operation("and", (entry.condition, condition), place)
    return Repair(text, replace(entry, condition=whole), "condition")
