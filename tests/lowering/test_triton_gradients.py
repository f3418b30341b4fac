"""Gradients of attention in Triton's interpreter give what the definition says in f64: drawn shapes, masks of every kind, groups of heads,
lengths that are not known, beside the attention itself and alone; and none of their scores is in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import coset.dialects  # noqa: F401  (fills the registry)
from coset.backends.triton_runtime import Runner, TritonInterpreter
from coset.ir.builtin import absent
from coset.ir.dims import Dim, add, evaluate, product, subtract, symbol
from coset.ir.evaluate import evaluate_program
from coset.ir.op import get_op
from coset.ir.program import Program
from coset.ir.term import Term, input_term, make
from coset.ir.types import BF16, F16, F32, F64, I32, DType, TensorType
from coset.lowering.kernels.kernel import (
    Attention,
    Chain,
    Choose,
    Dot,
    InBounds,
    Kernel,
    Load,
    Loop,
    Pick,
    Plan,
    Result,
    Scalar,
    ScalarConstant,
    ScalarOp,
    Slope,
    Statistics,
    Store,
    Sum,
    scalars,
    writes,
)
from coset.lowering.kernels.renaming import mapped_kernel
from coset.lowering.planning.attention_gradients import DEPTHS
from coset.lowering.planning.plan import plan
from coset.lowering.triton.alternatives import alternatives
from coset.lowering.triton.source import EmitOptions, Rounding, can_emit, emit
from coset.rules.definition import evaluate_defined
from tests.lowering.attention_cases import FLOATS, SIDES, Backward, Case, drawn_case, values_for
from tests.lowering.drawn_kernels import Drawing
from tests.lowering.plan_numpy import run as run_plan
from tests.lowering.triton_cases import FINEST, assert_near, run
from tests.sampled import sampled

pytest.importorskip("triton", reason="Triton is not installed")
Array = np.ndarray[Any, Any]
EACH = EmitOptions(rounding=Rounding.EACH)


def check(
    given: Backward,
    binding: dict[str, int],
    values: dict[str, Array],
    interpreter: Runner,
    what: str,
    options: Callable[[Kernel], EmitOptions] = lambda _: EmitOptions(),
) -> Plan:
    """Run the plan kernel by kernel; each beside the NumPy execution of its scalars, the results beside the definition."""
    planned = plan(given.program(), computes=can_emit)
    memory = {buffer: values[name] for name, buffer in planned.inputs}
    for kernel in planned.kernels:
        for name, (found, _) in run(kernel, planned, memory, binding, interpreter, options(kernel)).items():
            memory[name] = found
    dtype = given.case.dtype
    expected = given.bounded(values, FINEST[dtype.name], FINEST["f64" if dtype is F64 else "f32"])
    for name, buffer in planned.outputs:
        right, allowed = expected[name]
        assert_near(memory[buffer], right.astype(dtype.numpy), dtype, 0.0, absolute=allowed, what=f"{what}, {name}")
    return planned


def kinds(planned: Plan) -> list[type]:
    return [type(kernel) for kernel in planned.kernels]


def no_scores(planned: Plan, case: Case) -> None:
    """Nothing with an element for each query and each key is written."""
    for kernel in planned.kernels:
        for name in writes(kernel):
            assert tuple(planned.buffers[name].shape[-2:]) != (case.length, case.keys), name


# ---------------------------------------------------------------- kernels drawn as kernels


def drawn(seed: int) -> tuple[Drawing, Statistics | Chain]:
    """Any scalars for operands, scores, weights and results, over any loops; some with ends of what is summed."""
    drawing = Drawing(seed, tame=True, dtypes=FLOATS)
    chance, integers = drawing.chance, drawing.draw.integers
    accumulator = F64 if chance(0.2) else F32
    batch = drawing.loops("b", int(integers(0, 2)), extents=(1, 2, 3))
    rows, summed = (drawing.loops(role, int(integers(1, 3)), extents=(1, 2, 5, 17, 33)) for role in "ms")
    while evaluate(product(loop.extent for loop in (*batch, *rows, *summed)), drawing.binding) > 4000:
        rows, summed = rows[:1], summed[:1]
    at, places = (*batch, *rows), (*batch, *rows, *summed)

    def dtype() -> DType:
        found = drawing.dtype()
        return found if (found is F64) == (accumulator is F64) else accumulator

    dots = []
    for count in range(int(integers(1, 3))):
        depth = drawing.loops(f"k{count}", int(integers(0, 2)), extents=(1, 4, 16, 19), dynamic=0.0)
        sides = (drawing.scalar(dtype(), (*batch, *own, *depth), int(integers(0, 2)), []) for own in (rows, summed))
        dots.append(Dot(f"dot{count}", depth, *sides, accumulator))
    low, high, bounds = _drawn_ends(drawing, rows[-1], summed[-1])

    def made(outside: float) -> Scalar:
        value = drawing.scalar(accumulator, places, 2, [Result(dot.name, accumulator) for dot in dots])
        return Choose(bounds, value, ScalarConstant(outside, accumulator), accumulator) if bounds else value

    def stored(name: str, own: tuple[Loop, ...]) -> Store:
        value: Scalar = Result(name, accumulator)
        if chance(0.4):
            value = ScalarOp(get_op("stablehlo.add"), (value, drawing.scalar(accumulator, own, 1, [])), accumulator)
        return drawing.store(value, own)

    common = (f"k{seed}", batch, rows, summed, tuple(dots))
    if chance(0.5):
        slopes = tuple(Slope(f"slope{count}", made(0.0)) for count in range(int(integers(0, 3))))
        safe = bool(bounds) or chance(0.5)
        stores = tuple(stored(name, at) for name in ("top", "share", *(slope.name for slope in slopes)))
        return drawing, Statistics(*common, made(-np.inf), slopes, accumulator, safe, low, high, stores)
    sums = []
    for count in range(int(integers(1, 3))):
        columns = drawing.loops(f"n{count}", int(integers(0, 2)), extents=(1, 4, 16, 19), dynamic=0.0)
        sums.append(Sum(f"sum{count}", columns, made(0.0), drawing.scalar(dtype(), (*batch, *summed, *columns), int(integers(0, 2)), [])))
    return drawing, Chain(*common, tuple(sums), accumulator, low, high, tuple(stored(each.name, (*at, *each.n)) for each in sums))


def _drawn_ends(drawing: Drawing, row: Loop, inner: Loop) -> tuple[Dim | None, Dim | None, tuple[InBounds, ...]]:
    """Ends along `inner` for each `row`, and the condition that they say."""
    if drawing.chance(0.5):
        return None, None, ()
    low = add(row.index, int(drawing.draw.integers(-20, 6))) if drawing.chance(0.5) else None
    high = add(row.index, int(drawing.draw.integers(-2, 20))) if low is None or drawing.chance(0.3) else None
    return low, high, (InBounds(inner.index, 0 if low is None else low, inner.extent if high is None else high),)


def check_drawn(seed: int, options: EmitOptions, interpreter: Runner) -> None:
    drawing, kernel = drawn(seed)
    planned = Plan(drawing.buffers, (kernel,), (), ())
    for name, (value, expected) in run(kernel, planned, drawing.values, drawing.binding, interpreter, options).items():
        largest = float(np.nanmax(np.where(np.isinf(expected), 0, np.abs(expected.astype(np.float64))), initial=1.0))
        narrow = max([2.0**-23, *(FINEST[each.value.dtype.name] for each in getattr(kernel, "sums", ()))])
        what = f"seed {seed}, {name}, {options.choice}"
        assert_near(value, expected, drawing.buffers[name].dtype, 1e-6, absolute=32 * narrow * largest, what=what)


@pytest.mark.parametrize("batch", sampled(range(6)))
def test_drawn_kernels(batch: int, interpreter: Runner) -> None:
    for seed in range(batch * 20, batch * 20 + 20):
        check_drawn(seed, EACH, interpreter)


@pytest.mark.parametrize("batch", range(2))
def test_drawn_kernels_with_other_tiles(batch: int, interpreter: Runner) -> None:
    for seed in range(200 + batch * 20, 220 + batch * 20):
        drawing, kernel = drawn(seed)
        default = emit(kernel, Plan(drawing.buffers, (kernel,), (), ()), options=EACH).choice
        assert default is not None
        others = alternatives(kernel, default, EACH, drawing.binding)[1:]
        check_drawn(seed, replace(EACH, choice=others[seed % len(others)]), interpreter)


def test_products_are_rounded_where_each_value_is(interpreter: Runner) -> None:
    """The largest of rounded scores is one of them, to the bit."""
    given = Backward(Case((2,), (), 20, 24, 16, 16, BF16), alone=True)
    planned = plan(given.program(), computes=can_emit)
    values = values_for(given, {}, 3)
    kernel = planned.kernels[0]
    assert isinstance(kernel, Statistics) and kernel.dots[0].dtype is BF16
    assert {item.dtype for item in scalars(kernel.score) if isinstance(item, Result)} == {BF16}
    found = run(kernel, planned, {buffer: values[name] for name, buffer in planned.inputs}, {}, interpreter, EACH)
    (top,) = (store.buffer for store in kernel.stores if any(isinstance(x, Result) and x.name == "top" for x in scalars(store.value)))
    np.testing.assert_array_equal(*found[top])


# ---------------------------------------------------------------- programs


@pytest.mark.parametrize("batch", sampled(range(4)))
def test_drawn_gradients(batch: int, interpreter: Runner) -> None:
    """Drawn shapes and masks against the definition in f64, some beside the attention."""
    for seed in range(batch * 9, batch * 9 + 9):
        case, binding = drawn_case(5000 + seed)
        sides = tuple(np.random.default_rng(seed).permutation(SIDES)[: 3 if seed % 3 else 1])
        given = Backward(case, bool(seed % 2), sides)
        planned = check(given, binding, values_for(given, binding, seed), interpreter, f"seed {seed}: {given}")
        assert set(kinds(planned)) <= {Attention, Statistics, Chain}


@pytest.mark.parametrize("alone", [False, True])
def test_keys_and_values_have_one_kernel(alone: bool) -> None:
    """One finds the numbers of rows, one goes through the keys and one through the queries; none writes scores."""
    case = Case((2,), (3,), 40, 56, 16, 24, F16, "causal", 0.25)
    planned = plan(Backward(case, alone=alone).program(), computes=can_emit)
    assert kinds(planned) == [*([] if alone else [Attention]), Statistics, Chain, Chain]
    assert [len(kernel.sums) for kernel in planned.kernels if isinstance(kernel, Chain)] == [1, 2]
    no_scores(planned, case)


def sums_alike(dtype: DType) -> bool:
    """True where NumPy, which the interpreter multiplies by, has the same bits for an element whatever the size of the matrix is and
    whichever operand stands first: its BLAS does not on processors with AVX2 alone. Matrix units do."""
    draw = np.random.default_rng(0)
    left, right = draw.normal(size=(64, 16)).astype(dtype.numpy), draw.normal(size=(16, 64)).astype(dtype.numpy)
    whole, turned = left @ right, np.ascontiguousarray(right.T) @ np.ascontiguousarray(left.T)
    return np.array_equal(whole, turned.T) and all(np.array_equal(left[:n] @ right[:, :n], whole[:n, :n]) for n in (16, 32))


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
def test_a_weight_of_one_lets_no_gradient_through(dtype: DType, alone: bool, interpreter: Runner) -> None:
    """Where one score is far above all others the mean of what reached the weights is what reached that one, to the bit: on huge inputs
    the rounding of a sum in another order would be a huge gradient where there is none."""
    if isinstance(interpreter, TritonInterpreter) and not sums_alike(dtype):
        pytest.skip("NumPy's sums depend on the shape of the matrices on this processor")
    for sizes in ((40, 56, 16), (70, 33, 24), (5, 7, 8)):
        given = Backward(Case((2,), (3,), *sizes, 40, dtype, "causal" if sizes[0] == 40 else "none"), alone)
        values = {name: value * 1e4 for name, value in values_for(given, {}, 3).items()}
        assert (given.reference(values)["dquery"] == 0).all(), "these scores are too near to each other"
        planned = plan(given.program(), computes=can_emit)
        memory = {buffer: values[name] for name, buffer in planned.inputs}
        for kernel in planned.kernels:
            memory |= {name: found for name, (found, _) in run(kernel, planned, memory, {}, interpreter).items()}
        assert not memory["dquery"].any() and not memory["dkey"].any() and memory["dvalue"].any()


def test_causal_masks_bound_the_loops() -> None:
    """Keys that no query of a tile sees are not looked at, and neither are queries that see no key of a tile."""
    case = Case((), (2,), 40, 56, 16, 16, F32, "causal", offset=16)
    rows, query, key = plan(Backward(case, alone=True).program(), computes=can_emit).kernels
    assert isinstance(rows, Statistics) and isinstance(query, Chain) and isinstance(key, Chain)
    last, first = query.rows[-1].index, key.rows[-1].index
    assert rows.high == query.high == add(last, 17) and key.low == add(first, -16)
    assert rows.low is None and query.low is None and key.high is None


FILLS = [
    (-np.inf, 0, False, True), (-1e4, 0, False, False), (-3e38, 0, False, True), (-3e38, -2, False, False),
    (-np.inf, -2, False, False), (-np.inf, -2, True, True),
]  # fmt: skip


@pytest.mark.parametrize("fill, offset, safe, bounded", FILLS)
def test_a_bound_needs_a_fill_that_has_no_weight(fill: float, offset: int, safe: bool, bounded: bool) -> None:
    """A fill that may have a weight, and rows that see nothing, look at all keys."""
    case = Case((), (), 40, 56, 16, 16, F32, "causal", offset=offset, fill=fill, safe=safe)
    for kernel in plan(Backward(case, alone=True).program(), computes=can_emit).kernels:
        assert isinstance(kernel, Statistics | Chain)
        assert ((kernel.low, kernel.high) != (None, None)) == bounded


@pytest.mark.parametrize("safe, fill", [(False, -np.inf), (True, -np.inf), (False, -1e4)])
def test_rows_that_see_nothing(safe: bool, fill: float, interpreter: Runner) -> None:
    """They have no part in gradients if they are safe, and else make them NaN; filled with a number they weigh all keys alike."""
    given = Backward(Case((), (), 5, 40, 8, 8, F32, "boolean", fill=fill, safe=safe), alone=True)
    values = values_for(given, {}, 3)
    values["mask"][2] = False
    check(given, {}, values, interpreter, f"safe {safe}")


def test_the_same_scores_safe_and_not(interpreter: Runner) -> None:
    """A row that sees nothing has no weights in one, and NaN in the other, whose loops have no bounds; neither has the other's rows."""
    cases = [Case((), (), 5, 40, 8, 8, F32, "causal", offset=-2, safe=safe) for safe in (False, True)]
    programs = [Backward(case, alone=True).program() for case in cases]
    both = Program(
        programs[0].inputs, tuple((f"{name} {place}", call) for place, each in enumerate(programs) for name, call in each.outputs), None
    )
    planned = plan(both, computes=can_emit)
    assert sorted(kind.__name__ for kind in kinds(planned)) == ["Chain"] * 4 + ["Statistics"] * 2
    values = values_for(Backward(cases[0], alone=True), {}, 3)
    memory = {buffer: values[name] for name, buffer in planned.inputs}
    for kernel in planned.kernels:
        memory |= {name: found for name, (found, _) in run(kernel, planned, memory, {}, interpreter).items()}
    expected = [Backward(case).reference(values) for case in cases]
    for name, buffer in planned.outputs:
        side, place = name.split()
        np.testing.assert_allclose(memory[buffer], expected[int(place)][side], rtol=1e-4, atol=1e-5, err_msg=name)
    assert np.isnan(expected[0]["dvalue"]).all() and np.isfinite(expected[1]["dvalue"]).all()


