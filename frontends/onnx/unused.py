"""A model without the initializers that nothing reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx

from coset.frontends.onnx.nodes import used_names


def without_unused(model: str | Path | bytes | Any) -> bytes:
    """The serialized model less the weights that no node, body or output reads; those that are inputs too stay. External data stays where
    it is said to be."""
    if isinstance(model, str | Path):
        found = onnx.load(model, load_external_data=False)
    else:
        found = onnx.ModelProto.FromString(model if isinstance(model, bytes) else model.SerializeToString())
    used = used_names(found.graph) | {value.name for value in found.graph.input}
    kept = [tensor for tensor in found.graph.initializer if tensor.name in used]
    del found.graph.initializer[:]
    found.graph.initializer.extend(kept)
    return bytes(found.SerializeToString())
