"""The hub's ops on the parts and the bits of elements: complex numbers, bit patterns, counts of bits, reduced precision.

Each op's type rule stands before its meaning. Bit patterns are little-endian: the first of several narrow elements holds the
lowest bits of the wide one, as the reference interpreter and XLA have it on every host that we know.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from coset.dialects.hub.checks import get_axis, get_dtype, get_int, require_class, require_same, tensors
from coset.dialects.hub.scalars import narrow, widen
from coset.ir.errors import require
from coset.ir.op import Array, Attributes
from coset.ir.quantized import QuantizedType
from coset.ir.types import DTYPES, I32, DType, TensorType, Type, dtype_of

if TYPE_CHECKING:
    from coset.ir.term import Term

Binding = Mapping[str, int]
COMPLEX_OF = {DTYPES["f32"]: DTYPES["c64"], DTYPES["f64"]: DTYPES["c128"]}
REAL_OF = {dtype: part for part, dtype in COMPLEX_OF.items()}
_PATTERNS: dict[int, np.dtype[Any]] = {8: np.dtype(np.uint8), 16: np.dtype(np.uint16), 32: np.dtype(np.uint32), 64: np.dtype(np.uint64)}


# ---------------------------------------------------------------- complex numbers


def complex_type(name: str, operands: Sequence[Type], _: Attributes) -> Type:
    """Two tensors of f32 or f64 give c64 or c128."""
    types = lhs, _rhs = tensors(name, operands, "lhs", "rhs")
    require(lhs.dtype in COMPLEX_OF, f"`{name}` takes f32 or f64 elements, but `lhs` has {lhs.dtype}")
    require_same(name, types, ("`lhs`", "`rhs`"))
    return TensorType(COMPLEX_OF[lhs.dtype], lhs.shape)


def complex_(term: Term, arrays: Sequence[Array], _: Binding) -> Array:
    """Written part by part: a sum with 1j would make NaN of infinities."""
    result = np.empty(arrays[0].shape, term.tensor.dtype.numpy)
    result.real, result.imag = arrays
    return result


def part_type(name: str, operands: Sequence[Type], _: Attributes) -> Type:
    """The dtype of a part; a real tensor is its own real part."""
    (operand,) = tensors(name, operands, "operand")
    require_class(name, "`operand`", operand.dtype, "float complex")
    return TensorType(REAL_OF.get(operand.dtype, operand.dtype), operand.shape)


def real(_: Term, arrays: Sequence[Array], __: Binding) -> Array:
    """The real part."""
    return np.ascontiguousarray(arrays[0].real).reshape(arrays[0].shape) if arrays[0].dtype.kind == "c" else arrays[0]


def imaginary(_: Term, arrays: Sequence[Array], __: Binding) -> Array:
    """The imaginary part; 0 for a real operand."""
    x = arrays[0]
    return np.ascontiguousarray(x.imag).reshape(x.shape) if x.dtype.kind == "c" else np.zeros_like(x)


# ---------------------------------------------------------------- bit patterns


def _width(dtype: DType) -> int:
    """The bits that say the value: a boolean is one bit, whatever its storage."""
    return 1 if dtype.kind == "bool" else dtype.bits


def _storage(dtype: DType) -> DType:
    return dtype.storage if isinstance(dtype, QuantizedType) else dtype


def bitcast_type(name: str, operands: Sequence[Type], attributes: Attributes) -> Type:
    """The operand's shape; a last dim is added for the parts of an element, or dropped where it holds the parts of one. A quantized
    tensor has the bits of its integers."""
    (operand,) = tensors(name, operands, "operand")
    dtype = get_dtype(name, attributes)
    old, new = _storage(operand.dtype), _storage(dtype)
    for what, one in (("`operand`", old), ("the result", new)):
        require_class(name, what, one, "number bool")
    same_kind = (old.kind == "complex") == (new.kind == "complex")
    require(same_kind, f"`{name}` makes complex elements of complex ones only, not {dtype} of {operand.dtype}")
    before, after = _width(old), _width(new)
    if before == after:
        return TensorType(dtype, operand.shape)
    fixed = old != operand.dtype or new != dtype
    require(not fixed, f"`{name}` of quantized elements keeps their width, but {operand.dtype} has {before} bits and {dtype} {after}")
    if before > after:
        require(before % after == 0, f"`{name}` cannot cut {before} bits of {operand.dtype} into {after} bits of {dtype}")
        return TensorType(dtype, (*operand.dims, before // after))
    fits = after % before == 0 and operand.rank >= 1 and operand.dims[-1] == after // before
    require(fits, f"`{name}` joins {operand.dtype} to {dtype} along a last dim of {after / before:g}, but the operand is {operand}")
    return TensorType(dtype, operand.dims[:-1])


def patterns(x: Array) -> Array:
    """The elements' bits as unsigned integers of the storage's width; unused high bits of narrow elements are 0."""
    dtype = dtype_of(x.dtype)
    bits = np.ascontiguousarray(x).reshape(x.shape).view(_PATTERNS[x.dtype.itemsize * 8])
    used = bits.dtype.type((1 << _width(dtype)) - 1)
    return np.asarray(bits & used)


def from_patterns(bits: Array, dtype: DType) -> Array:
    """The elements with these bits; `bits` has the width of the storage. The inverse of `patterns`."""
    if dtype.kind == "int" and dtype.bits < 8:  # storage keeps the sign in the unused bits
        top = np.uint8(1 << dtype.bits - 1)
        bits = np.asarray((bits ^ top) - top)
    return np.ascontiguousarray(bits).reshape(bits.shape).view(dtype.numpy)


def bitcast_convert(term: Term, arrays: Sequence[Array], _: Binding) -> Array:
    """The same bits read as another dtype."""
    return bitcast(arrays[0], _storage(term.tensor.dtype))


def bitcast(x: Array, dtype: DType) -> Array:
    """`x` read as `dtype`; see `bitcast_type` for the shape."""
    old, new = _width(dtype_of(x.dtype)), _width(dtype)
    if dtype.kind == "complex":
        whole = np.ascontiguousarray(x).reshape(-1).view(dtype.numpy)
        return whole.reshape((*x.shape, old // new) if old > new else x.shape if old == new else x.shape[:-1])
    bits = patterns(x)
    storage = _PATTERNS[dtype.numpy.itemsize * 8]
    if old == new:
        return from_patterns(bits.astype(storage), dtype)
    if old > new:
        places = np.arange(0, old, new).astype(bits.dtype)
        parts = (bits[..., None] >> places) & bits.dtype.type((1 << new) - 1)
        return from_patterns(parts.astype(storage), dtype)
    places = np.arange(0, new, old).astype(storage)
    return from_patterns(np.asarray(np.bitwise_or.reduce(bits.astype(storage) << places, axis=-1, dtype=storage)), dtype)


# ---------------------------------------------------------------- counts of bits


def popcnt(term: Term, arrays: Sequence[Array], _: Binding) -> Array:
    """By halves: pairs, nibbles, bytes are counted in place and the bytes summed by one multiplication. The count wraps where the
    dtype cannot hold it, as that of 64 bits in i2."""
    x = patterns(arrays[0]).astype(np.uint64)
    pairs, nibbles, low = (np.uint64(n) for n in (0x5555555555555555, 0x3333333333333333, 0x0F0F0F0F0F0F0F0F))
    x = x - ((x >> np.uint64(1)) & pairs)
    x = (x & nibbles) + ((x >> np.uint64(2)) & nibbles)
    x = (x + (x >> np.uint64(4))) & low
    with np.errstate(over="ignore"):
        counts = (x * np.uint64(0x0101010101010101)) >> np.uint64(56)
    return narrow(np.asarray(counts), term.tensor.dtype)


def count_leading_zeros(term: Term, arrays: Sequence[Array], _: Binding) -> Array:
    """The width less the length of the number, found by halving; it wraps where the dtype cannot hold it, as i2 and u2 cannot hold 2."""
    dtype = term.tensor.dtype
    x = patterns(arrays[0]).astype(np.uint64)
    length = np.zeros(x.shape, np.uint64)
    for step in (32, 16, 8, 4, 2, 1):
        above = (x >> np.uint64(step)) != 0
        length += np.where(above, np.uint64(step), np.uint64(0))
        x = np.where(above, x >> np.uint64(step), x)
    return narrow(np.asarray(np.uint64(dtype.bits) - length - (x != 0)), dtype)


# ---------------------------------------------------------------- reduced precision


def reduce_precision_type(name: str, operands: Sequence[Type], attributes: Attributes) -> Type:
    """The operand's type."""
    (operand,) = tensors(name, operands, "operand")
    require_class(name, "`operand`", operand.dtype, "float")
    require(operand.dtype != DTYPES["f8e8m0fnu"], f"`{name}` takes floats with a sign and a zero, but `operand` has {operand.dtype}")
    exponent, mantissa = (get_int(name, attributes, key) for key in ("exponent_bits", "mantissa_bits"))
    require(exponent >= 1, f"`exponent_bits` of `{name}` must be 1 or more, not {exponent}")
    require(mantissa >= 0, f"`mantissa_bits` of `{name}` must be 0 or more, not {mantissa}")
    return operand


