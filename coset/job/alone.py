"""Jobs of one process run one after the other, whatever threads ask for them.

Ops, definitions and parsed rules are loaded when they are first needed, terms are shared, and a job forks processes, which a thread that is
at work on any of this would leave with half of it. Who wants several jobs at once starts several processes.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_locks = [threading.RLock()]  # the one that counts is the last


def alone(job: Callable[P, T]) -> Callable[P, T]:
    """`job`, which waits until no other thread is in a job; a job may call others."""

    @wraps(job)
    def waiting(*args: P.args, **kwargs: P.kwargs) -> T:
        with _locks[-1]:
            return job(*args, **kwargs)

    return waiting


def _forked() -> None:
    """Of the threads only the one that forked is left, so nobody would give back what another held."""
    _locks[:] = [threading.RLock()]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
