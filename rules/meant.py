"""What the conditions of definitions say: of which values of attributes they speak, and at which sizes. For those who draw instances."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from hashlib import blake2b
from typing import Any

from coset.ir.op import Op
from coset.rules import syntax
from coset.rules.unroll import rewritten

CLAUSES: dict[str, tuple[syntax.Clause, ...]] = {}  # of each defined op
RESTS = "\n# rests on "  # between the text of an entry, which has no comments, and the hash of what it rests on
OWN: dict[str, tuple[str, Callable[[], Iterable[str]]]] = {}  # of each op that a file of the user's defines, its text and what it names


def with_what_it_rests_on(text: str, names: Iterable[str]) -> str:
    """The text of an entry that names these ops, with a hash of the user's own definitions that it rests on: they may change."""
    found: dict[str, str] = {}
    pending = list(names)
    while pending:
        name = pending.pop()
        if name in OWN and name not in found:
            found[name], more = OWN[name]
            pending += more()
    if not found:
        return text
    return f"{text}{RESTS}{blake2b(' '.join(found[name] for name in sorted(found)).encode(), digest_size=8).hexdigest()}"


def pinned(op: Op, attribute: str) -> tuple[Any, ...] | None:
    """All values of an attribute with which `op` means something, where each clause of its definition tells one; else None."""
    told = [_equal(clause.condition, attribute) for clause in CLAUSES.get(op.name, ())]
    return tuple(dict.fromkeys(value for each in told for value in each)) if told and all(told) else None


def asked_for(op: Op) -> tuple[int, ...]:
    """The integers that the conditions of the definition of `op` state, if it has one."""
    stated = (written(part) for clause in CLAUSES.get(op.name, ()) for part in syntax.walk(clause.condition))
    return tuple(dict.fromkeys(n for n in stated if isinstance(n, int)))


def floats_asked_for(op: Op) -> tuple[float, ...]:
    """The numbers that the conditions of the definition of `op` state, if it has one, with some beside each."""
    stated = (part for clause in CLAUSES.get(op.name, ()) for part in syntax.walk(clause.condition) if isinstance(part, syntax.Number))
    found = dict.fromkeys(float(part.value) for part in stated)
    return tuple(dict.fromkeys(n + step for n in found for step in (0.0, 0.5, -0.5)))


def of_one_form(clauses: tuple[syntax.Clause, ...]) -> bool:
    """Whether the definition with these clauses means the same however sizes are written, as numbers or as symbols: what it says of sizes
    that are not `static` is what it says of those that are, but for the way in which a number is made of them."""
    if not any(_asks_form(part) for clause in clauses for part in clause.parts()):
        return True
    plain, symbolic = list[Any](), list[Any]()
    for clause in clauses:
        conditions = syntax.joined(clause.condition)
        asked = [condition for condition in conditions if any(map(_asks_form, syntax.walk(condition)))]
        if len(asked) > 1 or any(_asks_form(part) for body in clause.said for part in syntax.walk(body)):
            return False
        form = asked[0] if asked else None
        negated = isinstance(form, syntax.Operation) and form.operator == "not"
        if form is not None and not _asks_form(form.operands[0] if isinstance(form, syntax.Operation) and negated else form):
            return False
        rest = tuple(condition for condition in conditions if condition is not form)
        (symbolic if negated else plain).append((rest, tuple(map(_number_made, clause.said)), clause.promise.word))
    return symbolic == [each for each in plain if each in symbolic]


def _asks_form(part: Any) -> bool:
    return isinstance(part, syntax.Invocation) and part.name == "static"


def _number_made(expression: Any) -> Any:
    """An expression with each size that is converted to a number in the place of the conversion, and with plain quotients."""
    if isinstance(expression, syntax.Invocation) and expression.name == "convert" and len(expression.arguments) == 2:
        inner = expression.arguments[0]
        if isinstance(inner, syntax.Invocation) and inner.name == "host" and len(inner.arguments) == 1:
            return _number_made(inner.arguments[0])
    if isinstance(expression, syntax.Operation) and expression.operator == "//":
        expression = replace(expression, operator="/")
    return rewritten(expression, _number_made)


def written(expression: Any) -> Any:
    """The value of a text or an integer as it is written, else None."""
    if isinstance(expression, syntax.Text):
        return expression.value
    return int(expression.value) if isinstance(expression, syntax.Number) and expression.integral else None


def _equal(condition: syntax.Expression | None, attribute: str) -> list[Any]:
    """What a condition says that the attribute is."""
    return [
        value
        for part in syntax.joined(condition)
        if isinstance(part, syntax.Operation) and part.operator == "==" and isinstance(part.operands[0], syntax.Name)
        if part.operands[0].value == attribute and (value := written(part.operands[1])) is not None
    ]
