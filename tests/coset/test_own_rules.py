"""The user's rules are checked before they fire: refuted ones are refused, what is not shown needs the user's word and is named."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from forged import forged
from onnx import TensorProto, helper, numpy_helper

import coset
from coset.cli import run
from coset.egraph.limits import Limits
from coset.job import own_rules as own
from coset.job.own_rules import NO_RULES, RefutedRule, UnshownRule, own_rules
from coset.optimizing.pipeline import flow_for
from coset.packaging.asked import Check, Lowering
from coset.packaging.lower import lower
from coset.prove import check as prover
from coset.rules.lock import NAME
from coset.rules.native import native, withdraw
from coset.targets.target import get_target
from tests.sampled import sampled

HALF = """use stablehlo as hlo, chlo
rule half_of_double
  "Not true of integers: the product wraps around."
  for x: I[S..], I: int
  (x * splat(2)) / splat(2) => x
  numerics exact
"""
HUGE = """use stablehlo as hlo, chlo
rule of_8192
  "Of a size that is never drawn."
  for x: F[8192], F: float
  tanh(tanh(x)) => tanh(x)
  numerics exact
"""
ODD = "use stablehlo as hlo, chlo\nrule tanh_odd for x: F[S..] tanh(-x) => -tanh(x) numerics exact\n"


@pytest.fixture
def nothing_remembered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No verdict of another test or run is known."""
    monkeypatch.setenv("COSET_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(own, "_FOUND", {})


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """The product of integers by 2, divided by 2."""
    two = numpy_helper.from_array(np.array([2], np.int32), "two")
    nodes = [helper.make_node("Mul", ["x", "two"], ["d"]), helper.make_node("Div", ["d", "two"], ["y"])]
    ends = [helper.make_tensor_value_info(name, TensorProto.INT32, [64]) for name in "xy"]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], [two])
    path = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


@pytest.fixture
def mine(tmp_path: Path) -> Callable[[str], Path]:
    """Writes a file of rules in a folder of its own."""

    def written(text: str) -> Path:
        path = tmp_path / "rules" / "mine.rules"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path

    return written


def commands(model: Path, folder: Path) -> dict[str, list[str]]:
    """What takes rule files, by name, without them."""
    return {
        "optimize": ["optimize", str(model), "-o", str(folder / "out.onnx")],
        "lower": ["lower", str(model), "-o", str(folder / "package"), "--check", "none"],
        "prove": ["prove", str(model), str(model)],
        "verify": ["verify", str(folder / "none.certificate"), str(model), str(model)],
        "explain": ["explain", str(model), "--rule", "tanh"],
        "bisect": ["bisect", str(model)],
        "tune": ["tune", str(model), "--prune-only", "--profile", str(folder / "tuned.sqlite"), "--seconds", "0"],
    }


NAMES = list(commands(Path(), Path()))


@pytest.mark.parametrize("name", NAMES)
def test_a_refuted_rule_is_refused_with_place_counterexample_and_remedy(
    name: str, model: Path, mine: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = mine(HALF)
    assert run([*commands(model, tmp_path)[name], "--rules", str(rules), "--allow-assumed"]) == 2
    said = capsys.readouterr()
    assert "rule `half_of_double` is refuted" in said.err and f"{rules}:2:6" in said.err
    assert "the sides are not bit-equal" in said.err and "left at [" in said.err and "help: " in said.err
    assert not said.out and "searching" not in said.err
    assert not (tmp_path / "out.onnx").exists() and not (tmp_path / "package").exists()
    assert [path.name for path in rules.parent.iterdir()] == ["mine.rules"]


@pytest.mark.parametrize("name", sampled(NAMES))
def test_what_is_not_shown_needs_the_user_s_word(
    name: str, model: Path, mine: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*commands(model, tmp_path)[name], "--rules", str(mine(HUGE))]) == 2
    said = capsys.readouterr().err
    assert "nothing is shown of rule `of_8192`: 0 comparisons of 1 form" in said and "--allow-assumed" in said


