"""What is made without a look for garbage is looked through later, and what was set apart before stays apart."""

from __future__ import annotations

import gc
import weakref

import pytest

from coset.ir.collector import no_collection


class _Ring:
    def __init__(self) -> None:
        self.itself = self


def test_what_was_made_is_old_and_its_garbage_is_still_found() -> None:
    before = gc.get_freeze_count()
    with no_collection():
        kept = [[number] for number in range(5_000)]
        lost = weakref.ref(_Ring())
        assert not gc.isenabled()
    assert gc.isenabled() and gc.get_freeze_count() == before
    assert gc.get_count()[0] < len(kept), "new objects are looked through at once"
    assert lost() is not None
    gc.collect()
    assert lost() is None


def test_what_is_set_apart_stays_apart() -> None:
    gc.freeze()
    try:
        with no_collection():
            made = [[number] for number in range(100)]
        assert gc.get_freeze_count() > len(made)
    finally:
        gc.unfreeze()


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
