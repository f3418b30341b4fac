"""Instances of rules: which entry of the rule files a name means, and whether two lists of terms are its sides."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from coset.ir.term import Term
from coset.prove.second import syntax as l
from coset.prove.second.absent import mentioned
from coset.prove.second.answer import CannotSay, Refused, Undecided, Unknown
from coset.prove.second.matching import match
from coset.prove.second.scope import MISSING, Found, Scope, Unbound, value_of
from coset.prove.second.unify import settle, unify

NAME = re.compile(
    r"(?P<entry>[\w.]+?)(\.(?P<way>forward|reverse|recognise|expand))?(\[(?P<op>[\w.]+)\])?(#(?P<variant>\d+))?( in (?P<phase>\w+))?"
)
BASIC_FACTS = frozenset({"", "const", "varying"})


@dataclass(frozen=True)
class Side:
    """One clause of an entry in one direction: `left`, `right` are terms with names, `earlier` the conditions of clauses before it."""

    scope: Scope
    left: tuple[tuple[str, l.Expression], ...]
    right: tuple[tuple[str, l.Expression], ...]
    condition: l.Expression | None
    promise: l.Promise
    earlier: tuple[l.Expression, ...] = ()
    asked: frozenset[str] = frozenset()  # attributes of a definition that is recognised: its body must determine them


@dataclass(frozen=True)
class Named:
    """A rule of a certificate's head: its clauses in the direction that its name says, and the op of the op variable, if it names one."""

    name: str
    sides: tuple[Side, ...]
    op: str


def entry_name(name: str) -> str:
    """The entry that a rule's name speaks of; nothing where it is no name of a rule."""
    parts = NAME.fullmatch(name)
    return "" if parts is None else parts["entry"]


def named(name: str, entries: dict[str, list[l.Entry]]) -> Named:
    """The rule that a certificate calls `name`.

    Raises:
        Refused: there is no such entry, or it has no such direction.
        CannotSay: it is one of those that take an op.
    """
    parts = NAME.fullmatch(name)
    if parts is None or parts["entry"] not in entries:
        raise Refused(f"no entry for the rule `{name}`")
    sides: list[Side] = []
    for entry in entries[parts["entry"]]:
        sides += directions(entry, parts["way"] or "")
    if not sides:
        raise Refused(f"the entry of `{name}` is not read that way")
    return Named(name, tuple(sides), parts["op"] or "")


def directions(entry: l.Entry, way: str) -> list[Side]:
    """The clauses of an entry, in the direction that `way` says."""
    if isinstance(entry, l.Definition):
        sides = clauses(entry)
        attributes = frozenset(each.name for each in entry.variables if _is_attribute(each))
        return [replace(turned(side), asked=attributes) for side in sides] if way == "recognise" else sides if way in ("", "expand") else []
    scope = Scope({each.name: each for each in entry.variables}, dict(entry.ops), dict(entry.locals), entry.dialects)
    side = Side(scope, entry.left, entry.right, entry.condition, entry.promise)
    if way in ("", "forward"):
        return [side]
    return [turned(side)] if way == "reverse" and entry.both else []


def turned(side: Side) -> Side:
    """The same read from right to left."""
    return Side(side.scope, side.right, side.left, side.condition, side.promise, side.earlier)


def clauses(entry: l.Definition) -> list[Side]:
    """Each clause of a definition: the op with its parameters is the body; those before it must not hold."""
    if entry.ops:
        raise CannotSay(f"`{entry.name}` takes an op")
    found: list[Side] = []
    earlier: list[l.Expression] = []
    for clause in entry.clauses:
        scope = Scope({each.name: each for each in entry.variables}, {}, dict(clause.locals), entry.dialects)
        operands = tuple(_operand(each) for each in entry.variables if each.kind.dims is not None)
        attributes = tuple((each.name, l.Name(each.name)) for each in entry.variables if _is_attribute(each))
        left = l.Call(entry.name, operands, attributes)
        found.append(Side(scope, (("", left),), (("", clause.body),), clause.condition, clause.promise, tuple(earlier)))
        if clause.condition is not None:
            earlier.append(clause.condition)
    return found


def _operand(variable: l.Variable) -> l.Expression:
    return l.Splice(l.Name(variable.name)) if variable.repeated else l.Name(variable.name)


def _is_attribute(variable: l.Variable) -> bool:
    """Element types are declared like attributes; they are written in capitals."""
    return variable.kind.dims is None and not variable.name[0].isupper()


def instance(rule: Named, left: tuple[Term, ...], right: tuple[Term, ...]) -> tuple[Side, Found]:
    """The clause and the substitution under which the rule makes the terms equal.

    Raises:
        Unknown: there is none.
        CannotSay: a clause asks for what is not known here.
    """
    doubt: CannotSay | None = None
    for side in rule.sides:
        try:
            for found in substitutions(side, rule.op, left, right):
                return side, found
        except CannotSay as error:
            doubt = doubt or error
    if doubt is not None:
        raise doubt
    raise Unknown(f"`{rule.name}` does not make these terms equal")


