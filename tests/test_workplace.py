"""What people work with names files, commands and fixtures that exist: `tests/README.md`, hooks, forms of issues, the container, `make`."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from coset.cli import cli
from tests import conftest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "tests" / "README.md").read_text()
HOOKS = (ROOT / ".pre-commit-config.yaml").read_text()
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
MAKEFILE = (ROOT / "Makefile").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
TARGETS = set(re.findall(r"^([a-z]+):", MAKEFILE, flags=re.MULTILINE))
CONTAINER = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
PAGES = {"tests/README.md": README, ".devcontainer": CONTAINER["postCreateCommand"], "Makefile": MAKEFILE} | {
    form.name: form.read_text() for form in FORMS
}


def _paths(text: str) -> list[str]:
    """The files and folders that a text names by their path from the root."""
    found = re.findall(r"(?<![\w./])((?:tests|docs|benchmarks|rules|examples|\.ci)/[\w./-]*\w/?)(?![\w<*/])", text)
    return [path for path in found if "<" not in path]


@pytest.mark.parametrize("page", PAGES)
def test_files_that_are_named_exist(page: str) -> None:
    missing = [path for path in _paths(PAGES[page]) if not (ROOT / path).exists()]
    assert not missing, f"{page} names {missing}"


def test_paths_are_found_in_a_text() -> None:
    assert _paths("see `tests/near.py`, tests/ir/ and docs/gone.md") == ["tests/near.py", "tests/ir/", "docs/gone.md"]
    assert len(_paths(README)) > 20 and len(_paths(PAGES["rule.yml"])) == 1


@pytest.mark.parametrize("page", PAGES)
def test_targets_of_make_exist(page: str) -> None:
    assert set(re.findall(r"(?:`|^|&& )make ([a-z]+)", PAGES[page])) <= TARGETS


def test_the_readme_lists_each_folder_and_each_fixture() -> None:
    folders = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders <= set(re.findall(r"`tests/(\w+)/`", README))
    fixtures = {name for name, value in vars(conftest).items() if type(value).__name__ == "FixtureFunctionDefinition"}
    listed = set(re.findall(r"^\| `(\w+)` \|", README, flags=re.MULTILINE))
    assert len(fixtures) > 4 and listed <= fixtures and fixtures - listed <= {"packages_have_torch"}


def test_hooks_run_what_the_project_installs() -> None:
    installed = {
        *PROJECT["project"]["scripts"],
        *(re.match(r"\w+", each)[0] for each in PROJECT["project"]["optional-dependencies"]["dev"]),
    }
    entries = re.findall(r"entry: [.]venv/bin/([\w-]+)", HOOKS)
    assert len(entries) == 4 == HOOKS.count("language: system") and set(entries) <= installed
    (pattern,) = re.findall(r"files: (.*)", HOOKS)
    kept = [str(path.relative_to(ROOT)) for folder in ("rules", "dialects", "tests") for path in (ROOT / folder).rglob("*.rules")]
    hit = {path.split("/")[0] for path in kept if re.search(pattern, path)}
    assert hit == {"rules", "dialects"}, "rules that tests mean to be false are not checked"


@pytest.mark.parametrize("form", FORMS, ids=lambda path: path.stem)
def test_a_form_names_commands_that_there_are(form: Path) -> None:
    text = form.read_text()
    assert all(re.search(rf"^{key}:", text, flags=re.MULTILINE) for key in ("name", "description", "labels", "body"))
    assert set(re.findall(r"`coset (\w+)", text)) <= set(cli.commands)


def test_there_is_a_form_for_each_kind_of_issue() -> None:
    assert [form.stem for form in FORMS] == ["refused-model", "rule", "slow", "wrong-result"]


def test_make_help_says_each_target() -> None:
    said = subprocess.run(["make", "--no-print-directory", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert {line.split()[0] for line in said.splitlines()} == TARGETS
