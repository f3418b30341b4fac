"""What the conditions of definitions say: of which values of attributes they speak, and at which sizes. For those who draw instances."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from coset.ir.op import Op
from coset.rules import syntax
from coset.rules.unroll import rewritten

CLAUSES: dict[str, tuple[syntax.Clause, ...]] = {}  # of each defined op


def pinned(op: Op, attribute: str) -> tuple[Any, ...] | None:
    """All values of an attribute with which `op` means something, where each clause of its definition tells one; else None."""
    told = [_equal(clause.condition, attribute) for clause in CLAUSES.get(op.name, ())]
    return tuple(dict.fromkeys(value for each in told for value in each)) if told and all(told) else None


def asked_for(op: Op) -> tuple[int, ...]:
    """The integers that the conditions of the definition of `op` state, if it has one."""
    stated = (written(part) for clause in CLAUSES.get(op.name, ()) for part in syntax.walk(clause.condition))
    return tuple(dict.fromkeys(n for n in stated if isinstance(n, int)))


def told_apart_by_form(clause: syntax.Clause, clauses: Sequence[syntax.Clause]) -> bool:
    """Whether `static` in the condition of a clause says how its numbers are spelled and nothing else: another one of `clauses`, for sizes
    that have no numbers (or that have), is the same but for `convert(host(n), F)` in the place of `n`, and that is n rounded once either way."""
    forms, others = _apart(clause.condition)
    if len(forms) != 1:
        return False
    for partner in clauses:
        own, rest = _apart(partner.condition)
        if [_negated(form) for form in own] == forms and rest == others and (partner.promise, partner.locals) == (clause.promise, clause.locals):
            return _plain(partner.body) == _plain(clause.body)
    return False


def _apart(condition: syntax.Expression | None) -> tuple[list[syntax.Expression], list[syntax.Expression]]:
    """The parts of a condition that ask for numbers (`static(n)`, `not static(n)`), and the others."""
    found = list(_joined(condition))
    forms = [part for part in found if _is_static(part) or _is_static(_negated(part))]
    return forms, [part for part in found if part not in forms]


def _is_static(part: Any) -> bool:
    return isinstance(part, syntax.Invocation) and part.name == "static"


def _negated(part: syntax.Expression) -> syntax.Expression:
    if isinstance(part, syntax.Operation) and part.operator == "not" and part.operands[0] is not None:
        return part.operands[0]
    return syntax.Operation("not", (part,), part.place)


def _plain(expression: Any) -> Any:
    """An expression with numbers of sizes as they are written where these are known."""
    if isinstance(expression, syntax.Invocation) and expression.name == "convert" and len(expression.arguments) == 2:
        (inner, _) = expression.arguments
        if isinstance(inner, syntax.Invocation) and inner.name == "host":
            return _plain(inner.arguments[0])
    return rewritten(expression, _plain)


def written(expression: Any) -> Any:
    """The value of a text or an integer as it is written, else None."""
    if isinstance(expression, syntax.Text):
        return expression.value
    return int(expression.value) if isinstance(expression, syntax.Number) and expression.integral else None


def _equal(condition: syntax.Expression | None, attribute: str) -> list[Any]:
    """What a condition says that the attribute is."""
    return [
        value
        for part in _joined(condition)
        if isinstance(part, syntax.Operation) and part.operator == "==" and isinstance(part.operands[0], syntax.Name)
        if part.operands[0].value == attribute and (value := written(part.operands[1])) is not None
    ]


def _joined(condition: syntax.Expression | None) -> Iterator[syntax.Expression]:
    """The conditions that `and` joins."""
    pending = [condition]
    while pending:
        part = pending.pop()
        if isinstance(part, syntax.Operation) and part.operator == "and":
            pending += reversed(part.operands)
        elif part is not None:
            yield part
