"""What the conditions of definitions say: of which values of attributes they speak, and at which sizes. For those who draw instances."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from coset.ir.op import Op
from coset.rules import syntax

CLAUSES: dict[str, tuple[syntax.Clause, ...]] = {}  # of each defined op


def pinned(op: Op, attribute: str) -> tuple[Any, ...] | None:
    """All values of an attribute with which `op` means something, where each clause of its definition tells one; else None."""
    told = [_equal(clause.condition, attribute) for clause in CLAUSES.get(op.name, ())]
    return tuple(dict.fromkeys(value for each in told for value in each)) if told and all(told) else None


def asked_for(op: Op) -> tuple[int, ...]:
    """The integers that the conditions of the definition of `op` state, if it has one."""
    stated = (written(part) for clause in CLAUSES.get(op.name, ()) for part in syntax.walk(clause.condition))
    return tuple(dict.fromkeys(n for n in stated if isinstance(n, int)))


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
