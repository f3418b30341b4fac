"""Plans executed literally in NumPy: every kernel from its scalar expressions, vectorised over its loops. For tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from coset.dialects.hub.scalars import cast, narrow, widen
from coset.dialects.hub.scattering import combined
from coset.dialects.hub.sorting import _ordered
from coset.dialects.hub.tensors import _FOLDS, identity
from coset.ir.dims import Dim, evaluate, symbols
from coset.ir.evaluate import evaluate as evaluate_terms
from coset.ir.term import input_term, intern, rebuild
from coset.ir.types import DType, TensorType
from coset.lowering.kernels.kernel import (
    Attention,
    Chain,
    Choose,
    ColumnFold,
    Computed,
    Dot,
    Grouped,
    InBounds,
    IndexValue,
    Library,
    Load,
    Loop,
    Plan,
    Pointwise,
    Product,
    Recurrence,
    Result,
    Rows,
    Scalar,
    ScalarConstant,
    Scan,
    Scatter,
    Sort,
    Statistics,
    Store,
    loops_of,
    operands_of,
    scalars,
    stores_by_sum,
    stores_of,
)
from coset.lowering.kernels.memory import released
from coset.rules.definition import evaluate_defined

Array = np.ndarray[Any, Any]
POISON = 0xA7


def run(plan: Plan, inputs: Mapping[str, Array], *, before: Callable[[Any, _Run], None] | None = None) -> dict[str, Array]:
    """The outputs of `plan` by name. Buffers are poisoned, and each element must be stored exactly once, by one kernel or by several that
    store parts; temporaries are overwritten after their last use is over only if the arena says so (`check_arena` tests that), or gone
    where the plan lets go of them; one that has the memory of another is the same array. `before`: called with each kernel that is no
    library's and what it finds, before it runs."""
    memory: dict[str, Array] = {}
    for name, buffer in plan.inputs:
        memory[buffer] = np.asarray(inputs[name])
    for buffer_ in plan.buffers.values():
        if buffer_.role == "constant":
            assert buffer_.value is not None
            memory[buffer_.name] = buffer_.value.attribute("value").array()
    binding: dict[str, int] = {}
    bind(plan, memory, binding)
    gone = released(plan)
    stored: dict[str, Array] = {}
    for place, kernel in enumerate(plan.kernels):
        for name in gone.get(place - 1, ()):
            del memory[name]
        if isinstance(kernel, Library):
            names = [None if name is None else memory[name] for name in kernel.operands]
            types = [operand.type for operand in kernel.term.operands]
            terms = [input_term(f"x{i}", type) if isinstance(type, TensorType) else kernel.term.operands[i] for i, type in enumerate(types)]
            values = {
                f"x{i}": value.reshape([evaluate(dim, binding) for dim in kernel.term.operands[i].tensor.dims])
                for i, value in enumerate(names)
                if value is not None
            }
            (found,) = evaluate_terms([rebuild(kernel.term, terms)], values, fallback=evaluate_defined, binding=binding)
            results = [x for x in (found if isinstance(found, tuple) else (found,)) if x is not None]
            memory.update(zip(kernel.results, results, strict=True))
            bind(plan, memory, binding)
        else:
            at = _Run(plan, memory, binding, stored)
            if before is not None:
                before(kernel, at)
            at.kernel(kernel)
    for name, count in stored.items():
        assert np.all(count == 1), f"{name}: {int((count == 0).sum())} elements were never stored"
    return {name: memory[buffer] for name, buffer in plan.outputs}


def poisoned(shape: tuple[int, ...], dtype: DType) -> Array:
    """An array of bytes that mean nothing."""
    count = int(np.prod(shape, dtype=int)) * dtype.numpy.itemsize
    return np.full(count, POISON, np.uint8).view(dtype.numpy).reshape(shape)


