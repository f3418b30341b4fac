"""The rules of a definition: those that expand its op, and those that recognise it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

from coset.ir.op import Op
from coset.rules import syntax
from coset.rules.elaborate import Direction, variants
from coset.rules.elaborated import keep_definition, kept_definition
from coset.rules.names import Names, collect
from coset.rules.rule import Rule
from coset.rules.syntax import RuleError

MOST_FORMS = 32  # of a clause as rules of the search


def declared_operands(entry: syntax.OpEntry) -> list[syntax.Declaration]:
    """The parameters of an entry that are terms."""
    return [parameter for parameter in entry.parameters if isinstance(parameter.kind, syntax.TensorKind)]


def op_meant(names: Names, call: syntax.Invocation) -> Op | None:
    """The op that is called so; None where it is no one op."""
    try:
        found = names.meant(call.name, call.place)
    except RuleError:
        return None
    return found[0] if len(found) == 1 else None


def rules_of_entry(entry: syntax.OpEntry, op: Op, dialects: Mapping[str, str]) -> tuple[list[Rule], list[Rule]]:
    """The rules that expand the op of an entry without variadic operands, and those that recognise it."""
    found = kept_definition(entry, op.name)
    if found is not None:
        return found
    expand, recognise = elaborated_rules(entry, op, dialects)
    sides: dict[str, list[Rule]] = {}
    for rule in expand:
        sides.setdefault(str(rule.right), []).append(rule)
    recognise = [replace(rule, mirrors=tuple(sides.get(str(rule.left), ()))) for rule in recognise]
    keep_definition(entry, op.name, expand, recognise)
    return expand, recognise


def elaborated_rules(entry: syntax.OpEntry, op: Op, dialects: Mapping[str, str]) -> tuple[list[Rule], list[Rule]]:
    """As `rules_of_entry`, elaborated anew."""
    expand: list[Rule] = []
    recognise: list[Rule] = []
    head = head_of(entry, op)
    for clause in entry.clauses:
        forward = Direction(
            op.name, op.name, head, clause.body, clause.condition, clause.promise, entry.document, entry.place, entry.text,
            definition=op.name, result=entry.result,
        )  # fmt: skip
        expand += variants(forward, names_in(entry, clause, dialects), most=MOST_FORMS)
        for left, right in _mirrored(clause.body, head):
            name = f"{op.name}.recognise"
            backward = replace(forward, name=name, family=name, left=left, right=right, result=(), lenient=True)
            recognise += variants(backward, names_in(entry, clause, dialects), most=MOST_FORMS)
    return expand, recognise


def head_of(entry: syntax.OpEntry, op: Op) -> syntax.Invocation:
    """The op over its own operands, with its own attributes."""
    keywords = tuple((attribute.name, syntax.Name(attribute.name, entry.place)) for attribute in op.attributes)
    operands = tuple(syntax.Name(operand.name, operand.place) for operand in declared_operands(entry))
    return syntax.Invocation(entry.name, operands, keywords, None, entry.place)


def _mirrored(body: syntax.Expression, head: syntax.Invocation) -> list[tuple[syntax.Expression, syntax.Expression]]:
    """What is recognised as what: the body as the op, or each of several results as that result of it."""
    if not (isinstance(body, syntax.Operation) and body.operator == "tuple"):
        return [(body, head)]
    places = [(each, syntax.Number(Decimal(index), head.place)) for index, each in enumerate(body.operands) if each is not None]
    return [(each, syntax.Invocation("get", (head, index), (), None, head.place)) for each, index in places]


def names_in(entry: syntax.OpEntry, clause: syntax.Clause, dialects: Mapping[str, str]) -> Names:
    """The names of one clause of an entry."""
    return collect(entry.parameters, clause.locals, dialects)


def numbered(rules: Sequence[Rule]) -> list[Rule]:
    """The rules with names of their own: all but the first end in their number."""
    return [rule if not i else rule.changed(name=f"{rule.name.split('#')[0]}#{i + 1}") for i, rule in enumerate(rules)]
