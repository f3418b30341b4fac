"""Payload functions in rules: beside an op's attributes stand its functions, by their roles, as values of the index algebra.

A term has its functions as regions; to a rule they are items of its attributes, `body: f`, absent (None) where an attribute's word stands
for one. A function that the rule writes down is built for the types of its parameters, which are known when the rule is decided.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from coset.ir.op import Op, Signature
from coset.ir.term import AttributeItems, Region, Term, check_regions, intern
from coset.ir.types import Type
from coset.rules.algebra import PayloadFunction, Scope, region_of

REGION = "region"  # the word of an attribute for which no word stands


def roles(op: Op) -> tuple[str, ...]:
    """The names by which rules speak of the functions of `op`."""
    return tuple(role for role, _ in op.functions)


def described(op: Op, attributes: AttributeItems, regions: tuple[Region, ...]) -> AttributeItems | None:
    """The attributes with the functions among them; None where the functions of `op` have no names."""
    if not op.functions:
        return attributes if not regions else None
    named, left = dict(attributes), list(regions)
    items = [(role, left.pop(0) if not word or named[word] == REGION else None) for role, word in op.functions]
    return tuple(sorted((*attributes, *items)))


def parted(op: Op, items: AttributeItems) -> tuple[AttributeItems, tuple[Region, ...]]:
    """Attributes and functions apart again."""
    if not op.functions:
        return items, ()
    named, own = dict(items), roles(op)
    regions = tuple(named[role] for role in own if named.get(role) is not None)
    return tuple(item for item in items if item[0] not in own), regions


def complete(op: Op, given: dict[str, Any], operands: Sequence[Type], scope: Scope) -> dict[str, Any]:
    """`given` with the defaults of `op` and with its functions built for operands of these types.

    Raises:
        CosetError: an attribute is missing or unknown; a function does not fit.
        Undefined, Unbound: as `evaluate`.
    """
    if not op.functions:
        return op.complete(given)
    own = roles(op)
    found = op.complete({name: value for name, value in given.items() if name not in own})
    wanted = signatures(op, operands, found)
    built: dict[str, Region | None] = {}
    for role in own:
        value, signature = given.get(role), wanted.get(role)
        built[role] = (
            region_of(value, signature.parameters, scope) if isinstance(value, PayloadFunction) and signature is not None else value
        )
    regions = tuple(each for each in built.values() if each is not None)
    check_regions(op, operands, found, regions)
    return found | built


def signatures(op: Op, operands: Sequence[Type], attributes: dict[str, Any]) -> dict[str, Signature]:
    """What the functions of `op` take and give, by role: of those for which no word stands."""
    assert op.signatures is not None
    return {each.role: each for each in op.signatures(op.name, operands, attributes, len(op.functions))}


def made(op: Op, operands: tuple[Term, ...], items: AttributeItems, type: Type) -> Term:
    """The term of `op` whose attributes and functions are `items`."""
    attributes, regions = parted(op, items)
    return intern(op, operands, attributes, regions, type)
