"""What every script here does with what an exporter gave: names and what does not matter go, the header and the text are written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from header import write
from onnx import inliner, printer

MOVEMENT = {"Constant", "Identity", "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Cast", "Expand"}


def save_onnx(model: onnx.ModelProto, name: str, source: str, wanted: Sequence[str], beside: str = "") -> None:
    """Write the entry `name` (`folder/file`); asserts that it is not already what is to be recognised."""
    model = plain(model)
    asked = {line.split()[0] for line in wanted}
    other = {node.op_type for node in model.graph.node if f"onnx.{node.op_type}" not in asked} - MOVEMENT
    assert other, f"{name}: nothing but what is to be recognised"
    onnx.checker.check_model(model, full_check=True)
    write(f"{name}.onnxtxt", "#", source, wanted, beside, text_of(model))


def text_of(model: onnx.ModelProto) -> str:
    """The model as ONNX's text with every digit of its numbers (the printer keeps six)."""
    text = printer.to_text(model)
    for tensor in model.graph.initializer:
        if tensor.data_type in (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE):
            digits = ",".join(_shortest(number) for number in onnx.numpy_helper.to_array(tensor).ravel())
            text = re.sub(rf"(\b{tensor.name} =\s*){{[^}}]*}}", lambda found, digits=digits: f"{found[1]}{{{digits}}}", text, count=1)
    numbers = iter([a.f for node in model.graph.node for a in node.attribute if a.type == onnx.AttributeProto.FLOAT])
    return re.sub(r"(: float = )[^,>]+", lambda found: found[1] + _shortest(np.float32(next(numbers))), text)


def _shortest(number: Any) -> str:
    """The fewest digits that are this number again, with an exponent where the parser wants one."""
    return np.format_float_positional(number, trim="-") if 1e-4 <= abs(number) < 1e6 or number == 0 else f"{number!s}"


def plain(model: onnx.ModelProto) -> onnx.ModelProto:
    """The same program without functions, documentation, metadata, intermediate types and unused weights; values are called v0, v1, .."""
    model = inliner.inline_local_functions(model)
    graph = model.graph
    used = {name for node in graph.node for name in node.input} | {output.name for output in graph.output}
    kept = [tensor for tensor in graph.initializer if tensor.name in used]
    inputs = [value for value in graph.input if value.name not in {tensor.name for tensor in graph.initializer}]
    names: dict[str, str] = {"": ""}
    for value in inputs:
        names[value.name] = re.sub(r"\W", "_", value.name)
    for tensor in kept:
        names[tensor.name] = f"w{len(names)}"
    nodes: list[Any] = []
    for node in graph.node:
        assert not any(attribute.g.node for attribute in node.attribute), f"{node.op_type} has a body"
        for result in node.output:
            names.setdefault(result, f"v{len(names)}")
        fresh = onnx.helper.make_node(node.op_type, [names[i] for i in node.input], [names[o] for o in node.output], domain=node.domain)
        for attribute in sorted(node.attribute, key=lambda a: a.name):
            attribute.doc_string = ""
            fresh.attribute.append(attribute)
        nodes.append(fresh)
    values = [(inputs, "input"), (graph.output, "output")]
    for group, _ in values:
        for value in group:
            value.name, value.doc_string = names[value.name], ""
            value.ClearField("metadata_props")
            for number, dim in enumerate(value.type.tensor_type.shape.dim):
                if dim.dim_param:
                    dim.dim_param = (
                        re.sub(r"\W", "_", dim.dim_param) if re.fullmatch(r"[\w.]+", dim.dim_param) else f"{value.name}_{number}"
                    )
    for tensor in kept:
        tensor.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(tensor), names[tensor.name]))
    made = onnx.helper.make_graph(nodes, "g", inputs, list(graph.output), kept)
    opsets = [opset for opset in model.opset_import if opset.domain in {node.domain for node in nodes} or not opset.domain]
    return onnx.helper.make_model(made, opset_imports=opsets, ir_version=min(model.ir_version, 10))
