"""One small change of a rule at a time: an operand swapped, a condition dropped, an axis, a sign or a constant changed.

What a careless rule writer might have written, anywhere in an entry: both sides, locals, conditions, attributes and declared types.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from coset.rules import syntax
from coset.rules.values import is_called

OPERAND, CONDITION, AXIS, SIGN, CONSTANT = KINDS = ("operand swapped", "condition dropped", "axis", "sign", "constant")
SIGNS = {
    "+": "-", "-": "+", "*": "/", "/": "*", "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "and": "or", "or": "and",
}  # fmt: skip
WORDS = {
    "LT": "LE",
    "LE": "LT",
    "GT": "GE",
    "GE": "GT",
    "EQ": "NE",
    "NE": "EQ",
    "add": "maximum",
    "maximum": "minimum",
    "minimum": "maximum",
}
WIDER = {"float": "number", "int": "number", "signed": "int", "unsigned": "int", "complex": "number", "bool": "any", "number": "any"}
IMPLICIT = {"F": "float", "I": "int"}
NUMERIC = ("len", "rank", "product", "sum", "bits", "index", "ceildiv", "floor", "ceil", "min", "max")  # functions that give a number
INDEXED = ("get",)  # calls of ops whose bare numbers are no terms
FIXED = ("item", "slice", "tuple", "in", "and", "or", "==", "!=")  # swapping their operands says nothing, or the same
LARGE = 100  # one more than such a number is hardly another one


@dataclass(frozen=True)
class Change:
    """A changed entry: what kind of change, in which part of the entry, and in words."""

    kind: str
    where: str
    text: str
    entry: syntax.RuleEntry


def changes(entry: syntax.RuleEntry) -> list[Change]:
    """Every small change of the entry, each result once."""
    seen = {_meaning(entry)}
    found = []
    for change in _all(entry):
        if _meaning(change.entry) not in seen:
            seen.add(_meaning(change.entry))
            found.append(change)
    return found


def _meaning(entry: syntax.RuleEntry) -> tuple[Any, ...]:
    return entry.declarations, entry.left, entry.right, entry.locals, entry.condition


def _all(entry: syntax.RuleEntry) -> Iterator[Change]:
    for kind, text, right in _mutated(entry.right, False):
        yield Change(kind, "right side", text, replace(entry, right=right))
    for kind, text, left in _mutated(entry.left, False):
        yield Change(kind, "left side", text, replace(entry, left=left))
    for i, local in enumerate(entry.locals):
        for kind, text, value in _mutated(local.value, False):
            changed = replace(local, value=value)
            yield Change(kind, "local", text, replace(entry, locals=(*entry.locals[:i], changed, *entry.locals[i + 1 :])))
    yield from _conditions(entry)
    yield from _declarations(entry)


def _conditions(entry: syntax.RuleEntry) -> Iterator[Change]:
    if entry.condition is None:
        return
    yield Change(CONDITION, "condition", f"without {shown(entry.condition)}", replace(entry, condition=None))
    parts = _conjuncts(entry.condition)
    for i, part in enumerate(parts):
        rest = [*parts[:i], *parts[i + 1 :]]
        if rest:
            joined = rest[0] if len(rest) == 1 else syntax.Operation("and", tuple(rest), part.place)
            yield Change(CONDITION, "condition", f"without {shown(part)}", replace(entry, condition=joined))
    for kind, text, condition in _mutated(entry.condition, False):
        yield Change(kind, "condition", text, replace(entry, condition=condition))


def _conjuncts(part: syntax.Expression) -> list[syntax.Expression]:
    if isinstance(part, syntax.Operation) and part.operator == "and":
        return [each for operand in part.operands if operand is not None for each in _conjuncts(operand)]
    return [part]


def _declarations(entry: syntax.RuleEntry) -> Iterator[Change]:
    """Declared types with their dims turned round, and classes of element types that hold more."""
    given = entry.declarations
    for i, declared in enumerate(given):
        kind = declared.kind if isinstance(declared, syntax.Declaration) else None
        if isinstance(kind, syntax.TensorKind) and len(kind.dims) > 1:
            turned = replace(declared, kind=replace(kind, dims=kind.dims[::-1]))
            text = f"{declared.name}: {shown_all(turned.kind.dims)} for {shown_all(kind.dims)}"
            yield Change(AXIS, "type", text, replace(entry, declarations=(*given[:i], turned, *given[i + 1 :])))
        if isinstance(kind, syntax.ValueKind) and declared.name.isupper() and kind.word in WIDER:
            wider = replace(declared, kind=replace(kind, word=WIDER[kind.word]))
            text = f"{declared.name}: {WIDER[kind.word]} for {kind.word}"
            yield Change(CONDITION, "type", text, replace(entry, declarations=(*given[:i], wider, *given[i + 1 :])))
    declared_names = {each.name for each in given}
    used = {each.kind.dtype for each in given if isinstance(each, syntax.Declaration) and isinstance(each.kind, syntax.TensorKind)}
    for name in sorted((used & IMPLICIT.keys()) - declared_names):
        word = WIDER[IMPLICIT[name]]
        more = syntax.Declaration(name, syntax.ValueKind(word, (), entry.place), False, None, entry.place)
        yield Change(CONDITION, "type", f"{name}: {word} for {IMPLICIT[name]}", replace(entry, declarations=(*given, more)))


def _mutated(part: Any, attribute: bool) -> Iterator[tuple[str, str, Any]]:
    """`part` with one small change somewhere in it, with its kind; `attribute`: its whole numbers speak of axes and sizes."""
    for kind, changed in _changed(part, attribute):
        yield kind, f"{shown(changed)} for {shown(part)}", changed
    if isinstance(part, (syntax.Operation, syntax.Brackets, syntax.Invocation)):
        field = {"Operation": "operands", "Brackets": "items", "Invocation": "arguments"}[type(part).__name__]
        inner = attribute or isinstance(part, syntax.Brackets) or _gives_value(part) or getattr(part, "name", "") in INDEXED
        items = getattr(part, field)
        for i, item in enumerate(items):
            for kind, text, new in _mutated(item, inner):
                yield kind, text, replace(part, **{field: (*items[:i], new, *items[i + 1 :])})
    if isinstance(part, syntax.Invocation):
        for i, (name, value) in enumerate(part.keywords):
            for kind, text, new in _mutated(value, True):
                yield kind, text, replace(part, keywords=(*part.keywords[:i], (name, new), *part.keywords[i + 1 :]))
    if isinstance(part, syntax.Spread) and part.value is not None:
        yield from ((kind, text, replace(part, value=new)) for kind, text, new in _mutated(part.value, attribute))
    if isinstance(part, syntax.Comprehension):
        yield from ((kind, text, replace(part, item=new)) for kind, text, new in _mutated(part.item, True))
        yield from ((kind, text, replace(part, condition=new)) for kind, text, new in _mutated(part.condition, True))
        for i, each in enumerate(part.lists):
            yield from (
                (kind, text, replace(part, lists=(*part.lists[:i], new, *part.lists[i + 1 :]))) for kind, text, new in _mutated(each, True)
            )


def _changed(part: Any, attribute: bool) -> Iterator[tuple[str, Any]]:
    """The small changes at the top of a part of a term."""
    if isinstance(part, syntax.Number):
        yield from _numbers(part, attribute)
    elif isinstance(part, syntax.Text) and part.value in WORDS:
        yield SIGN, replace(part, value=WORDS[part.value])
    elif isinstance(part, syntax.Operation):
        yield from _operations(part, attribute)
    elif isinstance(part, syntax.Invocation):
        yield from _invocations(part)
    elif isinstance(part, syntax.Brackets) and len(part.items) > 1:
        yield AXIS, replace(part, items=part.items[::-1])


def _numbers(part: syntax.Number, attribute: bool) -> Iterator[tuple[str, Any]]:
    value = part.value
    if not value.is_finite():
        yield SIGN, replace(part, value=-value)
    elif attribute and part.integral:
        yield from ((AXIS, replace(part, value=value + step)) for step in (1, -1))
    else:
        yield CONSTANT, replace(part, value=value + 1 if part.integral and abs(value) < LARGE else value * 2)
        yield (SIGN, replace(part, value=-value)) if value else (CONSTANT, replace(part, value=Decimal(-1)))


def _operations(part: syntax.Operation, attribute: bool) -> Iterator[tuple[str, Any]]:
    operator, operands = part.operator, part.operands
    if operator in SIGNS:
        yield SIGN, replace(part, operator=SIGNS[operator])
    if operator in ("negate", "not"):
        yield SIGN, operands[0]
    if len(operands) == 2 and operator not in FIXED and (operator not in ("+", "*") or _lists(operands, attribute)):
        yield OPERAND, replace(part, operands=operands[::-1])
    if operator == "if":
        yield OPERAND, replace(part, operands=(operands[0], operands[2], operands[1]))


def _lists(operands: tuple[Any, ...], attribute: bool) -> bool:
    """Whether operands may be lists, whose order counts in a sum."""
    if any(isinstance(each, syntax.Number) or (isinstance(each, syntax.Invocation) and each.name in NUMERIC) for each in operands):
        return False
    return attribute or any(isinstance(each, syntax.Brackets) or _gives_value(each) for each in operands)


def _gives_value(part: Any) -> bool:
    return isinstance(part, syntax.Invocation) and is_called(part.name)


def _invocations(part: syntax.Invocation) -> Iterator[tuple[str, Any]]:
    given = part.arguments
    values = _gives_value(part)
    for i in range(len(given) - 1):
        kind = AXIS if values or not isinstance(given[i + 1], (syntax.Name, syntax.Operation, syntax.Invocation)) else OPERAND
        yield kind, replace(part, arguments=(*given[:i], given[i + 1], given[i], *given[i + 2 :]))
    if values and len(given) == 1:
        yield AXIS, given[0]


def shown(part: Any) -> str:
    """A part of an entry as it is written."""
    if isinstance(part, syntax.Number):
        return str(part.value)
    if isinstance(part, syntax.Text):
        return f'"{part.value}"'
    if isinstance(part, syntax.Name):
        return part.value
    if isinstance(part, syntax.Spread):
        return f"{shown(part.value) if part.value is not None else ''}.."
    if isinstance(part, syntax.Brackets):
        return shown_all(part.items)
    if isinstance(part, syntax.Comprehension):
        condition = f" if {shown(part.condition)}" if part.condition is not None else ""
        return f"[{shown(part.item)} for {', '.join(part.names)} in {', '.join(map(shown, part.lists))}{condition}]"
    if isinstance(part, syntax.Invocation):
        keywords = [f"{name}: {shown(value)}" for name, value in part.keywords]
        return f"{part.name}({', '.join([*map(shown, part.arguments), *keywords, *([f'..{part.rest}'] if part.rest else [])])})"
    return _operation(part) if isinstance(part, syntax.Operation) else ""


def _operation(part: syntax.Operation) -> str:
    operands = [shown(operand) for operand in part.operands]
    if part.operator in ("negate", "not"):
        return f"{'-' if part.operator == 'negate' else 'not '}{operands[0]}"
    if part.operator == "item":
        return f"{operands[0]}[{operands[1]}]"
    if part.operator == "slice":
        return f"{operands[0]}[{operands[1]}:{operands[2]}]"
    if part.operator == "if":
        return f"if {operands[0]} then {operands[1]} else {operands[2]}"
    joined = ", ".join(operands) if part.operator == "tuple" else f" {part.operator} ".join(operands)
    return f"({joined})"


def shown_all(items: tuple[Any, ...]) -> str:
    """A list as it is written."""
    return f"[{', '.join(map(shown, items))}]"
