"""What ONNX's DFT, STFT and MelWeightMatrix mean: discrete Fourier transforms of signals whose last dim holds real and imaginary parts.

The text: https://onnx.ai/onnx/operators/onnx__DFT.html, onnx__STFT.html, onnx__MelWeightMatrix.html.
"""

from __future__ import annotations

import math

from coset.dialects.hub import stablehlo_math
from coset.dialects.hub.terms import broadcast, convert, reshape, splat, transpose
from coset.dialects.onnx import arithmetic as a
from coset.dialects.onnx.dtypes import DTYPE_OF_CODE
from coset.dialects.onnx.node import Built, Node, axis_of, definition
from coset.ir import dims
from coset.ir.dims import Dim
from coset.ir.errors import require
from coset.ir.term import Term, make
from coset.ir.types import F32, F64, I64

PRIMITIVES = (stablehlo_math,)


def _signal(x: Term) -> Term:
    """A signal [.., 1] as real numbers, [.., 2] as complex ones; both without the last dim, in f32 where they are narrower."""
    parts = x.tensor.dims[-1]
    require(parts in (1, 2), f"a signal's last dim holds 1 or 2 parts, not {parts}")
    wide = convert(x, F64 if x.tensor.dtype == F64 else F32)
    real = a.picked(wide, -1, 0)
    return real if parts == 1 else make("stablehlo.complex", (real, a.picked(wide, -1, 1)))


def _complex(x: Term) -> Term:
    return x if x.tensor.dtype.kind == "complex" else make("stablehlo.complex", (x, splat(0, x.tensor.dtype, x.tensor.dims)))


def _parts(x: Term) -> Term:
    """Complex numbers as their real and imaginary parts along a new last dim, real ones along one of size 1."""
    if x.tensor.dtype.kind != "complex":
        return a.unsqueeze(x, -1)
    return a.concatenate([a.unsqueeze(make(f"stablehlo.{part}", (x,)), -1) for part in ("real", "imag")], -1)


def _sized(x: Term, axis: int, size: Dim) -> Term:
    """`x` cut to `size` elements along `axis`, or filled up with zeros."""
    present = x.tensor.dims[axis]
    if present == size:
        return x
    require(isinstance(present, int) and isinstance(size, int), f"whether a signal of {present} elements reaches {size} is not known")
    assert isinstance(present, int) and isinstance(size, int)
    if size < present:
        return a.take(x, axis, 0, size)
    low = (0,) * x.tensor.rank
    high = tuple(size - present if i == axis else 0 for i in range(x.tensor.rank))
    return make("stablehlo.pad", (x, splat(0, x.tensor.dtype, ())), {"low": low, "high": high, "interior": low})


def _transformed(x: Term, axis: int, size: Dim, *, inverse: bool, onesided: bool) -> Term:
    """The transform of `x` of `size` elements along `axis`; a onesided one has or gives the first size // 2 + 1 frequencies only."""
    bins = dims.add(dims.floordiv(size, 2), 1)
    cut = onesided and not inverse and x.tensor.dtype.kind == "complex"
    kind = ("IRFFT" if inverse else "FFT" if cut else "RFFT") if onesided else "IFFT" if inverse else "FFT"
    signal = _sized(x if kind == "RFFT" else _complex(x), axis, bins if kind == "IRFFT" else size)
    order = (*(i for i in range(x.tensor.rank) if i != axis), axis)
    result = make("stablehlo.fft", (transpose(signal, order),), {"fft_type": kind, "fft_length": (size,)})
    result = transpose(result, tuple(order.index(i) for i in range(len(order))))
    return a.take(result, axis, 0, bins) if cut else result


@definition("DFT")
def _dft(node: Node) -> Built:
    """The axis is an attribute (default 1) before version 20, then an operand (default -2)."""
    x = node.operands[0]
    inverse, onesided = (bool(node.attributes.get(name, 0)) for name in ("inverse", "onesided"))
    axis = _number(node, 2) if node.given(2) else node.attributes.get("axis", 1 if node.since < 20 else -2)
    position = axis_of(axis, x.tensor.rank) if isinstance(axis, int) else None
    if position is None or position == x.tensor.rank - 1:
        return None
    size = _number(node, 1) if node.given(1) else x.tensor.dims[position]
    if size is None:
        return None
    if not node.given(1) and inverse and onesided:
        size = dims.multiply(2, dims.subtract(size, 1))
    return convert(_parts(_transformed(_signal(x), position, size, inverse=inverse, onesided=onesided)), x.tensor.dtype)


