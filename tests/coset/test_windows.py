"""Which convolutions are kernels over windows: where the whole plan takes less time by the target's prices; and what is lowered then."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import coset.dialects  # noqa: F401  (fills the registry)
from coset.dialects.hub.terms import broadcast, splat
from coset.extract.work import ContractionWork as Sides
from coset.ir.program import Program
from coset.ir.term import Term, input_term
from coset.ir.types import F16, F32, DType, TensorType
from coset.lowering.arranging.layouts import laid_out
from coset.lowering.kernels.kernel import Library, Plan, Product
from coset.lowering.planning.plan import plan
from coset.lowering.triton.source import can_emit
from coset.pricing.convolutions import gathered, lies_beside, windows_may_pay
from coset.pricing.library import padded
from coset.pricing.plan_price import PlanPrices
from coset.pricing.windows import Planning
from coset.targets.target import Target, get_target
from tests.lowering.test_triton_pools import of_pictures, pool
from tests.lowering.test_triton_windows import SAME, convolution, op, simple

H200 = get_target("nvidia-h200")


def with_share(share: float | None) -> Target:
    """The target with kernels over windows that reach this share of what products do."""
    others = {name: rate for name, rate in H200.numbers.items() if name != "windows"}
    return replace(H200, numbers=others if share is None else {**others, "windows": replace(H200.numbers["windows"], value=share)})


def made(program: Program, target: Target) -> Plan:
    return Planning(program, target, {}).cheapest(PlanPrices(target, {}))


def kinds(planned: Plan) -> list[str]:
    return [
        "library" if isinstance(kernel, Library) else "windows" if isinstance(kernel, Product) else "other" for kernel in planned.kernels
    ]


def block(channels: int, size: int, dtype: DType = F32) -> Program:
    """A convolution between a bias with an activation and another."""
    x, w, b = (
        input_term(name, TensorType(dtype, shape))
        for name, shape in (("x", (1, channels, size, size)), ("w", (channels, channels, 3, 3)), ("b", (channels,)))
    )

    def active(y: Term) -> Term:
        shape = y.tensor.dims
        return op("maximum", op("add", y, broadcast(b, shape, (1,))), splat(0, dtype, shape))

    return Program((x, w, b), (("y", active(convolution(active(x), w, **SAME))),))


def test_a_kernel_pays_by_what_it_takes_in() -> None:
    """The same convolution alone is a library's, which does it sooner; one of much work is in any case."""
    assert kinds(made(block(32, 8), H200)) == ["windows"]
    assert kinds(made(simple((1, 32, 8, 8), (32, 32, 3, 3), **SAME), H200)) == ["library"]
    assert kinds(made(block(512, 64, F16), H200)) == ["other", "library", "other"]
    assert kinds(made(block(512, 64, F16), with_share(2.0))) == ["windows"]
    assert kinds(made(block(32, 8), with_share(1e-4))) == ["other", "library", "other"]


def test_each_shape_is_chosen_by_itself() -> None:
    """All as kernels would be dearer than none."""
    x = input_term("x", TensorType(F16, (8, 256, 56, 56)))
    w, v, b = (input_term(name, TensorType(F16, shape)) for name, shape in (("w", (256, 256, 3, 3)), ("v", (256, 1, 3, 3)), ("b", (256,))))

    def active(y: Term) -> Term:
        shape = y.tensor.dims
        return op("maximum", op("add", y, broadcast(b, shape, (1,))), splat(0, F16, shape))

    y = active(convolution(active(convolution(x, w, **SAME)), v, feature_group_count=256, **SAME))
    planned = made(Program((x, w, v, b), (("y", y),)), with_share(0.4))
    assert [kernel.terms[-1] for kernel in planned.kernels if "convolution" in kernel.terms] == ["convolution"]
    assert any("windowed_sum" in kernel.terms for kernel in planned.kernels)


def test_other_prices_choose_otherwise() -> None:
    """As autotuning's other programs do, planned for the same target."""
    planning = Planning(block(512, 64, F16), H200, {})
    assert kinds(planning.cheapest(PlanPrices(with_share(2.0), {}))) == ["windows"] != kinds(planning.cheapest(PlanPrices(H200, {})))


def test_a_target_that_says_nothing_of_windows_has_none() -> None:
    assert kinds(made(block(32, 8), with_share(None))) == ["other", "library", "other"]
    assert not windows_may_pay(PlanPrices(with_share(None), {}).machine, simple((1, 32, 8, 8), (32, 32, 3, 3)).roots[0])


