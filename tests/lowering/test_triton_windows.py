"""Convolutions as kernels over windows: drawn ones, planned with what stands around them, give in NumPy what the convolution means, and in
Triton's interpreter what NumPy makes of the kernel."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import coset.dialects  # noqa: F401  (fills the registry)
from coset.backends.triton_runtime import TARGETS, Compiler, Runner
from coset.dialects.hub.scalars import cast
from coset.dialects.hub.terms import broadcast, convert, splat, transpose
from coset.ir.dims import Dim, symbol
from coset.ir.evaluate import evaluate_program
from coset.ir.program import Program
from coset.ir.term import Term, input_term, make
from coset.ir.types import DTYPES, F16, F32, DType, TensorType
from coset.lowering.kernels.kernel import Choose, Library, Plan, Product, scalars
from coset.lowering.planning.plan import plan
from coset.lowering.planning.windows import has_windows, is_thin
from coset.lowering.triton.alternatives import alternatives
from coset.lowering.triton.source import EmitOptions, Rounding, can_emit, emit, kernel_source
from tests.lowering import plan_numpy
from tests.lowering.triton_cases import assert_near, run
from tests.sampled import sampled

EACH = EmitOptions(rounding=Rounding.EACH)
NEAR = {"f16": 2e-3, "bf16": 2e-2, "f32": 2e-5, "f64": 1e-12}


def op(name: str, *operands: Term, **attributes: Any) -> Term:
    return make(f"stablehlo.{name}", operands, attributes)


def convolution(x: Term, w: Term, **given: Any) -> Term:
    space = x.tensor.rank - 2
    ones = (1,) * space
    attributes = {"strides": ones, "padding": ((0, 0),) * space, "lhs_dilation": ones, "rhs_dilation": ones, "feature_group_count": 1,
                  "batch_group_count": 1}  # fmt: skip
    return make("stablehlo.convolution", (x, w), attributes | given)


class Drawn:
    """A convolution with something in front and behind, and inputs for it."""

    def __init__(self, seed: int, *, dtype: DType | None = None) -> None:
        self.draw = np.random.default_rng(seed)
        self.dtype = dtype or DTYPES[str(self.draw.choice(["f32", "f32", "f16", "bf16", "f64"]))]
        self.feeds: dict[str, Any] = {}
        self.inputs: list[Term] = []
        space, groups = int(self.pick(1, 2, 2, 2, 3)), int(self.pick(1, 1, 1, 2, 3))
        depth = int(self.pick(1, 2, 3, 8, 32)) if space == 3 else int(self.pick(1, 2, 3, 5, 32, 64, 128))
        each = int(self.pick(1, 3, 8, 17))
        window = [int(self.pick(1, 2, 3, 3, 5)) for _ in range(space)]
        strides = tuple(int(self.pick(1, 1, 2, 3)) for _ in range(space))
        dilations = tuple(int(self.pick(1, 1, 1, 2)) for _ in range(space))
        sizes: list[int] = []
        padding: list[tuple[int, int]] = []
        for k, d in zip(window, dilations, strict=True):
            low, high = int(self.pick(0, 0, 1, 2, -1)), int(self.pick(0, 0, 1, 2))
            padding.append((low, high))
            sizes.append(max(1, (k - 1) * d + 1 - low - high) + int(self.pick(0, 1, 4, 9)) + (1 if low < 0 else 0))
        batch: Dim = int(self.pick(1, 2, 3))
        if self.chance(0.3):
            batch, self.sizes = symbol("n"), {"n": int(self.pick(1, 2, 3))}
        else:
            self.sizes = {}
        x = self.prologue(self.new("x", (batch, groups * depth, *sizes)))
        if self.chance(0.2):  # each feature by itself
            groups, depth, each = groups * depth, 1, 1
        w = self.new("w", (groups * each, depth, *window))
        self.term = convolution(x, w, strides=strides, padding=tuple(padding), rhs_dilation=dilations, feature_group_count=groups)
        results = self.epilogue(self.term)
        self.program = Program(tuple(self.inputs), tuple((f"y{i}", y) for i, y in enumerate(results)))

    def pick(self, *values: Any) -> Any:
        return values[int(self.draw.integers(len(values)))]

    def chance(self, share: float) -> bool:
        return bool(self.draw.random() < share)

    def new(self, name: str, shape: tuple[Dim, ...], dtype: DType | None = None) -> Term:
        dtype = dtype or self.dtype
        term = input_term(name, TensorType(dtype, shape))
        numbers = [dim if isinstance(dim, int) else self.sizes["n"] for dim in shape]
        self.feeds[name] = cast(self.draw.normal(size=numbers), dtype)
        self.inputs.append(term)
        return term

    def prologue(self, x: Term) -> Term:
        kind = self.pick("", "", "relu", "scale", "cast", "norm")
        shape = x.tensor.dims
        if kind == "relu":
            return op("maximum", x, splat(0, x.tensor.dtype, shape))
        if kind == "scale":
            return op("multiply", x, broadcast(self.new("scale", (shape[1],)), shape, (1,)))
        if kind == "cast" and self.dtype is F16:
            return convert(op("tanh", convert(x, F32)), F16)  # too dear to be done again for each place of a window
        if kind == "norm":
            y = op("multiply", x, broadcast(self.new("scale", (shape[1],)), shape, (1,)))
            return op("maximum", op("add", y, broadcast(self.new("shift", (shape[1],)), shape, (1,))), splat(0, x.tensor.dtype, shape))
        return x

    def epilogue(self, y: Term) -> list[Term]:
        results = []
        shape = y.tensor.dims
        if self.chance(0.6):
            y = op("add", y, broadcast(self.new("bias", (shape[1],)), shape, (1,)))
        if self.chance(0.2):
            results.append(y)
        if self.chance(0.3):
            y = op("add", y, self.new("residual", shape))
        if self.chance(0.5):
            y = op("maximum", y, splat(0, y.tensor.dtype, shape))
        if self.chance(0.2):
            y = transpose(y, (0, *range(2, len(shape)), 1))
        return [*results, y]


def planned(program: Program) -> Plan:
    return plan(program, computes=can_emit, windows=lambda term: True)


def check(drawn: Drawn, interpreter: Runner | None, what: str) -> Plan:
    made = planned(drawn.program)
    assert not any(isinstance(kernel, Library) for kernel in made.kernels)
    windowed = sum(isinstance(kernel, Product) and kernel.windowed for kernel in made.kernels)
    assert windowed == (not is_thin(drawn.term)), what

    def before(kernel: Any, at: plan_numpy._Run) -> None:
        if interpreter is not None:
            for name, (found, wanted) in run(kernel, at.plan, at.memory, at.binding, interpreter, EACH).items():
                size = float(np.max(np.abs(np.nan_to_num(wanted.astype(np.float64), posinf=0, neginf=0)), initial=1.0))
                dtype = at.plan.buffers[name].dtype
                assert_near(found, wanted, dtype, 2e-5, absolute=2e-5 * size, what=f"{what} {kernel.name} {name}")

    with np.errstate(all="ignore"):
        found = plan_numpy.run(made, drawn.feeds, before=before)
        expected = evaluate_program(drawn.program, drawn.feeds)
    for (name, _), value in zip(drawn.program.outputs, expected, strict=True):
        size = float(np.max(np.abs(np.nan_to_num(value.astype(np.float64), posinf=0, neginf=0)), initial=1.0))
        near = NEAR[drawn.dtype.name]
        assert_near(found[name], value, drawn.dtype, near, absolute=near * size, what=f"{what} {name}")
    return made


@pytest.mark.parametrize("batch", range(4))
def test_drawn_convolutions_as_plans(batch: int) -> None:
    for seed in range(batch * 50, batch * 50 + 50):
        check(Drawn(seed), None, f"seed {seed}:")


@pytest.mark.parametrize("batch", sampled(range(6)))
def test_drawn_convolutions_in_the_interpreter(batch: int, interpreter: Runner) -> None:
    for seed in range(1000 + batch * 12, 1012 + batch * 12):
        check(Drawn(seed), interpreter, f"seed {seed}:")


def simple(x: tuple[Dim, ...], w: tuple[int, ...], dtype: DType = F32, **given: Any) -> Program:
    image, filters = input_term("x", TensorType(dtype, x)), input_term("w", TensorType(dtype, w))
    return Program((image, filters), (("y", convolution(image, filters, **given)),))


SAME = {"padding": ((1, 1), (1, 1))}


def test_a_block_of_features_has_one_place_in_its_windows(interpreter: Runner) -> None:
    """Then what is inside is known for each row, not for each element. The filters' own order stays; alternatives with other blocks too."""
    made = planned(simple((2, 64, 6, 7), (20, 64, 3, 3), **SAME))
    (kernel,) = made.kernels
    assert isinstance(kernel, Product)
    draw = np.random.default_rng(0)
    values = {"x": draw.normal(size=(2, 64, 6, 7)).astype(np.float32), "w": draw.normal(size=(20, 64, 3, 3)).astype(np.float32)}
    default = emit(kernel, made, options=EACH).choice
    assert default is not None
    seen = set()
    for choice in [found for found in alternatives(kernel, default, EACH, {}) if dict(found.numbers)["SPLITS"] == 1][:24:3]:
        options = replace(EACH, choice=choice)
        seen.add("step = start // 64" in kernel_source(kernel, made, options=options))
        found, expected = run(kernel, made, values, {}, interpreter, options)["y"]
        assert_near(found, expected, F32, 2e-5, absolute=1e-3, what=choice.text())
    assert True in seen
    text = kernel_source(kernel, made)
    (line,) = [line for line in text.splitlines() if "inside = " in line]
    assert "left_k" not in line and "right_k" not in line
    narrow = planned(simple((2, 20, 6, 7), (20, 20, 3, 3), **SAME))
    assert "step = start" not in kernel_source(narrow.kernels[0], narrow)  # type: ignore[arg-type]


