"""ONNX's ops that read images between the pixels: GridSample, the affine grids for it, and convolutions with shifted pixels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from pathlib import Path

import numpy as np

from coset.dialects.hub import chlo, stablehlo, stablehlo_data
from coset.dialects.hub.terms import broadcast, convert, dot, reshape, splat, transpose
from coset.dialects.onnx import indexing as onnx_indexing
from coset.dialects.onnx import ops as onnx_ops
from coset.dialects.onnx.arithmetic import (
    add,
    both,
    clamp,
    compare,
    concatenate,
    counted,
    counted_all,
    divide,
    iota,
    multiply,
    picked,
    pointwise,
    select,
    sized,
    subtract,
    unsqueeze,
)
from coset.dialects.onnx.node import Built, Node, definition
from coset.dialects.onnx.windows import windows_of
from coset.ir import dims
from coset.ir.dims import Dim, Shape
from coset.ir.term import Term, make
from coset.ir.types import F32, F64, I64, DType
from coset.rules.defining import defer_definitions

PRIMITIVES = (chlo, stablehlo, stablehlo_data, onnx_ops, onnx_indexing)  # the definitions mention their ops
RULES = defer_definitions(Path(__file__).with_name("sampling.rules"))
_FAR = 1 << 30  # pixels: what lies farther out is cut off there, so that it can be an integer
_MODES = {"bilinear": "linear", "bicubic": "cubic"}  # the names before version 20
_CUBIC = -0.75  # Keys' parameter in GridSample


@dataclass(frozen=True)
class Border:
    """What lies outside an image: `zeros`, `border` or `reflection`, there between the outer pixels' centres or their edges."""

    padding: str
    centres: bool

    def inside(self, coordinate: Term, dim: Dim, mode: str) -> Term:
        """A coordinate where the pixels around it are, before they are looked for. Of a border that is prolonged the cubic's pixels
        are those beyond it, as ONNX Runtime and PyTorch have it; ONNX's reference moves the coordinate to the border first."""
        if self.padding == "border" and mode != "cubic":
            return clamp(coordinate, 0, dims.subtract(dim, 1))
        return self.reflected(coordinate, dim) if self.padding == "reflection" else coordinate

    def reflected(self, coordinate: Term, dim: Dim) -> Term:
        """The coordinate reflected into the image."""
        dtype = coordinate.tensor.dtype
        last = counted(dims.subtract(dim, 1), dtype)
        low, high = (counted(0, dtype), last) if self.centres else (counted(-0.5, dtype), add(last, 0.5))
        return make("part.reflected", (coordinate, low, high))

    def position(self, whole: Term, dim: Dim) -> tuple[Term, Term | None]:
        """The pixel at a whole coordinate, and whether there is one (None: always)."""
        last = dims.subtract(dim, 1)
        found = None
        if self.padding == "zeros":
            found = both(compare(whole, "GE", 0), compare(whole, "LE", last))
        elif self.padding == "reflection":
            whole = self.reflected(whole, dim)
        return convert(clamp(whole, 0, last), I64), found


def compute_dtype(*dtypes: DType) -> DType:
    """What coordinates and weights are computed in."""
    return F64 if F64 in dtypes else F32


# ---------------------------------------------------------------- reading between the pixels


def _taps(coordinate: Term, mode: str) -> list[tuple[Term, Term | None]]:
    """The whole coordinates that a value is made of along one axis, with their weights (None: 1)."""
    if mode == "nearest":
        return [(coordinate, None)]
    whole = pointwise("floor", coordinate)
    part = subtract(coordinate, whole)
    rest = subtract(1, part)
    if mode == "linear":
        return [(whole, rest), (add(whole, 1), part)]
    weights = (_cubic_far(add(part, 1)), _cubic_near(part), _cubic_near(rest), _cubic_far(add(rest, 1)))
    return [(add(whole, position), weight) for position, weight in enumerate(weights, start=-1)]


