"""One call of an ATen op (what PyTorch's graphs are made of) as the builders of terms see it, and the table of builders.

A builder says which hub term a call is. It never asks torch: the frontend gives arguments by the names of the op's schema, with its
defaults filled in, and the types that torch says the results have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union

import ml_dtypes
import numpy as np

from coset.dialects.hub.scalars import cast
from coset.dialects.hub.terms import convert as exactly
from coset.dialects.hub.terms import is_splat
from coset.dialects.onnx.arithmetic import Number, clamp
from coset.dialects.onnx.node import Node, define
from coset.ir.dims import Dim, Poly, Shape
from coset.ir.errors import CosetError
from coset.ir.term import Term
from coset.ir.types import F32, I32, I64, DType, TensorType

LAST_OPSET = 26  # of the ONNX definitions that are made use of


class NoTerm(CosetError):
    """A call that no term says; the message is the reason."""


@dataclass(frozen=True)
class AtenNode:
    """A call of `name` (as `add.Tensor`). `arguments`: tensors are terms, numbers are numbers, dims, or rank-0 terms where only a run
    tells them; element types are ours; lists are lists. `types`: what torch says of each result, None for what is no tensor.
    `common`: the element type that torch promotes the operands to. `saturates`: the torch that is installed makes of numbers beyond the
    largest one of the result's type, infinities too, this largest one (the hub has NaN for a type without infinities)."""

    name: str
    arguments: Mapping[str, Any]
    types: tuple[TensorType | None, ...]
    common: DType | None = None
    saturates: bool = False

    def __getitem__(self, key: str) -> Any:
        return self.arguments[key]

    def term(self, key: str) -> Term:
        """The tensor `key`."""
        found = self.arguments[key]
        assert isinstance(found, Term), f"{self.name} has no tensor `{key}`"
        return found

    def number(self, key: str) -> float:
        """The plain number `key`.

        Raises:
            NoTerm: only a run tells it.
        """
        found = self.arguments[key]
        if isinstance(found, Term | Poly):
            raise NoTerm(f"`{key}` must be a number that is known before a run")
        return found  # type: ignore[no-any-return]

    def ints(self, key: str, count: int | None = None) -> tuple[int, ...]:
        """The numbers `key`; one stands for `count` of them, as in the strides of a convolution.

        Raises:
            NoTerm: only a run tells one.
        """
        found = self.arguments[key]
        given = (found,) if isinstance(found, int) else tuple(found)
        if not all(isinstance(each, int) for each in given):
            raise NoTerm(f"`{key}` must be numbers that are known before a run")
        return given * count if count is not None and len(given) == 1 else given

    def axis(self, x: Term, key: str = "dim") -> int:
        """The axis of `x` that the plain number `key` says, counted from the front.

        Raises:
            NoTerm: only a run tells it.
        """
        return axis_of(int(self.number(key)), x.tensor.rank)

    def dims(self, key: str) -> tuple[Dim, ...]:
        """The sizes `key`."""
        return tuple(self.arguments[key])

    def converted(self, key: str) -> Term:
        """The tensor `key` in the element type of the first result."""
        x, dtype = self.term(key), self.dtype
        if not self.saturates or x.tensor.dtype == dtype or x.tensor.dtype.kind not in ("float", "int", "uint"):
            return convert(x, dtype)
        largest = float(ml_dtypes.finfo(dtype.numpy).max)  # type: ignore[no-untyped-call]
        return convert(clamp(convert(x, F32), -largest, largest), dtype)

    @property
    def type(self) -> TensorType:
        """The type of the first result."""
        found = self.types[0]
        assert found is not None, f"{self.name} gives no tensor"
        return found

    @property
    def dtype(self) -> DType:
        """The element type of the first result."""
        return self.type.dtype

    @property
    def shape(self) -> Shape:
        """The shape of the first result."""
        return self.type.dims


Built = Union[Term, tuple[Term | None, ...]]
Builder = Callable[[AtenNode], Built]
BUILDERS: dict[str, Builder] = {}


def aten(*names: str) -> Callable[[Builder], Builder]:
    """Enter a builder as what calls of the ops `names` mean.

    A builder raises NoTerm, or the TypeRuleError of a hub op, where a call has no term.
    """

    def enter(builder: Builder) -> Builder:
        for name in names:
            assert name not in BUILDERS, f"{name} is built twice"
            BUILDERS[name] = builder
        return builder

    return enter


