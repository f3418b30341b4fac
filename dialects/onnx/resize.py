"""ONNX's Resize and Upsample: for each axis the coordinate of every new element, then a gather or a matrix of weights.

Coordinates are computed in f32 (for f64 tensors in f64), as ONNX Runtime does, since the standard leaves ties of `nearest` to rounding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from pathlib import Path

import numpy as np

from coset.dialects.hub import chlo, stablehlo
from coset.dialects.hub.terms import broadcast, convert, splat
from coset.dialects.onnx import indexing as onnx_indexing
from coset.dialects.onnx import ops as onnx_ops
from coset.dialects.onnx.arithmetic import add, clamp, compare, counted, divide, either, iota, multiply, picked, pointwise, select, subtract
from coset.dialects.onnx.node import Built, Node, axis_of, constant_elements, definition
from coset.ir import dims
from coset.ir.dims import Dim, Poly, Shape
from coset.ir.errors import require
from coset.ir.term import Term, make
from coset.ir.types import F32, F64, I64, DType
from coset.rules.defining import defer_definitions

PRIMITIVES = (chlo, stablehlo, onnx_ops, onnx_indexing)  # the definitions mention their ops
RULES = defer_definitions(Path(__file__).with_name("resize.rules"))
_LARGEST_DENOMINATOR = 64  # of a scale that a symbolic dim is multiplied by
_MOST_SCALES = 64
_KERNELS = {"linear": 1, "bilinear": 1, "cubic": 2}  # and how far they reach


@dataclass(frozen=True)
class ResizedAxis:
    """One axis that is resized: its dim, the new one, and the scale (None: their quotient)."""

    index: int
    old: Dim
    new: Dim
    scale: float | None
    roi: tuple[Term, Term] | None


# ---------------------------------------------------------------- which axes, and how large they become


def _scales(node: Node) -> list[float] | None:
    if "scales" in node.attributes:
        return [float(scale) for scale in node.attributes["scales"]]
    operand = node.operand(1 if node.name == "Upsample" or node.since < 11 else 2)
    known = None if operand is None else constant_elements(operand, _MOST_SCALES)
    return None if known is None or not known.size else [float(scale) for scale in known.reshape(-1)]


def _scaled(dim: Dim, scale: float) -> Dim | None:
    """floor(dim * scale), the product rounded to f32; of a symbolic dim where the scale is a simple fraction."""
    if isinstance(dim, int):
        return int(np.floor(np.float32(dim) * np.float32(scale)))
    exact = Fraction(scale)
    return dims.floordiv(dims.multiply(dim, exact.numerator), exact.denominator) if exact.denominator <= _LARGEST_DENOMINATOR else None


def _axes(node: Node) -> list[ResizedAxis] | None:
    """The axes that change, or that `tf_crop_and_resize` may crop."""
    x = node.operands[0]
    given = [axis_of(axis, x.tensor.rank) for axis in node.attributes.get("axes", range(x.tensor.rank))]
    axes = [axis for axis in given if axis is not None]
    sizes, scales = node.dims(3), _scales(node)
    old = [x.tensor.dims[axis] for axis in axes]
    if len(axes) != len(given) or (sizes is None and scales is None) or len(sizes or scales or ()) != len(axes):
        return None
    if sizes is None:
        assert scales is not None
        new = [_scaled(dim, scale) for dim, scale in zip(old, scales, strict=True)]
        return _listed(node, axes, old, new, [float(np.float32(scale)) for scale in scales])
    policy = node.attributes.get("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch":
        return _listed(node, axes, old, sizes, [None] * len(axes))
    ratios = [new / dim for new, dim in zip(sizes, old, strict=True) if isinstance(new, int) and isinstance(dim, int) and dim]
    if len(ratios) != len(axes):
        return None
    scale = min(ratios) if policy == "not_larger" else max(ratios)
    return _listed(node, axes, old, [int(scale * dim + 0.5) for dim in old if isinstance(dim, int)], [scale] * len(axes))


def _listed(
    node: Node, axes: list[int], old: list[Dim], new: Sequence[Dim | None], scales: Sequence[float | None]
) -> list[ResizedAxis] | None:
    crops = node.attributes.get("coordinate_transformation_mode") == "tf_crop_and_resize"
    roi = node.operand(1) if crops else None
    whole = not crops or (roi is not None and roi.tensor.static == (2 * len(axes),))
    require(whole, "`Resize` crops to a `roi` of two numbers for each axis")
    found = []
    for position, (axis, dim, size, scale) in enumerate(zip(axes, old, new, scales, strict=True)):
        if size is None:
            return None
        ends = None if roi is None else (picked(roi, 0, position), picked(roi, 0, position + len(axes)))
        if roi is not None or size != dim or scale not in (None, 1.0):
            found.append(ResizedAxis(axis, dim, size, scale, ends))
    return found


# ---------------------------------------------------------------- coordinates


def _coordinates(mode: str, axis: ResizedAxis, dtype: DType) -> Term | None:
    """Where in the old axis each element of the new one lies; None for a mode that there is not."""
    place = iota((axis.new,), 0, dtype)
    scale = counted(axis.scale, dtype) if axis.scale is not None else divide(counted(axis.new, dtype), axis.old)
    last = dims.subtract(axis.old, 1)
    length = axis.new if axis.scale is None else axis.scale * axis.old if isinstance(axis.old, int) else _scaled(axis.old, axis.scale)
    assert length is not None
    if mode == "asymmetric":
        return divide(place, scale)
    if mode == "align_corners":
        return multiply(place, _ratio(last, length, dtype))
    if mode == "tf_crop_and_resize":
        return _cropped(axis, place, last, length)
    centred = subtract(divide(add(place, 0.5), scale), 0.5)
    if mode == "half_pixel" or (mode == "pytorch_half_pixel" and length != 1):
        return centred
    if mode == "pytorch_half_pixel":
        return multiply(place, 0.0)
    return add(centred, _offset(axis, length, dtype)) if mode == "half_pixel_symmetric" else None


def _ratio(last: Dim, length: Dim | float, dtype: DType) -> Term:
    """last / (length - 1); 0 where the length is known to be 1."""
    if length == 1:
        return counted(0.0, dtype)
    return divide(counted(last, dtype), dims.subtract(length, 1) if isinstance(length, Poly) else length - 1)


def _offset(axis: ResizedAxis, length: Dim | float, dtype: DType) -> Term:
    """What the middle of the old axis moves by where the new one is shorter than the scale says: old / 2 (1 - new / length)."""
    if axis.new == length:
        return counted(0.0, dtype)
    moved = subtract(1.0, divide(counted(axis.new, dtype), length))
    return multiply(divide(counted(axis.old, dtype), 2.0), moved)


def _cropped(axis: ResizedAxis, place: Term, last: Dim, length: Dim | float) -> Term:
    """From the start to the end of the region of interest, which are fractions of the axis; the middle for one element."""
    assert axis.roi is not None
    dtype = place.tensor.dtype
    start, end = (convert(value, dtype) for value in axis.roi)
    if length == 1:
        return add(multiply(place, 0.0), multiply(multiply(add(start, end), 0.5), last))
    return add(multiply(place, multiply(subtract(end, start), _ratio(last, length, dtype))), multiply(start, last))


# ---------------------------------------------------------------- resampling


def _rounded(c: Term, how: str) -> Term | None:
    """Coordinates as whole numbers."""
    if how == "round_prefer_floor":
        return pointwise("ceil", subtract(c, 0.5))
    if how == "round_prefer_ceil":
        return pointwise("floor", add(c, 0.5))
    return pointwise(how, c) if how in ("floor", "ceil") else None


def _times(axis: ResizedAxis, transformation: str, how: str) -> int | None:
    """How often each element of the old axis stands in the new one, where the nearest of each is seen to be its own; None elsewhere.

    Element r of the block that element k grows to lies at k + r / times, or centred at k - 1/2 + (r + 1/2) / times.
    """
    own = {"asymmetric": ("floor",), "half_pixel": ("round_prefer_floor", "round_prefer_ceil")}
    quotient = axis.scale
    if quotient is None and isinstance(axis.new, int) and isinstance(axis.old, int) and axis.old > 0:
        quotient = axis.new / axis.old
    if quotient is None or quotient < 1 or not quotient.is_integer() or axis.roi is not None or how not in own.get(transformation, ()):
        return None
    return int(quotient) if dims.multiply(axis.old, int(quotient)) == axis.new else None


def _repeated(x: Term, times: Mapping[int, int]) -> Term:
    """Each element along these axes so many times."""
    spread: list[Dim] = []
    kept: list[int] = []
    whole: list[Dim] = []
    for axis, dim in enumerate(x.tensor.dims):
        kept.append(len(spread))
        spread += [dim, times[axis]] if axis in times else [dim]
        whole.append(dims.multiply(dim, times.get(axis, 1)))
    return make("stablehlo.reshape", (broadcast(x, tuple(spread), tuple(kept)),), {"shape": tuple(whole)})


def _nearest(x: Term, axis: ResizedAxis, coordinates: Term, how: str) -> Term | None:
    rounded = _rounded(coordinates, how)
    if rounded is None:
        return None
    indices = convert(clamp(rounded, 0, dims.subtract(axis.old, 1)), I64)
    return make("onnx.Gather", (x, indices), {"axis": axis.index})


def _interpolated(node: Node, x: Term, axis: ResizedAxis, coordinates: Term) -> Term | None:
    """Outside the axis all elements are as at its edge, so that coordinates far away are the same as near ones."""
    mode = str(node.attributes["mode"])
    stretch, margin = 1.0, _KERNELS[mode] + 1
    antialias, exclude = node.attributes.get("antialias", 0), node.attributes.get("exclude_outside", 0)
    if antialias:
        scale = axis.scale or (axis.new / axis.old if isinstance(axis.new, int) and isinstance(axis.old, int) else None)
        if scale is None:
            return None
        stretch = min(scale, 1.0)
        margin = ceil(_KERNELS[mode] / stretch) + 1
    near = clamp(coordinates, -1, axis.old)
    taps = {"stretch": stretch, "kernel": "cubic" if mode == "cubic" else "linear", "a": node.attributes.get("cubic_coeff_a", -0.75)}
    if exclude:
        weights = make("part.taps", (near,), {**taps, "first": 0, "count": (axis.old,)})
    else:
        wide = make("part.taps", (near,), {**taps, "first": -margin, "count": (dims.add(axis.old, 2 * margin),)})
        weights = make("part.folded", (wide,), {"margin": margin})
    if antialias or exclude:
        weights = make("part.normalized", (weights,))
    return make("part.interpolated", (x, weights), {"axis": axis.index})


def _extrapolated(node: Node, x: Term, axes: Sequence[ResizedAxis], coordinates: Sequence[Term]) -> Term:
    """`extrapolation_value` where a coordinate lies outside."""
    value = splat(node.attributes.get("extrapolation_value", 0.0), x.tensor.dtype, x.tensor.dims)
    for axis, c in zip(axes, coordinates, strict=True):
        outside = either(compare(c, "LT", 0), compare(c, "GT", dims.subtract(axis.old, 1)))
        x = select(broadcast(outside, x.tensor.dims, (axis.index,)), value, x)
    return x


@definition("Resize", "Upsample")
def resize(node: Node) -> Built:
    """Axis by axis. Before version 11 coordinates are asymmetric and rounded down, of an axis that shrinks up."""
    x = node.operands[0]
    axes = _axes(node)
    early = node.name == "Upsample" or node.since < 11
    mode = node.attributes.get("mode", "nearest")
    if axes is None or (mode != "nearest" and mode not in _KERNELS):
        return None
    shape = _shape(x, axes)
    if 0 in shape:
        return splat(0, x.tensor.dtype, shape)
    transformation = "asymmetric" if early else node.attributes.get("coordinate_transformation_mode", "half_pixel")
    times = {axis.index: _times(axis, transformation, _how(node, axis)) for axis in axes if mode == "nearest"}
    known = {axis: each for axis, each in times.items() if each is not None}
    if times and len(known) == len(times):
        return _repeated(x, known)
    dtype = F64 if x.tensor.dtype is F64 and mode != "nearest" else F32
    coordinates = [_coordinates(transformation, axis, dtype) for axis in axes]
    result: Term | None = x if mode == "nearest" else convert(x, dtype)
    for axis, place in zip(axes, coordinates, strict=True):
        if place is None or result is None:
            return None
        how = _how(node, axis)
        result = _nearest(result, axis, place, how) if mode == "nearest" else _interpolated(node, result, axis, place)
    if result is None:
        return None
    result = convert(result, x.tensor.dtype)
    return _extrapolated(node, result, axes, [c for c in coordinates if c]) if transformation == "tf_crop_and_resize" else result


def _how(node: Node, axis: ResizedAxis) -> str:
    """How coordinates are rounded to the nearest element. Before version 11 down, along an axis that shrinks up."""
    if node.name == "Upsample" or node.since < 11:
        return "ceil" if (axis.scale or 1) < 1 else "floor"
    return str(node.attributes.get("nearest_mode", "round_prefer_floor"))


def _shape(x: Term, axes: Sequence[ResizedAxis]) -> Shape:
    new = {axis.index: axis.new for axis in axes}
    return tuple(new.get(axis, dim) for axis, dim in enumerate(x.tensor.dims))
