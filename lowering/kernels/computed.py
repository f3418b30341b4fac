"""What each kind of kernel says of itself: its loops, its scalars and its stores by name, and what a pass may do with it.

A kind is a dataclass in a file of its own. It names its fields in `loop_fields`, `value_fields` and `store_fields`, so that all kinds are
read and rewritten by the same functions here, and it has its text. What a pass asks beyond that has the answer of most kinds in `Computed`,
which the others replace.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self, TypeVar, cast

from coset.ir.dims import Dim, symbols
from coset.ir.types import DType
from coset.lowering.kernels.kernel_text import KernelText
from coset.lowering.kernels.library import Library
from coset.lowering.kernels.scalar import Load, Loop, Pick, Result, Scalar, Store, dims_in, scalars

Stores = tuple[Store, ...]
H = TypeVar("H")


@dataclass(frozen=True)
class HoldsScalars:
    """A kernel, or a step of one. `value_fields` are its fields with scalars, in the order in which these are computed: each is a scalar, a
    step, or a tuple of these."""

    value_fields: ClassVar[tuple[str, ...]] = ()


@dataclass(frozen=True)
class ColumnFold(HoldsScalars):
    """One reduction over the kernel's columns: the columns' `value`s folded by `combiner` (add multiply maximum minimum and or), in
    `dtype` (f32 for narrower floats). Later steps read it as `Result(name)`."""

    value_fields = ("value",)

    name: str
    combiner: str
    value: Scalar
    dtype: DType


@dataclass(frozen=True)
class Dot(HoldsScalars):
    """Sums over `k` of lhs(batch, rows, k) * rhs(batch, summed, k), which scalars of the kernel read as `Result(name)`, in `dtype`."""

    value_fields = ("lhs", "rhs")

    name: str
    k: tuple[Loop, ...]
    lhs: Scalar
    rhs: Scalar
    dtype: DType


@dataclass(frozen=True)
class PlaceKey:
    """A scalar whose `value` is a place in the index space of `loops`; `ascends`: from one index to the next it does not fall."""

    value: Scalar
    loops: tuple[Loop, ...]
    ascends: bool


@dataclass(frozen=True)
class Computed(HoldsScalars, ABC):
    """A kernel of scalar expressions over loops; the base of all kinds.

    `loop_fields` name its loops, the outer ones first: each field, or property, is a loop or a tuple of loops. `store_fields` name its
    stores: those of one field are done once for each index of the same loops. `terms` are the ops that it does, for the reader.
    """

    loop_fields: ClassVar[tuple[str, ...]]
    store_fields: ClassVar[tuple[str, ...]] = ("stores",)
    stores_elements: ClassVar[bool] = True
    """False where what is stored is also read back as a whole, so that parts of it cannot be stored somewhere else."""

    name: str
    terms: tuple[str, ...] = field(default=(), kw_only=True)
    picks: tuple[Pick, ...] = field(default=(), kw_only=True)

    # ------------------------------------------------------------ text

    @property
    def kind(self) -> str:
        """The kind in a word."""
        return type(self).__name__.lower()

    @abstractmethod
    def heading(self) -> str:
        """The loops as text, behind the kind and the name: `for i < 4 along j < 8`."""

    @abstractmethod
    def lines(self, text: KernelText) -> list[str]:
        """A line for each step and each store, in the order in which they are done."""

    # ------------------------------------------------------------ what passes ask

    @property
    def column_folds(self) -> tuple[ColumnFold, ...]:
        """Its folds along columns."""
        return ()

    @property
    def closing_stores(self) -> Stores:
        """The stores of which any may come last."""
        return stores_of(self)

    @property
    def early_values(self) -> tuple[Scalar, ...]:
        """Scalars whose loads a program instance may do after another one has stored."""
        return values_of(self)

    @property
    def hides(self) -> bool:
        """True where it does not read values that have no weight in its sums: their NaN is lost then."""
        return False

    @property
    def may_store_twice(self) -> bool:
        """True where the same value may be stored in a second place."""
        return True

    @property
    def place_key(self) -> PlaceKey | None:
        """The scalar that says which place of other loops an index belongs to; None where there is none."""
        return None

    @property
    def sum_loops(self) -> tuple[tuple[Loop, ...], ...]:
        """The loops of the sums that one result is behind, one sum after the other; empty where it adds nothing."""
        return ()

    def without_unused(self) -> Self:
        """The kernel without steps that no store needs, as far as that can be seen."""
        return self


Kernel = Computed | Library
K = TypeVar("K", bound=Computed)


def _collect(held: HoldsScalars, found: list[Scalar]) -> None:
    for name in held.value_fields:
        item = getattr(held, name)
        for each in item if isinstance(item, tuple) else (item,):
            if isinstance(each, HoldsScalars):
                _collect(each, found)
            else:
                found.append(each)


def _with_scalars(held: Any, of: Callable[[Scalar], Scalar]) -> Any:
    if isinstance(held, HoldsScalars):
        return replace(held, **{name: _with_scalars(getattr(held, name), of) for name in held.value_fields})
    return tuple(_with_scalars(each, of) for each in held) if isinstance(held, tuple) else of(held)


def step_values(held: HoldsScalars) -> tuple[Scalar, ...]:
    """The scalars of a step; of a kernel, those that it computes behind its picks and before its stores."""
    found: list[Scalar] = []
    _collect(held, found)
    return tuple(found)


def with_step_values(held: H, of: Callable[[Scalar], Scalar]) -> H:
    """A step or a kernel with what `of` gives for each scalar of `step_values`."""
    return cast(H, _with_scalars(held, of))


def values_of(kernel: Kernel) -> tuple[Scalar, ...]:
    """All scalars that a kernel computes at its top level: its picks, and what it folds, multiplies and stores. A library has none."""
    if isinstance(kernel, Library):
        return ()
    found = [pick.value for pick in kernel.picks]
    _collect(kernel, found)
    found += [store.value for store in stores_of(kernel)]
    return tuple(found)


def stores_of(kernel: Kernel) -> Stores:
    """The stores of a kernel (a library's results are not stores)."""
    if isinstance(kernel, Library):
        return ()
    found: list[Store] = []
    for name in kernel.store_fields:
        found += getattr(kernel, name)
    return tuple(found)


def with_stores(kernel: K, made: Callable[[Stores], Stores]) -> K:
    """`kernel` with what is `made` of its stores, of those together that are once for each of the same loops."""
    changed: dict[str, Any] = {name: made(getattr(kernel, name)) for name in kernel.store_fields}
    return replace(kernel, **changed)


def loops_of(kernel: Computed) -> tuple[Loop, ...]:
    """All loops of a kernel, the outer ones first."""
    found: list[Loop] = []
    for name in kernel.loop_fields:
        loops = getattr(kernel, name)
        found += (loops,) if isinstance(loops, Loop) else loops
    return tuple(found)


def extents_of(kernel: Computed) -> dict[str, Dim]:
    """How many values each symbol of the kernel takes: of its loops and its picks."""
    return {loop.name: loop.extent for loop in loops_of(kernel)} | {pick.name: pick.count for pick in kernel.picks}


def reads(kernel: Kernel) -> tuple[str, ...]:
    """The buffers that a kernel reads, each once, in order."""
    if isinstance(kernel, Library):
        return tuple(dict.fromkeys(name for name in kernel.operands if name is not None))
    return tuple(dict.fromkeys(value.buffer for value in scalars(*values_of(kernel)) if isinstance(value, Load)))


def writes(kernel: Kernel) -> tuple[str, ...]:
    """The buffers that a kernel writes, each once, in order."""
    if isinstance(kernel, Library):
        return kernel.results
    return tuple(dict.fromkeys(store.buffer for store in stores_of(kernel)))


def results_in(*values: Scalar) -> set[str]:
    """The names of the results of steps that scalars read."""
    return {value.name for value in scalars(*values) if isinstance(value, Result)}


def used_picks(picks: tuple[Pick, ...], values: Iterable[Scalar], dims: Iterable[Dim]) -> tuple[Pick, ...]:
    """Those of `picks` that the scalars or the dims mention, themselves or through other picks."""
    wanted = {name for dim in dims for name in symbols(dim)}
    wanted |= {name for value in scalars(*values) for dim in dims_in(value) for name in symbols(dim)}
    for pick in reversed(picks):
        if pick.name in wanted:
            wanted |= {name for value in scalars(pick.value) for dim in dims_in(value) for name in symbols(dim)}
    return tuple(pick for pick in picks if pick.name in wanted)
