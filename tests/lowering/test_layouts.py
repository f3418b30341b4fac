"""Orders of dims in memory: whatever values of a program lie with their features last, it computes what it means, in NumPy, in Triton's
interpreter and as a package in torch, whose convolutions get what lies so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coset.dialects  # noqa: F401  (fills the registry)
from coset.backends.triton_runtime import Runner
from coset.dialects.hub.terms import transpose
from coset.ir.evaluate import evaluate_program
from coset.ir.program import Program
from coset.ir.term import input_term, make
from coset.ir.types import F32, TensorType
from coset.lowering.arranging.layouts import buffers_of, features_last, is_convolution, laid_out, movable, runs_last, wanted
from coset.lowering.kernels.kernel import Library, Plan, Pointwise, Product, Rows, reads, writes
from coset.lowering.planning.plan import plan
from coset.lowering.triton.source import EmitOptions, Rounding, can_emit
from coset.rules.definition import evaluate_defined
from tests.lowering import plan_numpy
from tests.lowering.drawn_convolutions import Network
from tests.lowering.triton_cases import assert_near, run

EACH = EmitOptions(rounding=Rounding.EACH)
NEAR = {"f16": 3e-2, "bf16": 2e-1, "f32": 3e-5}


def planned(drawn: Network, *, kernels: bool) -> Plan:
    """The plan, with kernels for what may be one or with a library's convolutions; of all or some values that may, features are last."""
    made = plan(drawn.program, computes=can_emit, windows=(lambda term: True) if kernels else None)
    seeds = [name for kernel in made.kernels if is_convolution(kernel) or (isinstance(kernel, Product) and kernel.windowed)
             for name in (*reads(kernel), *writes(kernel))]  # fmt: skip
    orders = wanted(made, seeds, movable(made))
    if drawn.chance(0.4):
        orders = {name: order for name, order in orders.items() if drawn.chance(0.7)}
    return laid_out(made, orders)


def expected(drawn: Network) -> dict[str, Any]:
    with np.errstate(all="ignore"):
        values = evaluate_program(drawn.program, drawn.feeds, fallback=evaluate_defined)
    return dict(zip((name for name, _ in drawn.program.outputs), values, strict=True))


def compare(drawn: Network, found: Any, what: str) -> None:
    for name, value in expected(drawn).items():
        wide = value.astype(np.float64)
        size = float(np.max(np.abs(wide[np.isfinite(wide)]), initial=1.0))
        near = NEAR[drawn.dtype.name]
        assert_near(np.asarray(found[name]), value, drawn.dtype, near, absolute=near * size, what=f"{what} {name}")


@pytest.mark.parametrize("batch", range(4))
def test_drawn_networks_as_plans(batch: int) -> None:
    """Kernels whose loops follow memory store each element once, of what they stored before."""
    laid = 0
    for seed in range(batch * 50, batch * 50 + 50):
        drawn = Network(seed)
        made = planned(drawn, kernels=seed % 2 == 0)
        laid += any(buffer.order is not None for buffer in made.buffers.values())
        with np.errstate(all="ignore"):
            compare(drawn, plan_numpy.run(made, drawn.feeds), f"seed {seed}")
    assert laid > 40


@pytest.mark.parametrize("batch", range(4))
def test_drawn_networks_in_the_interpreter(batch: int, interpreter: Runner) -> None:
    """Kernel by kernel, in memory of the orders that the plan says, with poison around."""
    kinds = set()

    def before(kernel: Any, at: plan_numpy._Run) -> None:
        if any(at.plan.buffers[name].order for name in (*reads(kernel), *writes(kernel))):
            kinds.add(type(kernel))
            for name, (found, wanted_) in run(kernel, at.plan, at.memory, at.binding, interpreter, EACH).items():
                size = float(np.max(np.abs(np.nan_to_num(wanted_.astype(np.float64), posinf=0, neginf=0)), initial=1.0))
                assert_near(found, wanted_, at.plan.buffers[name].dtype, 2e-5, absolute=2e-5 * size, what=f"{what} {kernel.name} {name}")

    for seed in range(2000 + batch * 8, 2008 + batch * 8):
        what, drawn = f"seed {seed}:", Network(seed)
        with np.errstate(all="ignore"):
            compare(drawn, plan_numpy.run(planned(drawn, kernels=seed % 4 != 0), drawn.feeds, before=before), what)
    assert kinds == {Pointwise, Rows, Product}