def _cubic_near(t: Term) -> Term:
    """Keys' kernel at a distance up to 1."""
    return add(multiply(multiply(subtract(multiply(t, _CUBIC + 2), _CUBIC + 3), t), t), 1)


def _cubic_far(t: Term) -> Term:
    """Keys' kernel at a distance from 1 to 2."""
    return subtract(multiply(add(multiply(subtract(multiply(t, _CUBIC), 5 * _CUBIC), t), 8 * _CUBIC), t), 4 * _CUBIC)


def sampled(x: Term, coordinates: Sequence[Term], mode: str, border: Border) -> Term:
    """The images x [n, c, s..] at coordinates [n, q..], one term for each of s: [n, c, q..] in the coordinates' element type.

    The sum over all combinations of taps along the axes.
    """
    spatial = x.tensor.dims[2:]
    dtype = coordinates[0].tensor.dtype
    near = [clamp(border.inside(c, dim, mode), -_FAR, _FAR) for c, dim in zip(coordinates, spatial, strict=True)]
    axes = [[(*border.position(whole, dim), weight) for whole, weight in _taps(c, mode)] for c, dim in zip(near, spatial, strict=True)]
    total: Term | None = None
    for corner in product(*axes):
        index = concatenate([unsqueeze(position, -1) for position, _, _ in corner], -1)
        pixels = convert(make("part.pixels", (x, index)), dtype)
        for _, found, _ in corner:
            pixels = pixels if found is None else select(unsqueeze(found, 1), pixels, 0)
        for _, _, weight in corner:
            pixels = pixels if weight is None else multiply(pixels, unsqueeze(weight, 1))
        total = pixels if total is None else add(total, pixels)
    assert total is not None
    return total


@definition("GridSample")
def grid_sample(node: Node) -> Built:
    """The grid's last dim holds x, y, .. from -1 to 1, so the axes of the image in reverse."""
    x, grid = node.operands
    spatial = x.tensor.dims[2:]
    mode = node.attributes.get("mode", "linear")
    mode = _MODES.get(mode, mode)
    padding, aligned = node.attributes.get("padding_mode", "zeros"), bool(node.attributes.get("align_corners", 0))
    if mode not in ("nearest", "linear", "cubic") or padding not in ("zeros", "border", "reflection") or not spatial:
        return None
    shape = (*x.tensor.dims[:2], *grid.tensor.dims[1:-1])
    if 0 in shape:
        return splat(0, x.tensor.dtype, shape)
    dtype = compute_dtype(x.tensor.dtype, grid.tensor.dtype)
    coordinates = []
    for axis, dim in enumerate(spatial):
        unit = convert(picked(grid, grid.tensor.rank - 1, len(spatial) - 1 - axis), dtype)
        place = _place(add(unit, 1), dim, aligned=aligned)
        coordinates.append(pointwise("round_nearest_even", place) if mode == "nearest" else place)
    return convert(sampled(x, coordinates, mode, Border(padding, aligned)), x.tensor.dtype)


def _place(shifted: Term, dim: Dim, *, aligned: bool) -> Term:
    """The coordinate in pixels of one from 0 to 2."""
    return multiply(divide(shifted, 2), dims.subtract(dim, 1)) if aligned else divide(subtract(multiply(shifted, dim), 1), 2)


# ---------------------------------------------------------------- affine grids


@definition("AffineGrid")
def affine_grid(node: Node) -> Built:
    """theta [n, d, d + 1] times the homogeneous coordinates (x, y, .., 1) of the pixels of an image of the given size."""
    theta, size = node.operands[0], node.dims(1)
    if size is None or len(size) not in (4, 5):
        return None
    spatial = tuple(size[2:])
    dtype = theta.tensor.dtype
    work = compute_dtype(dtype)
    aligned = bool(node.attributes.get("align_corners", 0))
    columns = [_centres(spatial, axis, work, aligned=aligned) for axis in reversed(range(len(spatial)))]
    columns.append(splat(1, work, spatial))
    points = concatenate([unsqueeze(column, -1) for column in columns], -1)
    maps = sized(sized(theta, 1, len(spatial)), 2, len(spatial) + 1)
    grid = dot(convert(maps, work), points, lhs_contract=(2,), rhs_contract=(len(spatial),))
    return convert(transpose(grid, (0, *range(2, len(spatial) + 2), 1)), dtype)