def test_long_sums_are_split(interpreter: Runner) -> None:
    """Few places, many features: parts of the windows are summed by programs of their own."""
    program = simple((1, 1024, 3, 3), (16, 1024, 3, 3), **SAME)
    made = planned(program)
    (kernel,) = made.kernels
    launches = emit(kernel, made, options=EACH).launches  # type: ignore[arg-type]
    assert len(launches) == 2
    draw = np.random.default_rng(0)
    values = {"x": draw.normal(size=(1, 1024, 3, 3)).astype(np.float32), "w": draw.normal(size=(16, 1024, 3, 3)).astype(np.float32)}
    found, expected = run(kernel, made, values, {}, interpreter, EACH)["y"]  # type: ignore[arg-type]
    assert_near(found, expected, F32, 2e-5, absolute=5e-3)


def test_padding_is_multiplied(interpreter: Runner) -> None:
    """A NaN or an infinity in the filters meets zeros at the border, and is NaN there, as the convolution means."""
    program = simple((1, 2, 4, 4), (3, 2, 3, 3), **SAME)
    draw = np.random.default_rng(1)
    x, w = draw.normal(size=(1, 2, 4, 4)).astype(np.float32), draw.normal(size=(3, 2, 3, 3)).astype(np.float32)
    w[0, 0, 0, 0], w[1, 1, 2, 2], x[0, 0, 1, 1] = np.inf, np.nan, -np.inf
    made = planned(program)
    found, _ = run(made.kernels[0], made, {"x": x, "w": w}, {}, interpreter, EACH)["y"]  # type: ignore[arg-type]
    with np.errstate(all="ignore"):
        (expected,) = evaluate_program(program, {"x": x, "w": w})
    assert np.array_equal(np.isnan(found), np.isnan(expected)) and np.isnan(expected).any() and np.isfinite(expected).any()