def test_no_keys(interpreter: Runner) -> None:
    given = Backward(Case((2,), (), 3, symbol("S"), 8, 8, F32), alone=True, sides=("query",))
    check(given, {"S": 0}, values_for(given, {"S": 0}, 3), interpreter, "no keys")


def test_two_gradients_of_one_attention(interpreter: Runner) -> None:
    """Rows are found once; what reaches the weights differs."""
    case = Case((2,), (), 20, 24, 8, 8, F32, "none", 0.5)
    program = Backward(case, alone=True).program()
    gradient = program.inputs[-1]
    other = input_term("h", gradient.tensor)
    made = [make(call.op, [other if x is gradient else x for x in call.operands], dict(call.attributes)) for _, call in program.outputs]
    both = Program((*program.inputs, other), (*program.outputs, *((f"{call.op.name} of h", call) for call in made)), None)
    planned = plan(both, computes=can_emit)
    assert sorted(kind.__name__ for kind in kinds(planned)) == ["Chain"] * 4 + ["Statistics"]
    draw = np.random.default_rng(1)
    memory = {buffer: draw.normal(size=planned.buffers[buffer].shape).astype(np.float32) for _, buffer in planned.inputs}
    values = {name: memory[buffer] for name, buffer in planned.inputs}
    for kernel in planned.kernels:
        for name, (found, _) in run(kernel, planned, memory, {}, interpreter).items():
            memory[name] = found
    for place, name in enumerate(("g", "h")):
        expected = Backward(case).reference({**values, "g": values[name]})
        for (_, buffer), side in zip(planned.outputs[3 * place : 3 * place + 3], SIDES, strict=True):
            np.testing.assert_allclose(memory[buffer], expected[f"d{side}"], rtol=1e-3, atol=1e-4)


