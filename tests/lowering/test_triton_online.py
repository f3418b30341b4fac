"""Long and dynamic rows: softmax and normalizations go over a row twice, with the values of three passes; few long rows are split, also
where their length is a symbol."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import coset.dialects  # noqa: F401  (fills the registry)
from coset.backends.triton_runtime import Runner
from coset.ir.dims import Dim, symbol
from coset.ir.program import Program
from coset.ir.types import BF16, F16, F32, F64, DType
from coset.lowering.kernels.kernel import ColumnFold, Load, Loop, Plan, Product, Result, Rows, ScalarConstant, ScalarOp, Store
from coset.lowering.planning.plan import plan
from coset.lowering.triton.online import with_reciprocals
from coset.lowering.triton.source import EmitOptions, Rounding, can_emit, emit
from tests.lowering import plan_numpy
from tests.lowering.plan_cases import fold, softmax_of, x_
from tests.lowering.test_triton_rows import apply, layer_norm, softmax
from tests.lowering.triton_cases import Array, assert_near, run
from tests.sampled import sampled

pytest.importorskip("triton", reason="Triton is not installed")


def logsumexp(rows: Dim, columns: Dim) -> tuple[Rows, Plan]:
    kernel, made = softmax(rows, columns)
    total = apply("add", apply("log", Result("total", F32)), Result("top", F32))
    kernel = replace(kernel, row_stores=(Store("y", (kernel.rows[0].index,), total),), element_stores=())
    return kernel, replace(made, buffers={**made.buffers, "y": replace(made.buffers["y"], shape=(rows,))})


def variance(rows: Dim, columns: Dim, dtype: DType) -> tuple[Rows, Plan]:
    """Two sums: of x, and of the squares of x - c, where c is a thousandth of the first."""
    i, j = Loop("loop:i", rows), Loop("loop:j", columns)
    x = Load("x", (i.index, j.index), dtype)
    off = apply("subtract", x, apply("multiply", Result("total", dtype), ScalarConstant(0.0009765625, dtype), dtype=dtype), dtype=dtype)
    folds = ColumnFold("total", "add", x, dtype), ColumnFold("squares", "add", apply("multiply", off, off, dtype=dtype), dtype)
    kernel = Rows("variance", (i,), (j,), folds, (Store("y", (i.index,), Result("squares", dtype)),), (), terms=("reduce",))
    base = softmax(rows, columns, dtype)[1].buffers
    return kernel, Plan({"x": base["x"], "y": replace(base["y"], shape=(rows,))}, (kernel,), (), ())


def passes(kernel: Rows, made: Plan, options: EmitOptions | None = None) -> int:
    return emit(kernel, made, options=options).source.count(" in range(0, ")


def test_passes_over_a_long_row() -> None:
    n = symbol("n")
    assert passes(*softmax(4, n)) == passes(*softmax(4, 50000)) == passes(*layer_norm(4, 50000)) == 2
    assert passes(*logsumexp(4, n)) == passes(*variance(4, n, F64)) == 1
    assert passes(*softmax(4, n), EmitOptions(rounding=Rounding.EACH)) == 3  # to the bit
    assert passes(*softmax(4, 4096)) == 0  # held in registers


def wild(rows: int, columns: int, seed: int) -> Array:
    """Rows with what is not finite, what cancels and what would overflow."""
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(rows, columns)) * 10.0 ** draw.integers(-3, 2, (rows, 1))
    for row in range(rows):
        place = draw.integers(columns)
        kind = row % 8
        if kind == 1:
            x[row] += 30 * x[row].std()  # a mean that is large beside the deviation
        elif kind == 2:
            x[row, place] = np.nan
        elif kind == 3:
            x[row, place] = np.inf
        elif kind == 4:
            x[row, draw.random(columns) < 0.7] = -np.inf
        elif kind == 5:
            x[row] = -np.inf
        elif kind == 6:
            x[row] = np.sort(x[row] * 100)  # each is the largest so far
        elif kind == 7:
            x[row, place] = 1e4
    return x


def made_of(family: str, rows: int, length: Dim, dtype: DType) -> tuple[Rows, Plan]:
    if family == "layer_norm":
        assert isinstance(length, int)
        return layer_norm(rows, length)
    return logsumexp(rows, length) if family == "logsumexp" else (softmax if family == "softmax" else variance)(rows, length, dtype)


@pytest.mark.parametrize("batch", sampled(range(10)))
@pytest.mark.parametrize("family", ["softmax", "logsumexp", "layer_norm", "variance"])
def test_drawn_long_rows(family: str, batch: int, interpreter: Runner) -> None:
    for seed in range(batch * 6, batch * 6 + 6):
        draw = np.random.default_rng(seed)
        rows, columns = int(draw.integers(1, 10)), int(draw.choice([1, 2, 37, 2047, 2048, 2049, 4500, 8300]))
        dynamic = bool(draw.integers(0, 2)) or columns <= 8192
        length: Dim = symbol("n") if dynamic and family != "layer_norm" else max(columns, 8193)
        columns = length if isinstance(length, int) else columns
        dtype = [F32, F32, BF16, F16][draw.integers(4)] if family == "softmax" else F64 if family == "variance" and seed % 2 else F32
        kernel, made = made_of(family, rows, length, dtype)
        values = {"x": wild(rows, columns, seed).astype(dtype.numpy)}
        for name in ("w", "b"):
            if name in made.buffers:
                values[name] = draw.normal(size=columns).astype(np.float32)
        for name, (found, expected) in run(kernel, made, values, {"n": columns}, interpreter).items():
            kind = made.buffers[name].dtype
            relative = 1e-12 if kind is F64 else 2e-5
            # a mean that is off by some roundings moves what is centered by as much; about it are 30 deviations at most
            absolute = {"layer_norm": 1e-3, "logsumexp": 1e-5}.get(family, 1e-6)
            assert_near(found, expected, kind, relative, absolute, what=f"seed {seed} {family} {name} {rows}x{columns}")


def test_no_columns_is_no_sum(interpreter: Runner) -> None:
    kernel, made = logsumexp(3, symbol("n"))
    found, expected = run(kernel, made, {"x": np.zeros((3, 0), np.float32)}, {"n": 0}, interpreter)["y"]
    assert np.array_equal(found, expected) and np.all(found == -np.inf)


@pytest.mark.parametrize("length", sampled([161, 1, 159, 160, 40000], 5))
@pytest.mark.parametrize("family", ["sum", "maximum", "softmax"])
def test_few_long_rows_are_split_by_what_is_typical(family: str, length: int, interpreter: Runner) -> None:
    """With 200,000 in mind, and right for every length."""
    x = x_("x", F32, 3, symbol("n"))
    y = softmax_of(x) if family == "softmax" else fold(x, "add" if family == "sum" else "maximum", 1)
    made = plan(Program((x,), (("y", y),)), computes=can_emit, binding={"n": 200000})
    assert len(made.kernels) == (3 if family == "softmax" else 2)
    values = np.random.default_rng(2).normal(size=(3, length)).astype(np.float32)

    def before(kernel: Rows | Product, at: plan_numpy._Run) -> None:
        for name, (found, expected) in run(kernel, at.plan, at.memory, at.binding, interpreter).items():
            assert_near(found, expected, F32, 2e-5, 1e-4, what=f"{kernel.name} {name}")

    found = plan_numpy.run(made, {"x": values}, before=before)["y"].astype(np.float64)
    wide = values.astype(np.float64)
    e = np.exp(wide - wide.max(1, keepdims=True))
    expected = {"sum": wide.sum(1), "maximum": wide.max(1), "softmax": e / e.sum(1, keepdims=True)}[family]
    assert np.allclose(found, expected, rtol=1e-5, atol=1e-3)


def test_a_softmax_divides_once_for_each_row() -> None:
    """By a sum of exponentials about their largest, which is 1 or more; other divisors may be next to 0, and where results must be exact
    each element is divided."""
    for columns in (300, 65536):
        kernel, made = softmax(64, columns)
        top = Result("top", F32)
        (store,) = with_reciprocals(kernel).element_stores
        assert isinstance(store.value, ScalarOp) and store.value.op.name == "stablehlo.multiply"
        assert "tl.div_rn(1.0, total)" in emit(kernel, made).source
        assert "tl.div_rn(exponential" in emit(kernel, made, options=EmitOptions(rounding=Rounding.EACH)).source
        other = replace(kernel, folds=(kernel.folds[0], replace(kernel.folds[1], value=kernel.folds[0].value)))
        assert with_reciprocals(other) is other, "a sum of the values themselves"
        again = replace(
            kernel, element_stores=(replace(kernel.element_stores[0], value=apply("divide", kernel.element_stores[0].value, top)),)
        )
        (both,) = with_reciprocals(again).element_stores
        assert isinstance(both.value, ScalarOp) and both.value.op.name == "stablehlo.divide" and both.value.operands == (store.value, top)
        largest = replace(kernel, folds=(replace(kernel.folds[0], combiner="minimum"), kernel.folds[1]))
        assert with_reciprocals(largest) is largest, "about the least, which overflows"


def test_rows_of_nan_and_infinities_are_as_they_were(interpreter: Runner) -> None:
    kernel, made = softmax(6, 300)
    draw = np.random.default_rng(2)
    x = draw.normal(size=(6, 300)).astype(np.float32) * 30
    x[0, 5], x[1, 7], x[2], x[3, :299], x[4, 0] = np.nan, np.inf, -np.inf, -np.inf, -np.inf
    found, expected = run(kernel, made, {"x": x}, {}, interpreter)["y"]
    assert_near(found, expected, F32, 2e-6)
    assert np.isnan(found[:3]).all() and np.isfinite(found[3:]).all()
