"""Random loops as hub terms, from a seed: states of rows and columns, reads from the front and from the back, folds, products."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coset.dialects.hub.region_terms import while_term
from coset.dialects.hub.scalars import cast
from coset.dialects.hub.terms import broadcast, reshape, splat, transpose
from coset.dialects.onnx.arithmetic import counted
from coset.ir.dims import Dim, evaluate, symbol
from coset.ir.program import Program
from coset.ir.term import Term, constant, get, input_term, make
from coset.ir.types import DTYPES, I32, DType, TensorType

ROWS: tuple[tuple[int, ...], ...] = ((), (1,), (2,), (7,), (33,), (2, 5), (3, 1), (40,))
COLUMNS = (2, 3, 8, 16, 17, 31)
COUNTS = (1, 1, 2, 3, 5, 11)
FLOATS, OTHERS = ("f32", "f32", "f16", "bf16"), ("i32", "i8", "u8", "f64")
SPECIAL = (np.nan, np.inf, -np.inf, -0.0)


@dataclass(frozen=True)
class Drawn:
    """A program of one loop, its inputs by name, and the numbers of its dim symbols."""

    program: Program
    feeds: dict[str, Any]
    binding: dict[str, int]


def drawn(seed: int) -> Drawn:
    """The loop of a seed: small integers, so that sums in any order are the same; in some there are infinities and NaN."""
    return _Drawing(seed).drawn()


class _Drawing:
    def __init__(self, seed: int) -> None:
        self.draw = np.random.default_rng(seed)
        self.inputs: list[Term] = []
        self.feeds: dict[str, Any] = {}
        self.binding: dict[str, int] = {}
        self.kind = str(self.draw.choice(["plain", "folds", "products"]))
        self.dtype = DTYPES[str(self.draw.choice(FLOATS if self.kind == "products" or self.chance(0.8) else OTHERS))]
        self.special = self.chance(0.25) and self.dtype.kind == "float"
        rows = ROWS[self.draw.integers(len(ROWS))]
        self.rows = tuple(self.dim(f"b{place}", size) for place, size in enumerate(rows))
        self.columns: tuple[Dim, ...] = () if self.kind == "plain" else (int(self.draw.choice(COLUMNS)),)
        self.count = self.dim("n", int(self.draw.choice(COUNTS)))
        self.shape = (*self.rows, *self.columns)

    def chance(self, share: float) -> bool:
        return bool(self.draw.random() < share)

    def dim(self, name: str, size: int) -> Dim:
        if size == 1 or not self.chance(0.25):
            return size
        self.binding[name] = size
        return symbol(name)

    def input(self, shape: Sequence[Dim], dtype: DType | None = None, most: int = 3) -> Term:
        name, dtype = f"x{len(self.inputs)}", dtype or self.dtype
        sizes = [evaluate(dim, self.binding) for dim in shape]
        values = self.draw.integers(-most if dtype.kind != "uint" else 0, most + 1, sizes).astype(np.float64)
        if self.special and dtype.kind == "float":
            values = np.where(self.draw.random(sizes) < 0.05, self.draw.choice(SPECIAL, sizes), values)
        self.feeds[name] = cast(values, dtype)
        self.inputs.append(input_term(name, TensorType(dtype, tuple(shape))))
        return self.inputs[-1]

    # ------------------------------------------------------------ the loop

    def drawn(self) -> Drawn:
        draw = self.draw
        states = [self.input(self.shape) for _ in range(int(draw.integers(1, 4)))]
        if self.kind == "folds" and self.chance(0.5):
            states.append(self.input(self.rows))  # one for each row
        sequences = [self.input(self.sequence(own)) for own in self.owns(int(draw.integers(1, 4)))]
        fixed = [self.input(self.shape if self.chance(0.5) else self.columns or self.rows) for _ in range(2)]
        matrices = [self.input((*self.columns, *self.columns), most=1) for _ in range(2)] if self.kind == "products" else []
        self.backward = [self.chance(0.3) for _ in sequences]
        stacks = int(draw.integers(0, 3))
        self.turned = [self.chance(0.3) for _ in range(stacks)]
        self.which = [int(draw.integers(len(states))) for _ in range(stacks)]
        bases = [self.pile(states[which]) for which in self.which]
        state = [constant(0, I32), counted(self.count, I32), *states, *bases, *sequences, *fixed, *matrices]
        first, second = 2 + len(states), 2 + len(states) + stacks
        third, fourth = second + len(sequences), second + len(sequences) + len(fixed)
        plan_seed = int(draw.integers(1 << 30))

        def body(*inner: Term) -> list[Term]:
            self.draw = np.random.default_rng(plan_seed)  # bodies are made more than once
            last = make("stablehlo.subtract", (make("stablehlo.subtract", (inner[1], constant(1, I32))), inner[0]))
            places = [last if turned else inner[0] for turned in self.backward]
            reads = [self.read(x, place) for x, place in zip(inner[second:third], places, strict=True)]
            new = self.step(list(inner[2:first]), reads, list(inner[third:fourth]), list(inner[fourth:]))
            grown = []
            for pile, which, turned in zip(inner[first:second], self.which, self.turned, strict=True):
                value = inner[2 + which] if self.chance(0.3) else new[which]
                at = last if turned else inner[0]
                update = reshape(value, (1, *value.tensor.dims))
                grown.append(make("stablehlo.dynamic_update_slice", (pile, update, at, *[constant(0, I32)] * value.tensor.rank)))
            return [make("stablehlo.add", (inner[0], constant(1, I32))), inner[1], *new, *grown, *inner[second:]]

        loop = while_term(state, lambda *inner: make("stablehlo.compare", (inner[0], inner[1]), {"direction": "LT"}), body)
        outputs = tuple((f"y{place}", get(loop, place)) for place in range(2, second))
        return Drawn(Program(tuple(self.inputs), outputs), self.feeds, self.binding)

    def owns(self, count: int) -> list[tuple[bool, bool]]:
        """For each sequence whether it has rows, and columns."""
        return [(self.chance(0.8) or not self.columns, self.chance(0.8)) for _ in range(count)]

    def sequence(self, own: tuple[bool, bool]) -> tuple[Dim, ...]:
        return (self.count, *(self.rows if own[0] else ()), *(self.columns if own[1] else ()))

    def pile(self, value: Term) -> Term:
        return splat(0, value.tensor.dtype, (self.count, *value.tensor.dims))

    # ------------------------------------------------------------ a round

    def read(self, x: Term, place: Term) -> Term:
        rest = x.tensor.dims[1:]
        found = make("stablehlo.dynamic_slice", (x, place, *[constant(0, I32)] * len(rest)), {"slice_sizes": (1, *rest)})
        return reshape(found, rest)

    def whole(self, x: Term) -> Term:
        """A value of rows, of columns or of neither, over both."""
        if x.tensor.dims == self.shape:
            return x
        axes: tuple[int, ...] = ()
        if x.tensor.dims == self.rows:
            axes = tuple(range(len(self.rows)))
        elif x.tensor.dims == self.columns:
            axes = tuple(range(len(self.rows), len(self.shape)))
        else:
            assert not x.tensor.dims
        return broadcast(x, self.shape, axes)

    def step(self, states: list[Term], reads: list[Term], fixed: list[Term], matrices: list[Term]) -> list[Term]:
        wide = [state for state in states if state.tensor.dims == self.shape]
        pool = [self.whole(x) for x in (*states, *reads, *fixed)]
        for _ in range(int(self.draw.integers(1, 4))):
            pool.append(self.mixed(pool))
        for matrix in matrices if self.kind == "products" else []:
            source = wide[self.draw.integers(len(wide))]
            source = self.bounded(self.mixed([source, *pool])) if self.chance(0.4) else source
            pool.append(self.bounded(self.product(source, matrix)))
        rows = []
        for _ in range(int(self.draw.integers(1, 3)) if self.kind == "folds" else 0):
            combiner = str(self.draw.choice(["add", "maximum", "minimum"]))
            value = self.bounded(pool[self.draw.integers(len(pool))])
            rows.append(make("stablehlo.reduce", (value,), {"dimensions": (len(self.rows),), "combiner": combiner}))
            pool.append(self.whole(rows[-1]))
        new = []
        for state in states:
            if state.tensor.dims == self.shape:
                new.append(self.bounded(self.mixed([state, *pool, *pool[-2:]])) if self.chance(0.85) else wide[0])
            else:
                new.append(self.bounded(make("stablehlo.add", (state, rows[self.draw.integers(len(rows))]))))
        return new

    def mixed(self, pool: Sequence[Term]) -> Term:
        left, right = (pool[self.draw.integers(len(pool))] for _ in range(2))
        found = make(f"stablehlo.{self.draw.choice(['add', 'subtract', 'maximum', 'minimum', 'add'])}", (left, right))
        return self.bounded(found) if self.chance(0.3) else found

    def bounded(self, x: Term) -> Term:
        """Within -8 and 8, so that all sums are exact."""
        low, high = (splat(value, x.tensor.dtype, x.tensor.dims) for value in (0 if x.tensor.dtype.kind == "uint" else -8, 8))
        return make("stablehlo.minimum", (make("stablehlo.maximum", (x, low)), high))

    def product(self, x: Term, matrix: Term) -> Term:
        last, side = x.tensor.rank - 1, int(self.draw.integers(2))
        axes = {"lhs_batch": (), "rhs_batch": ()}
        if self.chance(0.7):
            return make("stablehlo.dot_general", (x, matrix), {**axes, "lhs_contract": (last,), "rhs_contract": (side,)})
        turned = make("stablehlo.dot_general", (matrix, x), {**axes, "lhs_contract": (side,), "rhs_contract": (last,)})
        return transpose(turned, (*range(1, x.tensor.rank), 0))
