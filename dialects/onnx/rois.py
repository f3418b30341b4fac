"""ONNX's pools over regions of interest: RoiAlign, which reads between the pixels, and MaxRoiPool."""

from __future__ import annotations

from math import ceil

import numpy as np

from coset.dialects.hub.terms import broadcast, convert, dot, splat
from coset.dialects.onnx.arithmetic import (
    add,
    both,
    clamp,
    compare,
    concatenate,
    divide,
    fold,
    iota,
    maximum,
    minimum,
    multiply,
    picked,
    pointwise,
    select,
    subtract,
    unsqueeze,
)
from coset.dialects.onnx.node import Built, Node, constant_elements, definition
from coset.dialects.onnx.sampling import compute_dtype
from coset.ir import dims
from coset.ir.dims import Dim
from coset.ir.errors import require
from coset.ir.term import Term, make
from coset.ir.types import I64, DType

_MOST_NUMBERS = 1 << 12  # of regions whose sizes decide how many samples are taken


# ---------------------------------------------------------------- RoiAlign


class _Samples:
    """Along one axis of an image of size `dim`: the coordinates [r, bins, samples] at which each region is read, how many of
    the samples count (a term [r, 1, 1] or a number), and which lie in the image."""

    def __init__(self, start: Term, end: Term, dim: Dim, bins: int, ratio: int, most: int, *, half_pixel: bool) -> None:
        length = subtract(end, start)
        length = unsqueeze(length if half_pixel else maximum(length, 1), 1, 2)
        size = divide(length, bins)
        shape = (start.tensor.dims[0], bins, most)
        dtype = start.tensor.dtype
        self.count: Term = splat(ratio, dtype, (shape[0], 1, 1)) if ratio > 0 else pointwise("ceil", size)
        bin_start = add(unsqueeze(start, 1, 2), multiply(iota(shape, 1, dtype), size))
        inner = divide(multiply(add(iota(shape, 2, dtype), 0.5), size), self.count)
        place = add(bin_start, inner)
        self.used = compare(iota(shape, 2, dtype), "LT", self.count)
        self.inside = both(self.used, both(compare(place, "GE", -1), compare(place, "LE", dim)))
        self.place = clamp(place, 0, dims.subtract(dim, 1))
        self.dim = dim

    def weights(self) -> Term:
        """[r, bins, dim]: the sum over the samples of the triangle at each pixel; samples outside count for nothing."""
        shape = (*self.place.tensor.dims, self.dim)
        distance = pointwise("abs", subtract(iota(shape, 3, self.place.tensor.dtype), unsqueeze(self.place, -1)))
        triangle = maximum(subtract(1, distance), 0)
        return fold(select(unsqueeze(self.inside, -1), triangle, 0), (2,), keep=False)

    def corners(self) -> list[tuple[Term, Term]]:
        """The two pixels around each sample and their weights; the same pixel twice at the end of the axis."""
        whole = pointwise("floor", self.place)
        part = subtract(self.place, whole)
        last = dims.subtract(self.dim, 1)
        return [(whole, subtract(1, part)), (clamp(add(whole, 1), 0, last), part)]


@definition("RoiAlign")
def roi_align(node: Node) -> Built:
    """The mean or the maximum of samples in each bin of each region. Where `sampling_ratio` leaves their number to the sizes of the
    regions, these must be known."""
    x, rois, batch = node.operands
    require(x.tensor.rank == 4 and rois.tensor.rank == 2, f"RoiAlign takes images of rank 4 and rows of corners, not {x.type}, {rois.type}")
    half = node.attributes.get("coordinate_transformation_mode", "half_pixel" if node.since >= 16 else "output_half_pixel") == "half_pixel"
    bins = node.attributes.get("output_height", 1), node.attributes.get("output_width", 1)
    ratio, scale = node.attributes.get("sampling_ratio", 0), node.attributes.get("spatial_scale", 1.0)
    mode = node.attributes.get("mode", "avg")
    most = (ratio, ratio) if ratio > 0 else _most_samples(rois, scale, bins, half_pixel=half)
    shape = (rois.tensor.dims[0], x.tensor.dims[1], *bins)
    if most is None or mode not in ("avg", "max"):
        return None
    if 0 in shape or 0 in most:
        return splat(0, x.tensor.dtype, shape)
    dtype = compute_dtype(x.tensor.dtype)
    corners = [subtract(multiply(convert(picked(rois, 1, i), dtype), scale), 0.5 if half else 0.0) for i in range(4)]
    across, down = (
        _Samples(corners[i], corners[i + 2], x.tensor.dims[3 - i], bins[1 - i], ratio, most[1 - i], half_pixel=half) for i in (0, 1)
    )
    images = convert(make("onnx.Gather", (x, convert(batch, I64)), {"axis": 0}), dtype)
    result = _mean(images, down, across) if mode == "avg" else _largest(images, down, across)
    return convert(result, x.tensor.dtype)


