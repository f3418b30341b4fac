"""Models that ONNX Runtime does not run, bf16 and ops that nobody here knows: they are compared by the evaluator, around these ops."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest

import coset
from coset.cli import run
from coset.comparing.evaluated import EVALUATOR, compared, cut
from coset.frontends.onnx.model import import_model
from coset.ir.errors import CosetError
from coset.lowering.onnx.model import lower
from coset.targets.running import KEY


def model(body: str, *, head: str = "float[n,4] x", result: str = "float[n,4] y", more: str = "<float[n,4] c>") -> Any:
    return onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 20, "acme" : 1]> g ({head}) => ({result}) {more} {{ {body} }}')


def saved(found: Any, path: Path) -> Path:
    onnx.save(found, path)
    return path


UNKNOWN = "t = Transpose<perm=[1,0]>(x) u = Transpose<perm=[1,0]>(t) c = acme.Fancy(u) y = Relu(c)"
BF16 = {"head": "bfloat16[n,4] x, bfloat16[4] w", "result": "bfloat16[n,4] y", "more": ""}


@pytest.mark.parametrize("target", ["cpu-onnxruntime", "onnx-portable"])
def test_what_is_around_an_unknown_op_is_optimized(target: str, tmp_path: Path) -> None:
    found = coset.optimize(saved(model(UNKNOWN), tmp_path / "in.onnx"), target=target)
    found.save(tmp_path / "out.onnx")
    written = onnx.load(tmp_path / "out.onnx")
    assert [node.op_type for node in written.graph.node] == ["Fancy", "Relu"]
    assert found.report["check"]["ok"] and found.report["check"]["by"] == EVALUATOR
    assert found.report["session"] is None and KEY not in {each.key for each in written.metadata_props}, "no run has seen any options"
    (told,) = written.graph.value_info
    assert told.name == written.graph.node[0].output[0] and told.type.tensor_type.elem_type == 1, (
        "nobody can infer the type of what it gives"
    )


@pytest.mark.parametrize(
    ("other", "ok"),
    [
        (UNKNOWN, True),
        ("c = acme.Fancy(x) y = Relu(c)", True),
        ("n = Neg(x) c = acme.Fancy(n) y = Relu(c)", False),
        ("c = acme.Fancy(x) y = Abs(c)", False),
        ("c = acme.Fancy(x) s = Add(c, x) y = Relu(s)", False),
    ],
)
def test_programs_are_compared_around_it(other: str, ok: bool) -> None:
    one, two = (import_model(model(body).SerializeToString()) for body in (UNKNOWN, other))
    assert compared(one, two, {}, exact=False).ok is ok


def test_another_unknown_op_is_no_program_to_compare() -> None:
    for other in ("c = acme.Other(x) y = Relu(c)", "c = acme.Fancy<k=1>(x) y = Relu(c)", "c = Neg(x) y = Relu(c)"):
        one, two = (import_model(model(body).SerializeToString()) for body in (UNKNOWN, other))
        with pytest.raises(CosetError, match="are others in the result"):
            compared(one, two, {}, exact=False)


def test_several_results_are_inputs_of_both() -> None:
    body = "c, d = acme.Two(x) y = Add(c, d)"
    program = import_model(model(body, more="<float[n,4] c, float[n,4] d>").SerializeToString())
    assert len(cut(program).inputs) == 3 and len(cut(program).outputs) == 2
    swapped = import_model(model("c, d = acme.Two(x) y = Sub(c, d)", more="<float[n,4] c, float[n,4] d>").SerializeToString())
    assert compared(program, program, {}, exact=True).ok and not compared(program, swapped, {}, exact=False).ok


def test_a_result_of_no_known_type_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = saved(model(UNKNOWN, more=""), tmp_path / "in.onnx")
    assert run(["optimize", str(path), "-o", str(tmp_path / "out.onnx")]) == 2
    assert "value_info" in capsys.readouterr().err and not (tmp_path / "out.onnx").exists()


def test_types_that_nobody_can_infer_survive_a_round_trip() -> None:
    first = lower(import_model(model(UNKNOWN).SerializeToString()))
    second = lower(import_model(first.SerializeToString()))
    assert [value.name for value in first.graph.value_info] == [value.name for value in second.graph.value_info] == ["c"]


def test_bf16_is_compared_by_the_evaluator(tmp_path: Path) -> None:
    one = saved(model("a = Mul(x, w) b = Add(a, w) y = Relu(b)", **BF16), tmp_path / "one.onnx")
    other = saved(model("a = Mul(x, w) b = Sub(a, w) y = Relu(b)", **BF16), tmp_path / "other.onnx")
    found = coset.optimize(one)
    assert found.report["check"]["ok"] and found.report["check"]["by"] == EVALUATOR
    assert [run([command, str(one), str(one)]) for command in ("diff", "prove")] == [0, 0]
    assert [run([command, str(one), str(other)]) for command in ("diff", "prove")] == [1, 1]
