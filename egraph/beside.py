"""A thread beside the search's own, for Python's part of the work: egglog lets go of Python's lock while it works."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any, TypeVar

SWITCHED = 1e-4  # s between offers of Python's lock to the other thread: with Python's 5e-3 a call of egglog would wait that long for it

_Made = TypeVar("_Made")
_END = object()


@dataclass
class Beside:
    """One thread, which does one thing after the other."""

    pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1))
    hurried: bool = False  # what is only made ready has to stand back

    def prepare(self, steps: Iterable[Callable[[], Any]]) -> None:
        """Take `steps` that make later work shorter, as many as there is time for until something is wanted."""
        self.pool.submit(self._take, steps)

    def _take(self, steps: Iterable[Callable[[], Any]]) -> None:
        for step in steps:
            if self.hurried:
                return
            step()

    def made(self, items: Iterable[_Made]) -> Iterator[_Made]:
        """`items`, which the other thread makes while this one is busy with those before; what it raises is raised here."""
        queue: SimpleQueue[Any] = SimpleQueue()
        self.hurried = True
        done = self.pool.submit(self._make, items, queue)
        while (found := queue.get()) is not _END:
            yield found
        self.hurried = False
        done.result()

    @staticmethod
    def _make(items: Iterable[Any], queue: SimpleQueue[Any]) -> None:
        try:
            for item in items:
                queue.put(item)
        finally:
            queue.put(_END)
