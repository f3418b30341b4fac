"""What the `test` lines of an entry write down: arrays for its terms, values for its other names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from coset.ir.op import Array
from coset.ir.types import DTYPES, DType, TensorType, dtype_of
from coset.rules import syntax
from coset.rules.algebra import Literal, Ref, Scope, Unbound, evaluate
from coset.rules.equation import Kind, TypePattern
from coset.rules.names import FUNCTION, Names, spelled_elsewhere
from coset.rules.scalar import Undefined, scalar_constant
from coset.rules.syntax import RuleError
from coset.rules.values import ValueResolver

_WORDS = {"true": Decimal(1), "false": Decimal(0), "inf": Decimal("Infinity"), "nan": Decimal("NaN")}


@dataclass(frozen=True)
class Bindings:
    """The arrays of term variables (several of one that repeats) and the values of all other names that a test line gives."""

    arrays: Mapping[str, tuple[Array, ...]]
    values: Mapping[str, Any]


def bindings(ground: syntax.Ground, types: Mapping[str, TypePattern], kinds: Mapping[str, Kind]) -> Bindings:
    """What a test line gives to the term variables in `types` and to the names in `kinds`.

    Raises:
        RuleError: a name that is neither, or a value that is none of its kind.
    """
    arrays: dict[str, tuple[Array, ...]] = {}
    values: dict[str, Any] = {}
    for written in ground.given:
        if written.name in types:
            continue
        if written.name not in kinds:
            known = ", ".join([*types, *kinds])
            raise RuleError(f"`{written.name}` is no name of this entry", place=written.place, help=f"its names are: {known}")
        if written.name in values:
            raise RuleError(f"`{written.name}` is given twice", place=written.place, help="leave one out")
        values[written.name] = _value(written, kinds[written.name])
    elements = {name: value for name, value in values.items() if isinstance(value, DType)}
    for written in ground.given:
        if written.name in types:
            declared = types[written.name].dtype
            dtype = _element_type(written, declared, elements)
            if isinstance(declared, Ref):
                elements.setdefault(declared.name, dtype)
            arrays[written.name] = (*arrays.get(written.name, ()), array(written, dtype))
    return Bindings(arrays, values)


def type_of(value: Array) -> TensorType:
    """The type of an array."""
    return TensorType(dtype_of(value.dtype), np.shape(value))


def array(written: syntax.Written, dtype: DType) -> Array:
    """The tensor that is written, each number rounded once to `dtype`.

    Raises:
        RuleError: something in it is no number of `dtype`, or its rows differ in length.
    """
    if written.dtype:
        dtype = _named(written)
    numbers: list[Array] = []
    shape = _shape(written.value)
    pending = [written.value]
    while pending:
        top = pending.pop()
        if isinstance(top, syntax.Brackets):
            pending += [item for item in reversed(top.items) if not isinstance(item, syntax.Spread)]
            continue
        try:
            numbers.append(scalar_constant(_number(top), dtype).array())
        except Undefined:
            raise RuleError(f"this is no number of type {dtype}", place=top.place, help=f"the tensor is of type {dtype}") from None
    result = np.empty(len(numbers), dtype.numpy)
    for place, number in enumerate(numbers):
        result[place] = number
    return result.reshape(shape)


def _shape(expression: syntax.Expression | syntax.Spread) -> tuple[int, ...]:
    if not isinstance(expression, syntax.Brackets):
        return ()
    inner = [_shape(item) for item in expression.items]
    for item, shape in zip(expression.items, inner, strict=True):
        if isinstance(item, syntax.Spread):
            raise RuleError("a tensor is written number by number", place=item.place, help="write [1, 2, 3]")
        if shape != inner[0]:
            help = f"the first one has the shape {list(inner[0])}, this one {list(shape)}"
            raise RuleError("the rows of this tensor differ in shape", place=item.place, help=help)
    return (len(inner), *(inner[0] if inner else ()))


def _number(expression: syntax.Expression) -> Decimal:
    if isinstance(expression, syntax.Number):
        return expression.value
    if isinstance(expression, syntax.Name) and expression.value in _WORDS:
        return _WORDS[expression.value]
    if isinstance(expression, syntax.Operation) and expression.operator == "negate" and expression.operands[0] is not None:
        return _number(expression.operands[0]).copy_negate()
    raise RuleError("a tensor is written number by number", place=expression.place, help="numbers, inf, nan, true and false")


def _named(written: syntax.Written) -> DType:
    if written.dtype not in DTYPES:
        known = ", ".join(name for name in DTYPES if name != "string")
        help = spelled_elsewhere(written.dtype) or f"one of: {known}"
        raise RuleError(f"there is no element type `{written.dtype}`", place=written.place, help=help)
    return DTYPES[written.dtype]


def _element_type(written: syntax.Written, declared: Any, elements: Mapping[str, DType]) -> DType:
    """The element type of a variable: as written, as declared, or that of another variable of the same type."""
    if written.dtype:
        return _named(written)
    if isinstance(declared, Literal):
        assert isinstance(declared.value, DType)
        return declared.value
    if isinstance(declared, Ref) and declared.name in elements:
        return elements[declared.name]
    help = f"write {written.name} = ..: f32"
    raise RuleError(f"nothing says which element type `{written.name}` has", place=written.place, help=help)


def _value(written: syntax.Written, kind: Kind) -> Any:
    """The value of a name that is no term."""
    if kind.word == "constant":
        if not written.dtype:
            raise RuleError(f"nothing says which element type `{written.name}` has", place=written.place, help="write it behind a colon")
        from coset.ir.constants import constant_of

        return constant_of(array(written, _named(written)), _named(written))
    if written.dtype:
        raise RuleError(f"`{written.name}` is no tensor, and has no element type", place=written.place, help="leave the type out")
    if kind.word == FUNCTION:  # it names ops of the hub
        return ValueResolver(Names(dialects={dialect: dialect for dialect in ("chlo", "stablehlo")}), left=False).function(written.value)
    word = "float" if kind.word == "float" else kind.word
    try:
        value = evaluate(ValueResolver(Names(), left=False).attribute(written.value, word), Scope())
    except (Undefined, Unbound):
        raise RuleError(f"this is no value for `{written.name}`", place=written.place, help="write it with numbers alone") from None
    return tuple(map(float, value)) if kind.word == "floats" and isinstance(value, tuple) else value
