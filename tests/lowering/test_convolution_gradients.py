"""Transposed convolutions and gradients of filters as torch's own: what torch computes is what the definitions mean."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch_programs import run, run_package  # noqa: E402

import coset.dialects  # noqa: F401, E402
from coset.dialects.hub.scalars import widen  # noqa: E402
from coset.ir.dims import symbol  # noqa: E402
from coset.ir.evaluate import evaluate_program  # noqa: E402
from coset.ir.program import Program  # noqa: E402
from coset.ir.term import Term, input_term, make  # noqa: E402
from coset.ir.types import DTYPES, F32, DType, TensorType  # noqa: E402
from coset.lowering.package.plan import planned_package  # noqa: E402
from coset.lowering.planning.kinds import is_convolution_gradient  # noqa: E402
from coset.lowering.planning.plan import plan  # noqa: E402
from coset.lowering.torch.program import lower_to_aten  # noqa: E402
from coset.rules.definition import evaluate_defined  # noqa: E402

TRANSPOSED, FILTERS = "kernel.transposed_convolution", "kernel.filter_gradient"
Feeds = dict[str, np.ndarray[Any, Any]]


def tensor(name: str, dtype: DType, *dims: Any) -> Term:
    return input_term(name, TensorType(dtype, dims))


def drawn(op: str, seed: int) -> tuple[Term, Feeds]:
    """Any strides, dilations, groups and paddings, negative ones and those that no forward convolution has among them."""
    draw = np.random.default_rng(seed)
    dtype = DTYPES[draw.choice(["f32", "f32", "f64", "f16", "bf16"])]
    spatial, groups = int(draw.integers(1, 4)), int(draw.integers(1, 4))
    batch, inputs, outputs = int(draw.integers(0, 4)), groups * int(draw.integers(1, 4)), groups * int(draw.integers(1, 4))
    strides, dilations = (tuple(int(n) for n in draw.integers(1, 4, spatial)) for _ in range(2))
    sizes, filters = (tuple(int(n) for n in draw.integers(low, high, spatial)) for low, high in ((4, 9), (1, 4)))
    attributes: dict[str, Any] = {"strides": strides, "dilations": dilations, "group": groups}
    if op == TRANSPOSED:
        whole = [(n - 1) * s + 1 - (k - 1) * d for n, s, k, d in zip(sizes, strides, filters, dilations, strict=True)]
        pairs = [_ends(draw, 1 - least + int(draw.integers(0, 24))) for least in whole]
        operands = tensor("x", dtype, batch, inputs, *sizes), tensor("w", dtype, inputs, outputs // groups, *filters)
    else:
        results = tuple(int(n) for n in draw.integers(1, 4, spatial))
        wanted = [(m - 1) * s + 1 + (k - 1) * d for m, s, k, d in zip(results, strides, filters, dilations, strict=True)]
        pairs = [_ends(draw, need - n) for need, n in zip(wanted, sizes, strict=True)]
        pairs = [(low, high + int(draw.integers(0, d))) for (low, high), d in zip(pairs, dilations, strict=True)]
        operands = tensor("x", dtype, batch, inputs, *sizes), tensor("g", dtype, batch, outputs, *results)
    term = make(op, operands, {**attributes, "padding": tuple(pairs)})
    return term, {each.attribute("name"): draw.normal(size=each.tensor.static).astype(dtype.numpy) for each in operands}


def _ends(draw: np.random.Generator, both: int) -> tuple[int, int]:
    """Two paddings that are `both` together, often equal ones."""
    low = both // 2 if draw.integers(2) else int(draw.integers(min(0, both) - 1, max(0, both) + 2))
    return low, both - low


def check(term: Term, feeds: Feeds) -> None:
    """As the only term, and in a plan between other kernels."""
    inputs = term.operands
    program = Program(inputs, (("y", term),))
    with np.errstate(all="ignore"):
        (expected,) = evaluate_program(program, feeds, fallback=evaluate_defined)
    package = planned_package(program, plan(program), title="A test.", triton=False)
    for got in (run(program, feeds)[0], run_package(package, program, feeds)[0]):
        assert got.shape == np.shape(expected)
        wide, other = (widen(np.asarray(value)).astype(np.float64) for value in (expected, got))
        unit = 2.0 ** {"f64": -52, "f32": -23, "f16": -10, "bf16": -7}[term.tensor.dtype.name]
        scale = np.max(np.abs(wide), initial=1.0)
        assert (np.abs(wide - other) <= (64 if unit < 1e-5 else 8) * unit * scale).all(), (wide, other)


@pytest.mark.parametrize("seed", range(120))
@pytest.mark.parametrize("op", [TRANSPOSED, FILTERS])
def test_torch_computes_what_they_mean(op: str, seed: int) -> None:
    term, feeds = drawn(op, seed)
    assert is_convolution_gradient(term), "no case is left out"
    check(term, feeds)


def test_the_usual_ones_are_plain_calls() -> None:
    """The gradient of the input of the convolution that halves a picture, and of that which keeps its size."""
    x, w = tensor("x", F32, 2, 6, 4, 4), tensor("w", F32, 6, 3, 3, 3)
    halved = {"strides": (2, 2), "padding": ((1, 2), (1, 2)), "dilations": (1, 1)}
    same = {"strides": (1, 1), "padding": ((1, 1), (1, 1)), "dilations": (1, 1)}
    texts = [lower_to_aten(Program((x, w), (("y", make(TRANSPOSED, (x, w), each)),))).body for each in (halved, same)]
    assert "torch.nn.functional.conv_transpose2d(x, w, stride=(2, 2), padding=(1, 1), output_padding=(1, 1))" in texts[0]
    assert "torch.nn.functional.conv_transpose2d(x, w, padding=(1, 1))" in texts[1]


@pytest.mark.parametrize("size", [5, 6, 0])
def test_free_sizes_are_those_of_the_run(size: int) -> None:
    n, h = symbol("n"), symbol("h")
    draw = np.random.default_rng(size)
    x, w, g = tensor("x", F32, n, 2, h), tensor("w", F32, 2, 3, 3), tensor("g", F32, n, 4, h)
    turned = make(TRANSPOSED, (x, w), {"strides": (2,), "padding": ((1, 2),), "dilations": (1,)})
    filters = make(FILTERS, (x, g), {"strides": (1,), "padding": ((1, 1),), "dilations": (1,)})
    assert is_convolution_gradient(turned) and is_convolution_gradient(filters)
    check(turned, {"x": draw.normal(size=(3, 2, size)).astype(np.float32), "w": draw.normal(size=(2, 3, 3)).astype(np.float32)})
    value = draw.normal(size=(3, 2, size)).astype(np.float32), draw.normal(size=(3, 4, size)).astype(np.float32)
    check(filters, dict(zip("xg", value, strict=True)))


def test_what_torch_has_not_is_opened() -> None:
    """More than three dims of space, and narrow floats."""
    x, w = tensor("x", F32, 2, 2, 3, 3, 3, 3), tensor("w", F32, 2, 2, 1, 1, 1, 1)
    assert not is_convolution_gradient(make(TRANSPOSED, (x, w), {"strides": (1,) * 4, "padding": ((0, 0),) * 4, "dilations": (1,) * 4}))
    x, w = tensor("x", DTYPES["f8e4m3fn"], 2, 2, 5), tensor("w", DTYPES["f8e4m3fn"], 2, 2, 3)
    narrow = make(TRANSPOSED, (x, w), {"strides": (2,), "padding": ((0, 0),), "dilations": (1,)})
    assert not is_convolution_gradient(narrow)
    body = lower_to_aten(Program((x, w), (("y", narrow),))).body
    assert "conv_transpose" not in body and "convolution(" in body
