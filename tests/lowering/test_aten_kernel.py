"""Kernels of plans as torch functions, and the host code around them: the plans of the kernel families and of drawn programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from drawn_programs import program as drawn  # noqa: E402
from plan_cases import CASES, op, scatter_rows, x_  # noqa: E402
from torch_programs import run_package  # noqa: E402

import coset.dialects  # noqa: F401, E402
from coset.dialects.hub.scalars import widen  # noqa: E402
from coset.ir.dims import symbol  # noqa: E402
from coset.ir.evaluate import evaluate_program  # noqa: E402
from coset.ir.program import Program  # noqa: E402
from coset.ir.term import make  # noqa: E402
from coset.ir.types import (  # noqa: E402
    DTYPES,
    F32,
    I32,
)
from coset.lowering.package.plan import planned_package  # noqa: E402
from coset.lowering.planning.plan import plan  # noqa: E402
from coset.rules.definition import evaluate_defined  # noqa: E402
from tests.lowering.attention_cases import Backward, Case, drawn_case, values_for  # noqa: E402


@pytest.mark.parametrize("name", CASES)
def test_the_kernel_families_compute_what_their_terms_mean(name: str) -> None:
    check(*CASES[name]())


@pytest.mark.parametrize("combiner", ["maximum", "minimum", "add", "second"])
@pytest.mark.parametrize("name", ["u64", "u32", "u8", "i64"])
@pytest.mark.parametrize("count", [20, 80])
def test_scattered_integers_of_every_size(count: int, name: str, combiner: str) -> None:
    """What torch holds as signed integers is compared and wrapped as what it is."""
    dtype = DTYPES[name]
    x, at, updates = x_("x", dtype, 6, 2), x_("at", I32, count), x_("updates", dtype, count, 2)
    info, draw = np.iinfo(dtype.numpy), np.random.default_rng(5)
    feeds = {key: draw.integers(info.min, info.max, shape, dtype.numpy, endpoint=True) for key, shape in
             (("x", (6, 2)), ("updates", (count, 2)))} | {"at": draw.integers(-1, 8, count).astype(np.int32)}  # fmt: skip
    check(Program((x, at, updates), (("y", scatter_rows(x, at, updates, combiner)),)), feeds)


@pytest.mark.parametrize("direction", ["LT", "GT", "LE", "GE"])
@pytest.mark.parametrize("name", ["f32", "bf16", "f64", "i8", "u32", "u64"])
def test_sorts_are_stable_in_every_direction(name: str, direction: str) -> None:
    """Equal keys, both zeros, NaN of both signs: the places say which is which."""
    dtype = DTYPES[name]
    x, at = x_("x", dtype, 3, 25), op("iota", shape=(3, 25), dtype=I32, dimension=1)
    draw, special = np.random.default_rng(6), np.array([0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1.0, -2.0])
    if dtype.kind == "float":
        value = draw.choice(special, (3, 25)).astype(dtype.numpy)
    else:
        value = draw.choice(np.array([np.iinfo(dtype.numpy).min, np.iinfo(dtype.numpy).max, 0, 1], dtype.numpy), (3, 25))
    for total in (False, True) if dtype.kind == "float" else (False,):
        both = op("sort", x, at, dimension=1, direction=direction, is_stable=True, total=total)
        check(Program((x,), tuple((f"y{i}", make("builtin.get", (both,), {"index": i})) for i in (0, 1))), {"x": value})


@pytest.mark.parametrize("seed", range(60))
def test_drawn_programs_compute_what_they_mean(seed: int) -> None:
    check(*drawn(seed, symbolic=seed % 2 == 1))


@pytest.mark.parametrize("batch", range(4))
def test_gradients_of_attention(batch: int) -> None:
    for seed in range(batch * 8, batch * 8 + 8):
        case, binding = drawn_case(seed)
        given = Backward(case, alone=seed % 2 == 1)
        check(given.program(), values_for(given, binding, seed))


@pytest.mark.parametrize("safe", [False, True])
def test_gradients_of_attention_to_no_keys(safe: bool) -> None:
    """Rows of no elements have no largest one."""
    given = Backward(Case((2,), (), 3, symbol("S"), 8, 8, F32, safe=safe), alone=True, sides=("query",))
    check(given.program(), values_for(given, {"S": 0}, 1))


def check(program: Program, feeds: dict[str, Any]) -> None:
    """Twice, since buffers are used again. Within 512 roundings of the largest element: programs here sum at most some hundred numbers."""
    with np.errstate(all="ignore"):
        expected = evaluate_program(program, feeds, fallback=evaluate_defined)
    package = planned_package(program, plan(program), title="A test.", triton=False)
    for _ in range(2):
        for (name, term), one, got in zip(program.outputs, expected, run_package(package, program, feeds), strict=True):
            value = np.asarray(one)
            assert got.shape == value.shape, name
            if term.tensor.dtype.kind != "float":
                np.testing.assert_array_equal(got, value, name)
                continue
            wide, other = widen(value).astype(np.float64), widen(got).astype(np.float64)
            finite = np.isfinite(wide)
            scale = np.max(np.abs(wide[finite]), initial=1.0)
            unit = 2.0 ** {"f64": -52, "f32": -23, "f16": -10, "bf16": -7}[term.tensor.dtype.name]
            close = np.abs(wide - other) <= (512 if unit < 1e-5 else 16) * unit * scale
            assert (close | (wide == other) | (np.isnan(wide) & np.isnan(other)))[...].all(), f"{name}: {wide} is not {other}"
