"""What ONNX asks of a node, looked at before any builder does: operands and results in number, attributes there once and of their kind."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import onnx

from coset.frontends.onnx_form import Form, form_of
from coset.frontends.onnx_runtime_forms import FORMS
from coset.frontends.onnx_tensors import MODEL_HELP, Model, Opened

RUNTIME = "com.microsoft"  # the domain of ONNX Runtime's own ops
INTERNAL = "__"  # how the names of attributes begin that runtimes keep for themselves
LEGACY = {"consumed_inputs"}  # of ops before version 6, with no meaning
_KINDS = onnx.AttributeProto
_NAMES = {number: name.lower() for name, number in _KINDS.AttributeType.items()}
_FIELDS = {_KINDS.TENSOR: "t", _KINDS.GRAPH: "g", _KINDS.SPARSE_TENSOR: "sparse_tensor", _KINDS.TYPE_PROTO: "tp"}  # that must be there


@lru_cache(maxsize=4096)
def schema_of(name: str, opset: int, domain: str) -> Any | None:
    """ONNX's schema of an op in the version `opset` of its domain; None where the domain has no such op then."""
    try:
        return onnx.defs.get_schema(name, opset, domain)
    except onnx.defs.SchemaError:
        return None


@lru_cache(maxsize=4096)
def form_for(name: str, opset: int, domain: str) -> Form | None:
    """What an op of a standard domain asks of its nodes, where that is known."""
    schema = schema_of(name, opset, domain)
    return form_of(schema) if schema is not None else FORMS.get(name) if domain == RUNTIME else None


def check_node(node: Model, form: Form | None, what: str, opened: Opened) -> None:
    """Check `node`, which is called `what` in messages, against the form of its op.

    Raises:
        CosetError: the node has too few or too many operands or results, or attributes that the op cannot have.
    """
    _check_attributes(node, what, opened)
    if form is None:
        return
    least, most = form.inputs
    newer = node.domain == RUNTIME  # whose ops get further operands from version to version: such a node stays as it came
    _check_count(len(node.input), least, max(most, len(node.input)) if newer else most, f"{what} has {{}} operands", opened)
    for place, name in form.required:
        if place >= len(node.input) or not node.input[place]:
            raise opened.error(f"{what} has no operand `{name}`", help=MODEL_HELP)
    if form.variadic is not None and not all(node.input[form.variadic :]):
        raise opened.error(f"{what} has an operand without a name among those that all must be given", help=MODEL_HELP)
    least, most = form.outputs
    _check_count(len(node.output), least, max(most, len(node.output)) if newer else most, f"{what} has {{}} results", opened)
    given = {attribute.name: attribute for attribute in node.attribute}
    for name in given.keys() - form.attributes.keys():
        if not newer and not name.startswith(INTERNAL) and name not in LEGACY:
            raise opened.error(f"{what} has an attribute `{name}`, which its op has not in this version", help=MODEL_HELP)
    for name, (kind, required) in form.attributes.items():
        attribute = given.get(name)
        if attribute is None and required:
            raise opened.error(f"{what} has no attribute `{name}`", help=MODEL_HELP)
        own = kind if attribute is None else _NAMES[attribute.type]
        if own != kind:
            raise opened.error(f"the attribute `{name}` of {what} is of kind {own}, not {kind}", help=MODEL_HELP)


def is_newer(node: Model) -> bool:
    """True for a node of ONNX Runtime's own that has more than the forms that are known here."""
    form = FORMS.get(node.op_type)
    return form is not None and (len(node.input) > form.inputs[1] or any(each.name not in form.attributes for each in node.attribute))


def _check_count(found: int, least: int, most: int, message: str, opened: Opened) -> None:
    if not least <= found <= most:
        wanted = f"{least}" if least == most else f"{least} or more" if most > 1 << 16 else f"{least} to {most}"
        raise opened.error(f"{message.format(found)}, its op has {wanted}", help=MODEL_HELP)


def _check_attributes(node: Model, what: str, opened: Opened) -> None:
    seen = set()
    for attribute in node.attribute:
        if attribute.name in seen:
            raise opened.error(f"{what} has two attributes `{attribute.name}`", help="keep one of them")
        seen.add(attribute.name)
        if attribute.type not in _NAMES or (attribute.type == _KINDS.UNDEFINED and not attribute.ref_attr_name):
            raise opened.error(f"the attribute `{attribute.name}` of {what} is of no kind that ONNX has", help=MODEL_HELP)
        field = _FIELDS.get(attribute.type)
        if field is not None and not attribute.ref_attr_name and not attribute.HasField(field):
            raise opened.error(f"the attribute `{attribute.name}` of {what} has no value", help=MODEL_HELP)
