"""What one element of a kernel's result is: a scalar expression over the kernel's loops, with places that are dims.

Every movement op (broadcast, transpose, slice, reverse, reshape, pad, concatenate, iota) is gone here: it is how an index of the
result becomes an index of an operand, with a condition where it may fall outside. Indices and conditions are dims
(`coset.ir.dims`) over the kernel's loops, which are dim symbols of their own, beside the program's symbols. A place that is itself read
from memory (gather, dynamic_slice) is a `Pick`: one more dim symbol of the kernel, whose number is a scalar.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Union

from coset.ir.dims import Dim, Poly, symbol
from coset.ir.op import Op
from coset.ir.term import AttributeItems
from coset.ir.types import DType


@dataclass(frozen=True)
class Loop:
    """One index of a kernel: `name` runs over 0 .. extent - 1. Its symbol is none of the program: it begins with `loop:`."""

    name: str
    extent: Dim

    @property
    def index(self) -> Poly:
        """The loop's index as a dim."""
        return symbol(self.name)


@dataclass(frozen=True)
class InBounds:
    """The condition `low <= index < high`."""

    index: Dim
    low: Dim
    high: Dim


@dataclass(frozen=True)
class Load:
    """The element of a buffer at `index` (one dim for each of the buffer's dims). It is inside wherever the value is used."""

    buffer: str
    index: tuple[Dim, ...]
    dtype: DType


@dataclass(frozen=True)
class ScalarConstant:
    """A constant; `value` is a Python number that `dtype` holds exactly (bit patterns of NaN do not matter)."""

    value: int | float | bool | complex
    dtype: DType


@dataclass(frozen=True)
class IndexValue:
    """A dim over the loops and the program's symbols, as a number: iota, and numbers of the host."""

    index: Dim
    dtype: DType


@dataclass(frozen=True)
class ScalarOp:
    """An elementwise hub op of scalars; its meaning is the op's own (each result is rounded to `dtype`)."""

    op: Op
    operands: tuple["Scalar", ...]
    dtype: DType
    attributes: AttributeItems = ()


@dataclass(frozen=True)
class Choose:
    """`inside` where all `bounds` hold, else `outside`; the one that is not chosen may not be read."""

    bounds: tuple[InBounds, ...]
    inside: "Scalar"
    outside: "Scalar"
    dtype: DType


@dataclass(frozen=True)
class Result:
    """What an earlier step of the same kernel made: a reduction's value of this row, or the accumulator of a product."""

    name: str
    dtype: DType


Scalar = Union[Load, ScalarConstant, IndexValue, ScalarOp, Choose, Result]


def operands_of(value: Scalar) -> tuple[Scalar, ...]:
    """The scalars that `value` is made of."""
    if isinstance(value, ScalarOp):
        return value.operands
    return (value.inside, value.outside) if isinstance(value, Choose) else ()


def dims_in(value: Scalar) -> tuple[Dim, ...]:
    """The dims that a scalar itself mentions, not what is under it."""
    if isinstance(value, Load):
        return value.index
    if isinstance(value, IndexValue):
        return (value.index,)
    return tuple(dim for bound in value.bounds for dim in (bound.index, bound.low, bound.high)) if isinstance(value, Choose) else ()


def scalars(*values: Scalar) -> Iterator[Scalar]:
    """Every scalar under `values` once, operands before users (kernels are small: the planner bounds their size)."""
    done: set[int] = set()
    stack: list[tuple[Scalar, bool]] = [(value, False) for value in reversed(values)]
    while stack:
        value, ready = stack.pop()
        if id(value) in done:
            continue
        if ready:
            done.add(id(value))
            yield value
            continue
        stack.append((value, True))
        stack += [(operand, False) for operand in reversed(operands_of(value)) if id(operand) not in done]


@dataclass(frozen=True)
class Store:
    """`value` goes to `buffer` at `index`; the stores of a kernel write every element of their buffers exactly once."""

    buffer: str
    index: tuple[Dim, ...]
    value: Scalar


@dataclass(frozen=True)
class Pick:
    """A symbol (it begins with `pick:`) for a computed place: `value`, an integer that lies in 0 .. count - 1 wherever it is used.

    Its value may mention the kernel's loops and earlier picks. It may be computed only where what it is the place of is used: elsewhere
    its own loads may be outside.
    """

    name: str
    count: Dim
    value: Scalar