def _centres(spatial: Shape, axis: int, dtype: DType, *, aligned: bool) -> Term:
    """From -1 to 1: the pixels' centres, of which the outer ones lie at the ends if `aligned`, else half a pixel inside."""
    place, dim = iota(spatial, axis, dtype), spatial[axis]
    if aligned:
        last = dims.subtract(dim, 1)
        return subtract(divide(multiply(place, 2), last), 1) if last != 0 else splat(0, dtype, spatial)
    return subtract(divide(add(multiply(place, 2), 1), dim), 1)


# ---------------------------------------------------------------- convolutions with shifted pixels


@definition("DeformConv")
def deform_conv(node: Node) -> Built:
    """The pixels under each filter are read where the offsets shift them to (zeros outside), times the mask; then a product."""
    x, w, offset = node.operands[:3]
    window = tuple(dim for dim in w.tensor.dims[2:] if isinstance(dim, int))
    count, taps = len(window), prod(window)
    groups, shifts = node.attributes.get("group", 1), node.attributes.get("offset_group", 1)
    if w.tensor.rank != x.tensor.rank or count != x.tensor.rank - 2 or tuple(node.attributes.get("kernel_shape", window)) != window:
        return None
    found = windows_of(node, x.tensor.dims[2:], window)
    if found is None:
        return None
    x = sized(x, 1, dims.multiply(w.tensor.dims[1], groups))
    channels = dims.floordiv(x.tensor.dims[1], shifts)
    batch, places = x.tensor.dims[0], offset.tensor.dims[2:]
    dtype = compute_dtype(x.tensor.dtype)
    images = dims.multiply(batch, shifts)
    moved = convert(reshape(sized(offset, 1, shifts * taps * count), (images, taps, count, *places)), dtype)
    shape = (images, taps, *places)
    coordinates = []
    for axis in range(count):
        begin = iota(shape, 2 + axis, dtype)
        inner = np.unravel_index(np.arange(taps), window)[axis] * found.dilations[axis]
        tap = broadcast(counted_all([dims.subtract(int(step), found.padding[axis][0]) for step in inner], dtype), shape, (1,))
        coordinates.append(add(add(multiply(begin, found.strides[axis]), tap), picked(moved, 2, axis)))
    pixels = sampled(reshape(x, (images, channels, *x.tensor.dims[2:])), coordinates, "linear", Border("zeros", centres=True))
    mask = node.operand(4)
    if mask is not None:
        pixels = multiply(pixels, convert(reshape(sized(mask, 1, shifts * taps), (images, 1, taps, *places)), dtype))
    return _contracted(node, pixels, x, w, places, groups)


def _contracted(node: Node, pixels: Term, x: Term, w: Term, places: Shape, groups: int) -> Term:
    """Pixels [n g', c', taps, q..] times the filters [o, c / groups, window..], group by group, plus the bias."""
    dtype = pixels.tensor.dtype
    batch, outputs = x.tensor.dims[0], dims.floordiv(w.tensor.dims[0], groups)
    depth = dims.product(w.tensor.dims[1:])
    columns = reshape(pixels, (batch, groups, depth, *places))
    filters = convert(reshape(w, (groups, outputs, depth)), dtype)
    grouped = dot(filters, columns, lhs_batch=(0,), rhs_batch=(1,), lhs_contract=(2,), rhs_contract=(2,))  # [groups, o, n, q..]
    ordered = transpose(grouped, (2, 0, 1, *range(3, grouped.tensor.rank)))
    result = convert(reshape(ordered, (batch, w.tensor.dims[0], *places)), x.tensor.dtype)
    bias = node.operand(3)
    return result if bias is None else add(result, broadcast(sized(bias, 0, w.tensor.dims[0]), result.tensor.dims, (1,)))
