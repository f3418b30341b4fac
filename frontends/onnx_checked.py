"""What ONNX asks of a node, looked at before any builder does: operands and results in number, attributes there once and of their kind."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import onnx

from coset.frontends.onnx_tensors import MODEL_HELP, Model, Opened

_KINDS = onnx.AttributeProto
_FIELDS = {_KINDS.TENSOR: "t", _KINDS.GRAPH: "g", _KINDS.SPARSE_TENSOR: "sparse_tensor", _KINDS.TYPE_PROTO: "tp"}  # that must be there


@lru_cache(maxsize=4096)
def schema_of(name: str, opset: int, domain: str) -> Any | None:
    """ONNX's schema of an op in the version `opset` of its domain; None where the domain has no such op then."""
    try:
        return onnx.defs.get_schema(name, opset, domain)
    except onnx.defs.SchemaError:
        return None


def check_node(node: Model, schema: Any, what: str, opened: Opened) -> None:
    """Check `node` against the schema of its op, which is called `what` in messages.

    Raises:
        CosetError: the node has too few or too many operands or results, or attributes that the op cannot have.
    """
    _check_attributes(node, what, opened)
    if schema is None:
        return
    needed = [place for place, formal in enumerate(schema.inputs) if formal.option == onnx.defs.OpSchema.FormalParameterOption.Single]
    _check_count(len(node.input), schema.min_input, schema.max_input, f"{what} has {{}} operands", opened)
    for place in needed:
        if place >= len(node.input) or not node.input[place]:
            raise opened.error(f"{what} has no operand `{schema.inputs[place].name}`", help=MODEL_HELP)
    _check_count(len(node.output), schema.min_output, schema.max_output, f"{what} has {{}} results", opened)
    given = {attribute.name: attribute for attribute in node.attribute}
    for name, formal in schema.attributes.items():
        attribute = given.get(name)
        if attribute is None and formal.required:
            raise opened.error(f"{what} has no attribute `{name}`", help=MODEL_HELP)
        if attribute is not None and attribute.type != int(formal.type):
            kinds = [_KINDS.AttributeType.Name(attribute.type).lower(), formal.type.name.lower()]
            raise opened.error(f"the attribute `{name}` of {what} is of kind {kinds[0]}, not {kinds[1]}", help=MODEL_HELP)


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
        if attribute.type not in _KINDS.AttributeType.values() or (attribute.type == _KINDS.UNDEFINED and not attribute.ref_attr_name):
            raise opened.error(f"the attribute `{attribute.name}` of {what} is of no kind that ONNX has", help=MODEL_HELP)
        field = _FIELDS.get(attribute.type)
        if field is not None and not attribute.ref_attr_name and not attribute.HasField(field):
            raise opened.error(f"the attribute `{attribute.name}` of {what} has no value", help=MODEL_HELP)
