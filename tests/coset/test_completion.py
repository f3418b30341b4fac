"""`coset completion`: what a shell offers for a line that is not finished."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from coset.cli import run
from coset.rules.equation import NUMERICS_ORDER
from coset.targets.document import target_files

ROOT = Path(__file__).resolve().parents[2]
SHELLS = ("bash", "zsh", "fish")
FURTHER = {"egglog", "onnx", "onnxruntime", "torch", "lark", "z3", "pygls"}  # what no answer needs


@pytest.fixture
def coset(tmp_path: Path) -> dict[str, str]:
    """An environment in which `coset` is a command."""
    folder = tmp_path / "bin"
    folder.mkdir()
    command = folder / "coset"
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m coset.cli "$@"\n')
    command.chmod(0o755)
    return {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}


def offered(coset: dict[str, str], folder: Path, *words: str) -> list[str]:
    """What bash offers for the last word of a line."""
    line = " ".join(map(shlex.quote, words))
    script = f"""source <(coset completion bash)
    complete -p coset >&2
    COMP_WORDS=({line}) COMP_CWORD={len(words) - 1}
    _coset_completion coset
    printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "--norc", "-c", script], env=coset, cwd=folder, capture_output=True, text=True, check=True)
    assert "-F _coset_completion coset" in done.stderr
    return done.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
def test_bash_offers_commands_options_and_values(coset: dict[str, str], tmp_path: Path) -> None:
    for name in ("model.onnx", "module.mlir", "notes.txt", ".hidden.onnx", "mine.rules", "mine.toml"):
        (tmp_path / name).touch()
    (tmp_path / "deep" / "inside").mkdir(parents=True)
    (tmp_path / "deep" / "inside" / "other.onnx").touch()

    def offers(*words: str) -> list[str]:
        return offered(coset, tmp_path, "coset", *words)

    assert offers("lang") == ["language-server"]
    assert offers("optimize", "--numerics", "") == list(NUMERICS_ORDER)
    assert offers("lower", "m", "--target", "nvidia-") == [name for name in sorted(target_files()) if name.startswith("nvidia-")]
    assert offers("explain", "m", "--target", "m") == ["mine.toml"]
    assert offers("explain", "m", "--rule", "transpose_tr") == ["transpose_transpose"]
    assert "onnx.Gelu" in offers("optimize", "m", "--disable-rule", "onnx.Ge")
    assert offers("optimize", "mod") == ["model.onnx", "module.mlir"]
    assert offers("optimize", "de") == ["deep/inside/other.onnx"], "a single folder is looked into"
    assert set(offers("prove", "model.onnx", "")) == {"bin/", "deep/", "model.onnx", "module.mlir"}
    assert offers("check", "m") == ["mine.rules"]
    assert offers("optimize", "nothing/there") == []


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_of_each_shell_asks_coset(shell: str, coset: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert f"_COSET_COMPLETE={shell}_complete" in script and "_coset_completion" in script
    if shutil.which(shell) is not None:
        (tmp_path / "script").write_text(script)
        subprocess.run([shell, "-n", str(tmp_path / "script")], check=True)
    asked = {"COMP_WORDS": "coset explain m --target cpu-onnx", "COMP_CWORD": "cpu-onnx" if shell == "fish" else "4"}
    environment = {**coset, **asked, "_COSET_COMPLETE": f"{shell}_complete"}
    done = subprocess.run(["coset"], env=environment, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert "cpu-onnxruntime" in done.stdout


def test_an_answer_loads_no_library_and_imports_no_module_of_the_line(coset: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "loud.py").write_text("print('imported')\n")
    code = f"""
import sys
from coset.cli import main
try:
    main([])
finally:
    print(sorted({FURTHER!r} & set(sys.modules)), file=sys.stderr)
"""
    line = "coset optimize m.onnx --native loud --custom-op-library gone.so --target nvidia-h1"
    asked = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - 1), "_COSET_COMPLETE": "bash_complete"}
    environment = {**coset, **asked, "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0 and done.stdout.split() == ["plain,nvidia-h100"], done.stderr
    assert done.stderr.splitlines()[-1] == "[]"


def test_a_start_of_another_command_loads_nothing_for_shells_and_editors() -> None:
    code = (
        "import sys, coset.cli; print([name for name in sys.modules if name.startswith(('click.shell', 'coset.editor', 'coset.targets'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"
