"""Nodes whose op a definition tagged `sugar` says in the rule language: each is expanded at once, in the hub's normal form.

The parameters of such a definition are the node's operands in their order, under ONNX's names, and then its attributes. A parameter
that is an attribute although the node has an operand in its place takes the numbers of that operand, which must be known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from coset.dialects.hub.terms import broadcast, convert, reshape, transpose
from coset.dialects.onnx.dtypes import DTYPE_OF_CODE
from coset.dialects.onnx.node import Builder, Built, Node
from coset.ir.builtin import absent
from coset.ir.dims import Shape
from coset.ir.op import Op, get_op
from coset.ir.term import TUPLE, Term, intern
from coset.rules.defining import defer_definitions
from coset.rules.definition import definition_of, expansion, is_defined
from coset.rules.expansion import ExpansionStep

BROADCASTING_SINCE = 7  # before, broadcasting was asked for by attributes
_EARLIER = frozenset({"Add", "Sub", "Mul", "Div", "And", "Or", "Xor", "Equal", "Less", "Greater", "Pow", "PRelu"})


def sugar_builders(path: Path) -> dict[str, Builder]:
    """A builder for each op of ONNX that the file of definitions defines; an entry is read when a node of its op is."""
    return {name.removeprefix("onnx."): sugar for name in defer_definitions(path) if name.startswith("onnx.")}


def sugar(node: Node) -> Built:
    """What the definition of the node's op says, expanded; None where a number that it needs is not known."""
    if node.since < BROADCASTING_SINCE and node.name in _EARLIER:
        return None
    return sugar_with(node, {})


def sugar_with(node: Node, more: Mapping[str, Any]) -> Built:
    """As `sugar`, with some attributes of the definition said by the caller."""
    op, parameters = _form(node.name)
    if parameters is None:
        return _results(expanded(op, node.operands, {}))
    attributes = _attributes(node, parameters, more)
    if attributes is None or any(attribute.required and attribute.name not in attributes for attribute in op.attributes):
        return None
    operands = [node.operand(position) or absent() for position, (_, kind) in enumerate(parameters) if kind == _TERM]
    if parameters[0][1] == _TERMS:
        operands = list(node.operands)
    return _results(expanded(op, operands, op.complete(attributes)))


def _results(term: Term) -> Term | tuple[Term, ...]:
    return term.operands if term.op is TUPLE else term


_TERM, _TERMS = "a term", "terms"


@lru_cache(maxsize=256)
def _form(name: str) -> tuple[Op, tuple[tuple[str, str], ...] | None]:
    """The op that defines nodes called `name` and its parameters, each with its kind; None where they are plain operands."""
    op = get_op(f"onnx.{name}")
    kinds = {attribute.name: attribute.kind for attribute in op.attributes}
    if not kinds and not op.optional:
        return op, None
    own = _TERMS if op.variadic else _TERM
    return op, tuple((parameter, kinds.get(parameter, own)) for parameter in definition_of(op).parameters)


def _attributes(node: Node, parameters: Sequence[tuple[str, str]], more: Mapping[str, Any]) -> dict[str, Any] | None:
    """What the node says of the definition's attributes; None where an operand's numbers are not known."""
    found = dict(more)
    for position, (name, kind) in enumerate(parameters):
        if kind in (_TERM, _TERMS) or name in found:
            continue
        if parameters[0][1] == _TERM and node.given(position):
            value = _numbers(node, position, kind)
            if value is None:
                return None
            found[name] = value
        elif name in node.attributes:
            value = DTYPE_OF_CODE.get(node.attributes[name]) if kind == "dtype" else node.attributes[name]
            if value is None:
                return None
            found[name] = value
    return found


def _numbers(node: Node, position: int, kind: str) -> Any:
    """The numbers of an operand of the node as an attribute of some kind, or None."""
    found = node.dims(position) if kind == "dims" else node.ints(position)
    if found is None or kind != "int":
        return None if found is None else tuple(found)
    return found[0] if len(found) == 1 else None


# ---------------------------------------------------------------- expanding

_FOLDS = frozenset({"onnx.Sum", "onnx.Max", "onnx.Min"})  # of many operands: the first ones, and then the result with the others
_LONGEST = 100  # operands of a fold that the rule language takes


def expanded(op: Op, operands: Sequence[Term], attributes: dict[str, Any]) -> Term:
    """What the defined `op` means, in the normal form of `hub_terms`: movements of splats are splats, those that do nothing are gone.

    Raises:
        TypeRuleError: the op is not defined for these operands.
    """
    while op.name in _FOLDS and len(operands) > _LONGEST:
        operands = [expanded(op, operands[:_LONGEST], attributes), *operands[_LONGEST:]]
    meaning = expansion(op.name, [operand.type for operand in operands], attributes)
    named = dict(zip(meaning.operands, operands, strict=True))
    made: list[Term] = []
    for step in meaning.steps:
        made.append(_applied(step, [named[key] if isinstance(key, str) else made[key] for key in step.operands]))
    return named[meaning.result] if isinstance(meaning.result, str) else made[meaning.result]


def _applied(step: ExpansionStep, operands: Sequence[Term]) -> Term:
    name = step.op.name
    if name in _SMART:
        return _SMART[name](operands[0], dict(step.attributes))
    if name in _IDLE and _IDLE[name](operands, dict(step.attributes)):
        return operands[0]
    if step.op.meaning is None and is_defined(step.op) and definition_of(step.op).is_sugar:
        return expanded(step.op, operands, dict(step.attributes))
    return intern(step.op, tuple(operands), step.attributes, (), step.type)


_SMART: dict[str, Callable[[Term, dict[str, Any]], Term]] = {
    "stablehlo.broadcast_in_dim": lambda x, given: broadcast(x, given["shape"], given["broadcast_dimensions"]),
    "stablehlo.reshape": lambda x, given: reshape(x, given["shape"]),
    "stablehlo.transpose": lambda x, given: transpose(x, given["permutation"]),
    "stablehlo.convert": lambda x, given: convert(x, given["dtype"]),
}
_IDLE: dict[str, Callable[[Sequence[Term], dict[str, Any]], bool]] = {  # whether an application gives its first operand
    "stablehlo.reduce": lambda _, given: not given["dimensions"],
    "stablehlo.concatenate": lambda operands, _: len(operands) == 1,
    "stablehlo.pad": lambda _, given: not any((*given["low"], *given["high"], *given["interior"])),
    "stablehlo.slice": lambda operands, given: _is_whole(operands[0], **given),
}


def _is_whole(x: Term, start: Shape, limit: Shape, strides: tuple[int, ...]) -> bool:
    return not any(start) and limit == x.tensor.dims and set(strides) <= {1}
