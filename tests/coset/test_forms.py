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


E_OF = "e = Constant<value_float = 61.0>() l = Constant<value_float = 89.0>() o = Constant<value_float = 1.0>() p = Mul(a, e) q = Mul(b, l)"
NOT_PROMISED = {  # inputs, and both programs: equal over the real numbers where nothing is empty, rounds, overflows or is divided by 0
    "an empty dim (G): 0 against a NaN": (
        "float[m,k] a, float[k,n] b, float[n,p] c", "float[m,p] y", "t = MatMul(a, b) y = MatMul(t, c)",
        "t = MatMul(b, c) y = MatMul(a, t)"),
    "a sum of nothing": (
        "float[n,4] a, float[4] c", "float[4] y", "x = Constant<value_ints = [0]>() t = Mul(a, c) y = ReduceSum<keepdims = 0>(t, x)",
        "x = Constant<value_ints = [0]>() s = ReduceSum<keepdims = 0>(a, x) y = Mul(s, c)"),
    "a count that may be 0": (
        "float[n,4] a, float[4] c", "float[4] y",
        "x = Constant<value_ints = [0]>() s = Shape(a) e = Expand(c, s) y = ReduceSum<keepdims = 0>(e, x)",
        "s = Shape<start = 0, end = 1>(a) f = Cast<to = 1>(s) y = Mul(c, f)"),
    "the sign of an infinity": (
        "float[n,4] a, float[n,4] b", "float[n,4] y", f"{E_OF} d = Sub(p, q) y = Div(o, d)",
        f"{E_OF} d = Sub(q, p) r = Div(o, d) y = Neg(r)"),
    "a quotient of a quotient": (
        "float[n,4] a, float[n,4] b", "float[n,4] y", f"{E_OF} d = Sub(p, q) r = Reciprocal(d) y = Reciprocal(r)",
        f"{E_OF} d = Sub(p, q) r = Mul(d, d) y = Div(r, d)"),
    "digits that a wider type keeps (E)": (
        "int16[n,4] i, int16[n,4] j", "float[n,4] y",
        "I = Cast<to = 11>(i) J = Cast<to = 11>(j) p = Mul(I, J) q = Mul(p, I) y = Cast<to = 1>(q)",
        "I = Cast<to = 1>(i) J = Cast<to = 1>(j) p = Mul(I, J) y = Mul(p, I)"),
    "a range that a number far from 1 leaves (C)": (
        "float[n,4] a, float[n,4] b", "float[n,4] y", "y = Add(a, b)",
        "k = Constant<value_float = 1.1529215e18>() r = Constant<value_float = 8.6736174e-19>() t = Mul(a, k) u = Mul(b, k) "
        "v = Add(t, u) y = Mul(v, r)"),
    "a function that overflows where its argument is taken apart (C)": (
        "float[n,4] a, float[n,4] b", "float[n,4] y", "t = Add(a, b) y = Exp(t)", "t = Exp(a) u = Exp(b) y = Mul(t, u)"),
    "a quotient that overflows where it is taken apart (C)": (
        "float[n,4] a, float[n,4] b", "float[n,4] y", "y = Div(a, b)",
        "t = Mul(b, b) u = Mul(t, t) v = Mul(u, b) p = Mul(a, v) q = Mul(b, v) y = Div(p, q)"),
}  # fmt: skip


@pytest.mark.parametrize("why", NOT_PROMISED)
def test_what_forms_over_the_reals_do_not_say_is_not_proved_by_them(why: str, tmp_path: Path) -> None:
    inputs, output, *bodies = NOT_PROMISED[why]
    paths = [tmp_path / f"{number}.onnx" for number in range(2)]
    for path, body in zip(paths, bodies, strict=True):
        onnx.save(onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": 20]> g ({inputs}) => ({output}) {{ {body} }}'), path)
    found = coset.prove(*paths)
    assert found["method"] != "normal forms", found


def test_forms_over_the_reals_always_except_nonfinite(tmp_path: Path) -> None:
    """max(a + c) is max(a) + c but for a = -inf, c = inf beside a number: an infinity and a NaN; no draw need show it."""
    bodies = ("t = Add(a, c) y = ReduceMax<keepdims = 0>(t, x)", "t = ReduceMax<keepdims = 0>(a, x) y = Add(t, c)")
    paths = [tmp_path / f"{number}.onnx" for number in range(2)]
    for path, body in zip(paths, bodies, strict=True):
        text = "g (float[3,4] a, float[4] c) => (float[4] y) { x = Constant<value_ints = [0]>() " + body + " }"
        onnx.save(onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": 20]> {text}'), path)
    found = coset.prove(*paths)
    assert (found["answer"], found["method"], found["exceptions"]) == ("proved", "normal forms", ["nonfinite"])
