"""Gradients of attention in Triton's interpreter give what the definition says in f64: drawn shapes, masks of every kind, groups of heads,
lengths that are not known, beside the attention itself and alone; and none of their scores is in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import coset.dialects  # noqa: F401  (fills the registry)
from coset.backends.triton_runtime import Runner
from coset.dialects.hub_scalars import cast
from coset.ir.dims import add, evaluate, symbol
from coset.ir.program import Program
from coset.ir.term import input_term, make
from coset.ir.types import BOOL, F16, F32, F64
from coset.lowering.kernel import Attention, Chain, Plan, Rows, Statistics, writes
from coset.lowering.plan import plan
from coset.lowering.triton import can_emit
from tests.lowering.test_triton_attention import Case, drawn_case
from tests.lowering.triton_cases import FINEST, assert_near, run

pytest.importorskip("triton", reason="Triton is not installed")
Array = np.ndarray[Any, Any]
SIDES = ("query", "key", "value")


@dataclass(frozen=True)
class Backward:
    """The gradients of the attention of `case`, beside it or `alone`; `sides`: of what."""

    case: Case
    alone: bool = False
    sides: tuple[str, ...] = SIDES

    def program(self) -> Program:
        forward = self.case.program()
        (_, call), *_ = forward.outputs
        query, key, value, mask = call.operands
        gradient = input_term("g", call.tensor)
        made = [] if self.alone else [("y", call)]
        for side in self.sides:
            operands = (query, key, gradient, mask) if side == "value" else (query, key, value, gradient, mask)
            made.append((f"d{side}", make(f"kernel.attention_gradient_{side}", operands, dict(call.attributes))))
        return Program((*forward.inputs, gradient), tuple(made), None)

    def reference(self, values: dict[str, Array]) -> dict[str, Array]:
        """The definitions in f64."""
        case = self.case
        query, key, value, gradient = (values[name].astype(np.float64) for name in "qkvg")
        for _ in case.groups:
            key, value = key[..., None, :, :], value[..., None, :, :]
        with np.errstate(all="ignore"):
            scores = case.scale * (query @ key.swapaxes(-1, -2))
            kept = np.ones(scores.shape[-2:], bool)
            if case.mask == "additive":
                scores = scores + values["mask"]
            if case.mask in ("boolean", "causal"):
                kept = values["mask"] if case.mask == "boolean" else _seen(case, *scores.shape[-2:])
                scores = np.where(kept, scores, case.fill)
            weights = np.exp(scores - scores.max(axis=-1, keepdims=True, initial=-np.inf))
            weights = weights / weights.sum(axis=-1, keepdims=True)
            if case.safe:
                weights = np.where((scores == -np.inf).all(axis=-1, keepdims=True), 0.0, weights)
            reached = gradient @ value.swapaxes(-1, -2)
            slopes = weights * (reached - (weights * reached).sum(axis=-1, keepdims=True))
            slopes = case.scale * np.where(kept, slopes, 0.0)
            found = {
                "y": weights @ value, "dquery": slopes @ key,
                "dkey": slopes.swapaxes(-1, -2) @ query, "dvalue": weights.swapaxes(-1, -2) @ gradient,
            }  # fmt: skip
        for name in ("dkey", "dvalue"):
            found[name] = found[name].sum(axis=tuple(range(-2 - len(case.groups), -2)))
        return found


def _seen(case: Case, length: int, keys: int) -> Array:
    return np.arange(length)[:, None] + case.offset >= np.arange(keys)


def values_for(given: Backward, binding: dict[str, int], seed: int) -> dict[str, Array]:
    draw = np.random.default_rng(seed)
    values = {}
    for term in given.program().inputs:
        name, shape = str(term.attribute("name")), tuple(evaluate(dim, binding) for dim in term.tensor.dims)
        array: Array = draw.normal(size=shape)
        if term.tensor.dtype is BOOL:
            array = draw.random(shape) < 0.7
        elif name == "mask":
            array = np.where(draw.random(shape) < 0.2, -np.inf, array)
        values[name] = cast(array, term.tensor.dtype)
    return values


def check(given: Backward, binding: dict[str, int], values: dict[str, Array], interpreter: Runner, what: str) -> Plan:
    """Run the plan kernel by kernel; each beside the NumPy execution of its scalars, the results beside the definition."""
    planned = plan(given.program(), computes=can_emit)
    memory = {buffer: values[name] for name, buffer in planned.inputs}
    for kernel in planned.kernels:
        for name, (found, _) in run(kernel, planned, memory, binding, interpreter).items():
            memory[name] = found
    expected, case = given.reference(values), given.case
    largest = {name: float(np.abs(values[name].astype(np.float64)).max(initial=0.0)) for name in "qkvg"}
    unit = FINEST[case.dtype.name]
    rounding = 2.0**-52 if case.dtype is F64 else 2.0**-23
    length, keys = (evaluate(dim, binding) for dim in (case.length, case.keys))
    groups = int(np.prod([evaluate(dim, binding) for dim in case.groups]))
    # Scores, and what reaches them, are summed in the accumulator and rounded a few times (Higham 2002, (3.5)), as are weights.
    score = case.scale * largest["q"] * largest["k"] * case.depth * ((case.depth + 8) * rounding + 2 * unit)
    reached = 2 * largest["g"] * largest["v"] * case.width
    slope = reached * (2 * score + (case.width + keys + 8) * rounding + 4 * unit)
    bounds = {
        "y": largest["v"] * (2 * score + 4 * unit + keys * rounding),
        "dquery": case.scale * largest["k"] * (slope + reached * (keys * rounding + 4 * unit)),
        "dkey": case.scale * largest["q"] * (slope + reached * (length * groups * rounding + 4 * unit)) * length * groups,
        "dvalue": largest["g"] * (2 * score + 4 * unit + length * groups * rounding) * length * groups,
    }
    for name, buffer in planned.outputs:
        assert_near(memory[buffer], expected[name].astype(case.dtype.numpy), case.dtype, 0.0, absolute=bounds[name], what=f"{what}, {name}")
    return planned


def kinds(planned: Plan) -> list[type]:
    return [type(kernel) for kernel in planned.kernels]


def no_scores(planned: Plan, case: Case) -> None:
    """Nothing with an element for each query and each key is written."""
    for kernel in planned.kernels:
        for name in writes(kernel):
            assert tuple(planned.buffers[name].shape[-2:]) != (case.length, case.keys), name


@pytest.mark.parametrize("batch", range(4))
def test_drawn_gradients(batch: int, interpreter: Runner) -> None:
    """Drawn shapes and masks against the definition in f64, some beside the attention."""
    for seed in range(batch * 9, batch * 9 + 9):
        case, binding = drawn_case(5000 + seed)
        sides = tuple(np.random.default_rng(seed).permutation(SIDES)[: 3 if seed % 3 else 1])
        given = Backward(case, bool(seed % 2), sides)
        planned = check(given, binding, values_for(given, binding, seed), interpreter, f"seed {seed}: {given}")
        assert set(kinds(planned)) <= {Attention, Rows, Statistics, Chain}


def test_beside_the_attention_no_rows_are_made_anew() -> None:
    """The attention writes what its softmax is made with; keys and values have one kernel."""
    case = Case((2,), (3,), 40, 56, 16, 24, F16, "causal", 0.25)
    planned = plan(Backward(case).program(), computes=can_emit)
    assert kinds(planned) == [Attention, Rows, Chain, Chain]
    no_scores(planned, case)
    alone = plan(Backward(case, alone=True).program(), computes=can_emit)
    assert kinds(alone) == [Statistics, Chain, Chain]
    no_scores(alone, case)
    assert [len(kernel.sums) for kernel in alone.kernels if isinstance(kernel, Chain)] == [1, 2]


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


@pytest.mark.parametrize("safe", [False, True])
def test_rows_that_see_nothing(safe: bool, interpreter: Runner) -> None:
    """They have no part in gradients if they are safe, and else make them NaN."""
    given = Backward(Case((), (), 5, 40, 8, 8, F32, "boolean", safe=safe), alone=True)
    values = values_for(given, {}, 3)
    values["mask"][2] = False
    check(given, {}, values, interpreter, f"safe {safe}")


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
    """Rows that no tile holds, and scores with an op that kernels have not; the other calls stay kernels."""
    wide = Backward(Case((2,), (), 4, 6, 300, 8, F32), alone=True).program()
    assert not any(isinstance(kernel, Statistics | Chain) for kernel in plan(wide, computes=can_emit).kernels)
    scaled = Backward(Case((2,), (), 4, 6, 8, 8, F32, scale=0.5), alone=True).program()
    without = plan(scaled, computes=lambda name, _: name != "stablehlo.multiply")
    assert not any(isinstance(kernel, Statistics | Chain) for kernel in without.kernels)
    values = Backward(Case((2,), (), 4, 6, 8, 8, F32, scale=0.5), alone=True, sides=("value",)).program()
    opened = plan(values, computes=lambda name, _: name != "stablehlo.multiply")
    assert not any(isinstance(kernel, Statistics | Chain) for kernel in opened.kernels)


def test_scores_that_are_an_output_too() -> None:
    """The weights are stored for their own sake; gradients do not wait for them, as they make their scores anew."""
    case = Case((2,), (), 20, 24, 8, 8, F32)
    program = Backward(case, alone=True).program()
    query, key, *_ = program.inputs
    axes = {"lhs_batch": (0,), "rhs_batch": (0,), "lhs_contract": (2,), "rhs_contract": (2,)}
    scores = make("stablehlo.dot_general", (query, key), axes)
    planned = plan(Program(program.inputs, (*program.outputs, ("scores", scores)), None), computes=can_emit)
    assert sorted(kind.__name__ for kind in kinds(planned)) == ["Chain", "Chain", "Product", "Statistics"]
