"""Definitions that take an op, `kernel ort.FusedConv(.., op f: unary)`: an attribute with its name, and a clause for each op that fits.

The op is the operand of nothing: what is written out here is an ordinary definition, which is expanded, recognised and proved as any.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from coset.ir.op import Op
from coset.rules import syntax
from coset.rules.algebra import Scope, Unbound, evaluate
from coset.rules.names import OP_TRAITS, Names, ops_with
from coset.rules.scalar import Undefined
from coset.rules.syntax import RuleError
from coset.rules.unroll import rewritten
from coset.rules.values import ValueResolver

MOST = 64  # clauses: each is a definition to read, to look for and to test


def written_out(entry: syntax.OpEntry, dialects: Mapping[str, str]) -> syntax.OpEntry:
    """`entry` with a clause for each op in the place of its op parameters.

    Raises:
        RuleError: there is no such trait, no op that fits, or a condition that none fulfils.
    """
    for variable in entry.ops:
        if variable.trait not in OP_TRAITS:
            raise RuleError(f"`{variable.trait}` is no trait of ops", place=variable.place, help=f"one of: {', '.join(OP_TRAITS)}")
        others = (op for op in ops_with(variable.trait, dialects.values()) if op.name != entry.name)
        fitting = [op for op in others if not any(attribute.required for attribute in op.attributes)]  # a call of it has none
        clauses = tuple(made for clause in entry.clauses for op in fitting for made in _clause(clause, variable, op, dialects))
        if not clauses:
            help = "leave ops in the condition, by their full names, or use the dialect that has them"
            raise RuleError(f"no op fits `{variable.name}`", place=variable.place, help=help)
        if len(clauses) > MOST:
            help = f'say which: where {variable.name} in ["{fitting[0]}", "{fitting[-1]}"]'
            raise RuleError(f"`{entry.name}` has {len(clauses)} clauses for its ops, more than {MOST}", place=variable.place, help=help)
        entry = replace(entry, clauses=clauses)
    return replace(entry, ops=())


def _clause(clause: syntax.Clause, variable: syntax.OpVariable, op: Op, dialects: Mapping[str, str]) -> Iterator[syntax.Clause]:
    """The clause with `op` in the place of `variable`, where its condition does not exclude that."""
    used = next(name for name, dialect in dialects.items() if dialect == op.dialect)
    called = f"{used}.{op.name.partition('.')[2]}"

    def change(expression: Any) -> Any:
        if isinstance(expression, syntax.Name) and expression.value == variable.name:
            return syntax.Text(op.name, expression.place)
        inner = rewritten(expression, change)
        return replace(inner, name=called) if isinstance(inner, syntax.Invocation) and inner.name == variable.name else inner

    conditions = [] if clause.condition is None else [change(each) for each in syntax.joined(clause.condition)]
    if any(never(each) for each in conditions):
        return
    own = syntax.Operation("==", (syntax.Name(variable.name, variable.place), syntax.Text(op.name, variable.place)), variable.place)
    condition: syntax.Expression = own
    for each in conditions:
        condition = syntax.Operation("and", (condition, each), clause.place)
    locals = tuple(replace(local, value=change(local.value)) for local in clause.locals)
    yield replace(clause, body=change(clause.body), locals=locals, condition=condition)


def never(condition: syntax.Expression) -> bool:
    """Whether a condition that speaks of nothing else than the op is false of it."""
    if any(isinstance(part, syntax.Name | syntax.Invocation) for part in syntax.walk(condition)):
        return False
    try:
        return not evaluate(ValueResolver(Names(), left=False).value(condition), Scope())
    except (Undefined, Unbound):
        return False
