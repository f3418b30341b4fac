"""The test files that a change may break: those whose imports reach a file that differs from another commit.

    python -m tests.near [COMMIT] | xargs python -m pytest

Imports inside functions count. A folder whose files register things (dialects) is reached as a whole by who imports it. Rule files, targets
and other data are read by many tests: a change of such a file gives all test files. Data below a folder of tests/ gives the tests there.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from tests.test_house import LAYERS

ROOT = Path(__file__).resolve().parents[1]
ALWAYS = ("tests/test_house.py", "tests/test_workplace.py")  # which look at every file


def changed(commit: str) -> list[str]:
    """The files that differ from `commit`, those that git does not know yet too."""
    run = ["git", "-C", str(ROOT)]
    known = subprocess.run([*run, "diff", "--name-only", commit], capture_output=True, text=True, check=True).stdout
    new = subprocess.run([*run, "ls-files", "--others", "--exclude-standard"], capture_output=True, text=True, check=True).stdout
    return sorted({*known.split(), *new.split()})


def reached(files: Sequence[str]) -> list[str]:
    """The test files to run where these files differ; all where no import leads to one of them."""
    tests = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py"))
    data = [name for name in files if not name.endswith((".py", ".md"))]
    if any(name.split("/")[0] in (*LAYERS, "coset", "pyproject.toml", ".ci") for name in data) or "tests/conftest.py" in files:
        return tests
    wanted = {name for name in files if name.endswith(".py")}
    folders = {"/".join(name.split("/")[:2]) + "/" for name in data if name.startswith("tests/")}
    folders |= {"tests/docs/" for name in files if name.endswith(".md")}
    return [test for test in tests if _closure(test) & wanted or test.startswith(tuple(folders)) or test in ALWAYS]


@cache
def _closure(name: str) -> frozenset[str]:
    """All files that a file imports, at any distance, and itself."""
    found, waiting = {name}, [name]
    while waiting:
        for other in _imported(waiting.pop()):
            if other not in found:
                found.add(other)
                waiting.append(other)
    return frozenset(found)


@cache
def _imported(name: str) -> tuple[str, ...]:
    modules: list[str] = []
    for node in ast.walk(ast.parse((ROOT / name).read_text())):
        if isinstance(node, ast.Import):
            modules += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    found = dict.fromkeys(file for module in modules for file in _files(module))
    beside = ((Path(name).parent / f"{module}.py") for module in modules if "." not in module)  # pytest has a test's own folder in its path
    return (*found, *(str(path) for path in beside if name.startswith("tests/") and (ROOT / path).is_file()))


@cache
def _files(module: str) -> tuple[str, ...]:
    """The files of a module of ours; of a package that imports what its folder holds, all of these."""
    parts = module.split(".")
    if parts[0] not in ("coset", "tests", "benchmarks", "examples"):
        return ()
    if parts[0] == "coset" and len(parts) > 1 and parts[1] in LAYERS:
        parts = parts[1:]
    path = ROOT.joinpath(*parts)
    if path.with_suffix(".py").is_file():
        return (str(path.with_suffix(".py").relative_to(ROOT)),)
    own = path / "__init__.py"
    if not own.is_file():
        return ()
    inside: Iterable[Path] = path.rglob("*.py") if "walk_packages" in own.read_text() else (own,)
    return tuple(sorted(str(file.relative_to(ROOT)) for file in inside))


if __name__ == "__main__":
    print("\n".join(reached(changed(sys.argv[1] if len(sys.argv) > 1 else "HEAD"))))
