"""Methods of dataclasses that are written when they are first called: a command loads 250 of them, whose 1,400 methods are texts that
Python compiles one by one, a quarter of the time of a start; most are never called.

Only for classes of this package, and only where `dataclasses` writes methods as it did until Python 3.12; elsewhere nothing is changed.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from typing import Any

PACKAGE = "coset"
MAKER = "_create_fn"  # the function of `dataclasses` that compiles one method
BEFORE = (3, 13)


def defer() -> None:
    """From now on methods of our dataclasses are written at their first call."""
    maker = getattr(dataclasses, MAKER, None)
    if sys.version_info < BEFORE and maker is not None and not hasattr(maker, "now"):
        setattr(dataclasses, MAKER, _later(maker))


def _later(now: Callable[..., Any]) -> Callable[..., Any]:
    """`now`, or what gives a method that is made by it at its first call, which takes the place of that in its class then."""

    def create(name: str, args: Any, body: Any, *, globals: Any = None, **more: Any) -> Any:
        if (globals or {}).get("__name__", "").partition(".")[0] != PACKAGE:
            return now(name, args, body, globals=globals, **more)
        made: list[Any] = []

        def method(self: Any, /, *given: Any, **named: Any) -> Any:
            if not made:
                made.append(now(name, args, body, globals=globals, **more))
                made[0].__qualname__ = method.__qualname__
                for owner in type(self).__mro__:
                    if owner.__dict__.get(name) is method:
                        setattr(owner, name, made[0])
            return made[0](self, *given, **named)

        method.__name__ = name
        return method

    create.now = now  # type: ignore[attr-defined]
    return create