@pytest.mark.parametrize("share", [0.02, 0.5, 2.0])
def test_no_plan_is_dearer_than_the_librarys(share: float) -> None:
    """Several shapes, of which some pay: each is tried by itself."""
    target = with_share(share)
    x = input_term("x", TensorType(F32, (2, 16, 24, 24)))
    inputs, y = [x], x
    for count, (features, depth, groups) in enumerate([(16, 16, 1), (64, 16, 1), (64, 1, 64), (256, 64, 1), (8, 256, 1)]):
        inputs.append(input_term(f"w{count}", TensorType(F32, (features, depth, 3, 3))))
        y = convolution(y, inputs[-1], feature_group_count=groups, **SAME)
        y = op("maximum", y, splat(0, F32, y.tensor.dims)) if count % 2 else op("tanh", y)
    program = Program(tuple(inputs), (("y", y),))
    prices = PlanPrices(target, {})
    library, found = Planning(program, target, {}).library(), made(program, target)
    assert prices.plan_seconds(found) <= prices.plan_seconds(library)
    assert prices.plan_seconds(found) < prices.plan_seconds(library) or share == 0.02


def test_lowered_with_every_convolution_as_a_kernel(tmp_path: Path) -> None:
    """Padding, strides, groups, each feature by itself, as a package that is compared in Triton's interpreter; the cost that is reported is
    that of the plan."""
    pytest.importorskip("triton", reason="Triton is not installed")
    from coset.packaging.asked import Check, Lowering
    from coset.packaging.lower import lower

    x = input_term("x", TensorType(F32, (2, 8, 9, 9)))
    inputs, y = [x], x
    for count, (features, depth, groups, stride) in enumerate([(16, 8, 1, 2), (16, 1, 16, 1), (12, 8, 2, 1)]):
        inputs.append(input_term(f"w{count}", TensorType(F32, (features, depth, 3, 3))))
        y = convolution(y, inputs[-1], feature_group_count=groups, strides=(stride, stride), **SAME)
        y = op("maximum", y, splat(0, F32, y.tensor.dims))
    program = Program(tuple(inputs), (("y", y),))
    report = lower(Lowering(program, with_share(50.0), check=Check.INTERPRETED), tmp_path / "package")
    assert all("triton" in str(kernel) for kernel in report["kernels"]) and report["check"]
    assert report["cost"]["output"] == pytest.approx(report["memory"]["default"]["seconds"]) and report["cost"]["gap"] >= 0.0
    torch = lower(Lowering(program, with_share(50.0), code="torch"), tmp_path / "torch")
    assert any("convolution" in str(kernel) for kernel in torch["kernels"])


