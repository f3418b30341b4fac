"""How much of the ONNX standard has a meaning here: every op of the default domain, and by what its definition is given."""

from __future__ import annotations

import onnx

from coset.dialects.onnx_node import BUILDERS, DEFINITIONS
from coset.ir.op import find_op
from coset.rules.definition import is_defined


def standard_ops() -> dict[str, str]:
    """Every op of the default domain that is not deprecated, by name, with what says what it means:

    `rules` (a definition in the rule language), `term` (the hub term that a node of it is, built from the node), `none`, or
    `no tensors` for ops on sequences and optionals, which have no terms.
    """
    found: dict[str, str] = {}
    for schema in sorted(onnx.defs.get_all_schemas(), key=lambda schema: str(schema.name)):
        if schema.domain or schema.deprecated:
            continue
        name = str(schema.name)
        op = find_op(f"onnx.{name}")
        if op is not None and is_defined(op):
            found[name] = "rules"
        elif name in DEFINITIONS or name in BUILDERS:
            found[name] = "term"
        else:
            found[name] = "none" if _on_tensors(schema) else "no tensors"
    return found


def _on_tensors(schema: onnx.defs.OpSchema) -> bool:
    """True when each operand and result can be a tensor."""
    names = {constraint.type_param_str: constraint.allowed_type_strs for constraint in schema.type_constraints}
    for parameter in (*schema.inputs, *schema.outputs):
        allowed = names.get(parameter.type_str, [parameter.type_str])
        if not any(str(type).startswith("tensor(") for type in allowed):
            return False
    return True