@pytest.mark.parametrize("name", sampled(["optimize", "prove", "bisect", "lower"]))
def test_an_allowed_one_is_named_first(
    name: str, model: Path, mine: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [*commands(model, tmp_path)[name], "--rules", str(mine(HUGE)), "--allow-assumed"]
    assert run([*given, "--json"]) == 0
    said = capsys.readouterr()
    report = json.loads(said.out)
    assert next(iter(report)) == "not_shown" and [each["rule"] for each in report["not_shown"]] == ["of_8192"]
    assert report["not_shown"][0]["assurance"] == "assumed" and report["not_shown"][0]["line"] == 2
    assert "warning: nothing is shown of rule `of_8192`" in said.err
    if name != "lower":  # which writes to a new folder
        assert run(given) == 0
        assert capsys.readouterr().out.startswith("not shown  rule of_8192 (")


def test_the_page_says_it(model: Path, mine: Callable[[str], Path], tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    given = ["optimize", str(model), "-o", str(tmp_path / "out.onnx"), "--rules", str(mine(HUGE)), "--allow-assumed", "--report", str(page)]
    assert run(given) == 0
    text = page.read_text()
    assert '"not_shown": [{"rule": "of_8192"' in text and "Nothing is shown of rule " in text


def test_what_is_shown_is_said_and_nothing_else_is(model: Path, mine: Callable[[str], Path]) -> None:
    report = coset.optimize(model, rules=[mine(ODD)]).report
    assert report["not_shown"] == []
    assert coset.optimize(model).report["not_shown"] == []
    assert own_rules([]) is NO_RULES


def test_python_says_it_with_an_error_of_its_own(model: Path, mine: Callable[[str], Path]) -> None:
    with pytest.raises(RefutedRule, match="half_of_double") as refuted:
        coset.optimize(model, rules=[mine(HALF)], allow_assumed=True)
    assert refuted.value.place is not None and refuted.value.place.line == 2
    with pytest.raises(UnshownRule, match="of_8192"):
        coset.optimize(model, rules=[mine(HUGE)])
    assert coset.optimize(model, rules=[mine(HUGE)], allow_assumed=True).report["not_shown"][0]["rule"] == "of_8192"
    x = coset.names("x")[0]
    false = coset.rule("tanh_even", variables="x: F[S..]", left=coset.op.tanh(-x), right=coset.op.tanh(x), numerics="exact")
    with pytest.raises(RefutedRule, match="tanh_even"):
        coset.optimize(model, rules=[false])
    asked = Lowering(model, get_target("nvidia-h200"), limits=Limits(seconds=5, nodes=500), rules=[mine(HALF)], check=Check.NONE)
    with pytest.raises(RefutedRule, match="half_of_double"):
        lower(asked, model.parent / "package")


def test_a_rule_that_is_left_out_is_not_looked_at(model: Path, mine: Callable[[str], Path], tmp_path: Path) -> None:
    given = ["optimize", str(model), "-o", str(tmp_path / "out.onnx"), "--rules", str(mine(HALF + HUGE.partition("\n")[2]))]
    assert run([*given, "--disable-rule", "half_of_double"]) == 2
    assert run([*given, "--disable-rule", "half_of_double", "--disable-rule", "of_8192"]) == 0


@pytest.mark.usefixtures("nothing_remembered")
def test_what_was_found_is_remembered_until_something_changes(mine: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    judge = prover.check_rules

    def watched(rules: list[prover.Rule], **given: object) -> list[prover.Verdict]:
        asked.extend(sorted({rule.family for rule in rules}))
        return judge(rules, **given)  # type: ignore[arg-type]

    monkeypatch.setattr(prover, "check_rules", watched)
    path = mine(ODD)
    own_rules([path])
    own_rules([path])
    monkeypatch.setattr(own, "_FOUND", {})  # as another process: from the cache folder
    verdicts = own_rules([path]).verdicts
    assert asked == ["tanh_odd"] and verdicts["tanh_odd"].assurance in own.SHOWN
    path.write_text(ODD.replace("-tanh(x)", "tanh(x)"))
    for _ in range(2):
        with pytest.raises(RefutedRule):
            own_rules([path])
    assert asked == ["tanh_odd", "tanh_odd"]


def test_a_lock_file_is_believed_where_its_seal_fits(mine: Callable[[str], Path]) -> None:
    """What `coset check` found is not found again; what it could only assume is, and a line of another text says nothing."""
    path = forged(mine(ODD), "bounded")
    assert own_rules([path]).verdicts["tanh_odd"].assurance == "bounded"
    forged(path, "assumed")
    assert own_rules([path]).verdicts["tanh_odd"].assurance != "assumed"
    forged(path, "proved")
    path.write_text(ODD.replace("-tanh(x)", "tanh(x)"))
    with pytest.raises(RefutedRule):
        own_rules([path])
    assert (path.parent / NAME).exists()


@pytest.mark.usefixtures("nothing_remembered")
def test_what_there_was_no_time_for_is_unknown_and_tried_again_with_more(
    mine: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own, "LEAST", 1e-6)
    with pytest.raises(UnshownRule, match=r"the time limit of .* was over while it was drawn") as caught:
        own_rules([mine(ODD)], seconds=1e-6)
    assert "coset check" in caught.value.help
    (verdict,) = own_rules([mine(ODD)], seconds=1e-6, allow_assumed=True).not_shown
    assert verdict.assurance == "unknown"
    assert own_rules([mine(ODD)], seconds=30.0).not_shown == ()


def test_a_report_has_the_assurance_that_was_found(tmp_path: Path, mine: Callable[[str], Path]) -> None:
    """A rule that no lock file knows is no longer called assumed: it was looked at."""
    nodes = [helper.make_node("Tanh", ["x"], ["t"]), helper.make_node("Neg", ["t"], ["y"])]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 64]) for name in "xy"]
    path = tmp_path / "tanh.onnx"
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", ends[:1], ends[1:]), opset_imports=[helper.make_opsetid("", 17)]), path)
    phases = flow_for(_job(path, mine(ODD)), tmp_path / "out.onnx").read().phases  # type: ignore[arg-type]
    (found,) = (rule for phase in phases for rule in phase.rules if rule.name == "tanh_odd")
    assert found.assurance in ("tested", "bounded", "proved")


