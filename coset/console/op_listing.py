"""What `coset rules --ops NAME` shows of ops: operands, attributes with kinds and defaults, results, and what each op means."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from rich.markup import escape

from coset.console.tables import CONSOLE
from coset.dialects.onnx.importing import BUILDERS
from coset.ir.errors import CosetError
from coset.ir.op import Attribute, Op
from coset.ir.registry import all_ops
from coset.ir.suggestions import like
from coset.rules.definition import definition_of, is_defined
from coset.rules.nodes import NODE, node_op
from coset.rules.wording import declared

EMPTY = {  # what a list that is left out means to ONNX
    "strides": "1 along each dim", "dilations": "1 along each dim", "pads": "0 at both ends", "output_padding": "0", "axes": "all axes",
    "kernel_shape": "that of the filters", "perm": "the dims turned round", "split": "equal parts",
}  # fmt: skip


def show_named_ops(names: Sequence[str], as_json: bool) -> None:
    """The ops with these names, or of these patterns (`stablehlo.*`).

    Raises:
        CosetError: no op has such a name.
    """
    found = [op for name in names for op in _called(name)]
    described = [described_op(op) for op in dict.fromkeys(found)]
    if as_json:
        print(json.dumps({"ops": described}))
        return
    for number, each in enumerate(described):
        for line in ["", *op_lines(each)] if number else op_lines(each):
            CONSOLE.print(escape(line), soft_wrap=True)


def _called(name: str) -> list[Op]:
    """The ops that a name or pattern means; those that say what nodes become are shown under the names of the nodes."""
    ops = [op for op in all_ops() if not op.name.startswith(NODE)]
    found = [op for op in ops if fnmatchcase(op.name, name)]
    if found:
        return found
    known = [op.name for op in ops]
    own = name.rpartition(".")[2]
    close = like(name, known) or like(own, [each.partition(".")[2] for each in known])
    raise CosetError(
        f"there is no op `{name}`", help=close or "`coset rules --ops` lists the ops; `coset rules --ops 'onnx.*'` describes some"
    )


def described_op(op: Op) -> dict[str, Any]:
    """An op as rules write it, as data: a node's with the attributes of the standard, and beside them those that a program holds."""
    as_node = node_op(op.name) if op.dialect == "onnx" else None
    shown = as_node or op
    described: dict[str, Any] = {
        "name": op.name, "document": shown.document, "operands": _operands(shown), "attributes": [_attribute(a) for a in shown.attributes],
        "results": list(map(declared, definition_of(shown).entry.result)) if is_defined(shown) else [], "source": op.source,
    }  # fmt: skip
    if op.dialect == "onnx":
        described["seen"] = op.name.partition(".")[2] in BUILDERS
    if as_node is not None and as_node.attributes != op.attributes:
        described["held"] = [_attribute(attribute) for attribute in op.attributes]
    return described


def _operands(op: Op) -> list[dict[str, Any]]:
    types = {}
    if is_defined(op):
        types = {parameter.name: declared(parameter.kind) for parameter in definition_of(op).entry.parameters}
    first_optional = len(op.operands) - op.optional
    return [
        {"name": name, "type": types.get(name, ""), "optional": place >= first_optional, "repeats": op.variadic and name == op.operands[-1]}
        for place, name in enumerate(op.operands)
    ]


def _attribute(attribute: Attribute) -> dict[str, Any]:
    found: dict[str, Any] = {"name": attribute.name, "kind": attribute.kind, "required": attribute.required}
    if not attribute.required:
        found["default"] = _plain(attribute.default)
    return found


def _plain(value: Any) -> Any:
    """A default as JSON has it; one that ONNX keeps in f32 with the digits that it is written with."""
    if isinstance(value, float) and float(np.float32(value)) == value:
        return float(str(np.float32(value)))
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def op_lines(op: dict[str, Any]) -> list[str]:
    operands = [f"{each['name']}{'..' * each['repeats']}{'?' * each['optional']}" for each in op["operands"]]
    lines = [f"{op['name']}({', '.join([*operands, *(a['name'] for a in op['attributes'])])})"]
    lines += [f"  {op['document']}"] if op["document"] else []
    for operand in op["operands"]:
        word = ", may be left out" * operand["optional"] + ", any number of them" * operand["repeats"]
        lines.append(f"  operand    {operand['name']}{': ' * bool(operand['type'])}{operand['type']}{word}")
    lines += [f"  attribute  {_told(attribute)}" for attribute in op["attributes"]]
    lines += [f"  result     {result}" for result in op["results"]]
    if not op.get("seen", True):
        lines.append("  no rule sees a node of it: it stays in a model as it came")
    if "held" in op:
        held = ", ".join(f"{each['name']}: {each['kind']}" for each in op["held"])
        lines.append(f"  a program holds it with {held}: rules may write these attributes instead, by place too")
    return lines


def _told(attribute: dict[str, Any]) -> str:
    told = f"{attribute['name']}: {attribute['kind']}"
    if attribute["required"]:
        return f"{told}, must be written"
    default = json.dumps(attribute["default"])
    empty = EMPTY.get(attribute["name"]) if attribute["default"] == [] else None
    return f"{told} = {default}" + (f" ({empty})" if empty else "")
