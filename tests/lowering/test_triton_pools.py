"""Pools that are written out: drawn ones, planned with what stands around them, give in NumPy what `reduce_window` means, and in Triton's
interpreter what NumPy makes of the kernel."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest

import coset.dialects  # noqa: F401  (fills the registry)
from coset.backends.triton_runtime import TARGETS, Compiler, Runner
from coset.dialects.hub.terms import splat
from coset.ir.dims import Dim, symbol
from coset.ir.evaluate import evaluate_program
from coset.ir.program import Program
from coset.ir.term import Term, input_term
from coset.ir.types import DTYPES, F16, F32, I32, DType, TensorType
from coset.lowering.kernels.kernel import Library, Plan, Pointwise
from coset.lowering.planning.plan import plan
from coset.lowering.planning.windows import TAPS, is_small_pool
from coset.lowering.triton.source import can_emit, emit, kernel_source
from tests.lowering import plan_numpy
from tests.lowering.test_triton_windows import EACH, NEAR, Drawn, convolution, op, planned
from tests.lowering.triton_cases import assert_near, run

AROUND = ((0, 0), (0, 0), (1, 1), (1, 1))


def pool(x: Term, combiner: str, window: tuple[int, ...], **given: Any) -> Term:
    ones = (1,) * x.tensor.rank
    attributes = {"window_strides": ones, "base_dilations": ones, "window_dilations": ones, "padding": ((0, 0),) * x.tensor.rank}
    return op("reduce_window", x, window_dimensions=window, combiner=combiner, **(attributes | given))


def of_pictures(x: Term, combiner: str = "maximum", padding: Any = AROUND) -> Term:
    return pool(x, combiner, (1, 1, 3, 3), window_strides=(1, 1, 2, 2), padding=padding)


class DrawnPool(Drawn):
    """A pool with something in front and behind."""

    def __init__(self, seed: int) -> None:
        self.draw = np.random.default_rng(seed)
        self.dtype = DTYPES[str(self.draw.choice(["f32", "f16", "bf16", "f64"]))]
        self.feeds, self.inputs = {}, []
        rank = int(self.pick(3, 4, 4, 5))
        window = [int(self.pick(1, 1, 1, 2)), 1, *(int(self.pick(1, 2, 2, 3)) for _ in range(rank - 2))]
        window[-1] = max(window[-1], 2)
        if prod(window) > TAPS:
            window[2] = 1
        strides, dilations = ([int(self.pick(1, 1, 2, 3)) for _ in window] for _ in range(2))
        padding, sizes = [], list[Dim]()
        for count, spread in zip(window, dilations, strict=True):
            low, high = (int(self.pick(0, 0, 1, 2, -1)) if count > 1 else 0 for _ in range(2))
            padding.append((low, high))
            sizes.append(max(1, (count - 1) * spread + 1 - low - high) + int(self.pick(0, 1, 4, 7)))
        self.sizes: dict[str, int] = {}
        if window[0] == 1 and self.chance(0.3):
            sizes[0], strides[0], self.sizes = symbol("n"), 1, {"n": int(self.pick(1, 2, 3))}
        x = self.prologue(self.new("x", tuple(sizes)))
        if self.chance(0.2):
            values = self.feeds["x"].reshape(-1)
            values[:: int(self.pick(2, 5))] = self.pick(np.nan, -np.inf, np.inf)
        self.combiner = str(self.pick("maximum", "maximum", "minimum", "add"))
        moved = {"window_strides": tuple(strides), "window_dilations": tuple(dilations), "padding": tuple(padding)}
        self.term = pool(x, self.combiner, tuple(window), **moved)
        results = self.epilogue(self.term)
        self.program = Program(tuple(self.inputs), tuple((f"y{i}", y) for i, y in enumerate(results)))


def check(drawn: DrawnPool, interpreter: Runner | None, what: str) -> None:
    made = planned(drawn.program)
    assert is_small_pool(drawn.term) and all(isinstance(kernel, Pointwise) for kernel in made.kernels), what
    assert any("windowed_fold" in kernel.terms for kernel in made.kernels if isinstance(kernel, Pointwise)), what

    def before(kernel: Any, at: plan_numpy._Run) -> None:
        if interpreter is not None:
            for name, (found, wanted) in run(kernel, at.plan, at.memory, at.binding, interpreter, EACH).items():
                assert_near(found, wanted, at.plan.buffers[name].dtype, 1e-6, what=f"{what} {kernel.name} {name}")

    with np.errstate(all="ignore"):
        found = plan_numpy.run(made, drawn.feeds, before=before)
        expected = evaluate_program(drawn.program, drawn.feeds)
    for (name, _), value in zip(drawn.program.outputs, expected, strict=True):
        near = NEAR[drawn.dtype.name] if drawn.combiner == "add" else 0.0  # the largest is one of those there are
        assert_near(found[name], value, drawn.dtype, near, absolute=8 * near, what=f"{what} {name}")


@pytest.mark.parametrize("batch", range(4))
def test_drawn_pools_as_plans(batch: int) -> None:
    for seed in range(batch * 50, batch * 50 + 50):
        check(DrawnPool(seed), None, f"seed {seed}:")


@pytest.mark.parametrize("batch", range(3))
def test_drawn_pools_in_the_interpreter(batch: int, interpreter: Runner) -> None:
    for seed in range(1000 + batch * 12, 1012 + batch * 12):
        check(DrawnPool(seed), interpreter, f"seed {seed}:")


def over(dtype: DType, make: Any) -> Plan:
    x = input_term("x", TensorType(dtype, (2, 8, 9, 9)))
    return planned(Program((x,), (("y", make(x)),)))


def rectified(x: Term) -> Term:
    return op("maximum", x, splat(0, x.tensor.dtype, x.tensor.dims))


def test_a_pool_takes_in_what_is_cheap_before_it_and_what_is_behind() -> None:
    (kernel,) = over(F16, lambda x: op("tanh", of_pictures(rectified(x)))).kernels
    assert {"maximum", "windowed_fold", "tanh"} <= set(kernel.terms) and kernel.name == "k0_max_pool_tanh"


def test_what_is_dear_is_done_once_for_each_element() -> None:
    made = over(F16, lambda x: of_pictures(op("tanh", x)))
    assert [kernel.terms[-1] for kernel in made.kernels] == ["tanh", "windowed_fold"]
    assert [buffer.shape for buffer in made.buffers.values() if buffer.role == "temporary"] == [(2, 8, 9, 9)]  # its padding is not written


def test_a_pool_is_stored_for_those_who_would_make_it_again() -> None:
    """A product reads each element many times."""
    x, w = input_term("x", TensorType(F16, (2, 8, 9, 9))), input_term("w", TensorType(F16, (16, 8, 1, 1)))
    made = planned(Program((x, w), (("y", convolution(of_pictures(x), w)),)))
    assert [kernel.terms[-1] for kernel in made.kernels] == ["windowed_fold", "windowed_product"]


def test_sums_are_in_32_bits_at_least() -> None:
    """In f16 a one that is added to 2048 is lost."""
    x = np.ones((1, 1, 3, 3), np.float16)
    x[0, 0, 0, 0] = 2048
    image = input_term("x", TensorType(F16, x.shape))
    made = planned(Program((image,), (("y", of_pictures(image, "add", ((0, 0),) * 4)),)))
    assert plan_numpy.run(made, {"x": x})["y"].item() == 2056


def test_which_pools_are_written_out() -> None:
    x = input_term("x", TensorType(F32, (2, 4, 9, 9)))
    assert is_small_pool(of_pictures(x))
    assert not is_small_pool(of_pictures(x, "multiply"))
    assert not is_small_pool(of_pictures(input_term("i", TensorType(I32, (2, 4, 9, 9)))))
    assert not is_small_pool(pool(x, "maximum", (1, 1, 7, 7)))  # 49 elements
    assert not is_small_pool(pool(x, "maximum", (1, 1, 1, 1)))
    assert not is_small_pool(pool(x, "maximum", (1, 1, 2, 2), base_dilations=(1, 1, 2, 1)))
    assert not is_small_pool(pool(x, "add", (1, 1, 1, 9), padding=((0, 0), (0, 0), (0, 0), (8, 0))))  # sums from the first to each


def test_without_a_wish_a_library_pools() -> None:
    x = input_term("x", TensorType(F16, (2, 8, 9, 9)))
    (kernel,) = plan(Program((x,), (("y", of_pictures(x)),)), computes=can_emit).kernels
    assert isinstance(kernel, Library)


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_pools_compile_ahead_of_time(target: str, compiler: Compiler) -> None:
    x = input_term("x", TensorType(F16, (64, 64, 112, 112)))
    made = planned(Program((x,), (("y", of_pictures(rectified(x))),)))
    for kernel in made.kernels:
        assert not isinstance(kernel, Library)
        for compiled in compiler.run(kernel_source(kernel, made), emit(kernel, made).launches, target, {}):
            assert compiled.spilled == 0
