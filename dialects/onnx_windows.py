"""ONNX's pools and convolutions: their attributes in numbers, for the definitions in `onnx_windows.rules`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coset.dialects import chlo, onnx_ops, stablehlo, stablehlo_regions
from coset.dialects.hub_terms import broadcast, reshape
from coset.dialects.onnx_node import Built, Node, definition
from coset.dialects.onnx_pool_positions import largest_positions
from coset.ir import dims
from coset.ir.dims import Dim
from coset.ir.term import Term, absent, make
from coset.rules.definition import defer_definitions

PRIMITIVES = (chlo, stablehlo, stablehlo_regions, onnx_ops)  # the definitions mention their ops
RULES = defer_definitions(Path(__file__).with_name("onnx_windows.rules"))
Pairs = tuple[tuple[int, int], ...]


# ---------------------------------------------------------------- windows over the spatial dims


@dataclass(frozen=True)
class Windows:
    """Where windows lie: `padding` as the node says, and what `ceil_mode` adds after it so that the last window fits."""

    window: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    padding: Pairs
    extra: tuple[int, ...]

    @property
    def whole(self) -> Pairs:
        """All padding. Negative numbers at the end cut off what no window reaches."""
        return tuple((low, high + more) for (low, high), more in zip(self.padding, self.extra, strict=True))

    @property
    def attributes(self) -> dict[str, Any]:
        """Those that all ops over windows have."""
        return {"window": self.window, "strides": self.strides, "dilations": self.dilations}


def windows_of(node: Node, spatial: Sequence[Dim], window: Sequence[int]) -> Windows | None:
    """The windows of a node with the usual attributes; None where they are wrong or need numbers of symbolic dims."""
    count = len(window)
    strides = tuple(node.attributes.get("strides", (1,) * count))
    dilations = tuple(node.attributes.get("dilations", (1,) * count))
    if not count == len(spatial) == len(strides) == len(dilations) or any(s < 1 for s in (*window, *strides, *dilations)):
        return None
    reaches = [(k - 1) * d + 1 for k, d in zip(window, dilations, strict=True)]
    padding = padding_of(node, spatial, reaches, strides)
    if padding is None:
        return None
    extra = (0,) * count
    if node.attributes.get("ceil_mode", 0) and node.attributes.get("auto_pad", "NOTSET") in ("NOTSET", ""):
        found = [_ceiled(*row) for row in zip(spatial, padding, reaches, strides, strict=True)]
        extra = tuple(more for more in found if more is not None)
    return Windows(tuple(window), strides, dilations, padding, extra) if len(extra) == count else None


def padding_of(node: Node, spatial: Sequence[Dim], reaches: Sequence[int], strides: Sequence[int]) -> Pairs | None:
    """`pads` or `auto_pad` as (low, high) pairs; SAME needs static dims, unless every stride is 1."""
    mode = node.attributes.get("auto_pad", "NOTSET") or "NOTSET"
    count = len(reaches)
    if mode == "NOTSET":
        pads = tuple(node.attributes.get("pads", (0,) * (2 * count)))
        return tuple(zip(pads[:count], pads[count:], strict=True)) if len(pads) == 2 * count else None
    if mode == "VALID":
        return ((0, 0),) * count
    result = []
    for dim, reach, stride in zip(spatial, reaches, strides, strict=True):
        if stride == 1:
            total = reach - 1
        elif isinstance(dim, int):
            total = max((-(-dim // stride) - 1) * stride + reach - dim, 0)
        else:
            return None
        small, large = total // 2, total - total // 2
        result.append((small, large) if mode == "SAME_UPPER" else (large, small))
    return tuple(result)


def _ceiled(dim: Dim, padding: tuple[int, int], reach: int, stride: int) -> int | None:
    """How much padding makes the last window fit that does not fit whole; a window that would start behind the element before the
    padding at the end is none."""
    if not isinstance(dim, int):
        return 0 if stride == 1 else None
    low, high = padding
    count = -(-(dim + low + high - reach) // stride) + 1
    if (count - 1) * stride >= dim + low:
        count -= 1
    return (count - 1) * stride + reach - (dim + low + high)


# ---------------------------------------------------------------- pools


def _pool_windows(node: Node) -> Windows | None:
    x = node.operands[0]
    window = node.attributes.get("kernel_shape", ())
    return windows_of(node, x.tensor.dims[2:], window) if x.tensor.rank >= 3 else None


@definition("MaxPool")
def max_pool(node: Node) -> Built:
    """The largest element of each window, and where it stands."""
    found = _pool_windows(node)
    if found is None:
        return None
    pooled = make("onnx.MaxPool", node.operands[:1], {**found.attributes, "padding": found.whole})
    if node.results == 1:
        return pooled
    return pooled, largest_positions(node.operands[0], found, column_major=bool(node.attributes.get("storage_order", 0)))


@definition("AveragePool")
def average_pool(node: Node) -> Built:
    """What `ceil_mode` adds is never counted, the padding itself with `count_include_pad`."""
    found = _pool_windows(node)
    if found is None:
        return None
    inside = node.attributes.get("count_include_pad", 0)
    counted = found.padding if inside else ((0, 0),) * len(found.window)
    uncounted = tuple((0, more) for more in found.extra) if inside else found.whole
    return make("onnx.AveragePool", node.operands, {**found.attributes, "counted": counted, "uncounted": uncounted})


@definition("LpPool")
def lp_pool(node: Node) -> Built:
    """The p-norm of each window; since version 2 p is an integer."""
    found = _pool_windows(node)
    if found is None or node.since < 2:
        return None
    return make("onnx.LpPool", node.operands, {**found.attributes, "padding": found.whole, "p": node.attributes.get("p", 2)})


@definition("GlobalMaxPool")
def global_max_pool(node: Node) -> Built:
    """The maximum over the spatial dims."""
    return make("onnx.GlobalMaxPool", node.operands)


@definition("GlobalLpPool")
def global_lp_pool(node: Node) -> Built:
    """The p-norm over the spatial dims; since version 2 p is an integer."""
    return make("onnx.GlobalLpPool", node.operands, {"p": node.attributes.get("p", 2)}) if node.since >= 2 else None


# ---------------------------------------------------------------- convolutions


def _filter_windows(node: Node, x: Term, w: Term) -> Windows | None:
    """The windows of a convolution."""
    window = _filter_size(node, x, w)
    return None if window is None else windows_of(node, x.tensor.dims[2:], window)


def _filter_size(node: Node, x: Term, w: Term) -> tuple[int, ...] | None:
    """The spatial dims of the filters, which are static and as `kernel_shape` says, if it does."""
    window = _integers(w.tensor.dims[2:])
    if window is None or x.tensor.rank < 3 or x.tensor.rank != w.tensor.rank:
        return None
    return window if tuple(node.attributes.get("kernel_shape", window)) == window else None


def _integers(shape: Sequence[Dim]) -> tuple[int, ...] | None:
    found = tuple(dim for dim in shape if isinstance(dim, int))
    return found if len(found) == len(shape) else None


def _convolution_attributes(node: Node, found: Windows) -> dict[str, Any]:
    return {"strides": found.strides, "dilations": found.dilations, "group": node.attributes.get("group", 1), "padding": found.padding}


@definition("Conv")
def conv(node: Node) -> Built:
    """The convolution of any element type and any padding."""
    found = _filter_windows(node, *node.operands[:2])
    if found is None:
        return None
    return make("onnx.Conv", (*node.operands[:2], node.operand(2) or absent()), _convolution_attributes(node, found))


@definition("ConvInteger")
def conv_integer(node: Node) -> Built:
    """A zero point of the filters for all of them is repeated for each."""
    x, w = node.operands[:2]
    found = _filter_windows(node, x, w)
    if found is None:
        return None
    x_zero, w_zero = node.operand(2), node.operand(3)
    channels = w.tensor.dims[:1]
    if w_zero is not None and w_zero.tensor.shape != channels:
        w_zero = broadcast(reshape(w_zero, ()), channels, ())
    zeros = (absent() if x_zero is None else reshape(x_zero, ()), w_zero or absent())
    return make("onnx.ConvInteger", (x, w, *zeros), _convolution_attributes(node, found))


@definition("ConvTranspose")
def conv_transpose(node: Node) -> Built:
    """Padding of the convolution that it is: `output_shape` goes before `auto_pad`, and both before `pads`."""
    x, w = node.operands[:2]
    window = _filter_size(node, x, w)
    if window is None:
        return None
    count = len(window)
    strides, dilations = (tuple(node.attributes.get(key, (1,) * count)) for key in ("strides", "dilations"))
    reaches = [(k - 1) * d for k, d in zip(window, dilations, strict=True)]
    pads = _transposed_padding(node, x.tensor.dims[2:], reaches, strides)
    if pads is None:
        return None
    after = node.attributes.get("output_padding", (0,) * count)
    padding = tuple((reach - low, reach - high + more) for reach, (low, high), more in zip(reaches, pads, after, strict=True))
    attributes = {"strides": strides, "dilations": dilations, "group": node.attributes.get("group", 1), "padding": padding}
    return make("onnx.ConvTranspose", (x, w, node.operand(2) or absent()), attributes)


def _transposed_padding(node: Node, spatial: Sequence[Dim], reaches: Sequence[int], strides: Sequence[int]) -> Pairs | None:
    """What is cut off the full result at both ends of each dim."""
    mode = node.attributes.get("auto_pad", "NOTSET") or "NOTSET"
    count = len(reaches)
    shape = node.attributes.get("output_shape")
    if shape is None and mode in ("NOTSET", "VALID"):
        pads = tuple(node.attributes.get("pads", (0,) * (2 * count))) if mode == "NOTSET" else (0,) * (2 * count)
        return tuple(zip(pads[:count], pads[count:], strict=True)) if len(pads) == 2 * count else None
    after = node.attributes.get("output_padding", (0,) * count)
    shape = tuple(shape)[-count:] if shape is not None else tuple(dims.multiply(dim, s) for dim, s in zip(spatial, strides, strict=True))
    result = []
    for dim, reach, stride, more, wanted in zip(spatial, reaches, strides, after, shape, strict=True):
        full = dims.add(dims.multiply(stride, dims.subtract(dim, 1)), more + reach + 1)
        total = dims.subtract(full, wanted)
        if not isinstance(total, int):
            return None
        small, large = total // 2, total - total // 2
        result.append((small, large) if mode == "SAME_UPPER" else (large, small))
    return tuple(result)


@definition("Col2Im")
def col_to_image(node: Node) -> Built:
    """The image is as large as the second operand says, which must be known."""
    x, image, block = node.operands[0], node.ints(1), node.ints(2)
    if image is None or block is None or len(image) != len(block) or x.tensor.rank != 3:
        return None
    found = windows_of(node, image, block)
    if found is None:
        return None
    reaches = [(k - 1) * d for k, d in zip(found.window, found.dilations, strict=True)]
    sizes = [dim + low + high - reach - 1 for dim, (low, high), reach in zip(image, found.padding, reaches, strict=True)]
    counts = tuple(size // stride + 1 for size, stride in zip(sizes, found.strides, strict=True))
    # where the last block ends before the image (and its padding) does, the rest is zero: more padding of the convolution
    rests = [size % stride for size, stride in zip(sizes, found.strides, strict=True)]
    padding = tuple((r - low, r - high + rest) for r, (low, high), rest in zip(reaches, found.padding, rests, strict=True))
    attributes = {"image": tuple(image), "block": tuple(block), "strides": found.strides, "dilations": found.dilations}
    return make("onnx.Col2Im", (x,), {**attributes, "counts": counts, "padding": padding})
