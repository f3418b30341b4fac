"""A rule at terms: its left side matched to given terms, whether it holds of them, and what it says that they equal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from coset.ir.constants import Constant
from coset.ir.term import AttributeItems, Region, Term, exact_key
from coset.ir.types import DType, TensorType, TupleType, Type
from coset.rules import payloads
from coset.rules.algebra import (
    Call,
    Expression,
    Listing,
    PayloadFunction,
    Ref,
    Scalar,
    Scope,
    Splice,
    Unbound,
    Wild,
    evaluate,
    evaluate_scalar,
    region_of,
)
from coset.rules.arithmetic import as_list, same
from coset.rules.equation import Decision, Equation, right_side
from coset.rules.pattern import Pattern, Variable
from coset.rules.scalar import Undefined, element_of, scalar_constant

Arguments = tuple[list[AttributeItems], list[Any], list[Type]]
"""Attributes and types of the left side, by index of application, and the types of the variables."""


def matched(rule: Equation, roots: Sequence[Term]) -> tuple[dict[int, Term], dict[str, Term]] | None:
    """The terms of the left side, whose roots are `roots`, by index of application, and those of the variables; None where the left side
    is no pattern of them."""
    left: dict[int, Term] = {}
    given: dict[str, Term] = {}
    if len(roots) != len(rule.pairs):
        return None
    stack: list[tuple[Pattern, Term]] = [(pattern, term) for (pattern, _), term in zip(rule.pairs, roots, strict=True)]
    while stack:
        pattern, term = stack.pop()
        if isinstance(pattern, Variable):
            if given.setdefault(pattern.name, term) is not term:
                return None
            continue
        if term.op is not pattern.op or len(term.operands) != len(pattern.operands):
            return None
        left[pattern.index] = term
        stack += zip(pattern.operands, term.operands, strict=True)
    return (left, given) if given.keys() == set(rule.variables) else None


def arguments(rule: Equation, left: Mapping[int, Term], given: Mapping[str, Term]) -> Arguments | None:
    """What a rule is decided by where its left side, by index of application, is `left`; None where a function there has no name."""
    several = int(rule.roots > 1)
    attributes: list[Any] = [()] * (len(left) + several)
    types: list[Any] = [None] * (len(left) + several)
    for index, term in left.items():
        items = payloads.described(term.op, term.attributes, term.regions)
        if items is None:
            return None
        attributes[index], types[index] = items, term.type
    if several:
        types[0] = TupleType(tuple(left[root.index].type for root, _ in rule.pairs))
    return attributes, types, [given[name].type for name in rule.variables]


def said(rule: Equation, left: Mapping[int, Term], given: Mapping[str, Term]) -> Decision | None:
    """What the right side is where the left side is `left`; None where the rule does not hold. The values of names that the rule proposes
    are believed in nothing: all that it demands is computed from them and compared."""
    found = arguments(rule, left, given)
    values = None if found is None else rule.proposed(*found)
    if found is None or values is None:
        return None
    attributes, types, variable_types = found
    scope = Scope(dict(values), dict(zip(rule.variables, variable_types, strict=True)), types, promise=rule.numerics.word)
    try:
        return right_side(rule, scope) if _holds(rule, attributes, variable_types, scope) else None
    except (Undefined, Unbound):
        return None


def _holds(rule: Equation, attributes: Sequence[AttributeItems], variable_types: Sequence[Type], scope: Scope) -> bool:
    """Whether the types of the variables, the attributes of the left side and the conditions are what the rule says."""
    compiled, values = rule.compiled, scope.values
    if any(kind.word == "dtype" and name in values and values[name] not in kind.classes for name, kind in compiled.kinds.items()):
        return False
    for pattern, type in zip(compiled.types, variable_types, strict=True):
        if not isinstance(type, TensorType) or type.shape is None:
            return False
        if not (_fits(pattern.dtype, type.dtype, scope) and _fits(pattern.dims, type.shape, scope)):
            return False
    for expected, own in zip(compiled.left, attributes, strict=True):
        named = dict(own)
        if not all(name in named and _fits(expression, named.pop(name), scope) for name, expression in expected.items):
            return False
        if expected.rest is not None:
            if any(isinstance(value, DType) and value.along is not None for value in named.values()):
                return False  # scales along a dim: the op computes something else at each place, and the rule does not say where it is
            if exact_key(values[expected.rest]) != exact_key(tuple(sorted(named.items()))):
                return False
    return all(_is_true(condition, scope) for condition in compiled.conditions)


def _is_true(condition: Expression, scope: Scope) -> bool:
    """Whether a condition holds; one side of an equality may have a `_` in it."""
    try:
        return bool(evaluate(condition, scope))
    except Unbound:
        if not isinstance(condition, Call) or condition.function != "==":
            raise
    for pattern, other in (condition.arguments, condition.arguments[::-1]):
        try:
            value = evaluate(other, scope)
        except Unbound:
            continue
        return _fits(pattern, value, scope)
    return False


def _fits(pattern: Expression, value: Any, scope: Scope) -> bool:
    """Whether an expression is `value`; a `_` in it is anything.

    Raises:
        Undefined, Unbound: it has no value.
    """
    if isinstance(pattern, Wild):
        return True
    if isinstance(pattern, Listing):
        return isinstance(value, tuple) and _fits_list(pattern, value, scope)
    if isinstance(pattern, Scalar):
        return isinstance(value, Constant) and _fits_scalar(pattern, value, scope)
    if isinstance(pattern, PayloadFunction):
        return isinstance(value, Region) and region_of(pattern, [parameter.type for parameter in value.parameters], scope) == value
    return same(evaluate(pattern, scope), value)


def _fits_list(pattern: Listing, values: tuple[Any, ...], scope: Scope) -> bool:
    widths = [len(as_list(evaluate(each.value, scope))) if isinstance(each, Splice) and each.value else None for each in pattern.items]
    found = parted(pattern.items, widths, values)
    return found is not None and all(_fits(item, part, scope) for item, part in found)


def parted(
    items: Sequence[Expression | Splice], widths: Sequence[int | None], values: tuple[Any, ...]
) -> list[tuple[Expression, Any]] | None:  # fmt: skip
    """Each item of a list with its part of `values`, lists for those that are spliced, of which `widths` has the lengths: one that has none
    takes what the others leave. None where there are too few or too many values.

    Raises:
        Unbound: several have no length.
    """
    taken = [width if isinstance(item, Splice) else 1 for item, width in zip(items, widths, strict=True)]
    rest = len(values) - sum(width for width in taken if width is not None)
    if taken.count(None) > 1:
        raise Unbound
    if rest < 0 or (rest and None not in taken):
        return None
    found: list[tuple[Expression, Any]] = []
    start = 0
    for item, width in zip(items, taken, strict=True):
        end = start + (rest if width is None else width)
        if not isinstance(item, Splice):
            found.append((item, values[start]))
        elif item.value is not None:
            found.append((item.value, values[start:end]))
        start = end
    return found


def _fits_scalar(pattern: Scalar, value: Constant, scope: Scope) -> bool:
    """Whether a constant is the number of a pattern, which may be its very element or what that is after one rounding."""
    dtype = evaluate(pattern.dtype, scope)
    if value.type.shape != () or value.type.dtype != dtype or dtype.kind == "complex":
        return False
    if isinstance(pattern.value, Ref) and same(evaluate(pattern.value, scope), element_of(value)):
        return True
    return scalar_constant(evaluate_scalar(pattern.value, scope), dtype).key == value.key


def right_sides(rule: Equation, decision: Decision, given: Mapping[str, Term]) -> tuple[Term, ...]:
    """What the roots of the left side equal, over the terms of the variables."""
    return tuple(built(right, decision, given) for _, right in rule.pairs)


def built(pattern: Pattern, decision: Decision, given: Mapping[str, Term]) -> Term:
    """A pattern of the right side over the terms of the variables, with the attributes and types that were decided."""
    if isinstance(pattern, Variable):
        return given[pattern.name]
    operands = tuple(built(operand, decision, given) for operand in pattern.operands)
    return payloads.made(pattern.op, operands, decision.attributes[pattern.index], decision.types[pattern.index])
