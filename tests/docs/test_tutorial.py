"""Every block of docs/tutorial.md runs, in order, in one empty folder."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tutorial.md"
BLOCK = re.compile(r"```(\w+) ?([^\n]*)\n(.*?)```", re.S)


def _run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)


@pytest.mark.slow
def test_the_tutorial_runs(tmp_path: Path) -> None:
    printed = ""
    kinds = []
    for kind, argument, body in BLOCK.findall(PAGE.read_text()):
        kinds.append(kind)
        if kind == "rules":
            (tmp_path / argument).write_text(body)
        elif kind == "python":
            done = _run([sys.executable, "-c", body], tmp_path)
            assert done.returncode == 0, done.stderr
        elif kind == "sh":
            program, *arguments = shlex.split(body)
            assert program == "coset"
            done = _run([sys.executable, "-m", "coset.cli", *arguments], tmp_path)
            printed = done.stdout
            assert (done.returncode != 0) == (argument == "fails"), done.stdout + done.stderr
        else:
            assert kind == "prints"
            for line in body.splitlines():
                assert line in printed, printed
    assert kinds.count("sh") == 3 and kinds.count("rules") == 2
