"""`onnx.node`: a node that is kept as it came, so that it is written back unchanged, though the dialect knows what it means.

Its meaning is the hub term that the op's definition gives once the values of its operands are known: definitions may ask for small
operands (`axes`, `shape`, `k`) as numbers, which a program that computes them has only when it runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from coset.dialects.hub.terms import literal
from coset.dialects.onnx.graphs import node_of
from coset.dialects.onnx.node import Node, constant_elements, define
from coset.ir.builtin import ABSENT, OPAQUE, absent
from coset.ir.errors import CosetError, TypeRuleError
from coset.ir.evaluate import evaluate
from coset.ir.op import Array, Attribute, Op, register
from coset.ir.term import TUPLE, Term, input_term, make
from coset.ir.types import AbsentType, TensorType, TupleType, dtype_of
from coset.rules.definition import evaluate_defined

SHOWN = 1 << 12  # elements of an operand up to which its definition sees the values


def _meaning(term: Term, arrays: Sequence[Array | None], _: Mapping[str, int]) -> Array | tuple[Array, ...]:
    inputs: dict[str, Array] = {}
    operands: list[Term] = []
    for index, array in enumerate(arrays):
        operands.append(_operand(f"x{index}", array, inputs))
    types = term.attribute("results")
    host = tuple(None if array is None or np.size(array) > SHOWN else _numbers(np.asarray(array)) for array in arrays)
    node = node_of(term, operands, host)
    wanted, name = node.results, node.name
    try:
        results = define(node)
    except TypeRuleError as error:
        raise CosetError(f"`{name}` cannot be computed: {error.message}") from None
    if results is None:
        raise CosetError(f"no definition of `{name}` fits this node (version {node.since}, {_shown(node)})")
    values = evaluate(results[:wanted], inputs, fallback=evaluate_defined)
    if not isinstance(term.type, TupleType):
        return values[0]  # type: ignore[no-any-return]
    given = iter([*values, *[None] * (len(types) - len(values))])
    return tuple(None if isinstance(type, AbsentType) else value for type, value in zip(types, given, strict=True))  # type: ignore[misc]


def opened(term: Term) -> Term | None:
    """The term that a kept node means, where its op's definition gives the types that the node has."""
    types = term.attribute("results")
    if term.attribute("effect"):
        return None
    host = tuple(None if operand.op is ABSENT else _host(operand) for operand in term.operands)
    try:
        results = define(node_of(term, term.operands, host))
    except (TypeRuleError, CosetError):
        return None
    if results is None or any(result.type != type for result, type in zip(results, types, strict=False)):
        return None
    if not isinstance(term.type, TupleType):
        return results[0]
    return make(TUPLE, [*results[: len(types)], *[make(ABSENT)] * (len(types) - len(results))])


def _host(term: Term) -> Any:
    """The elements of small integers of the host, as an object array, or None."""
    if term.op.name == "builtin.dims":
        return np.array([*term.attribute("dims")], object).reshape(term.tensor.static)
    found = constant_elements(term, SHOWN)
    return None if found is None or found.dtype.kind not in "iub" else found.astype(object)


def _operand(name: str, array: Array | None, inputs: dict[str, Array]) -> Term:
    if array is None:
        return absent()
    array = np.asarray(array)
    if array.size <= SHOWN:
        return literal(array)
    inputs[name] = array
    return input_term(name, TensorType(dtype_of(array.dtype), array.shape))


def _numbers(array: Array) -> Any:
    """Integers and booleans as the host's numbers; None for other elements."""
    return array.astype(object) if array.dtype.kind in "iub" else None


def _shown(node: Node) -> str:
    operands = ", ".join("absent" if not isinstance(o.type, TensorType) else str(o.type) for o in node.operands)
    return f"operands {operands}; attributes {node.attributes}"


KEPT = register(
    Op(
        "onnx.node",
        OPAQUE.infer,
        _meaning,
        (*OPAQUE.attributes, Attribute("since", "int"), Attribute("given", "any")),
        ("inputs",),
        variadic=True,
        traits=frozenset({"foreign"}),
        source="https://onnx.ai/onnx/operators/",
        document="An ONNX node kept as it came; its definition says what it means.",
    )
)