def test_what_is_no_kernel_is_opened() -> None:
    """Rows that no tile holds, floats of two precisions, and scores or weights with an op that kernels have not."""
    query, key, value, given = (
        input_term(str(x.attribute("name")), TensorType(F64, x.tensor.dims)) if place < 2 else x
        for place, x in enumerate(Backward(Case((2,), (), 12, 10, 8, 8, F32)).program().inputs)
    )
    mixed = Program((query, key, value, given), (("dq", gradient("query", query, key, value, given)),), None)
    assert not any(isinstance(kernel, Statistics | Chain) for kernel in plan(mixed, computes=can_emit).kernels)
    wide = Backward(Case((2,), (), 4, 6, 300, 8, F32), alone=True).program()
    assert not any(isinstance(kernel, Statistics | Chain) for kernel in plan(wide, computes=can_emit).kernels)
    scaled = Backward(Case((2,), (), 4, 6, 8, 8, F32, scale=0.5), alone=True).program()
    without = plan(scaled, computes=lambda name, _: name != "stablehlo.multiply")
    assert not any(isinstance(kernel, Statistics | Chain) for kernel in without.kernels)
    values = Backward(Case((2,), (), 4, 6, 8, 8, F32), alone=True, sides=("value",)).program()
    opened = plan(values, computes=lambda name, _: name != "stablehlo.multiply")
    assert not any(isinstance(kernel, Statistics | Chain) for kernel in opened.kernels)