def substitutions(side: Side, op: str, left: tuple[Term, ...], right: tuple[Term, ...]) -> Iterator[Found]:
    """The substitutions under which the two sides are these terms and the conditions hold."""
    if len(left) != len(right) or len(left) != len(side.left) or any(a.type != b.type for a, b in zip(left, right, strict=True)):
        return
    pairs = _paired(side.left, left) + _paired(_ordered(side), right)
    if side.scope.is_term(side.right[0][1]) and isinstance(side.right[0][1], l.Call) and "." in side.right[0][1].function:
        pairs = pairs[len(left) :] + pairs[: len(left)]  # an op with all of its parameters says what they are
    for start in starts(side.scope, op):
        if not _determined(side, start):
            continue
        for found in _matched(pairs, start):
            for settled in settle(found):
                yield from conditions(side, settled)


def _determined(side: Side, start: Found) -> bool:
    """Whether the left side, without the operands that are not given, or an equation of the conditions says what each attribute is."""
    equations = [part for part in conjuncts(side.condition) if isinstance(part, l.Binary) and part.mark == "=="]
    said = [*(pattern for _, pattern in side.left), *(each for part in equations for each in (part.left, part.right))]
    return not side.asked or side.asked <= frozenset().union(*(mentioned(each, start) for each in said))


def starts(scope: Scope, op: str) -> list[Found]:
    """What is known before anything is matched: the op variable, and which optional operands are not given."""
    given: dict[str, object] = {}
    if op:
        if len(scope.ops) != 1:
            return []
        ((name, _),) = scope.ops.items()
        found = scope.op(op)
        if found is None:
            return []
        given[name] = found
    optional = [each.name for each in scope.variables.values() if each.optional]
    result = []
    for chosen in itertools.product((False, True), repeat=len(optional)):
        missing = {name: MISSING for name, absent in zip(optional, chosen, strict=True) if absent}
        result.append(Found(scope, {**given, **missing}))
    return result


def _paired(patterns: tuple[tuple[str, l.Expression], ...], terms: tuple[Term, ...]) -> list[tuple[l.Expression, Term]]:
    return [(pattern, term) for (_, pattern), term in zip(patterns, terms, strict=True)]


def _ordered(side: Side) -> tuple[tuple[str, l.Expression], ...]:
    """The terms of the right side in the order of the left one's."""
    if len(side.right) == len(side.left) and not any(name for name, _ in side.right):
        return side.right
    names = [name for name, _ in side.left]
    found: dict[str, l.Expression] = {}
    waiting: list[str] = []
    for name, pattern in side.right:
        if not name and isinstance(pattern, l.Name) and pattern.name in names:
            waiting.append(pattern.name)
            continue
        waiting.append(name)
        for place, each in enumerate(waiting):
            found[each] = pattern if len(waiting) == 1 else l.Call("get", (pattern, l.Number(Fraction(place), True)))
        waiting = []
    if waiting or set(found) != set(names):
        raise CannotSay("the roots of this rule")
    return tuple((name, found[name]) for name in names)


def _matched(pairs: list[tuple[l.Expression, Term]], found: Found) -> Iterator[Found]:
    if not pairs:
        yield found
        return
    (pattern, term), *others = pairs
    for inner in match(pattern, term, found):
        yield from _matched(others, inner)


def conditions(side: Side, found: Found) -> Iterator[Found]:
    """The substitution, where all conditions hold and each earlier clause is known not to speak of it."""
    for each in solved(conjuncts(side.condition), found):
        if all(_holds(part, each) for part in conjuncts(side.condition)) and all(_excluded(part, each) for part in side.earlier):
            yield each


def _excluded(condition: l.Expression, found: Found) -> bool:
    """Whether a condition holds for no numbers that symbolic dims may stand for: one of its parts is false, or has no value for any."""
    for part in conjuncts(condition):
        try:
            if value_of(part, found) is not True:
                return True
        except Undecided:
            continue
        except Unknown:
            return True
        except Unbound as error:
            raise CannotSay(f"a condition on `{error}`, which nothing says") from None
    return False


def conjuncts(e: l.Expression | None) -> list[l.Expression]:
    """The parts of a condition that must all hold."""
    if e is None:
        return []
    return conjuncts(e.left) + conjuncts(e.right) if isinstance(e, l.Binary) and e.mark == "and" else [e]


def solved(parts: list[l.Expression], found: Found) -> Iterator[Found]:
    """Equations among conditions bind what is unbound."""
    for place, part in enumerate(parts):
        if isinstance(part, l.Binary) and part.mark == "==":
            for unknown, other in ((part.left, part.right), (part.right, part.left)):
                if isinstance(unknown, l.Name) and _unbound(unknown, found) and not _unbound(other, found):
                    try:
                        value = value_of(other, found)
                    except Unknown:
                        return
                    for inner in unify(unknown, value, found, None):
                        yield from solved(parts[place + 1 :], inner)
                    return
    yield found


def _unbound(e: l.Expression, found: Found) -> bool:
    try:
        value_of(e, found)
    except Unbound:
        return True
    except Unknown:
        return False
    return False


def _holds(e: l.Expression, found: Found) -> bool:
    try:
        return value_of(e, found) is True
    except Unknown:
        return False
    except Unbound as error:
        raise CannotSay(f"a condition on `{error}`, which nothing says") from None
