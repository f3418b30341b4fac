"""With --json a command prints one object on stdout, also where it ends without an answer; the exit codes are as without it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from coset import cli
from coset.cli import run
from coset.comparing.check import CheckReport
from coset.comparing.refused import Refused
from coset.ir.errors import CosetError
from coset.targets import target as registry


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What a test reads is known to no other; files are in a folder of its own."""
    monkeypatch.setattr(registry, "_REGISTRY", dict(registry._REGISTRY))
    monkeypatch.chdir(tmp_path)
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Tanh", ["x"], ["y"])], "test", [x], [y])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), tmp_path / "model.onnx")
    (tmp_path / "wrong.toml").write_text('base = "cpu-onnxruntime"\ntitel = "mine"\n\n[legal]\nnever = "onnx.Gellu"\n')
    np.savez(tmp_path / "inputs.npz", z=np.zeros(4, np.float32))


def answered(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any], str]:
    """Exit code, the object on stdout, and what is on stderr."""
    code = run(arguments)
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert isinstance(found, dict)
    return code, found, printed.err


FAILING = {  # arguments -> kind, code, words of the error
    "no model": (["optimize", "absent.onnx", "-o", "out.onnx"], "CosetError", 2, "absent.onnx"),
    "no target": (["optimize", "model.onnx", "-o", "out.onnx", "--target", "tpu"], "CosetError", 2, "there is no target `tpu`"),
    "wrong target": (["optimize", "model.onnx", "-o", "out.onnx", "--target", "wrong.toml"], "WrongFile", 2, "`titel` is no key"),
    "no option": (["optimize", "model.onnx", "-o", "out.onnx", "--frobnicate"], "UsageError", 2, "--frobnicate"),
    "no output": (["optimize", "model.onnx"], "UsageError", 2, "-o"),
    "no command": (["optimise"], "UsageError", 2, "optimise"),
    "no certificate": (["verify", "absent", "model.onnx", "model.onnx"], "CosetError", 2, "absent"),
    "other inputs": (["optimize", "model.onnx", "-o", "out.onnx", "--sample-inputs", "inputs.npz"], "CosetError", 2, "inputs.npz"),
    "no package": (["lower", "absent.onnx", "-o", "out"], "CosetError", 2, "absent.onnx"),
    "no measurements": (["calibrate", "--from", "no.csv", "--target", "cpu-onnxruntime", "-o", "out.toml"], "CosetError", 2, "no.csv"),
    "no model to time": (["bench", "absent.onnx"], "CosetError", 2, "absent.onnx"),
    "no model to explain": (["explain", "absent.onnx", "--rule", "neg_neg"], "CosetError", 2, "absent.onnx"),
}


@pytest.mark.parametrize("name", FAILING)
def test_an_error_is_an_object_too(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments, kind, code, words = FAILING[name]
    assert run(arguments) == code
    plain = capsys.readouterr()
    assert not plain.out
    found, answer, said = answered([*arguments, "--json"], capsys)
    error = answer["error"]
    assert (found, error["kind"], error["exit_code"]) == (code, kind, code) and set(answer) == {"error", "report_version"}
    assert words in json.dumps(error) and said == plain.err


def test_all_mistakes_of_a_file_are_in_the_object(capsys: pytest.CaptureFixture[str]) -> None:
    _, answer, _ = answered(["optimize", "model.onnx", "-o", "out.onnx", "--target", "wrong.toml", "--json"], capsys)
    error = answer["error"]
    assert error["place"] == {"file": "wrong.toml", "line": 2, "column": 1} and error["help"] == "do you mean `title`?"
    assert [each["place"]["line"] for each in error["more"]] == [5] and "`onnx.Gelu`" in error["more"][0]["help"]


@pytest.mark.parametrize(
    ("raised", "kind", "code"),
    [
        (MemoryError(), "MemoryError", 2),
        (OSError(28, "No space left on device", "out.onnx"), "OSError", 2),
        (KeyboardInterrupt(), "Interrupted", 130),
        (click.Abort(), "Interrupted", 130),
        (CosetError("no"), "CosetError", 2),
    ],
)
def test_what_ends_a_command_from_outside_is_an_object(
    raised: BaseException, kind: str, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def ends(**_: Any) -> None:
        raise raised

    monkeypatch.setattr(cli.cli, "main", ends)
    found, answer, _ = answered(["optimize", "--json"], capsys)
    assert (found, answer["error"]["kind"], answer["error"]["exit_code"]) == (code, kind, code)


def test_a_mistake_of_ours_is_an_object(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def ends(_: list[str]) -> int:
        raise AssertionError("this cannot be")

    monkeypatch.setattr(cli, "run", ends)
    with pytest.raises(SystemExit) as ended:
        cli.main(["optimize", "--json"])
    printed = capsys.readouterr()
    assert ended.value.code == 3 and json.loads(printed.out)["error"]["kind"] == "InternalError" and "this cannot be" in printed.err


def test_a_refused_result_keeps_what_was_said_of_it(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def ends(**_: Any) -> None:
        raise Refused("it differs", rule="relu", check=CheckReport({}), help="leave it out")

    monkeypatch.setattr(cli.cli, "main", ends)
    code, answer, _ = answered(["lower", "--json"], capsys)
    assert code == 1 and (answer["refused"], answer["rule"], answer["help"]) == ("it differs", "relu", "leave it out")
    assert answer["error"]["kind"] == "Refused" and answer["error"]["exit_code"] == 1
