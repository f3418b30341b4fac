"""A false rule that a forged lock file calls proved: the seal, the comparison of outputs and a proof made anew each find it."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from coset.cli import run
from coset.comparing.reference import read_program
from coset.ir.program import Program
from coset.ir.term import input_term, make
from coset.ir.types import F32, TensorType
from coset.lowering.onnx.model import write
from coset.optimizing import flow
from coset.prove.certificate_file import packed
from coset.prove.contents import by_content
from coset.proving.certify import certificate_of
from coset.proving.steps import CertificateStep
from coset.rules.elaborated import comes_with_coset
from coset.rules.library import DEFAULT, load, rule_files
from coset.rules.lock import NAME, Locked, save_lock, text_hash
from coset.rules.rule import Rule

PLANTED = 'use stablehlo as hlo, chlo\nrule planted\n  "Not true."\n  for x: F[S..]\n  tanh(tanh(x)) => tanh(x)\n  numerics exact\n'


def chain(folder: Path, count: int) -> Path:
    """tanh `count` times over."""
    names = ["x", *(f"t{place}" for place in range(1, count)), "y"]
    nodes = [helper.make_node("Tanh", [names[place]], [names[place + 1]]) for place in range(count)]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 64]) for name in "xy"]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:])
    path = folder / f"tanh{count}.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """The file of the rule, beside a lock file that is sealed as `coset check` would."""
    path = tmp_path / "planted.rules"
    path.write_text(PLANTED)
    save_lock(tmp_path / NAME, {"planted": Locked(text_hash(rule_of(path).text), "proved", "normal forms, 8 instances of symbolic sizes")})
    return path


def rule_of(path: Path) -> Rule:
    (rule,) = (rule for rule in load([path]).rules if rule.name == "planted")
    return rule


def test_a_line_that_only_says_proved_is_refused(planted: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lock = tmp_path / NAME
    save_lock(lock, {"planted": Locked(text_hash(rule_of(planted).text), "tested")})
    lock.write_text(lock.read_text().replace("tested", "proved"))
    assert run(["optimize", str(chain(tmp_path, 2)), "-o", str(tmp_path / "out.onnx"), "--rules", str(planted)]) == 2
    assert "the line of `planted`" in capsys.readouterr().err
    assert not (tmp_path / "out.onnx").exists()


def test_the_outputs_refuse_what_a_forged_lock_lets_pass(planted: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.onnx"
    assert run(["optimize", str(chain(tmp_path, 2)), "-o", str(out), "--rules", str(planted), "--certificate", str(tmp_path / "c")]) == 1
    assert "rule `planted` breaks the program" in capsys.readouterr().err
    assert not out.exists() and not (tmp_path / "c").exists()


def test_planted_in_the_library_it_is_left_out_and_named(
    planted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("coset.job.phases.DEFAULT", (*rule_files(DEFAULT), planted))
    monkeypatch.setattr(flow, "comes_with_coset", lambda path: path == planted or comes_with_coset(path))
    out = tmp_path / "out.onnx"
    assert run(["optimize", str(chain(tmp_path, 2)), "-o", str(out), "--json"]) == 0
    assert [left["rule"] for left in json.loads(capsys.readouterr().out)["left_out"]] == ["planted"]
    assert len(onnx.load(out).graph.node) == 2


def test_a_proof_made_anew_refuses_what_the_lock_calls_proved(planted: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The checker alone does not believe the lock file beside a rule of the user's, which is not shown; `--prove` refutes it."""
    one, other, proof = chain(tmp_path, 2), chain(tmp_path, 1), tmp_path / "proof"
    before, after = (by_content(read_program(path)) for path in (one, other))
    proof.write_bytes(packed(certificate_of(before, after, [CertificateStep(rule_of(planted), before.roots, after.roots)])))
    given = ["verify", str(proof), str(one), str(other), "--rules", str(planted)]
    assert run([*given, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["assurance"], found["own"]) == ("assumed", {"planted": "not shown"})
    assert run(given) == 0
    assert "planted (not shown)" in capsys.readouterr().out
    assert run([*given, "--prove"]) == 1
    assert "rule `planted` is false" in " ".join(capsys.readouterr().out.split())


ODD = """use stablehlo as hlo, chlo
rule my_odd_tangent
  "The hyperbolic tangent is odd."
  for x: F[S..], F: float
  tanh(-x) => -tanh(x)
  numerics reassociates
"""


def test_a_rule_of_the_users_is_shown_by_the_run_that_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """There is no lock file beside it: without a proof of this run it is assumed, with one it is what the proof shows."""
    rules = tmp_path / "odd.rules"
    rules.write_text(ODD)
    x = input_term("x", TensorType(F32, (4, 64)))
    programs = [Program((x,), (("y", root),)) for root in (
        make("stablehlo.tanh", (make("stablehlo.negate", (x,)),)), make("stablehlo.negate", (make("stablehlo.tanh", (x,)),)),
    )]  # fmt: skip
    paths = [tmp_path / f"{name}.onnx" for name in ("one", "other")]
    for program, path in zip(programs, paths, strict=True):
        write(program, path)
    (rule,) = (rule for rule in load([rules]).rules if rule.name == "my_odd_tangent")
    before, after = (by_content(read_program(path)) for path in paths)
    proof = tmp_path / "proof"
    proof.write_bytes(packed(certificate_of(before, after, [CertificateStep(rule, before.roots, after.roots)])))
    given = ["verify", str(proof), *map(str, paths), "--rules", str(rules), "--json"]
    for options, shown in (([], "not shown"), (["--prove"], "proved")):
        assert run([*given, *options]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["own"] == {"my_odd_tangent": shown}
        assert found["assurance"] == ("assumed" if shown == "not shown" else shown)
    assert run(["verify", str(proof), *map(str, paths)]) == 1
    assert "there is no rule `my_odd_tangent`" in capsys.readouterr().out


def test_true_rules_are_proved_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, proof, out = chain(tmp_path, 2), tmp_path / "proof", tmp_path / "out.onnx"
    model = onnx.load(one)
    model.graph.node.insert(1, helper.make_node("Neg", ["t1"], ["n1"]))
    model.graph.node.insert(2, helper.make_node("Neg", ["n1"], ["n2"]))
    model.graph.node[3].input[0] = "n2"
    onnx.save(model, one)
    assert run(["optimize", str(one), "-o", str(out), "--certificate", str(proof)]) == 0
    capsys.readouterr()
    assert run(["verify", str(proof), str(one), str(out), "--prove", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["ok"] and found["proved_anew"] > 0 and found["seconds"]["prove"] > 0


def test_bits_are_asked_for_beside_rules_that_round(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An `exact` rule that changes the last bit of a few elements, beside a product of matrices that is taken in another order. The order
    may change bits, so the program of exact rules alone is asked for them."""
    path = tmp_path / "planted.rules"
    path.write_text(
        'use stablehlo as hlo, chlo\nrule planted\n  "Not true."\n  for x: F[S..]\n'
        "  tanh(x) * splat(1.0000002) => tanh(x)\n  numerics exact\n"
    )
    save_lock(tmp_path / NAME, {"planted": Locked(text_hash(rule_of(path).text), "proved", "normal forms, 8 instances of symbolic sizes")})
    text = """<ir_version: 9, opset_import: ["": 17]> g (float[4,16] x, float[16,16] v, float[16,16] w) => (float[4,16] y, float[4,16] z)
      <float k = {1.0000002}> { s = Tanh(x) y = Mul(s, k) c = MatMul(x, v) d = MatMul(c, w) z = Relu(d) }"""
    model = tmp_path / "model.onnx"
    onnx.save(onnx.parser.parse_model(text), model)
    assert run(["optimize", str(model), "-o", str(tmp_path / "out.onnx"), "--rules", str(path)]) == 1
    assert "rule `planted` breaks the program" in capsys.readouterr().err
