"""Changes of a rule that mean more than a slip: another op, an operand dropped, a class widened, a promise made stronger, a number off by
one unit, a type narrowed, results exchanged. With those of `benchmarks.rule_changes` they are what the attack on the prover is made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

from benchmarks.rule_changes import Change, changes, shown
from coset.rules import syntax

OP, DROPPED, PROMISE, UNIT, DTYPE, ROOTS = KINDS = (
    "other op",
    "operand dropped",
    "promise",
    "one unit",
    "element type",
    "results exchanged",
)
OTHERS = {
    "maximum": "minimum", "minimum": "maximum", "exponential": "exponential_minus_one", "log": "log_plus_one", "sqrt": "rsqrt",
    "rsqrt": "sqrt", "tanh": "logistic", "logistic": "tanh", "sine": "cosine", "cosine": "sine", "abs": "negate", "floor": "ceil",
    "ceil": "floor", "sum": "max", "max": "sum", "min": "max", "erf": "tanh", "sign": "abs", "hlo.and": "hlo.or", "hlo.or": "hlo.and",
    "hlo.xor": "hlo.or", "shift_right_logical": "shift_right_arithmetic", "shift_right_arithmetic": "shift_right_logical",
    "log_plus_one": "log", "exponential_minus_one": "exponential",
}  # fmt: skip
NARROWER = {"f32": "f16", "f64": "f32", "i32": "i8", "i64": "i32", "u32": "u8", "bf16": "f16", "f16": "bf16"}
STRONGER = {"real": "reassociates", "reassociates": "exact"}
UNITS = Decimal("1.0625")  # a few units of bf16


def falsehoods(entry: syntax.RuleEntry) -> list[Change]:
    """Every change of `entry` of these kinds and those of `benchmarks.rule_changes`, each result once, in a fixed order."""
    found: list[Change] = list(changes(entry))
    seen = {_meaning(change.entry) for change in found} | {_meaning(entry)}
    for change in _own(entry):
        if _meaning(change.entry) not in seen:
            seen.add(_meaning(change.entry))
            found.append(change)
    return found


def _meaning(entry: syntax.RuleEntry) -> tuple[Any, ...]:
    return entry.declarations, entry.left, entry.right, entry.locals, entry.condition, entry.promise


def _own(entry: syntax.RuleEntry) -> Iterator[Change]:
    for kind, text, right in _mutated(entry.right):
        yield Change(kind, "right side", text, replace(entry, right=right))
    for i, local in enumerate(entry.locals):
        for kind, text, value in _mutated(local.value):
            changed = replace(local, value=value)
            yield Change(kind, "local", text, replace(entry, locals=(*entry.locals[:i], changed, *entry.locals[i + 1 :])))
    yield from _promises(entry)


def _promises(entry: syntax.RuleEntry) -> Iterator[Change]:
    promise = entry.promise
    if promise.exceptions:
        text = f"{promise.word} without {', '.join(promise.exceptions)}"
        yield Change(PROMISE, "promise", text, replace(entry, promise=replace(promise, exceptions=())))
    if promise.word in STRONGER:
        word = STRONGER[promise.word]
        yield Change(PROMISE, "promise", f"{word} for {promise.word}", replace(entry, promise=replace(promise, word=word, exceptions=())))


def _mutated(part: Any) -> Iterator[tuple[str, str, Any]]:
    """`part` with one change somewhere in it, with its kind and in words."""
    for kind, changed in _changed(part):
        yield kind, f"{shown(changed)} for {shown(part)}", changed
    fields = {syntax.Operation: "operands", syntax.Brackets: "items", syntax.Invocation: "arguments"}
    field = fields.get(type(part))
    if field is not None:
        items = getattr(part, field)
        for i, item in enumerate(items):
            for kind, text, new in _mutated(item):
                yield kind, text, replace(part, **{field: (*items[:i], new, *items[i + 1 :])})


def _changed(part: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(part, syntax.Name) and part.value in NARROWER:
        yield DTYPE, replace(part, value=NARROWER[part.value])
    if isinstance(part, syntax.Number) and not part.integral and part.value.is_finite() and part.value:
        yield UNIT, replace(part, value=part.value * UNITS)
    if isinstance(part, syntax.Invocation) and part.name in OTHERS:
        yield OP, replace(part, name=OTHERS[part.name])
    if isinstance(part, syntax.Operation) and part.operator in ("+", "-", "*", "/") and len(part.operands) == 2:
        yield from ((DROPPED, operand) for operand in part.operands)
    if isinstance(part, syntax.Operation) and part.operator == "tuple" and len(part.operands) > 1:
        yield ROOTS, replace(part, operands=part.operands[::-1])
