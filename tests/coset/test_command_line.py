"""What the command line does with places and streams that are not as usual: it says so, and no file is lost."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from onnx import parser

from coset.cli import run

ROOT = Path(__file__).parents[2]
TEXT = '<ir_version: 8, opset_import: ["" : 17]> g (float[2,3] x) => (float[2,3] y) { a = Relu(x) y = Relu(a) }'
MINE = 'use stablehlo\n\nrule twice\n  "A sum."\n  for x: F[S..]\n  x + x => splat(2) * x\n  numerics reassociates\n'


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "in.onnx"
    onnx.save(parser.parse_model(TEXT), path)
    return path


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["-o", "out.json", "--report", "out.json"], "the report would be written over the result"),
        (["-o", "out.onnx", "--report", "in.json"], "the report would be written over what is read"),
        (["-o", "out.onnx", "--certificate", "./out.onnx"], "the certificate would be written over the result"),
        (["-o", "out.onnx", "--extraction-problem", "in.json"], "the extraction problem would be written over what is read"),
        (["-o", "mine.rules", "--rules", "mine.rules"], "the result would be written over what is read"),
    ],
)
def test_no_file_that_is_written_takes_the_place_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], model: Path, options: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    model.rename("in.json")
    Path("mine.rules").write_text(MINE)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert run(["optimize", "in.json", *options]) == 2
    assert said in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_proof_and_a_page_are_written_over_no_model(tmp_path: Path, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other.onnx"
    other.write_bytes(model.read_bytes())
    for command in (["prove", str(model), str(other), "--certificate", str(other)], ["diff", str(model), str(other), "--html", str(model)]):
        assert run(command) == 2
        assert "would be written over what is read" in capsys.readouterr().err
    assert other.read_bytes() == model.read_bytes()


def test_the_result_may_take_the_place_of_the_model(model: Path) -> None:
    assert run(["optimize", str(model), "-o", str(model)]) == 0
    assert len(onnx.load(model).graph.node) == 1


def test_brackets_in_a_name_are_no_markup(tmp_path: Path, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "out [bold].onnx"
    assert run(["optimize", str(model), "-o", str(output)]) == 0
    assert f"written    {output}" in capsys.readouterr().out


def test_a_path_that_is_no_text_is_named_as_the_mistake(tmp_path: Path, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    odd = tmp_path / os.fsdecode(b"\xff.onnx")
    odd.write_bytes(model.read_bytes())
    assert run(["optimize", str(odd), "-o", str(tmp_path / "out.onnx")]) == 2
    assert "opens no path that is not UTF-8" in capsys.readouterr().err


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_stop_nothing(tmp_path: Path, model: Path, closed: str) -> None:
    """With stdout closed the command failed while it was loaded, and a file that is opened later would have got its number."""
    output = tmp_path / "out.onnx"
    command = f'"$0" -m coset.cli optimize "$1" -o "$2" {closed}'
    ended = subprocess.run(["sh", "-c", command, sys.executable, str(model), str(output)], cwd=ROOT, env=os.environ, check=False)
    assert ended.returncode == 0
    onnx.checker.check_model(onnx.load(output), full_check=True)


def test_a_name_that_the_terminal_cannot_show_is_no_failure(tmp_path: Path, model: Path) -> None:
    output = tmp_path / "größe.onnx"
    command = [sys.executable, "-m", "coset.cli", "optimize", str(model), "-o", str(output)]
    ended = subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONIOENCODING": "ascii"}, check=False, capture_output=True, text=True)
    assert (ended.returncode, "gr\\xf6\\xdfe.onnx" in ended.stdout) == (0, True)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("ort.Attention", "the definition of `ort.Attention` is only expanded: no rule looks for it in programs"),
        ("ort.Nothing", "there is no rule, and no op with a definition, called `ort.Nothing`"),
    ],
)
def test_a_definition_that_is_not_looked_for_is_none_that_is_missing(
    model: Path, capsys: pytest.CaptureFixture[str], name: str, said: str
) -> None:
    assert run(["explain", str(model), "--rule", name]) == 2
    assert said in capsys.readouterr().err


def test_free_dims_are_asked_for_only_where_there_are_some(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for shape, asked in (("2,3", False), ("2,N", True)):
        text = f"(float[{shape}] x) => (float[5,7] y) <int64[2] to = {{5, 7}}> {{ y = Reshape(x, to) }}"
        path = tmp_path / "wrong.onnx"
        onnx.save(parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g {text}'), path)
        assert run(["optimize", str(path), "-o", str(tmp_path / "out.onnx")]) == 2
        assert ("--dim NAME=N" in capsys.readouterr().err) is asked


def test_a_symbolic_link_stays_one_and_the_model_behind_it_is_written(tmp_path: Path, model: Path) -> None:
    real, link = tmp_path / "real.onnx", tmp_path / "link.onnx"
    link.symlink_to(real)
    assert run(["optimize", str(model), "-o", str(link)]) == 0
    assert link.is_symlink() and onnx.load(real).graph.node


def test_links_without_an_end_are_told(tmp_path: Path, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.onnx").symlink_to(tmp_path / "b.onnx")
    (tmp_path / "b.onnx").symlink_to(tmp_path / "a.onnx")
    assert run(["optimize", str(model), "-o", str(tmp_path / "a.onnx")]) == 2
    assert "symbolic link without an end" in capsys.readouterr().err


def test_that_the_result_takes_the_place_of_the_model_is_said(tmp_path: Path, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(model.read_bytes())
    assert run(["optimize", str(path), "-o", str(path)]) == 0
    assert f"warning: the result takes the place of {path}" in capsys.readouterr().err


def test_a_command_that_ends_has_written_all_and_runs_what_waits_for_its_end(tmp_path: Path) -> None:
    """Nothing is freed one by one at the end; what was registered for it is done all the same."""
    code = "import atexit, sys; atexit.register(print, 'the end'); sys.argv[1:] = {}; from coset.cli import main; main()"
    for arguments, expected in ((["targets", "--json"], 0), (["optimize", str(tmp_path / "none"), "-o", str(tmp_path / "out")], 2)):
        ended = subprocess.run([sys.executable, "-c", code.format(arguments)], cwd=ROOT, capture_output=True, text=True)
        assert ended.returncode == expected and ended.stdout.endswith("the end\n"), ended.stderr
    full = Path("/dev/full")
    if full.exists():
        with full.open("w") as nowhere:
            ended = subprocess.run(
                [sys.executable, "-c", code.format(["targets"])], cwd=ROOT, stdout=nowhere, stderr=subprocess.PIPE, text=True
            )
        assert ended.returncode and "No space left" in ended.stderr


def test_products_of_constants_have_the_same_bits_on_any_number_of_processors() -> None:
    """More threads sum in another order, and wait for each other in loops."""
    code = (
        "import os, sys; from coset import cli; "
        "cli.run = lambda _: print(os.environ['OPENBLAS_NUM_THREADS'], 'numpy' in sys.modules) or 0; cli.main([])"
    )
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    for given, said in (({}, "1 False\n"), ({"OPENBLAS_NUM_THREADS": "3"}, "3 False\n")):
        found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env={**environment, **given}, capture_output=True, text=True)
        assert found.stdout == said, found.stderr
