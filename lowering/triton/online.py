"""Folds of long rows that need another fold's result, made in the same pass: what is summed about a value that is not known yet.

Each place of a tile keeps a part of the row of its own; when the row is over the parts are brought together about the value that is
known by then. Two kinds: sums of exp(v - max v), where the largest so far stands for the largest of all (Milakov and Gimelshein, 2018),
and sums of (v - c)^2 for any value c of a row, where the mean so far stands for c (Welford, 1962): about c they are more by count times
the squared distance. Neither subtracts large numbers from each other. Rounding is another than that of two passes: see `Options`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from coset.ir.op import get_op
from coset.ir.types import F32, F64, DType
from coset.lowering.kernels.kernel import ColumnFold, Result, Rows, Scalar, ScalarConstant, ScalarOp, scalars
from coset.lowering.kernels.renaming import over

_FLOATS = (F32, F64)


@dataclass(frozen=True)
class Exponentials:
    """The fold of `fold` sums exp(value - largest), where the fold `largest` is the largest `value`."""

    fold: ColumnFold
    value: Scalar
    largest: str


@dataclass(frozen=True)
class Squares:
    """The fold of `fold` sums (value - center)^2; `center` is made of folds and numbers."""

    fold: ColumnFold
    value: Scalar
    center: Scalar


Online = Exponentials | Squares


def online(fold: ColumnFold, folds: Iterable[ColumnFold]) -> Online | None:
    """How `fold` is made in the pass of the folds that it needs, or None where it takes a pass of its own."""
    value = fold.value
    if fold.combiner != "add" or fold.dtype not in _FLOATS or not isinstance(value, ScalarOp) or value.dtype is not fold.dtype:
        return None
    if value.op.name == "stablehlo.exponential":
        off = _difference(value.operands[0], fold.dtype)
        if off is not None and isinstance(off[1], Result) and _is_free(off[0]):
            top = next((other for other in folds if other.name == off[1].name), None)
            if top is not None and top.combiner == "maximum" and top.dtype is fold.dtype and top.value is off[0]:
                return Exponentials(fold, off[0], top.name)
    if value.op.name == "stablehlo.multiply" and value.operands[0] is value.operands[1]:
        off = _difference(value.operands[0], fold.dtype)
        if off is not None and _is_free(off[0]) and _is_of_rows(off[1]):
            return Squares(fold, *off)
    return None


def walks(folds: Sequence[ColumnFold], *, contracts: bool) -> tuple[list[list[ColumnFold]], dict[str, Online]]:
    """The folds by the walk over a row that makes them: behind those of the folds that they need, or (`contracts`) in the same one, and how
    these are made."""
    together: dict[str, Online] = {}
    level: dict[str, int] = {}
    for fold in folds:
        found = online(fold, folds) if contracts else None
        if found is not None:
            together[fold.name] = found
        needed = max((level[name] for name in results_in(fold.value)), default=-1)
        level[fold.name] = max(needed, 0) if found is not None else needed + 1
    return [[fold for fold in folds if level[fold.name] == at] for at in sorted(set(level.values()))], together


def kept_tiles(folds: Sequence[ColumnFold], *, contracts: bool) -> int:
    """How many values of each place a walk over a row hands on from tile to tile at most: one of each fold, and the mean beside squares."""
    passes, together = walks(folds, contracts=contracts)
    return max((sum(1 + isinstance(together.get(fold.name), Squares) for fold in each) for each in passes), default=0)


def with_reciprocals(kernel: Rows) -> Rows:
    """`kernel` with multiplications by 1 over a sum of exponentials about their largest, once for each row, in place of divisions by it:
    such a sum is 1 or more, or NaN. A division rounds once, and takes 13 instructions and a branch for each element."""
    sums = {fold.name for fold in kernel.folds if fold.dtype is F32 and isinstance(online(fold, kernel.folds), Exponentials)}
    if not sums:
        return kernel
    done: dict[int, Scalar] = {}
    for value in scalars(*(store.value for store in kernel.element_stores)):
        now = over(value, done)
        if isinstance(now, ScalarOp) and now.op.name == "stablehlo.divide" and now.dtype is F32:
            top, bottom = now.operands
            if isinstance(bottom, Result) and bottom.name in sums:
                now = replace(
                    now, op=get_op("stablehlo.multiply"), operands=(top, replace(now, operands=(ScalarConstant(1.0, F32), bottom)))
                )
        done[id(value)] = now
    return replace(kernel, element_stores=tuple(replace(store, value=done[id(store.value)]) for store in kernel.element_stores))


def _difference(value: Scalar, dtype: DType) -> tuple[Scalar, Scalar] | None:
    """The two sides of a subtraction in `dtype`."""
    if not isinstance(value, ScalarOp) or value.op.name != "stablehlo.subtract" or value.dtype is not dtype:
        return None
    return value.operands[0], value.operands[1]


def _is_free(value: Scalar) -> bool:
    """True where no fold is needed."""
    return not any(isinstance(item, Result) for item in scalars(value))


def _is_of_rows(value: Scalar) -> bool:
    """True for what is made of folds and numbers alone."""
    items = list(scalars(value))
    return any(isinstance(item, Result) for item in items) and all(isinstance(item, (Result, ScalarConstant, ScalarOp)) for item in items)


def results_in(value: Scalar) -> set[str]:
    """The folds that a value needs."""
    return {item.name for item in scalars(value) if isinstance(item, Result)}
