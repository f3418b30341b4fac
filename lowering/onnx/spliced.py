"""Other models in the place of single nodes of a model, and its external data beside a copy of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnx

from coset.ir.errors import CosetError

Model = Any  # a message of the `onnx` package
DEFAULT = ("", "ai.onnx")  # domain


def splice(model: Model, parts: Mapping[int, Model]) -> None:
    """Put the nodes of each part in the place of the node of this number in the graph of `model`. The inputs of a part are called
    `x0, x1, ..` as the node's operands, its outputs `y0, y1, ..` as its results.

    Raises:
        CosetError: a part is of another version of ONNX's ops than the model imports.
    """
    nodes = list(model.graph.node)
    taken = {name for node in nodes for name in (*node.input, *node.output)}
    taken |= {value.name for value in (*model.graph.input, *model.graph.output, *model.graph.initializer)}
    del model.graph.node[:]
    for number, node in enumerate(nodes):
        if number in parts:
            _import_as(model, parts[number], node)
            _put(model, parts[number], node, taken)
        else:
            model.graph.node.append(node)


def _import_as(model: Model, part: Model, node: Model) -> None:
    """Import the domains of a part.

    Raises:
        CosetError: as `splice`.
    """
    imported = {"" if each.domain in DEFAULT else each.domain: each.version for each in model.opset_import}
    for entry in part.opset_import:
        version = imported.get(entry.domain)
        if version is None:
            model.opset_import.add(domain=entry.domain, version=entry.version)
        elif not entry.domain and version != entry.version:
            raise CosetError(f"what `{node.op_type}` means needs version {entry.version} of ONNX's ops, the model imports {version}")


def _put(model: Model, part: Model, node: Model, taken: set[str]) -> None:
    """The nodes and constants of a part under names that are not `taken`."""
    names = {f"x{i}": name for i, name in enumerate(node.input)} | {f"y{i}": name for i, name in enumerate(node.output)}
    number = len(taken)
    for name in [*(each.name for each in part.graph.initializer), *(name for each in part.graph.node for name in each.output)]:
        if name not in names:
            while f"{name}_{number}" in taken:
                number += 1
            names[name] = f"{name}_{number}"
    taken.update(names.values())
    for each in part.graph.initializer:
        each.name = names[each.name]
        model.graph.initializer.append(each)
    for each in part.graph.node:
        for side in (each.input, each.output):
            side[:] = [names[name] if name else "" for name in side]
        model.graph.node.append(each)


def link_data(model: Model, source: Path, folder: Path) -> None:
    """Link the files of external data, which lie in `source` or below, into `folder`.

    Raises:
        CosetError: one cannot be linked.
    """
    tensors = [each for each in model.graph.initializer if each.data_location == onnx.TensorProto.EXTERNAL]
    for location in sorted({entry.value for tensor in tensors for entry in tensor.external_data if entry.key == "location"}):
        place = folder / location
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            if not place.exists():
                os.link(source / location, place)
        except OSError as error:
            raise CosetError(f"the data `{location}` cannot be linked: {error.strerror or error}") from None
