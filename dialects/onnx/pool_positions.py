"""The positions that MaxPool gives beside the largest elements, and MaxUnpool, which puts elements back at them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coset.dialects.hub import stablehlo_regions
from coset.dialects.hub.region_terms import region
from coset.dialects.hub.tensors import identity
from coset.dialects.hub.terms import reshape, splat, transpose
from coset.dialects.onnx.arithmetic import both, compare, either, iota, padded, select
from coset.dialects.onnx.indexing import cropped
from coset.dialects.onnx.node import Built, Node, definition
from coset.ir import dims
from coset.ir.dims import Dim
from coset.ir.term import Term, constant, get, make
from coset.ir.types import I64, TensorType

PRIMITIVES = (stablehlo_regions,)  # its ops are made here


def positions(x: Term, *, column_major: bool) -> Term:
    """The flat position of each element of x [n, c, s..]; the spatial dims are counted through from the first one on if `column_major`."""
    shape = x.tensor.dims
    turned = tuple(range(len(shape) - 1, 1, -1)) if column_major else tuple(range(2, len(shape)))
    counted = iota((x.tensor.elements,), 0)
    axes = (0, 1, *turned)
    order = tuple(axes.index(axis) for axis in range(len(shape)))
    return transpose(reshape(counted, tuple(shape[axis] for axis in axes)), order)


def largest_positions(x: Term, places: Term, windows: Mapping[str, Any]) -> Term:
    """The position, as `places` says it, of the largest element of each window, the first one of equals; -1 where a window holds none."""
    ones = (1,) * x.tensor.rank
    value = constant(identity("maximum", x.tensor.dtype), x.tensor.dtype)
    attributes = {
        "window_dimensions": (1, 1, *windows["window"]), "window_strides": (1, 1, *windows["strides"]), "base_dilations": ones,
        "window_dilations": (1, 1, *windows["dilations"]), "padding": ((0, 0), (0, 0), *windows["padding"]),
    }  # fmt: skip
    types = [TensorType(x.tensor.dtype, ()), TensorType(I64, ())]
    body = region([*types, *types], _larger)
    operands = (x, places, value, splat(-1, I64, ()))
    return get(make("stablehlo.reduce_window_region", operands, attributes, (body,)), 1)


def _larger(value: Term, place: Term, other: Term, other_place: Term) -> tuple[Term, Term]:
    """Of two elements with their places the larger one, else the first; a place of -1 is that of no element."""
    takes = either(compare(place, "LT", 0), both(compare(other_place, "GE", 0), compare(other, "GT", value)))
    return select(takes, other, value), select(takes, other_place, place)


@definition("MaxUnpool")
def max_unpool(node: Node) -> Built:
    """Zeros with the elements at their positions in the image that was pooled; `output_shape` puts this image into a larger one."""
    x, indices = node.operands[:2]
    window = node.attributes["kernel_shape"]
    count = len(window)
    strides, pads = node.attributes.get("strides", (1,) * count), node.attributes.get("pads", (0,) * (2 * count))
    if x.tensor.rank != count + 2 or len(strides) != count or len(pads) != 2 * count:
        return None
    shape = [*x.tensor.dims[:2]]
    for axis, (dim, width, stride) in enumerate(zip(x.tensor.dims[2:], window, strides, strict=True)):
        shape.append(dims.add(dims.multiply(dims.subtract(dim, 1), stride), width - pads[axis] - pads[axis + count]))
    flat = (x.tensor.elements,)
    attributes = {
        "update_window_dims": (), "inserted_window_dims": (0,), "input_batching_dims": (), "scatter_indices_batching_dims": (),
        "scatter_dims_to_operand_dims": (0,), "index_vector_dim": 1, "combiner": "second",
    }  # fmt: skip
    empty = splat(0, x.tensor.dtype, (dims.product(shape),))
    image = reshape(make("stablehlo.scatter", (empty, reshape(indices, flat), reshape(x, flat)), attributes), tuple(shape))
    return _placed(image, node.dims(2)) if node.given(2) else image


def _placed(image: Term, shape: list[Dim] | None) -> Term | None:
    """The image at the beginning of a larger one, or the beginning of the image."""
    if shape is None or len(shape) != image.tensor.rank:
        return None
    more = [dims.maximum(dims.subtract(wanted, dim), 0) for wanted, dim in zip(shape, image.tensor.dims, strict=True)]
    return cropped(padded(image, (0,) * len(more), more, 0), tuple(shape))
