"""Scatters: drawn ones in every form against their scalars, programs against the hub's meaning, what is opened for whom, ahead of time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import coset.dialects  # noqa: F401  (fills the registry)
from coset.backends.triton_runtime import TARGETS, Compiler, Runner
from coset.ir.dims import Dim, evaluate, symbol
from coset.ir.evaluate import evaluate_program
from coset.ir.op import get_op
from coset.ir.program import Program
from coset.ir.term import Term
from coset.ir.types import BF16, BOOL, DTYPES, F16, F32, F64, I32, I64, DType
from coset.lowering.kernels.kernel import Library, Load, Plan, Result, Scalar, ScalarOp, Scatter, Store
from coset.lowering.planning.kinds import wide
from coset.lowering.planning.plan import plan
from coset.lowering.triton.source import EmitOptions, Rounding, can_emit, emit, kernel_source
from tests.lowering import plan_cases
from tests.lowering.drawn_kernels import Drawing
from tests.lowering.plan_cases import x_
from tests.lowering.triton_cases import assert_near, assert_same, run

pytest.importorskip("triton", reason="Triton is not installed")
Array = np.ndarray[Any, Any]
EACH = EmitOptions(rounding=Rounding.EACH)
KINDS = tuple(DTYPES[name] for name in ("f32", "f32", "f16", "bf16", "f64", "i32", "i64", "i8", "u8", "u32", "bool"))
WHOLE = tuple(DTYPES[name] for name in ("i32", "i64", "u32", "u64"))


def combiners(dtype: DType) -> list[str]:
    plain = ["add", "multiply", "maximum", "minimum", "second"]
    return ["and", "or", "maximum", "second"] if dtype is BOOL else plain + (["and", "or"] if dtype.kind != "float" else [])


def drawn(seed: int) -> tuple[Drawing, Scatter]:
    """Small integers, so that sums in every order are the same. Keys name rows that are none, too."""
    form = ("sorted", "loop", "atomic")[seed % 3]
    drawing = Drawing(seed, tame=True, dtypes=WHOLE if form == "atomic" else KINDS)
    draw = drawing.draw
    rows = drawing.loops("r", 1, extents=(1, 2, 3, 9, 40))
    columns = drawing.loops("c", int(draw.integers(0, 3)), extents=(1, 2, 3, 8, 33))
    updates = drawing.loops("s", 1, extents=(1, 2, 5, 17, 100), dynamic=0.1)
    height, count = (evaluate(loops[0].extent, drawing.binding) for loops in (rows, updates))
    dtype = drawing.dtype()
    keys = draw.integers(-2, height + 3, count).astype(draw.choice([np.int32, np.int64]))
    kind = DTYPES[f"i{8 * keys.itemsize}"]
    drawing.buffer("keys", kind, (updates[0].extent,), "input", filled=False)
    drawing.values["keys"] = np.sort(keys) if form == "sorted" else keys
    key = Load("keys", (updates[0].index,), kind)
    base = drawing.scalar(dtype, (*rows, *columns), int(draw.integers(0, 2)), [])
    value = drawing.scalar(dtype, (*updates, *columns), int(draw.integers(0, 3)), [])
    offered = ["add", "maximum", "minimum", "and", "or"] if form == "atomic" else combiners(dtype)
    result: Scalar = Result("sum", wide(dtype))
    stores = [Store("y", tuple(loop.index for loop in (*rows, *columns)), result)]
    drawing.buffer("y", wide(dtype), tuple(loop.extent for loop in (*rows, *columns)), "output", filled=False)
    if form != "atomic" and drawing.chance(0.5) and dtype is not BOOL:
        more = ScalarOp(get_op("stablehlo.add"), (result, drawing.scalar(wide(dtype), (*rows, *columns), 1, [])), wide(dtype))
        stores.append(drawing.store(more, (*rows, *columns)))
    combiner = str(draw.choice(offered))
    return drawing, Scatter(f"k{seed}", rows, columns, updates, base, key, value, combiner, wide(dtype), form, tuple(stores))


@pytest.mark.parametrize("batch", range(6))
def test_drawn_kernels(batch: int, interpreter: Runner) -> None:
    for seed in range(batch * 12, batch * 12 + 12):
        drawing, kernel = drawn(seed)
        found = run(kernel, Plan(drawing.buffers, (kernel,), (), ()), drawing.values, drawing.binding, interpreter, EACH)
        for name, (value, expected) in found.items():
            assert_near(value, expected, drawing.buffers[name].dtype, 1e-6, absolute=1e-5, what=f"seed {seed}, {kernel.form} {name}")


# ---------------------------------------------------------------- from programs


def scatter(x: Term, places: Term, updates: Term, combiner: str = "add", **given: Any) -> Program:
    found = plan_cases.scatter_rows(x, places, updates, combiner, **given)
    return Program(tuple(term for term in (x, places, updates) if term.op.name == "builtin.input"), (("y", found),))


def sized(rows: Dim, count: Dim, columns: Dim, dtype: DType = F32, index: DType = I64, combiner: str = "add", **given: Any) -> Program:
    return scatter(x_("x", dtype, rows, columns), x_("i", index, count), x_("u", dtype, count, columns), combiner, **given)


def forms(program: Program, **given: Any) -> list[str]:
    """The kinds of a plan's kernels, of scatters their forms."""
    return [getattr(kernel, "form", type(kernel).__name__) for kernel in plan(program, computes=can_emit, **given).kernels]