def _most_samples(rois: Term, scale: float, bins: tuple[int, int], *, half_pixel: bool) -> tuple[int, int] | None:
    """The largest number of samples in a bin of any region, down and across."""
    known = constant_elements(rois, _MOST_NUMBERS)
    if known is None:
        return None
    ends = known.astype(np.float32).reshape(-1, 4) * np.float32(scale)
    sizes = ends[:, 2:] - ends[:, :2]
    sizes = sizes if half_pixel else np.maximum(sizes, 1)
    across, down = (max([0, *(ceil(size / count) for size in sizes[:, i])]) for i, count in ((0, bins[1]), (1, bins[0])))
    return down, across


def _mean(images: Term, down: _Samples, across: _Samples) -> Term:
    """The weights are products of those of the axes: rows, then columns, divided by the number of samples."""
    rows = dot(down.weights(), images, lhs_batch=(0,), rhs_batch=(0,), lhs_contract=(2,), rhs_contract=(2,))  # [r, bins, c, w]
    bins = dot(rows, across.weights(), lhs_batch=(0,), rhs_batch=(0,), lhs_contract=(3,), rhs_contract=(2,))  # [r, bins, c, bins]
    sums = make("stablehlo.transpose", (bins,), {"permutation": (0, 2, 1, 3)})
    return divide(sums, unsqueeze(maximum(multiply(down.count, across.count), 1), 1))


def _largest(images: Term, down: _Samples, across: _Samples) -> Term:
    """The largest of the four pixels around each sample, each times its weight; 0 for a sample outside."""
    shape = (*down.place.tensor.dims, *across.place.tensor.dims[1:])  # [r, bins, samples, bins, samples]
    best: Term | None = None
    for row, row_weight in down.corners():
        for column, column_weight in across.corners():
            whole = broadcast(convert(row, I64), shape, (0, 1, 2)), broadcast(convert(column, I64), shape, (0, 3, 4))
            pixels = make("part.pixels", (images, concatenate([unsqueeze(part, -1) for part in whole], -1)))
            weight = multiply(broadcast(row_weight, shape, (0, 1, 2)), broadcast(column_weight, shape, (0, 3, 4)))
            value = multiply(pixels, unsqueeze(weight, 1))
            best = value if best is None else maximum(best, value)
    assert best is not None
    inside = both(broadcast(down.inside, shape, (0, 1, 2)), broadcast(across.inside, shape, (0, 3, 4)))
    used = both(broadcast(down.used, shape, (0, 1, 2)), broadcast(across.used, shape, (0, 3, 4)))
    counted = select(unsqueeze(used, 1), select(unsqueeze(inside, 1), best, 0), -np.inf)
    found = fold(counted, (3, 5), "maximum", keep=False)
    return select(compare(found, "EQ", -np.inf), splat(0, found.tensor.dtype, found.tensor.dims), found)


# ---------------------------------------------------------------- MaxRoiPool


@definition("MaxRoiPool")
def max_roi_pool(node: Node) -> Built:
    """The largest pixel in each bin of each region [batch, x1, y1, x2, y2]; 0 where the bin lies outside."""
    x, rois = node.operands
    require(x.tensor.rank == 4 and rois.tensor.rank == 2, f"MaxRoiPool takes images of rank 4 and rows of corners, not {x.type}")
    bins = node.attributes["pooled_shape"]
    shape = (rois.tensor.dims[0], x.tensor.dims[1], *bins)
    if 0 in shape:
        return splat(0, x.tensor.dtype, shape)
    dtype = compute_dtype(x.tensor.dtype)
    scale = node.attributes.get("spatial_scale", 1.0)
    ends = [pointwise("round_nearest_afz", multiply(convert(picked(rois, 1, i), dtype), scale)) for i in range(1, 5)]
    across = _bins(ends[0], ends[2], x.tensor.dims[3], bins[1], dtype)
    down = _bins(ends[1], ends[3], x.tensor.dims[2], bins[0], dtype)
    images = make("onnx.Gather", (x, convert(picked(rois, 1, 0), I64)), {"axis": 0})  # [r, c, h, w]
    columns = fold(select(unsqueeze(across, 1, 2), unsqueeze(images, 3), -np.inf), (4,), "maximum", keep=False)  # [r, c, h, bins]
    both_axes = fold(select(unsqueeze(down, 1, 4), unsqueeze(columns, 2), -np.inf), (3,), "maximum", keep=False)
    return select(compare(both_axes, "EQ", -np.inf), splat(0, both_axes.tensor.dtype, shape), both_axes)


def _bins(start: Term, end: Term, dim: Dim, bins: int, dtype: DType) -> Term:
    """[r, bins, dim]: which pixels belong to which bin."""
    size = divide(maximum(add(subtract(end, start), 1), 1), bins)
    shape = (start.tensor.dims[0], bins, dim)
    which, pixel = iota(shape, 1, dtype), iota(shape, 2, dtype)
    first = minimum(maximum(add(pointwise("floor", multiply(which, unsqueeze(size, 1, 2))), unsqueeze(start, 1, 2)), 0), dim)
    last = minimum(maximum(add(pointwise("ceil", multiply(add(which, 1), unsqueeze(size, 1, 2))), unsqueeze(start, 1, 2)), 0), dim)
    return both(compare(pixel, "GE", first), compare(pixel, "LT", last))
