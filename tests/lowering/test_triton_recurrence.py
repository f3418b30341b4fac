"""Loops as one kernel: in Triton's interpreter and as torch code they give what the loops mean, and compile for GPUs that are not here."""

from __future__ import annotations

import numpy as np
import pytest

import coset.dialects  # noqa: F401  (fills the registry)
from coset.backends.triton_runtime import TARGETS, Compiler, Runner
from coset.dialects.hub.terms import broadcast, dot, splat
from coset.dialects.onnx.loops import element, placed
from coset.ir.evaluate import evaluate_program
from coset.ir.program import Program
from coset.ir.term import Term, constant, get
from coset.ir.types import BF16, F16, F32, I32, DType
from coset.lowering.kernels.kernel import Library, Plan, Recurrence
from coset.lowering.planning.plan import plan
from coset.lowering.planning.recurrence_products import lighter_loops
from coset.lowering.triton.source import EmitOptions, Rounding, can_emit, emit, kernel_source
from coset.rules.definition import evaluate_defined
from tests.lowering.drawn_recurrences import Drawn, drawn
from tests.lowering.plan_cases import CASES, op, recurrence, x_
from tests.lowering.plan_numpy import _Run
from tests.lowering.plan_numpy import run as run_in_numpy
from tests.lowering.triton_cases import assert_same, run
from tests.sampled import sampled

pytest.importorskip("triton", reason="Triton is not installed")
EACH = EmitOptions(rounding=Rounding.EACH)


def planned(given: Drawn) -> tuple[dict[str, np.ndarray], Plan]:
    """What a drawn loop means, and its plan, in which every loop is a kernel; those in which nothing is carried are none any more."""
    expected = evaluate_program(given.program, given.feeds, fallback=evaluate_defined)
    roots, _ = lighter_loops(given.program.roots, lambda *_: True, sums=False)
    made = plan(given.program.with_roots(roots), computes=can_emit)
    assert not any(isinstance(kernel, Library) for kernel in made.kernels)
    return dict(zip((name for name, _ in given.program.outputs), expected, strict=True)), made


@pytest.mark.parametrize("batch", sampled(range(10)))
def test_drawn_loops(batch: int, interpreter: Runner) -> None:
    """Against the evaluator of terms, bit for bit: sums of small integers are exact."""
    kernels = 0
    for seed in range(batch * 26, batch * 26 + 26):
        given = drawn(seed)
        expected, made = planned(given)
        for name, value in run_in_numpy(made, given.feeds).items():
            assert_same(value, expected[name], made.buffers[dict(made.outputs)[name]].dtype, f"seed {seed}, {name} in NumPy")
        memory = {buffer: given.feeds[name] for name, buffer in made.inputs}
        memory |= {name: buffer.value.attribute("value").array() for name, buffer in made.buffers.items() if buffer.value is not None}
        for kernel in made.kernels:
            if isinstance(kernel, Recurrence):
                kernels += 1
                memory |= {name: value for name, (value, _) in run(kernel, made, memory, given.binding, interpreter, EACH).items()}
            else:
                _Run(made, memory, given.binding).kernel(kernel)
        for name, buffer in made.outputs:
            assert_same(memory[buffer], expected[name], made.buffers[buffer].dtype, f"seed {seed}, {name}")
    assert kernels >= 20


@pytest.mark.parametrize("batch", range(4))
def test_drawn_loops_as_torch_code(batch: int) -> None:
    pytest.importorskip("torch")
    from coset.lowering.package.plan import planned_package
    from tests.lowering.torch_programs import run_package

    for seed in range(1000 + batch * 15, 1015 + batch * 15):
        given = drawn(seed)
        expected, made = planned(given)
        package = planned_package(given.program, made, title="A test.", triton=False)
        for _ in range(2):
            for name, value in zip(expected, run_package(package, given.program, given.feeds), strict=True):
                assert_same(value, expected[name], made.buffers[dict(made.outputs)[name]].dtype, f"seed {seed}, {name}")


def test_no_round_is_no_change(interpreter: Runner) -> None:
    """Of a length that is 0 at run time the states are stored as they were, and nothing else is touched."""
    made = plan(CASES["recurrent_layer"]()[0], computes=can_emit)
    h = np.random.default_rng(0).normal(size=(3, 12)).astype(np.float32)
    values = {"x": np.zeros((0, 3, 24), np.float32), "h": h, "u": np.zeros((12, 24), np.float32)}
    found = run(made.kernels[0], made, values, {"s": 0}, interpreter)
    assert_same(found["y0"][0], h, F32)
    assert found["y1"][0].shape == (0, 3, 12)


def test_states_that_change_places(interpreter: Runner) -> None:
    h, g, n = x_("h", F32, 5), x_("g", F32, 5), 3
    loop = recurrence([h, g], [], n, lambda _, h, g: [g, op("negate", h)])
    made = plan(Program((h, g), (("y", get(loop, 1)), ("z", get(loop, 2)))), computes=can_emit)
    values = {"h": np.arange(5, dtype=np.float32), "g": np.arange(5, 10, dtype=np.float32)}
    for value, expected in run(made.kernels[0], made, values, {}, interpreter).values():
        assert_same(value, expected, F32)


