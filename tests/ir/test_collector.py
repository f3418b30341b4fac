"""What is made without a look for garbage is looked through later, and what was set apart before stays apart."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from coset.ir import collector
from coset.ir.collector import no_collection
from coset.ir.judging import judged


@pytest.fixture
def nothing_apart(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing is set apart in the test: `conftest.py` sets apart what the suite is made of."""
    monkeypatch.setattr(collector, "_seen", [])
    gc.unfreeze()
    yield
    gc.freeze()


class _Ring:
    def __init__(self) -> None:
        self.itself = self


@pytest.mark.usefixtures("nothing_apart")
def test_what_was_made_is_old_and_its_garbage_is_still_found() -> None:
    with no_collection():
        kept = [[number] for number in range(5_000)]
        lost = weakref.ref(_Ring())
        assert not gc.isenabled()
    assert gc.isenabled() and gc.get_freeze_count() == 0
    assert gc.get_count()[0] < len(kept), "new objects are looked through at once"
    assert lost() is not None
    gc.collect()
    assert lost() is None


@pytest.mark.usefixtures("nothing_apart")
def test_what_is_set_apart_stays_apart() -> None:
    gc.freeze()
    with no_collection():
        made = [[number] for number in range(100)]
    assert gc.get_freeze_count() > len(made)
    before = gc.get_freeze_count()
    assert judged(["a"], str.upper, lambda name, _: name, seconds=None, workers=1) == {"a": "A"}
    assert gc.get_freeze_count() >= before - len(made)


@pytest.mark.usefixtures("nothing_apart")
def test_what_is_set_apart_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """To count ten million objects takes 0.2 s, and each job would do so twice."""
    gc.freeze()
    counted = []
    real = gc.get_freeze_count
    monkeypatch.setattr(gc, "get_freeze_count", lambda: counted.append(real()) or counted[-1])
    for _ in range(3):
        with no_collection():
            pass
    assert len(counted) == 1


@pytest.mark.parametrize("collecting", [True, False])
def test_the_state_before_is_the_state_after(collecting: bool) -> None:
    if not collecting:
        gc.disable()
    try:
        with no_collection(), no_collection():
            pass
        assert gc.isenabled() == collecting
    finally:
        gc.enable()