def bind(plan: Plan, memory: Mapping[str, Array], binding: dict[str, int]) -> None:
    for name, (buffer, axis) in plan.symbols.items():
        if buffer in memory:
            binding.setdefault(name, memory[buffer].shape[axis])


class _Run:
    """One kernel: each loop is an axis of every array."""

    def __init__(self, plan: Plan, memory: dict[str, Array], binding: Mapping[str, int], stored: dict[str, Array] | None = None) -> None:
        """`stored`: how often each element of what kernels write was stored so far."""
        self.plan, self.memory, self.binding = plan, memory, binding
        self.stored = {} if stored is None else stored
        self.makers = Counter(store.buffer for kernel in plan.kernels for store in stores_of(kernel))

    def kernel(self, kernel: Computed) -> None:
        self.picks = {pick.name: pick.value for pick in kernel.picks}
        RUNNING[type(kernel)](self, kernel)

    def _pointwise(self, kernel: Pointwise) -> None:
        self._begin(kernel.loops)
        self._stores(kernel.stores)

    def _rows(self, kernel: Rows) -> None:
        self._begin((*kernel.rows, *kernel.columns))
        columns = tuple(range(len(kernel.rows), len(self.loops)))
        for fold in kernel.folds:
            value = np.broadcast_to(cast(self.value(fold.value), fold.dtype), self.shape)
            wide = widen(value)
            wide = wide.astype(np.float64) if fold.dtype.kind == "float" and fold.combiner in ("add", "multiply") else wide
            with np.errstate(all="ignore"):
                start = widen(identity(fold.combiner, fold.dtype))[()]
                folded = _FOLDS[fold.combiner].reduce(wide, axis=columns, initial=start, dtype=wide.dtype, keepdims=True)
            self.results[fold.name] = narrow(np.asarray(folded), fold.dtype)
        self._stores(kernel.row_stores, rows=len(kernel.rows))
        self._stores(kernel.element_stores)

    def _scan(self, kernel: Scan) -> None:
        self._begin((*kernel.rows, kernel.column))
        value = widen(np.broadcast_to(cast(self.value(kernel.value), kernel.dtype), self.shape))
        value = value.astype(np.float64) if kernel.dtype.kind == "float" and kernel.combiner in ("add", "multiply") else value
        with np.errstate(all="ignore"):
            self.results["scan"] = narrow(_FOLDS[kernel.combiner].accumulate(value, axis=-1, dtype=value.dtype), kernel.dtype)
        self._stores(kernel.stores)

    def _sort(self, kernel: Sort) -> None:
        self._begin((*kernel.rows, *kernel.front, kernel.column))
        axis, shape = len(kernel.rows), self.shape
        lines = [np.broadcast_to(self.value(value), (*shape[:axis], *(1 for _ in kernel.front), shape[-1])) for value in kernel.values]
        key = np.broadcast_to(self.value(kernel.key), lines[0].shape)
        order = _ordered(key, kernel.direction, total=kernel.total)[..., : int(np.prod(shape[axis:-1], dtype=int))]
        for place, line in enumerate(lines):
            taken = np.take_along_axis(line, order, -1)
            self.results[f"sorted{place}"] = taken.reshape(*shape[:-1], 1)
        self.values.clear()
        self._stores(kernel.stores, rows=len(shape) - 1)

    def _multiplied(self, kernel: Product) -> None:
        outer = (*kernel.batch, *kernel.m, *kernel.n)
        self._begin((*outer, *kernel.k))
        first, second = len(kernel.batch), len(kernel.batch) + len(kernel.m)
        lhs, rhs = (self._wide(side, kernel.accumulator) for side in (kernel.lhs, kernel.rhs))
        _unmoved(lhs, range(second, len(outer)))
        _unmoved(rhs, range(first, second))
        self.results["sum"] = narrow(self._product(lhs, rhs, first, second, len(outer)), kernel.accumulator)
        self.values.clear()
        self._stores(kernel.stores, rows=len(outer))

    def _attention(self, kernel: Attention) -> None:
        """The scores as a whole, in f64."""
        self._last = self._extent(kernel.keys)
        self._begin(loops_of(kernel))
        batch, rows, keys = kernel.batch, kernel.m, kernel.keys
        with np.errstate(all="ignore"):
            both = ((kernel.query, rows), (kernel.key, keys))
            sides = (self._matrix(side, batch, own, kernel.k, kernel.accumulator) for side, own in both)
            self.results["dot"] = self._back(_product(*sides), batch, rows, keys, kernel.dtype)
            scores = self._matrix(kernel.score, batch, rows, keys, kernel.accumulator)
            weights, _, _ = _softmax(scores, kernel.safe)
            value = self._matrix(kernel.value, batch, keys, kernel.n, kernel.accumulator)
            if kernel.seen is not None:  # what is not seen is not read
                self._unseen(weights, None, kernel.seen, batch, rows)
            self.results["sum"] = self._back(np.matmul(weights, value), batch, rows, kernel.n, kernel.accumulator)
        self.values.clear()
        self._stores(kernel.stores, own=(*batch, *rows, *kernel.n))

    def _retraced(self, kernel: Statistics | Chain) -> None:
        """The products as wholes, in f64."""
        self._last = self._extent(kernel.summed)
        self._begin(loops_of(kernel))
        batch, rows, summed, accumulator = kernel.batch, kernel.rows, kernel.summed, kernel.accumulator
        with np.errstate(all="ignore"):
            for dot in kernel.dots:
                sides = (self._matrix(side, batch, own, dot.k, accumulator) for side, own in ((dot.lhs, rows), (dot.rhs, summed)))
                self.results[dot.name] = self._back(_product(*sides), batch, rows, summed, dot.dtype)
            if isinstance(kernel, Statistics):
                weights, top, share = _softmax(self._matrix(kernel.score, batch, rows, summed, accumulator), kernel.safe)
                found = {"top": top, "share": share}
                for slope in kernel.slopes:
                    reached = self._matrix(slope.value, batch, rows, summed, accumulator)
                    found[slope.name] = (weights * reached).sum(axis=2, keepdims=True)
                self._unseen(weights, kernel.low, kernel.high, batch, rows)
                self.results |= {name: self._back(value, batch, rows, (), accumulator) for name, value in found.items()}
                self.values.clear()
                return self._stores(kernel.stores, own=(*batch, *rows))
            for each in kernel.sums:
                weights = self._matrix(each.weight, batch, rows, summed, accumulator)
                value = self._matrix(each.value, batch, summed, each.n, accumulator)
                self._unseen(weights, kernel.low, kernel.high, batch, rows)
                self.results[each.name] = self._back(np.matmul(weights, value), batch, rows, each.n, accumulator)
            self.values.clear()
            for store, each in stores_by_sum(kernel):
                self._stores([store], own=(*batch, *rows, *each.n))
        return None

    def _matrix(self, value: Scalar, batch: Sequence[Loop], rows: Sequence[Loop], columns: Sequence[Loop], dtype: DType) -> Array:
        """A value over these loops as matrices, in f64."""
        axes = [[self.loops.index(loop) for loop in group] for group in (batch, rows, columns)]
        own = [axis for group in axes for axis in group]
        found = self._wide(value, dtype)
        assert all(size == 1 for axis, size in enumerate(found.shape) if axis not in own)
        whole = np.broadcast_to(found, [size if axis in own else 1 for axis, size in enumerate(self.shape)])
        order = [*own, *(axis for axis in range(len(self.shape)) if axis not in own)]
        return whole.transpose(order).reshape([int(np.prod([self.shape[axis] for axis in group])) for group in axes])

    def _back(self, value: Array, batch: Sequence[Loop], rows: Sequence[Loop], columns: Sequence[Loop], dtype: DType) -> Array:
        """Matrices over these loops as a value, rounded to `dtype`."""
        own = [self.loops.index(loop) for loop in (*batch, *rows, *columns)]
        rest = len(self.shape) - len(own)
        inverse = np.argsort([*own, *(axis for axis in range(len(self.shape)) if axis not in own)])
        return narrow(value.reshape([*(self.shape[axis] for axis in own), *[1] * rest]).transpose(inverse), dtype)

    def _unseen(self, weights: Array, low: Dim | None, high: Dim | None, batch: Sequence[Loop], rows: Sequence[Loop]) -> None:
        """See that what is said to have no weight has none: of the last loop of what is summed."""
        own = [self.loops.index(loop) for loop in (*batch, *rows)]
        last = 1 if not weights.shape[2] else self._last
        place = np.arange(weights.shape[2]) % last
        for end, outside in ((low, np.less), (high, np.greater_equal)):
            if end is not None:
                ends = np.broadcast_to(self.dim(end), [size if axis in own else 1 for axis, size in enumerate(self.shape)])
                hidden = outside(place, ends.reshape(*weights.shape[:2], 1))
                assert not ((np.abs(weights) > 0) & hidden).any(), "what is said to be unseen has a weight"

    def _recurrence(self, kernel: Recurrence) -> None:
        """Round by round; folds and products in f64. Each round stores some elements, all together each once."""
        self._begin(loops_of(kernel))
        rounds, first = self.shape[0], 1 + len(kernel.rows)
        self.index[kernel.round.name] = np.zeros((1,) * len(self.shape), np.int64)
        shape = (1, *self.shape[1 : first + len(kernel.columns)], *(1 for _ in kernel.depth))
        narrow_shape = (*shape[:first], *(1,) * (len(shape) - first))
        states = {s.name: np.broadcast_to(cast(self.value(s.start), s.dtype), shape if s.wide else narrow_shape) for s in kernel.states}
        pieces: list[list[tuple[Store, tuple[Array, ...], Array]]] = []
        for at in range(rounds):
            self.index[kernel.round.name] = np.full((1,) * len(self.shape), at)
            self.values.clear()
            self.results = dict(states)
            for step in kernel.steps:
                self.results[step.name] = self._fold(step, shape, first) if isinstance(step, ColumnFold) else self._dot(step, shape, first)
            pieces.append([self._piece(store, kernel, shape, narrow_shape) for store in kernel.round_stores])
            new = {s.name: np.broadcast_to(cast(self.value(s.next), s.dtype), shape if s.wide else narrow_shape) for s in kernel.states}
            states = new
        self.values.clear()
        self.results = dict(states)
        pieces.append([self._piece(store, kernel, shape, narrow_shape) for store in kernel.last_stores])
        for store in (*kernel.round_stores, *kernel.last_stores):
            buffer = self.plan.buffers[store.buffer]
            result = np.zeros([evaluate(dim, self.binding) for dim in buffer.shape], buffer.dtype.numpy)
            count = np.zeros(result.shape, np.int64)
            for each, place, value in (piece for row in pieces for piece in row):
                if each is store:
                    assert value.dtype == buffer.dtype.numpy
                    if store.index:
                        result[place] = value
                        np.add.at(count, place, 1)
                    else:
                        result[()], count[()] = value.reshape(()), count + value.size
            assert np.all(count == 1), f"{store.buffer}: elements are stored {count.min()} to {count.max()} times"
            self.memory[store.buffer] = result

    def _piece(self, store: Store, kernel: Recurrence, shape: tuple[int, ...], narrow_shape: tuple[int, ...]) -> Any:
        """What a store stores of this round, and where."""
        names = {name for dim in store.index for name in symbols(dim)}
        whole = shape if names & {loop.name for loop in kernel.columns} else narrow_shape
        place = tuple(np.broadcast_to(self.dim(dim), whole) for dim in store.index)
        return store, place, np.broadcast_to(self.value(store.value), whole)

    def _fold(self, fold: ColumnFold, shape: tuple[int, ...], first: int) -> Array:
        value = widen(np.broadcast_to(cast(self.value(fold.value), fold.dtype), shape))
        value = value.astype(np.float64) if fold.dtype.kind == "float" and fold.combiner in ("add", "multiply") else value
        with np.errstate(all="ignore"):
            start = widen(identity(fold.combiner, fold.dtype))[()]
            axes = tuple(range(first, len(shape)))
            folded = _FOLDS[fold.combiner].reduce(value, axis=axes, initial=start, dtype=value.dtype, keepdims=True)
        return narrow(np.asarray(folded), fold.dtype)

    def _dot(self, dot: Dot, shape: tuple[int, ...], first: int) -> Array:
        """lhs [rows, depth] by rhs [columns, depth], as their loops stand."""
        size = shape[first]
        lhs = np.broadcast_to(self._wide(dot.lhs, dot.dtype), shape).reshape(-1, size)
        rhs = np.broadcast_to(self._wide(dot.rhs, dot.dtype), (*(1,) * first, size, size)).reshape(size, size)
        with np.errstate(all="ignore"):
            return narrow((lhs @ rhs.T).reshape(shape), dot.dtype)

    def _scatter(self, kernel: Scatter) -> None:
        """By the hub's own meaning, over rows and columns as two dims."""
        groups = (kernel.rows, kernel.columns, kernel.updates)
        self._begin([loop for group in groups for loop in group])
        rows, columns, updates = (self.shape[a:b] for a, b in pairwise(np.cumsum([0, *map(len, groups)]).tolist()))

        def table(value: Scalar, shape: tuple[int, ...], dtype: DType) -> Array:
            return np.array(np.broadcast_to(cast(self.value(value), dtype), shape))

        none = (1,) * len(updates)
        base = table(kernel.base, (*rows, *columns, *none), kernel.dtype)
        key = table(kernel.key, (*(1,) * len(rows), *(1,) * len(columns), *updates), kernel.key.dtype).reshape(-1).astype(np.int64)
        if kernel.form == "sorted":
            assert np.all(key[1:] >= key[:-1]), "keys that are said to ascend do not"
        value = table(kernel.value, (*(1,) * len(rows), *columns, *updates), kernel.dtype)
        value = np.moveaxis(value.reshape(int(np.prod(columns, dtype=int)), key.size), 0, 1)
        height, width = int(np.prod(rows, dtype=int)), value.shape[1]
        hit = (key >= 0) & (key < height)
        flat = key[hit][:, None] * width + np.arange(width)
        (found,) = combined([base.reshape(height, width)], flat.reshape(-1), [value[hit].reshape(-1)], kernel.combiner, None)
        self.results["sum"] = found.reshape(base.shape)
        self.values.clear()
        self._stores(kernel.stores, rows=len(rows) + len(columns))

    def _grouped(self, kernel: Grouped) -> None:
        groups = (kernel.m, kernel.n, kernel.batch, kernel.k)
        self._begin([loop for group in groups for loop in group])
        sizes = [int(np.prod([evaluate(loop.extent, self.binding) for loop in group], dtype=int)) for group in groups]
        ends = np.cumsum([0, *map(len, groups)]).tolist()
        m, n, each, k = ([i in range(a, b) for i in range(len(self.shape))] for a, b in pairwise(ends))

        def matrix(value: Array, *own: list[bool]) -> Array:
            shape = [size if any(kind[i] for kind in own) else 1 for i, size in enumerate(self.shape)]
            return np.broadcast_to(value, shape)

        key = matrix(self._wide(kernel.key, kernel.key.dtype), m).reshape(-1).astype(int)
        assert np.all(np.diff(key) >= 0) and (not key.size or (key[0] >= 0 and key[-1] < sizes[2])), "groups are not in order"
        lhs = matrix(self._wide(kernel.lhs, kernel.accumulator), m, k).reshape(sizes[0], sizes[3])
        rhs = matrix(self._wide(kernel.rhs, kernel.accumulator), n, each, k).reshape(sizes[1], sizes[2], sizes[3])
        with np.errstate(all="ignore"):
            total = np.einsum("mk,nmk->mn", lhs, rhs[:, key])
        last = len(kernel.m) + len(kernel.n)
        self.results["sum"] = narrow(total, kernel.accumulator).reshape([*self.shape[:last], *[1] * (len(self.shape) - last)])
        self.values.clear()
        self._stores(kernel.stores, rows=last)

    def _wide(self, value: Scalar, dtype: DType) -> Array:
        found = cast(self.value(value), dtype)
        return found.astype(np.float64 if dtype.kind == "float" else np.int64).reshape((1,) * (len(self.loops) - found.ndim) + found.shape)

    def _product(self, lhs: Array, rhs: Array, first: int, second: int, last: int) -> Array:
        batch, m, n, k = self.shape[:first], self.shape[first:second], self.shape[second:last], self.shape[last:]
        lhs = np.broadcast_to(lhs, (*batch, *m, *(1,) * len(n), *k)).reshape([int(np.prod(s)) for s in (batch, m, k)])
        rhs = np.broadcast_to(rhs, (*batch, *(1,) * len(m), *n, *k)).reshape([int(np.prod(s)) for s in (batch, n, k)])
        with np.errstate(all="ignore"):
            return np.matmul(lhs, rhs.swapaxes(1, 2)).reshape((*batch, *m, *n, *(1,) * len(k)))

    def _extent(self, loops: Sequence[Loop]) -> int:
        return evaluate(loops[-1].extent, self.binding) if loops else 1

    def _begin(self, loops: Sequence[Loop]) -> None:
        self.loops = loops
        self.shape = tuple(evaluate(loop.extent, self.binding) for loop in loops)
        rank = len(loops)
        self.index = {
            loop.name: np.arange(count).reshape([-1 if place == i else 1 for i in range(rank)])
            for place, (loop, count) in enumerate(zip(loops, self.shape, strict=True))
        }
        self.results: dict[str, Array] = {}
        self.values: dict[int, tuple[Scalar, Array]] = {}

    # ------------------------------------------------------------ scalars

    def dim(self, dim: Dim) -> Array:
        """A dim over the loops as an array."""
        if isinstance(dim, int):
            return np.asarray(dim)
        total: Array = np.asarray(0)
        for monomial, coefficient in dim.terms:
            value: Array = np.asarray(coefficient)
            for atom in monomial:
                if atom.name in self.picks and not atom.args:
                    value = value * self.value(self.picks[atom.name]).astype(np.int64)
                elif not atom.args:
                    value = value * (self.index[atom.name] if atom.name in self.index else self.binding[atom.name])
                else:
                    a, b = map(self.dim, atom.args)
                    functions = {"floordiv": np.floor_divide, "mod": np.mod, "max": np.maximum, "min": np.minimum}
                    value = value * functions[atom.name](a, b)
            total = total + value
        return total

    def _holds(self, bounds: Sequence[InBounds]) -> Array:
        held: Array = np.asarray(True)
        for bound in bounds:
            place = self.dim(bound.index)
            held = held & (place >= self.dim(bound.low)) & (place < self.dim(bound.high))
        return held

    def value(self, scalar: Scalar) -> Array:
        """The value of a scalar for every index of the loops (broadcast)."""
        for item in scalars(scalar):
            if id(item) not in self.values:
                self.values[id(item)] = item, self._value(item)
        return self.values[id(scalar)][1]

    def _value(self, item: Scalar) -> Array:
        operands = [self.values[id(operand)][1] for operand in operands_of(item)]
        if isinstance(item, Load):
            return self._load(item)
        if isinstance(item, ScalarConstant):
            return cast(np.asarray(item.value), item.dtype)
        if isinstance(item, IndexValue):
            return cast(self.dim(item.index), item.dtype)
        if isinstance(item, Result):
            return self.results[item.name]
        if isinstance(item, Choose):
            inside, outside = operands
            return np.where(self._holds(item.bounds), inside, outside)
        types = tuple(input_term(f"x{i}", TensorType(o.dtype, ())) for i, o in enumerate(item.operands))
        alone = intern(item.op, types, item.attributes, (), TensorType(item.dtype, ()))
        assert item.op.meaning is not None
        return np.asarray(item.op.meaning(alone, operands, {}))

    def _load(self, item: Load) -> Array:
        memory = self.memory[item.buffer]
        index = [np.clip(self.dim(dim), 0, max(size - 1, 0)) for dim, size in zip(item.index, memory.shape, strict=True)]
        if 0 in memory.shape:
            return np.zeros((), memory.dtype)
        return np.asarray(memory[tuple(index)])

    def _stores(self, stores: Sequence[Store], rows: int | None = None, own: Sequence[Loop] | None = None) -> None:
        for store in stores:
            buffer = self.plan.buffers[store.buffer]
            shape = tuple(evaluate(dim, self.binding) for dim in buffer.shape)
            whole = self.shape if rows is None else (*self.shape[:rows], *(1,) * (len(self.shape) - rows))
            if own is not None:
                whole = tuple(size if loop in own else 1 for loop, size in zip(self.loops, self.shape, strict=True))
            count = self.stored.setdefault(store.buffer, np.zeros(shape, np.int64))
            place = tuple(np.broadcast_to(self.dim(dim), whole) for dim in store.index)
            value = np.broadcast_to(self.value(store.value), whole)
            assert value.dtype == buffer.dtype.numpy, f"{store.buffer} is {buffer.dtype}, the value {value.dtype}"
            added = np.zeros(shape, np.int64)
            shared = self.makers[store.buffer] > 1
            result = np.array(self.memory[store.buffer]) if shared and store.buffer in self.memory else poisoned(shape, buffer.dtype)
            if not store.index:
                result[()], added[()] = value.reshape(()), value.size
            else:
                result[place] = value
                np.add.at(added, place, 1)
            count += added
            right = np.all(count <= 1) if shared else np.all(count == 1)
            assert right, f"{store.buffer}: elements are stored {count.min()} to {count.max()} times"
            self.memory[store.buffer] = result
            if store.buffer in self.plan.over:
                self.memory[self.plan.over[store.buffer]] = result


RUNNING: dict[type[Computed], Callable[[_Run, Any], None]] = {
    Pointwise: _Run._pointwise, Rows: _Run._rows, Scan: _Run._scan, Sort: _Run._sort, Product: _Run._multiplied, Grouped: _Run._grouped,
    Attention: _Run._attention, Statistics: _Run._retraced, Chain: _Run._retraced, Scatter: _Run._scatter, Recurrence: _Run._recurrence,
}  # fmt: skip


def _product(lhs: Array, rhs: Array) -> Array:
    return np.matmul(lhs, rhs.swapaxes(1, 2))


def _softmax(scores: Array, safe: bool) -> tuple[Array, Array, Array]:
    """The softmax of rows, what was taken off first, and one over the sum."""
    top = scores.max(axis=2, keepdims=True, initial=-np.inf)
    if safe:
        top = np.where(top == -np.inf, 0.0, top)
    powers = np.exp(scores - top)
    total = powers.sum(axis=2, keepdims=True)
    total = np.where(total == 0, 1.0, total) if safe else total
    return powers / total, top, 1 / total


def _unmoved(value: Array, axes: range) -> None:
    assert all(value.shape[axis] == 1 for axis in axes), "an operand of a product moves along a loop that is not its own"
