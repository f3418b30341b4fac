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
JUDGES: dict[str, Judge] = {}
PROVIDERS: list[Callable[[], object]] = []


def judged(name: str, arguments: Sequence[Any], promise: str) -> bool:
    """Whether `name` holds of the function that comes first among `arguments`, as far as a rule of this promise needs it.

    Raises:
        Undefined: what comes first is no function.
        Undecided: it is not known.
    """
    region, *further = arguments
    if not isinstance(region, Region):
        raise Undefined
    while name not in JUDGES and PROVIDERS:
        PROVIDERS.pop()()
    found = JUDGES[name](region, further, promise) if name in JUDGES else None
    if found is None:
        raise Undecided
    return found
