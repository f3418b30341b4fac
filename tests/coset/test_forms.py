"""`coset prove` is no weaker than `coset check`: what the normal forms of a rule's two sides show is shown of two programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest

import coset
from coset.cli import run

INPUTS = ", ".join(f"{{dtype}}[n,4] {name}" for name in "abcd")
HEAD = f'<ir_version: 9, opset_import: ["": 20]> g ({INPUTS}) => ({{dtype}}[n,4] y) {{{{ {{body}} }}}}'
RULE = 'use stablehlo as hlo, chlo, onnx\nrule r\n  "Equal."\n  for {names}: F[S..]\n  {rule}\n  numerics {numerics}\n'
PAIRS = [  # numerics, both programs, and the same as a rule
    ("reassociates", "t = Add(a, b) y = Add(t, c)", "t = Add(b, c) y = Add(a, t)", "(a + b) + c => a + (b + c)"),
    ("reassociates", "t = Add(a, b) u = Add(c, d) s = Add(t, u) y = Relu(s)", "t = Add(d, b) u = Add(a, c) s = Add(u, t) y = Relu(s)",
     "onnx.Relu((a + b) + (c + d)) => onnx.Relu((a + c) + (d + b))"),
    ("reassociates except nonfinite", "t = Add(a, b) y = Mul(t, c)", "t = Mul(a, c) u = Mul(b, c) y = Add(u, t)",
     "(a + b) * c => a * c + b * c"),
    ("real", "s = Add(a, b) t = Sub(a, b) y = Mul(s, t)", "s = Mul(a, a) t = Mul(b, b) y = Sub(s, t)",
     "(a + b) * (a - b) => a * a - b * b"),
    ("real", "t = Mul(a, b) y = Div(t, b)", "y = Identity(a)", "(a * b) / b => a"),
    ("real", "t = Sub(a, a) y = Add(b, t)", "y = Identity(b)", "b + (a - a) => b"),
    ("real", "t = Exp(a) u = Exp(b) y = Mul(t, u)", "t = Add(a, b) y = Exp(t)", "exponential(a) * exponential(b) => exponential(a + b)"),
    ("reassociates", "t = Mul(a, b) u = Mul(c, d) y = Sub(t, u)", "t = Neg(c) u = Mul(t, d) s = Mul(b, a) y = Add(s, u)",
     "a * b - c * d => b * a + (-c) * d"),
]  # fmt: skip


def written(folder: Path, *bodies: str, dtype: str = "float") -> list[Path]:
    paths = [folder / f"{number}.onnx" for number in range(len(bodies))]
    for path, body in zip(paths, bodies, strict=True):
        onnx.save(onnx.parser.parse_model(HEAD.format(dtype=dtype, body=body)), path)
    return paths


def proved(paths: list[Path], numerics: str) -> dict[str, Any]:
    return coset.prove(*paths, numerics=numerics.split()[0])


@pytest.mark.parametrize("number", range(len(PAIRS)))
def test_what_check_shows_of_a_rule_prove_shows_of_programs(number: int, tmp_path: Path) -> None:
    numerics, one, other, rule = PAIRS[number]
    names = ", ".join(name for name in "abcd" if name in rule.replace("onnx.Relu", "").replace("exponential", ""))
    rules = tmp_path / "own.rules"
    rules.write_text(RULE.format(names=names, rule=rule, numerics=numerics))
    assert coset.check(rules)["rules"][0]["assurance"] == "proved"
    found = proved(written(tmp_path, one, other), numerics)
    assert found["answer"] == "proved" and found["method"] in ("normal forms", "steps"), found
    assert {*found["exceptions"]} <= {"nonfinite", "signed_zero"}


FALSE = [  # numerics, both programs, and the answer
    ("reassociates", "t = Mul(a, b) y = Div(t, b)", "y = Identity(a)", "refuted"),
    ("reassociates", "t = Sub(a, a) y = Add(b, t)", "y = Identity(b)", "refuted"),
    ("real", "t = Add(a, b) y = Mul(t, b)", "t = Add(a, b) y = Mul(t, a)", "refuted"),
    ("exact", "t = Add(a, b) y = Add(t, c)", "t = Add(b, c) y = Add(a, t)", "refuted"),
    ("real", "t = Mul(a, a) y = Sqrt(t)", "y = Identity(a)", "refuted"),
]


@pytest.mark.parametrize("number", range(len(FALSE)))
def test_what_forms_do_not_promise_is_not_proved(number: int, tmp_path: Path) -> None:
    numerics, one, other, answer = FALSE[number]
    assert proved(written(tmp_path, one, other), numerics)["answer"] == answer


def test_narrow_floats_are_not_promised_by_forms(tmp_path: Path) -> None:
    _, one, other, _ = PAIRS[2]
    found = proved(written(tmp_path, one, other, dtype="float16"), "reassociates")
    assert found["method"] != "normal forms"


def test_an_op_that_is_made_for_its_precision_is_not_opened(tmp_path: Path) -> None:
    """log(1 + exp a) may become a Softplus, and no Softplus becomes it under `reassociates`: it loses digits."""
    one, other = written(tmp_path, "y = Softplus(a)", "o = Constant<value_float = 1.0>() t = Exp(a) u = Add(o, t) y = Log(u)")
    assert coset.prove(one, other)["method"] != "normal forms"


def test_the_answer_says_what_it_rests_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = written(tmp_path, PAIRS[0][1], PAIRS[0][2])
    assert run(["prove", *map(str, paths)]) == 0
    out = capsys.readouterr().out
    assert "by normal forms" in out and "for all sizes; numerics reassociates" in out and "no certificate" in out
