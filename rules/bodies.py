"""Payload functions that a rule writes down, `lambda a, b: a + b`: built when the types of their parameters are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from coset.ir.place import Place
from coset.ir.term import PARAMETER, TUPLE, Region, make
from coset.ir.types import Type
from coset.rules import syntax
from coset.rules.algebra import PayloadFunction, Scope, Unbound
from coset.rules.equation import Kind
from coset.rules.expansion import Guide, expanded
from coset.rules.names import FUNCTION, Names
from coset.rules.scalar import Undefined


def built(function: PayloadFunction, types: Sequence[Type], scope: Scope) -> Region:
    """What `function` is over parameters of these types.

    Raises:
        Unbound: a name in it has no value yet.
        Undefined: it is not defined for these types.
        CosetError: a type rule refuses what it builds.
    """
    if len(types) != len(function.written.parameters):
        raise Undefined
    missing = [each.name for each in function.free if each.name not in scope.values]
    if missing:
        raise Unbound
    values = {each.name: scope.values[each.name] for each in function.free}
    names = _names(function, values)
    parameters = tuple(make(PARAMETER, (), {"index": i, "type": type}) for i, type in enumerate(types))
    guide = Guide(values, dict(zip(function.written.parameters, types, strict=True)))
    root = expanded(function.written.body, names, guide, function.written.parameters).term(parameters)
    return Region(parameters, root.operands if root.op is TUPLE else (root,))


def _names(function: PayloadFunction, values: Mapping[str, Any]) -> Names:
    """The names of a function's body: its parameters are terms of any type."""
    place = Place("")
    anything = syntax.TensorKind("_", (syntax.Spread(None, place),), "", place)
    terms = {name: syntax.Declaration(name, anything, False, None, place) for name in function.written.parameters}
    kinds = {name: Kind(FUNCTION if isinstance(value, Region) else "any") for name, value in values.items()}
    return Names(terms, kinds, dict(function.ops), dialects=dict(function.dialects))
