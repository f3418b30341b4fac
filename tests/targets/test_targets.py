"""Every target is complete data: words that mean something, numbers with a source, ops that exist."""

from __future__ import annotations

import tomllib

import pytest

import coset.dialects  # noqa: F401  (registers the ops)
from coset.ir.errors import CosetError
from coset.ir.op import get_op
from coset.ir.registry import all_ops
from coset.ir.types import DTYPES
from coset.lowering.onnx.printers import PRINTERS
from coset.lowering.torch.program import can_say
from coset.rules.definition import is_defined
from coset.targets.document import HERE
from coset.targets.ops import misfits
from coset.targets.target import EVERY, Curve, Form, Kernel, Target, all_targets, get_target

EVERY_TARGET = pytest.mark.parametrize("target", all_targets(), ids=lambda target: target.name)
EVERY_PRINTED = pytest.mark.parametrize(
    "target", [t for t in all_targets() if t.dialect not in (EVERY, "tosa")], ids=lambda target: target.name
)


def forms(target: Target) -> list[tuple[str, Form]]:
    return [(op, form) for op, entries in target.forms.items() for form in entries]


@EVERY_TARGET
def test_every_form_speaks_of_things_that_exist(target: Target) -> None:
    for name, form in forms(target):
        assert not list(misfits(name, form))
        assert form.dtypes is None or form.dtypes <= DTYPES.keys(), f"{name}: {sorted(form.dtypes - DTYPES.keys())}"


@EVERY_PRINTED
def test_every_hub_op_has_a_form_exactly_if_it_is_printed(target: Target) -> None:
    listed = {name for name, _ in forms(target)}
    hub = {op.name for op in all_ops() if op.dialect in ("stablehlo", "chlo")}
    printed = PRINTERS.keys() if target.dialect == "onnx" else {name for name in hub if can_say(name) and not is_defined(get_op(name))}
    assert not (hub - listed) & printed, "printed, but the target has no form for it"
    said = can_say if target.dialect == "torch" else (lambda _: True)  # StableHLO's text has every op of the hub
    extra = listed - printed if target.dialect == "onnx" else {name for name in listed & hub if not said(name)}
    assert not extra, "the target has a form for it, but nothing prints it"


def curves(kernel: Kernel) -> list[Curve]:
    return [curve for curve in (kernel.bandwidth, kernel.rows, kernel.work) if curve is not None]


@EVERY_TARGET
def test_every_number_is_positive_and_has_a_source(target: Target) -> None:
    for name, kernel in target.kernels.items():
        assert kernel.launch.value >= 0 and kernel.launch.unit == "s" and kernel.launch.source, name
        assert not kernel.rates or EVERY in kernel.rates, f"{name} says nothing of other dtypes"
        for rate in kernel.rates.values():
            assert rate.value > 0 and rate.unit in ("FLOP/s", "element/s") and rate.source, name
        for curve in curves(kernel):
            assert curve.source and [x for x, _ in curve.points] == sorted({x for x, _ in curve.points}), name
            assert all(y > 0 for _, y in curve.points), name
    assert all(number.source for number in target.numbers.values())


def test_a_curve_goes_through_its_points_and_is_flat_outside() -> None:
    curve = Curve(((1.0, 10.0), (100.0, 1000.0)), "B", "B/s", "here")
    assert [curve.at(x) for x in (0.5, 1, 10, 100, 1e9)] == pytest.approx([10, 10, 100, 1000, 1000])


def test_every_file_is_packaged() -> None:
    patterns = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["coset.targets"]
    assert {path for pattern in patterns for path in HERE.glob(pattern)} == set(HERE.rglob("*.toml"))


def test_an_unknown_target_names_the_known_ones() -> None:
    with pytest.raises(CosetError, match="no target `tpu`") as caught:
        get_target("tpu")
    assert "cpu-onnxruntime" in caught.value.help