def test_sizes_say_how_the_updates_of_a_row_are_found() -> None:
    n = symbol("n")
    assert forms(sized(100, 20, 8)) == ["loop"]
    assert forms(sized(100, 20, 8, combiner="second")) == ["loop"]
    for program in (sized(100, 400, 8), sized(n, 400, 8), sized(100, n, n), sized(100, 400, 8, combiner="second")):
        assert forms(program)[-1] == "sorted" and "Scatter" not in forms(program)
    assert forms(sized(100, 400, 8, indices_are_sorted=True)) == ["sorted"]
    wide_index = forms(sized(100, 400, 8, index=DTYPES["u64"], indices_are_sorted=True))
    assert wide_index == ["Sort", "sorted"]  # as i64 those of 2^63 and more do not ascend


def test_only_what_may_differ_between_runs_is_atomic() -> None:
    assert forms(sized(100, 400, 8, I32)) == forms(sized(100, 400, 8, I64, combiner="maximum")) == ["atomic"]
    assert forms(sized(100, 400, 8, I32, combiner="second"))[-1] == forms(sized(100, 400, 8, I32, combiner="multiply"))[-1] == "sorted"
    assert forms(sized(100, 400, 8, DTYPES["i8"]))[-1] == "sorted"  # no instruction
    assert forms(sized(100, 400, 8))[-1] == "sorted"
    assert forms(sized(100, 400, 8), atomics=True) == ["atomic"]
    assert forms(sized(100, 400, 8, combiner="maximum"), atomics=True)[-1] == "sorted"  # NaN wins, which no instruction does
    assert forms(sized(100, 400, 8, F16), atomics=True)[-1] == "sorted"  # each sum would be rounded


def test_onnx_s_and_torch_s_spellings_are_kernels() -> None:
    """Index vectors, one axis of equal dims, a cache."""
    x, u, n = x_("x", F32, 9, 8, 4), x_("u", F32, 70, 4), symbol("n")
    vectors, along = x_("vectors", I64, 70, 2), x_("along", I64, 9, 50, 4)
    nd = plan_cases.op("onnx.ScatterND", x, vectors, u, combiner="maximum")
    assert forms(Program((x, vectors, u), (("y", nd),)))[-1] == "sorted"
    elements = plan_cases.op("onnx.ScatterElements", x, along, x_("v", F32, 9, 50, 4), axis=1, combiner="add")
    assert forms(Program((x, along, elements.operands[2]), (("y", elements),)))[-1] == "sorted"
    new, start = x_("new", F32, n, 1, 4), x_("start", I64, n)
    cache = plan_cases.op("onnx.TensorScatter", x_("old", F32, n, 8, 4), new, start, axis=1)
    assert forms(Program((cache.operands[0], new, start), (("y", cache),)))[-1] == "sorted"


