"""ONNX ops that make tensors of numbers, by the definitions of `generators.rules`; their sizes must be known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from coset.dialects.onnx import ops as onnx_ops
from coset.dialects.onnx.bounds import least
from coset.dialects.onnx.dtypes import DTYPE_OF_CODE
from coset.dialects.onnx.node import Built, Node, constant_elements, definition
from coset.ir.errors import require
from coset.ir.term import make
from coset.ir.types import DType
from coset.rules.defining import defer_definitions

RULES = defer_definitions(Path(__file__).with_name("generators.rules"))
DEFINED_FIRST = onnx_ops  # and what it imports: the definitions mention those ops


@definition("Range")
def _range(node: Node) -> Built:
    """As many elements as lie before the limit; start, limit and delta must be numbers."""
    known = [constant_elements(operand, 1) for operand in node.operands]
    if any(value is None for value in known):
        return None  # as it is built on import
    dtype = node.operands[0].tensor.dtype
    stash = DTYPE_OF_CODE.get(node.attributes.get("stash_type", 1))
    if stash is None or any(operand.tensor.rank for operand in node.operands):
        return None
    start, _, delta = node.operands
    return make("onnx.Range", (start, delta), {"shape": (_count(known, dtype, stash),), "stash": stash})


def _count(known: list[Any], dtype: DType, stash: DType) -> int:
    """max(ceil((limit - start) / delta), 0), of floats in the type that they are computed in."""
    if dtype.kind == "float":
        wide = stash.numpy if dtype.bits < 32 else dtype.numpy
        start, limit, delta = (value.reshape(()).astype(wide) for value in known)
        with np.errstate(all="ignore"):
            count = np.ceil((limit - start) / delta)
        require(bool(np.isfinite(count)), f"a range from {start} to {limit} by {delta} has no end")
        return max(int(count), 0)
    start, limit, delta = (int(value.reshape(())) for value in known)
    require(delta != 0, f"a range from {start} to {limit} by 0 has no end")
    return len(range(start, limit, delta))


@definition("HannWindow", "HammingWindow", "BlackmanWindow")
def _window(node: Node) -> Built:
    """Of the size that the operand says."""
    shape, output = node.dims(0), DTYPE_OF_CODE.get(node.attributes.get("output_datatype", 1))
    if shape is None or len(shape) != 1 or output is None or (least(shape[0]) or 0) < 0:
        return None
    return make(f"onnx.{node.name}", (), {"shape": tuple(shape), "periodic": node.attributes.get("periodic", 1), "output": output})
