"""`torch.compile` with coset's backend gives what the installed torch gives for rare inputs, and never raises where torch does not."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from torch_models import torch  # without torch the tests are skipped here

import coset
from coset import compiling
from coset.compiling import compiled_graphs, forget_graphs
from coset.dialects.aten.node import BUILDERS, convert
from coset.dialects.onnx.arithmetic import clamp
from coset.ir.term import input_term, make, topological
from coset.ir.types import F32, I8, tensor

NAN, INF = float("nan"), float("inf")
Y = torch.tensor([1, -2, 3])
X = torch.tensor([1.0, -2.0, 0.0, NAN])
SIGNS = torch.tensor([-0.0, 0.0, -1.0, 2.0])


@pytest.fixture(autouse=True)
def _anew() -> None:
    torch._dynamo.reset()
    forget_graphs()


def compiled(call: Any, *given: Any, code: str = "aten") -> Any:
    return coset.compile(call, code=code, seconds=2.0, nodes=4000)(*given)


def fallbacks() -> list[Any]:
    return [each for graph in compiled_graphs() for each in (*graph.fallbacks, *graph.later)]


def assert_same(found: Any, wanted: Any) -> None:
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    found, wanted = found.float(), wanted.float()
    assert torch.equal(found.nan_to_num(7.5), wanted.nan_to_num(7.5)), (found, wanted)
    assert torch.equal(found.signbit() | wanted.isnan(), wanted.signbit() | wanted.isnan())


RARE = {
    "copysign": (torch.copysign, (X, SIGNS)),
    "copysign of a number": (lambda x: torch.copysign(x, -0.0), (X,)),
    "copysign of integers": (torch.copysign, (Y, -Y)),
    "signbit": (torch.signbit, (SIGNS,)),
    "digamma of zeros": (torch.digamma, (torch.tensor([0.0, -0.0, -1.0, 1.0]),)),
    "digamma of integers": (torch.digamma, (torch.tensor([0, 1, 1]),)),
    "difference of numbers": (lambda y: torch.ops.aten.sub(2, 3) + y, (Y,)),
    "quotient of numbers": (lambda y: torch.ops.aten.div(7, 2) + y, (Y,)),
    "threshold of integers": (lambda y: torch.ops.aten.threshold_backward(y, y, 1), (Y,)),
    "circular padding of nothing": (lambda x: torch.nn.functional.pad(x, (1, 2), mode="circular"), (torch.zeros(0, 3, 3),)),
    "softmax of nothing": (lambda x: x.softmax(-1), (torch.zeros(0, 3, 4),)),
    "softmax of no columns": (lambda x: x.softmax(-1), (torch.zeros(3, 0),)),
    "one element": (lambda x: torch.full((1,), 3.0), (X,)),
    "one element, spread": (lambda x: torch.ones(1).expand(3), (X,)),
    "rows of nothing": (lambda x, i: x[i], (torch.zeros(0, 3), torch.zeros(0, dtype=torch.long))),
    "elements of nothing": (lambda x, i: x[i, i], (torch.zeros(0, 0), torch.zeros(0, dtype=torch.long))),
    "a scalar, taken often": (lambda x, i: x.gather(0, i), (torch.tensor(2.0), torch.zeros(3, dtype=torch.long))),
    "a scalar, taken once": (lambda x, i: x.gather(0, i), (torch.tensor(2.0), torch.zeros(1, dtype=torch.long))),
    "signs of unsigned integers": (torch.sign, (torch.tensor([0, 1, 200], dtype=torch.uint8),)),
    "signs of booleans": (torch.sign, (Y > 0,)),
    "where booleans are largest": (lambda x: x.max(1).indices + 2 * x.min(1).indices, (torch.tensor([[False, True], [True, False]]),)),
    "windows of a scalar": (lambda x: torch.unfold_copy(x, 0, 1, 1), (torch.tensor(2.0),)),
}  # fmt: skip


@pytest.mark.parametrize("code", ["aten", "torch"])
@pytest.mark.parametrize("name", RARE)
def test_rare_inputs_are_terms(name: str, code: str) -> None:
    call, given = RARE[name]
    assert_same(compiled(call, *given, code=code), call(*given))
    assert not fallbacks()


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2, torch.float16, torch.bfloat16])
def test_conversions_to_narrow_floats_are_those_of_the_installed_torch(dtype: Any) -> None:
    beyond = torch.tensor([465.0, 464.0, 449.0, 61440.0, 1e9, -1e9, INF, -INF, NAN, 3.3])
    twice = torch.tensor([1 + 2.0**-11 + 2.0**-40, 1 + 2.0**-8 + 2.0**-40, 1.0625 + 2.0**-40], dtype=torch.float64)  # rounded by way of f32
    whole = torch.tensor([2**32 + 2**24 + 1, 2049 * 2**15 + 1, 17 * 2**20 + 1, 65520, 65519])
    for given in (beyond, beyond.double(), beyond.bfloat16(), twice, whole, whole.int()):
        torch._dynamo.reset()
        assert_same(compiled(lambda x: x.to(dtype), given), given.to(dtype))
    assert not fallbacks()


def test_floats_out_of_range_of_narrow_integers_wrap_as_in_torch() -> None:
    given = torch.tensor([300.5, -300.5, 70000.0, -1.0, 2.0**31 - 256, -(2.0**31), NAN])
    for dtype in (torch.int8, torch.uint8, torch.int16, torch.uint16, torch.uint32):
        torch._dynamo.reset()
        wanted = given.to(dtype) if dtype != torch.uint32 else given[:6].to(dtype)
        assert compiled(lambda x, dtype=dtype: x.to(dtype), given[: len(wanted)]).tolist() == wanted.tolist()
    assert not fallbacks()


@pytest.mark.parametrize(("low", "high", "steps"), [(-128.0, 127.0, 1), (-128.0, 200.0, 2), (-300.0, 127.0, 2), (300.0, 127.0, 2)])
def test_what_is_bounded_is_converted_at_once(low: float, high: float, steps: int) -> None:
    term = convert(clamp(make("stablehlo.round_nearest_even", (input_term("x", tensor(F32, 4)),)), low, high), I8)
    assert sum(each.op.name == "stablehlo.convert" for each in topological([term])) == steps


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_coordinates_that_are_no_numbers_are_those_of_torch(mode: str, padding: str) -> None:
    image = torch.arange(16.0).reshape(1, 1, 4, 4) + 1
    grid = torch.tensor([[NAN, 0.0], [0.0, NAN], [INF, 0.0], [0.0, -INF], [0.3, 0.3], [-2.2, 0.2], [1e9, 0.2]]).reshape(1, 1, 7, 2)
    call = lambda image, grid: torch.nn.functional.grid_sample(image, grid, mode, padding, align_corners=False)  # noqa: E731
    torch.testing.assert_close(compiled(call, image, grid), call(image, grid), equal_nan=True)


def test_places_of_pixels_are_computed_in_f32_at_least() -> None:
    """The places 187 and 187 of 300 and 500 pixels, which bf16 has exactly; eager torch takes the neighbour on a CPU (`findings/`)."""
    call = lambda image, grid: torch.nn.functional.grid_sample(image, grid, "nearest", align_corners=False)  # noqa: E731
    for count, coordinate in ((300, 0.25), (500, -0.25)):
        torch._dynamo.reset()
        image = (torch.arange(count) == 187).to(torch.bfloat16).reshape(1, 1, 1, count)
        grid = torch.tensor([coordinate, 0.0], dtype=torch.bfloat16).reshape(1, 1, 1, 2)
        assert compiled(call, image, grid).tolist() == [[[[1.0]]]]


# ---------------------------------------------------------------- our own faults


def test_a_builder_that_fails_leaves_its_op_to_torch(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def fails(_: Any) -> Any:
        raise IndexError("tuple index out of range")

    monkeypatch.setitem(BUILDERS, "exp.default", fails)
    with caplog.at_level(logging.WARNING, logger="coset"):
        assert torch.allclose(compiled(lambda x: x.exp() * 2, torch.ones(3)), torch.ones(3).exp() * 2)
    (fallback,) = fallbacks()
    assert (fallback.op, fallback.reason) == ("aten.exp.default", "coset failed with IndexError: tuple index out of range")
    assert "aten.exp.default runs in torch" in caplog.text


def test_a_compilation_that_fails_leaves_its_part_to_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> Any:
        raise ZeroDivisionError("float division by zero")

    monkeypatch.setattr(compiling, "lower", fails)
    assert torch.equal(compiled(lambda x: x * 3 + 1.25, torch.ones(3)), torch.full((3,), 4.25))
    (fallback,) = fallbacks()
    assert fallback.reason == "coset failed with ZeroDivisionError: float division by zero"


def test_a_graph_that_cannot_be_split_is_torchs(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any, **__: Any) -> Any:
        raise KeyError("part")

    monkeypatch.setattr("coset.frontends.torch.parts.fuse_by_partitions", fails)
    assert torch.equal(compiled(lambda x: (x * 5).t(), torch.ones(2, 3)), torch.full((3, 2), 5.0))
    (fallback,) = fallbacks()
    assert fallback.op == "the graph" and "KeyError" in fallback.reason


def test_a_part_that_is_given_another_type_than_was_said_runs_in_torch(caplog: pytest.LogCaptureFixture) -> None:
    """What torch says `prims.signbit` gives is f32, and it gives booleans."""
    call = lambda x: torch.ops.prims.signbit(x).exp() * 2  # noqa: E731
    given = torch.tensor([1.0, -1.0])
    step = coset.compile(call, code="aten", seconds=2.0)
    with caplog.at_level(logging.WARNING, logger="coset"):
        assert [torch.equal(step(given), call(given)) for _ in range(2)] == [True, True]
    (graph,) = compiled_graphs()
    (later,) = graph.later  # said once
    assert later.reason.startswith("coset failed with WrongInput: input `x0` must have elements of torch.float32")
    assert later.reason in caplog.text
