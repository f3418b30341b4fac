"""Drawn tests draw the same every time: nothing is random without a seed. And where Triton kernels run: see `--triton`."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from coset.backends import child
from coset.backends.triton_runtime import Compiler, OnDevice, Runner, TritonInterpreter
from coset.ir import stages
from coset.ir.program import Program
from coset.ir.verifier import VerificationError, is_foreign, verify_program
from coset.lowering.kernels.kernel import Plan
from coset.lowering.kernels.verifier import verify_plan
from coset.prove.contents import gives_dims
from coset.rules.defining import forget
from coset.rules.definition import DEFINED
from coset.rules.elaborated import comes_with_coset
from tests.torch_files import CHOICES, is_left_out, runs_packages
from tests.torch_processes import TorchServer, started_by

MISSING = "Triton is not installed (make gpu)"

settings.register_profile("fixed", derandomize=True, deadline=None)
settings.load_profile("fixed")


def pytest_collection() -> None:
    """Seventeen thousand tests are objects that stay: to look for garbage among them while they are made takes half of the time."""
    gc.disable()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Nor is it looked for among them later, when tests make garbage of their own."""
    gc.freeze()
    gc.enable()
    if session.config.getoption("--torch") == "none" and "torch" in sys.modules:
        raise pytest.UsageError("with --torch=none a test file has imported torch; see tests/torch_files.py")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Whether a file belongs to the other choice of `--torch`."""
    return is_left_out(collection_path, config.getoption("--torch")) or None


def pytest_sessionfinish() -> None:
    """What is left is freed as usual."""
    gc.unfreeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    where = "where kernels run: in Triton's interpreter, in the interpreter over torch's memory, on this machine's GPU"
    parser.addoption("--torch", default="all", choices=CHOICES, help="test files that load torch: all files, none of these, only these")
    parser.addoption("--triton", default="interpreter", choices=["interpreter", "cpu", "cuda"], help=where)


@pytest.fixture(autouse=True)
def no_definitions_left() -> Iterator[None]:
    """The ops that a test's own rule files define are gone behind it: the library is every op that is defined in the process."""
    before = set(DEFINED)
    yield
    for name in set(DEFINED) - before:
        if not comes_with_coset(DEFINED[name].directory):
            forget(DEFINED[name].op)


@pytest.fixture(autouse=True)
def stages_are_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    """What each stage of a compilation makes is well formed."""
    monkeypatch.setattr(stages, "WATCHERS", [verify_stage])


def verify_stage(stage: str, made: Any) -> None:
    """Refuse a malformed program or plan, and name the stage that made it."""
    try:
        if isinstance(made, Plan):
            verify_plan(made)
        if isinstance(made, Program):
            verify_program(made, gives_dims=lambda term: is_foreign(term) or gives_dims(term))
    except VerificationError as error:
        raise VerificationError(f"after {stage}: {error}") from None


@pytest.fixture(scope="session")
def torch_server() -> Iterator[TorchServer]:
    """The process that forks those which run packages."""
    server = TorchServer()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(child, "subprocess", started_by(server))
        yield server
    server.close()


@pytest.fixture(autouse=True)
def packages_have_torch(request: pytest.FixtureRequest) -> None:
    """Start the server before a test that runs packages: a process that the test forks cannot start it."""
    if runs_packages(request.path):
        request.getfixturevalue("torch_server").start()


@pytest.fixture
def own_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Packages are run by a Python of their own, as a user's are."""
    monkeypatch.setattr(child, "subprocess", subprocess)


@pytest.fixture(scope="session")
def interpreter(request: pytest.FixtureRequest) -> Iterator[Runner]:
    """A process that runs Triton kernels; where Triton is not installed, no test that asks for it runs."""
    pytest.importorskip("triton", reason=MISSING)
    place = request.config.getoption("--triton")
    with TritonInterpreter() if place == "interpreter" else OnDevice(place) as found:
        yield found


@pytest.fixture(scope="session")
def compiler() -> Iterator[Compiler]:
    """A process that compiles Triton kernels for devices that are not here; as `interpreter` without Triton."""
    pytest.importorskip("triton", reason=MISSING)
    with Compiler() as found:
        yield found


FEW = 20  # plans that are judged in a search, of the 200 that a user's job tries: whichever is chosen has to be right


@pytest.fixture
def few_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches for plans end early."""
    monkeypatch.setattr("coset.searching.planner.MOST", FEW)
