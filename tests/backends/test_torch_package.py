"""The process that a package runs in."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from coset.backends.child import Child
from coset.backends.torch_package import TorchPackage

ROOT = Path(__file__).resolve().parents[2]


def test_what_is_found_by_a_path_of_the_user_is_found_there_too_but_coset_is_not(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: dict[str, str] = {}
    monkeypatch.setattr(Child, "__init__", lambda _self, _arguments, environment: seen.update(environment))
    (tmp_path / "manifest.json").write_text('{"inputs": [], "outputs": []}')
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(elsewhere), ""]))
    TorchPackage(tmp_path)
    assert seen["PYTHONPATH"] == str(elsewhere)
    monkeypatch.delenv("PYTHONPATH")
    TorchPackage(tmp_path)
    assert seen["PYTHONPATH"] == ""
