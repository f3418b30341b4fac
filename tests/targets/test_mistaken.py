"""Wrong files of targets, as people write them: all mistakes are said at once, each with its line, its cause and its remedy.

A file of `mistaken/` says behind each wrong line, as a comment, `wrong: CAUSE | REMEDY`; lines that begin with `# mended:` take the place
of the wrong line before them.
"""

from __future__ import annotations

import re
from pathlib import Path

import onnx
import pytest

import coset.dialects
from coset.cli import run
from coset.ir.errors import CosetError
from coset.ir.op import get_op
from coset.ir.problems import FileProblem, WrongFile
from coset.rules.defining import forget
from coset.targets import target as registry
from coset.targets.ops import check_ops
from coset.targets.target import get_target

assert coset.dialects
FILES = sorted((Path(__file__).parent / "mistaken").glob("*.toml"))
WRONG = re.compile(r" # wrong: (?P<cause>.*) \| (?P<remedy>.*)$")
MENDED = re.compile(r"\s*# mended: ?(?P<line>.*)$")


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test reads is known to no other."""
    monkeypatch.setattr(registry, "_REGISTRY", dict(registry._REGISTRY))


def expected(text: str) -> list[tuple[int, str, str]]:
    """Line, cause and remedy of each mistake."""
    found = ((number, WRONG.search(line)) for number, line in enumerate(text.splitlines(), 1))
    return [(number, match["cause"], match["remedy"]) for number, match in found if match]


def mended(text: str) -> str:
    """The file with the mended lines in place of the wrong ones."""
    lines: list[str] = []
    for line in text.splitlines():
        if match := MENDED.match(line):
            lines.append(match["line"])
        elif not WRONG.search(line):
            lines.append(line)
    return "\n".join(lines) + "\n"


def mistakes(path: Path) -> list[FileProblem]:
    """What is said of the file at `path`."""
    try:
        check_ops(get_target(path))
    except CosetError as error:
        assert error.place is not None
        return [FileProblem(error.message, error.place, error.help), *(error.others if isinstance(error, WrongFile) else ())]
    return []


def test_there_are_twenty() -> None:
    assert len(FILES) >= 20


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_each_mistake_has_line_cause_and_remedy(file: Path, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(file.read_text())
    told = mistakes(path)
    assert [problem.place.line for problem in told] == [line for line, _, _ in expected(file.read_text())], told
    for problem, (_, cause, remedy) in zip(told, expected(file.read_text()), strict=True):
        assert cause in problem.message and remedy in problem.help and problem.place.file == str(path)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_mended_file_is_accepted(file: Path, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(mended(file.read_text()))
    assert mistakes(path) == []


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_command_says_all_and_ends_with_2(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x, y = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [4]) for name in "xy")
    graph = onnx.helper.make_graph([onnx.helper.make_node("Tanh", ["x"], ["y"])], "test", [x], [y])
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)], ir_version=9), tmp_path / "model.onnx")
    path = tmp_path / "mine.toml"
    path.write_text(file.read_text())
    assert run(["optimize", str(tmp_path / "model.onnx"), "--target", str(path), "-o", str(tmp_path / "out.onnx")]) == 2
    said = capsys.readouterr().err
    for line, cause, remedy in expected(file.read_text()):
        assert f"--> {path}:{line}:" in said and cause in said and remedy in said
    assert said.count("error: ") == len(expected(file.read_text()))


def test_the_command_checks_files_without_a_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.toml"
    text = next(file for file in FILES if file.stem == "a_hurry").read_text()
    path.write_text(text)
    assert run(["targets", str(path)]) == 2
    said = capsys.readouterr().err
    assert all(f":{line}:" in said and remedy in said for line, _, remedy in expected(text))
    path.write_text(mended(text))
    assert run(["targets", str(path)]) == 0
    listed = capsys.readouterr().out
    assert "mine" in listed and "a machine in a hurry" in listed and "another name" not in listed
    assert run(["targets", str(path), "--docs", str(tmp_path)]) == 2


def test_a_file_may_speak_of_ops_of_own_rules(tmp_path: Path) -> None:
    """Only where these are given."""
    path, rules = tmp_path / "mine.toml", tmp_path / "mine.rules"
    path.write_text('base = "cpu-onnxruntime"\ntitle = "mine"\n\n[legal]\nforms = [{ ops = "minetoo.twice", kernel = "add" }]\n')
    rules.write_text("use stablehlo, minetoo\n\nop minetoo.twice(x: F[S..], F: float) -> F[S..]\n"
                     '  "A tensor and itself."\n  means x + x\n  numerics exact\n')  # fmt: skip
    assert run(["targets", str(path)]) == 2
    try:
        assert run(["targets", str(path), "--rules", str(rules)]) == 0
    finally:
        forget(get_op("minetoo.twice"))
