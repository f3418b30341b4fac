"""The numbers of a target are fitted to measurements: what made them is found again, and what they say nothing of stays."""

from __future__ import annotations

import random
from dataclasses import replace
from math import prod

import pytest

from coset.calibration.cases import SHORT, CalibrationCase, cases
from coset.extract.candidates import slower
from coset.extract.fit import MeasuredLink, fit, predicted, quality
from coset.targets.target import Target, get_target

SMALL = 1 << 18  # elements of the chains that are made here


def slowed(target: Target, factors: dict[str, float]) -> Target:
    """`target` with the speed of some kernels divided by a factor."""

    return replace(target, kernels={name: slower(kernel, factors.get(name, 1.0)) for name, kernel in target.kernels.items()})


def small_cases() -> list[CalibrationCase]:
    return [case for case in cases() if prod(case.type.static or ()) <= SMALL and "2048" not in case.shape and case.op != "onnx.Conv"][::2]


def measured(case: CalibrationCase, machine: Target, noise: random.Random) -> MeasuredLink:
    chains = (case.chain(SHORT).roots, case.chain(SHORT + 1).roots)
    blank = MeasuredLink(case.name, chains, (SHORT, SHORT + 1), 1.0)
    return replace(blank, seconds=predicted(blank, machine) * noise.lognormvariate(0.0, 0.05))


@pytest.mark.slow
def test_another_machine_is_found_from_what_it_measures() -> None:
    base = get_target("cpu-onnxruntime")
    machine = slowed(base, {"add": 2.0, "matmul": 0.5, "softmax": 3.0, "tanh": 1.7, "transpose_inner": 0.6})
    noise = random.Random(0)
    found = [measured(case, machine, noise) for case in small_cases()]
    fitted = fit(base, found[::2], "measured here")
    before, after = quality(found[1::2], base), quality(found[1::2], fitted)
    assert before.error > 0.25 and after.error < 0.1
    assert after.spearman >= before.spearman
    assert fitted.kernels["conv"] == base.kernels["conv"], "no case says anything of it"
    assert fitted.kernels["add"].launch.source == "measured here"
    assert fitted.forms == base.forms and fitted.numbers == base.numbers


def test_what_is_measured_as_predicted_changes_nothing() -> None:
    base = get_target("cpu-onnxruntime")
    exact = [
        replace(case, seconds=predicted(case, base)) for case in (measured(case, base, random.Random(0)) for case in small_cases()[:6])
    ]
    assert fit(base, exact, "measured here").kernels == base.kernels


def test_sizes_beyond_all_cases_go_along_with_those_that_were_measured() -> None:
    """A curve keeps its shape: one measurement at 512 rows once threw the point beyond it by a factor of a hundred."""
    base = get_target("cpu-onnxruntime")
    machine = slowed(base, {"reverse": 2.0})
    told = ("stablehlo.reverse", "stablehlo.add")  # a link of the first is a kernel like the second too
    wanted = [case for case in cases() if case.op in told and prod(case.type.static or ()) <= SMALL]
    found = fit(base, [measured(case, machine, random.Random(0)) for case in wanted], "measured here").kernels["reverse"].bandwidth
    before = base.kernels["reverse"].bandwidth
    assert found is not None and before is not None
    factors = [y / x for (_, y), (_, x) in zip(found.points, before.points, strict=True)]
    assert all(0.4 < factor < 0.7 for factor in factors), factors
