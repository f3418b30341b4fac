"""Conversions between all element types, each rounded once, as `docs/undefined.md` says where the standards leave a case open."""

from __future__ import annotations

import numpy as np

from coset.ir.types import DTYPES, DType
from coset.prove.second.answer import CannotSay
from coset.prove.second.formats import Array

STICKY = 11  # the bits of an integer of 64 bits that a float of 64 bits may not hold


def converted(x: Array, source: DType, target: DType) -> Array:
    """Elements of one type as those of another: to fewer bits of an integer its low ones, of a float the nearest integer towards 0 that
    the type has (0 of NaN), to a float the nearest one, ties to even; of a complex number its real part, but to truths.

    Raises:
        CannotSay: one of the types is none of numbers.
    """
    if source is target:
        return x
    if "string" in (source.kind, target.kind):
        raise CannotSay(f"{source} as {target}")
    if target.kind == "bool":
        return np.asarray(x != 0)
    if target.kind == "complex":
        if source.kind == "complex":
            return x.astype(target.numpy)
        part = converted(x, source, _part(target))
        return part.astype(target.numpy)
    if source.kind == "complex":
        return converted(x.real, _part(source), target)
    if target.kind == "float":
        return nearest(x, target)
    return _truncated(x, target) if source.kind == "float" else low_bits(x, target)


def _part(dtype: DType) -> DType:
    return DTYPES["f32" if dtype.name == "c64" else "f64"]


def nearest(x: Array, target: DType) -> Array:
    """Each element, of floats or integers, as the nearest float of a type, ties to even: rounded once."""
    if target.bits >= 32 and x.dtype.itemsize == 8:
        return x.astype(target.numpy)
    if x.dtype in (np.int64, np.uint64):
        x = _odd_integers(x).astype(np.float64)
    elif x.dtype.kind != "f":  # of few bits, all of which a float of 64 bits has
        x = x.astype(np.float64)
    return x.astype(target.numpy) if target.bits >= 32 or target.name == "f16" else _odd(x).astype(target.numpy)


def _odd_integers(x: Array) -> Array:
    """The same rounded down to even multiples of 2^11, or up to odd ones where something was lost: a float of 64 bits has them."""
    low = x.dtype.type((1 << STICKY) - 1)
    large = (x > 1 << 53) if x.dtype == np.uint64 else (x > 1 << 53) | (x < -(1 << 53))
    lost = (x & low) != 0
    return np.where(large, (x & ~low) | np.where(lost, x.dtype.type(1 << STICKY), x.dtype.type(0)), x)


def _odd(x: Array) -> Array:
    """Floats as those of 32 bits, the odd neighbour of those between two: a second rounding to fewer bits is as good as one."""
    if x.dtype != np.float64:
        return x.astype(np.float32)
    with np.errstate(over="ignore"):
        first = x.astype(np.float32)
    off = (first.astype(np.float64) != x) & ~np.isnan(x) & ~np.isinf(x) & ((first.view(np.uint32) & 1) == 0)
    towards = np.where(x > first.astype(np.float64), np.float32(np.inf), np.float32(-np.inf))
    return np.where(off, np.nextafter(first, towards), first)


def _ends(target: DType) -> tuple[int, int]:
    low = 0 if target.kind == "uint" else -(1 << target.bits - 1)
    return low, low + (1 << target.bits) - 1


def _truncated(x: Array, target: DType) -> Array:
    low, high = _ends(target)
    whole = np.trunc(x.astype(np.float64))
    inside = (whole >= low) & (whole < float(high + 1))
    fits = np.where(inside, whole, 0.0)
    kept = fits.astype(np.uint64) if target.kind == "uint" else fits.astype(np.int64)
    kept = np.where(whole < low, kept.dtype.type(low), np.where(whole >= float(high + 1), kept.dtype.type(high), kept))
    return kept.astype(target.numpy)


def low_bits(x: Array, target: DType) -> Array:
    if target.bits == 64:
        return x.astype(np.int64 if x.dtype.kind != "u" else x.dtype).astype(target.numpy)
    bits = x.astype(np.uint64 if x.dtype == np.uint64 else np.int64).astype(np.uint64) & np.uint64((1 << target.bits) - 1)
    number = bits.astype(np.int64)
    if target.kind == "int":
        number = np.where(number >= 1 << target.bits - 1, number - (1 << target.bits), number)
    return number.astype(target.numpy)
