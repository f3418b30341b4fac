"""Reductions of few long rows are made in parts: any rows, axes and lengths give what one walk over each row gives, where there is NaN, an
infinity, or a mean that is large beside the deviation; and they are split where waiting would take longer than launching."""

from __future__ import annotations

import numpy as np
import pytest

import coset.dialects  # noqa: F401  (fills the registry)
from coset.backends.triton_runtime import Runner
from coset.dialects.hub.terms import convert, reshape
from coset.ir.dims import Dim, symbol
from coset.ir.program import Program
from coset.ir.term import Term
from coset.ir.types import F16, F32, F64, DType
from coset.lowering.arranging.layouts import laid_out
from coset.lowering.kernels.kernel import Pointwise, Rows
from coset.lowering.planning import kinds
from coset.lowering.planning.kinds import KernelLimits
from coset.lowering.planning.plan import plan
from coset.lowering.planning.splitting import split
from coset.targets.target import get_target
from tests.lowering import plan_numpy
from tests.lowering.plan_cases import along, fold, like, op, softmax_of, x_
from tests.lowering.triton_cases import assert_near, run
from tests.sampled import sampled

pytest.importorskip("triton", reason="Triton is not installed")

Array = np.ndarray
EAGER = KernelLimits(step_bytes=1 << 40, launch_bytes=0)  # whatever is longer than a tile is split


def squares_of(x: Term, count: float, *axes: int) -> Term:
    """The squares about a mean, or about what is no mean where `count` is another number than that of the elements."""
    total = fold(x, "add", *axes)
    off = op("subtract", x, along(op("divide", total, like(count, total)), x, *axes))
    return fold(op("multiply", off, off), "add", *axes)


def wild(shape: tuple[int, ...], draw: np.random.Generator) -> Array:
    """Rows (the first dim) with what is not finite, what cancels and what would overflow."""
    x = draw.normal(size=shape) * 10.0 ** draw.integers(-3, 2, (shape[0], *(1 for _ in shape[1:])))
    flat = x.reshape(shape[0], -1)
    for row, kind in enumerate(draw.permutation(8)[: shape[0]]):
        place = draw.integers(flat.shape[1])
        if kind == 1:
            flat[row] += 30 * flat[row].std()
        elif kind in (2, 3, 4):
            flat[row, place] = (np.nan, np.inf, -np.inf)[kind - 2]
        elif kind == 5:
            flat[row] = -np.inf
        elif kind == 6:
            flat[row, : place + 1] = -np.inf
        elif kind == 7:
            flat[row] = np.sort(flat[row] * 100)
    return x


@pytest.mark.parametrize("batch", sampled(range(8)))
@pytest.mark.parametrize("family", ["softmax", "squares", "sum", "maximum"])
def test_drawn_rows_in_parts(family: str, batch: int) -> None:
    for seed in range(batch * 8, batch * 8 + 8):
        draw = np.random.default_rng(seed)
        rows = int(draw.integers(1, 4))
        images = bool(draw.integers(0, 2))
        inner = tuple(draw.choice([3, 5, 6, 8, 12, 40, 41], 3).tolist()) if images else (int(draw.choice([17, 640, 2049, 4100, 9001])),)
        free = bool(draw.integers(0, 2)) and not images
        dtype: DType = (F32, F32, F64)[draw.integers(3)]
        dims: tuple[Dim, ...] = (rows, symbol("n")) if free else (rows, *inner)
        x = x_("x", dtype, *dims)
        columns = int(np.prod(inner))
        axes: tuple[int, ...] = tuple(range(1, len(dims)))
        value = x
        if images and draw.integers(0, 2):  # as a group's channels and pixels are one dim
            value, axes = reshape(x, (rows, columns)), (1,)
        if family == "softmax":
            top = fold(value, "maximum", *axes)
            e = op("exponential", op("subtract", value, along(top, value, *axes)))
            y = op("divide", e, along(fold(e, "add", *axes), e, *axes))
        else:
            count = float(columns if draw.integers(0, 2) else draw.integers(1, 2000))
            y = squares_of(value, count, *axes) if family == "squares" else fold(value, "add" if family == "sum" else "maximum", *axes)
        made = plan(Program((x,), (("y", y),)), limits=KernelLimits(step_bytes=1 << 30, launch_bytes=0), binding={"n": columns})
        values = wild((rows, *inner), draw).astype(dtype.numpy)
        with np.errstate(all="ignore"):
            found = plan_numpy.run(made, {"x": values})["y"].astype(np.float64).reshape(rows, -1)
            wide = values.astype(np.float64).reshape(rows, -1)
            if family == "squares":
                expected = ((wide - wide.sum(1, keepdims=True) / count) ** 2).sum(1, keepdims=True)
            elif family == "softmax":
                raised = np.exp(wide - wide.max(1, keepdims=True))
                expected = raised / raised.sum(1, keepdims=True)
            else:
                expected = (wide.sum if family == "sum" else wide.max)(1, keepdims=True)
            size = np.abs(np.where(np.isfinite(wide), wide, 0)).sum(1, keepdims=True)
        unit = 2.0**-52 if dtype is F64 else 2.0**-23
        # sums of f32 by pairs: some roundings of what is summed; c is off by as many, and each square by twice that times its root
        absolute = 64 * unit * size if family in ("sum", "squares") else np.full_like(size, 2.0**-120)  # below which f32 may be subnormal
        scale = np.abs(expected) + (np.sqrt(np.abs(expected)) * size / np.sqrt(columns) if family == "squares" else 0.0)
        with np.errstate(invalid="ignore"):
            near = np.abs(found - expected) <= absolute + 256 * unit * scale
            near |= np.isnan(found) & np.isnan(expected)
        assert np.all(near | (found == expected)), (seed, family, found, expected)


