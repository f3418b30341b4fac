"""Values that are put together from others are stored by those who make the parts: the same values, each element stored once, fewer bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coset.dialects  # noqa: F401  (fills the registry)
from coset.backends.torch_package import TorchPackage
from coset.backends.triton_runtime import Runner
from coset.dialects.hub_terms import dot, literal, reshape, splat, transpose
from coset.ir.dims import Dim, add, symbol
from coset.ir.evaluate import evaluate_program
from coset.ir.program import Program
from coset.ir.term import Term, input_term, make
from coset.ir.types import F16, F32, I32, DType, TensorType
from coset.lowering.kernel import Kernel, Library, Plan, Pointwise, Rows, Scatter, reads, stores_of, writes
from coset.lowering.kinds import Limits
from coset.lowering.package import write_package
from coset.lowering.package_plan import planned_package
from coset.lowering.plan import plan
from coset.lowering.plan_text import show
from coset.lowering.traffic import kernel_traffic, traffic
from coset.lowering.triton import can_emit
from coset.rules.definition import evaluate_defined
from tests.lowering import drawn_parts, plan_numpy, test_triton_plans
from tests.lowering.plan_cases import op, scatter_rows, x_
from tests.lowering.test_plan import check, laws

FREE_LAUNCHES = replace(Limits(), launch_bytes=0)


def in_parts(found: Plan) -> set[str]:
    """The buffers that several stores make."""
    stores = Counter(store.buffer for kernel in found.kernels for store in stores_of(kernel))
    return {name for name, count in stores.items() if count > 1}


def program(*roots: Term) -> Program:
    """The program of these roots over what they read."""
    from coset.ir.term import INPUT, topological

    inputs = tuple(term for term in topological(roots) if term.op is INPUT)
    return Program(inputs, tuple((f"y{place}", root) for place, root in enumerate(roots)))


def values(given: Program, sizes: Mapping[str, int] | None = None) -> dict[str, Any]:
    """Small integers for the inputs of a program."""
    draw = np.random.default_rng(3)
    found = {}
    for term in given.inputs:
        shape = [dim if isinstance(dim, int) else (sizes or {})[str(dim)] for dim in term.tensor.dims]
        low = 0 if term.tensor.dtype is I32 else -3
        found[term.attribute("name")] = draw.integers(low, 4, shape).astype(term.tensor.dtype.numpy)
    return found


def times(x: Term, y: Term) -> Term:
    """The product of two matrices."""
    return dot(x, y, lhs_contract=(1,), rhs_contract=(0,))


def joined(*parts: Term, axis: int = 0) -> Term:
    return op("concatenate", *parts, dimension=axis)


def product(number: int, rows: Dim = 4, columns: int = 16, dtype: DType = F32) -> Term:
    """A product of inputs of its own."""
    return times(x_(f"x{number}", dtype, rows, 8), x_(f"w{number}", dtype, 8, columns))


def checked(*roots: Term, sizes: Mapping[str, int] | None = None, limits: Limits | None = None) -> Plan:
    given = program(*roots)
    return check(given, values(given, sizes), limits=limits)


# ---------------------------------------------------------------- drawn programs


@pytest.mark.parametrize("start", range(0, 400, 100))
def test_drawn_programs_give_their_values(start: int) -> None:
    several = 0
    for seed in range(start, start + 100):
        given, feeds = drawn_parts.program(seed, symbolic=seed % 3 == 1)
        several += bool(in_parts(check(given, feeds)))
        check(given, feeds, limits=FREE_LAUNCHES)
    assert several > 15, several


@pytest.mark.parametrize("batch", range(4))
def test_drawn_programs_in_the_interpreter(batch: int, interpreter: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernel by kernel, with poison in all that is not stored: a store outside of a part would change it."""
    tried = seed = 0
    while tried < 6:
        seed += 1
        given, feeds = drawn_parts.program(1000 * batch + seed, symbolic=seed % 2 == 1)
        if in_parts(plan(given, computes=can_emit)):
            tried += 1
            with monkeypatch.context() as patch:
                test_triton_plans.check(given, feeds, interpreter, patch, f"seed {1000 * batch + seed}:")


@pytest.mark.parametrize("triton", [False, True])
def test_drawn_programs_as_packages(triton: bool, tmp_path: Path) -> None:
    """Whole packages, whose outputs are memory that was never written before."""
    tried = seed = 0
    while tried < 8:
        seed += 1
        given, feeds = drawn_parts.program(7000 + seed, symbolic=seed % 2 == 1)
        found = plan(given, computes=can_emit)
        if not in_parts(found):
            continue
        tried += 1
        folder = tmp_path / f"p{seed}"
        write_package(planned_package(given, found, title="parts", triton=triton), folder)
        expected = evaluate_program(given, feeds, fallback=evaluate_defined)
        with TorchPackage(folder, interpreted=triton) as package:
            for _ in range(2):  # the second call finds what the first one left in the arena
                results = package.run(feeds)
                for (name, _), value in zip(given.outputs, expected, strict=True):
                    np.testing.assert_array_equal(np.asarray(results[name], np.float64), np.asarray(value, np.float64), err_msg=f"{seed} {name}")
