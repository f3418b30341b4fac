"""Pages name what is there: files between backticks and the targets of links."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
HISTORY = {"CHANGELOG.md"}  # says what was called how at the time
MADE = {"build"}  # by commands
TOP = {path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith(".")} - MADE


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text())
    lost = [each for each in targets if "://" not in each and not each.startswith("mailto:") and not (page.parent / each).exists()]
    assert not lost


@pytest.mark.parametrize("page", [page for page in PAGES if page.name not in HISTORY], ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_are_named_are_there(page: Path) -> None:
    named = re.findall(r"`([\w./*-]+/[\w.*-]*)`", page.read_text())
    ours = [each for each in named if each.split("/")[0] in TOP and not re.search(r"[A-Z]{3,}", each)]
    assert not [each for each in ours if not list(ROOT.glob(each.rstrip("/")))]


@pytest.mark.parametrize("page", [page for page in PAGES if page.name not in HISTORY], ids=lambda page: str(page.relative_to(ROOT)))
def test_scripts_that_are_named_are_there(page: Path) -> None:
    named = re.findall(r"python -m (benchmarks|tests|coset)\.([\w.]+)", page.read_text())
    lost = [f"{package}.{name}" for package, name in named if not (ROOT / package / f"{name.replace('.', '/')}.py").exists()]
    assert not lost


def test_files_that_the_makefile_names_are_there() -> None:
    named = re.findall(r"(?<![\w/.$)])(?:tests|examples|\.ci)/[\w./]+", (ROOT / "Makefile").read_text())
    assert len(named) > 10 and not [each for each in named if not (ROOT / each).exists()]
