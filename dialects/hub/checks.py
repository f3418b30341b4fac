"""What the hub's type rules are made of: checks of operands and attributes, each with its clear sentence.

Two dims are equal when their canonical forms are. An inequality between dims is refused when it is known to be false: what
cannot be known before the symbols have numbers is left to the evaluator.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from coset.ir import dims
from coset.ir.dims import Dim, Poly, Shape
from coset.ir.dtype_classes import CLASSES
from coset.ir.errors import TypeRuleError, require
from coset.ir.op import Attributes
from coset.ir.types import DType, TensorType, Type


@lru_cache(maxsize=256)
def dtypes(classes: str) -> frozenset[DType]:
    """The union of the named dtype classes (separated by spaces)."""
    return frozenset[DType]().union(*(CLASSES[name] for name in classes.split()))


def tensor_of(operand: Type, what: str) -> TensorType:
    """`operand` as a tensor type of known rank, for type rules.

    Raises:
        TypeRuleError: it is no such type.
    """
    if not isinstance(operand, TensorType) or operand.shape is None:
        raise TypeRuleError(f"{what} must be a tensor of known rank, not {operand}")
    return operand


def tensors(name: str, operands: Sequence[Type], *names: str) -> list[TensorType]:
    """The operands as tensors of known rank, one for each of `names`."""
    if len(operands) != len(names):
        raise TypeRuleError(f"`{name}` takes {len(names)} operands ({', '.join(names)}), not {len(operands)}")
    return [tensor_of(operand, f"`{what}` of `{name}`") for what, operand in zip(names, operands, strict=True)]


def require_class(name: str, what: str, dtype: DType, classes: str) -> None:
    """Refuse a dtype that is in none of the named classes."""
    if dtype not in dtypes(classes):
        hint = ": dequantize, compute and quantize again" if dtype.kind == "quantized" else ""
        raise TypeRuleError(f"`{name}` takes {' or '.join(classes.split())} elements, but {what} has {dtype}{hint}")


def require_same(name: str, types: Sequence[TensorType], names: Sequence[str]) -> None:
    """Refuse operands whose types differ."""
    for type, what in zip(types[1:], names[1:], strict=True):
        if type != types[0]:
            raise TypeRuleError(f"`{name}` takes operands of one type, but {names[0]} is {types[0]} and {what} is {type}")


def get_ints(name: str, attributes: Attributes, key: str, *, least: int | None = None, count: int | None = None) -> tuple[int, ...]:
    """The attribute `key`, a tuple of integers."""
    value = attributes[key]
    fine = isinstance(value, tuple) and all(isinstance(item, int) and not isinstance(item, bool) for item in value)
    if not fine:
        raise TypeRuleError(f"`{key}` of `{name}` must be a tuple of integers, not {value!r}")
    if count is not None and len(value) != count:
        raise TypeRuleError(f"`{key}` of `{name}` must have {count} entries, not {len(value)}: {value}")
    if least is not None and any(item < least for item in value):
        raise TypeRuleError(f"`{key}` of `{name}` must be {least} or more everywhere, not {value}")
    return value  # type: ignore[no-any-return]


def get_counts(name: str, attributes: Attributes, key: str, *, least: int | None = None, count: int) -> Shape:
    """The attribute `key`, a tuple of integers, such as strides; in proofs some are symbols for any number from `least` on."""
    value = attributes[key]
    if isinstance(value, tuple) and any(isinstance(item, Poly) for item in value):
        numbers = tuple(item for item in value if not isinstance(item, Poly))
        require(len(value) == count, f"`{key}` of `{name}` must have {count} entries, not {len(value)}: {value}")
        get_ints(name, {key: numbers}, key, least=least)
        return value
    return get_ints(name, attributes, key, least=least, count=count)


def get_axes(name: str, attributes: Attributes, key: str, rank: int, *, count: int | None = None) -> tuple[int, ...]:
    """The attribute `key`, a tuple of different axes of a tensor of `rank` dims."""
    axes = get_ints(name, attributes, key, count=count)
    if not all(0 <= axis < rank for axis in axes):
        raise TypeRuleError(f"`{key}` of `{name}` must lie in 0..{rank - 1}, not {axes}")
    if len(set(axes)) != len(axes):
        raise TypeRuleError(f"`{key}` of `{name}` names a dimension twice: {axes}")
    return axes


def get_axis(name: str, attributes: Attributes, key: str, rank: int) -> int:
    """The attribute `key`, an axis of a tensor of `rank` dims."""
    axis = get_int(name, attributes, key)
    require(0 <= axis < rank, f"`{key}` of `{name}` must lie in 0..{rank - 1}, not {axis}")
    return axis


def get_int(name: str, attributes: Attributes, key: str) -> int:
    """The attribute `key`, an integer."""
    value = attributes[key]
    require(isinstance(value, int) and not isinstance(value, bool), f"`{key}` of `{name}` must be an integer, not {value!r}")
    return value  # type: ignore[no-any-return]


def get_float(name: str, attributes: Attributes, key: str) -> float:
    """The attribute `key`, a number."""
    value = attributes[key]
    require(isinstance(value, float | int) and not isinstance(value, bool), f"`{key}` of `{name}` must be a number, not {value!r}")
    return float(value)


def get_bool(name: str, attributes: Attributes, key: str) -> bool:
    """The attribute `key`, true or false."""
    value = attributes[key]
    require(isinstance(value, bool), f"`{key}` of `{name}` must be True or False, not {value!r}")
    return value  # type: ignore[no-any-return]


def get_word(name: str, attributes: Attributes, key: str, words: Sequence[str]) -> str:
    """The attribute `key`, one of `words`."""
    value = attributes[key]
    require(isinstance(value, str) and value in words, f"`{key}` of `{name}` must be one of {', '.join(words)}, not {value!r}")
    return value  # type: ignore[no-any-return]


def get_dims(name: str, attributes: Attributes, key: str, *, count: int | None = None) -> Shape:
    """The attribute `key`, a tuple of dims, none known to be negative."""
    value = attributes[key]
    fine = isinstance(value, tuple) and all(isinstance(item, int | Poly) and not isinstance(item, bool) for item in value)
    require(fine, f"`{key}` of `{name}` must be a tuple of dims, not {value!r}")
    require(count is None or len(value) == count, f"`{key}` of `{name}` must have {count} entries, not {len(value)}: {value}")
    require(all(not isinstance(item, int) or item >= 0 for item in value), f"`{key}` of `{name}` has a negative entry: {value}")
    return value  # type: ignore[no-any-return]


def get_dtype(name: str, attributes: Attributes) -> DType:
    """The attribute `dtype`."""
    value = attributes["dtype"]
    require(isinstance(value, DType), f"`dtype` of `{name}` must be a dtype, not {value!r}")
    return value  # type: ignore[no-any-return]


def may_be_at_most(a: Dim, b: Dim) -> bool:
    """False when a > b is known: the difference is a number."""
    difference = dims.subtract(b, a)
    return not isinstance(difference, int) or difference >= 0


def may_be_equal(a: Dim, b: Dim) -> bool:
    """True when a and b are one polynomial, or agree wherever their `//` divide exactly (seen at two points of many factors)."""
    if a == b:
        return True
    names = sorted(dims.symbols(a) | dims.symbols(b))
    if isinstance(dims.subtract(a, b), int):
        return False
    for factors in ((1009, 1013, 1019, 1021), (2003, 2011, 2017, 2027)):
        point = {name: 720720 * (factors[i % 4] + 7920 * (i // 4)) for i, name in enumerate(names)}
        if dims.evaluate(a, point) != dims.evaluate(b, point):
            return False
    return True


def get_padding(name: str, attributes: Attributes, spatial: int) -> tuple[tuple[Dim, Dim], ...]:
    """The attribute `padding`, a pair of integers (low, high) for each of `spatial` dims; in proofs some are symbols for any."""
    value: Any = attributes["padding"]
    pairs = isinstance(value, tuple) and all(isinstance(p, tuple) and len(p) == 2 for p in value)
    if pairs and len(value) == spatial and any(isinstance(i, Poly) for p in value for i in p):
        return value  # type: ignore[no-any-return]
    return get_pairs(name, attributes, spatial)


def get_pairs(name: str, attributes: Attributes, spatial: int, key: str = "padding") -> tuple[tuple[int, int], ...]:
    """The attribute `key`, a pair of integers (low, high) for each of `spatial` dims."""
    value: Any = attributes[key]
    pairs = isinstance(value, tuple) and all(isinstance(p, tuple) and len(p) == 2 and all(isinstance(i, int) for i in p) for p in value)
    require(pairs and len(value) == spatial, f"`{key}` of `{name}` must be {spatial} pairs of integers (low, high), not {value!r}")
    return value  # type: ignore[no-any-return]


def padded(dim: Dim, low: Dim, high: Dim, dilation: Dim) -> Dim:
    """The dim with `dilation - 1` elements between neighbours and padding at the ends; a symbolic dim is taken as 1 or more."""
    inner = 0 if dim == 0 else dims.add(dims.multiply(dims.subtract(dim, 1), dilation), 1)
    return dims.add(inner, dims.add(low, high))


def window_count(size: Dim, window: Dim, stride: Dim) -> Dim:
    """How many windows fit; 0 when none does. Symbolic sizes are taken to hold one window or more."""
    room = dims.subtract(size, window)
    if isinstance(room, int) and room < 0:
        return 0
    return dims.add(dims.floordiv(room, stride), 1)


def without(shape: Shape, axis: int) -> Shape:
    """The shape without dim `axis`."""
    return (*shape[:axis], *shape[axis + 1 :])
