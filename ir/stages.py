"""Where a compilation passes from one stage to the next: whoever wants to look at what a stage made says so here.

Nobody looks in a user's run. The tests check there what each stage made (`tests/conftest.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")
WATCHERS: list[Callable[[str, Any], None]] = []
"""Each is called with the name of a stage and with what it made, a program or a plan of kernels."""


def passed(stage: str, made: T) -> T:
    """What a stage made, after all that watch have seen it."""
    for watch in WATCHERS:
        watch(stage, made)
    return made