def test_padding_is_never_written() -> None:
    """What is too dear to be done for each place of a window is a kernel; the padding of it is none."""
    x, w = input_term("x", TensorType(F32, (2, 8, 6, 6))), input_term("w", TensorType(F32, (32, 8, 3, 3)))
    made = planned(Program((x, w), (("y", convolution(op("tanh", x), w, **SAME)),)))
    first, second = made.kernels
    assert [buffer.shape for buffer in made.buffers.values() if buffer.role == "temporary"] == [(2, 8, 6, 6)]
    assert isinstance(second, Product) and any(isinstance(item, Choose) for item in scalars(second.lhs)) and "tanh" in first.terms


def test_what_is_cheap_is_done_where_it_is_read() -> None:
    """A batch normalization and an activation, with the padding around them: three operations for each element."""
    x, w, b = (input_term(name, TensorType(F32, shape)) for name, shape in (("x", (2, 8, 6, 6)), ("w", (32, 8, 3, 3)), ("b", (8,))))
    y = op("multiply", x, broadcast(b, x.tensor.dims, (1,)))
    y = op("maximum", op("add", y, broadcast(b, x.tensor.dims, (1,))), splat(0, F32, x.tensor.dims))
    (kernel,) = planned(Program((x, w, b), (("y", convolution(y, w, **SAME)),))).kernels
    assert isinstance(kernel, Product) and kernel.windowed