def first(batch: int, pixels: int, *, channels: int = 3, window: int = 7) -> Program:
    """A network's first convolution with its bias and activation, and a pool."""
    x, w, b = (
        input_term(name, TensorType(F16, shape))
        for name, shape in (("x", (batch, channels, pixels, pixels)), ("w", (64, channels, window, window)), ("b", (64,)))
    )
    y = convolution(x, w, strides=(2, 2), padding=((window // 2, window // 2),) * 2)
    y = op("maximum", op("add", y, broadcast(b, y.tensor.dims, (1,))), splat(0, F16, y.tensor.dims))
    return Program((x, w, b), (("y", of_pictures(y)),))


def only_convolution(program: Program) -> Term:
    (found,) = [term for term in program.terms() if term.op.name == "stablehlo.convolution"]
    return found


@pytest.mark.parametrize("channels", [3, 4])
@pytest.mark.parametrize(
    ("batch", "pixels", "first_kernel"), [(64, 224, "library"), (8, 224, "library"), (64, 64, "library"), (8, 64, "windows")]
)
def test_a_convolution_of_few_features_is_a_librarys(channels: int, batch: int, pixels: int, first_kernel: str) -> None:
    """Unless it is small: each element of its windows has an address and bounds of its own, but a library adds features first. The pool
    behind takes in the bias and the activation where the convolution does not."""
    assert kinds(made(first(batch, pixels, channels=channels), H200)) == [first_kernel, "other"]


def test_loads_of_few_features_take_what_was_measured() -> None:
    """384 us on an H200 (benchmarks/gpu_models.py, ResNet-50's first convolution, 2026-11-26); a product of that size would take 42."""
    planned = plan(first(64, 224), computes=can_emit, windows=lambda term: term.op.name == "stablehlo.convolution")
    kernel = next(kernel for kernel in planned.kernels if isinstance(kernel, Product))
    assert PlanPrices(H200, {}).kernel(planned, kernel) == pytest.approx(384e-6, rel=0.1)


@pytest.mark.parametrize(("features", "beside", "loads"), [(3, True, 160), (3, False, 160), (8, True, 50), (8, False, 400), (16, False, 0)])
def test_which_loads_have_addresses_of_their_own(features: int, beside: bool, loads: int) -> None:
    """Of a window of 7 x 7, in whole blocks of 16; those that lie side by side come together where a block is not in one place."""
    sides = Sides(1, 1000, 49 * features, 64)
    assert gathered(sides, features, F16, beside=beside) == 1000 * loads
    assert gathered(replace(sides, columns=256), features, F16, beside=beside) == 2000 * loads


def test_features_lie_side_by_side_where_they_are_last() -> None:
    planned = plan(simple((2, 8, 9, 9), (16, 8, 3, 3), F16, **SAME), computes=can_emit, windows=lambda term: True)
    (kernel,) = planned.kernels
    assert isinstance(kernel, Product) and not lies_beside(planned, kernel)
    assert lies_beside(laid_out(planned, {"x": (0, 2, 3, 1)}), kernel)


def test_a_library_adds_features_until_there_is_a_multiple() -> None:
    def takes(channels: int, dtype: DType) -> float:
        return PlanPrices(H200, {}).seconds(simple((64, channels, 56, 56), (64, channels, 3, 3), dtype))

    assert takes(3, F16) > takes(8, F16)
    assert takes(3, F32) < takes(8, F32)
    x, w = padded(only_convolution(simple((2, 12, 9, 9), (16, 12, 3, 3), F16)), 8)
    assert (x.dims, w.dims) == ((2, 16, 9, 9), (16, 16, 3, 3))
    grouped = only_convolution(simple((2, 12, 9, 9), (12, 1, 7, 7), F16, feature_group_count=12))
    assert padded(grouped, 8) == tuple(operand.tensor for operand in grouped.operands)


def test_a_pool_that_is_written_out_saves_a_kernel() -> None:
    """A target that says nothing of windows leaves it to the library, behind the bias and the activation."""
    assert kinds(made(first(8, 64), with_share(None))) == ["library", "other", "library"]


@pytest.mark.parametrize("window", [(4,), (4, 2), (2, 2, 3)])
def test_windows_side_by_side_are_a_product(window: tuple[int, ...], tmp_path: Path) -> None:
    """ViT's patches, over one to three dims: each element of x is in one window."""
    pytest.importorskip("triton", reason="Triton is not installed")
    from coset.packaging.asked import Check, Lowering
    from coset.packaging.lower import lower

    shapes = {"x": (3, 3, *(3 * size for size in window)), "w": (24, 3, *window), "b": (24,)}
    x, w, b = (input_term(name, TensorType(F16, shape)) for name, shape in shapes.items())
    y = convolution(x, w, strides=window)
    program = Program((x, w, b), (("y", op("add", y, broadcast(b, y.tensor.dims, (1,)))),))
    report = lower(Lowering(program, H200, check=Check.INTERPRETED), tmp_path / "package")
    assert [kernel["name"] for kernel in report["kernels"]] == ["k0_dot_add"] and report["check"]
    assert "patches_as_product" in str(report["rules"])


@pytest.mark.parametrize(
    ("window", "low", "dilation", "goes"), [(3, 1, 1, True), (3, 2, 1, True), (2, 2, 1, False), (3, 1, 2, False), (3, -1, 1, False)]
)
def test_a_rectified_pool_is_rectified_behind(window: int, low: int, dilation: int, goes: bool, tmp_path: Path) -> None:
    """Of fewer elements: where no window is of padding alone, which is less than zero."""
    from coset.packaging.asked import Check, Lowering
    from coset.packaging.lower import lower

    x = input_term("x", TensorType(F16, (2, 8, 20, 20)))
    moved = {"window_strides": (1, 1, 2, 2), "window_dilations": (1, 1, dilation, 1), "padding": ((0, 0), (0, 0), (low, 0), (0, 0))}
    y = pool(op("maximum", x, splat(0, F16, x.tensor.dims)), "maximum", (1, 1, window, 2), **moved)
    report = lower(Lowering(Program((x,), (("y", y),)), H200, check=Check.TORCH), tmp_path / "package")
    assert ("rectified_maximum_pool" in str(report["rules"])) == goes
