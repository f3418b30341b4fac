"""Random programs of hub ops, from a seed: movements, elementwise ops, reductions, contractions, library ops, several outputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from coset.dialects.hub.terms import broadcast, convert, dot, literal, reshape, splat, transpose
from coset.ir.dims import Dim, Poly, alone, evaluate, multiply, symbol
from coset.ir.program import Program
from coset.ir.term import Term, input_term, make
from coset.ir.types import BOOL, F16, F32, I8, I32, TensorType

Draw = np.random.Generator
MOST = 600  # elements of a drawn value
SIZES = {"n": 3, "s": 4}
BINARY = ("add", "subtract", "multiply", "maximum", "minimum")


def program(seed: int, steps: int = 14, *, symbolic: bool = False) -> tuple[Program, dict[str, Any]]:
    """A program of about `steps` ops, and inputs for it. Most values are small integers, so that results are exact. `symbolic`: with an
    input of dims n and s, which come to 3 and 4."""
    draw = np.random.default_rng(seed)
    inputs, feeds, pool = [], {}, []
    for place in range(draw.integers(1, 4)):
        dtype = draw.choice(np.array([I32, I32, F32], object))
        shape = tuple(int(draw.choice([1, 2, 3, 4, 6])) for _ in range(draw.integers(0, 4)))
        inputs.append(input_term(f"x{place}", TensorType(dtype, shape)))
        feeds[f"x{place}"] = draw.integers(-3, 4, shape).astype(dtype.numpy)
    if symbolic:
        inputs.append(input_term("z", TensorType(I32, (symbol("n"), 2, symbol("s")))))
        feeds["z"] = draw.integers(-3, 4, (SIZES["n"], 2, SIZES["s"])).astype(np.int32)
    pool += inputs
    while len(pool) < len(inputs) + steps:
        made = STEPS[draw.integers(len(STEPS))](draw, pool)
        if made is not None and evaluate(made.tensor.elements, SIZES) <= MOST:
            pool.append(made)
    roots = [pool[-1], *(pool[i] for i in draw.integers(0, len(pool), draw.integers(0, 4)))]
    return Program(tuple(inputs), tuple((f"y{i}", root) for i, root in enumerate(roots))), feeds


def _one(draw: Draw, pool: list[Term]) -> Term:
    """A term of the pool; the later ones are likelier, so that chains grow."""
    return pool[max(draw.integers(len(pool)), draw.integers(len(pool)))]


def _like(draw: Draw, pool: list[Term], x: Term) -> Term:
    """A term of the type of `x`, or something made to be one."""
    fitting = [y for y in pool if y.type == x.type]
    if fitting and draw.random() < 0.7:
        return fitting[draw.integers(len(fitting))]
    y = convert(_one(draw, pool), x.tensor.dtype)
    found = _match(y, x.tensor.dims)
    return found if found is not None else splat(int(draw.integers(-2, 3)), x.tensor.dtype, x.tensor.dims)


def _match(y: Term, shape: tuple[Dim, ...]) -> Term | None:
    axes, taken = [], set[int]()
    for dim in y.tensor.dims:
        axis = next((i for i, size in enumerate(shape) if i not in taken and dim in (1, size)), None)
        if axis is None:
            return None
        taken.add(axis)
        axes.append(axis)
    return broadcast(y, shape, tuple(axes))


def _binary(draw: Draw, pool: list[Term]) -> Term:
    x = _one(draw, pool)
    y = _like(draw, pool, x)
    op = str(draw.choice(BINARY)) if x.tensor.dtype != BOOL else str(draw.choice(["and", "or", "xor"]))
    return make(f"stablehlo.{op}", (x, y) if draw.random() < 0.5 else (y, x))


def _unary(draw: Draw, pool: list[Term]) -> Term:
    x = _one(draw, pool)
    return make("stablehlo.not", (x,)) if x.tensor.dtype == BOOL else make(f"stablehlo.{draw.choice(['negate', 'abs', 'sign'])}", (x,)) if (
        x.tensor.dtype.kind != "uint") else x  # fmt: skip


def _select(draw: Draw, pool: list[Term]) -> Term:
    x = _one(draw, pool)
    y, z = _like(draw, pool, x), _like(draw, pool, x)
    pred = make("stablehlo.compare", (x, y), {"direction": str(draw.choice(["EQ", "LT", "GE"]))})
    return make("stablehlo.select", (pred, y, z)) if draw.random() < 0.7 else pred


def _clamp(draw: Draw, pool: list[Term]) -> Term | None:
    x = _one(draw, pool)
    if x.tensor.dtype == BOOL:
        return None
    low, high = (splat(value, x.tensor.dtype, ()) for value in (-2, 3))
    return make("stablehlo.clamp", (low, x, high))


def _convert(draw: Draw, pool: list[Term]) -> Term:
    return convert(_one(draw, pool), draw.choice(np.array([I32, F32, I8, F16], object)))


def _transpose(draw: Draw, pool: list[Term]) -> Term:
    x = _one(draw, pool)
    return transpose(x, tuple(int(i) for i in draw.permutation(x.tensor.rank)))


def _reshape(draw: Draw, pool: list[Term]) -> Term:
    x = _one(draw, pool)
    if x.tensor.static is None:  # two neighbours become one, or a number is taken apart
        dims, place = list(x.tensor.dims), int(draw.integers(x.tensor.rank))
        if place + 1 < len(dims) and draw.random() < 0.6:
            dims[place : place + 2] = [multiply(dims[place], dims[place + 1])]
        elif dims[place] in (4, 6):
            dims[place : place + 1] = [2, 2] if dims[place] == 4 else [3, 2]
        return reshape(x, tuple(dims))
    left, shape = int(np.prod(x.tensor.static, dtype=int)), []
    while left > 1 and len(shape) < 3:
        factors = [f for f in (1, 2, 3, 4, 6, left) if left % f == 0]
        shape.append(int(draw.choice(factors)))
        left //= shape[-1]
    return reshape(x, (*shape, left))


def _slice(draw: Draw, pool: list[Term]) -> Term:
    x = _one(draw, pool)
    start, limit, strides = [], [], []
    for dim in x.tensor.dims:
        if not isinstance(dim, int):
            start.append(int(draw.integers(0, 2)) if isinstance(dim, Poly) and alone(dim) else 0)
            limit.append(dim)
            strides.append(1)
            continue
        first = int(draw.integers(0, dim)) if dim and draw.random() < 0.5 else 0
        start.append(first)
        limit.append(int(draw.integers(first + 1, dim + 1)) if dim and draw.random() < 0.5 else dim)
        strides.append(int(draw.integers(1, 3)))
    return make("stablehlo.slice", (x,), {"start": tuple(start), "limit": tuple(limit), "strides": tuple(strides)})


def _pad(draw: Draw, pool: list[Term]) -> Term | None:
    x = _one(draw, pool)
    low, high = ([int(draw.integers(-1, 3)) for _ in range(x.tensor.rank)] for _ in range(2))
    interior = tuple(int(draw.integers(0, 2)) for _ in range(x.tensor.rank))
    low, high = (
        [a if isinstance(d, int) and d > 2 else max(a, 0) for a, d in zip(side, x.tensor.dims, strict=True)] for side in (low, high)
    )
    value = splat(1, x.tensor.dtype, ())
    return make("stablehlo.pad", (x, value), {"low": tuple(low), "high": tuple(high), "interior": interior})


def _concatenate(draw: Draw, pool: list[Term]) -> Term | None:
    x = _one(draw, pool)
    if not x.tensor.rank:
        return None
    parts = [x, *(_like(draw, pool, x) for _ in range(draw.integers(1, 3)))]
    return make("stablehlo.concatenate", parts, {"dimension": int(draw.integers(x.tensor.rank))})


def _reverse(draw: Draw, pool: list[Term]) -> Term:
    x = _one(draw, pool)
    return make("stablehlo.reverse", (x,), {"dimensions": tuple(i for i in range(x.tensor.rank) if draw.random() < 0.6)})


def _spread(draw: Draw, pool: list[Term]) -> Term | None:
    x = _one(draw, pool)
    shape = list(x.tensor.dims)
    place = int(draw.integers(len(shape) + 1))
    axes = tuple(i if i < place else i + 1 for i in range(len(shape)))
    shape.insert(place, int(draw.choice([1, 2, 4])))
    return broadcast(x, tuple(shape), axes)


def _iota(draw: Draw, pool: list[Term]) -> Term | None:
    x = _one(draw, pool)
    if not x.tensor.rank or x.tensor.dtype == BOOL:
        return None
    axis = int(draw.integers(x.tensor.rank))
    return make("stablehlo.iota", (), {"shape": x.tensor.dims, "dtype": x.tensor.dtype, "dimension": axis})


def _reduce(draw: Draw, pool: list[Term]) -> Term:
    x = _one(draw, pool)
    axes = tuple(i for i in range(x.tensor.rank) if draw.random() < 0.5)
    words = ["and", "or"] if x.tensor.dtype == BOOL else ["add", "maximum", "minimum", "add"]
    return make("stablehlo.reduce", (x,), {"dimensions": axes, "combiner": str(draw.choice(words))})


def _centered(draw: Draw, pool: list[Term]) -> Term | None:
    """x - spread(fold(x)): what softmax and normalizations are made of."""
    x = _one(draw, pool)
    if x.tensor.dtype == BOOL or not x.tensor.rank:
        return None
    axes = tuple(sorted({int(draw.integers(x.tensor.rank)) for _ in range(2)}))
    row = make("stablehlo.reduce", (x,), {"dimensions": axes, "combiner": str(draw.choice(["add", "maximum"]))})
    spread = broadcast(row, x.tensor.dims, tuple(i for i in range(x.tensor.rank) if i not in axes))
    return make("stablehlo.subtract", (x, spread))


def _dot(draw: Draw, pool: list[Term]) -> Term | None:
    x, y = _one(draw, pool), convert(_one(draw, pool), F32)
    x = convert(x, F32)
    pairs = [(i, j) for i, a in enumerate(x.tensor.dims) for j, b in enumerate(y.tensor.dims) if a == b]
    draw.shuffle(pairs)  # type: ignore[arg-type]
    batch, contract = [], []
    left, right = set[int](), set[int]()
    for i, j in pairs:
        if i not in left and j not in right:
            left.add(i)
            right.add(j)
            (batch if draw.random() < 0.4 else contract).append((i, j))
    if not contract and draw.random() < 0.8:
        return None
    return dot(x, y, lhs_batch=tuple(i for i, _ in batch), rhs_batch=tuple(j for _, j in batch),
               lhs_contract=tuple(i for i, _ in contract), rhs_contract=tuple(j for _, j in contract))  # fmt: skip


def _sort(draw: Draw, pool: list[Term]) -> Term | None:
    x = _one(draw, pool)
    if not x.tensor.rank or x.tensor.dtype == BOOL:
        return None
    return make("stablehlo.sort", (x,), {"dimension": int(draw.integers(x.tensor.rank)), "direction": "LT"})


def _starts(draw: Draw, pool: list[Term], shape: tuple[int, ...]) -> Term:
    """Integers of a shape, some of them outside of most dims."""
    x = _match(convert(_one(draw, pool), draw.choice(np.array([I32, I32, I8], object))), shape) if draw.random() < 0.6 else None
    return x if x is not None else literal(draw.integers(-2, 6, shape).astype(np.int32))


def _gather(draw: Draw, pool: list[Term]) -> Term | None:
    x = _one(draw, pool)
    if not x.tensor.rank or x.tensor.static is None or 0 in x.tensor.static:
        return None
    rank = x.tensor.rank
    axes = [int(i) for i in draw.permutation(rank)[: draw.integers(1, min(rank, 2) + 1)]]
    sizes = [int(draw.integers(1, dim + 1)) if draw.random() < 0.5 else 1 for dim in x.tensor.static]
    collapsed = tuple(axis for axis in range(rank) if sizes[axis] == 1 and draw.random() < 0.7)
    batch = tuple(int(draw.choice([1, 2, 3])) for _ in range(draw.integers(0, 3)))
    vector = int(draw.integers(0, len(batch) + 1)) if len(axes) > 1 or draw.random() < 0.5 else len(batch)
    shape = batch if len(axes) == 1 and vector == len(batch) else (*batch[:vector], len(axes), *batch[vector:])
    kept = rank - len(collapsed)
    offsets = tuple(sorted(int(i) for i in draw.permutation(len(batch) + kept)[:kept]))
    return make("stablehlo.gather", (x, _starts(draw, pool, shape)), {
        "offset_dims": offsets, "collapsed_slice_dims": collapsed, "operand_batching_dims": (), "start_indices_batching_dims": (),
        "start_index_map": tuple(axes), "index_vector_dim": vector, "slice_sizes": tuple(sizes), "indices_are_sorted": False})  # fmt: skip


def _dynamic_slice(draw: Draw, pool: list[Term]) -> Term | None:
    x = _one(draw, pool)
    if x.tensor.static is None or 0 in x.tensor.static:
        return None
    starts = [_starts(draw, pool, ()) for _ in x.tensor.dims]
    if len({start.tensor.dtype for start in starts}) > 1:
        starts = [convert(start, I32) for start in starts]
    sizes = tuple(int(draw.integers(1, dim + 1)) for dim in x.tensor.static)
    if draw.random() < 0.5:
        return make("stablehlo.dynamic_slice", (x, *starts), {"slice_sizes": sizes})
    update = _match(convert(_one(draw, pool), x.tensor.dtype), sizes)
    update = update if update is not None else splat(1, x.tensor.dtype, sizes)
    return make("stablehlo.dynamic_update_slice", (x, update, *starts))


def _scatter(draw: Draw, pool: list[Term]) -> Term | None:
    """Windows that are whole, along any axes, at places that indices say, some of them outside; batches; up to 40 updates."""
    x = _one(draw, pool)
    if x.tensor.static is None or not x.tensor.rank or 0 in x.tensor.static:
        return None
    axes = [int(axis) for axis in draw.permutation(x.tensor.rank)]
    named = tuple(axes[: draw.integers(1, len(axes) + 1)])
    left = axes[len(named) :]
    batching = tuple(sorted(left[: draw.integers(0, len(left) + 1)])) if draw.random() < 0.4 else ()
    inserted = tuple(sorted({*named, *(axis for axis in left if axis not in batching and x.tensor.static[axis] == 1)}))
    windows = [x.tensor.static[axis] for axis in range(x.tensor.rank) if axis not in (*inserted, *batching)]
    scattered = [x.tensor.static[axis] for axis in batching] + [int(draw.choice([1, 2, 3, 40]))] * int(draw.random() < 0.8)
    vector = int(draw.integers(0, len(scattered) + 1))
    starts = _starts(draw, pool, (*scattered[:vector], len(named), *scattered[vector:]))
    rank = len(scattered) + len(windows)
    places = tuple(sorted(int(i) for i in draw.permutation(rank)[: len(windows)]))
    sizes = dict(zip(places, windows, strict=True))
    rest = iter(scattered)
    shape = tuple(sizes[place] if place in sizes else next(rest) for place in range(rank))
    update = _match(convert(_one(draw, pool), x.tensor.dtype), shape)
    update = update if update is not None else splat(1, x.tensor.dtype, shape)
    combiner = str(draw.choice(["and", "or", "second"] if x.tensor.dtype == BOOL else ["add", "maximum", "minimum", "second"]))
    return make("stablehlo.scatter", (x, starts, update), {
        "update_window_dims": places, "inserted_window_dims": inserted, "input_batching_dims": batching,
        "scatter_indices_batching_dims": tuple(range(len(batching))) if vector >= len(batching) else tuple(
            i + (i >= vector) for i in range(len(batching))),
        "scatter_dims_to_operand_dims": named, "index_vector_dim": vector, "combiner": combiner})  # fmt: skip


def _constant(draw: Draw, pool: list[Term]) -> Term:
    x = _one(draw, pool)
    if x.tensor.static is None:
        return x
    values = draw.integers(-3, 4, x.tensor.static).astype(x.tensor.dtype.numpy)
    return make("stablehlo.add" if x.tensor.dtype != BOOL else "stablehlo.xor", (x, literal(values)))


STEPS: tuple[Callable[[Draw, list[Term]], Term | None], ...] = (
    _binary, _binary, _binary, _unary, _select, _clamp, _convert, _transpose, _reshape, _slice, _pad, _concatenate, _reverse, _spread,
    _iota,
    _reduce, _reduce, _centered, _centered, _dot, _dot, _dot, _sort, _constant, _gather, _gather, _dynamic_slice, _scatter,
)  # fmt: skip
