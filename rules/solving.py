"""Values for the names of a rule: its expressions read from right to left against what is there, until every equation holds.

What is found here is a proposal to the checker of certificates, which computes the expressions from it and compares.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from coset.ir import dims
from coset.ir.constants import Constant
from coset.ir.dims import Poly
from coset.ir.place import Place
from coset.ir.term import Region
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
from coset.rules.applied import parted
from coset.rules.arithmetic import as_list, same
from coset.rules.equation import Kind, RuleTypeError
from coset.rules.operations import OPERATIONS
from coset.rules.scalar import Undefined, element_of, scalar_constant

SOLVED = ("+", "-", "%", "negate", "begin_end")  # what `match` reads from right to left


def match(pattern: Expression, value: Any, scope: Scope) -> bool:
    """True when `pattern` is `value`; unbound variables of `pattern` are bound in `scope`.

    Raises:
        Unbound: `pattern` cannot be read from right to left yet.
        Undefined: `pattern` has no value.
    """
    if isinstance(pattern, Wild):
        return True
    if isinstance(pattern, Ref) and pattern.name not in scope.values:
        scope.values[pattern.name] = value
        return True
    if isinstance(pattern, Listing):
        return isinstance(value, tuple) and _match_list(pattern.items, value, scope)
    if isinstance(pattern, Scalar):
        return _match_scalar(pattern, value, scope)
    if isinstance(pattern, PayloadFunction):
        return isinstance(value, Region) and region_of(pattern, [parameter.type for parameter in value.parameters], scope) == value
    try:
        return same(evaluate(pattern, scope), value)
    except Unbound:
        if not isinstance(pattern, Call):
            raise
    return _solve(pattern, value, scope)


def _match_list(items: Sequence[Expression | Splice], values: tuple[Any, ...], scope: Scope) -> bool:
    found = parted(items, [_width(item, scope) for item in items], values)
    return found is not None and all(match(item, part, scope) for item, part in found)


def _width(item: Expression | Splice, scope: Scope) -> int | None:
    """The length of a spliced list, where it is known."""
    if not isinstance(item, Splice) or item.value is None:
        return None
    try:
        return len(as_list(evaluate(item.value, scope)))
    except Unbound:
        return None


def _match_scalar(pattern: Scalar, value: Any, scope: Scope) -> bool:
    if not isinstance(value, Constant) or value.type.shape != ():
        return False
    if isinstance(pattern.dtype, Ref):
        scope.values.setdefault(pattern.dtype.name, value.type.dtype)
    dtype = evaluate(pattern.dtype, scope)
    if value.type.dtype != dtype or dtype.kind == "complex":
        return False
    if isinstance(pattern.value, Ref) and pattern.value.name not in scope.values:
        scope.values[pattern.value.name] = element_of(value)
        return True
    return scalar_constant(evaluate_scalar(pattern.value, scope), dtype).key == value.key


def _solve(call: Call, value: Any, scope: Scope) -> bool:
    """Solve `call == value` for the one unbound variable, where that is plain: sums, differences, remainders, and lists of pairs."""
    if call.function == "begin_end" and isinstance(value, tuple) and all(isinstance(each, tuple) and len(each) == 2 for each in value):
        return match(call.arguments[0], (*(low for low, _ in value), *(high for _, high in value)), scope)
    if call.function not in SOLVED or not isinstance(value, int | Poly):
        raise Unbound
    if call.function == "negate":
        return match(call.arguments[0], dims.multiply(-1, value), scope)
    first, second = call.arguments
    if call.function == "%":  # the canonical representative: x % n == v is solved by x = v
        bound = evaluate(second, scope)
        return same(OPERATIONS["%"](value, bound), value) and match(first, value, scope)
    try:
        known = evaluate(second, scope)
        return match(first, OPERATIONS["-" if call.function == "+" else "+"](value, known), scope)
    except Unbound:
        known = evaluate(first, scope)
    rest = dims.subtract(value, known) if call.function == "+" else dims.subtract(known, value)
    return match(second, rest, scope)


class NoSolution(Exception):
    """An equation that does not hold: the rule does not fire."""


def solve(
    equations: Sequence[tuple[Expression, Any]], conditions: Sequence[Expression], scope: Scope, kinds: Mapping[str, Kind], name: str,
    place: Place | None = None,
) -> bool:  # fmt: skip
    """Bind names until all equations and conditions hold; False when one does not, or a dtype is not of its class.

    Raises:
        RuleTypeError: what is left determines nothing.
    """
    while equations or conditions:
        try:
            late = [equation for equation in equations if not _solved(equation, scope)]
            if not in_classes(scope, kinds):
                return False
            waiting = [condition for condition in conditions if not _holds(condition, scope)]
        except (NoSolution, Undefined):
            return False
        if len(late) == len(equations) and len(waiting) == len(conditions):
            raise RuleTypeError(f"the left side of `{name}` does not determine its variables", place=place)
        equations, conditions = late, waiting
    return in_classes(scope, kinds)


def in_classes(scope: Scope, kinds: Mapping[str, Kind]) -> bool:
    """True when no dtype that is known is outside its class."""
    return all(scope.values[key] in kind.classes for key, kind in kinds.items() if kind.word == "dtype" and key in scope.values)


def _solved(equation: tuple[Expression, Any], scope: Scope) -> bool:
    try:
        if not match(equation[0], equation[1], scope):
            raise NoSolution
    except Unbound:
        return False
    return True


def _holds(condition: Expression, scope: Scope) -> bool:
    """True when it holds, False when it must wait; an equality may bind a variable. Raises Refused when it is false."""
    try:
        if not evaluate(condition, scope):
            raise NoSolution
        return True
    except Unbound:
        if not (isinstance(condition, Call) and condition.function == "=="):
            return False
    for pattern, other in (condition.arguments, condition.arguments[::-1]):
        try:
            value = evaluate(other, scope)
        except Unbound:
            continue
        return _solved((pattern, value), scope)
    return False