def by_onnx(name: str, operands: Sequence[Term], attributes: Mapping[str, Any] | None = None, results: int = 1) -> tuple[Term, ...]:
    """What a node of ONNX's op means: ops that both have are defined once.

    Raises:
        NoTerm: the definition does not cover it.
    """
    node = Node(name, tuple(operands), dict(attributes or {}), (None,) * len(operands), LAST_OPSET, results, results)
    built = define(node)
    if built is None:
        raise NoTerm(f"the definition of onnx.{name} does not cover these operands")
    return built


def axis_of(axis: int, rank: int) -> int:
    """`axis` counted from the front; a scalar counts as a vector of one element."""
    return axis % max(rank, 1)


def axes_of(given: Any, rank: int) -> tuple[int, ...]:
    """The axes of a reduction, sorted: all of them where none is given."""
    listed = [given] if isinstance(given, int) else list(given or ())
    return tuple(sorted({axis_of(axis, rank) for axis in listed})) if listed else tuple(range(rank))


def wide(dtype: DType) -> DType:
    """What torch computes elements of `dtype` in: f32 for floats of 16 bits and fewer."""
    return F32 if dtype.kind == "float" and dtype.bits < 32 else dtype


def widened(x: Term, build: Callable[[Term], Term]) -> Term:
    """What `build` makes of `x` in the type that torch computes in, rounded once to the type of `x`."""
    dtype = x.tensor.dtype
    return convert(build(convert(x, wide(dtype))), dtype)


def holds(dtype: DType, value: Any) -> bool:
    """True where `dtype` has the number `value` exactly, or `value` is no plain number."""
    if isinstance(value, Term | Poly | bool | int | complex):
        return not isinstance(value, int) or dtype.kind != "float" or float(cast(np.asarray(value), dtype)) == float(value)
    return value != value or float(cast(np.asarray(value, np.float64), dtype)) == float(value)


def given_as(dtype: DType, value: Number) -> Number:
    """A tensor in the element type `dtype`; a number as it is."""
    return convert(value, dtype) if isinstance(value, Term) else value


def convert(x: Term, dtype: DType) -> Term:
    """`x` in another element type, as torch converts: to floats of 16 bits and fewer by way of f32, so what f32 does not hold (of f64, i32,
    i64) is rounded twice; floats to integers of 16 bits and fewer by way of i32, and to u32 by way of i64, which wraps numbers out of range
    (where they are seen to be in range the conversion stays what it is)."""
    source = x.tensor.dtype
    if dtype.kind == "float" and dtype.bits < 32 and source.bits >= 32 and source.kind in ("float", "int", "uint"):
        x = exactly(x, F32)
    wraps = dtype.kind in ("int", "uint") and (dtype.bits < 32 or dtype.name == "u32")
    if wraps and source.kind == "float" and not _is_within(x, dtype):
        x = exactly(x, I32 if dtype.bits < 32 else I64)
    return exactly(x, dtype)


def _is_within(x: Term, dtype: DType) -> bool:
    """True where bounds that are numbers keep `x` in the range of the integers `dtype`, as a quantization has them."""
    limits = np.iinfo(dtype.numpy)
    low, high = -np.inf, np.inf
    while x.op.name in _BOUNDS:
        bounds = [(place, is_splat(operand)) for place, operand in enumerate(x.operands)]
        numbers = {place: float(bound.array()) for place, bound in bounds if bound is not None}
        inner = [place for place, bound in bounds if bound is None]
        if len(inner) != 1:
            return False
        if x.op.name == "stablehlo.clamp":
            if inner != [1]:
                return False
            low, high = max(low, numbers[0]), min(high, numbers[2])
        elif x.op.name == "stablehlo.maximum":
            low = max(low, *numbers.values())
        elif x.op.name == "stablehlo.minimum":
            high = min(high, *numbers.values())
        x = x.operands[inner[0]]
    return all(limits.min <= bound <= limits.max for bound in (low, high))


_BOUNDS = frozenset(
    f"stablehlo.{name}" for name in ("clamp", "maximum", "minimum", "round_nearest_even", "floor", "ceil", "reshape", "transpose")
)