@pytest.mark.parametrize("side", SIDES)
def test_what_is_read_in_many_tiles_is_made_once(side: str) -> None:
    """Operands that cost something are stored before the kernels that go through them again for each tile."""
    query, key, value, given = (make("stablehlo.tanh", (x,)) for x in Backward(Case((2,), (), 300, 200, 8, 8, F32)).program().inputs)
    operands = (query, key, given) if side == "value" else (query, key, value, given)
    planned = plan(Program(tuple(x.operands[0] for x in operands), (("d", gradient(side, *operands)),), None), computes=can_emit)
    made = [kernel for kernel in planned.kernels if isinstance(kernel, Statistics | Chain)]
    assert len(made) == 2
    for kernel in made:
        again = [dot.rhs for dot in kernel.dots] + [each.value for each in (kernel.sums if isinstance(kernel, Chain) else ())]
        assert not any(isinstance(item, ScalarOp) for item in scalars(*again)), kernel.name


def gradient(side: str, *operands: Term) -> Term:
    return make(f"kernel.attention_gradient_{side}", (*operands, absent()), {"precision": F32})


def runs_as_defined(program: Program) -> Plan:
    planned = plan(program, computes=can_emit)
    draw = np.random.default_rng(1)
    feeds = {str(term.attribute("name")): draw.normal(size=term.tensor.dims).astype(np.float32) for term in program.inputs}
    expected = evaluate_program(program, feeds, fallback=evaluate_defined)
    for (name, found), right in zip(run_plan(planned, feeds).items(), expected, strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-4, atol=1e-5, err_msg=name)
    return planned


