"""Trees of dataclasses as plain lists that JSON holds, and back: what the caches of rule files are written in. Data only, no code."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from decimal import Decimal
from functools import lru_cache
from typing import Any

from coset.ir.op import Op, get_op
from coset.ir.place import Place
from coset.ir.types import DTYPES, DType

# what the first item of a list says; kinds follow from _FIRST
_TUPLE, _DECIMAL, _PLACE, _SET, _MAPPING, _DTYPE, _DTYPES, _OP, _FIRST = range(9)


class Codec:
    """A way to write values of `kinds` (frozen dataclasses) down, with tuples, sets, mappings, numbers, texts, element types, ops and
    places in them. Places are kept as numbers: path and source lines are those of the text at hand."""

    def __init__(self, kinds: Sequence[type[Any]]) -> None:
        self._kinds = tuple(kinds)
        self._number = {kind: number + _FIRST for number, kind in enumerate(kinds)}
        self._fields = {kind: tuple(field.name for field in fields(kind) if field.init) for kind in kinds}

    def encode(self, value: Any) -> Any:
        """`value` as nested lists.

        Raises:
            TypeError: something in it is of no kind that can be kept.
        """
        if value is None or isinstance(value, str | bool | int | float):
            return value
        if isinstance(value, tuple):
            return [_TUPLE, *map(self.encode, value)]
        if isinstance(value, Decimal):
            return [_DECIMAL, str(value)]
        if isinstance(value, Place):
            return [_PLACE, value.line, value.column, value.width] if value.line else [_PLACE]
        if isinstance(value, frozenset) and value and all(isinstance(each, DType) for each in value):
            return [_DTYPES, " ".join(sorted(each.name for each in value))]
        if isinstance(value, frozenset):
            return [_SET, *sorted(map(self.encode, value), key=str)]
        if isinstance(value, Mapping):
            return [_MAPPING, *(item for key, each in value.items() for item in (key, self.encode(each)))]
        if isinstance(value, DType):
            return [_DTYPE, value.name]
        if isinstance(value, Op):
            return [_OP, value.name]
        if type(value) not in self._number:
            raise TypeError(f"{type(value).__name__} cannot be kept")
        return [self._number[type(value)], *(self.encode(getattr(value, name)) for name in self._fields[type(value)])]

    def decoder(self, lines: Sequence[str], path: str) -> Callable[[Any], Any]:
        """What turns lists back into values whose places stand in the file `path` of these `lines`."""
        kinds = self._kinds

        def decode(value: Any) -> Any:
            if type(value) is not list:
                return value
            number = value[0]
            if number >= _FIRST:
                return kinds[number - _FIRST](*[decode(item) if type(item) is list else item for item in value[1:]])  # calls take time
            if number == _TUPLE:
                return tuple([decode(item) if type(item) is list else item for item in value[1:]])
            if number == _PLACE:
                if len(value) == 1:
                    return Place(path)
                _, line, column, width = value
                return Place(path, line, column, lines[line - 1], width)
            if number == _DTYPES:
                return _dtypes(value[1])
            if number == _OP:
                return get_op(value[1])
            if number == _DECIMAL:
                return Decimal(value[1])
            if number == _SET:
                return frozenset([decode(item) for item in value[1:]])
            if number == _MAPPING:
                return {value[i]: decode(value[i + 1]) for i in range(1, len(value), 2)}
            return DTYPES[value[1]]

        return decode


def compact(value: Any) -> str:
    """Nested lists as JSON without spaces."""
    return json.dumps(value, separators=(",", ":"))


@lru_cache(maxsize=256)
def _dtypes(names: str) -> frozenset[DType]:
    """A class of element types: nearly every rule has one of a few."""
    return frozenset(DTYPES[name] for name in names.split())
