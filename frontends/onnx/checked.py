"""What ONNX asks of a node, looked at before any builder does: operands and results in number, attributes there once and of their kind."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import onnx

from coset.frontends.onnx.form import OpSchema, form_of
from coset.frontends.onnx.runtime_forms import FORMS
from coset.frontends.onnx.tensors import MODEL_HELP, Model, OpenedModel
from coset.ir.suggestions import like

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
def defaults_of(name: str, opset: int, domain: str) -> tuple[Any, ...]:
    """The attributes that a node of an op has where it says nothing else. ONNX's inference of shapes has defaults of its own in places (of
    STFT, in 1.23)."""
    schema = schema_of(name, opset, domain)
    found = () if schema is None else schema.attributes.values()
    return tuple(each.default_value for each in found if each.default_value.name)


@lru_cache(maxsize=4096)
def form_for(name: str, opset: int, domain: str) -> OpSchema | None:
    """What an op of a standard domain asks of its nodes, where that is known."""
    schema = schema_of(name, opset, domain)
    return form_of(schema) if schema is not None else FORMS.get(name) if domain == RUNTIME else None


def check_node(node: Model, form: OpSchema | None, what: str, opened: OpenedModel) -> None:
    """Check `node`, which is called `what` in messages, against the form of its op.

    Raises:
        CosetError: the node has too few or too many operands or results, or attributes that the op cannot have.
    """
    given = _attributes(node, what, opened)
    if form is None:
        return
    help = form.help or f"{node.op_type} takes {_listed(form)}"
    newer = node.domain == RUNTIME  # whose ops get further operands from version to version: such a node stays as it came
    operands = list(node.input)
    _check_count(len(operands), form.inputs, newer, f"{what} has {{}} operands", opened, help)
    for place, name in form.required:
        if place >= len(operands) or not operands[place]:
            raise opened.error(f"{what} has no operand `{name}`", help=help)
    if form.variadic is not None and not all(operands[form.variadic :]):
        raise opened.error(f"{what} has an operand without a name among those that all must be given", help=help)
    _check_count(len(node.output), form.outputs, newer, f"{what} has {{}} results", opened, help)
    for name, own in given.items():
        kind, _ = form.attributes.get(name, (own, False))
        if own != kind:
            raise opened.error(f"the attribute `{name}` of {what} is of kind {own}, not {kind}", help=help)
        if name not in form.attributes and not newer and not name.startswith(INTERNAL) and name not in LEGACY:
            said = f"{what} has an attribute `{name}`, which its op has not in this version"
            raise opened.error(said, help=form.help or _instead_of(name, node.op_type, form))
    for name in form.needed:
        if name not in given:
            raise opened.error(f"{what} has no attribute `{name}`", help=help)


def _listed(form: OpSchema) -> str:
    """What an op takes: the names of its operands, and its attributes, those first that it must have."""
    optional = {name for name in form.operands if name not in dict(form.required).values()}
    names = form.operands or [name for _, name in form.required]
    operands = ", ".join(f"`{name}`{' (may be left out)' if name in optional else ''}" for name in names)
    own = [*(f"`{name}` (must be there)" for name in form.needed), *(f"`{name}`" for name in form.attributes if name not in form.needed)]
    return f"the operands {operands or 'none'}" + (f"; the attributes {', '.join(own)}" if own else "; no attributes")


def _instead_of(name: str, op: str, form: OpSchema) -> str:
    """What to write instead of an attribute that the op has not."""
    if name in form.operands:
        return f"in this version `{name}` is operand {form.operands.index(name) + 1} of {op}: give it as a tensor"
    return like(name, form.attributes) or f"{op} takes {_listed(form)}"


def is_newer(node: Model) -> bool:
    """True for a node of ONNX Runtime's own that has more than the forms that are known here."""
    form = FORMS.get(node.op_type)
    return form is not None and (len(node.input) > form.inputs[1] or any(each.name not in form.attributes for each in node.attribute))


def _check_count(found: int, ends: tuple[int, int], newer: bool, message: str, opened: OpenedModel, help: str) -> None:
    least, most = ends
    if not least <= found or (found > most and not newer):
        wanted = f"{least}" if least == most else f"{least} or more" if most > 1 << 16 else f"{least} to {most}"
        raise opened.error(f"{message.format(found)}, its op has {wanted}", help=help)


def _attributes(node: Model, what: str, opened: OpenedModel) -> dict[str, str]:
    """The attributes with their kinds."""
    given: dict[str, str] = {}
    opened.check_texts(attribute.name for attribute in node.attribute)
    for attribute in node.attribute:
        name, kind = attribute.name, attribute.type
        if name in given:
            raise opened.error(f"{what} has two attributes `{name}`", help="keep one of them")
        referred = bool(attribute.ref_attr_name)
        if kind not in _NAMES or (kind == _KINDS.UNDEFINED and not referred):
            raise opened.error(f"the attribute `{name}` of {what} is of no kind that ONNX has", help=MODEL_HELP)
        if kind in _FIELDS and not referred and not attribute.HasField(_FIELDS[kind]):
            raise opened.error(f"the attribute `{name}` of {what} has no value", help=MODEL_HELP)
        given[name] = _NAMES[kind]
    return given