def _job(model: Path, rules: Path) -> object:
    from coset.job.job import Job

    return Job(model, get_target("cpu-onnxruntime"), "reassociates", Limits(), (rules,), {}, lambda _: None)


def test_a_native_function_that_lets_nothing_be_compared_needs_the_user_s_word(
    model: Path, mine: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def seldom(n: int) -> bool:
        """True for one number only."""
        return n == 8192

    native("int", gives="bool")(seldom)
    try:
        text = "use stablehlo\nrule guarded for x: F[N], F: float tanh(tanh(x)) => tanh(x) where native.seldom(N) numerics exact\n"
        assert run(["optimize", str(model), "-o", str(tmp_path / "out.onnx"), "--rules", str(mine(text))]) == 2
        assert "guarded" in capsys.readouterr().err
    finally:
        withdraw("native.seldom")


def test_the_rule_of_the_readme_is_proved_and_used_as_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (Path(__file__).resolve().parents[2] / "README.md").read_text()
    (block,) = re.findall(r"```\n((?:use [^\n]*\n\n)?rule .*?)```", text, re.DOTALL)
    rules, path = tmp_path / "mine.rules", tmp_path / "model.onnx"
    rules.write_text(block)
    assert run(["check", str(rules), "--require", "proved"]) == 0
    assert "warning" not in capsys.readouterr().err
    body = "t = Max(a, b) u = Min(a, b) y = Add(t, u)"
    text = f'<ir_version: 9, opset_import: ["": 20]> g (float[n,64] a, float[n,64] b) => (float[n,64] y) {{ {body} }}'
    onnx.save(onnx.parser.parse_model(text), path)
    assert run(["optimize", str(path), "-o", str(tmp_path / "fast.onnx"), "--rules", str(rules), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    name = block.split("rule ")[1].split()[0]
    assert report["nodes"] == {"before": 3, "after": 1} and name in [rule["name"] for rule in report["rules"]]
    assert report["own"][0]["rule"] == name and report["own"][0]["matches"] > 0


def test_a_name_of_the_library_is_told_by_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules = tmp_path / "mine.rules"
    rules.write_text('use stablehlo\nrule matmul_assoc\n  "Its own."\n  for x: F[S..]\n  -(-x) => x\n  numerics exact\n')
    assert run(["check", str(rules)]) == 0
    assert "the library has a rule `matmul_assoc`" in capsys.readouterr().err


def test_an_own_rule_that_did_nothing_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules, path = tmp_path / "mine.rules", tmp_path / "model.onnx"
    rules.write_text('use stablehlo\nrule never_here\n  "None."\n  for x: F[S..]\n  ceil(ceil(x)) => ceil(x)\n  numerics exact\n')
    onnx.save(onnx.parser.parse_model('<ir_version: 9, opset_import: ["": 20]> g (float[n,4] a) => (float[n,4] y) { y = Relu(a) }'), path)
    assert run(["optimize", str(path), "-o", str(tmp_path / "fast.onnx"), "--rules", str(rules)]) == 0
    assert "own rule   never_here matched nowhere" in capsys.readouterr().out
