"""Drawn tests draw the same every time: nothing is random without a seed. And where Triton kernels run: see `--triton`."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

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

MISSING = "Triton is not installed (make gpu)"

settings.register_profile("fixed", derandomize=True, deadline=None)
settings.load_profile("fixed")


def pytest_collection() -> None:
    """Seventeen thousand tests are objects that stay: to look for garbage among them while they are made takes half of the time."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Nor is it looked for among them later, when tests make garbage of their own."""
    gc.freeze()
    gc.enable()


def pytest_sessionfinish() -> None:
    """What is left is freed as usual."""
    gc.unfreeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    where = "where kernels run: in Triton's interpreter, in the interpreter over torch's memory, on this machine's GPU"
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


@pytest.fixture(scope="module")
def interpreter(request: pytest.FixtureRequest) -> Iterator[Runner]:
    """A process that runs Triton kernels; where Triton is not installed, no test that asks for it runs."""
    pytest.importorskip("triton", reason=MISSING)
    place = request.config.getoption("--triton")
    with TritonInterpreter() if place == "interpreter" else OnDevice(place) as found:
        yield found


@pytest.fixture(scope="module")
def compiler() -> Iterator[Compiler]:
    """A process that compiles Triton kernels for devices that are not here; as `interpreter` without Triton."""
    pytest.importorskip("triton", reason=MISSING)
    with Compiler() as found:
        yield found
