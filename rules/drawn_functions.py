"""Payload functions to try for what a rule leaves open: for proofs one of which nothing is known, for tests some of the usual ones."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from coset.ir.builtin import OPAQUE
from coset.ir.constants import constant_of
from coset.ir.errors import CosetError
from coset.ir.op import Op, Signature
from coset.ir.term import PARAMETER, Region, Term, check_regions, constant, get, make
from coset.ir.types import TensorType, Type
from coset.rules.algebra import Expression, Literal, PayloadFunction, Ref, Scope, Unbound, region_of
from coset.rules.equation import Attributes
from coset.rules.payloads import signatures
from coset.rules.scalar import Undefined

MOST = 24  # choices for one application
LOOPS = "condition"  # a loop whose condition is drawn need not end: one that is never entered speaks for it

Draw = Callable[[Sequence[Region]], list[Any]]
Chosen = tuple[dict[str, Any], dict[str, Any]]  # the functions by role, and the names that this binds


def choices(
    written: Attributes, op: Op, index: int, operands: Sequence[Type], attributes: dict[str, Any], scope: Scope, draw: Draw | None
) -> Iterator[Chosen]:
    """The functions that application `index` of a left side may have, whose operands and attributes stand: the usual ones in the order that
    `draw` gives them, or without it functions of which nothing is known."""
    wanted = signatures(op, operands, attributes)
    items = dict(written.items)
    options: list[list[Region | None]] = []
    for role, _ in op.functions:
        expression = items.get(role) if written.rest is None or role in items else _of_rest(written, role, scope)
        options.append(_options(expression, role, f"{role} {index}", wanted.get(role), scope, draw))
    for choice in itertools.islice(itertools.product(*options), MOST):
        functions = dict(zip((role for role, _ in op.functions), choice, strict=True))
        bound = {each.name: value for role, value in functions.items() if isinstance(each := items.get(role), Ref)}
        try:
            check_regions(op, operands, attributes, tuple(each for each in choice if each is not None))
        except CosetError:
            continue
        yield functions, bound


def _of_rest(written: Attributes, role: str, scope: Scope) -> Expression | None:
    """What `..rest` has for a role, if it is bound."""
    bound = dict(scope.values.get(written.rest, ())) if written.rest is not None else {}
    return Literal(bound[role]) if role in bound else None


def _options(
    expression: Expression | None, role: str, label: str, signature: Signature | None, scope: Scope, draw: Draw | None
) -> list[Region | None]:
    if isinstance(expression, Literal):
        return [expression.value]
    if signature is None:
        return [None] if expression is None else []
    if isinstance(expression, PayloadFunction):
        try:
            return [region_of(expression, signature.parameters, scope)]
        except (Undefined, Unbound, CosetError):
            return []
    if isinstance(expression, Ref) and expression.name in scope.values:
        return [scope.values[expression.name]]
    name = expression.name if isinstance(expression, Ref) else label
    return [unknown(name, signature)] if draw is None else draw(list(usual(signature)))


def unknown(name: str, signature: Signature) -> Region:
    """A function called `name` of which nothing is known."""
    parameters = _parameters(signature)
    whole = make(OPAQUE, parameters, {"domain": "function", "name": name, "payload": (), "results": signature.results})
    results = (whole,) if len(signature.results) == 1 else tuple(get(whole, i) for i in range(len(signature.results)))
    return Region(parameters, results)


def usual(signature: Signature) -> Iterator[Region]:
    """Functions of the kinds that programs have: sums, products, largest elements, comparisons, choices, and some that are no combiners."""
    parameters = _parameters(signature)
    if signature.role == LOOPS:
        yield Region(parameters, (constant(np.array(False)),))
        return
    rows = [list(_results(type, parameters)) for type in signature.results]
    for row in itertools.islice(
        zip(*(itertools.cycle(row) for row in rows), strict=True), max(map(len, rows), default=0) if all(rows) else 0
    ):
        yield Region(parameters, row)


def _parameters(signature: Signature) -> tuple[Term, ...]:
    return tuple(make(PARAMETER, (), {"index": i, "type": type}) for i, type in enumerate(signature.parameters))


def _results(type: Type, parameters: Sequence[Term]) -> Iterator[Term]:
    """Terms of this type over the parameters."""
    own = [each for each in parameters if each.type == type]
    first, last = (own[0], own[-1]) if own else (None, None)
    for name in ("add", "maximum", "multiply", "subtract", "and", "or", "xor"):
        yield from _made(name, first, last)
    yield from own
    if isinstance(type, TensorType) and first is not None and last is not None and first is not last:
        yield from _uncommon(type, first, last)
    for name in ("negate", "not"):
        yield from _made(name, last)
    numbers = [each for each in parameters if isinstance(each.type, TensorType) and each.tensor.dtype.kind != "bool"]
    for direction in ("LT", "GT"):
        yield from (term for term in _made("compare", *numbers[:1], *numbers[-1:], direction=direction) if term.type == type)
    if not isinstance(type, TensorType):
        return
    yield from (term for each in parameters if each.type != type for term in _made("convert", each, dtype=type.dtype) if term.type == type)
    if type.static is not None and type.dtype.numpy is not None:
        yield constant(constant_of(np.zeros(type.static, type.dtype.numpy), type.dtype))


def _uncommon(type: TensorType, a: Term, b: Term) -> Iterator[Term]:
    """The first number that is not 0, which is associative and not commutative; the distance of two numbers, of which a 0 changes nothing,
    which is commutative and not associative."""
    if type.dtype.kind not in ("float", "int", "uint") or type.static is None:
        return
    zero = constant(constant_of(np.zeros(type.static, type.dtype.numpy), type.dtype))
    differs = make("stablehlo.compare", (a, zero), {"direction": "NE"})
    yield make("stablehlo.select", (differs, a, b))
    ends = [make(f"stablehlo.{name}", (a, b)) for name in ("maximum", "minimum")]
    both = make("stablehlo.and", (differs, make("stablehlo.compare", (b, zero), {"direction": "NE"})))
    yield make("stablehlo.select", (both, make("stablehlo.subtract", ends), make("stablehlo.add", (a, b))))


def _made(name: str, *operands: Term | None, **attributes: Any) -> Iterator[Term]:
    """The term, if the op takes these operands."""
    if not operands or any(operand is None for operand in operands):
        return
    try:
        yield make(f"stablehlo.{name}", [operand for operand in operands if operand is not None], attributes)
    except CosetError:
        return
