"""Which values have their features last: those of convolutions in half precision, where the whole plan takes less time; and what is lowered
then."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import coset.dialects  # noqa: F401  (fills the registry)
from coset.dialects.hub.terms import broadcast, reshape, splat
from coset.ir.dims import Dim, symbol
from coset.ir.program import Program
from coset.ir.term import Term, constant, input_term
from coset.ir.types import BF16, F16, F32, F64, DType, TensorType
from coset.lowering.arranging.layouts import movable, turned, wanted
from coset.lowering.arranging.recomputing import in_place
from coset.lowering.kernels.kernel import Buffer, Library, Load, Loop, Plan, Pointwise, Rows, Store, reads, writes
from coset.lowering.kernels.plan_text import show
from coset.lowering.planning.plan import plan
from coset.lowering.triton.shared import _begins
from coset.lowering.triton.source import can_emit
from coset.pricing.plan_price import PlanPrices
from coset.pricing.windows import Planning
from coset.targets.target import Target, get_target
from tests.lowering.drawn_convolutions import Network
from tests.lowering.test_triton_windows import SAME, convolution, op

H200 = get_target("nvidia-h200")
LAST = (0, 2, 3, 1)


def without(*names: str) -> Target:
    """The target without some of its numbers."""
    return replace(H200, numbers={name: number for name, number in H200.numbers.items() if name not in names})


def made(program: Program, target: Target = H200, **binding: int) -> Plan:
    return Planning(program, target, binding).library()


def filters(*shape: int, dtype: DType = F16, seed: int = 0) -> Term:
    draw = np.random.default_rng(seed)
    return constant((draw.normal(size=shape) / np.prod(shape[1:]) ** 0.5).astype(dtype.numpy), dtype)


def active(y: Term) -> Term:
    return op("maximum", y, splat(0, y.tensor.dtype, y.tensor.dims))


def chain(dtype: DType, count: int = 3, *, batch: Dim = 8, features: int = 64, size: int = 28, groups: int = 1) -> Program:
    """Convolutions with activations between them."""
    x = input_term("x", TensorType(dtype, (batch, features, size, size)))
    y: Term = x
    for place in range(count):
        w = filters(features, features // groups, 3, 3, dtype=dtype, seed=place)
        y = active(convolution(y, w, feature_group_count=groups, **SAME))
    return Program((x,), (("y", y),))


def normalized(y: Term, groups: int) -> Term:
    """By groups of features."""
    batch, depth, *space = y.tensor.dims
    assert isinstance(depth, int)
    length = depth // groups * int(np.prod(space))  # type: ignore[arg-type]
    flat = reshape(y, (batch, groups, length))
    share = splat(1 / length, y.tensor.dtype, (batch, groups))
    mean = op("multiply", op("reduce", flat, dimensions=(2,), combiner="add"), share)
    off = op("subtract", flat, broadcast(mean, flat.tensor.dims, (0, 1)))
    spread = op("multiply", op("reduce", op("multiply", off, off), dimensions=(2,), combiner="add"), share)
    return reshape(op("multiply", off, broadcast(op("rsqrt", spread), flat.tensor.dims, (0, 1))), y.tensor.dims)


def turns(planned: Plan) -> list[str]:
    return [name for kernel in planned.kernels if isinstance(kernel, Library) for name in turned(planned, kernel, 16)]


def orders(planned: Plan) -> dict[str, tuple[int, ...]]:
    return {name: buffer.order for name, buffer in planned.buffers.items() if buffer.order is not None}


@pytest.mark.parametrize("dtype", [F16, BF16], ids=str)
def test_between_convolutions_in_half_precision_nothing_is_turned(dtype: DType) -> None:
    """But for the input, which lies as it is given; filters are laid out once."""
    planned = made(chain(dtype))
    assert turns(planned) == ["x"]
    assert set(orders(planned).values()) == {LAST}
    inside = [name for name, buffer in planned.buffers.items() if buffer.role in ("temporary", "constant") and len(buffer.shape) == 4]
    assert sorted(orders(planned)) == sorted(inside)
    prices = PlanPrices(H200, {})
    first = replace(planned, buffers={name: replace(buffer, order=None) for name, buffer in planned.buffers.items()})
    assert prices.plan_seconds(planned) < prices.plan_seconds(first)


@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
def test_what_is_multiplied_in_full_stays_as_it_is(dtype: DType) -> None:
    """And plans of a target that says nothing of it stay byte for byte."""
    assert show(made(chain(dtype))) == show(made(chain(dtype), without("features_last")))
    assert not orders(made(chain(F16), without("features_last")))
    assert PlanPrices(H200, {}).seconds(chain(dtype)) == PlanPrices(without("features_last"), {}).seconds(chain(dtype))


def test_a_library_that_turns_its_operands_is_priced_so() -> None:
    """Each copy is a launch, and reads and writes the whole. A convolution of each feature by itself is done either way."""
    prices, deaf = (PlanPrices(target, {}) for target in (H200, without("features_last")))
    planned = made(chain(F16, 1), without("features_last"))
    (kernel,) = (kernel for kernel in planned.kernels if isinstance(kernel, Library))
    own = H200.kernels["fused"]
    x, w, y = (planned.buffers[name] for name in (*reads(kernel), *writes(kernel)))
    assert turned(planned, kernel, 16) == (x.name, w.name, y.name)
    more = sum(own.launch.value + own.moving(2 * prices.bytes(buffer)) for buffer in (x, w, y))
    assert prices.kernel(planned, kernel) == pytest.approx(deaf.kernel(planned, kernel) + more)
    by_feature = made(chain(F16, 1, groups=64), without("features_last"))
    assert not turns(by_feature) and not orders(made(chain(F16, 1, groups=64)))
    laid = replace(planned, buffers={**planned.buffers, w.name: replace(w, order=LAST)})
    assert turned(laid, kernel, 16) == (x.name, y.name)
    assert turned(laid, kernel, 15) == (x.name, y.name, x.name, w.name, y.name)  # where f16 is wanted features first


def test_inputs_and_outputs_lie_as_they_are() -> None:
    """Also where a value is an output and read by the next convolution, or a constant is one."""
    program = chain(F16)
    inner = program.roots[0].operands[0].operands[0]
    weights = inner.operands[1] if inner.op.name == "stablehlo.convolution" else program.roots[0].operands[0].operands[1]
    planned = made(Program(program.inputs, (*program.outputs, ("inner", program.roots[0].operands[0]), ("w", weights))))
    ends = {name for _, name in (*planned.inputs, *planned.outputs)}
    assert orders(planned) and not ends & orders(planned).keys()


def test_an_unknown_batch_changes_nothing() -> None:
    assert orders(made(chain(F16, batch=symbol("n")), n=8)) == orders(made(chain(F16)))


def test_statistics_of_groups_are_read_along_their_features() -> None:
    """A normalization between two convolutions follows them: its loops go through memory, by digits of what was one dim."""
    x = input_term("x", TensorType(F16, (64, 320, 32, 32)))
    y = convolution(x, filters(320, 320, 3, 3), **SAME)
    y = convolution(normalized(y, 8), filters(320, 320, 3, 3), **SAME)
    planned = made(Program((x,), (("y", y),)))
    (rows,) = (kernel for kernel in planned.kernels if isinstance(kernel, Rows))
    assert {planned.buffers[name].order for name in (*reads(rows), *writes(rows)) if len(planned.buffers[name].shape) == 4} == {LAST}
    assert [loop.extent for loop in rows.columns] == [32, 32, 40]
    prices = PlanPrices(H200, {})
    first = replace(planned, buffers={name: replace(buffer, order=None) for name, buffer in planned.buffers.items()})
    assert prices.kernel(planned, rows) <= 1.2 * prices.kernel(first, rows)  # runs of 40 features are 80 of 96 bytes


def test_statistics_of_features_alone_keep_features_first() -> None:
    """Few programs would do them: each value read of other rows. The convolutions beside turn what they read."""
    x = input_term("x", TensorType(F16, (32, 64, 28, 28)))
    y = convolution(x, filters(64, 64, 3, 3), **SAME)
    mean = op("reduce", y, dimensions=(0, 2, 3), combiner="add")
    y = op("subtract", y, broadcast(op("multiply", mean, splat(1 / 25088, F16, (64,))), y.tensor.dims, (1,)))
    planned = made(Program((x,), (("y", convolution(y, filters(64, 64, 3, 3), **SAME)),)))
    prices = PlanPrices(H200, {})
    for name in orders(planned):
        fewer = {other: replace(buffer, order=None) if other == name else buffer for other, buffer in planned.buffers.items()}
        assert prices.plan_seconds(planned) <= prices.plan_seconds(replace(planned, buffers=fewer))


@pytest.mark.parametrize("seed", range(20))
def test_no_plan_is_dearer_with_features_last(seed: int) -> None:
    drawn = Network(seed, dtype=F16)
    prices = PlanPrices(H200, drawn.sizes)
    first, last = made(drawn.program, without("features_last"), **drawn.sizes), made(drawn.program, **drawn.sizes)
    assert prices.plan_seconds(last) <= prices.plan_seconds(first)


def test_a_pool_and_what_is_put_together_follow() -> None:
    x = input_term("x", TensorType(F16, (8, 64, 28, 28)))
    y = active(convolution(x, filters(64, 64, 3, 3), **SAME))
    pool = op("reduce_window", y, combiner="maximum", window_dimensions=(1, 1, 2, 2), window_strides=(1, 1, 2, 2), base_dilations=(1,) * 4,
              window_dilations=(1,) * 4, padding=((0, 0),) * 4)  # fmt: skip
    one, two = (active(convolution(pool, filters(32, 64, size, size), padding=((size // 2,) * 2,) * 2)) for size in (1, 3))
    y = convolution(op("concatenate", one, two, dimension=1), filters(64, 64, 3, 3), **SAME)
    planned = made(Program((x,), (("y", y),)))
    assert turns(planned) == ["x", "y"]
    assert any(kernel.term.op.name == "stablehlo.reduce_window" for kernel in planned.kernels if isinstance(kernel, Library))


def block(size: int = 6) -> Program:
    """A residual block with normalizations of groups, as in a U-Net."""
    x = input_term("x", TensorType(F16, (2, 16, size, size)))
    y = convolution(active(normalized(x, 4)), filters(16, 16, 3, 3), **SAME)
    y = convolution(active(normalized(y, 4)), filters(16, 16, 3, 3), **SAME)
    return Program((x,), (("y", op("add", x, y)),))


@pytest.mark.parametrize("code", ["torch", "triton"])
def test_lowered(code: str, tmp_path: Path) -> None:
    """A whole package, compared with what the program means: as torch functions, and with its kernels in Triton's interpreter."""
    pytest.importorskip("torch")
    if code == "triton":
        pytest.importorskip("triton", reason="Triton is not installed")
    from coset.packaging.asked import Check, Lowering
    from coset.packaging.lower import lower

    check = Check.INTERPRETED if code == "triton" else Check.TORCH
    target = without("windows")  # which would do so small convolutions sooner
    report = lower(Lowering(block(), target, code=code, check=check), tmp_path / "package")
    assert report["check"]["ok"]
    manifest = json.loads((tmp_path / "package" / "manifest.json").read_text())
    laid = [one for one in manifest["weights"] if len(one["shape"]) == 4]
    assert laid and all(one["order"] == list(LAST) for one in laid)
    text = (tmp_path / "package" / "model.py").read_text()
    assert "device, (0, 2, 3, 1))" in text


