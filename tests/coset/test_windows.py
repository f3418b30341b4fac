"""Which convolutions are kernels over windows: where the whole plan takes less time by the target's prices; and what is lowered then."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import coset.dialects  # noqa: F401  (fills the registry)
from coset.dialects.hub_terms import broadcast, splat
from coset.ir.program import Program
from coset.ir.term import Term, input_term
from coset.ir.types import F16, F32, DType, TensorType
from coset.lowering.kernel import Library, Plan, Product
from coset.plan_price import PlanPrices
from coset.targets.target import Target, get_target
from coset.windows import Planning
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
    assert not PlanPrices(with_share(None), {}).may_be_windowed(simple((1, 32, 8, 8), (32, 32, 3, 3)).roots[0])


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
    from coset.lower import Check, Lowering, lower

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