@pytest.mark.parametrize("batch", range(4))
def test_drawn_networks_as_packages(batch: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In torch, twice, as the second call finds what the first one left. A convolution that is to run with features last is given what
    lies so, and its result lies so, without a copy of ours; no output does."""
    torch = pytest.importorskip("torch")
    from coset.backends.torch_loaded import LoadedPackage
    from coset.lowering.package.plan import planned_package
    from coset.lowering.package.program import write_package

    seen: list[tuple[Any, ...]] = []

    def watch(name: str) -> None:
        own = getattr(torch.nn.functional, name)

        def called(x: Any, w: Any, **more: Any) -> Any:
            y = own(x, w, **more)
            seen.append((x, w, y))
            return y

        monkeypatch.setattr(torch.nn.functional, name, called)

    for name in ("conv1d", "conv2d", "conv3d"):
        watch(name)
    last = 0
    for seed in range(4000 + batch * 20, 4020 + batch * 20):
        drawn = Network(seed)
        made = planned(drawn, kernels=False)
        calls = [kernel for kernel in made.kernels if is_convolution(kernel)]
        folder = tmp_path / f"p{seed}"
        write_package(planned_package(drawn.program, made, title="layouts", triton=False), folder)
        package = LoadedPackage(folder)
        for _ in range(2):
            seen.clear()
            results = package(package.tensors(drawn.feeds))
            assert all(result.is_contiguous() for result in results)
            compare(drawn, package.run(drawn.feeds), f"seed {seed}")
        assert len(seen) == 2 * len(calls)  # of both runs of the loop's last round
        for kernel, (x, w, y) in zip(calls, seen, strict=False):
            assert isinstance(kernel, Library)
            if not runs_last(made, kernel):
                continue
            last += 1
            assert lies_last(x), f"seed {seed} {kernel.name}"
            if drawn.dtype is F32 and x.shape[1] > 1:  # others torch may do features first: on the CPU, or as one feature lies both ways
                assert lies_last(y), f"seed {seed} {kernel.name}"
            order = made.buffers[buffers_of(kernel)[1]].order
            assert order is None or lies_last(w), f"seed {seed} {kernel.name}"
    assert last > 20


def lies_last(x: Any) -> bool:
    return bool(x.permute(features_last(x.ndim)).is_contiguous())


def test_sums_follow_what_they_read(interpreter: Runner) -> None:
    """A product of patches sums over features, then over the places of a patch; where features are last, these are summed inside."""
    x, w = (input_term(name, TensorType(F32, shape)) for name, shape in (("x", (2, 24, 12, 12)), ("w", (40, 24, 2, 3))))
    patches = make("stablehlo.reshape", (x,), {"shape": (2, 24, 6, 2, 4, 3)})
    sides = {"lhs_batch": (), "rhs_batch": (), "lhs_contract": (1, 3, 5), "rhs_contract": (1, 2, 3)}
    y = transpose(make("stablehlo.dot_general", (patches, w), sides), (0, 3, 1, 2))
    program = Program((x, w), (("y", y),))
    made = plan(program, computes=can_emit)
    last = laid_out(made, {"x": (0, 2, 3, 1), "y": (0, 2, 3, 1)})
    (before,), (kernel,) = made.kernels, last.kernels
    assert isinstance(before, Product) and isinstance(kernel, Product)
    assert [[loop.extent for loop in each.k] for each in (before, kernel)] == [[24, 2, 3], [2, 3, 24]]
    draw = np.random.default_rng(0)
    values = {"x": draw.normal(size=(2, 24, 12, 12)).astype(np.float32), "w": draw.normal(size=(40, 24, 2, 3)).astype(np.float32)}
    (wanted_,) = evaluate_program(program, values)
    assert_near(plan_numpy.run(last, values)["y"], wanted_, F32, 2e-5, absolute=1e-4)
    assert_near(run(kernel, last, values, {}, interpreter, EACH)["y"][0], wanted_, F32, 2e-5, absolute=1e-4)
