"""docs/reports.schema.json says what reports hold: real ones of each command are looked at, and have no key that it does not name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

from coset.cli import run
from coset.job.answer import VERSION
from coset.targets import target as registry

jsonschema = pytest.importorskip("jsonschema", reason="pip install -e '.[dev]'")
SCHEMA = json.loads((Path(__file__).resolve().parents[2] / "docs" / "reports.schema.json").read_text())
OPEN = ("prove", "verify")  # which keys there are depends on the answer
HOSTED = """\
base = "cpu-onnxruntime"
title = "an accelerator of products"
host = "cpu-onnxruntime"

[kernels.transfer]
launch = { value = 1e-6, unit = "s", source = "assumed for a test" }

[legal]
never = "exponential"
"""
INNER = """\
<ir_version: 9, opset_import: ["" : 20, "own" : 1]>
inner (float[4] x, bool which) => (float[4] y)
{
  once = own.Twice(x)
  y = If (which) <
    then_branch = then () => (float[4] t) { a = Neg(once)  b = Neg(a)  t = Tanh(b) },
    else_branch = other () => (float[4] e) { e = Exp(once) }
  >
}
<domain: "own", opset_import: ["" : 20]>
Twice (v) => (w) { m = Neg(v)  n = Neg(m)  w = Abs(n) }
"""
OWN = """\
use stablehlo

rule exp_of_neg_neg
  "Two signs more."
  for x: F[S..], F: float
  exponential(negate(negate(x))) => exponential(x)
  numerics exact
"""


def closed(schema: Any) -> Any:
    """The schema with no other keys in any object whose keys it names."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: closed(each) for key, each in schema.items()}
    return {**found, "additionalProperties": False} if "required" in schema else found


def validator(command: str) -> Any:
    definitions = SCHEMA["$defs"] if command in OPEN else closed(SCHEMA["$defs"])
    return jsonschema.Draft202012Validator({"$ref": f"#/$defs/{command}", "$defs": definitions})


@pytest.fixture(autouse=True)
def files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two models, a target with a host and measurements, in a folder of their own."""
    monkeypatch.setattr(registry, "_REGISTRY", dict(registry._REGISTRY))
    monkeypatch.chdir(tmp_path)
    for name, ops in (("model", ("Neg", "Neg", "Exp", "Tanh")), ("other", ("Neg", "Exp", "Tanh"))):
        values = ["x", *(f"v{place}" for place in range(len(ops) - 1)), "y"]
        nodes = [helper.make_node(op, [values[place]], [values[place + 1]]) for place, op in enumerate(ops)]
        x, y = (helper.make_tensor_value_info(each, TensorProto.FLOAT, ["n", 64]) for each in "xy")
        opsets = [helper.make_opsetid("", 20)]
        onnx.save(helper.make_model(helper.make_graph(nodes, name, [x], [y]), opset_imports=opsets, ir_version=9), f"{name}.onnx")
    onnx.save(onnx.parser.parse_model(INNER), "inner.onnx")
    Path("own.rules").write_text(OWN)
    Path("hosted.toml").write_text(HOSTED)
    Path("wrong.toml").write_text('base = "cpu-onnxruntime"\ntitel = "mine"\n\n[legal]\nnever = "onnx.Gellu"\n')
    Path("mine.csv").write_text(
        "op,shapes,dtype,microseconds\n" + "".join(f"Tanh,{size},f32,{size / 500}\n" for size in (64, 4096, 262144))
    )


def report(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> Any:
    run([*arguments, "--json"])
    return json.loads(capsys.readouterr().out)


REPORTS = {
    "plain": ("optimize", ["optimize", "model.onnx", "-o", "out.onnx", "--time-limit", "3"]),
    "certified": ("optimize", ["optimize", "model.onnx", "-o", "out.onnx", "--certificate", "proof", "--time-limit", "3"]),
    "measured": ("optimize", ["optimize", "model.onnx", "-o", "out.onnx", "--measure", "1", "--time-limit", "3"]),
    "hosted": (
        "optimize",
        ["optimize", "model.onnx", "-o", "out.onnx", "--target", "hosted.toml", "--split", "parts", "--time-limit", "3"],
    ),
    "ranges": ("optimize", ["optimize", "model.onnx", "-o", "out.onnx", "--range", "n=1:64", "--time-limit", "3"]),
    "inner": ("optimize", ["optimize", "inner.onnx", "-o", "out.onnx", "--keep-functions", "--time-limit", "3"]),
    "own": ("optimize", ["optimize", "model.onnx", "-o", "out.onnx", "--rules", "own.rules", "--allow-assumed", "--time-limit", "3"]),
    "proved": ("prove", ["prove", "model.onnx", "model.onnx"]),
    "refuted": ("prove", ["prove", "model.onnx", "other.onnx"]),
    "fitted": ("calibrate_from", ["calibrate", "--from", "mine.csv", "--target", "cpu-onnxruntime", "-o", "out.toml"]),
    "timed": ("calibrate", ["calibrate", "-o", "out.toml", "--profile", "profile", "--seconds", "0.2", "--each", "0.01"]),
    "failed": ("error", ["optimize", "absent.onnx", "-o", "out.onnx"]),
    "mistaken": ("error", ["optimize", "model.onnx", "-o", "out.onnx", "--target", "wrong.toml"]),
}


@pytest.mark.parametrize("name", REPORTS)
def test_a_report_is_what_the_schema_says(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    command, arguments = REPORTS[name]
    found = report(arguments, capsys)
    wrong = [f"{error.json_path}: {error.message}" for error in validator(command).iter_errors(found)]
    assert not wrong and found["report_version"] == VERSION, found
    jsonschema.Draft202012Validator(SCHEMA).validate(found)


def test_the_file_of_a_report_and_a_certificate_that_is_read_again(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["optimize", "model.onnx", "-o", "out.onnx", "--certificate", "proof", "--report", "why.json", "--time-limit", "3"]
    assert run(arguments) == 0
    validator("optimize").validate(json.loads(Path("why.json").read_text()))
    capsys.readouterr()
    validator("verify").validate(report(["verify", "proof", "model.onnx", "out.onnx"], capsys))
    validator("verify").validate(report(["verify", "proof", "model.onnx", "other.onnx"], capsys))


def test_the_schema_is_one_and_refuses_other_reports(capsys: pytest.CaptureFixture[str]) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    found = report(REPORTS["failed"][1], capsys)
    for broken in ({**found, "report_version": VERSION + 1}, {"report_version": VERSION}, {**found, "error": {}}):
        assert list(validator("error").iter_errors(broken))
