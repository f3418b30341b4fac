"""Attributes and functions of a term beside those that a pattern names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from coset.ir.op import Op
from coset.ir.term import Term
from coset.prove.second import syntax as l
from coset.prove.second.answer import CannotSay
from coset.prove.second.scope import Found
from coset.prove.second.unify import unify

Terms = Iterator[Found]


def match_attributes(term: Term, named: list[tuple[str, l.Expression]], rest: str | None, roles: list[str], found: Found) -> Terms:
    attributes = dict(term.attributes)
    plain = [(name, pattern) for name, pattern in named if name in attributes]
    functions = [(name, pattern) for name, pattern in named if name not in attributes]
    for name, pattern in functions:
        if name not in roles or not isinstance(pattern, l.Name):
            raise CannotSay(f"`{name}` of {term.op.name}")
        region = term.regions[roles.index(name)] if roles.index(name) < len(term.regions) else None
        if region is None:
            return
        if pattern.name != "_":
            bound = found.values.get(pattern.name, region)
            if bound != region:
                return
            found = found.bind(pattern.name, region)
    mentioned = {name for name, _ in named}
    remaining = {name: value for name, value in attributes.items() if name not in mentioned}
    others = tuple(term.regions) if not functions else ()
    if rest is None:
        if others and "_" not in [pattern.name for _, pattern in functions if isinstance(pattern, l.Name)]:
            raise CannotSay(f"functions of {term.op.name} that the rule does not name")
        if not all(_is_default(term.op, name, value) for name, value in remaining.items()):
            return
    elif f"..{rest}" in found.values:
        bound_rest, bound_regions = found.values[f"..{rest}"]
        if not _same_rest(term.op, remaining, dict(bound_rest)) or bound_regions != others:
            return
    else:
        found = found.bind(f"..{rest}", (tuple(remaining.items()), others))
    yield from _values(plain, attributes, found)


def _values(named: list[tuple[str, l.Expression]], attributes: dict[str, Any], found: Found) -> Terms:
    if not named:
        yield found
        return
    (name, pattern), *others = named
    for inner in unify(pattern, attributes[name], found, None):
        yield from _values(others, attributes, inner)


def _is_default(op: Op, name: str, value: Any) -> bool:
    for attribute in op.attributes:
        if attribute.name == name:
            return not attribute.required and _same(value, attribute.default)
    return False


def _same(a: Any, b: Any) -> bool:
    """Whether two attributes are one value: floats by their bits, all NaNs alike."""
    if isinstance(a, float) and isinstance(b, float):
        return (a != a and b != b) or np.float64(a).tobytes() == np.float64(b).tobytes()
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b, strict=True))
    return type(a) is type(b) and bool(a == b)


def _same_rest(op: Op, remaining: dict[str, Any], bound: dict[str, Any]) -> bool:
    """Whether what one op left over is what another one has: what the first did not say is the default."""
    known = {attribute.name for attribute in op.attributes}
    if any(name not in known for name in bound):
        return False
    return all(_same(value, bound[name]) if name in bound else _is_default(op, name, value) for name, value in remaining.items())
