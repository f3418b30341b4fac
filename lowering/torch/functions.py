"""The functions that generated torch programs call where one torch expression does not say what an op of the hub means.

This file is text for the emitter: the functions that a program needs are copied into it, so each stands on torch and on the
functions here that it calls. coset never imports it. Values are held as `aten_dtypes` says.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

ORDER = -0x8000000000000000  # xor with it maps the order of u64 to that of the i64 that holds its bits
FLOATS = {  # the floats of 8 bits
    "f8e4m3fn": torch.float8_e4m3fn, "f8e5m2": torch.float8_e5m2, "f8e4m3fnuz": torch.float8_e4m3fnuz,
    "f8e5m2fnuz": torch.float8_e5m2fnuz, "f8e8m0fnu": torch.float8_e8m0fnu,
}  # fmt: skip


# ---------------------------------------------------------------- element types


def wrapped(x: Tensor, bits: int) -> Tensor:
    """Integers wrapped to `bits` bits with a sign."""
    top = 1 << (bits - 1)
    return ((x & (2 * top - 1)) ^ top) - top


def unpacked(x: Tensor, axis: int, name: str) -> Tensor:
    """Elements of the type `name` that share bytes along a dim, apart; the first has the lowest bits."""
    bits = int(name[1])
    below = torch.arange(0, 8, bits, dtype=torch.uint8, device=x.device).reshape(-1, *[1] * (x.ndim - axis - 1))
    values = ((x.unsqueeze(axis + 1) >> below) & ((1 << bits) - 1)).flatten(axis, axis + 1)
    if name.startswith("i"):
        return wrapped(values.to(torch.int8), bits)
    if name.startswith("f"):
        numbers = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6], device=x.device)
        return torch.copysign(numbers[(values & 7).long()], 7.5 - values)
    return values


def rounded(x: Tensor, name: str) -> Tensor:
    """Floats as f32 that the float type `name` below 16 bits holds; ties to even."""
    x = x.float()
    if name == "f8e4m3fn":  # torch saturates, the type says NaN
        return torch.where(x.abs() > 464, math.nan, x.to(FLOATS[name]).float())
    if name == "f8e8m0fnu":  # has neither a sign nor a zero
        return torch.where(x > 0, x.to(FLOATS[name]).float(), math.nan)
    if name != "f4e2m1fn":
        return x.to(FLOATS[name]).float()
    magnitude = x.abs()
    step = torch.where(magnitude < 2, 0.5, torch.where(magnitude < 4, 1.0, 2.0))
    nearest = (magnitude / step).round() * step
    return torch.copysign(torch.where(x.isnan(), 0.0, nearest.clamp(max=6.0)), x)


def round_once(x: Tensor, dtype: torch.dtype) -> Tensor:
    """f64 to a float below 32 bits with one rounding: f32 is reached by rounding to odd (Boldo and Melquiond 2008, theorem 1)."""
    single = x.float()
    error = torch.where(x.isfinite(), x - single.double(), 0.0)
    bits = single.view(torch.int32)
    inexact = (error != 0) & single.isfinite() & (bits & 1 == 0)
    odd = torch.where((error > 0) != single.signbit(), bits + 1, bits - 1)
    return torch.where(inexact, odd, bits).view(torch.float32).to(dtype)


def whole_to_double(x: Tensor) -> Tensor:
    """i64 as f64 that rounds on to a narrow float as the integer does: what f64 may not hold is one sticky bit."""
    sticky = (x & ~0x7FF) | torch.where(x & 0x7FF != 0, 0x800, 0)
    return torch.where(x.double().abs() >= 2.0**53, sticky, x).double()


def truncated(x: Tensor, dtype: torch.dtype, low: int, high: int) -> Tensor:
    """Floats as integers from `low` to `high`: toward zero, saturated, NaN as 0."""
    whole = x.double().trunc()
    inside = (whole >= low) & (whole < high + 1)
    result = torch.where(inside, whole, 0.0).long()
    return torch.where(inside | whole.isnan(), result, torch.where(whole < low, low, high)).to(dtype)


def truncated_u64(x: Tensor) -> Tensor:
    """Floats as the bits of u64: toward zero, saturated, NaN as 0."""
    whole = x.double().trunc()
    low = torch.where((whole >= 0) & (whole < 2.0**63), whole, 0.0).long()
    high = torch.where((whole >= 2.0**63) & (whole < 2.0**64), whole - 2.0**63, 0.0).long() ^ ORDER
    result = torch.where(whole < 2.0**63, low, torch.where(whole < 2.0**64, high, -1))
    return torch.where(whole.isnan(), 0, result)


def u64_to_float(x: Tensor, dtype: torch.dtype) -> Tensor:
    """The bits of u64 as floats: the upper half is halved with a sticky bit first."""
    return torch.where(x >= 0, x.to(dtype), ((x >> 1 & ~ORDER) | (x & 1)).to(dtype) * 2)


def u64_to_double(x: Tensor) -> Tensor:
    """The bits of u64 as f64 that rounds on to a narrow float as the integer does."""
    sticky = (x >> 12 & 0xFFFFFFFFFFFFF) | torch.where(x & 0xFFF != 0, 1, 0)
    return torch.where((x >= 0) & (x < 1 << 53), x.double(), sticky.double() * 4096)


# ---------------------------------------------------------------- elementwise


def sign(x: Tensor) -> Tensor:
    """-1, 0 or 1; zeros keep their sign, NaN stays."""
    return torch.where((x == 0) | x.isnan(), x, torch.copysign(torch.ones_like(x), x))


def complex_sign(x: Tensor) -> Tensor:
    """x / |x|; 0 of 0; of an infinity its direction."""
    ends = torch.complex(*(torch.where(part.isinf(), part.sign(), 0.0) for part in (x.real, x.imag)))
    x = torch.where(x.isinf(), ends, x)
    return torch.where(x == 0, torch.zeros_like(x), x / x.abs())


def round_half_away(x: Tensor) -> Tensor:
    """The nearest integer, ties away from zero."""
    whole = x.trunc()
    return torch.where((x - whole).abs() >= 0.5, whole + torch.copysign(torch.ones_like(x), x), whole)


def cube_root(x: Tensor) -> Tensor:
    """The real cube root; a Newton step after the power makes it accurate."""
    wide = x.double()
    root = torch.copysign(wide.abs().pow(1 / 3), wide)
    better = root - (root * root * root - wide) / (3 * root * root)
    return torch.where(better.isfinite() & (wide.abs() < 1e300) & (wide.abs() > 1e-300), better, root).to(x.dtype)


def maximum(a: Tensor, b: Tensor) -> Tensor:
    """The larger; NaN wins, 0.0 is above -0.0."""
    return torch.where((a == 0) & (b == 0), a + b, torch.maximum(a, b))


def minimum(a: Tensor, b: Tensor) -> Tensor:
    """The smaller; NaN wins, -0.0 is below 0.0."""
    return torch.where((a == 0) & (b == 0), -(-a - b), torch.minimum(a, b))


def divide_integers(a: Tensor, b: Tensor) -> Tensor:
    """a / b toward zero; -1 (all bits set) where b is 0. The most negative number by -1 wraps."""
    divisor = torch.where(b == 0, torch.ones_like(b), b)
    if not a.dtype.is_signed:
        return torch.where(b == 0, ~b, torch.div(a, divisor, rounding_mode="trunc"))
    negated = divisor == -1
    quotient = torch.div(a, torch.where(negated, 1, divisor), rounding_mode="trunc")
    return torch.where(b == 0, ~b, torch.where(negated, -a, quotient))


def remainder_of_integers(a: Tensor, b: Tensor) -> Tensor:
    """a - b * trunc(a / b); a where b is 0."""
    divisor = torch.where((b == 0) | (b == -1), torch.ones_like(b), b) if b.dtype.is_signed else torch.where(b == 0, torch.ones_like(b), b)
    return torch.where(b == 0, a, torch.fmod(a, divisor))


def divide_u64(a: Tensor, b: Tensor) -> Tensor:
    """a / b of u64 held as bits; all bits set where b is 0 (H. Warren, Hacker's Delight, section 9-3)."""
    divisor = torch.where(b == 0, 1, b)
    positive = torch.where(divisor < 0, 1, divisor)
    quotient = torch.div(a >> 1 & ~ORDER, positive, rounding_mode="trunc") << 1
    rest = a - quotient * positive
    quotient = quotient + ((rest ^ ORDER) >= (positive ^ ORDER)).long()
    large = ((a ^ ORDER) >= (divisor ^ ORDER)).long()  # a divisor of 2^63 or more goes in once or not at all
    return torch.where(b == 0, -1, torch.where(divisor < 0, large, quotient))


def remainder_u64(a: Tensor, b: Tensor) -> Tensor:
    """a - b * (a / b) of u64 held as bits; a where b is 0."""
    return torch.where(b == 0, a, a - b * divide_u64(a, b))


def power(a: Tensor, b: Tensor) -> Tensor:
    """a to the power b; 1 to any power and anything to the power 0 are 1, NaN too, which torch's vector code forgets."""
    return torch.where((a == 1) | (b == 0), 1.0, torch.pow(a, b))


def power_of_integers(a: Tensor, b: Tensor, *, signed: bool = True) -> Tensor:
    """a to the power b by squaring; a negative power is truncated: 0 unless a is 1 or -1."""
    exponent = torch.where(b < 0, 0, b).long() if signed else b.long()
    result, square = torch.ones_like(a), a
    for _ in range(64):
        result = torch.where(exponent & 1 != 0, result * square, result)
        square, exponent = square * square, exponent >> 1 & ~ORDER
    if not signed:
        return result
    unit = torch.where(a == 1, a, torch.where(b & 1 == 1, a, a * a))
    return torch.where(b < 0, torch.where(a.abs() == 1, unit, torch.zeros_like(a)), result)


def shift_left(x: Tensor, amount: Tensor, bits: int) -> Tensor:
    """x * 2^amount, not wrapped yet; 0 where the amount (as unsigned) is `bits` or more."""
    inside = (amount >= 0) & (amount < bits)
    return torch.where(inside, x << torch.where(inside, amount, 0), 0).to(x.dtype)


def shift_right_logical(x: Tensor, amount: Tensor, bits: int) -> Tensor:
    """The low `bits` bits of x moved down, zeros from above."""
    inside = (amount >= 0) & (amount < bits)
    step = torch.where(inside, amount, 0).long()
    pattern = x.long() & ((1 << bits) - 1) if bits < 64 else x
    moved = torch.where(step == 0, pattern, (pattern >> 1 & ~ORDER) >> (step - 1).clamp(min=0))
    return torch.where(inside, moved, 0).to(x.dtype)


def shift_right_arithmetic(x: Tensor, amount: Tensor, bits: int) -> Tensor:
    """The low `bits` bits of x, read with a sign, moved down."""
    step = torch.where((amount >= 0) & (amount < bits), amount, bits - 1).long()
    pattern = x.long() << 64 - bits >> 64 - bits
    return (pattern >> step).to(x.dtype)


def count_bits(x: Tensor, bits: int) -> Tensor:
    """How many of the low `bits` bits are set."""
    pattern = x.long() & ((1 << bits) - 1) if bits < 64 else x
    return sum((pattern >> place & 1 for place in range(bits)), torch.zeros_like(pattern)).to(x.dtype)


def count_leading_zeros(x: Tensor, bits: int) -> Tensor:
    """How many of the low `bits` bits lie above the highest one that is set."""
    pattern = x.long() & ((1 << bits) - 1) if bits < 64 else x
    count, open_ = torch.zeros_like(pattern), torch.ones_like(pattern)
    for place in reversed(range(bits)):
        open_ = open_ & ~(pattern >> place) & 1
        count = count + open_
    return count.to(x.dtype)


def complex_less(a: Tensor, b: Tensor) -> Tensor:
    """a < b by the real part, then by the imaginary one."""
    return (a.real < b.real) | ((a.real == b.real) & (a.imag < b.imag))


def complex_arc_tangent(y: Tensor, x: Tensor) -> Tensor:
    """The analytic continuation of the angle of the point (x, y)."""
    return -1j * torch.log((x + 1j * y) / torch.sqrt(x * x + y * y))


# ---------------------------------------------------------------- more functions of one number


def round_to_odd(x: Tensor) -> Tensor:
    """f64 to f32 such that a further rounding to a narrower float is the only one (Boldo and Melquiond 2008, theorem 1)."""
    return round_once(x, torch.float32)


def digamma(x: Tensor) -> Tensor:
    """The derivative of log-gamma; NaN at 0, -1, -2 .."""
    return torch.where(x == 0, math.nan, torch.digamma(x))


def zeta(x: Tensor, q: Tensor) -> Tensor:
    """The sum of (q + n)^-x over n = 0, 1, 2 .., with its limits at infinity."""
    value = torch.where((q == math.inf) & (x > 1), 0.0, torch.special.zeta(x, q))
    value = torch.where(x == math.inf, torch.where(q > 1, 0.0, torch.where(q == 1, 1.0, math.inf)), value)
    return torch.where(x.isnan() | q.isnan(), math.nan, value)


def polygamma(n: Tensor, x: Tensor) -> Tensor:
    """The n-th derivative of digamma; NaN where n is no natural number."""
    whole = (n >= 0) & (n == n.floor())
    order = torch.where(whole, n, 1.0)
    factor = torch.exp(torch.lgamma(order + 1)) * torch.where(order % 2 == 0, -1.0, 1.0)
    value = torch.where(order == 0, digamma(x), factor * zeta(order + 1, x))
    return torch.where(whole, value, math.nan)


def reduce_precision(x: Tensor, exponent_bits: int, mantissa_bits: int) -> Tensor:
    """x rounded to a float of so many bits; beyond its range infinite, below it (its subnormals too) zero."""
    fraction, bits = {torch.float64: (52, 64), torch.float32: (23, 32), torch.float16: (10, 16), torch.bfloat16: (7, 16)}[x.dtype]
    number = {64: torch.int64, 32: torch.int32, 16: torch.int16}[bits]
    bias = (1 << (bits - 2 - fraction)) - 1
    pattern = x.contiguous().view(number).long()
    magnitude = pattern & ((1 << (bits - 1)) - 1)
    infinite = ((1 << (bits - 1 - fraction)) - 1) << fraction
    if mantissa_bits < fraction:
        drop = fraction - mantissa_bits
        magnitude = (magnitude + (1 << (drop - 1)) - 1 + (magnitude >> drop & 1)) >> drop << drop
    over, under = magnitude >= infinite, torch.zeros_like(x, dtype=torch.bool)
    if exponent_bits < bits - 1 - fraction:
        reduced = (1 << (exponent_bits - 1)) - 1
        exponent = magnitude >> fraction
        over, under = over | (exponent > bias + reduced), exponent <= bias - reduced
    magnitude = torch.where(over, infinite, torch.where(under, 0, magnitude))
    result = torch.copysign(magnitude.to(number).view(x.dtype), x)
    return torch.where(x.isnan(), torch.full_like(x, math.inf) if mantissa_bits == 0 else x, result)
