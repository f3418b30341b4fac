"""Kernels that choose between many values by place: programs that stand in one box each, in Triton's interpreter and compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import coset.dialects  # noqa: F401  (fills the registry)
from coset.backends.triton_runtime import TARGETS, Compiler, Runner
from coset.dialects.hub.terms import broadcast, reshape, splat, transpose
from coset.ir.dims import Dim, add, evaluate, symbol
from coset.ir.program import Program
from coset.ir.term import Term, input_term, make
from coset.ir.types import F16, F32, I32, DType, TensorType
from coset.lowering.kernels.boxes import StoreFrame, cuts_of
from coset.lowering.kernels.kernel import Plan, Pointwise
from coset.lowering.planning.plan import plan
from coset.lowering.triton.boxes import boxes_of
from coset.lowering.triton.source import can_emit, emit, kernel_source
from tests.lowering import test_triton_plans
from tests.lowering.plan_cases import op, x_

pytest.importorskip("triton", reason="Triton is not installed")

SIZES = {"n": 5, "s": 3}


class Drawn:
    """Values that are put together along one dim: rows of tables, inputs as they are, turned, in another type, computed, constants."""

    def __init__(self, seed: int) -> None:
        self.draw = np.random.default_rng(seed)
        self.dtype: DType = (F32, F16, I32)[seed % 3]
        self.inputs: list[Term] = []

    def input(self, dtype: DType, *shape: Dim) -> Term:
        self.inputs.append(input_term(f"x{len(self.inputs)}", TensorType(dtype, shape)))
        return self.inputs[-1]

    def part(self, shape: tuple[Dim, ...]) -> Term:
        kind = self.draw.integers(6)
        if kind < 2:
            return self.rows(shape)
        if kind == 2:
            return splat(3, self.dtype, shape)
        if kind == 3:
            return op("abs", self.input(self.dtype, *shape))
        if kind == 4:
            order = [int(axis) for axis in self.draw.permutation(len(shape))]
            return transpose(self.input(self.dtype, *(shape[order.index(axis)] for axis in range(len(shape)))), tuple(order))
        return op("add", self.input(self.dtype, *shape), broadcast(self.input(self.dtype, shape[-1]), shape, (len(shape) - 1,)))

    def rows(self, shape: tuple[Dim, ...]) -> Term:
        """Rows of a table at computed places."""
        table = self.input(self.dtype, 6, shape[-1])
        places = self.input(I32, *shape[:-1], 1)
        axes = {"offset_dims": (len(shape) - 1,), "collapsed_slice_dims": (0,), "start_index_map": (0,)}
        none = {"operand_batching_dims": (), "start_indices_batching_dims": ()}
        sizes = {"index_vector_dim": len(shape) - 1, "slice_sizes": (1, shape[-1]), "indices_are_sorted": False}
        return make("stablehlo.gather", (table, places), {**axes, **none, **sizes})


def program(seed: int) -> tuple[Program, dict[str, Any]]:
    """Many parts, perhaps with a pad around them and something done to all of them; values are small integers."""
    drawn, draw = Drawn(seed), np.random.default_rng(1000 + seed)
    free = symbol("n") if draw.random() < 0.3 else 3
    shape: list[Dim] = [free, 1, 16] if draw.random() < 0.7 else [free, 32]
    axis = int(draw.integers(len(shape) - 1)) if draw.random() < 0.8 else len(shape) - 1
    parts = []
    for _ in range(draw.integers(5, 10)):
        own = list(shape)
        if axis < len(shape) - 1:
            own[axis] = symbol("s") if draw.random() < 0.2 else int(draw.integers(1, 4))
        parts.append(drawn.part(tuple(own)))
    value = op("concatenate", *parts, dimension=axis)
    if draw.random() < 0.3:
        around = [(int(draw.integers(0, 2)), int(draw.integers(0, 2))) if place < len(shape) - 1 else (0, 0) for place in range(len(shape))]
        low, high = zip(*around, strict=True)
        value = make("stablehlo.pad", (value, splat(1, drawn.dtype, ())), {"low": low, "high": high, "interior": (0,) * len(shape)})
    if draw.random() < 0.5:
        value = op("multiply", value, splat(2, drawn.dtype, value.tensor.dims))
    if symbol("s") in value.tensor.dims or free != 3 or not isinstance(value.tensor.dims[axis], int):
        drawn.inputs.append(input_term("sizes", TensorType(F32, (symbol("n"), symbol("s")))))
    feeds = {}
    for term in drawn.inputs:
        extents = [evaluate(dim, SIZES) for dim in term.tensor.dims]
        feeds[str(term.attribute("name"))] = draw.integers(-2 if term.tensor.dtype is drawn.dtype else 0, 6, extents).astype(
            term.tensor.dtype.numpy
        )
    return Program(tuple(drawn.inputs), (("y", value),)), feeds


def pointwise(made: Plan) -> Pointwise:
    (kernel,) = (each for each in made.kernels if isinstance(each, Pointwise) and each.stores[0].buffer == "y")
    return kernel


def boxed(made: Plan) -> list[Pointwise]:
    """The boxes of the kernel that stores y."""
    return boxes_of(pointwise(made), made)


@pytest.mark.parametrize("batch", range(4))
def test_drawn_values_put_together(batch: int, interpreter: Runner) -> None:
    in_boxes = 0
    for seed in range(batch * 15, batch * 15 + 15):
        given, feeds = program(seed)
        in_boxes += bool(boxed(plan(given, computes=can_emit)))
        test_triton_plans.check(given, feeds, interpreter, f"seed {seed}:")
    assert in_boxes >= 8, in_boxes


def tables(count: int, width: int, dtype: DType = F32) -> Program:
    """What DLRM gives to its interactions: a row of each of many tables, and another value, side by side."""
    drawn = Drawn(0)
    drawn.dtype = dtype
    value = op("concatenate", *(drawn.rows((40, 1, width)) for _ in range(count)), drawn.input(dtype, 40, 1, width), dimension=1)
    return Program(tuple(drawn.inputs), (("y", value),))


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_rows_of_many_tables_compile(target: str, compiler: Compiler) -> None:
    made = plan(tables(26, 64), computes=can_emit)
    kernel = pointwise(made)
    assert len(boxed(made)) == 27
    assert kernel_source(kernel, made).count("tl.load(") == 2 * 26 + 1
    (found,) = compiler.run(kernel_source(kernel, made), emit(kernel, made).launches, target, {})
    assert not found.spilled


def test_each_program_finds_its_box_by_halves() -> None:
    made = plan(tables(26, 64), computes=can_emit)
    text = kernel_source(pointwise(made), made)
    deepest = max(len(line) - len(line.lstrip()) for line in text.splitlines() if "if program <" in line) // 4
    assert text.count("if program <") == 26 and deepest == 5
    (launch,) = emit(pointwise(made), made).launches
    assert launch.grid == (27 * -(-40 * 64 // dict(launch.constexprs)["BLOCK"]),)


def test_few_values_and_short_rows_are_chosen_under_masks() -> None:
    """Two loads more for each element cost less than a branch is known to gain; pieces of a sector are written by one program together."""
    assert not boxed(plan(tables(2, 64), computes=can_emit))
    assert not boxed(plan(tables(26, 7), computes=can_emit)) and boxed(plan(tables(26, 8), computes=can_emit))
    assert not boxed(plan(tables(26, 15, F16), computes=can_emit)) and boxed(plan(tables(26, 16, F16), computes=can_emit))


def test_a_box_that_reads_most_is_none() -> None:
    """Six parts, of which one is made of as much as all others: under masks little more is read than there."""
    x = [x_(f"x{place}", F32, 4, 16) for place in range(10)]
    whole = x[5]
    for each in x[6:]:
        whole = op("add", whole, each)
    assert boxed(plan(Program(tuple(x[:6]), (("y", op("concatenate", *x[:6], dimension=0)),)), computes=can_emit))
    assert not boxed(plan(Program(tuple(x), (("y", op("concatenate", *x[:5], whole, dimension=0)),)), computes=can_emit))


def test_choices_by_value_are_no_boxes() -> None:
    """Which of the rows is read depends on a number, not on the place."""
    x, chosen = x_("x", F32, 8, 4, 64), x_("chosen", I32)
    value = op(
        "multiply", make("stablehlo.dynamic_slice", (x, chosen, chosen, chosen), {"slice_sizes": (8, 1, 64)}), splat(2, F32, (8, 1, 64))
    )
    assert not boxed(plan(Program((x, chosen), (("y", value),)), computes=can_emit))


def test_boxes_of_choices_under_others() -> None:
    """What is done to a concatenation of concatenations: each part once, none twice."""
    parts = [x_(f"x{place}", F32, 4, 16) for place in range(6)]
    inner = op("concatenate", *parts[:3], dimension=0)
    value = op("exponential", op("concatenate", inner, *parts[3:], reshape(x_("row", F32, 16), (1, 16)), dimension=0))
    made = plan(Program((*parts, x_("row", F32, 16)), (("y", value),)), computes=can_emit)
    (store,) = pointwise(made).stores
    frame = StoreFrame.of(store, pointwise(made).loops)
    assert frame is not None
    cuts = cuts_of(store, frame, 100)
    assert cuts is not None and [(box.low[0], box.high[0]) for box in cuts] == [(at, at + 4) for at in range(0, 24, 4)] + [(24, 25)]
    assert cuts_of(store, frame, 6) is None
    assert add(0, sum(int(box.shape[0]) for box in cuts)) == 25
