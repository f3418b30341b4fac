"""The blocks of a page run in order, in one empty folder: files are written, commands and Python run, what is said to be printed was."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
BLOCK = re.compile(r"```(\w+) ?([^\n]*)\n(.*?)```", re.S)
FILES = ("rules", "toml", "csv")
"""Kinds of blocks that are files, whose name stands behind the kind."""


def run_page(name: str, folder: Path, *, python: str = sys.executable) -> Counter[str]:
    """Run docs/`name` in `folder` by an interpreter that has coset; how many blocks of each kind it has."""
    printed = ""
    kinds: Counter[str] = Counter()
    for kind, argument, body in BLOCK.findall((DOCS / name).read_text()):
        kinds[kind] += 1
        if kind in FILES:
            (folder / argument).write_text(body)
        elif kind == "python":
            done = _run([python, "-c", body], folder)
            assert done.returncode == 0, done.stderr
        elif kind == "sh":
            program, *arguments = shlex.split(body)
            assert program == "coset"
            done = _run([python, "-m", "coset.cli", *arguments], folder)
            printed = done.stdout + done.stderr
            assert (done.returncode != 0) == (argument == "fails"), printed
        else:
            assert kind == "prints"
            for line in body.splitlines():
                assert line in printed, printed
    return kinds


def _run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