def test_lowered_under_a_limit_of_memory(tmp_path: Path) -> None:
    """Memory that is new for each value has its order too."""
    pytest.importorskip("torch")
    from coset.backends.torch_loaded import LoadedPackage
    from coset.packaging.asked import Check, Lowering
    from coset.packaging.lower import lower

    asked = Lowering(block(), without("windows"), code="torch", check=Check.TORCH, opened=lambda folder, _: LoadedPackage(folder))
    default = lower(replace(asked, check=Check.NONE), tmp_path / "default")["memory"]["default"]["bytes"]
    report = lower(replace(asked, max_memory=int(default)), tmp_path / "package")
    assert report["check"]["ok"]
    assert "empty((2, 16, 6, 6), torch.float16, device, (0, 2, 3, 1))" in (tmp_path / "package" / "model.py").read_text()


def test_under_torch_compile(tmp_path: Path) -> None:
    """Filters are inputs there, which are turned at each call; what is between the convolutions is not."""
    torch = pytest.importorskip("torch")
    import coset

    torch.manual_seed(0)
    nn = torch.nn
    layers = (nn.Conv2d(4, 16, 3, padding=1), nn.GroupNorm(4, 16), nn.SiLU(), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU())
    module = nn.Sequential(*layers).half().eval().requires_grad_(False)
    x = torch.randn(2, 4, 10, 10).half()
    wanted = module(x)
    for given in (x, x.to(memory_format=torch.channels_last)):
        torch._dynamo.reset()
        found = coset.compile(module, code="torch", target="nvidia-h200", folder=tmp_path, seconds=2.0, nodes=4000)(given)
        assert found.stride() == module(given).stride()
        assert float((found.float() - wanted.float()).abs().max()) < 2e-2
    assert any("device, (0, 2, 3, 1))" in (folder / "model.py").read_text() for folder in tmp_path.iterdir())