def _number(node: Node, index: int) -> Dim | None:
    found = node.dims(index)
    return found[0] if found is not None and len(found) == 1 else None


@definition("STFT")
def _stft(node: Node) -> Built:
    """Frames of the signal, each `frame_step` after the one before, times the window, transformed."""
    x = node.operands[0]
    x = a.unsqueeze(x, 2) if x.tensor.rank == 2 else x
    step, window = _number(node, 1), node.operand(2)
    require(x.tensor.rank == 3 and (window is None or window.tensor.rank == 1), f"STFT takes signals of rank 2 or 3, not {x.type}")
    batch, length, parts = x.tensor.dims
    size = _number(node, 3) if node.given(3) else length if window is None else window.tensor.dims[0]
    if size is None or not isinstance(step, int) or step <= 0:
        return None
    frames = dims.add(dims.floordiv(dims.subtract(length, size), step), 1)
    starts = a.multiply(a.iota((frames, 1), 0), step)
    cut = make(
        "stablehlo.gather", (x, starts),
        {"offset_dims": (0, 2, 3), "collapsed_slice_dims": (), "operand_batching_dims": (), "start_indices_batching_dims": (),
         "start_index_map": (1,), "index_vector_dim": 1, "slice_sizes": (batch, size, parts)},
    )  # fmt: skip
    if window is not None:
        cut = a.multiply(cut, broadcast(convert(window, x.tensor.dtype), cut.tensor.dims, (2,)))
    onesided = bool(node.attributes.get("onesided", 1))
    return convert(_parts(_transformed(_signal(cut), 2, size, inverse=False, onesided=onesided)), x.tensor.dtype)


@definition("MelWeightMatrix")
def _mel_weights(node: Node) -> Built:
    """Triangles over the frequencies of a transform, their corners evenly spread over the mel scale and rounded down to frequencies."""
    bands, size = _number(node, 0), _number(node, 1)
    dtype = DTYPE_OF_CODE.get(node.attributes.get("output_datatype", 1))
    if not isinstance(bands, int) or size is None or dtype is None:
        return None
    rate, lower, upper = (reshape(convert(x, F64), ()) for x in node.operands[2:5])
    low, high = (a.multiply(a.pointwise("log_plus_one", a.divide(hertz, 700.0)), 2595 / math.log(10)) for hertz in (lower, upper))
    spacing = a.divide(a.subtract(high, low), bands + 2)
    mels = a.add(a.multiply(a.iota((bands + 2,), 0, F64), spacing), low)
    hertz = a.multiply(a.pointwise("exponential_minus_one", a.multiply(mels, math.log(10) / 2595)), 700.0)
    scaled = a.divide(a.multiply(hertz, a.add(a.counted(size, F64), 1)), rate)
    corners = convert(convert(a.pointwise("floor", scaled), I64), F64)
    left, peak, right = (broadcast(a.take(corners, 0, i, i + bands), (1, bands), (1,)) for i in range(3))
    frequency = a.iota((dims.add(dims.floordiv(size, 2), 1), 1), 0, F64)
    rise, fall = a.subtract(peak, left), a.subtract(right, peak)
    rising = a.divide(a.subtract(frequency, left), a.select(a.compare(rise, "EQ", 0), 1.0, rise))
    falling = a.divide(a.subtract(right, frequency), a.select(a.compare(fall, "EQ", 0), 1.0, fall))
    within = a.both(a.compare(frequency, "GE", left), a.compare(frequency, "LT", peak))
    after = a.both(a.compare(frequency, "GT", peak), a.compare(frequency, "LT", right))
    weights = a.select(a.compare(frequency, "EQ", peak), 1.0, a.select(within, rising, a.select(after, falling, 0.0)))
    return convert(weights, dtype)
