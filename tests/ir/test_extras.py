"""What a user is told to install is what the package names, and exists."""

from __future__ import annotations

import shlex
import tomllib
from pathlib import Path

import pytest

from coset.ir.extras import PACKAGES, install

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("extra", sorted(PACKAGES))
def test_the_packages_are_those_of_the_extra(extra: str) -> None:
    named = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert shlex.split(PACKAGES[extra]) == named[extra]
    assert install(extra).startswith(f"pip install {PACKAGES[extra]}")


def test_no_message_names_a_package_of_ours_that_no_index_has() -> None:
    folders = (
        "coset",
        "ir",
        "dialects",
        "frontends",
        "lowering",
        "backends",
        "egraph",
        "extract",
        "prove",
        "rules",
        "targets",
        "docs",
        "benchmarks",
    )
    files = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".md", ".rules", ".toml")]
    assert not [path for path in files if "coset[" in path.read_text() and "CHANGELOG" not in path.name]