def test_pointwise_kernels_go_through_memory() -> None:
    """Between two convolutions the features are the innermost loop."""
    planned = made(chain(F16))
    between = [kernel for kernel in planned.kernels if isinstance(kernel, Pointwise)][:-1]
    assert between and all(kernel.loops[-1].extent == 64 for kernel in between)


def test_what_a_kernel_over_windows_makes_follows() -> None:
    """Of three convolutions only the last is a library's: what the others make and read lies as it reads, filters too, so that features are
    neighbours."""
    program = chain(F16)
    count = iter(range(9))
    planned = plan(program, computes=can_emit, windows=lambda term: next(count) < 2)
    (kernel,) = (kernel for kernel in planned.kernels if isinstance(kernel, Library))
    found = wanted(planned, kernel.operands, movable(planned))  # type: ignore[arg-type]
    assert {name: found.get(name) for name in ("t1", "t2")} == {"t1": LAST, "t2": LAST}
    assert {len(found[name]) for name in found if planned.buffers[name].role == "constant"} == {4} and len(found) >= 4


def test_memory_is_taken_over_only_in_its_own_order() -> None:
    """A kernel may write where it reads if each element lies where it lay."""
    loop = tuple(Loop(f"loop:{axis}", extent) for axis, extent in enumerate((2, 3, 4)))
    index = tuple(each.index for each in loop)
    kernel = Pointwise("k", loop, (Store("y", index, Load("x", index, F16)),))
    x, y = (Buffer(name, F16, (2, 3, 4), "temporary") for name in "xy")
    assert list(in_place(kernel, Plan({"x": x, "y": y}, (kernel,), (), ()))) == [("y", "x")]
    moved = replace(y, order=(0, 2, 1))
    assert not list(in_place(kernel, Plan({"x": x, "y": moved}, (kernel,), (), ())))


def test_kernels_that_are_alike_begin_at_the_first_element_of_what_lies_in_another_order() -> None:
    """A function that several share begins where its kernel first touches a buffer, which is a place of row-major memory."""
    loop = Loop("loop:0", 4)
    kernel = Pointwise("k", (loop,), (Store("y", (loop.index,), Load("x", (1, loop.index), F16)),))
    x, y = Buffer("x", F16, (2, 4), "temporary"), Buffer("y", F16, (4,), "output")
    assert _begins(kernel, Plan({"x": x, "y": y}, (kernel,), (), ())) == (("x", 4),)
    assert _begins(kernel, Plan({"x": replace(x, order=(1, 0)), "y": y}, (kernel,), (), ())) == ()