@pytest.mark.parametrize("first", [-3, 4])
def test_places_outside_are_clamped(first: int, interpreter: Runner) -> None:
    """Before the first row, and behind the last one."""
    x, h = x_("x", F32, 6, 7), x_("h", F32, 7)

    def step(index: Term, h: Term, x: Term) -> list[Term]:
        return [op("add", op("negate", h), element(x, op("add", index, constant(first, I32))))]

    made = plan(Program((h, x), (("y", get(recurrence([h], [x], 6, step), 1)),)), computes=can_emit)
    draw = np.random.default_rng(1)
    values = {name: draw.integers(-9, 9, shape).astype(np.float32) for name, shape in (("x", (6, 7)), ("h", (7,)))}
    for value, expected in run(made.kernels[0], made, values, {}, interpreter).values():
        assert_same(value, expected, F32)


def test_states_are_rounded_in_each_round(interpreter: Runner) -> None:
    """However little is added to 1 in half precision, and however often, where ops between stores are not rounded."""
    x, h = x_("x", F16, 20, 7), x_("h", F16, 7)
    loop = recurrence([h], [x], 20, lambda index, h, x: [op("add", h, element(x, index))])
    made = plan(Program((h, x), (("y", get(loop, 1)),)), computes=can_emit)
    values = {"x": np.full((20, 7), 2.0**-12, np.float16), "h": np.ones(7, np.float16)}
    (found,) = run(made.kernels[0], made, values, {}, interpreter).values()
    assert_same(found[0], np.ones(7, np.float16), F16)


def test_products_are_rounded_to_their_type(interpreter: Runner) -> None:
    """2049 is 2048 in half precision."""
    h, u = x_("h", F16, 3, 16), x_("u", F16, 16, 16)

    def step(_: Term, h: Term, u: Term) -> list[Term]:
        return [op("subtract", dot(h, u, lhs_contract=(1,), rhs_contract=(0,)), splat(2048.0, F16, (3, 16)))]

    made = plan(Program((h, u), (("y", get(recurrence([h], [u], 1, step), 1)),)), computes=can_emit)
    matrix = np.full((16, 16), 128, np.float16)
    matrix[0] = 129
    (found,) = run(made.kernels[0], made, {"h": np.ones((3, 16), np.float16), "u": matrix}, {}, interpreter).values()
    assert_same(found[0], np.zeros((3, 16), np.float16), F16)


@pytest.mark.parametrize("combiner", ["add", "maximum", "minimum"])
@pytest.mark.parametrize("sign", [1, -1])
def test_folds_take_in_no_column_that_is_not_there(combiner: str, sign: int, interpreter: Runner) -> None:
    """Of 5 columns in a tile of 8, where every number has one sign."""
    h = x_("h", F32, 3, 5)

    def step(_: Term, h: Term) -> list[Term]:
        return [op("add", h, broadcast(op("reduce", h, dimensions=(1,), combiner=combiner), (3, 5), (0,)))]

    made = plan(Program((h,), (("y", get(recurrence([h], [], 4, step), 1)),)), computes=can_emit)
    values = {"h": sign * np.arange(1, 16, dtype=np.float32).reshape(3, 5)}
    for value, expected in run(made.kernels[0], made, values, {}, interpreter).values():
        assert_same(value, expected, F32)


# ---------------------------------------------------------------- compiled ahead of time


def gated(dtype: DType, hidden: int) -> Plan:
    """An LSTM whose products by the sequence are made already."""
    x, h, c, u = (x_(name, dtype, *shape) for name, shape in
                  (("x", (20, 32, 4 * hidden)), ("h", (32, hidden)), ("c", (32, hidden)), ("u", (hidden, 4 * hidden))))  # fmt: skip

    def step(index: Term, h: Term, c: Term, pile: Term, x: Term, u: Term) -> list[Term]:
        whole = op("add", element(x, index), dot(h, u, lhs_contract=(1,), rhs_contract=(0,)))
        i, f, o, g = (op("slice", whole, start=(0, at * hidden), limit=(32, (at + 1) * hidden), strides=(1, 1)) for at in range(4))
        c = op("add", op("multiply", op("logistic", f), c), op("multiply", op("logistic", i), op("tanh", g)))
        h = op("multiply", op("logistic", o), op("tanh", c))
        return [h, c, placed(pile, h, index)]

    loop = recurrence([h, c, splat(0, dtype, (20, 32, hidden))], [x, u], 20, step)
    return plan(Program((x, h, c, u), (("y", get(loop, 3)), ("last", get(loop, 2)))), computes=can_emit)


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_kernels_compile_ahead_of_time(target: str, compiler: Compiler) -> None:
    """Without spills, but for some bytes where the states of four gates are as wide as they may be."""
    plans = [(plan(CASES[name]()[0], computes=can_emit), 0) for name in ("recurrent_layer", "state_space")]
    plans += [(gated(F32, 32), 0), (gated(F32, 64), 80), (gated(F16, 64), 16), (gated(F16, 128), 80), (gated(BF16, 100), 160)]
    for made, most in plans:
        (kernel,) = made.kernels
        (compiled,) = compiler.run(kernel_source(kernel, made), emit(kernel, made).launches, target, {"s": 9, "n": 300})
        assert compiled.spilled <= most, f"{kernel.terms}: {compiled.spilled} bytes"
        assert compiled.shared <= (65536 if target == "gfx942" else 99 * 1024 if target == "sm_80" else 227 * 1024)
