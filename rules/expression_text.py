"""Expressions of the index algebra as text, each in one way: what drafts are told apart by, and what messages say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from coset.rules.algebra import Call, Listing, Literal, MappedList, PayloadFunction, Ref, Scalar, Splice, TypeOf, Wild
from coset.rules.equation import TypePattern


def text(expression: Any) -> str:
    """The text of an expression, of a spliced list or of a declared type."""
    return _TEXTS[type(expression)](expression)


def _listed(items: tuple[Any, ...]) -> str:
    return ", ".join(map(text, items))


def _comprehension(each: MappedList) -> str:
    return f"[{text(each.item)} for {', '.join(each.names)} in {_listed(each.lists)} if {text(each.condition)}]"


_TEXTS: dict[type, Callable[[Any], str]] = {
    Literal: lambda each: f'"{each.value}"' if isinstance(each.value, str) else str(each.value),
    Ref: lambda each: str(each.name),
    Splice: lambda each: ".." if each.value is None else f"{text(each.value)}..",
    Listing: lambda each: f"[{_listed(each.items)}]",
    Call: lambda each: f"{each.function}({_listed(each.arguments)})",
    MappedList: _comprehension,
    Wild: lambda _: "_",
    TypeOf: lambda each: f"type({each.kind} {each.key})",
    Scalar: lambda each: f"scalar({text(each.value)}: {text(each.dtype)})",
    PayloadFunction: lambda each: str(each.written.text),
    TypePattern: lambda each: f"{text(each.dtype)}{text(each.dims)}",
}
