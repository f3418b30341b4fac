"""The process that a package runs in."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from coset.backends.child import Child
from coset.backends.torch_package import TorchPackage
from coset.ir.errors import CosetError

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


PACKAGES = {
    "adds one": "model = Model()",
    "is not loaded": "raise ValueError('no model here')",
    "dies": "import os, signal\nModel.forward = lambda self, x: os.kill(os.getpid(), signal.SIGSEGV)\nmodel = Model()",
    "ends": "import sys\nsys.exit(7)",
    "asks for another package": "import a_package_that_nobody_has",
    "refuses": "def no(self, x): raise RuntimeError('not this one')\nModel.forward = no\nmodel = Model()",
}
MODEL = "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x): return x + 1\n"


@pytest.mark.parametrize("name", PACKAGES)
def test_a_process_that_tests_fork_answers_as_a_python_of_its_own(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Nearly all tests run packages in processes that `tests/torch_server.py` forks."""
    pytest.importorskip("torch")
    one = {"name": "x", "dtype": "f32", "stored": "float32", "shape": [2]}
    (tmp_path / "manifest.json").write_text(json.dumps({"inputs": [one], "outputs": [{**one, "name": "y"}]}))
    (tmp_path / "__init__.py").write_text(MODEL + PACKAGES[name])

    def said() -> object:
        with TorchPackage(tmp_path) as package:
            try:
                return [package.run({"x": np.array([1, number], np.float32)})["y"].tolist() for number in (2, 3)]
            except CosetError as error:
                return type(error), error.message

    forked = said()
    request.getfixturevalue("own_python")
    assert said() == forked
    assert name != "adds one" or forked == [[2.0, 3.0], [2.0, 4.0]]
