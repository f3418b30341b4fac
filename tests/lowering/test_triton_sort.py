"""Sorts in registers: drawn ones against their scalars, every kind of key and order, first elements alone, rows that are too long."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import coset.dialects  # noqa: F401  (fills the registry)
from coset.backends.triton_runtime import TARGETS, Compiler, Runner
from coset.dialects.hub.scalars import cast
from coset.ir.dims import evaluate, product, symbol
from coset.ir.evaluate import evaluate_program
from coset.ir.program import Program
from coset.ir.term import Term, get
from coset.ir.types import BOOL, DTYPES, F16, F32, F64, I32, I64, DType
from coset.lowering.kernels.kernel import Library, Loop, Plan, Result, Sort, Store
from coset.lowering.planning import sorting
from coset.lowering.planning.plan import plan
from coset.lowering.triton.source import EmitOptions, Rounding, can_emit, emit, kernel_source
from coset.rules.definition import evaluate_defined
from tests.lowering.drawn_kernels import Array, Drawing
from tests.lowering.plan_cases import op, x_
from tests.lowering.triton_cases import assert_same, run

pytest.importorskip("triton", reason="Triton is not installed")
EACH = EmitOptions(rounding=Rounding.EACH)
DIRECTIONS = ("LT", "GT", "LE", "GE")


def drawn(seed: int) -> tuple[Drawing, Sort]:
    """Wild keys with many that are equal, or NaN; two operands, of which the second is a prologue."""
    drawing = Drawing(seed)
    draw = drawing.draw
    rows = drawing.loops("i", int(draw.integers(0, 3)), extents=(1, 2, 3, 9))
    (column,) = drawing.loops("c", 1, extents=(2, 3, 8, 17, 64), dynamic=0.0)
    length = evaluate(column.extent, {})
    count = int(draw.choice([1, 2, length])) if length > 3 else length
    front = (Loop("loop:f0", count),) if count > 1 else ()
    key = drawing.load(drawing.dtype(), (*rows, column))
    other = drawing.scalar(drawing.dtype(), (*rows, column), int(draw.integers(0, 2)), [])
    index = tuple(loop.index for loop in (*rows, *front))
    shape = tuple(loop.extent for loop in (*rows, *front))
    stores = []
    for place, value in enumerate((key, other)):
        drawing.buffer(f"y{place}", value.dtype, shape, "output", filled=False)
        stores.append(Store(f"y{place}", index, Result(f"sorted{place}", value.dtype)))
    total = bool(draw.random() < 0.3)
    return drawing, Sort(f"k{seed}", rows, column, front, key, (key, other), str(draw.choice(DIRECTIONS)), total, tuple(stores))


@pytest.mark.parametrize("batch", range(2))
def test_drawn_kernels(batch: int, interpreter: Runner) -> None:
    for seed in range(batch * 15, batch * 15 + 15):
        drawing, kernel = drawn(seed)
        found = run(kernel, Plan(drawing.buffers, (kernel,), (), ()), drawing.values, drawing.binding, interpreter, EACH)
        for name, (value, expected) in found.items():
            assert_same(value, expected, drawing.buffers[name].dtype, f"seed {seed}, {kernel.direction} {name}")


def keys(dtype: DType, shape: tuple[int, ...]) -> Array:
    """Few numbers, so that most are equal to some; zeros of both signs, infinities, NaN of both signs; the ends of integers."""
    draw = np.random.default_rng(2)
    if dtype is BOOL:
        return draw.integers(0, 2, shape).astype(bool)
    if dtype.kind == "float":
        special = np.array([0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1.0, -1.5, 2.0**-14, 300.0])
        return cast(draw.choice(special, shape), dtype)
    info = np.iinfo(dtype.numpy)
    ends = np.array([info.min, info.min + 1, info.max, info.max - 1, 0, 1, info.max // 3, info.max // 2 + 1], dtype.numpy)
    return draw.choice(ends, shape)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("name", ["f32", "f16", "f64", "f8e5m2", "i8", "i64", "u32", "u64", "bool"])
def test_the_order_is_stable_and_the_hub_s(name: str, direction: str, interpreter: Runner) -> None:
    """The places say which of equal elements is which."""
    dtype = DTYPES[name]
    for total in (False, True) if dtype.kind == "float" else (False,):
        x, at = x_("x", dtype, 2, 21), op("iota", shape=(2, 21), dtype=I32, dimension=1)
        both = op("sort", x, at, dimension=1, direction=direction, is_stable=True, total=total)
        program = Program((x,), (("values", get(both, 0)), ("places", get(both, 1))))
        made = plan(program, computes=can_emit)
        (kernel,) = made.kernels
        feeds = {"x": keys(dtype, (2, 21))}
        found = run(kernel, made, feeds, {}, interpreter)
        expected = evaluate_program(program, feeds)
        for (output, buffer), value in zip(made.outputs, expected, strict=True):
            assert_same(found[buffer][0], np.asarray(value), made.buffers[buffer].dtype, f"{output} total={total}")


# ---------------------------------------------------------------- first elements, and what is no kernel


def top(x: Term, count: int, axis: int = -1, largest: int = 1) -> list[Term]:
    both = op("onnx.TopK", x, k=count, axis=axis, largest=largest)
    return [get(both, 0), get(both, 1)]


def kernels(inputs: tuple[Term, ...], *roots: Term) -> list[str]:
    program = Program(inputs, tuple((f"y{i}", root) for i, root in enumerate(roots)))
    return [type(kernel).__name__ for kernel in plan(program, computes=can_emit).kernels]


@pytest.mark.parametrize(("axis", "largest", "used"), [(-1, 1, (0, 1)), (0, 0, (0, 1)), (1, 1, (1,)), (1, 0, (0,))])
def test_of_the_first_elements_no_more_is_kept(axis: int, largest: int, used: tuple[int, ...], interpreter: Runner) -> None:
    x = x_("x", F16, 10, 8, 9)
    parts = top(op("abs", x), 3, axis, largest)
    program = Program((x,), tuple((f"y{i}", op("negate", parts[i]) if i == 0 else parts[i]) for i in used))
    made = plan(program, computes=can_emit)
    (kernel,) = made.kernels
    assert isinstance(kernel, Sort) and product(loop.extent for loop in kernel.front) == 3
    feeds = {"x": keys(F16, (10, 8, 9))}
    found = run(kernel, made, feeds, {}, interpreter, EACH)
    for (_, buffer), value in zip(made.outputs, evaluate_program(program, feeds, fallback=evaluate_defined), strict=True):
        assert_same(found[buffer][0], np.asarray(value), made.buffers[buffer].dtype)


def test_a_router_and_a_sort_are_one_kernel_each() -> None:
    n = symbol("n")
    x, w = x_("x", F32, n, 16), x_("w", F32, n, 64)
    assert kernels((w,), *top(w, 2)) == ["Sort"]
    assert kernels((x,), op("negate", op("sort", x, dimension=1, direction="GT"))) == ["Sort"]
    at = op("iota", shape=(n, 16), dtype=I64, dimension=1)
    argsort = op("sort", x, at, dimension=1, direction="LT")
    assert kernels((x,), get(argsort, 1)) == ["Sort"]


def test_what_is_used_whole_is_sorted_whole() -> None:
    x = x_("x", F32, 8, 64)
    both = op("sort", x, op("iota", shape=(8, 64), dtype=I32, dimension=1), dimension=1, direction="GT")
    part = op("slice", get(both, 0), start=(0, 0), limit=(8, 2), strides=(1, 1))
    for roots in ((part, get(both, 1)), (part, op("slice", get(both, 1), start=(0, 1), limit=(8, 2), strides=(1, 1)))):
        made = plan(Program((x,), tuple((f"y{i}", root) for i, root in enumerate(roots))), computes=can_emit)
        (kernel,) = (each for each in made.kernels if isinstance(each, Sort))
        assert kernel.front[0].extent == 64


@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("name", ["f32", "i8"])
def test_the_first_elements_of_long_rows_are_those_of_their_parts(name: str, largest: int, interpreter: Runner, monkeypatch: Any) -> None:
    """Equal elements of several parts; the last part is filled up with what is as large, or as small, as elements are."""
    monkeypatch.setattr(sorting, "LONGEST", 32)
    x = x_("x", DTYPES[name], 3, 101)
    parts = top(x, 5, 1, largest)
    program = Program((x,), (("values", parts[0]), ("places", parts[1])))
    made = plan(program, computes=can_emit)
    memory = {"x": keys(DTYPES[name], (3, 101))}
    memory["x"][1] = memory["x"][1, 0] if name == "i8" else -np.inf  # a row of one number
    memory["x"][2, :] = np.nan if name == "f32" else 127
    feeds = dict(memory)
    assert [type(kernel) for kernel in made.kernels] == [Sort, Sort]
    for kernel in made.kernels:
        memory |= {each: value for each, (value, _) in run(kernel, made, memory, {}, interpreter).items()}
    for (_, buffer), value in zip(made.outputs, evaluate_program(program, feeds, fallback=evaluate_defined), strict=True):
        assert_same(memory[buffer], np.asarray(value), made.buffers[buffer].dtype)
    whole = plan(Program((x,), (("values", top(x, 9, 1, largest)[0]),)), computes=can_emit)
    assert [each.term.op.name for each in whole.kernels if isinstance(each, Library)] == ["stablehlo.sort"]  # of four parts too many


def test_elements_that_no_kernel_holds_are_sorted_by_torch() -> None:
    x, y = x_("x", F32, 4, 20), x_("y", DTYPES["c64"], 4, 20)
    both = op("sort", x, y, dimension=1, direction="LT")
    first = op("slice", get(both, 1), start=(0, 0), limit=(4, 3), strides=(1, 1))
    made = plan(Program((x, y), (("first", first),)), computes=can_emit)
    assert "stablehlo.sort" in [each.term.op.name for each in made.kernels if isinstance(each, Library)]


def test_rows_that_are_too_long_are_torch_s_and_that_is_said() -> None:
    for dtype, length in ((F32, 4097), (I64, 1025), (F32, symbol("n"))):
        x = x_("x", dtype, 4, length)
        made = plan(Program((x,), (("y", op("sort", x, dimension=1, direction="LT")),)), computes=can_emit)
        assert [type(kernel) for kernel in made.kernels] == [Library]
        assert any("are sorted by torch: one program holds" in note for note in made.notes)
    x = x_("x", F32, 4, 4096)
    assert kernels((x,), op("sort", x, dimension=1, direction="LT")) == ["Sort"]


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_sorts_compile_ahead_of_time(target: str, compiler: Compiler) -> None:
    x, w, v = x_("x", F32, 300, 1000), x_("w", F32, symbol("n"), 64), x_("v", F64, 5, 20)
    sort = [((x,), [op("sort", x, dimension=1, direction="LT")])] * (target == "sm_80")  # the network of a long row compiles for seconds
    for inputs, roots in (*sort, ((w,), top(w, 2)), ((v,), top(v, 5))):
        made = plan(Program(inputs, tuple((f"y{i}", root) for i, root in enumerate(roots))), computes=can_emit)
        (kernel,) = made.kernels
        for compiled in compiler.run(kernel_source(kernel, made), emit(kernel, made).launches, target, {}):
            assert compiled.spilled == 0
