"""Models of short floats that ONNX Runtime rounds elsewhere as soon as they are written anew: judged by the evaluator at the ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import onnx.parser
import pytest

import coset
from coset.comparing.check import CheckReport
from coset.comparing.difference import Difference
from coset.comparing.refused import Refused
from coset.comparing.rounding import AT_ENDS, by_rounding, only_at_ends, usual
from coset.console.optimized import show_optimized
from coset.frontends.onnx.model import import_model
from coset.rules.library import load
from coset.rules.lock import NAME, Locked, save_lock, text_hash

HEAD = '<ir_version: 8, opset_import: ["" : 20]> g (float[64] x) => (float16[64] y) <int64[1] n = {64}>'
# the Reshape keeps the conversion: it overflows, and inf / inf is NaN, of which the sign is 0. Without it the runtime divides in f32
ROUNDED = "c = Cast<to = 10>(x) r = Reshape(c, n) d = Div(r, r) y = Sign(d)"


def model(body: str, head: str = HEAD) -> Any:
    return onnx.parser.parse_model(f"{head} {{ {body} }}")


@pytest.mark.parametrize("numerics", ["exact", "reassociates"])
def test_what_the_runtime_rounds_elsewhere_is_handed_out_with_a_word(numerics: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = coset.optimize(model(ROUNDED), numerics=numerics)
    check = found.report["check"]
    assert check["ok"] and check["loose"] == AT_ENDS and {"normal", "huge"} <= set(check["inputs"])
    assert "Reshape" not in [node.op_type for node in onnx.load(found._draft.path).graph.node]
    assert found.report["session"]["level"] != "off"  # levels that differ at the ends alone are taken, as the runtime without them does
    show_optimized(found.report)
    assert "judged by the evaluator" in capsys.readouterr().out.replace("\n", " ")


def test_of_f32_nothing_is_said() -> None:
    body = "r = Reshape(x, n) d = Div(r, r) y = Sign(d)"
    check = coset.optimize(model(body, HEAD.replace("float16[64] y", "float[64] y"))).report["check"]
    assert check["ok"] and not check["loose"]


PLANTED = 'use stablehlo as hlo, chlo\nrule planted\n  "Not true."\n  for x: F[S..]\n  minimum(x, splat(1000)) => x\n  numerics exact\n'


@pytest.mark.parametrize("planted", [True, False])
def test_a_rule_that_is_false_at_the_ends_is_refused_beside_it(planted: bool, tmp_path: Path) -> None:
    """The runtime rounds elsewhere there, which excuses what the evaluator sees in no way."""
    path = tmp_path / "planted.rules"
    path.write_text(PLANTED)
    (rule,) = (rule for rule in load([path]).rules if rule.name == "planted")
    save_lock(tmp_path / NAME, {"planted": Locked(text_hash(rule.text), "proved", "normal forms, 8 instances of symbolic sizes")})
    results, constants = "(float16[64] y, float16[64] z)", "int64[1] n = {64}, float16 k = {25552}"
    head = f'<ir_version: 8, opset_import: ["" : 20]> g (float[64] x) => {results} <{constants}>'
    given = model(f"{ROUNDED} z = Min(r, k)", head)  # of f16, 25552 is how 1000 is written
    if not planted:
        assert coset.optimize(given).report["check"]["loose"] == AT_ENDS
        return
    with pytest.raises(Refused) as refused:
        coset.optimize(given, rules=[path])
    assert "z" in {each.output for each in refused.value.check.differences if not each.ok}


def differing(case: str) -> CheckReport:
    return CheckReport({}, [Difference("normal", "y", 0.0, 0.0, 1.0), Difference(case, "y", 1.0, 1.0, 0.1)], ["normal", case])


def test_what_differs_on_usual_inputs_is_no_matter_of_the_ends() -> None:
    assert only_at_ends(differing("huge")) and not only_at_ends(differing("second 3"))
    assert usual(differing("huge")).ok and not usual(differing("second 3")).ok


def test_programs_that_differ_at_the_ends_where_every_node_rounds_are_told_apart() -> None:
    """x / x is NaN where the conversion overflows, and 1 is not."""
    one = import_model(model(ROUNDED))
    other = import_model(model("c = Cast<to = 10>(x) d = Div(c, c) e = Abs(c) z = Equal(e, e) o = Cast<to = 10>(z) y = Sign(o)"))
    for exact in (False, True):
        same = by_rounding(one, one, differing("huge"), exact=exact, exceptions=frozenset())
        assert same is not None and same.ok and same.loose == AT_ENDS
        assert by_rounding(one, other, differing("huge"), exact=exact, exceptions=frozenset()) is None


def test_programs_without_short_floats_are_not_judged_so() -> None:
    program = import_model(model("y = Abs(x)", HEAD.replace("float16[64] y", "float[64] y")))
    assert by_rounding(program, program, differing("huge"), exact=False, exceptions=frozenset()) is None
