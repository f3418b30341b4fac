"""Random programs, from a seed, whose values are put together from what kernels of all kinds make: concatenations along any dim, in each
other, pads, slices written into others, some of it turned or in another shape, parts that others read too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from coset.dialects.hub.terms import broadcast, dot, literal, reshape, splat, transpose
from coset.ir.dims import Dim, add, evaluate, multiply, subtract, symbol, symbols
from coset.ir.program import Program
from coset.ir.term import Term, input_term, make
from coset.ir.types import F16, F32, I32, DType, TensorType
from tests.lowering.plan_cases import op, scatter_rows

SIZES = {"n": 5, "s": 3}
Shape = tuple[Dim, ...]


class Drawn:
    """The inputs that were asked for so far, and what was made."""

    def __init__(self, seed: int, dtype: DType) -> None:
        self.draw, self.dtype = np.random.default_rng(seed), dtype
        self.inputs: list[Term] = []
        self.made: list[Term] = []

    def number(self, *choices: int) -> int:
        return int(self.draw.choice(choices))

    def input(self, *shape: Dim, dtype: DType | None = None) -> Term:
        """A new input, or one of this type that is there."""
        type_ = TensorType(dtype or self.dtype, shape)
        known = [term for term in self.inputs if term.type == type_]
        if known and self.draw.random() < 0.5:
            return known[self.draw.integers(len(known))]
        self.inputs.append(input_term(f"x{len(self.inputs)}", type_))
        return self.inputs[-1]

    def value(self, shape: Shape, depth: int) -> Term:
        """Something of this shape, made by a kernel or put together."""
        makers = MAKERS if not depth or self.draw.random() < 0.3 else JOINERS
        found = None
        while found is None:
            found = makers[self.draw.integers(len(makers))](self, shape, depth)
        self.made.append(found)
        return found


Maker = Callable[[Drawn, Shape, int], "Term | None"]

# ---------------------------------------------------------------- what kernels make


def _input(drawn: Drawn, shape: Shape, _: int) -> Term:
    return drawn.input(*shape)


def _constant(drawn: Drawn, shape: Shape, _: int) -> Term:
    return splat(drawn.number(-1, 0, 2), drawn.dtype, shape)


def _product(drawn: Drawn, shape: Shape, _: int) -> Term | None:
    if drawn.dtype is I32 or len(shape) != 2:
        return None
    depth = drawn.number(1, 3)
    found = dot(drawn.input(shape[0], depth), drawn.input(depth, shape[1]), lhs_contract=(1,), rhs_contract=(0,))
    return op("abs", found) if drawn.draw.random() < 0.5 else found


def _split_product(drawn: Drawn, shape: Shape, _: int) -> Term | None:
    """A product of more dims, in another shape and perhaps turned."""
    if drawn.dtype is I32 or len(shape) != 3:
        return None
    first, second, third = shape
    if drawn.draw.random() < 0.5:
        return reshape(dot(drawn.input(multiply(first, second), 2), drawn.input(2, third), lhs_contract=(1,), rhs_contract=(0,)), shape)
    return transpose(dot(drawn.input(second, 2), drawn.input(first, 2, third), lhs_contract=(1,), rhs_contract=(1,)), (1, 0, 2))


def _fold(drawn: Drawn, shape: Shape, _: int) -> Term:
    axis = int(drawn.draw.integers(len(shape) + 1))
    x = drawn.input(*shape[:axis], 3, *shape[axis:])
    return op("reduce", x, dimensions=(axis,), combiner=str(drawn.draw.choice(["add", "maximum"])))


def _normalized(drawn: Drawn, shape: Shape, _: int) -> Term:
    """What a kernel stores for each element of a row that it folds."""
    x = drawn.input(*shape)
    top = op("reduce", x, dimensions=(len(shape) - 1,), combiner="maximum")
    return op("subtract", x, broadcast(top, shape, tuple(range(len(shape) - 1))))


def _sorted(drawn: Drawn, shape: Shape, _: int) -> Term | None:
    if not isinstance(shape[-1], int):
        return None
    return op("sort", drawn.input(*shape), dimension=len(shape) - 1, direction=str(drawn.draw.choice(["LT", "GT"])))


def _scattered(drawn: Drawn, shape: Shape, _: int) -> Term | None:
    if len(shape) < 2:
        return None
    count = drawn.number(1, 4)
    return scatter_rows(drawn.input(*shape), drawn.input(count, dtype=I32), drawn.input(count, *shape[1:]))


def _scanned(drawn: Drawn, shape: Shape, _: int) -> Term | None:
    axis = len(shape) - 1
    count = shape[axis]
    if not isinstance(count, int):
        return None
    ones = (1,) * len(shape)
    padding = (*((0, 0) for _ in ones[:-1]), (count - 1, 0))
    return op("reduce_window", drawn.input(*shape), window_dimensions=(*ones[:-1], count), window_strides=ones,
              base_dilations=ones, window_dilations=ones, padding=padding, combiner="add")  # fmt: skip


def _by_a_library(drawn: Drawn, shape: Shape, _: int) -> Term | None:
    return op("remainder", drawn.input(*shape), splat(2, drawn.dtype, shape)) if drawn.dtype is F32 else None


# ---------------------------------------------------------------- what is put together


def _concatenated(drawn: Drawn, shape: Shape, depth: int) -> Term | None:
    axis = int(drawn.draw.integers(len(shape)))
    sizes = _split(drawn, shape[axis])
    if sizes is None:
        return None
    parts = [drawn.value((*shape[:axis], size, *shape[axis + 1 :]), depth - 1) for size in sizes]
    if drawn.draw.random() < 0.1:
        parts[-1] = parts[0] if parts[0].type == parts[-1].type else parts[-1]
    return op("concatenate", *parts, dimension=axis)


def _split(drawn: Drawn, size: Dim) -> list[Dim] | None:
    """Two or three sizes that come to this one."""
    if not isinstance(size, int):
        rest = subtract(size, symbol("n"))
        return [symbol("n"), rest] if rest != 0 and "n" in symbols(size) else None
    if size < 2:
        return None
    first = int(drawn.draw.integers(1, size))
    rest_, more = size - first, drawn.draw.random() < 0.4
    return [first, 1, rest_ - 1] if more and rest_ > 1 else [first, rest_]


def _padded(drawn: Drawn, shape: Shape, depth: int) -> Term | None:
    low, high, inner = [], [], []
    for dim in shape:
        taken = int(drawn.draw.integers(0, 3)) if isinstance(dim, int) and dim > 2 else 0
        low.append(int(drawn.draw.integers(0, taken + 1)))
        high.append(taken - low[-1])
        inner.append(subtract(dim, taken))
    if all(isinstance(dim, int) and dim > 1 and drawn.draw.random() < 0.2 for dim in inner):
        return None
    value = drawn.value(tuple(inner), depth - 1)
    return make("stablehlo.pad", (value, splat(1, drawn.dtype, ())), {
        "low": tuple(low), "high": tuple(high), "interior": (0,) * len(shape)})  # fmt: skip


def _written(drawn: Drawn, shape: Shape, depth: int) -> Term | None:
    """Slices at known places, some of which the op moves inside."""
    if any(not isinstance(dim, int) for dim in shape[1:]):
        return None
    result = drawn.value(shape, depth - 1)
    for _ in range(drawn.number(1, 2)):
        sizes = tuple(int(drawn.draw.integers(1, dim + 1)) if isinstance(dim, int) and drawn.draw.random() < 0.5 else dim for dim in shape)
        starts = [literal(np.int32(drawn.draw.integers(-1, dim + 1) if isinstance(dim, int) else 0)) for dim in shape]
        result = make("stablehlo.dynamic_update_slice", (result, drawn.value(sizes, depth - 1), *starts))
    return result


def _turned(drawn: Drawn, shape: Shape, depth: int) -> Term | None:
    if len(shape) < 2:
        return None
    order = [int(axis) for axis in drawn.draw.permutation(len(shape))]
    given = [shape[order.index(axis)] for axis in range(len(shape))]
    return transpose(drawn.value(tuple(given), depth - 1), tuple(order))


def _reshaped(drawn: Drawn, shape: Shape, depth: int) -> Term | None:
    """Of two dims that are one, or of one that is two."""
    if len(shape) > 2 and drawn.draw.random() < 0.6:
        return reshape(drawn.value((multiply(shape[0], shape[1]), *shape[2:]), depth - 1), shape)
    if len(shape) == 2 and shape[1] == 4:
        return reshape(drawn.value((shape[0], 2, 2), depth - 1), shape)
    return None


MAKERS: tuple[Maker, ...] = (
    _product, _product, _split_product, _split_product, _fold, _fold, _normalized, _sorted, _scattered, _scanned, _input, _constant,
    _by_a_library,
)  # fmt: skip
JOINERS: tuple[Maker, ...] = (_concatenated, _concatenated, _concatenated, _padded, _written, _turned, _reshaped)


def program(seed: int, *, symbolic: bool = False) -> tuple[Program, dict[str, Any]]:
    """A program and inputs for it; values are small integers, so that results are exact. `symbolic`: with the dims n and s."""
    dtype = (F32, F32, I32, F16)[seed % 4]
    drawn = Drawn(seed, dtype)
    n, s = symbol("n"), symbol("s")
    shapes: list[Shape] = [(6, 4), (4, 4, 3), (8, 2), (12,), (3, 4, 4)]
    if symbolic:
        shapes = [(add(n, 3), 4), (add(n, n), 4), (n, 6), (3, add(n, s)), (4, n, 3)]
    roots = [drawn.value(shapes[drawn.draw.integers(len(shapes))], drawn.number(1, 2, 3)) for _ in range(drawn.number(1, 2))]
    for term in list(drawn.made):
        if drawn.draw.random() < 0.25:
            roots.append(term)
        elif drawn.draw.random() < 0.3:
            roots.append(op("reduce", term, dimensions=(0,), combiner="add"))
    if symbolic:
        drawn.inputs += [input_term("z", TensorType(F32, (n, s)))]
    feeds = {}
    for term in drawn.inputs:
        shape = [evaluate(dim, SIZES) for dim in term.tensor.dims]
        low = 0 if term.tensor.dtype is I32 and term.tensor.rank == 1 else -3
        feeds[term.attribute("name")] = drawn.draw.integers(low, 4, shape).astype(term.tensor.dtype.numpy)
    return Program(tuple(drawn.inputs), tuple((f"y{place}", root) for place, root in enumerate(roots))), feeds
