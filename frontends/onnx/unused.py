"""A model without the initializers that nothing reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from coset.frontends.onnx.nodes import used_names
from coset.frontends.onnx.tensors import copy_of


def without_unused(model: str | Path | bytes | Any) -> bytes:
    """The serialized model less the weights that no node, body or output reads; those that are inputs too stay. External data stays where
    it is said to be."""
    found = copy_of(model)
    used = used_names(found.graph) | {value.name for value in found.graph.input}
    kept = [tensor for tensor in found.graph.initializer if tensor.name in used]
    del found.graph.initializer[:]
    found.graph.initializer.extend(kept)
    return bytes(found.SerializeToString())
