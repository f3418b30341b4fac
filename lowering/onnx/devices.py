"""Which device each node of a model runs on, as the model says it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import onnx

from coset.dialects.onnx.bodies import captured_names
from coset.ir.term import Term
from coset.ir.types import TensorType
from coset.lowering.onnx.graph import PrintedGraph
from coset.targets.running import DEVICE

IR_VERSION = 10  # the first in which nodes have metadata (ONNX 1.16)


def device_of(node: Any) -> str:
    """What a node says of its device; "" where it says nothing."""
    return next((str(entry.value) for entry in node.metadata_props if entry.key == DEVICE), "")


def names_read(node: Any) -> list[str]:
    """The values that a node reads, also in its bodies."""
    return [name for name in (*node.input, *captured_names(node)) if name]


def mark_devices(model: Any, graph: PrintedGraph, devices: Mapping[Term, str], proto_of: Callable[[TensorType], Any]) -> None:
    """Write the device of each node's term into its metadata, and the types of values that go from one device to another."""
    model.ir_version = max(model.ir_version, IR_VERSION)
    made: dict[str, str] = {}
    crossing: dict[str, None] = {}
    for node in model.graph.node:
        maker = graph.makers.get(next(filter(None, node.output), ""))
        device = "" if maker is None else devices.get(maker, "")
        kept = [entry for entry in node.metadata_props if entry.key != DEVICE]
        del node.metadata_props[:]
        node.metadata_props.extend(kept)
        if device:
            node.metadata_props.add(key=DEVICE, value=device)
        crossing.update((name, None) for name in names_read(node) if made.get(name, device) != device)
        made.update((name, device) for name in node.output)
    told = {value.name for value in (*model.graph.value_info, *model.graph.output)}
    types = {name: term.type for term, name in graph.names.items() if isinstance(term.type, TensorType)}
    model.graph.value_info.extend(
        onnx.ValueInfoProto(name=name, type=proto_of(types[name])) for name in crossing if name in types and name not in told
    )