@pytest.mark.parametrize("earlier", [False, True])
def test_values_that_are_made_of_a_gradient_of_the_same_attention(earlier: bool) -> None:
    """Keys and values do not share a kernel where one waits for the other; neither do the numbers of their rows, whether or not these were
    begun for a gradient before."""
    query, key, value, given = Backward(Case((2,), (), 12, 10, 8, 8, F32), alone=True).program().inputs
    first = gradient("value", query, key, given)
    second = gradient("key", query, key, make("stablehlo.tanh", (first,)), given)
    before = (("dq", gradient("query", query, key, value, given)),) if earlier else ()
    runs_as_defined(Program((query, key, value, given), (*before, ("dv", first), ("dk", second)), None))


def test_two_layers() -> None:
    """Each attention has kernels of its own, which wait for those of the layer behind it."""
    query, key, value, given = Backward(Case((2,), (), 10, 10, 8, 8, F32), alone=True).program().inputs

    def attention(x: Term) -> Term:
        return make("kernel.attention", (x, key, value, absent()), {"precision": F32})

    middle = attention(query)
    behind = gradient("query", middle, key, value, given)
    outputs = [attention(middle), behind, gradient("key", middle, key, value, given)]
    outputs += [gradient("value", middle, key, given), gradient("query", query, key, value, behind)]
    outputs += [gradient("key", query, key, value, behind), gradient("value", query, key, behind)]
    named = tuple((f"y{place}", each) for place, each in enumerate(outputs))
    planned = runs_as_defined(Program((query, key, value, given), named, None))
    assert sorted(kind.__name__ for kind in kinds(planned)) == ["Attention"] * 2 + ["Chain"] * 4 + ["Statistics"] * 2


