"""A user's own ops, each printed as a node of its domain. Whether a target runs such a node is the target's to say."""

from __future__ import annotations

from coset.dialects.onnx.own import domain_and_name, written
from coset.ir.term import GET, Term, get
from coset.ir.types import TupleType
from coset.lowering.onnx.calls import Input, NodeCall, NoOnnxForm
from coset.lowering.onnx.reduce import given


def print_own(term: Term) -> Input:
    """The node of a term of a user's op, or of one of its results.

    Raises:
        NoOnnxForm: the op is none of a user's, or a node cannot have an attribute of it.
    """
    whole = term.operands[0] if term.op is GET else term
    called = domain_and_name(whole.op)
    if called is None:
        raise NoOnnxForm(f"`{whole.op.name}` has no ONNX form")
    attributes = {}
    for attribute in whole.op.attributes:
        value = written(attribute, whole.attribute(attribute.name))
        if value is not None:
            attributes[attribute.name] = value
        elif attribute.required or whole.attribute(attribute.name) != attribute.default:
            shown = whole.attribute(attribute.name)
            raise NoOnnxForm(f"the attribute `{attribute.name}` of `{whole.op.name}` is {shown}, which no node can say")
    domain, name = called
    items = whole.type.items if isinstance(whole.type, TupleType) else ()
    return NodeCall(name, given(whole), attributes, results=tuple(get(whole, index) for index in range(len(items))), domain=domain)
