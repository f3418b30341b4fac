"""A model whose nodes run on several devices, as a model for each stretch that runs on one of them, in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx

from coset.ir.errors import CosetError
from coset.lowering.onnx.devices import device_of, names_read
from coset.lowering.onnx.write import EXTERNAL_BYTES, SMALL_BYTES

Model = Any  # onnx.ModelProto


@dataclass(frozen=True)
class ModelPart:
    """Nodes that run on one `device` one after the other, as a `model`; the names of the values that it takes and gives."""

    device: str
    model: Model
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def parts_of(model: Model) -> list[ModelPart]:
    """The parts of a model whose nodes say their device, in an order in which each finds its inputs made. Weights that several parts read
    are in each of them.

    Raises:
        CosetError: the type of a value that goes from one part to another is not known.
    """
    stretches = list(_stretches(model))
    made = [[name for node in nodes for name in node.output if name] for _, nodes in stretches]
    reads = [list(dict.fromkeys(name for node in nodes for name in names_read(node))) for _, nodes in stretches]
    stored = {tensor.name: tensor for tensor in model.graph.initializer} | {
        each.values.name: each for each in model.graph.sparse_initializer
    }
    asked = {value.name for value in model.graph.output}
    inputs = [[name for name in names if name not in made[index] and name not in stored] for index, names in enumerate(reads)]
    outputs = [[name for name in names if name in asked.union(*reads[index + 1 :])] for index, names in enumerate(made)]
    outputs[-1] += sorted(asked & stored.keys())  # constants: some part must give them
    types = _types(model, {name for names in (*inputs, *outputs) for name in names if name not in stored})
    found = []
    for index, (device, nodes) in enumerate(stretches):
        part = _part(model, nodes, [types[name] for name in inputs[index]], [types[name] for name in outputs[index]])
        _store(part, [tensor for name, tensor in stored.items() if name in {*reads[index], *outputs[index]}])
        found.append(ModelPart(device, part, tuple(inputs[index]), tuple(outputs[index])))
    return found


def _stretches(model: Model) -> Iterator[tuple[str, list[Any]]]:
    """The nodes by device, in turns: each takes all that can run there with what was made before."""
    left = list(model.graph.node)
    ready = {value.name for value in model.graph.input} | {tensor.name for tensor in model.graph.initializer}
    ready |= {each.values.name for each in model.graph.sparse_initializer}
    if not left:
        yield "", []
    while left:
        device = next(device_of(node) for node in left if ready.issuperset(names_read(node)))
        taken, others = [], []
        for node in left:
            if device_of(node) == device and ready.issuperset(names_read(node)):
                taken.append(node)
                ready.update(node.output)
            else:
                others.append(node)
        yield device, taken
        left = others


def _types(model: Model, wanted: AbstractSet[str]) -> Mapping[str, Any]:
    """The declared types of values, as the model says them or as ONNX infers them.

    Raises:
        CosetError: one of those `wanted` is not known.
    """
    found = {value.name: value for value in (*model.graph.value_info, *model.graph.output, *model.graph.input) if value.HasField("type")}
    if wanted - found.keys():
        inferred = onnx.shape_inference.infer_shapes(_without_weights(model)).graph.value_info
        found = {**{value.name: value for value in inferred}, **found}
    for name in sorted(wanted - found.keys()):
        raise CosetError(f"the type of `{name}`, which goes from one device to another, is not known", help="leave out --split")
    return found


def _without_weights(model: Model) -> Model:
    """The model without the data of its large weights: types do not depend on them, and a message ends at 2 GiB."""
    light = onnx.ModelProto()
    light.CopyFrom(model)
    for tensor in light.graph.initializer:
        if tensor.ByteSize() > SMALL_BYTES:
            name, kind, dims = tensor.name, tensor.data_type, list(tensor.dims)
            tensor.Clear()
            tensor.name, tensor.data_type = name, kind
            tensor.dims.extend(dims)
    return light


def _part(model: Model, nodes: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any]) -> Model:
    """A model of some nodes, with the versions, functions and options of the whole."""
    part = onnx.ModelProto()
    part.ir_version, part.producer_name = model.ir_version, model.producer_name
    part.opset_import.extend(model.opset_import)
    part.functions.extend(model.functions)
    part.metadata_props.extend(model.metadata_props)
    part.graph.name = model.graph.name
    part.graph.node.extend(nodes)
    part.graph.input.extend(inputs)
    part.graph.output.extend(outputs)
    return part


def _store(part: Model, stored: Sequence[Any]) -> None:
    """Add weights."""
    for tensor in stored:
        kept = part.graph.initializer if isinstance(tensor, onnx.TensorProto) else part.graph.sparse_initializer
        kept.append(tensor)


def write_parts(path: Path, folder: Path) -> dict[str, Any]:
    """Write the parts of the model at `path` into `folder`: the files in the order in which they run, each with its device and the names
    of what it takes and gives.

    Raises:
        CosetError: as `parts_of`.
    """
    model = onnx.load(path)
    parts = parts_of(model)
    stored = {tensor.name for tensor in model.graph.initializer}
    order = {
        "parts": [
            {"file": f"{place}-{part.device}.onnx", "device": part.device, "inputs": list(part.inputs), "outputs": list(part.outputs)}
            for place, part in enumerate(parts)
        ],
        "inputs": [value.name for value in model.graph.input if value.name not in stored],
        "outputs": [value.name for value in model.graph.output],
    }
    for part, said in zip(parts, order["parts"], strict=True):
        file = str(said["file"])
        large = part.model.ByteSize() > EXTERNAL_BYTES
        onnx.save(part.model, folder / file, save_as_external_data=large, location=f"{file}.data" if large else None)
    return order
