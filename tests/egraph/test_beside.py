"""The thread beside a search's own: order, errors, and what it leaves for later."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from coset.egraph.beside import Beside


def test_items_come_in_order_and_are_made_in_one_other_thread() -> None:
    threads = set()

    def items() -> Iterator[int]:
        for number in range(1000):
            threads.add(threading.get_ident())
            yield number

    beside = Beside()
    assert list(beside.made(items())) == list(range(1000))
    assert list(beside.made(items())) == list(range(1000))
    assert len(threads) == 1 and threading.get_ident() not in threads


def test_an_error_comes_after_the_items_before_it() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise MemoryError("full")

    found = []
    with pytest.raises(MemoryError, match="full"):
        for item in Beside().made(items()):
            found.append(item)
    assert found == [1]


def test_what_is_only_made_ready_stands_back_when_something_is_wanted() -> None:
    began, may_go_on = threading.Event(), threading.Event()
    taken = []

    def first() -> None:
        began.set()
        may_go_on.wait()
        taken.append("first")

    beside = Beside()
    beside.prepare([first, lambda: taken.append("second")])
    began.wait()
    wanted = beside.made(iter([1]))
    threading.Thread(target=lambda: (_until_hurried(beside), may_go_on.set())).start()
    assert list(wanted) == [1]
    assert taken == ["first"]
    beside.prepare([lambda: taken.append("third")])
    assert list(beside.made(iter([2]))) == [2]


def _until_hurried(beside: Beside) -> None:
    while not beside.hurried:
        pass