@pytest.mark.parametrize("count", [3, 9])
def test_values_without_end(count: int) -> None:
    """Of one gradient and of many values: a kernel has so many products, and more are written out."""
    query, key, _, given = Backward(Case((2,), (), 12, 10, 8, 8, F32), alone=True).program().inputs
    values = [input_term(f"v{place}", key.tensor) for place in range(count)]
    made = tuple((f"dk{place}", gradient("key", query, key, value, given)) for place, value in enumerate(values))
    planned = runs_as_defined(Program((query, key, given, *values), made, None))
    chains = [kernel for kernel in planned.kernels if isinstance(kernel, Chain)]
    assert [len(kernel.sums) for kernel in chains] == ([count] if count < len(DEPTHS) else [])


def test_scores_that_are_an_output_too() -> None:
    """The weights are stored for their own sake; gradients do not wait for them, as they make their scores anew."""
    case = Case((2,), (), 20, 24, 8, 8, F32)
    program = Backward(case, alone=True).program()
    query, key, *_ = program.inputs
    axes = {"lhs_batch": (0,), "rhs_batch": (0,), "lhs_contract": (2,), "rhs_contract": (2,)}
    scores = make("stablehlo.dot_general", (query, key), axes)
    planned = plan(Program(program.inputs, (*program.outputs, ("scores", scores)), None), computes=can_emit)
    assert sorted(kind.__name__ for kind in kinds(planned)) == ["Chain", "Chain", "Product", "Statistics"]


def test_numbers_of_a_row_are_read_before_the_loop() -> None:
    """Also where a mask chooses what is made of them; but not where only the mask keeps their places inside."""
    case = Case((2,), (), 64, 64, 16, 16, F16, "causal", 0.25)
    made = plan(Backward(case, alone=True).program(), computes=can_emit)
    statistics, queries, _ = made.kernels
    assert isinstance(statistics, Statistics) and isinstance(queries, Chain)
    numbers = writes(statistics)

    def text(index: Callable[[Load], Load], shape: tuple[Dim, ...]) -> tuple[str, str]:
        found = mapped_kernel(queries, lambda load: index(load) if load.buffer in numbers else load, lambda store: store)
        found = replace(found, picks=(Pick("pick:p", 2, Load("p", (queries.batch[0].index,), I32)),))
        buffers = made.buffers | {name: replace(made.buffers[name], shape=shape) for name in numbers}
        buffers["p"] = replace(made.buffers["q"], name="p", dtype=I32, shape=(2,))
        before, loop = emit(found, replace(made, buffers=buffers)).source.split("    for start in ")
        return before, loop

    before, loop = text(lambda load: load, (2, 64))
    assert all(f"tl.load({name}_ptr" in before and f"{name}_ptr" not in loop for name in numbers)
    assert "0 * keys" not in loop and "inside" in loop
    for index, shape in (
        (lambda load: replace(load, index=(load.index[0], subtract(load.index[1], 1))), (2, 64)),
        (lambda load: replace(load, index=(load.index[0], add(load.index[1], 1))), (2, 64)),
        (lambda load: replace(load, index=(*load.index, 0)), (2, 64, symbol("s"))),
        (lambda load: replace(load, index=(symbol("pick:p"), load.index[1])), (2, 64)),
    ):
        before, loop = text(index, shape)
        assert loop.count("0 * keys") == 3 and not any(f"{name}_ptr +" in before for name in numbers), (index, shape)
    _, loop = text(lambda load: replace(load, index=(*load.index, queries.summed[-1].index)), (2, 64, 64))
    assert loop.count("mask=inside") == 3, "one for each score is read where it is wanted"
