"""What counts an evaluation: it is told of each term before this is computed, and may refuse."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

from coset.ir.term import Term

METER: ContextVar[Callable[[Term | None, Sequence[Any]], None] | None] = ContextVar("meter", default=None)
"""Is given a term with its operands' values, those inside functions too, and (None) the arguments of each call of a function."""