def test_a_bag_of_rows_is_one_kernel() -> None:
    """Gathered and folded: of equal sizes as rows, of segments as a scatter whose keys ascend."""
    table, ids, n = x_("table", F32, 30, 8), x_("ids", I64, symbol("n"), 6), symbol("n")
    rows = plan_cases.op("onnx.Gather", table, ids, axis=0)
    for combiner in ("add", "maximum"):
        bags = plan_cases.fold(rows, combiner, 1)
        assert forms(Program((table, ids), (("y", plan_cases.op("divide", bags, plan_cases.like(6, bags))),))) == ["Rows"]
    flat, bag = x_("flat", I64, n), x_("bag", I32, n)
    of_segments = scatter(x_("y", F32, 9, 8), bag, plan_cases.op("onnx.Gather", table, flat, axis=0), indices_are_sorted=True)
    assert forms(Program((*of_segments.inputs, table, flat), of_segments.outputs)) == ["sorted"]


def test_windows_that_move_are_a_library_s() -> None:
    x, places, updates = x_("x", F32, 9, 8), x_("i", I32, 5, 1), x_("u", F32, 5, 2, 8)
    given = {"update_window_dims": (1, 2), "inserted_window_dims": ()}
    assert forms(scatter(x, places, updates, **given)) == ["Library"]
    part = x_("u", F32, 5, 3)
    assert forms(scatter(x, x_("i", I32, 5), part)) == ["Library"]  # a window of some columns


@pytest.mark.parametrize("combiner", ["add", "maximum", "minimum", "second"])
@pytest.mark.parametrize("count", [20, 90, 500])
def test_what_is_not_finite_is_combined_as_the_hub_says(count: int, combiner: str, interpreter: Runner, monkeypatch: Any) -> None:
    """NaN, infinities and signed zeros; keys before the first row and behind the last one; rows without an update."""
    draw = np.random.default_rng(count)
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, 2.0], np.float32)
    few = draw.choice(special, (count, 3), p=[0.02] * 3 + [0.235] * 4)
    feeds = {"x": draw.choice(special[3:], (12, 3)), "i": draw.integers(-3, 15, count), "u": few}
    feeds["i"][feeds["i"] == 7] = -(1 << 40)
    program = sized(12, count, 3, combiner=combiner)
    made = plan(program, computes=can_emit)
    memory = dict(feeds)
    for kernel in made.kernels:
        if not isinstance(kernel, Library):
            found = run(kernel, made, memory, {}, interpreter)
            memory |= {name: value for name, (value, _) in found.items()}
        else:
            order = np.argsort(memory[kernel.operands[0]], kind="stable")
            memory |= {result: memory[operand][order] for result, operand in zip(kernel.results, kernel.operands, strict=True)}
    (expected,) = evaluate_program(program, feeds)
    assert_same(memory["y"], np.asarray(expected), F32)


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_scatters_compile_ahead_of_time(target: str, compiler: Compiler) -> None:
    n = symbol("n")
    programs = [
        (sized(50000, 4096, 768), {}), (sized(64, 100000, 128), {}), (sized(n, n, n, BF16), {}),
        (sized(3, 9, 4096, F16, combiner="second"), {}),
        (sized(50000, 4096, 768, I32), {}), (sized(50000, 4096, 768), {"atomics": True}), (sized(50000, 4096, 1, F64, I32), {}),
        (sized(100, 4096, 8, DTYPES["u64"], combiner="maximum"), {}),
    ]  # fmt: skip
    for program, given in programs:
        made = plan(program, computes=can_emit, **given)
        for kernel in made.kernels:
            if isinstance(kernel, Scatter):
                for compiled in compiler.run(kernel_source(kernel, made), emit(kernel, made).launches, target, {}):
                    assert compiled.spilled == 0