def reduce_precision(term: Term, arrays: Sequence[Array], _: Binding) -> Array:
    """Rounding to nearest even on the bit pattern; numbers beyond the smaller exponent range become infinities, those below it
    (its subnormals too) zeros. NaN stays NaN, but is an infinity where no mantissa bit is left to say so."""
    return reduced_precision(arrays[0], term.attribute("exponent_bits"), term.attribute("mantissa_bits"))


def reduced_precision(x: Array, exponent_bits: int, mantissa_bits: int) -> Array:
    """`x` rounded; see `reduce_precision`. A dtype without infinities has NaN in their place, or its largest number without NaN."""
    dtype = dtype_of(x.dtype)
    bits = patterns(x)
    number = bits.dtype.type
    limits = ml_dtypes.finfo(dtype.numpy)  # type: ignore[no-untyped-call]
    fraction, bias = int(limits.nmant), 1 - int(limits.minexp)
    top = number(1 << dtype.bits - 1)
    sign, magnitude = bits & top, bits & ~top
    with np.errstate(all="ignore"):
        nan = np.isnan(widen(x))
        infinite, largest = (patterns(np.asarray(v).astype(dtype.numpy))[()] for v in (np.inf, limits.max))
    beyond = infinite if infinite != largest else largest
    if mantissa_bits < fraction:
        drop = fraction - mantissa_bits
        magnitude = magnitude + number((1 << drop - 1) - 1) + ((magnitude >> number(drop)) & number(1))
        magnitude = magnitude >> number(drop) << number(drop)
    reduced_bias = (1 << exponent_bits - 1) - 1
    exponent = (magnitude >> number(fraction)).astype(np.int64)
    over, under = magnitude > largest, np.zeros(x.shape, np.bool_)
    if exponent_bits < dtype.bits - 1 - fraction:
        over, under = over | (exponent > bias + reduced_bias), exponent <= bias - reduced_bias
    unsigned = beyond & top  # the NaN of the fnuz dtypes is the pattern of -0, so that they have no sign on it, nor on 0
    magnitude = np.where(under, number(0), magnitude)
    signed = magnitude | np.where(magnitude == 0, number(0), sign) if unsigned else magnitude | sign
    result = np.where(over, beyond if unsigned else (beyond & ~top) | sign, signed)
    lost = infinite if mantissa_bits == 0 and np.isinf(widen(from_patterns(np.asarray(infinite), dtype))) else bits
    return from_patterns(np.asarray(np.where(nan, lost, result), bits.dtype), dtype)


# ---------------------------------------------------------------- sizes


def dimension_size_type(name: str, operands: Sequence[Type], attributes: Attributes) -> Type:
    """One i32."""
    (operand,) = tensors(name, operands, "operand")
    get_axis(name, attributes, "dimension", operand.rank)
    return TensorType(I32, ())


def get_dimension_size(term: Term, arrays: Sequence[Array], _: Binding) -> Array:
    """The size of dim `dimension`."""
    return np.asarray(arrays[0].shape[term.attribute("dimension")], np.int32)
