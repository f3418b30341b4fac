"""Attention in Triton's interpreter gives what its scalars say, and programs with it what the definition says in f64: drawn shapes, masks,
groups of heads, lengths that are not known, few queries over many keys, rows that see nothing, values that are not finite."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import coset.dialects  # noqa: F401  (fills the registry)
from coset.backends.triton_runtime import Runner
from coset.dialects.hub.scalars import cast
from coset.ir.dims import evaluate, product, symbol
from coset.ir.op import get_op
from coset.ir.program import Program
from coset.ir.term import make
from coset.ir.types import BOOL, F16, F32, F64, DType
from coset.lowering.kernels.kernel import Attention, Plan, Result, Scalar, ScalarConstant, ScalarOp
from coset.lowering.planning.plan import plan
from coset.lowering.triton.source import EmitOptions, Rounding, can_emit, emit
from tests.lowering.attention_cases import FLOATS, Case, drawn_case
from tests.lowering.drawn_kernels import Drawing
from tests.lowering.triton_cases import FINEST, assert_near, run
from tests.sampled import sampled

pytest.importorskip("triton", reason="Triton is not installed")
Array = np.ndarray[Any, Any]
EACH = EmitOptions(rounding=Rounding.EACH)
SIZES = (1, 2, 3, 5, 8, 17, 33)


# ---------------------------------------------------------------- kernels drawn as kernels


def drawn(seed: int) -> tuple[Drawing, Attention]:
    """Any scalars for queries, keys, values, scores and results, over any loops."""
    drawing = Drawing(seed, tame=True, dtypes=FLOATS)
    draw = drawing.draw
    dtype, value_dtype = drawing.dtype(), drawing.dtype()
    accumulator = F64 if F64 in (dtype, value_dtype) else F32
    batch = drawing.loops("b", int(draw.integers(0, 3)), extents=(1, 2, 3))
    m, keys = (
        drawing.loops("m", int(draw.integers(0, 3)), extents=SIZES),
        drawing.loops("s", int(draw.integers(0, 2)), extents=(*SIZES, 70)),
    )
    n, k = (drawing.loops(role, int(draw.integers(0, 2)), extents=(1, 4, 16, 19), dynamic=0.0) for role in "nk")
    while evaluate(product(loop.extent for loop in (*batch, *m, *keys, *k)), drawing.binding) > 40_000:
        m, k = m[:1], k[:0]
    query, key = (drawing.scalar(dtype, (*batch, *own, *k), int(draw.integers(0, 3)), []) for own in (m, keys))
    value = drawing.scalar(value_dtype, (*batch, *keys, *n), int(draw.integers(0, 3)), [])
    score: Scalar = Result("dot", accumulator)
    if drawing.chance(0.7):
        score = ScalarOp(get_op("stablehlo.add"), (score, drawing.scalar(accumulator, (*batch, *m, *keys), 1, [score])), accumulator)
    if drawing.chance(0.4):
        masked = drawing.scalar(BOOL, (*batch, *m, *keys), 0, [])
        low = drawing.scalar(accumulator, (), 0, []) if drawing.chance(0.3) else ScalarConstant(-np.inf, accumulator)
        score = ScalarOp(get_op("stablehlo.select"), (masked, score, low), accumulator)
    mean: Scalar = Result("sum", accumulator)
    if drawing.chance(0.5):
        mean = ScalarOp(get_op("stablehlo.add"), (mean, drawing.scalar(accumulator, (*batch, *m, *n), 1, [])), accumulator)
    stores = (drawing.store(mean, (*batch, *m, *n)),)
    safe = drawing.chance(0.3)
    kernel = Attention(
        f"k{seed}", batch, m, n, keys, k, query, key, score, value, accumulator, accumulator, safe, None, stores, terms=("drawn",)
    )
    return drawing, kernel


@pytest.mark.parametrize("batch", sampled(range(10)))
def test_drawn_kernels(batch: int, interpreter: Runner) -> None:
    for seed in range(batch * 20, batch * 20 + 20):
        drawing, kernel = drawn(seed)
        found = run(kernel, Plan(drawing.buffers, (kernel,), (), ()), drawing.values, drawing.binding, interpreter, EACH)
        rough = 8 * FINEST[kernel.value.dtype.name] + 1e-5  # weights are rounded to the values' type
        for name, (value, expected) in found.items():
            largest = np.nanmax(np.where(np.isinf(expected), 0, np.abs(expected.astype(np.float64))), initial=1.0)
            assert_near(
                value, expected, drawing.buffers[name].dtype, 1e-6, absolute=float(rough * max(largest, 16)), what=f"seed {seed}, {name}"
            )


# ---------------------------------------------------------------- programs with kernel.attention


def values_for(case: Case, binding: dict[str, int], seed: int, *, special: bool) -> dict[str, Array]:
    draw = np.random.default_rng(seed)
    values = {}
    for term in case.program().inputs:
        shape = tuple(evaluate(dim, binding) for dim in term.tensor.dims)
        array: Array = draw.normal(size=shape)
        if term.tensor.dtype is BOOL:
            array = draw.random(shape) < 0.7
        elif term.attribute("name") == "mask":
            array = np.where(draw.random(shape) < 0.2, -np.inf, array)
        elif special:
            array = np.where(draw.random(shape) < 0.01, draw.choice([np.nan, np.inf, -np.inf, 0.0, -0.0], shape), array)
        values[str(term.attribute("name"))] = cast(array, term.tensor.dtype)
    return values


def check(
    case: Case, binding: dict[str, int], values: dict[str, Array], interpreter: Runner, what: str, options: EmitOptions | None = None
) -> Plan:
    """The plan of a case whose kernel gives what its definition says in f64."""
    planned = plan(case.program(), computes=can_emit)
    (kernel,) = planned.kernels
    assert isinstance(kernel, Attention)
    buffers = {buffer: values[name] for name, buffer in planned.inputs}
    found, _ = run(kernel, planned, buffers, binding, interpreter, options)["y"]
    expected = case.reference(values)
    finite = [np.abs(np.where(np.isfinite(values[name].astype(np.float64)), values[name].astype(np.float64), 0)) for name in "qkv"]
    largest = [float(array.max(initial=0.0)) for array in finite]
    unit = FINEST[case.dtype.name]
    # Scores are summed in the accumulator (Higham 2002, (3.5)) and rounded a few times to the operands' type, as weights and results are.
    rounding = 2.0**-52 if case.dtype is F64 else 2.0**-23
    score = case.scale * largest[0] * largest[1] * case.depth
    bound = largest[2] * (4 * unit + score * ((case.depth + 4) * rounding + 2 * unit) + 600 * rounding)
    assert_near(found, expected.astype(case.dtype.numpy), case.dtype, 0.0, absolute=bound, what=what)
    return planned


@pytest.mark.parametrize("batch", sampled(range(15)))
def test_drawn_attentions(batch: int, interpreter: Runner) -> None:
    """300 drawn shapes and masks against the definition in f64."""
    for seed in range(batch * 20, batch * 20 + 20):
        case, binding = drawn_case(seed)
        check(case, binding, values_for(case, binding, seed, special=False), interpreter, f"seed {seed}: {case}")


@pytest.mark.parametrize("seed", range(30))
def test_values_that_are_not_finite(seed: int, interpreter: Runner) -> None:
    """NaN and infinities come out where the definition has them; a causal kernel may leave values out that no query sees."""
    case, binding = drawn_case(1000 + seed)
    values = values_for(case, binding, seed, special=True)
    if case.mask == "causal" and case.fill < -1e30:
        values["v"] = np.where(np.isfinite(values["v"].astype(np.float64)), values["v"], 0).astype(values["v"].dtype)
    check(case, binding, values, interpreter, str(case))


@pytest.mark.parametrize("keys", sampled([4099, 1000], 2))
@pytest.mark.parametrize("mask", ["none", "causal", "boolean"])
@pytest.mark.parametrize("dtype", [F16, F32], ids=str)
def test_few_queries_over_many_keys(keys: int, mask: str, dtype: DType, interpreter: Runner) -> None:
    """As when a token is decoded: the keys are split over programs and the parts joined."""
    case = Case((2,), (4,), 1, keys, 32, 32, dtype, mask, 0.2, keys - 7 if mask == "causal" else 0, safe=mask == "boolean")
    values = values_for(case, {}, 7, special=False)
    if mask == "boolean":
        values["mask"][:, :900] = False  # parts that see nothing
    planned = check(case, {}, values, interpreter, str(case))
    assert len(emit(planned.kernels[0], planned).launches) == 2


def test_a_length_that_grows(interpreter: Runner) -> None:
    """One kernel for every length of a cache."""
    case = Case((1, 2), (), 1, symbol("S"), 16, 16, F16, "none", 0.25)
    for keys in (1, 15, 64, 300):
        check(case, {"S": keys}, values_for(case, {"S": keys}, keys, special=False), interpreter, f"{keys} keys")


@pytest.mark.parametrize("safe", [False, True])
def test_rows_that_see_nothing(safe: bool, interpreter: Runner) -> None:
    case = Case((), (), 5, 70, 8, 8, F32, "boolean", safe=safe)
    values = values_for(case, {}, 3, special=False)
    values["mask"][2] = False
    planned = plan(case.program(), computes=can_emit)
    found, _ = run(planned.kernels[0], planned, values, {}, interpreter)["y"]
    assert (found[2] == 0).all() if safe else np.isnan(found[2]).all()
    assert np.isfinite(np.delete(found, 2, axis=0)).all()


def test_no_keys(interpreter: Runner) -> None:
    """A sum over nothing is 0."""
    case = Case((2,), (), 3, symbol("S"), 8, 8, F32)
    planned = plan(case.program(), computes=can_emit)
    values = values_for(case, {"S": 0}, 3, special=False)
    found, _ = run(planned.kernels[0], planned, values, {"S": 0}, interpreter)["y"]
    assert found.shape == (2, 3, 8) and (found == 0).all()


def test_what_is_no_kernel_is_opened() -> None:
    """Scores that are needed elsewhere too, rows that no tile holds, integers."""
    case = Case((2,), (), 4, 6, 8, 8, F32)
    program = case.program()
    (_, result), *_ = program.outputs
    other = make(
        result.op, (*result.operands[:2], make("stablehlo.negate", (result.operands[2],)), result.operands[3]), dict(result.attributes)
    )
    both = Program(program.inputs, (("y", result), ("z", other)), None)
    assert not any(isinstance(kernel, Attention) for kernel in plan(both, computes=can_emit).kernels)
    wide = Case((2,), (), 4, 6, 300, 8, F32).program()
    assert not any(isinstance(kernel, Attention) for kernel in plan(wide, computes=can_emit).kernels)
    free = Case((2,), (), 4, 6, 8, 8, F32).program()
    assert [type(kernel) for kernel in plan(free, computes=can_emit).kernels] == [Attention]
    none = plan(free, computes=lambda name, _: name != "stablehlo.multiply")  # of a program whose scores need an op that kernels have not
    assert [type(kernel) for kernel in none.kernels] == [Attention], "nothing is scaled by 1"
    scaled = Case((2,), (), 4, 6, 8, 8, F32, scale=0.5).program()
    without = plan(scaled, computes=lambda name, _: name != "stablehlo.multiply")
    assert not any(isinstance(kernel, Attention) for kernel in without.kernels)
