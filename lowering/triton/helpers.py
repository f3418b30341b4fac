"""Functions that emitted kernels call: Triton text for what `triton.language` lacks or has with another meaning than the hub.

Only the ones that a module uses are written into it. They need no library beside `triton.language`, so that they run in Triton's
interpreter as on a device. Formulas were derived here; the accuracy of each is what its docstring says, given `tl.exp` and `tl.log`.
"""

from __future__ import annotations

import re

_SOURCES = (
    '''
def largest(a, b):
    """The larger; NaN wins, 0.0 is above -0.0."""
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)
''',
    '''
def smallest(a, b):
    """The smaller; NaN wins, -0.0 is below 0.0."""
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)
''',
    """
def added(a, b):
    return a + b
""",
    """
def multiplied(a, b):
    return a * b
""",
    """
def largest_integer(a, b):
    return tl.maximum(a, b)
""",
    """
def smallest_integer(a, b):
    return tl.minimum(a, b)
""",
    """
def both(a, b):
    return a & b
""",
    """
def either(a, b):
    return a | b
""",
    '''
def with_sign(magnitude, x):
    """`magnitude` with the sign of `x`, both f32."""
    return tl.where(x.to(tl.int32, bitcast=True) < 0, magnitude * -1.0, magnitude)
''',
    """
def with_sign_f64(magnitude, x):
    return tl.where(x.to(tl.int64, bitcast=True) < 0, magnitude * -1.0, magnitude)
""",
    '''
def round_even(x):
    """The nearest integer, ties to even: from 2^23 on an f32 is one, below it the addition rounds."""
    magnitude = tl.abs(x)
    return with_sign(tl.where(magnitude < 8388608.0, (magnitude + 8388608.0) - 8388608.0, magnitude), x)
''',
    """
def round_even_f64(x):
    magnitude = tl.abs(x)
    return with_sign_f64(tl.where(magnitude < 4503599627370496.0, (magnitude + 4503599627370496.0) - 4503599627370496.0, magnitude), x)
""",
    '''
def round_away(x):
    """The nearest integer, ties away from zero."""
    magnitude = tl.abs(x)
    whole = tl.floor(magnitude)
    return with_sign(tl.where(magnitude - whole >= 0.5, whole + 1.0, whole), x)
''',
    """
def round_away_f64(x):
    magnitude = tl.abs(x)
    whole = tl.floor(magnitude)
    return with_sign_f64(tl.where(magnitude - whole >= 0.5, whole + 1.0, whole), x)
""",
    '''
def exp_minus_one(x):
    """exp(x) - 1 in f32, to 3 units in the last place: the series near 0, where the subtraction would cancel."""
    series = 2.48015873015873e-05
    series = 1.984126984126984e-04 + x * series
    series = 1.388888888888889e-03 + x * series
    series = 8.333333333333333e-03 + x * series
    series = 4.166666666666667e-02 + x * series
    series = 1.666666666666667e-01 + x * series
    series = 0.5 + x * series
    return tl.where(tl.abs(x) < 0.5, x * (1.0 + x * series), tl.exp(x) - 1.0)
''',
    '''
def log_plus_one(x):
    """log(1 + x): what rounding took from 1 + x is given back by x / (sum - 1)."""
    total = 1.0 + x
    usual = tl.log(total) * (x / (total - 1.0))
    return tl.where(total == 1.0, x, tl.where(total == float("inf"), total, usual))
''',
    '''
def hyperbolic_tangent(x):
    """tanh(x) in f32, to 5 units in the last place, without overflow."""
    below = exp_minus_one(-2.0 * tl.abs(x))
    return with_sign(-below / (below + 2.0), x)
''',
    '''
def error_function(x):
    """erf(x) in f32, to 2 units in the last place: below 1 a polynomial, beyond it 1 less a power of two of ever smaller exponent."""
    square = x * x
    near = 0.004917559213936329 + square * -0.000563145091291517
    near = -0.026711318641901016 + square * near
    near = 0.11280180513858795 + square * near
    near = -0.37612324953079224 + square * near
    near = 0.12837912142276764 + square * near
    near = x + x * near
    size = tl.abs(x)
    left = 0.02139783464372158 + size * -0.0016695174854248762
    left = -0.12811093032360077 + size * left
    left = -0.94386887550354 + size * left
    left = -1.612386703491211 + size * left
    left = -0.003778661135584116 + size * left
    far = (1.0 - tl.exp2(left)).to(tl.int32, bitcast=True) | (x.to(tl.int32, bitcast=True) & -2147483648)
    return tl.where(size < 1.0, near, far.to(tl.float32, bitcast=True))
''',
    '''
def logistic(x):
    """1 / (1 + exp(-x)), 0 where the exponential is infinite."""
    return 1.0 / (1.0 + tl.exp(-x))
''',
    '''
def power(x, y):
    """x to the power y for f32, by way of f64, with IEEE 754's special cases."""
    raised = tl.exp2(y.to(tl.float64) * tl.log2(tl.abs(x).to(tl.float64))).to(tl.float32)
    half = y * 0.5
    whole = tl.floor(y) == y
    odd = whole & (tl.floor(half) != half)
    signed = tl.where(odd, with_sign(raised, x), raised)
    undefined = (x < 0) & (x != float("-inf")) & (y == y) & (tl.abs(y) != float("inf")) & (whole == 0)
    one = (x == 1.0) | (y == 0.0) | ((x == -1.0) & (tl.abs(y) == float("inf")))
    return tl.where(one, 1.0, tl.where(undefined, float("nan"), signed))
''',
    '''
def integer_power(x, y, BITS: tl.constexpr):
    """x to the power y, wrapped; a negative power is 0 but of 1 and -1."""
    result = tl.where(y == y, 1, x)
    square = x
    exponent = tl.where(y < 0, 0, y)
    for _ in range(BITS):
        result = tl.where((exponent & 1) == 1, result * square, result)
        square = square * square
        exponent = exponent >> 1
    unit = tl.where(x == 1, 1, tl.where((y & 1) == 1, x, 1))
    return tl.where(y < 0, tl.where((x == 1) | (x + 1 == 0), unit, 0), result).to(x.dtype)
''',
    '''
def signed_quotient(a, b):
    """a / b truncated; -1 where b is 0."""
    safe = tl.where((b == 0) | (b == -1), 1, b)
    return tl.where(b == 0, -1, tl.where(b == -1, 0 - a, a // safe)).to(a.dtype)
''',
    '''
def unsigned_quotient(a, b):
    """a / b truncated; all bits where b is 0."""
    return tl.where(b == 0, b - 1, a // tl.where(b == 0, 1, b)).to(a.dtype)
''',
    '''
def signed_rest(a, b):
    """a - b * (a / b), with the sign of a; a where b is 0."""
    safe = tl.where((b == 0) | (b == -1), 1, b)
    return tl.where(b == 0, a, a % safe).to(a.dtype)
''',
    """
def unsigned_rest(a, b):
    return tl.where(b == 0, a, a % tl.where(b == 0, 1, b)).to(a.dtype)
""",
    '''
def floor_quotient(a, b):
    """a // b rounded to minus infinity, b > 0 (Triton's `//` truncates)."""
    return tl.where(a < 0, -((b - 1 - a) // b), a // b)
''',
    """
def floor_rest(a, b):
    return a - b * floor_quotient(a, b)
""",
    '''
def shifted_left(a, b, BITS: tl.constexpr):
    """a << b; 0 where b, taken as unsigned, is the width or more."""
    beyond = (b < 0) | (b >= BITS)
    return tl.where(beyond, 0, a << tl.where(beyond, 0, b)).to(a.dtype)
''',
    '''
def shifted_right(a, b, BITS: tl.constexpr):
    """The bits of an unsigned a moved down; 0 where b is the width or more."""
    beyond = (b < 0) | (b >= BITS)
    return tl.where(beyond, 0, a >> tl.where(beyond, 0, b)).to(a.dtype)
''',
    '''
def shifted_right_signed(a, b, BITS: tl.constexpr):
    """a moved down with copies of its sign bit; only those are left where b is the width or more."""
    return (a >> tl.where((b < 0) | (b >= BITS), BITS - 1, b)).to(a.dtype)
''',
    '''
def rank_of_f32(x):
    """Signed integers in the order of floats: both zeros are one, NaN is above all."""
    bits = tl.where(x == 0.0, 0.0, x).to(tl.int32, bitcast=True)
    return tl.where(x == x, bits ^ ((bits >> 31) & 0x7FFFFFFF), 0x7FFFFFFF)
''',
    """
def rank_of_f64(x):
    bits = tl.where(x == 0.0, 0.0, x).to(tl.int64, bitcast=True)
    return tl.where(x == x, bits ^ ((bits >> 63) & 0x7FFFFFFFFFFFFFFF), 0x7FFFFFFFFFFFFFFF)
""",
    '''
def first_of_ranks(rank, place, inside, COUNT: tl.constexpr):
    """The places of the first COUNT elements of each row in the order of their ranks, equal ones in that of their places; what is outside
    comes last."""
    packed = (rank.to(tl.int64) << 32) | place
    packed = tl.where(inside, packed, 0x7FFFFFFFFFFFFFFF)
    if COUNT < rank.shape[1]:
        packed = ~tl.topk(~packed, COUNT)
    else:
        packed = tl.sort(packed)
    return (packed & 0x7FFFFFFF).to(tl.int32)
''',
    '''
def first_at_least(keys_ptr, step, count, wanted):
    """For each of `wanted` how many of the ascending `count` keys, `step` apart, are less."""
    low = wanted * 0
    left = tl.full((), count, low.dtype)
    while left > 1:
        half = left // 2
        low = tl.where(tl.load(keys_ptr + (low + (half - 1)) * step) < wanted, low + half, low)
        left -= half
    last = tl.load(keys_ptr + low * step, mask=low < count, other=0) < wanted
    low = tl.where(last & (low < count), low + 1, low)
    return low
''',
    '''
def high_half(bits):
    """The bf16 that the high 16 of 32 bits mean."""
    return (bits >> 16).to(tl.int16).to(tl.bfloat16, bitcast=True)
''',
    '''
def in_bf16(x):
    """An f32 as three bf16, whose sum it is where it is 2^-110 or more: its first 8 bits, the next ones rounded to 8, and what is left. Of
    an infinity or NaN the first is the same (the sum makes the bits of any NaN plain), the others are anything."""
    first = (x + 0.0).to(tl.int32, bitcast=True) & -65536
    rest = x - first.to(tl.float32, bitcast=True)
    second = (rest.to(tl.int32, bitcast=True) + 32768) & -65536
    third = (rest - second.to(tl.float32, bitcast=True)).to(tl.int32, bitcast=True)
    return high_half(first), high_half(second), high_half(third)
''',
    """
def where_finite(x):
    return tl.where(tl.abs(x) < float("inf"), x, 0.0)
""",
    '''
def lesser_products(a1, a2, a3, b1, b2, b3):
    """Of the products of two sums of three the five that count beside the first, the least ones first; 0 where an operand is not finite."""
    total = tl.dot(a3, b1)
    total = tl.dot(a1, b3, total)
    total = tl.dot(a2, b2, total)
    total = tl.dot(a2, b1, total)
    return where_finite(tl.dot(a1, b2, total))
''',
    '''
def product_bf16x6(a, b):
    """The product of two matrices of f32 by six of bf16: 2^-22 of a single product is left out at most."""
    a1, a2, a3 = in_bf16(a)
    b1, b2, b3 = in_bf16(b)
    return tl.dot(a1, b1, lesser_products(a1, a2, a3, b1, b2, b3))
''',
    '''
def summed_bf16x6(a, b, total, lesser):
    """The same, added to two sums: of the first products, and of the others, of which those that are finite count in the end."""
    a1, a2, a3 = in_bf16(a)
    b1, b2, b3 = in_bf16(b)
    lesser = tl.dot(a3, b1, lesser)
    lesser = tl.dot(a1, b3, lesser)
    lesser = tl.dot(a2, b2, lesser)
    lesser = tl.dot(a2, b1, lesser)
    lesser = tl.dot(a1, b2, lesser)
    return tl.dot(a1, b1, total), lesser
''',
    '''
def added_product_bf16x6(a, b, total):
    """The same, added to `total`."""
    a1, a2, a3 = in_bf16(a)
    b1, b2, b3 = in_bf16(b)
    return tl.dot(a1, b1, total + lesser_products(a1, a2, a3, b1, b2, b3))
''',
    '''
def from_f8e4m3fn(bits):
    """The f32 that the 8 bits mean: as an f16 with the same fields it is 2^8 too small."""
    wide = bits.to(tl.int16)
    value = (((wide & 128) << 8) | ((wide & 127) << 7)).to(tl.float16, bitcast=True).to(tl.float32) * 256.0
    return tl.where((wide & 127) == 127, float("nan"), value)
''',
    '''
def from_f8e8m0fnu(bits):
    """The power of two in f32 that the 8 bits mean: they are its exponent, but for the least, which is subnormal, and NaN."""
    wide = bits.to(tl.int32)
    pattern = tl.where(wide == 0, 0x400000, wide << 23)
    return tl.where(wide == 255, 0x7FC00000, pattern).to(tl.float32, bitcast=True)
''',
    '''
def to_f8e8m0fnu(x):
    """The 8 bits of an f32 that is a power of two, or NaN."""
    return ((x.to(tl.int32, bitcast=True) >> 23) & 255).to(tl.uint8)
''',
    '''
def bits_of(byte, below, count):
    """`count` bits of a byte as an i32, above as many as are `below`."""
    return (byte.to(tl.int32) >> below) & ((1 << count) - 1)
''',
    '''
def signed_bits(bits, count):
    """The integer that `count` bits in two's complement mean."""
    return (bits ^ (1 << (count - 1))) - (1 << (count - 1))
''',
    '''
def from_f4e2m1fn(bits):
    """The f32 that the 4 bits mean: as an f16 with the same fields it is 2^14 too small."""
    return (((bits & 8) << 12) | ((bits & 7) << 9)).to(tl.int16).to(tl.float16, bitcast=True).to(tl.float32) * 16384.0
''',
    '''
def to_f8e4m3fn(x):
    """The 8 bits nearest to an f32, ties to even; NaN beyond 464, as the type has no infinity."""
    magnitude = tl.abs(x)
    pattern = magnitude.to(tl.int32, bitcast=True)
    normal = ((pattern + 0x7FFFF + ((pattern >> 20) & 1)) >> 20) - 960
    small = (magnitude + 16384.0).to(tl.int32, bitcast=True) - 0x46800000
    code = tl.where(magnitude < 0.015625, small, tl.where(magnitude <= 464.0, normal, 127))
    sign = (x.to(tl.int32, bitcast=True) >> 24) & 128
    return (code | sign).to(tl.uint8)
''',
    '''
def from_f8e5m2(bits):
    """The f32 that the 8 bits mean: the high byte of an f16."""
    return (bits.to(tl.int16) << 8).to(tl.float16, bitcast=True).to(tl.float32)
''',
    '''
def to_f8e5m2(x):
    """The 8 bits nearest to an f32, ties to even; an infinity from 61440 on."""
    magnitude = tl.abs(x)
    pattern = magnitude.to(tl.int32, bitcast=True)
    normal = ((pattern + 0xFFFFF + ((pattern >> 21) & 1)) >> 21) - 448
    small = (magnitude + 128.0).to(tl.int32, bitcast=True) - 0x43000000
    code = tl.where(magnitude < 0.00006103515625, small, tl.where(magnitude < 61440.0, normal, 124))
    code = tl.where(x == x, code, 126)
    sign = (x.to(tl.int32, bitcast=True) >> 24) & 128
    return (code | sign).to(tl.uint8)
''',
)


def _name(source: str) -> str:
    match = re.match(r"\s*def (\w+)", source)
    assert match is not None
    return match.group(1)


HELPERS = {_name(source): source.strip() + "\n" for source in _SOURCES}
_WORD = re.compile(r"[A-Za-z_]\w*")
_SAID = re.compile(r'"""[\s\S]*?"""|#.*')  # docstrings and comments


def helpers_of(text: str) -> list[str]:
    """The names of the helpers that `text` calls or passes on, with those that they call, in the order of this file."""
    wanted: set[str] = set()
    stack = [text]
    while stack:
        found = set(_WORD.findall(_SAID.sub("", stack.pop()))) & HELPERS.keys() - wanted
        wanted |= found
        stack += [HELPERS[name] for name in found]
    return [name for name in HELPERS if name in wanted]


def helper_text(names: list[str]) -> str:
    """Their definitions as Triton source."""
    return "".join(f"@triton.jit\n{HELPERS[name]}\n\n" for name in names)