def test_sums_that_are_written_out_are_in_32_bits_at_least() -> None:
    """In f16 a one that is added to 2048 is lost."""
    x = np.ones((1, 1, 3, 3), np.float16)
    x[0, 0, 0, 0] = 2048
    program = simple((1, 1, 3, 3), (1, 1, 3, 3), F16)
    assert is_thin(program.roots[0])
    assert plan_numpy.run(planned(program), {"x": x, "w": np.ones((1, 1, 3, 3), np.float16)})["y"].item() == 2056


def test_what_is_no_product_over_windows() -> None:
    plain = simple((2, 4, 6, 6), (4, 4, 3, 3)).roots[0]
    assert has_windows(plain)
    x, w = plain.operands
    assert not has_windows(convolution(x, w, lhs_dilation=(2, 1)))
    assert not has_windows(convolution(x, w, batch_group_count=2))
    integers = simple((2, 4, 6, 6), (4, 4, 3, 3), DTYPES["i8"]).roots[0]
    assert not has_windows(integers)
    assert not has_windows(simple((0, 4, 6, 6), (4, 4, 3, 3)).roots[0])
    assert not has_windows(simple((2, 4), (4, 4)).roots[0])


def test_what_each_feature_has_by_itself_is_written_out(interpreter: Runner) -> None:
    """It takes in what stands behind it, and is no part of a product, which would sum again for each tile."""
    x, w, b = (input_term(name, TensorType(F16, shape)) for name, shape in (("x", (2, 8, 7, 7)), ("w", (8, 1, 3, 3)), ("b", (8,))))
    v = input_term("v", TensorType(F16, (16, 8, 1, 1)))
    y = convolution(op("maximum", x, splat(0, F16, x.tensor.dims)), w, feature_group_count=8, strides=(2, 2), **SAME)
    z = op("add", y, broadcast(b, y.tensor.dims, (1,)))
    for last, kernels in (
        (z, ["add"]),
        (convolution(z, v), ["add", "windowed_product"]),
        (convolution(y, v), ["windowed_sum", "windowed_product"]),
    ):
        made = planned(Program((x, w, b, v), (("y", last),)))
        assert [kernel.terms[-1] for kernel in made.kernels] == kernels
    same = convolution(x, w, feature_group_count=8, **SAME)
    assert [kernel.terms[-1] for kernel in planned(Program((x, w, v), (("y", convolution(same, v)),))).kernels] == [
        "windowed_sum",
        "windowed_product",
    ]
    dear = convolution(op("tanh", x), w, feature_group_count=8, **SAME)
    assert [kernel.terms[-1] for kernel in planned(Program((x, w), (("y", dear),))).kernels] == ["tanh", "windowed_sum"]
    big = convolution(input_term("x", TensorType(F32, (1, 4, 9, 9))), input_term("w", TensorType(F32, (4, 1, 7, 7))), feature_group_count=4)
    assert has_windows(big) and not is_thin(big)


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_convolutions_compile_ahead_of_time(target: str, compiler: Compiler) -> None:
    for x, w, dtype in (((8, 64, 56, 56), (64, 64, 3, 3), F16), ((1, 3, 224, 224), (64, 3, 7, 7), F32)):
        made = planned(simple(x, w, dtype, strides=(2, 2), **SAME))
        for kernel in made.kernels:
            assert isinstance(kernel, Product)
            for compiled in compiler.run(kernel_source(kernel, made), emit(kernel, made).launches, target, {}):
                assert compiled.spilled <= 64
