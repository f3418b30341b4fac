"""The ops of com.microsoft that ONNX has too, or had: what differs is the form of their operands, defaults, and where the channels are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from coset.dialects.hub.terms import literal, reshape, transpose
from coset.dialects.onnx import arithmetic as a
from coset.dialects.onnx import indexing as onnx_indexing
from coset.dialects.onnx.bounds import least
from coset.dialects.onnx.node import Built, Node, axis_of, define
from coset.dialects.ort.nodes import as_standard, channels_first, channels_last, contrib, number
from coset.ir import dims
from coset.ir.errors import require
from coset.ir.term import make
from coset.ir.types import I64

PRIMITIVES = (onnx_indexing,)  # Gather is used here


@contrib("GatherND", "GridSample", "Trilu", "QuantizeLinear", "DequantizeLinear")
def _same(node: Node) -> Built:
    """Of the same operands and attributes."""
    return as_standard(node, node.name.rpartition(".")[2])


@contrib("SampleOp")
def _identity(node: Node) -> Built:
    return node.operands[0]


@contrib("ExpandDims")
def _expand_dims(node: Node) -> Built:
    """A dim of 1 at the axis of the result that the operand says."""
    x, axes = node.operands[0], node.ints(1)
    axis = axis_of(axes[0], x.tensor.rank + 1) if axes and len(axes) == 1 else None
    return None if axis is None else a.unsqueeze(x, axis)


@contrib("Pad")
def _pad(node: Node) -> Built:
    """The numbers may be written as one row of a matrix, the value as a vector of one."""
    x, pads = node.operands[:2]
    value = node.operand(2)
    vector = reshape(pads, (pads.tensor.elements,))
    operands = (x, vector, *(() if value is None else (number(value),)))
    host = tuple(None if shown is None else shown.reshape(-1) if i == 1 else shown for i, shown in enumerate(node.host))
    return define(replace(node, name="Pad", operands=operands, host=host, since=13))


@contrib("Range")
def _range(node: Node) -> Built:
    """Numbers may be vectors of one; the step is 1 where none is given."""
    start, limit = node.operands[:2]
    delta = node.operand(2) or literal(np.array(1, start.tensor.dtype.numpy))
    return define(replace(node, name="Range", operands=tuple(map(number, (start, limit, delta))), host=(None,) * 3, since=11))


@contrib("Unique")
def _unique(node: Node) -> Built:
    """The different elements as they come first, the class of each, and how many there are of each."""
    found = as_standard(node, "Unique", sorted=0)
    assert isinstance(found, tuple)
    return found[0], found[2], found[3]


@contrib("UnfoldTensor")
def _unfold(node: Node) -> Built:
    """Windows of `size` elements along a dim, `step` apart, as a new last dim."""
    x, size, step = node.operands[0], node.attributes["size"], node.attributes.get("step", 1)
    axis = axis_of(node.attributes.get("dim", -1), x.tensor.rank)
    require(axis is not None and size > 0 and step > 0, f"UnfoldTensor cannot take windows of {size} by {step} of {x.type}")
    assert axis is not None
    room = dims.subtract(x.tensor.dims[axis], size)
    require((least(room) or 0) >= 0, f"a window of {size} is longer than dim {axis} of {x.type}")
    count = dims.add(dims.floordiv(room, step), 1)
    places = a.add(a.multiply(a.iota((count, size), 0, I64), step), a.iota((count, size), 1, I64))
    windows = make("onnx.Gather", (x, places), {"axis": axis})
    order = [i for i in range(windows.tensor.rank) if i != axis + 1]
    return transpose(windows, (*order, axis + 1))


@contrib("ConvTransposeWithDynamicPads")
def _transposed_convolution(node: Node) -> Built:
    """The padding is an operand, which must be known."""
    pads = node.ints(2) if node.given(2) else None
    if pads is None and node.given(2):
        return None
    x, w, bias = node.operands[0], node.operands[1], node.operand(3)
    operands = (x, w) if bias is None else (x, w, bias)
    attributes = node.attributes if pads is None else {**node.attributes, "pads": tuple(pads)}
    return define(replace(node, name="ConvTranspose", operands=operands, host=(None,) * len(operands), attributes=attributes, since=11))


@contrib("NhwcMaxPool")
def _pool_channels_last(node: Node) -> Built:
    """MaxPool of images with the channels in the last dim."""
    pooled = as_standard(replace(node, operands=(channels_first(node.operands[0]),), results=1), "MaxPool")
    return None if pooled is None else channels_last(pooled[0] if isinstance(pooled, tuple) else pooled)
