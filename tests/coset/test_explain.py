"""Explanations: what keeps a rule from matching is named, for graphs in which an op is nearly there; and where it matches."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx
import pytest

from coset.cli import run
from coset.egraph.limits import Limits
from coset.explaining.explain import ExplainedRule, explain
from coset.ir.errors import CosetError
from coset.job.admission import Admission
from coset.job.job import Job
from coset.job.machine import find_target
from tests.sampled import sampled

CORPUS = Path(__file__).resolve().parent.parent / "corpus"
LAYER, GELU, ATTENTION, CONVOLUTION = "onnx.LayerNormalization", "onnx.Gelu", "kernel.attention", "convolution_scale"
# rule, graph (its header says what is wrong), and what the explanation must say of the nearest place: the condition, and what is there
NEARLY = [
    (LAYER, "ln-wrong-axis", "`dimensions` of `part.standardized` is range(len(B), rank(x))", "it is [1]"),
    (LAYER, "ln-variance-axes", "`dimensions` of `onnx.ReduceMean`", "it is [1, 2]"),
    (LAYER, "ln-mean-axes", "`dimensions` of `onnx.ReduceMean`", "it is [2]"),
    (LAYER, "ln-unbiased", "the constant is product(permute(S, dimensions))", "it is 7"),
    (LAYER, "ln-unbiased-var", "the constant is product(permute(S, dimensions))", "it is 7"),
    (LAYER, "ln-epsilon-outside", "rsqrt(onnx.ReduceMean((x - ..) * (x - ..), dimensions: dimensions) + epsilon)", "`v10` = v8 + v9"),
    (LAYER, "ln-epsilon-clamped", "onnx.ReduceMean((x - bcast(..)) * (x - bcast(..)), dimensions: dimensions) + epsilon", "maximum"),
    (LAYER, "ln-no-root", "rsqrt(onnx.ReduceMean((x - ..) * (x - ..), dimensions: dimensions) + epsilon)", "`v9` = v7 + v8"),
    (LAYER, "ln-bias-inside", "* bcast(scale) + bcast(bias)", "`v13` = v12 *"),
    (LAYER, "ln-from-maximum", '`combiner` of `stablehlo.reduce` is "add"', 'it is "maximum"'),
    (GELU, "gelu-rounded-root", "the constant is 1 / sqrt(2)", "it is 0.709219873"),
    (GELU, "gelu-tanh-rounded-cubic", "the constant is 0.044715", "it is 0.0439999998"),
    (GELU, "gelu-tanh-rounded-root", "the constant is sqrt(2 / pi)", "it is 0.800000012"),
    (GELU, "gelu-other-argument", "`x` is one value", "`x` and `v4`"),
    (GELU, "gelu-no-root", "1 / sqrt(2) * x", "x (as builtin.input)"),
    (GELU, "gelu-not-halved", "0.5 * (x * (1 + erf(1 / sqrt(2) * x)))", "`v7` = x * v6"),
    (ATTENTION, "attention-wrong-axis", "`axis` of `onnx.Softmax` is len(S)", "it is 2"),
    (ATTENTION, "attention-probabilities-transposed", "`lhs_contract` of `stablehlo.dot_general`", "it is [2]"),
    (ATTENTION, "attention-softcap", "dot_general(q, k", "`v10` = tanh(v9)"),
    (ATTENTION, "mask-before-scale", "dot_general(q, k", "`v7` = v6 + "),
    (ATTENTION, "mask-after-softmax", "onnx.Softmax(x", "`v10` = v9 + "),
    (ATTENTION, "mask-multiplied", "`broadcast_dimensions` of `stablehlo.broadcast_in_dim` is ()", "it is [0, 2, 3]"),
    (CONVOLUTION, "conv-column-scale", "`broadcast_dimensions` of `stablehlo.broadcast_in_dim` is [1]", "it is [3]"),
    (CONVOLUTION, "conv-image-scale", "`broadcast_dimensions` of `stablehlo.broadcast_in_dim` is [1]", "it is [0]"),
    (CONVOLUTION, "conv-relu-between", "convolution(x, w)", "`v4` = onnx.Relu(v3)"),
    (CONVOLUTION, "conv-quadratic", "bcast(s)", "`v3` = onnx.Conv"),
]
# a layer normalization of scale 1 is there, or one of a transposed operand: what is asked is why not this value
AT = {"ln-wrong-axis": "v13", "ln-bias-inside": "v13"}


def _model(name: str) -> onnx.ModelProto:
    return onnx.parser.parse_model((CORPUS / "near_misses" / f"{name}.onnxtxt").read_text())


def _job(model: object, *, numerics: str = "real") -> Job:
    return Job(model, find_target("cpu-onnxruntime"), numerics, Limits(), (), {}, lambda _: None)


@pytest.mark.parametrize(("rule", "graph", "needs", "has"), sampled(NEARLY), ids=[graph for _, graph, _, _ in NEARLY])
def test_the_condition_that_fails_is_named(rule: str, graph: str, needs: str, has: str) -> None:
    found = explain(ExplainedRule(_job(_model(graph)), rule, AT.get(graph)))
    assert not found["matched"]
    rows = [(row["condition"], row["found"]) for row in found["nearest"][0]["missing"]]
    assert any(needs in condition and has in what for condition, what in rows), rows


@pytest.mark.parametrize("rule", [LAYER, "LayerNormalization", "onnx.layernormalization"])
def test_where_a_rule_matches_is_said(rule: str) -> None:
    model = onnx.parser.parse_model((CORPUS / "layer_norm" / "torch-script14-inputs.onnxtxt").read_text())
    if rule.islower():
        with pytest.raises(CosetError, match="no rule") as refused:
            explain(ExplainedRule(_job(model), rule))
        assert "`onnx.LayerNormalization`" in str(refused.value)
        return
    found = explain(ExplainedRule(_job(model), rule))
    assert found["matched"] and not found["nearest"]


SUM = """<ir_version: 9, opset_import: ["": 17]>
g (float[4, N] x, float[4, N] w) => (float[4, N] y) {{ a = {left} b = {right} y = Add(a, b) }}"""


def test_a_rule_that_promises_too_little_is_left_out_for_that(tmp_path: Path) -> None:
    rules = tmp_path / "own.rules"
    rules.write_text(
        'use stablehlo as hlo\nrule drop_exp_of_log\n  "The exponential of a logarithm is its operand."\n'
        "  for x: F[S..]\n  exponential(log(x)) => x\n  numerics real\n"
    )
    model = onnx.parser.parse_model(SUM.format(left="Log(x)", right="Exp(a)"))
    job = Job(model, find_target("cpu-onnxruntime"), "exact", Limits(), (rules,), {}, lambda _: None)
    found = explain(ExplainedRule(job, "drop_exp_of_log"))
    assert found["matched"] and found["used"] == 0
    assert any("--numerics real" in reason for reason in found["reasons"])


def test_a_rule_that_only_led_to_what_was_chosen_is_said_to_be_needed(tmp_path: Path) -> None:
    rules = tmp_path / "own.rules"
    rules.write_text(
        "use stablehlo as hlo\n"
        'rule by_the_sign\n  "A magnitude is the number times its sign."\n  for x: F[S..]\n  abs(-x) => sign(x) * x\n  numerics real\n'
        'rule without_the_sign\n  "A number times its sign is its magnitude."\n  for x: F[S..]\n  sign(x) * x => abs(x)\n  numerics real\n'
    )
    model = onnx.parser.parse_model(
        """<ir_version: 9, opset_import: ["": 17]> g (float[64, 64] x) => (float[64, 64] y) { a = Neg(x) y = Abs(a) }"""
    )
    job = Job(model, find_target("cpu-onnxruntime"), "real", Limits(), (rules,), {}, lambda _: None)
    both = replace(job, admission=Admission((), ("by_the_sign", "without_the_sign")))
    led, made = (explain(ExplainedRule(both, name)) for name in ("by_the_sign", "without_the_sign"))
    assert made["used"] == 1 and made["slower_without"] == 0
    assert led["used"] == 0 and led["slower_without"] > 0
    assert [reason for reason in led["reasons"] if "led to some" in reason and "ms more" in reason]


def test_a_constant_that_is_an_input_is_named() -> None:
    text = """<ir_version: 9, opset_import: ["": 17]>
    g (float[1, 3, 8, 8] x, float[4, 3, 3, 3] w, float[4, 1, 1] s) => (float[1, 4, 6, 6] y) { a = Conv(x, w) y = Mul(a, s) }"""
    found = explain(ExplainedRule(_job(onnx.parser.parse_model(text)), CONVOLUTION))
    rows = [(row["condition"], row["found"]) for row in found["nearest"][0]["missing"]]
    assert ("`w` is a constant", "it is a value that inputs decide") in rows


def test_a_value_of_the_model_can_be_asked_about(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "gelu.onnx"
    onnx.save(_model("gelu-rounded-root"), path)
    assert run(["explain", str(path), "--rule", GELU, "--at", "v9", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [place["value"] for place in found["nearest"]] == ["`v9`"]
    assert run(["explain", str(path), "--rule", GELU]) == 1
    assert "needs    the constant is 1 / sqrt(2)" in capsys.readouterr().out
    assert run(["explain", str(path), "--rule", GELU, "--at", "nothing"]) == 2
    assert run(["explain", str(path), "--rule", "onnx.Gleu"]) == 2
    assert "do you mean `onnx.Gelu`" in capsys.readouterr().err


@pytest.mark.parametrize(("graph", "op", "condition"), [
    ("gelu-rounded-root", GELU, "the constant is 1 / sqrt(2); it is 0.709219873"),
    ("ln-unbiased", LAYER, "the constant is product(permute(S, dimensions)); it is 7"),
    ("ln-wrong-axis", LAYER, "`dimensions` of `part.standardized` is range(len(B), rank(x)); it is [1]"),
])  # fmt: skip
def test_the_page_lists_near_misses(tmp_path: Path, graph: str, op: str, condition: str) -> None:
    """Only where every op is there and a condition fails; nothing of a model in which all of them were found."""
    model, page = tmp_path / "model.onnx", tmp_path / "page.html"
    onnx.save(_model(graph), model)
    arguments = ["optimize", str(model), "-o", str(tmp_path / "out.onnx"), "--numerics", "real", "--report"]
    assert run([*arguments, str(page)]) == 0
    found = json.loads(re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', page.read_text(), re.S)[0])
    assert {"rule": op, "condition": condition} in [{"rule": each["rule"], "condition": each["condition"]} for each in _missed(found)]
    onnx.save(onnx.parser.parse_model((CORPUS / "layer_norm" / "torch-script14-inputs.onnxtxt").read_text()), model)
    assert run([*arguments, str(page)]) == 0
    found = json.loads(re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', page.read_text(), re.S)[0])
    assert not _missed(found)


def _missed(data: dict[str, Any]) -> list[dict[str, Any]]:
    return (data.get("report") or data)["near_misses"]  # type: ignore[no-any-return]
