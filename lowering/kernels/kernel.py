"""What a GPU kernel computes: loops over scalar expressions (`scalar`), which are read from buffers and stored into buffers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Union

from coset.ir.dims import Dim, Shape, floordiv, symbols
from coset.ir.term import Term
from coset.ir.types import DTYPES, DType
from coset.lowering.kernels.scalar import (
    Choose,
    InBounds,
    IndexValue,
    Load,
    Loop,
    Pick,
    Result,
    Scalar,
    ScalarConstant,
    ScalarOp,
    Store,
    dims_in,
    operands_of,
    scalars,
)

__all__ = [
    "Attention", "Buffer", "Chain", "Choose", "ColumnFold", "Computed", "Dot", "Grouped", "HeldTerm", "InBounds", "IndexValue", "Kernel",
    "Library", "Load", "Loop", "Pick", "Plan", "Pointwise", "Product", "Recurrence", "Result", "Rows", "Scalar", "ScalarConstant",
    "ScalarOp", "Scan", "Scatter", "Slope", "Sort", "State", "Statistics", "Store", "Sum", "dims_in", "extents_of", "loops_of",
    "operands_of", "reads", "scalars", "stores_by_sum", "stores_of", "used_picks", "values_of", "with_stores", "writes",
]  # fmt: skip


@dataclass(frozen=True)
class Buffer:
    """Memory of one tensor: row-major without gaps, unless `strides` (in elements) say otherwise, or `order`: its dims from the outermost
    in memory to the one whose elements are neighbours, without gaps.

    `role`: input, constant, output or temporary. A constant's `value` is the term that it is (read by reference, never copied).
    Elements below a byte have one each, unless they are `packed`: then neighbours along that dim share one, the first in its lowest bits.
    """

    name: str
    dtype: DType
    shape: Shape
    role: str
    strides: Shape | None = None
    value: Term | None = None
    packed: int | None = None
    order: tuple[int, ...] | None = None

    @property
    def sharing(self) -> int:
        """How many elements a byte has; 1 where elements are apart."""
        return 1 if self.packed is None else 8 // self.dtype.bits

    @property
    def held(self) -> DType:
        """The element type of the memory."""
        return self.dtype if self.packed is None else DTYPES["u8"]

    @property
    def extents(self) -> Shape:
        """The dims of the memory."""
        return tuple(floordiv(dim, self.sharing) if axis == self.packed else dim for axis, dim in enumerate(self.shape))


@dataclass(frozen=True)
class Pointwise:
    """One value for each index of `loops`, from memory to memory."""

    name: str
    loops: tuple[Loop, ...]
    stores: tuple[Store, ...]
    terms: tuple[str, ...] = ()  # the ops that it does, for the reader
    picks: tuple[Pick, ...] = ()


@dataclass(frozen=True)
class ColumnFold:
    """One reduction over the kernel's columns: the columns' `value`s folded by `combiner` (add multiply maximum minimum and or), in
    `dtype` (f32 for narrower floats). Later steps read it as `Result(name)`."""

    name: str
    combiner: str
    value: Scalar
    dtype: DType


@dataclass(frozen=True)
class Rows:
    """Reductions along `columns` for each index of `rows`, one after the other (each may use those before it).

    `row_stores` are once a row, `element_stores` for each row and column (softmax, normalizations).
    """

    name: str
    rows: tuple[Loop, ...]
    columns: tuple[Loop, ...]
    folds: tuple[ColumnFold, ...]
    row_stores: tuple[Store, ...]
    element_stores: tuple[Store, ...]
    terms: tuple[str, ...] = ()
    picks: tuple[Pick, ...] = ()


@dataclass(frozen=True)
class Scan:
    """For each index of `rows` the `value`s along `column`, folded from the first to each by `combiner` in `dtype` (f32 for narrower
    floats); the stores read them as `Result("scan")`."""

    name: str
    rows: tuple[Loop, ...]
    column: Loop
    value: Scalar
    combiner: str
    dtype: DType
    stores: tuple[Store, ...]
    terms: tuple[str, ...] = ()
    picks: tuple[Pick, ...] = ()


@dataclass(frozen=True)
class Product:
    """Sums over `k` of lhs(batch, m, k) * rhs(batch, k, n), accumulated in `accumulator` (f32, f64 or i32), then stored by `stores`,
    which read it as `Result("sum")`. Operands are scalars: a prologue (cast, scale, transpose) is part of them. `windowed`: it is a
    convolution, whose lhs is read in windows."""

    name: str
    batch: tuple[Loop, ...]
    m: tuple[Loop, ...]
    n: tuple[Loop, ...]
    k: tuple[Loop, ...]
    lhs: Scalar
    rhs: Scalar
    accumulator: DType
    stores: tuple[Store, ...]
    terms: tuple[str, ...] = ()
    picks: tuple[Pick, ...] = ()
    windowed: bool = False


@dataclass(frozen=True)
class Sort:
    """For each index of `rows` the elements along `column` in the order of their `key`s (LT: ascending, GT: descending, equal ones as they
    stand; LE and GE turn equal ones round), the first ones over `front`. NaN is above all numbers and zeros are equal, unless `total`: then
    floats have IEEE's total order. The stores read the `values` as `Result("sorted0")`, `Result("sorted1")`, ..
    """

    name: str
    rows: tuple[Loop, ...]
    column: Loop
    front: tuple[Loop, ...]  # one at most
    key: Scalar
    values: tuple[Scalar, ...]
    direction: str
    total: bool
    stores: tuple[Store, ...]
    terms: tuple[str, ...] = ()
    picks: tuple[Pick, ...] = ()


@dataclass(frozen=True)
class Grouped:
    """Sums over `k` of lhs(m, k) * rhs(batch, k, n), where the index over `batch`, of groups, is the `key` of the row m; otherwise as
    `Product`. The keys ascend, and each is the number of a group."""

    name: str
    batch: tuple[Loop, ...]  # one at most
    m: tuple[Loop, ...]
    n: tuple[Loop, ...]
    k: tuple[Loop, ...]
    key: Scalar  # i32, over m
    lhs: Scalar
    rhs: Scalar
    accumulator: DType
    stores: tuple[Store, ...]
    terms: tuple[str, ...] = ()
    picks: tuple[Pick, ...] = ()


@dataclass(frozen=True)
class Attention:
    """Means of value(batch, keys, n) over `keys`, weighed by the softmax over the keys of score(batch, m, keys), then stored by `stores`,
    which read them as `Result("sum")`. The score reads as `Result("dot")`, in `dtype`, the sums over `k` of
    query(batch, m, k) * key(batch, keys, k). Everything is summed in `accumulator` (f32 or f64).

    `safe`: where every score is -inf the weights are 0, else NaN. `seen`: only keys below this dim over `m` have a score above -inf (a
    causal mask), so that the values of others need not be read; None: all may."""

    name: str
    batch: tuple[Loop, ...]
    m: tuple[Loop, ...]
    n: tuple[Loop, ...]
    keys: tuple[Loop, ...]
    k: tuple[Loop, ...]
    query: Scalar
    key: Scalar
    score: Scalar
    value: Scalar
    dtype: DType
    accumulator: DType
    safe: bool
    seen: Dim | None
    stores: tuple[Store, ...]
    terms: tuple[str, ...] = ()
    picks: tuple[Pick, ...] = ()


@dataclass(frozen=True)
class Dot:
    """Sums over `k` of lhs(batch, rows, k) * rhs(batch, summed, k), which scalars of the kernel read as `Result(name)`, in `dtype`."""

    name: str
    k: tuple[Loop, ...]
    lhs: Scalar
    rhs: Scalar
    dtype: DType


@dataclass(frozen=True)
class Sum:
    """Sums over `summed` of weight(batch, rows, summed) * value(batch, summed, n), which stores read as `Result(name)`."""

    name: str
    n: tuple[Loop, ...]
    weight: Scalar
    value: Scalar


@dataclass(frozen=True)
class Slope:
    """Sums over `summed` of a softmax times value(batch, rows, summed), which stores read as `Result(name)`."""

    name: str
    value: Scalar


@dataclass(frozen=True)
class Statistics:
    """What a softmax over `summed` of score(batch, rows, summed) is made with, for each (batch, rows): `Result("top")`, the largest score,
    `Result("share")`, one over the sum of exp(score - top), and each of `slopes`. Scores and slopes read the `dots`.

    `safe`: where every score is -inf the top is 0 and the share 1. `low` and `high`, dims over batch and rows: only places low <= i < high
    of the last loop of `summed` have a score above -inf, so that no others need be looked at; None: no such end is known."""

    name: str
    batch: tuple[Loop, ...]
    rows: tuple[Loop, ...]
    summed: tuple[Loop, ...]
    dots: tuple[Dot, ...]
    score: Scalar
    slopes: tuple[Slope, ...]
    accumulator: DType
    safe: bool
    low: Dim | None
    high: Dim | None
    stores: tuple[Store, ...]
    terms: tuple[str, ...] = ()
    picks: tuple[Pick, ...] = ()


@dataclass(frozen=True)
class Chain:
    """Products of what is made of products: each of `sums` has a weight that is a scalar of the `dots`, and none of them is stored.

    `low` and `high` as in `Statistics`: all weights are 0 elsewhere."""

    name: str
    batch: tuple[Loop, ...]
    rows: tuple[Loop, ...]
    summed: tuple[Loop, ...]
    dots: tuple[Dot, ...]
    sums: tuple[Sum, ...]
    accumulator: DType
    low: Dim | None
    high: Dim | None
    stores: tuple[Store, ...]
    terms: tuple[str, ...] = ()
    picks: tuple[Pick, ...] = ()


@dataclass(frozen=True)
class Scatter:
    """For each index of `rows` and `columns` the `base`, with the `value` of each index of `updates` whose `key` is the number of the row
    combined in, from the first to the last, in `dtype` (f32 for narrower floats); the stores read it as `Result("sum")`. An update
    whose key is no row's number is left out.

    `form`: `sorted` (keys ascend, so that a row's updates are found by bisection), `loop` (every update is looked at for every row),
    `atomic` (the base is stored first and each update is combined into memory, in no order: there is one store, of the result alone).
    """

    name: str
    rows: tuple[Loop, ...]  # one at most
    columns: tuple[Loop, ...]
    updates: tuple[Loop, ...]  # one at most
    base: Scalar
    key: Scalar  # i32 or i64
    value: Scalar
    combiner: str  # as a fold's, or second: the last one stays
    dtype: DType
    form: str
    stores: tuple[Store, ...]
    terms: tuple[str, ...] = ()
    picks: tuple[Pick, ...] = ()


@dataclass(frozen=True)
class State:
    """A value that goes from round to round, in `dtype`: `start` before the first round, then `next`, of the values before the round. The
    scalars of a round, and the stores behind the last, read it as `Result(name)`. `wide`: there is one for each row and column, else for
    each row."""

    name: str
    start: Scalar
    next: Scalar
    dtype: DType
    wide: bool


@dataclass(frozen=True)
class Recurrence:
    """For each index of `rows` the rounds `round`, one after the other: the `steps` in order, then `round_stores`, then all `states` at
    once; `last_stores` behind the last round.

    A step is a fold along `columns`, or a product: the sum over its `k` of lhs(rows, columns) * rhs(k, columns), where k stands in the
    place of the columns of lhs. Products have one loop of columns. Stores are of each row, or of each row and column."""

    name: str
    rows: tuple[Loop, ...]
    columns: tuple[Loop, ...]
    round: Loop
    states: tuple[State, ...]
    steps: tuple[ColumnFold | Dot, ...]
    round_stores: tuple[Store, ...]
    last_stores: tuple[Store, ...]
    terms: tuple[str, ...] = ()
    picks: tuple[Pick, ...] = ()

    @property
    def dots(self) -> tuple[Dot, ...]:
        """The steps that are products."""
        return tuple(step for step in self.steps if isinstance(step, Dot))

    @property
    def depth(self) -> tuple[Loop, ...]:
        """The loop that products sum over; none without products."""
        return self.dots[0].k if self.dots else ()


@dataclass(frozen=True)
class Library:
    """One hub term that a library computes (convolution, sort, gather, scatter, fft ..): operands and results are whole buffers, operands
    perhaps in another shape."""

    name: str
    term: Term  # its operands are `builtin.parameter` terms, one for each of `operands`; those not given are absent
    operands: tuple[str | None, ...]  # buffers; None: an operand that is not given
    results: tuple[str, ...]
    terms: tuple[str, ...] = ()


Computed = Union[Pointwise, Rows, Scan, Sort, Product, Grouped, Attention, Statistics, Chain, Scatter, Recurrence]  # by scalar expressions
Kernel = Union[Computed, Library]


@dataclass(frozen=True)
class HeldTerm:
    """A term that a buffer holds: as the whole, or in the box from `low` to before `high`, whose dims in the order `axes` are the term's
    elements in row-major order."""

    term: Term
    buffer: str
    low: Shape
    high: Shape
    axes: tuple[int, ...]


@dataclass(frozen=True)
class StreamPlan:
    """How kernels run beside each other: by the place of each, the stream that it is launched on (0 is the caller's), and the kernels of
    other streams that it waits for. Those of one stream run one after the other."""

    of: tuple[int, ...]
    waits: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Plan:
    """A program as kernels in launch order over buffers.

    `inputs` and `outputs` name buffers in the program's order (an output may be an input's or a constant's buffer). `symbols` are the
    program's dim symbols with the (buffer, axis) that each is read from: an input, or a library's result that brings a new symbol.
    `apart` says why neighbours did not share a kernel: (earlier kernel, later kernel, reason). `offsets` place the temporaries of
    static shape in one arena of `arena` bytes; `memory.shared` says which of the others may share memory. Where the plan `frees`, there is
    no arena: each temporary is new when it is first written and gone after its last use, and one of `over` has the memory of the other.
    `streams` says which kernels may run beside each other; None: each waits for the one before it. `held` are the terms that kernels
    store, so that what each makes can be compared with its meaning.
    """

    buffers: dict[str, Buffer]
    kernels: tuple[Kernel, ...]
    inputs: tuple[tuple[str, str], ...]  # (name in the program, buffer)
    outputs: tuple[tuple[str, str], ...]
    symbols: dict[str, tuple[str, int]] = field(default_factory=dict)
    apart: tuple[tuple[str, str, str], ...] = ()
    offsets: dict[str, int] = field(default_factory=dict)
    arena: int = 0
    frees: bool = False
    over: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    streams: StreamPlan | None = None
    held: tuple[HeldTerm, ...] = ()


def stores_of(kernel: Kernel) -> tuple[Store, ...]:
    """The stores of a kernel (a library's results are not stores)."""
    if isinstance(kernel, Rows):
        return (*kernel.row_stores, *kernel.element_stores)
    if isinstance(kernel, Recurrence):
        return (*kernel.round_stores, *kernel.last_stores)
    return () if isinstance(kernel, Library) else kernel.stores


def with_stores(kernel: Computed, made: Callable[[tuple[Store, ...]], tuple[Store, ...]]) -> Computed:
    """`kernel` with what is `made` of its stores, of those together that are once for each of the same loops."""
    if isinstance(kernel, Rows):
        return replace(kernel, row_stores=made(kernel.row_stores), element_stores=made(kernel.element_stores))
    if isinstance(kernel, Recurrence):
        return replace(kernel, round_stores=made(kernel.round_stores), last_stores=made(kernel.last_stores))
    return replace(kernel, stores=made(kernel.stores))


def stores_by_sum(kernel: Chain) -> list[tuple[Store, Sum]]:
    """Each store of a chain with the sum that it reads: one, as sums have columns of their own."""
    found = []
    for store in kernel.stores:
        names = {item.name for item in scalars(store.value) if isinstance(item, Result)}
        found += [(store, each) for each in kernel.sums if each.name in names]
    assert len(found) == len(kernel.stores), f"{kernel.name} stores what is not one of its sums"
    return found


def values_of(kernel: Kernel) -> tuple[Scalar, ...]:
    """All scalars that a kernel computes at its top level: its picks, and what it folds, multiplies and stores."""
    if isinstance(kernel, Library):
        return ()
    picked = tuple(pick.value for pick in kernel.picks)
    stored = tuple(store.value for store in stores_of(kernel))
    if isinstance(kernel, Rows):
        return (*picked, *(fold.value for fold in kernel.folds), *stored)
    if isinstance(kernel, Scan):
        return (*picked, kernel.value, *stored)
    if isinstance(kernel, Recurrence):
        steps = [side for step in kernel.steps for side in ((step.value,) if isinstance(step, ColumnFold) else (step.lhs, step.rhs))]
        return (*picked, *steps, *(side for state in kernel.states for side in (state.start, state.next)), *stored)
    if isinstance(kernel, Sort):
        return (*picked, kernel.key, *kernel.values, *stored)
    if isinstance(kernel, Scatter):
        return (*picked, kernel.base, kernel.key, kernel.value, *stored)
    if isinstance(kernel, Grouped):
        return (*picked, kernel.key, kernel.lhs, kernel.rhs, *stored)
    if isinstance(kernel, Attention):
        return (*picked, kernel.query, kernel.key, kernel.score, kernel.value, *stored)
    if isinstance(kernel, Statistics | Chain):
        sides = [side for dot in kernel.dots for side in (dot.lhs, dot.rhs)]
        if isinstance(kernel, Statistics):
            return (*picked, *sides, kernel.score, *(slope.value for slope in kernel.slopes), *stored)
        return (*picked, *sides, *(side for sum_ in kernel.sums for side in (sum_.weight, sum_.value)), *stored)
    return (*picked, kernel.lhs, kernel.rhs, *stored) if isinstance(kernel, Product) else (*picked, *stored)


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


def loops_of(kernel: Computed) -> tuple[Loop, ...]:
    """All loops of a kernel, the outer ones first."""
    if isinstance(kernel, Pointwise):
        return kernel.loops
    if isinstance(kernel, Rows):
        return (*kernel.rows, *kernel.columns)
    if isinstance(kernel, Scan):
        return (*kernel.rows, kernel.column)
    if isinstance(kernel, Recurrence):
        return (kernel.round, *kernel.rows, *kernel.columns, *kernel.depth)
    if isinstance(kernel, Sort):
        return (*kernel.rows, *kernel.front, kernel.column)
    if isinstance(kernel, Scatter):
        return (*kernel.rows, *kernel.columns, *kernel.updates)
    if isinstance(kernel, Statistics | Chain):
        columns = [loop for sum_ in kernel.sums for loop in sum_.n] if isinstance(kernel, Chain) else []
        return (*kernel.batch, *kernel.rows, *columns, *kernel.summed, *(loop for dot in kernel.dots for loop in dot.k))
    inner = (*kernel.keys, *kernel.k) if isinstance(kernel, Attention) else kernel.k
    return (*kernel.batch, *kernel.m, *kernel.n, *inner)


def extents_of(kernel: Computed) -> dict[str, Dim]:
    """How many values each symbol of the kernel takes: of its loops and its picks."""
    return {loop.name: loop.extent for loop in loops_of(kernel)} | {pick.name: pick.count for pick in kernel.picks}


def used_picks(picks: tuple[Pick, ...], values: Iterable[Scalar], dims: Iterable[Dim]) -> tuple[Pick, ...]:
    """Those of `picks` that the scalars or the dims mention, themselves or through other picks."""
    wanted = {name for dim in dims for name in symbols(dim)}
    wanted |= {name for value in scalars(*values) for dim in dims_in(value) for name in symbols(dim)}
    for pick in reversed(picks):
        if pick.name in wanted:
            wanted |= {name for value in scalars(pick.value) for dim in dims_in(value) for name in symbols(dim)}
    return tuple(pick for pick in picks if pick.name in wanted)
