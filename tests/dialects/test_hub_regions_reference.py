"""The hub's ops with payload functions mean what StableHLO's reference interpreter computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hub_cases import CASES, Case, adversarial
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import SearchStrategy

pytest.importorskip("torch_mlir")

from hub_regions_cases import SIX
from reference import NAMES, arrays_of, interpret
from reference_regions import module_of, static

from coset.dialects.hub.scalars import cast, widen
from coset.dialects.hub.tensors import identity
from coset.ir.types import dtype_of

Array = np.ndarray[Any, Any]
OPS = ("reduce_region", "reduce_window", "reduce_window_region", "select_and_scatter", "sort", "scatter", "map", "if", "case", "while")
SHAPED = OPS[:7]


def drawn(strategy: SearchStrategy[Case], count: int) -> list[Case]:
    """`count` cases, always the same ones."""
    found: list[Case] = []
    quiet = list(HealthCheck)

    @settings(max_examples=count, deadline=None, derandomize=True, database=None, phases=[Phase.generate], suppress_health_check=quiet)
    @given(strategy)
    def collect(case: Case) -> None:
        found.append(case)

    collect()
    return found


def comparable(case: Case) -> bool:
    """False for what the interpreter has no type for."""
    return all(dtype_of(x.dtype).name in NAMES for x in case.arrays)


def settled(case: Case) -> Case:
    """The case with values on which the specification leaves no choice and the interpreter makes none of its own.

    Floats that are summed or multiplied: 0, 1, -1, NaN and infinities only, so that every order is exact. An init value that may
    count more than once: the identity. An order: no NaN, and no zeros where total order tells them apart (the interpreter does not).
    """
    arrays, attributes = list(case.arrays), dict(case.term.attributes)
    if attributes.get("combiner") in ("add", "multiply"):
        arrays = [_few(x) if dtype_of(x.dtype).kind in ("float", "complex") else x for x in arrays]
        if case.term.op.name == "stablehlo.select_and_scatter":
            arrays[2] = identity(attributes["combiner"], dtype_of(arrays[2].dtype))
    if case.term.op.name == "stablehlo.sort":
        arrays = [np.where(np.isnan(widen(x)) | (attributes["total"] & (widen(x) == 0)), x.dtype.type(1), x) for x in arrays]
    return Case(case.term, arrays)


def _few(x: Array) -> Array:
    if x.dtype.kind == "c":
        return np.random.default_rng(x.size).choice(np.array([0, 1, -1, 1j, -1j, 1 + 1j], x.dtype), x.shape)
    marks = adversarial(dtype_of(x.dtype), x.shape, x.size)
    wide = widen(marks)
    return np.where(np.isfinite(wide), cast(np.sign(np.nan_to_num(wide)), dtype_of(x.dtype)), marks).astype(x.dtype)


def equal(ours: Array, theirs: Array) -> bool:
    """Equal bits, every NaN one."""
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return False
    a, b = widen(ours), widen(theirs)
    if a.dtype.kind == "c":
        return bool(np.array_equal(a, b, equal_nan=True))
    if a.dtype.kind != "f":
        return bool(np.array_equal(a, b))
    return bool(np.all((np.isnan(a) & np.isnan(b)) | ((a == b) & (np.signbit(a) == np.signbit(b)))))


def compare(cases: list[Case]) -> int:
    """How many of the cases the interpreter could compute; each must equal ours."""
    chosen = [settled(case) for case in cases if comparable(case)]
    compared = 0
    for case, answer in zip(chosen, interpret([module_of(case) for case in chosen]), strict=True):
        if isinstance(answer, str):
            assert answer.startswith("aborted"), answer  # a type that it does not hold: no module of ours is refused
            continue
        value = case.value()
        ours = value if isinstance(value, tuple) else (value,)
        for mine, theirs in zip(ours, arrays_of(answer, static(case.term.type)), strict=True):
            assert equal(np.asarray(mine), theirs), (case.term, case.arrays, mine, theirs)
        compared += 1
    return compared


@pytest.mark.parametrize("name", OPS)
def test_meaning_is_that_of_the_reference_interpreter(name: str) -> None:
    assert compare(drawn(CASES[f"stablehlo.{name}"](), 150)) >= 100


@pytest.mark.parametrize("name", SHAPED)
def test_meaning_at_rank_6_is_that_of_the_reference_interpreter(name: str) -> None:
    strategy: Any = CASES[f"stablehlo.{name}"]
    assert compare(drawn(strategy(SIX), 40)) >= 25
