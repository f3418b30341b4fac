"""The rules that a report names: those of the certificate where there is one, and no equality of the input is left to nobody."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest

import coset


def model(body: str, path: Path) -> Path:
    text = f'<ir_version: 9, opset_import: ["" : 20]> g (float[n,4] x, float[n,4] z) => (float[n,4] y) {{ {body} }}'
    onnx.save(onnx.parser.parse_model(text), path)
    return path


def named(report: dict[str, Any]) -> list[str]:
    return [rule["name"] for rule in report["rules"]]


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        ("a = Floor(x) b = Floor(a) y = Add(b, z)", "floor_of_floor"),
        ("a = Abs(x) b = Abs(a) y = Add(b, z)", "magnitude_of_magnitude"),
        ("a = Add(x, z) b = Add(z, x) y = Mul(a, b)", "commute[stablehlo.add]"),
    ],
)
def test_two_values_of_the_input_that_are_one_are_credited(body: str, rule: str, tmp_path: Path) -> None:
    report = coset.optimize(model(body, tmp_path / "m.onnx")).report
    assert report["rules_from"] == "search"
    assert any(name.startswith(rule) for name in named(report)), named(report)


def test_nothing_is_credited_where_equal_nodes_stand_twice(tmp_path: Path) -> None:
    report = coset.optimize(model("a = Floor(x) b = Floor(x) y = Add(a, b)", tmp_path / "m.onnx"), numerics="exact").report
    assert report["rules"] == []


@pytest.mark.parametrize(
    "body", ["a = Floor(x) b = Floor(a) y = Add(b, z)", "a = Neg(x) b = Neg(a) c = Mul(b, z) d = Add(c, z) y = Relu(d)"]
)
def test_with_a_certificate_the_report_names_its_rules(body: str, tmp_path: Path) -> None:
    made = coset.optimize(model(body, tmp_path / "m.onnx"), certificate=True)
    assert made.certificate is not None and made.report["rules_from"] == "certificate"
    steps = [line["rule"] for line in made.certificate.lines if "rule" in line]
    counted = {rule["name"]: steps.count(number) for number, rule in enumerate(made.certificate.head["rules"])}
    assert {rule["name"]: rule["count"] for rule in made.report["rules"]} == counted and counted


def test_a_rule_that_only_led_to_others_is_not_taken_for_one_that_broke_the_bits(tmp_path: Path) -> None:
    """(x 2.1) 3.3 becomes x 6.93 by a rule that reorders and one that computes the number: the chosen node is the second one's, which is
    exact. Bits differ, as they may; it was left out, after ten searches."""
    path = tmp_path / "m.onnx"
    text = """<ir_version: 9, opset_import: ["": 17]> g (float[4, 16] x, float[4, 16] u) => (float[4, 16] y, float[4, 16] z)
      <float two = {2.1}, float three = {3.3}> { a = Mul (x, two) b = Mul (a, three) y = Relu (b)
      c = Mul (u, two) d = Mul (c, three) z = Relu (d) }"""
    onnx.save(onnx.parser.parse_model(text), path)
    report = coset.optimize(path).report
    assert report["left_out"] == [] and report["nodes"]["after"] == 4 and report["check"]["ok"]
    assert coset.optimize(path, numerics="exact").report["nodes"]["after"] == 6
