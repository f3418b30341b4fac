"""The site builds with every link and anchor looked up, and its pages load nothing from other servers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOREIGN = r"""=["']?(?:https?:)?//"""
LOADED = re.compile(rf"<(?:script|img|iframe|source)\b[^>]*\bsrc{FOREIGN}|<link\b(?![^>]*canonical)[^>]*href{FOREIGN}")


def test_the_site_builds_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="pip install -e '.[docs]'")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr
    pages = sorted(tmp_path.rglob("*.html"))
    assert len(pages) > 100
    assert not [str(page) for page in pages if LOADED.search(page.read_text())]


def test_every_page_of_docs_is_in_the_navigation() -> None:
    """Decisions are listed on a page of their own."""
    navigation = re.findall(r": ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.M)
    assert {page.name for page in (ROOT / "docs").glob("*.md")} <= set(navigation)
