"""Random scalars over loops and buffers, from a seed: what kernels of each family are drawn from."""

from __future__ import annotations

from typing import Any

import numpy as np

from coset.dialects.hub.scalars import cast
from coset.ir.dims import Dim, add, evaluate, multiply, subtract, symbol
from coset.ir.op import get_op
from coset.ir.types import BOOL, DTYPES, F32, DType
from coset.lowering.kernels.kernel import Buffer, Choose, InBounds, IndexValue, Load, Loop, Scalar, ScalarConstant, ScalarOp, Store

Array = np.ndarray[Any, Any]
EXTENTS = (1, 1, 2, 3, 5, 7, 8, 13, 16, 31)
KINDS = tuple(DTYPES[name] for name in ("f32", "f32", "f32", "f16", "bf16", "f64", "i32", "i8", "u8", "i64", "bool", "f8e4m3fn", "f8e5m2"))


class Drawing:
    """A kernel in the making: its buffers with values, the numbers of its dim symbols."""

    def __init__(self, seed: int, *, dtypes: tuple[DType, ...] = KINDS, tame: bool = False) -> None:
        """`tame`: values are small integers, so that sums in any order are the same."""
        self.draw = np.random.default_rng(seed)
        self.dtypes, self.tame = dtypes, tame
        self.buffers: dict[str, Buffer] = {}
        self.values: dict[str, Array] = {}
        self.binding: dict[str, int] = {}

    def chance(self, share: float) -> bool:
        return bool(self.draw.random() < share)

    def dtype(self) -> DType:
        return self.dtypes[self.draw.integers(len(self.dtypes))]

    def loops(self, role: str, count: int, *, extents: tuple[int, ...] = EXTENTS, dynamic: float = 0.2) -> tuple[Loop, ...]:
        found = []
        for place in range(count):
            extent = int(self.draw.choice(extents))
            found.append(Loop(f"loop:{role}{place}", extent))
            if self.chance(dynamic):
                name = f"n_{role}{place}"
                self.binding[name] = extent
                found[-1] = Loop(f"loop:{role}{place}", symbol(name))
        return tuple(found)

    # ------------------------------------------------------------ buffers

    def elements(self, dtype: DType, shape: tuple[int, ...]) -> Array:
        count = int(np.prod(shape, dtype=int))
        if dtype is BOOL:
            return self.draw.integers(0, 2, shape).astype(bool)
        if self.tame:
            return cast(self.draw.integers(-3 if dtype.kind != "uint" else 0, 4, shape), dtype)
        if dtype.kind != "float":
            info = np.iinfo(dtype.numpy)
            small = self.draw.integers(max(info.min, -9), 10, count)
            wild = self.draw.integers(info.min, info.max, count, dtype.numpy, endpoint=True)
            return np.where(self.draw.random(count) < 0.7, small.astype(dtype.numpy), wild).reshape(shape)
        special = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1e-40, -1e-310, 2.0**-24, 1e30, -3e4])
        normal = self.draw.normal(size=count)
        return cast(np.where(self.draw.random(count) < 0.15, self.draw.choice(special, count), normal), dtype).reshape(shape)

    def strides(self, shape: tuple[Dim, ...]) -> tuple[Dim, ...] | None:
        """Row-major, or another order of the dims, or with gaps."""
        if self.chance(0.6) or any(not isinstance(dim, int) for dim in shape):
            return None
        order = [int(i) for i in self.draw.permutation(len(shape))]
        found: list[Dim] = [0] * len(shape)
        step = int(self.draw.integers(1, 3))
        for axis in reversed(order):
            found[axis] = step
            dim = shape[axis]
            assert isinstance(dim, int)
            step *= max(dim, 1) + int(self.draw.integers(0, 3))
        return tuple(found)

    def buffer(self, name: str, dtype: DType, shape: tuple[Dim, ...], role: str, *, filled: bool) -> Buffer:
        made = Buffer(name, dtype, shape, role, self.strides(shape))
        self.buffers[name] = made
        if filled:
            self.values[name] = self.elements(dtype, tuple(evaluate(dim, self.binding) for dim in shape))
        return made

    # ------------------------------------------------------------ scalars

    def load(self, dtype: DType, loops: tuple[Loop, ...], bounds: list[InBounds] | None = None) -> Load:
        """An element of a new input: some of the loops, in any order, shifted, stretched, turned round, or held at one place. With `bounds`
        it may be outside unless they hold."""
        shape: list[Dim] = []
        index: list[Dim] = []
        for place in self.draw.permutation(len(loops)):
            loop = loops[place]
            if self.chance(0.25):
                continue
            start, step, more = int(self.draw.integers(0, 3)), int(self.draw.choice([1, 1, 2])), int(self.draw.integers(0, 3))
            where = add(start, multiply(step, loop.index))
            size = add(add(start, multiply(step, subtract(loop.extent, 1))), 1 + more)
            if bounds is not None and self.chance(0.6):
                low = int(self.draw.integers(0, 3))
                bounds.append(InBounds(loop.index, low, subtract(loop.extent, int(self.draw.integers(0, 2)))))
                where = subtract(loop.index, low)
                size = subtract(loop.extent, low)
                if isinstance(size, int) and size < 1:
                    size = 0
                elif not isinstance(size, int) and evaluate(size, self.binding) < 1:
                    bounds.pop()
                    where, size = loop.index, loop.extent
            elif evaluate(size, self.binding) < 1:
                where, size = loop.index, loop.extent
            elif self.chance(0.2):
                where = subtract(subtract(size, 1), where)
            if self.chance(0.15):
                shape.append(2)
                index.append(int(self.draw.integers(0, 2)))
            shape.append(size)
            index.append(where)
        name = f"x{len(self.buffers)}"
        self.buffer(name, dtype, tuple(shape), "input", filled=True)
        return Load(name, tuple(index), dtype)

    def scalar(self, dtype: DType, loops: tuple[Loop, ...], depth: int, seen: list[Scalar]) -> Scalar:
        fitting = [value for value in seen if value.dtype is dtype]
        if fitting and self.chance(0.25):
            return fitting[self.draw.integers(len(fitting))]
        made = self._leaf(dtype, loops) if depth == 0 else self._inner(dtype, loops, depth, seen)
        seen.append(made)
        return made

    def _leaf(self, dtype: DType, loops: tuple[Loop, ...]) -> Scalar:
        if self.chance(0.15):
            return ScalarConstant(self.elements(dtype, (1,))[0].item(), dtype)
        if loops and dtype is not BOOL and self.chance(0.15):
            return IndexValue(add(loops[0].index, multiply(2, loops[-1].index)), dtype)
        return self.load(dtype, loops)

    def _inner(self, dtype: DType, loops: tuple[Loop, ...], depth: int, seen: list[Scalar]) -> Scalar:
        way = self.draw.random()
        if way < 0.15:
            other = self.dtype()
            return ScalarOp(get_op("stablehlo.convert"), (self.scalar(other, loops, depth - 1, seen),), dtype, (("dtype", dtype),))
        if way < 0.35:
            return self._choose(dtype, loops, depth, seen)
        if way < 0.45:
            left, right = self.scalar(F32, loops, depth - 1, seen), self.scalar(F32, loops, 0, seen)
            pred = ScalarOp(get_op("stablehlo.compare"), (left, right), BOOL, (("direction", str(self.draw.choice(["LT", "GE", "NE"]))),))
            return ScalarOp(get_op("stablehlo.select"), (pred, *(self.scalar(dtype, loops, depth - 1, seen) for _ in range(2))), dtype)
        if way < 0.55 and dtype.kind in ("float", "int"):
            return ScalarOp(
                get_op(f"stablehlo.{self.draw.choice(['negate', 'abs', 'sign'])}"), (self.scalar(dtype, loops, depth - 1, seen),), dtype
            )
        words = ["and", "or", "xor"] if dtype is BOOL else ["add", "subtract", "maximum", "minimum", *([] if self.tame else ["multiply"])]
        sides = self.scalar(dtype, loops, depth - 1, seen), self.scalar(dtype, loops, int(self.draw.integers(0, depth)), seen)
        return ScalarOp(get_op(f"stablehlo.{self.draw.choice(words)}"), sides, dtype)

    def _choose(self, dtype: DType, loops: tuple[Loop, ...], depth: int, seen: list[Scalar]) -> Scalar:
        bounds: list[InBounds] = []
        inside: Scalar = self.load(dtype, loops, bounds)
        if not bounds:
            return inside
        if self.chance(0.3):
            inside = ScalarOp(get_op("stablehlo.maximum"), (inside, inside), dtype)
        outside: Scalar = (
            ScalarConstant(self.elements(dtype, (1,))[0].item(), dtype) if self.chance(0.5) else self.scalar(dtype, loops, depth - 1, seen)
        )
        return Choose(tuple(bounds), inside, outside, dtype)

    def store(self, value: Scalar, loops: tuple[Loop, ...]) -> Store:
        """`value` to a new output, whose dims are the loops in any order, some turned round."""
        order = [loops[place] for place in self.draw.permutation(len(loops))]
        index = [subtract(subtract(loop.extent, 1), loop.index) if self.chance(0.15) else loop.index for loop in order]
        name = f"y{len(self.buffers)}"
        self.buffer(name, value.dtype, tuple(loop.extent for loop in order), "output", filled=False)
        return Store(name, tuple(index), value)