@pytest.mark.parametrize("order", [None, (0, 2, 3, 1)])
@pytest.mark.parametrize("side", [24, 23])
def test_kernels_of_a_normalization_in_parts(
    side: int, order: tuple[int, ...] | None, interpreter: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of groups of channels, with features first and last; lines that parts share equally and others."""
    x = x_("x", F16, 2, 8, side, side)
    groups = reshape(convert(x, F32), (2, 2, 4 * side * side))
    total = fold(groups, "add", 2)
    off = op("subtract", groups, along(op("divide", total, like(4 * side * side, total)), groups, 2))
    spread = op("rsqrt", op("add", fold(op("multiply", off, off), "add", 2), like(1e-3, total)))
    y = convert(reshape(op("multiply", off, along(spread, off, 2)), x.tensor.dims), F16)
    monkeypatch.setattr(kinds, "WHOLE_ROW", 1024)
    monkeypatch.setattr(kinds, "TILE", 256)
    made = plan(Program((x,), (("y", y),)), limits=KernelLimits(step_bytes=1 << 20, launch_bytes=0))
    made = laid_out(made, {"x": order, "y": order}) if order is not None else made
    assert [type(kernel) for kernel in made.kernels] == [Rows, Rows, Pointwise]
    values = (np.random.default_rng(3).normal(size=(2, 8, side, side)) + 5).astype(np.float16)

    def before(kernel: Rows | Pointwise, at: plan_numpy._Run) -> None:
        for name, (found, expected) in run(kernel, at.plan, at.memory, at.binding, interpreter).items():
            assert_near(found, expected, at.plan.buffers[name].dtype, 2e-5, 1e-5, what=f"{kernel.name} {name}")

    found = plan_numpy.run(made, {"x": values}, before=before)["y"].astype(np.float64)
    wide = values.astype(np.float64).reshape(2, 2, -1)
    wide -= wide.mean(2, keepdims=True)
    expected = (wide / np.sqrt((wide**2).sum(2, keepdims=True) + 1e-3)).reshape(values.shape)
    np.testing.assert_allclose(found, expected, rtol=2e-3, atol=1e-5)


def test_what_is_split() -> None:
    """By what waiting takes on a target: few rows or few tiles of rows; not what one program holds, nor what is many."""

    def kinds(*shape: int, axes: tuple[int, ...] = (1,), target: str = "nvidia-h200") -> list[str]:
        x = x_("x", F32, *shape)
        made = plan(Program((x,), (("y", fold(x, "add", *axes)),)), get_target(target))
        return [type(kernel).__name__ for kernel in made.kernels]

    assert kinds(1, 100_000) == kinds(128, 163_840) == kinds(32, 65_536) == ["Rows", "Rows"]
    assert kinds(1, 8192) == kinds(2048, 65_536) == kinds(128, 4096) == kinds(100_000, 40) == ["Rows"]
    assert kinds(65_536, 512, axes=(0,)) == ["Rows", "Rows"]  # 8 tiles of columns, each 2,048 steps
    assert kinds(128, 512, axes=(0,)) == kinds(4096, 65_536, axes=(0,)) == ["Rows"]


def test_a_normalization_reads_twice() -> None:
    """A walk for mean and squares, one for the result."""
    x = x_("x", F16, 16, 320, 64, 64)
    groups = reshape(convert(x, F32), (16, 8, 163840))
    total = fold(groups, "add", 2)
    mean = op("divide", total, like(163840, total))
    off = op("subtract", groups, along(mean, groups, 2))
    squares = fold(op("multiply", off, off), "add", 2)
    y = convert(reshape(op("multiply", off, along(op("rsqrt", squares), off, 2)), x.tensor.dims), F16)
    made = plan(Program((x,), (("y", y),)), get_target("nvidia-h200"))
    assert [type(kernel) for kernel in made.kernels] == [Rows, Rows, Pointwise]
    parts = made.kernels[0]
    assert isinstance(parts, Rows) and len(parts.folds) == 2
    assert [loop.extent for loop in parts.columns] == [40, 8, 64]  # whole lines of each channel: neighbours, with features last too


def test_exact_sums_are_of_what_the_program_says() -> None:
    """To the bit but for the order: no other squares, no other exponentials."""
    x = x_("x", F32, 4, 100_000)
    for y in (squares_of(x, 100_000, 1), softmax_of(x)):
        about = plan(Program((x,), (("y", y),)), get_target("nvidia-h200"))
        exact = plan(Program((x,), (("y", y),)), get_target("nvidia-h200"), exact=True)
        assert len(about.kernels) < len(exact.kernels)


def test_a_fold_of_something_else_is_none_of_its_parts() -> None:
    """Squares about what another value sums to."""
    x, z = x_("x", F32, 4, 100_000), x_("z", F32, 4, 100_000)
    total = fold(z, "add", 1)
    off = op("subtract", x, along(total, x, 1))
    (root,) = split((fold(op("multiply", off, off), "add", 1),), EAGER, {})
    assert root.op.name == "stablehlo.reduce" and root.operands[0].op.name == "stablehlo.reduce"
