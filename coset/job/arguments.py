"""Arguments of the public functions: one of another type is told by its name."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any


def required(name: str, value: Any, *types: type, says: str | None = None) -> None:
    """Nothing for a value of one of the types; `says` is what they are called together.

    Raises:
        TypeError: the value has another type.
    """
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        wanted = says or " or ".join(each.__name__ for each in types)
        raise TypeError(f"`{name}` must be {wanted}, not {type(value).__name__}")


def listed(**given: Any) -> None:
    """Nothing where each value is a list or a tuple: a text would be taken for a list of its letters.

    Raises:
        TypeError: as `required`.
    """
    for name, value in given.items():
        required(name, value, list, tuple, says="a list")


def numbered(name: str, given: Mapping[str, Any] | None) -> dict[str, int]:
    """Whole numbers by name, of any type that is one.

    Raises:
        TypeError: it is no mapping, or a value is no whole number.
    """
    typed(**{name: (given, Mapping)})
    found = {}
    for key, value in (given or {}).items():
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise TypeError(f"`{name}[{key!r}]` must be a whole number, not {type(value).__name__}")
        found[key] = operator.index(value)
    return found


def typed(**given: tuple[Any, ...]) -> None:
    """Nothing where each value, the first of its tuple, has one of the types behind it; None may stand for any that is not `bool`.

    Raises:
        TypeError: as `required`.
    """
    for name, (value, *types) in given.items():
        if value is not None or bool in types:
            required(name, value, *types)
