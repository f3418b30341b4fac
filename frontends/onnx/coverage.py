"""The ops of the ONNX standard: what a list of the ones that have a meaning here is held against."""

from __future__ import annotations

import onnx


def standard_ops() -> dict[str, bool]:
    """Every op of the default domain that is not deprecated, by name: true when each operand and result can be a tensor."""
    schemas = [schema for schema in onnx.defs.get_all_schemas() if not schema.domain and not schema.deprecated]
    return {str(schema.name): _on_tensors(schema) for schema in sorted(schemas, key=lambda schema: str(schema.name))}


def _on_tensors(schema: onnx.defs.OpSchema) -> bool:
    names = {constraint.type_param_str: constraint.allowed_type_strs for constraint in schema.type_constraints}
    for parameter in (*schema.inputs, *schema.outputs):
        allowed = names.get(parameter.type_str, [parameter.type_str])
        if not any(str(type).startswith("tensor(") and "string" not in str(type) for type in allowed):
            return False
    return True
