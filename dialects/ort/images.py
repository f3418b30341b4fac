"""com.microsoft nodes on images and matrices: crops, pools under a mask, inverses."""

from __future__ import annotations

from collections.abc import Sequence

from coset.dialects.hub.terms import broadcast, convert, reshape
from coset.dialects.onnx import arithmetic as a
from coset.dialects.onnx import indexing as onnx_indexing
from coset.dialects.onnx.loops import scan
from coset.dialects.onnx.node import Built, Node
from coset.dialects.onnx.sampling import Border, sampled
from coset.dialects.onnx.windows import windows_of
from coset.dialects.ort.nodes import accept, contrib
from coset.ir import dims
from coset.ir.dims import Dim
from coset.ir.errors import require
from coset.ir.term import Term, make
from coset.ir.types import F32, F64, I32, I64

PRIMITIVES = (onnx_indexing,)  # Gather is made here


@contrib("CropAndResize")
def _crop_and_resize(node: Node) -> Built:
    """Regions [y1, x1, y2, x2] in units of the image, read at points between their corners; what lies outside is one number."""
    x, regions, images, size = *node.operands[:3], node.dims(3)
    mode = node.attributes.get("mode", "bilinear")
    require(mode in ("bilinear", "nearest") and x.tensor.rank == 4, f"{node.name} is not defined for mode `{mode}` of {x.type}")
    if size is None or len(size) != 2:
        return None
    count = regions.tensor.dims[0]
    shape = (count, *size)
    places = [_between(regions, axis, size[axis], x.tensor.dims[2 + axis]) for axis in (0, 1)]
    rows, columns = (broadcast(place, shape, (0, 1 + axis)) for axis, place in enumerate(places))
    inside = a.both(_in_image(rows, x.tensor.dims[2]), _in_image(columns, x.tensor.dims[3]))
    if mode == "nearest":
        rows, columns = (a.pointwise("floor", a.add(place, 0.5)) for place in (rows, columns))
    own = make("onnx.Gather", (x, images), {"axis": 0})
    found = sampled(own, [rows, columns], "linear" if mode == "bilinear" else "nearest", Border("border", True))
    return a.select(a.unsqueeze(inside, 1), found, node.attributes.get("extrapolation_value", 0.0))


def _between(regions: Term, axis: int, count: Dim, dim: Dim) -> Term:
    """`count` coordinates in pixels from the beginning to the end of each region along an axis; of one, the middle."""
    low, high = (a.multiply(a.picked(regions, 1, axis + end), dims.subtract(dim, 1)) for end in (0, 2))
    if count == 1:
        return a.unsqueeze(a.multiply(a.add(low, high), 0.5), 1)
    step = a.divide(a.subtract(high, low), dims.subtract(count, 1))
    number = a.iota((1, count), 1, F32)
    inner = a.add(a.unsqueeze(low, 1), a.multiply(number, a.unsqueeze(step, 1)))
    return a.select(a.compare(number, "EQ", dims.subtract(count, 1)), a.unsqueeze(high, 1), inner)


def _in_image(place: Term, dim: Dim) -> Term:
    return a.both(a.compare(place, "GE", 0.0), a.compare(place, "LE", dims.subtract(dim, 1)))


# ---------------------------------------------------------------- a pool that stops at masked elements


@contrib("MaxpoolWithMask")
def _masked_pool(node: Node) -> Built:
    """The largest element of each window, where each row of the window ends at the first masked element; one mask for all channels.

    The very first element of an image of two or three dims is never masked: the kernels do not look at it.
    """
    accept(node, storage_order=0)
    x, mask = node.operands
    spatial = x.tensor.dims[2:]
    require(mask.tensor.dims == (1, 1, *spatial), f"{node.name} is defined for one mask, not {mask.type}")
    found = windows_of(node, spatial, node.attributes.get("kernel_shape", ()))
    if found is None:
        return None
    low = (0, 0, *(pair[0] for pair in found.padding))
    high = (0, 0, *(pair[1] for pair in found.padding))
    open_ = convert(a.compare(mask, "NE", 0), I32)
    if len(spatial) > 1:
        first = a.compare(reshape(a.iota((dims.product(spatial),), 0), mask.tensor.dims), "EQ", 0)
        open_ = a.select(first, 1, open_)
    least = -3.4028234663852886e38
    values, kept = a.padded(x, low, high, least), a.padded(open_, low, high, 1)
    last = len(spatial) + 1
    values, kept = (_windows(each, last, found.window[-1], found.strides[-1]) for each in (values, kept))
    reached = _running_product(kept, found.window[-1])
    best = a.fold(a.select(a.compare(reached, "NE", 0), values, least), (last + 1,), "maximum", keep=False)
    for axis in range(len(spatial) - 1):
        best = a.fold(_windows(best, axis + 2, found.window[axis], found.strides[axis]), (axis + 3,), "maximum", keep=False)
    return best


