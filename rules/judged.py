"""Facts about payload functions that a proof decides: the language has their names, `prove/` answers.

Three values, as everywhere: what could not be shown is unknown, and a rule that asks for it does not fire.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from coset.ir.term import Region
from coset.rules.arithmetic import Undecided
from coset.rules.scalar import Undefined

Judge = Callable[[Region, Sequence[Any], str], bool | None]  # (function, further arguments, promise): None where nothing was shown
JUDGED = ("associative", "commutative", "neutral")
_JUDGES: dict[str, Judge] = {}
_PROVIDERS: list[Callable[[], object]] = []


def judge(name: str, decide: Judge) -> None:
    """Let `decide` answer the question `name` about functions."""
    assert name in JUDGED and name not in _JUDGES, f"{name} is no open question"
    _JUDGES[name] = decide


def provide(load: Callable[[], object]) -> None:
    """Let `load` bring the judges when the first question comes: a prover takes time to load, and few searches ask."""
    _PROVIDERS.append(load)


def judged(name: str, arguments: Sequence[Any], promise: str) -> bool:
    """Whether `name` holds of the function that comes first among `arguments`, as far as a rule of this promise needs it.

    Raises:
        Undefined: what comes first is no function.
        Undecided: it is not known.
    """
    region, *further = arguments
    if not isinstance(region, Region):
        raise Undefined
    while name not in _JUDGES and _PROVIDERS:
        _PROVIDERS.pop()()
    found = _JUDGES[name](region, further, promise) if name in _JUDGES else None
    if found is None:
        raise Undecided
    return found
