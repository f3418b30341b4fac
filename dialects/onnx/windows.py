"""ONNX's pools and convolutions: their attributes in numbers, for the definitions in `windows.rules`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from coset.dialects.hub import chlo, stablehlo, stablehlo_regions
from coset.dialects.hub.tensors import identity
from coset.dialects.hub.terms import reshape, splat
from coset.dialects.onnx import ops as onnx_ops
from coset.dialects.onnx.arithmetic import Number, divide, padded, sized
from coset.dialects.onnx.node import Built, Node, definition
from coset.dialects.onnx.pool_positions import largest_positions, positions
from coset.ir import dims
from coset.ir.builtin import absent
from coset.ir.dims import Dim, Poly
from coset.ir.term import Term, constant, make
from coset.rules.defining import defer_definitions

PRIMITIVES = (chlo, stablehlo, stablehlo_regions, onnx_ops)  # the definitions mention their ops
RULES = defer_definitions(Path(__file__).with_name("windows.rules"))
Pairs = tuple[tuple[Dim, Dim], ...]


# ---------------------------------------------------------------- windows over the spatial dims


@dataclass(frozen=True)
class Windows:
    """Where windows lie: `padding` as the node says, and what `ceil_mode` adds after it so that the last window fits."""

    window: tuple[Dim, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    padding: Pairs
    extra: tuple[Dim, ...]

    @property
    def whole(self) -> Pairs:
        """All padding. Negative numbers at the end cut off what no window reaches."""
        return tuple((low, dims.add(high, more)) for (low, high), more in zip(self.padding, self.extra, strict=True))

    @property
    def attributes(self) -> dict[str, Any]:
        """Those that all ops over windows have."""
        return {"window": self.window, "strides": self.strides, "dilations": self.dilations}


def windows_of(node: Node, spatial: Sequence[Dim], window: Sequence[Dim]) -> Windows | None:
    """The windows of a node with the usual attributes; None where they are wrong."""
    count = len(window)
    strides = tuple(node.attributes.get("strides", (1,) * count))
    dilations = tuple(node.attributes.get("dilations", (1,) * count))
    sizes = (*window, *strides, *dilations)
    if not count == len(spatial) == len(strides) == len(dilations) or any(isinstance(s, int) and s < 1 for s in sizes):
        return None
    reaches = [dims.add(reach, 1) for reach in _reaches(window, dilations)]
    padding = padding_of(node, spatial, reaches, strides)
    if padding is None:
        return None
    extra: tuple[Dim, ...] = (0,) * count
    if node.attributes.get("ceil_mode", 0) and not _mode(node):
        extra = tuple(_ceiled(*row) for row in zip(spatial, padding, reaches, strides, strict=True))
    return Windows(tuple(window), strides, dilations, padding, extra)


def _reaches(window: Sequence[Dim], dilations: Sequence[int]) -> list[Dim]:
    """How far the last element of each window is from its first."""
    return [dims.multiply(dims.subtract(k, 1), d) for k, d in zip(window, dilations, strict=True)]


def _mode(node: Node) -> str:
    """`auto_pad`, or nothing where the padding is said in numbers."""
    mode = str(node.attributes.get("auto_pad", ""))
    return "" if mode == "NOTSET" else mode


def padding_of(node: Node, spatial: Sequence[Dim], reaches: Sequence[Dim], strides: Sequence[int]) -> Pairs | None:
    """`pads` or `auto_pad` as (low, high) pairs; those of SAME depend on the dims, unless the stride is 1."""
    mode, count = _mode(node), len(reaches)
    if not mode:
        pads = tuple(node.attributes.get("pads", (0,) * (2 * count)))
        return tuple(zip(pads[:count], pads[count:], strict=True)) if len(pads) == 2 * count else None
    if mode == "VALID":
        return ((0, 0),) * count
    result = []
    for dim, reach, stride in zip(spatial, reaches, strides, strict=True):
        if stride == 1:
            total = dims.subtract(reach, 1)
        else:
            last = dims.multiply(dims.subtract(dims.ceildiv(dim, stride), 1), stride)
            total = dims.maximum(dims.subtract(dims.add(last, reach), dim), 0)
        result.append(_halves(total, mode))
    return tuple(result)


def _halves(total: Dim, mode: str) -> tuple[Dim, Dim]:
    """Padding shared by both ends, the larger half after with SAME_UPPER."""
    small = dims.floordiv(total, 2)
    large = dims.subtract(total, small)
    return (small, large) if mode == "SAME_UPPER" else (large, small)


def _outside(x: Term, padding: Pairs, value: Number) -> tuple[Term, tuple[tuple[int, int], ...]]:
    """`x` and the padding that windows over it have in numbers; one that depends on symbols is put around x instead, as `value`."""
    numbers = tuple((low, high) for low, high in padding if isinstance(low, int) and isinstance(high, int))
    if len(numbers) == len(padding):
        return x, numbers
    low, high = ((0, 0, *(pair[end] for pair in padding)) for end in (0, 1))
    return padded(x, low, high, value), ((0, 0),) * len(padding)


def _counted(node: Node, windows: Windows, spatial: Sequence[Dim], result: Term) -> Term:
    """The result with dims that say what SAME means: dim / stride, rounded up."""
    if not _mode(node).startswith("SAME"):
        return result
    counts = (dims.ceildiv(dim, stride) for dim, stride in zip(spatial, windows.strides, strict=True))
    return reshape(result, (*result.tensor.dims[:2], *counts))


def _ceiled(dim: Dim, padding: tuple[Dim, Dim], reach: Dim, stride: int) -> Dim:
    """How much padding makes the last window fit that does not fit whole; a window that would start behind the element before the
    padding at the end is none."""
    before = dims.add(dim, padding[0])
    whole = dims.add(before, padding[1])
    last = dims.ceildiv(dims.subtract(whole, reach), stride)
    if stride > 1:
        last = dims.minimum(last, dims.maximum(dims.subtract(last, 1), dims.subtract(dims.ceildiv(before, stride), 1)))
    return dims.subtract(dims.add(dims.multiply(last, stride), reach), whole)


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
    x = node.operands[0]
    spatial = x.tensor.dims[2:]
    around, padding = _outside(x, found.whole, constant(identity("maximum", x.tensor.dtype), x.tensor.dtype))
    pooled = _counted(node, found, spatial, make("onnx.MaxPool", (around,), {**found.attributes, "padding": padding}))
    if node.results == 1:
        return pooled
    places, _ = _outside(positions(x, column_major=bool(node.attributes.get("storage_order", 0))), found.whole, -1)
    return pooled, _counted(node, found, spatial, largest_positions(around, places, {**found.attributes, "padding": padding}))


@definition("AveragePool")
def average_pool(node: Node) -> Built:
    """What `ceil_mode` adds is never counted, the padding itself with `count_include_pad`."""
    found = _pool_windows(node)
    if found is None:
        return None
    x = node.operands[0]
    inside = node.attributes.get("count_include_pad", 0)
    nothing: Pairs = ((0, 0),) * len(found.window)
    counted = found.padding if inside else nothing
    uncounted = tuple((0, more) for more in found.extra) if inside else found.whole
    if not any(isinstance(width, Poly) for pair in (*counted, *uncounted) for width in pair):
        return make("onnx.AveragePool", (x,), {**found.attributes, "counted": counted, "uncounted": uncounted})
    spatial = [dims.add(dim, dims.add(*pair)) for dim, pair in zip(x.tensor.dims[2:], counted, strict=True)]
    ones, _ = _outside(splat(1, x.tensor.dtype, (1, 1, *spatial)), uncounted, 0)
    around, _ = _outside(x, found.whole, 0)
    sums, numbers = (make("part.window_sum", (each,), {**found.attributes, "padding": nothing}) for each in (around, ones))
    return _counted(node, found, x.tensor.dims[2:], divide(sums, numbers))


@definition("LpPool")
def lp_pool(node: Node) -> Built:
    """The p-norm of each window; since version 2 p is an integer."""
    found = _pool_windows(node)
    if found is None or node.since < 2:
        return None
    x, padding = _outside(node.operands[0], found.whole, 0)
    pooled = make("onnx.LpPool", (x,), {**found.attributes, "padding": padding, "p": node.attributes.get("p", 2)})
    return _counted(node, found, node.operands[0].tensor.dims[2:], pooled)


@definition("GlobalMaxPool")
def global_max_pool(node: Node) -> Built:
    """The maximum over the spatial dims."""
    return make("onnx.GlobalMaxPool", node.operands)


@definition("GlobalLpPool")
def global_lp_pool(node: Node) -> Built:
    """The p-norm over the spatial dims; since version 2 p is an integer."""
    return make("onnx.GlobalLpPool", node.operands, {"p": node.attributes.get("p", 2)}) if node.since >= 2 else None


# ---------------------------------------------------------------- convolutions


def _filter_size(node: Node, x: Term, w: Term) -> tuple[Dim, ...] | None:
    """The spatial dims of the filters: as `kernel_shape` says, if it does."""
    window = w.tensor.dims[2:]
    if x.tensor.rank < 3 or x.tensor.rank != w.tensor.rank:
        return None
    given = tuple(node.attributes.get("kernel_shape", window))
    fits = len(given) == len(window) and all(a == b or not isinstance(b, int) for a, b in zip(given, window, strict=True))
    return window if fits else None


def convolved(node: Node, x: Term, w: Term, around: Number, build: Callable[[Term, dict[str, Any]], Term]) -> Term | None:
    """What `build` makes of x, with as many channels as the filters have, and the attributes of the convolution. Padding that depends on
    symbols is put around x before, as elements `around`."""
    window = _filter_size(node, x, w)
    found = None if window is None else windows_of(node, x.tensor.dims[2:], window)
    if found is None:
        return None
    group = node.attributes.get("group", 1)
    wide, padding = _outside(sized(x, 1, dims.multiply(w.tensor.dims[1], group)), found.padding, around)
    attributes = {"strides": found.strides, "dilations": found.dilations, "group": group, "padding": padding}
    return _counted(node, found, x.tensor.dims[2:], build(wide, attributes))


@definition("Conv")
def conv(node: Node) -> Built:
    """The convolution of any element type and any padding."""
    x, w = node.operands[:2]
    return convolved(node, x, w, 0, lambda wide, given: make("onnx.Conv", (wide, w, _bias(node, w.tensor.dims[0])), given))


def _bias(node: Node, channels: Dim) -> Term:
    bias = node.operand(2)
    return absent() if bias is None else sized(bias, 0, channels)


@definition("ConvTranspose")
def conv_transpose(node: Node) -> Built:
    """Padding of the convolution that it is: `output_shape` goes before `auto_pad`, and both before `pads`."""
    x, w = node.operands[:2]
    window = _filter_size(node, x, w)
    if window is None:
        return None
    count = len(window)
    strides, dilations = (tuple(node.attributes.get(key, (1,) * count)) for key in ("strides", "dilations"))
    reaches = _reaches(window, dilations)
    pads = _transposed_padding(node, x.tensor.dims[2:], reaches, strides)
    if pads is None:
        return None
    after = node.attributes.get("output_padding", (0,) * count)
    padding = tuple(
        (dims.subtract(reach, low), dims.add(dims.subtract(reach, high), more))
        for reach, (low, high), more in zip(reaches, pads, after, strict=True)
    )
    group = node.attributes.get("group", 1)
    bias = _bias(node, dims.multiply(w.tensor.dims[1], group))
    x = sized(x, 1, dims.multiply(dims.floordiv(w.tensor.dims[0], group), group))
    if any(isinstance(width, Poly) for pair in padding for width in pair):
        low, high = ((0, 0, *(pair[end] for pair in padding)) for end in (0, 1))
        x, strides = padded(x, low, high, 0, (0, 0, *(stride - 1 for stride in strides))), (1,) * count
        padding = ((0, 0),) * count
    attributes = {"strides": strides, "dilations": dilations, "group": group, "padding": padding}
    return make("onnx.ConvTranspose", (x, w, bias), attributes)


def _transposed_padding(node: Node, spatial: Sequence[Dim], reaches: Sequence[Dim], strides: Sequence[int]) -> Pairs | None:
    """What is cut off the full result at both ends of each dim."""
    mode, count = _mode(node), len(reaches)
    shape = node.attributes.get("output_shape")
    if shape is None and mode in ("", "VALID"):
        pads = tuple(node.attributes.get("pads", (0,) * (2 * count))) if not mode else (0,) * (2 * count)
        return tuple(zip(pads[:count], pads[count:], strict=True)) if len(pads) == 2 * count else None
    after = node.attributes.get("output_padding", (0,) * count)
    shape = tuple(shape)[-count:] if shape is not None else tuple(dims.multiply(dim, s) for dim, s in zip(spatial, strides, strict=True))
    result = []
    for dim, reach, stride, more, wanted in zip(spatial, reaches, strides, after, shape, strict=True):
        full = dims.add(dims.multiply(stride, dims.subtract(dim, 1)), dims.add(reach, more + 1))
        result.append(_halves(dims.subtract(full, wanted), mode))
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
    before, after = ([dims.evaluate(pair[end], {}) for pair in found.padding] for end in (0, 1))
    reaches = [(k - 1) * d for k, d in zip(block, found.dilations, strict=True)]
    sizes = [dim + low + high - reach - 1 for dim, low, high, reach in zip(image, before, after, reaches, strict=True)]
    counts = tuple(size // stride + 1 for size, stride in zip(sizes, found.strides, strict=True))
    # where the last block ends before the image (and its padding) does, the rest is zero: more padding of the convolution
    rests = [size % stride for size, stride in zip(sizes, found.strides, strict=True)]
    padding = tuple((r - low, r - high + rest) for r, low, high, rest in zip(reaches, before, after, rests, strict=True))
    attributes = {"image": tuple(image), "block": tuple(block), "strides": found.strides, "dilations": found.dilations}
    return make("onnx.Col2Im", (sized(x, 2, prod(counts)),), {**attributes, "counts": counts, "padding": padding})
