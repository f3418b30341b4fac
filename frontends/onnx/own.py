"""Nodes of the user's own ops: what a rule file defines is read as its op.

The node must have the form that the definition says: the number of operands and results, and attributes of these names and kinds. If its
types fit no clause of the definition, it stays as it came.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from coset.dialects.onnx.own import KINDS, domain_and_name, term_of, where_defined
from coset.frontends.onnx.checked import check_node
from coset.frontends.onnx.form import OpSchema
from coset.frontends.onnx.functions import name_of
from coset.frontends.onnx.nodes import attributes_of
from coset.frontends.onnx.tensors import OpenedModel
from coset.ir.builtin import absent
from coset.ir.errors import TypeRuleError
from coset.ir.op import Attributes, Op, get_op
from coset.ir.term import TUPLE, Term, get
from coset.ir.types import AbsentType, TensorType, TupleType

Model = Any  # a message of the `onnx` package
OwnOp = tuple[Op, bool]  # and whether its nodes are what they mean at once
OwnOps = Mapping[tuple[str, str], OwnOp]  # by domain and name
MANY = 1 << 30  # operands or results that an op may have without a bound


def own_ops(names: Collection[str], meant: Collection[str], opened: OpenedModel) -> OwnOps:
    """The ops called `names`, by the domain and the name of their nodes; `meant`: those that are what they mean at once. A function of the
    model's own is what its calls are: an op of its name is left out."""
    functions = {name_of(function)[:2] for function in opened.proto.functions}
    ops = [get_op(name) for name in names]
    found = {called: (op, op.name in meant) for op in ops if (called := domain_and_name(op)) is not None}
    return {called: own for called, own in found.items() if called not in functions}


def own_results(own: OwnOp, node: Model, operands: Sequence[Term], opened: OpenedModel, what: str) -> tuple[Term, ...] | str:
    """The results of a node of a user's op; or why its definition says nothing of this node.

    Raises:
        CosetError: the node, which is called `what`, has not the form that the definition says.
    """
    op, meant = own
    strange = next((each for each in op.attributes if each.kind not in KINDS), None)
    if strange is not None:
        return f"its attribute `{strange.name}` of kind {strange.kind} has no form in ONNX"
    form = _form(op)
    check_node(node, form, what, opened)
    values = attributes_of(node, opened)
    if values is None:
        return "an attribute of it is one of the function that it stands in"
    attributes = _attributes(op, values)
    if isinstance(attributes, str):
        raise opened.error(f"the attribute `{attributes}` of {what} has a value that its op does not take", help=form.help)
    if any(isinstance(each.type, TensorType) and each.type.shape is None for each in operands):
        return "the rank of an operand is not known"
    if not all(isinstance(each.type, TensorType | AbsentType) for each in operands):
        return "an operand is no tensor"
    missing = 0 if op.variadic else len(op.operands) - len(operands)
    given = [*operands, *(absent() for _ in range(missing))]
    try:
        found = term_of(op, given, attributes, meant=meant)
    except TypeRuleError as error:
        return error.message
    results = _results(found)
    if len(node.output) > len(results):
        raise opened.error(f"{what} has {len(node.output)} results, its op has {len(results)}", help=form.help)
    return results


def _results(term: Term) -> tuple[Term, ...]:
    if term.op is TUPLE:
        return term.operands
    return tuple(get(term, index) for index in range(len(term.type.items))) if isinstance(term.type, TupleType) else (term,)


def _form(op: Op) -> OpSchema:
    """What the definition asks of a node."""
    least, most = len(op.operands) - op.optional, MANY if op.variadic else len(op.operands)
    return OpSchema(
        (least, most),
        tuple(enumerate(op.operands[:least])),
        (1, MANY),
        {each.name: (KINDS[each.kind].word, each.required) for each in op.attributes},
        len(op.operands) - 1 if op.variadic else None,
        f"the op is defined at {where_defined(op)}; without --rules its nodes stay as they came",
    )


def _attributes(op: Op, values: Attributes) -> Attributes | str:
    """The `values` of a node as the op's attributes, with the defaults of the others; or the name of one whose value it does not take."""
    found: Attributes = {}
    for each in op.attributes:
        if each.name in values:
            found[each.name] = KINDS[each.kind].read(values[each.name])
            if found[each.name] is None:
                return each.name
    return op.complete(found)
