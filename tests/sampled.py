"""Parameters of a test of which some alone run in the fast suite."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def sampled(values: Iterable[Any], each: int = 3) -> list[Any]:
    """Every value as a parameter; all but each third (or `each`-th), the first one among them, are left to the slow tests."""
    return [pytest.param(*_several(value), marks=pytest.mark.slow if place % each else ()) for place, value in enumerate(values)]


def _several(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)
