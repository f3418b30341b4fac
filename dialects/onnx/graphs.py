"""The bodies of ONNX's control flow as functions of terms: a body is imported once over parameters, and instantiated on operands.

A body comes as a `Region` whose parameters are its formal inputs and then all values that the node captures. Its inner types are what is
known on import; instantiating it finds them anew, so that shapes that depend on the operands become known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from coset.dialects.hub.terms import literal
from coset.dialects.onnx.node import Node, constant_elements, define
from coset.dialects.sizes import resized
from coset.ir import dims
from coset.ir.builtin import DIMS
from coset.ir.dims import Dim, Poly
from coset.ir.errors import TypeRuleError, require
from coset.ir.evaluate import evaluate
from coset.ir.term import CONSTANT, GET, PARAMETER, TUPLE, Region, Term, make, topological
from coset.ir.types import AbsentType, TensorType, TupleType, Type
from coset.rules.definition import evaluate_defined

CAPTURED = "coset.captured"  # the entry of a node's attributes that says how many of its last operands are captured values
Made = Term | tuple[Term | None, ...]
_SHOWN, _FEW = 1 << 12, 64  # elements of a constant up to which definitions see them as numbers; of a result that is computed at once


def instantiate(region: Region, arguments: Sequence[Term]) -> tuple[Term, ...]:
    """The results of the body on these terms: its parameters replaced, its nodes defined, its types found anew.

    Raises:
        TypeRuleError: the body does not fit the arguments, or a node of it has no definition.
    """
    require(len(arguments) == len(region.parameters), f"a body takes {len(region.parameters)} values, not {len(arguments)}")
    binding: dict[str, Dim] = {}
    made: dict[Term, Made] = {}
    for parameter, argument in zip(region.parameters, arguments, strict=True):
        made[parameter] = argument
        _bind(parameter.type, argument.type, binding)
    waiting = [term for term in topological(region.results) if term not in made]
    for patient in (True, False):  # a symbol can be known from a term that comes later; one that never is stays as it is
        count = -1
        while count != len(waiting):
            count, waiting = len(waiting), _round(waiting, made, binding, patient=patient)
    return tuple(_one(made[result]) for result in region.results)


def _round(waiting: Sequence[Term], made: dict[Term, Made], binding: dict[str, Dim], *, patient: bool) -> list[Term]:
    """Make what can be made now: its operands are there and (`patient`) its symbols are known. The others are left."""
    left: list[Term] = []
    for term in waiting:
        ready = all(operand in made for operand in term.operands)
        known = term.op.has("foreign") or not patient or all(_symbols(value) <= binding.keys() for _, value in term.attributes)
        if not (ready and known):
            left.append(term)
            continue
        found = made[term] = _again(term, made, binding)
        if isinstance(found, Term):
            _bind(term.type, found.type, binding)
        elif isinstance(term.type, TupleType):
            for old, new in zip(term.type.items, found, strict=False):
                if new is not None:
                    _bind(old, new.type, binding)
    return left


def _symbols(value: Any) -> frozenset[str]:
    """The dim symbols in an attribute value."""
    if isinstance(value, Poly):
        return dims.symbols(value)
    if isinstance(value, TensorType):
        return _symbols(value.shape)
    return frozenset().union(*map(_symbols, value)) if isinstance(value, tuple) else frozenset()


def _one(found: Made) -> Term:
    assert isinstance(found, Term), "several results are used as one"
    return found


def _again(term: Term, made: Mapping[Term, Made], binding: Mapping[str, Dim]) -> Made:
    """`term` over its new operands."""
    if term.op is CONSTANT or not (term.operands or term.attributes):
        return term
    if term.op is GET and isinstance(results := made[term.operands[0]], tuple):
        found: Term | None = results[term.attribute("index")]
        assert found is not None, "a result that is not there is used"
        return found
    operands = [_one(made[operand]) for operand in term.operands]
    if term.op.name == "onnx.node":
        return _defined(term, operands, f".{len(made)}")
    require(not term.op.has("foreign") and term.op is not PARAMETER, f"a body holds `{term.op.name}`, which has no definition")
    if term.op is TUPLE:
        return tuple(operands)
    attributes = {name: _bound(value, binding) for name, value in term.attributes}
    if term.op is DIMS and not any(isinstance(dim, Poly) for dim in attributes["dims"]):
        shape = term.tensor.static
        assert shape is not None
        return literal(np.array(attributes["dims"], term.tensor.dtype.numpy).reshape(shape))
    return _folded(make(term.op, operands, attributes, term.regions))


def _folded(term: Term) -> Term:
    """A few integers that depend on constants only, as a constant: shapes and axes that a body computes."""
    type = term.type
    if not isinstance(type, TensorType) or type.dtype.kind not in ("int", "uint", "bool") or type.static is None:
        return term
    if prod(type.static) > _FEW or any(constant_elements(operand, _SHOWN) is None for operand in term.operands):
        return term
    return literal(evaluate([term], {}, fallback=evaluate_defined)[0])


def _defined(term: Term, operands: Sequence[Term], place: str) -> Made:
    """The results of a kept node by its definition, now that its operands are known; symbols of its own (how many elements there are)
    get `place` behind their names, so that two nodes of a body do not share them."""
    node = node_of(term, operands)
    results = define(node)
    if results is None:
        raise TypeRuleError(f"no definition of `{node.name}` fits a node of a body")
    known = frozenset[str]().union(*(_symbols(operand.type) for operand in operands))
    own = frozenset[str]().union(*(_symbols(result.type) for result in results)) - known
    if own:
        results = tuple(resized(results, {name: dims.symbol(name + place) for name in own}))
    types = term.attribute("results")
    if len(types) == 1:
        return _folded(results[0])
    given = (*results, *[None] * (len(types) - len(results)))
    return tuple(None if isinstance(type, AbsentType) else result for type, result in zip(types, given, strict=False))


def node_of(term: Term, operands: Sequence[Term], host: Sequence[Any] | None = None) -> Node:
    """The kept node `term` on other operands; constants among them are known as numbers."""
    domain, name = str(term.attribute("domain")), str(term.attribute("name"))
    types = term.attribute("results")
    wanted = max((index + 1 for index, type in enumerate(types) if not isinstance(type, AbsentType)), default=1)
    shown = tuple(_numbers(operand) for operand in operands) if host is None else tuple(host)
    return Node(
        f"{domain}.{name}" if domain else name, tuple(operands), dict(term.attribute("given")), shown, int(term.attribute("since")), wanted,
        len(types),
    )  # fmt: skip


def _numbers(operand: Term) -> Any:
    found = constant_elements(operand, _SHOWN)
    return None if found is None or found.dtype.kind not in "iub" else found.astype(object)


def _bind(old: Type, new: Type, binding: dict[str, Dim]) -> None:
    """Enter the symbols that `old` spells alone, with the dims in their place."""
    if isinstance(old, TensorType) and isinstance(new, TensorType) and old.shape is not None and new.shape is not None:
        for before, now in zip(old.shape, new.shape, strict=False):
            name = dims.alone(before)
            if name is not None:
                binding.setdefault(name, now)


def _bound(value: Any, binding: Mapping[str, Dim]) -> Any:
    """An attribute value with its symbols bound."""
    if isinstance(value, Poly):
        return dims.substitute(value, binding)
    if isinstance(value, tuple):
        return tuple(_bound(item, binding) for item in value)
    if isinstance(value, TensorType) and value.shape is not None:
        return TensorType(value.dtype, _bound(value.shape, binding))
    return value