def _windows(x: Term, axis: int, size: Dim, stride: int) -> Term:
    """Windows along `axis`, with their elements as the next dim."""
    count = dims.add(dims.floordiv(dims.subtract(x.tensor.dims[axis], size), stride), 1)
    places = a.add(a.multiply(a.iota((count, size), 0, I64), stride), a.iota((count, size), 1, I64))
    return make("onnx.Gather", (x, places), {"axis": axis})


def _running_product(x: Term, size: Dim) -> Term:
    """The product of the elements up to each one of the last dim."""
    require(isinstance(size, int), "windows under a mask need a known size")
    assert isinstance(size, int)
    columns = [a.take(x, -1, 0, 1)]
    for index in range(1, size):
        columns.append(a.multiply(columns[-1], a.take(x, -1, index, index + 1)))
    return a.concatenate(columns, -1)


# ---------------------------------------------------------------- inverses


@contrib("Inverse")
def _inverse(node: Node) -> Built:
    """Gauss and Jordan's elimination with the largest pivot of each column, in f32 or wider."""
    x = node.operands[0]
    require(x.tensor.rank >= 2, f"{node.name} takes matrices, not {x.type}")
    size, lead = x.tensor.dims[-1], x.tensor.dims[:-2]
    wide = convert(a.sized(x, x.tensor.rank - 2, size), F64 if x.tensor.dtype is F64 else F32)
    batch = dims.product(lead)
    unit = convert(a.compare(a.iota((batch, size, size), 1), "EQ", a.iota((batch, size, size), 2)), wide.tensor.dtype)
    both = a.concatenate((reshape(wide, (batch, size, size)), unit), 2)
    (found,), _ = scan(_eliminated, [both], [], [], size)
    return convert(reshape(a.take(found, 2, size, dims.multiply(2, size)), x.tensor.dims), x.tensor.dtype)


def _eliminated(index: Term, carried: Sequence[Term], _: Sequence[Term], __: Sequence[Term]) -> tuple[list[Term], list[Term]]:
    """Column `index` of the matrices [b, n, 2n] made a column of the unit matrix."""
    (matrix,) = carried
    batch, size, wide = matrix.tensor.dims
    rows, columns = a.iota((batch, size), 1, I32), a.iota((1, 1, wide), 2, I32)
    column = a.fold(a.select(a.compare(columns, "EQ", index), matrix, 0.0), (2,), keep=False)
    magnitude = a.select(a.compare(rows, "GE", index), a.absolute(column), -1.0)
    largest = a.fold(magnitude, (1,), "maximum")
    place = a.fold(a.select(a.compare(magnitude, "EQ", largest), rows, size), (1,), "minimum")
    chosen, own = (a.unsqueeze(a.compare(rows, "EQ", row), 2) for row in (place, index))
    pivot_row, own_row = (a.fold(a.select(row, matrix, 0.0), (1,)) for row in (chosen, own))
    exchanged = a.select(own, pivot_row, a.select(chosen, own_row, matrix))
    share = a.fold(a.select(a.compare(columns, "EQ", index), exchanged, 0.0), (2,))
    pivot = a.fold(a.select(own, share, 0.0), (1,))
    scaled = a.divide(pivot_row, pivot)
    return [a.select(own, scaled, a.subtract(exchanged, a.multiply(share, scaled)))], []
