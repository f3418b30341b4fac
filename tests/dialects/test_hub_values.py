"""Known values of the hub's meanings, against Python integers, brute force and the mathematics."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coset.dialects  # noqa: F401  (registers the ops)
from coset.dialects.hub.scalars import cast, widen
from coset.dialects.hub.special import complementary_error_function, error_function
from coset.dialects.hub.tensors import identity, reduced
from coset.ir.dtype_classes import CLASSES
from coset.ir.term import constant, make
from coset.ir.types import BF16, BOOL, DTYPES, F16, F32, F64, I8, I32, U8, DType

INF, NAN = math.inf, math.nan


def run(name: str, *operands: object, **attributes: object) -> np.ndarray[Any, Any]:
    """The meaning of the op on arrays."""
    arrays = [np.asarray(operand) for operand in operands]
    term = make(name if "." in name else f"stablehlo.{name}", [constant(array) for array in arrays], attributes)
    assert term.op.meaning is not None
    result = term.op.meaning(term, arrays, {})
    assert isinstance(result, np.ndarray) and result.shape == term.tensor.static
    return result


def wrap(value: int, dtype: DType) -> int:
    low = value & ((1 << dtype.bits) - 1)
    return low - (1 << dtype.bits) if dtype.kind == "int" and low >> (dtype.bits - 1) else low


def truncated(a: int, b: int) -> int:
    return -1 if b == 0 else (abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1)


INTEGER_ORACLES = {
    "add": lambda a, b, _: a + b,
    "subtract": lambda a, b, _: a - b,
    "multiply": lambda a, b, _: a * b,
    "divide": lambda a, b, _: truncated(a, b),
    "remainder": lambda a, b, _: a - truncated(a, b) * b if b else a,
    "power": lambda a, b, _: a**b if b >= 0 else (0 if abs(a) != 1 else a**-b),
    "shift_left": lambda a, b, t: a << (b % (1 << t.bits)) if b % (1 << t.bits) < t.bits else 0,
    "shift_right_logical": lambda a, b, t: (a % (1 << t.bits)) >> (b % (1 << t.bits)),
    "shift_right_arithmetic": lambda a, b, t: wrap(a, DTYPES[f"i{t.bits}"]) >> min(b % (1 << t.bits), t.bits - 1),
    "maximum": lambda a, b, _: max(a, b),
    "and": lambda a, b, _: a & b,
    "xor": lambda a, b, _: a ^ b,
}


@pytest.mark.parametrize("name", INTEGER_ORACLES)
@pytest.mark.parametrize("dtype", [I8, U8, DTYPES["i4"], DTYPES["u4"], DTYPES["i2"], DTYPES["u2"]], ids=str)
def test_small_integers_are_python_integers_wrapped(name: str, dtype: DType) -> None:
    low, high = (-(1 << dtype.bits - 1), 1 << dtype.bits - 1) if dtype.kind == "int" else (0, 1 << dtype.bits)
    values = range(low, high) if dtype.bits <= 4 else [low, low + 1, -7 % 256 - 128, 0, 1, 2, 3, 7, 8, 100, high - 1]
    pairs = [(a, b) for a, b in product(values, values) if low <= a < high and low <= b < high]
    a, b = (cast(np.array(side), dtype) for side in zip(*pairs, strict=True))
    expected = [wrap(INTEGER_ORACLES[name](x, y, dtype), dtype) for x, y in pairs]
    assert widen(run(name, a, b)).tolist() == expected


@pytest.mark.parametrize("bits", [32, 64])
def test_extreme_integers_do_not_crash(bits: int) -> None:
    low = -(1 << bits - 1)
    a = np.array([low, low, 7, -7, 5], f"int{bits}")
    b = np.array([-1, 0, 2, 2, 0], f"int{bits}")
    assert run("divide", a, b).tolist() == [low, -1, 3, -3, -1]
    assert run("remainder", a, b).tolist() == [0, low, 1, -1, 5]
    assert run("divide", a.view(f"uint{bits}"), b.view(f"uint{bits}")).tolist()[1] == (1 << bits) - 1
    assert run("abs", a).tolist()[0] == low and run("negate", a).tolist()[0] == low
    assert run("power", np.array(3, f"int{bits}"), np.array(5, f"int{bits}")).item() == 243


@pytest.mark.parametrize(
    ("name", "operand", "expected"),
    [
        ("sign", [-2.0, -0.0, 0.0, NAN, INF], [-1.0, -0.0, 0.0, NAN, 1.0]),
        ("round_nearest_even", [0.5, 1.5, 2.5, -0.5], [0.0, 2.0, 2.0, -0.0]),
        ("round_nearest_afz", [0.5, 2.5, -0.5, 0.49999999999999994, INF, -0.2], [1.0, 3.0, -1.0, 0.0, INF, -0.0]),
        ("rsqrt", [4.0, 0.0, -0.0, -1.0, INF], [0.5, INF, -INF, NAN, 0.0]),
        ("cbrt", [-8.0, 27.0, -0.0], [-2.0, 3.0, -0.0]),
        ("logistic", [0.0, 1000.0, -1000.0, NAN, -740.0], [0.5, 1.0, 0.0, NAN, math.exp(-740.0)]),
        ("log_plus_one", [1e-20, -1.0, -2.0], [1e-20, -INF, NAN]),
        ("exponential_minus_one", [1e-20, -INF], [1e-20, -1.0]),
        ("floor", [-0.5, 1.5], [-1.0, 1.0]),
        ("ceil", [-0.5, 1.5], [-0.0, 2.0]),
        ("abs", [-0.0, -INF, NAN], [0.0, INF, NAN]),
        ("chlo.asin", [1.0, 2.0], [math.pi / 2, NAN]),
        ("chlo.acosh", [1.0, 0.5], [0.0, NAN]),
        ("chlo.atanh", [1.0, -1.0], [INF, -INF]),
        ("chlo.erf", [0.0, -0.0, INF, -INF, NAN, 0.5], [0.0, -0.0, 1.0, -1.0, NAN, math.erf(0.5)]),
        ("chlo.erfc", [0.0, INF, -INF, NAN, 2.5], [1.0, 0.0, 2.0, NAN, math.erfc(2.5)]),
    ],
)  # fmt: skip
def test_floats_of_one_operand(name: str, operand: list[float], expected: list[float]) -> None:
    result = run(name, np.array(operand))
    np.testing.assert_allclose(result, expected, rtol=4 * np.finfo(np.float64).eps)
    assert (np.signbit(result) == np.signbit(expected))[~np.isnan(expected)].all()


@pytest.mark.parametrize("dtype", [F64, F32, F16, BF16], ids=str)
def test_maximum_and_minimum_order_zeros_and_keep_nan(dtype: DType) -> None:
    a, b = cast(np.array([-0.0, 0.0, -0.0, NAN, 1.0, -INF]), dtype), cast(np.array([0.0, -0.0, -0.0, 1.0, NAN, 3.0]), dtype)
    larger, smaller = widen(run("maximum", a, b)), widen(run("minimum", a, b))
    assert np.signbit(larger[:3]).tolist() == [False, False, True] and np.signbit(smaller[:3]).tolist() == [True, True, True]
    np.testing.assert_array_equal(larger[3:], [NAN, NAN, 3.0])
    np.testing.assert_array_equal(smaller[3:], [NAN, NAN, -INF])


def test_predicates_comparison_choice() -> None:
    x = np.array([1.0, NAN, INF, -INF], np.float16)
    assert run("is_finite", x).tolist() == [True, False, False, False]
    assert run("chlo.is_nan", x).tolist() == [False, True, False, False]
    assert run("chlo.is_inf", x).tolist() == [False, False, True, True]
    assert run("compare", x, x, direction="EQ").tolist() == [True, False, True, True]
    assert run("compare", x, x, direction="NE").tolist() == [False, True, False, False]
    assert run("compare", np.array([1, 2], np.uint8), np.array([2, 1], np.uint8), direction="LT").tolist() == [True, False]
    assert run("compare", np.array([1 + 2j]), np.array([1 + 3j]), direction="LT").tolist() == [True]
    assert run("select", np.array(False), np.array([1, 2]), np.array([3, 4])).tolist() == [3, 4]
    assert run("select", np.array([True, False]), np.array([1, 2]), np.array([3, 4])).tolist() == [1, 4]
    np.testing.assert_array_equal(run("clamp", np.array(0.0), np.array([-1.0, 0.5, 9.0, NAN]), np.array(1.0)), [0, 0.5, 1, NAN])
    assert run("not", np.array([True, False])).tolist() == [False, True] and run("not", np.array([0], np.uint8)).tolist() == [255]
    assert run("add", np.array([True, True]), np.array([True, False])).tolist() == [True, True]


@pytest.mark.parametrize(
    ("operand", "dtype", "expected"),
    [
        (np.array([1.9, -1.9, NAN, INF, -INF, 3e9]), I32, [1, -1, 0, 2**31 - 1, -(2**31), 2**31 - 1]),
        (np.array([1e30, -1e30], np.float32), DTYPES["i64"], [2**63 - 1, -(2**63)]),
        (np.array([1e30, -1.0, 200.7], np.float32), U8, [255, 0, 200]),
        (np.array([1.0, 0.0, NAN, -0.0]), BOOL, [True, False, True, False]),
        (np.array([300, -1]), U8, [44, 255]),
        (np.array([9, -9]), DTYPES["i4"], [-7, 7]),
        (np.array([True, False]), BF16, [1.0, 0.0]),
        (np.array([3 + 4j, 0j]), F32, [3.0, 0.0]),
        (np.array([3 + 4j, 4j, 0j]), BOOL, [True, True, False]),
        (np.array([65520.0, 65519.0]), F16, [INF, 65504.0]),
    ],
)  # fmt: skip
def test_conversion(operand: np.ndarray[Any, Any], dtype: DType, expected: list[Any]) -> None:
    np.testing.assert_array_equal(widen(run("convert", operand, dtype=dtype)), expected)


def nearest(value: Fraction, dtype: DType) -> list[float]:
    """The finite values of an 8 or 16 bit float that are nearest to `value` (two for a tie)."""
    storage = np.uint8 if dtype.bits == 8 else np.uint16
    with np.errstate(invalid="ignore"):
        every = np.arange(1 << dtype.bits).astype(storage).view(dtype.numpy).astype(np.float64)
    every = np.unique(every[np.isfinite(every)])
    at = int(np.searchsorted(every, float(value)))
    around = every[max(0, at - 2) : at + 2].tolist()
    best = min(abs(Fraction(v) - value) for v in around)
    return [v for v in around if abs(Fraction(v) - value) == best]


@pytest.mark.parametrize("dtype", [BF16, F16, DTYPES["f8e5m2"], DTYPES["f8e4m3fn"]], ids=str)
@pytest.mark.parametrize("kind", ["float64", "int64", "uint64"])
def test_conversion_rounds_once(dtype: DType, kind: str) -> None:
    """Bug found here: ml_dtypes converts f64 and i64 to bf16 through f32, which rounds twice."""
    random = np.random.default_rng(5)
    largest = float(ml_dtypes.finfo(dtype.numpy).max)
    middles = np.abs(cast(random.normal(0, 1, 40) * 2.0 ** random.integers(-2, 50, 40), dtype).astype(np.float64))
    middles = middles[(middles < largest / 2) & (middles > 0)]
    ulp = middles * (float(ml_dtypes.finfo(dtype.numpy).eps) / 2)
    values = np.concatenate([middles + ulp / 2 * (1 + t) for t in (0, 1e-10, -1e-10)] + [middles + ulp])
    values = (values * (2**10 if kind != "float64" and largest > 1e30 else 1)).astype(kind)
    for value, result in zip(values, cast(values, dtype).astype(np.float64), strict=True):
        exact = Fraction(value.item())
        assert result in nearest(exact, dtype), (value, result)


def test_f64_to_bf16_of_a_double_rounding_trap() -> None:
    value = 1 + 2**-8 + 2**-40  # just above the middle of two bf16 numbers; f32 sees the middle itself
    assert float(cast(np.array(value), BF16)) == 1 + 2**-7
    assert float(cast(np.array(-value), BF16)) == -1 - 2**-7
    assert float(cast(np.array((1 << 60) + (1 << 52) + 1), BF16)) == float((1 << 60) + (1 << 53))
    assert float(cast(np.array(1e-300), BF16)) == 0.0 and float(cast(np.array(-1e-300), BF16)) == 0.0


def test_narrow_floats_round_once() -> None:
    a, b = cast(np.array([1.0, 3.0]), BF16), cast(np.array([2.0**-9, 2.0**-7]), BF16)
    assert widen(run("add", a, b)).tolist() == [1.0, 3.0]
    many = cast(np.full(4096, 1.0), BF16)
    assert float(run("reduce", many, dimensions=(0,), combiner="add")) == 4096.0
    assert float(run("dot_general", many, many, lhs_contract=(0,), rhs_contract=(0,))) == 4096.0


@pytest.mark.parametrize("function", [(error_function, math.erf), (complementary_error_function, math.erfc)], ids=["erf", "erfc"])
def test_error_functions_to_eight_units_in_the_last_place(function: Any) -> None:
    ours, oracle = function
    x = np.concatenate([np.linspace(-7, 26, 20_001), [1e-300, 0.46875, -0.46875, 4.0, 5e-324]])
    expected = np.array([oracle(value) for value in x])
    assert (np.abs(ours(x) - expected) <= 8 * np.spacing(np.abs(expected))).all()


# ---------------------------------------------------------------- tensors


def test_broadcast_reshape_transpose_slice() -> None:
    x = np.arange(6).reshape(2, 3)
    turned = np.broadcast_to(x.T[:, None, :], (3, 4, 2))
    assert run("broadcast_in_dim", x, shape=(3, 4, 2), broadcast_dimensions=(2, 0)).tolist() == turned.tolist()
    assert run("broadcast_in_dim", np.array(7), shape=(2,), broadcast_dimensions=()).tolist() == [7, 7]
    assert run("reshape", x, shape=(3, 2)).tolist() == [[0, 1], [2, 3], [4, 5]]
    assert run("transpose", x, permutation=(1, 0)).tolist() == x.T.tolist()
    assert run("slice", x, start=(0, 0), limit=(2, 3), strides=(1, 2)).tolist() == [[0, 2], [3, 5]]
    assert run("concatenate", x, x[:, :1], dimension=1).tolist() == [[0, 1, 2, 0], [3, 4, 5, 3]]
    assert run("reverse", x, dimensions=(1,)).tolist() == [[2, 1, 0], [5, 4, 3]]
    assert run("iota", shape=(2, 3), dtype=I32, dimension=1).tolist() == [[0, 1, 2], [0, 1, 2]]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(size=st.integers(0, 4), low=st.integers(-6, 4), high=st.integers(-6, 4), interior=st.integers(0, 2))
def test_pad_is_the_index_map_of_the_specification(size: int, low: int, high: int, interior: int) -> None:
    total = low + high + max(size - 1, 0) * interior + size
    if total < 0:
        return
    expected = [0] * total
    for index in range(size):  # result_index = low + operand_index * (interior + 1)
        if 0 <= low + index * (interior + 1) < total:
            expected[low + index * (interior + 1)] = index + 1
    result = run("pad", np.arange(1, size + 1), np.array(0), low=(low,), high=(high,), interior=(interior,))
    assert result.tolist() == expected


@settings(max_examples=60, deadline=None, derandomize=True)
@given(data=st.data())
def test_dot_general_is_einsum(data: Any) -> None:
    sizes = {letter: data.draw(st.integers(0, 3)) for letter in "abkmxy"}
    batch, depth = data.draw(st.sampled_from(["", "a", "ab"])), data.draw(st.sampled_from(["", "k", "km"]))
    left, right = ("".join(data.draw(st.permutations(batch + depth + free))) for free in ("x", "y"))
    random = np.random.default_rng(0)
    lhs, rhs = (random.integers(-9, 9, [sizes[c] for c in side]) for side in (left, right))
    result = run("dot_general", lhs, rhs, lhs_batch=tuple(map(left.index, batch)), rhs_batch=tuple(map(right.index, batch)),
                 lhs_contract=tuple(map(left.index, depth)), rhs_contract=tuple(map(right.index, depth)))  # fmt: skip
    np.testing.assert_array_equal(result, np.einsum(f"{left},{right}->{batch}xy", lhs, rhs))


def test_integer_matmul_wraps() -> None:
    a = np.full((2, 4), 100, np.int8)
    assert run("dot_general", a, a, lhs_contract=(1,), rhs_contract=(1,)).tolist() == [[wrap(40_000, I8)] * 2] * 2
    big = np.full((1, 3), 2**31 - 1, np.int32)
    assert run("dot_general", big, big, lhs_contract=(1,), rhs_contract=(1,)).item() == wrap(3 * (2**31 - 1) ** 2, I32)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(data=st.data())
def test_convolution_is_the_sum_of_its_definition(data: Any) -> None:
    rank = data.draw(st.integers(1, 2))
    features, batches = data.draw(st.sampled_from([(1, 1), (2, 1), (1, 2)]))
    per_dim = lambda low, high: tuple(data.draw(st.integers(low, high)) for _ in range(rank))  # noqa: E731
    sizes, window, strides, spread, dilation = per_dim(2, 4), per_dim(1, 2), per_dim(1, 2), per_dim(1, 2), per_dim(1, 2)
    padding = tuple(zip(per_dim(-1, 2), per_dim(-1, 2), strict=True))
    random = np.random.default_rng(1)
    x = random.integers(-5, 5, (2 * batches, 2 * features, *sizes))
    kernel = random.integers(-5, 5, (2 * features * batches, 2, *window))
    result = run("convolution", x, kernel, strides=strides, padding=padding, lhs_dilation=spread, rhs_dilation=dilation,
                 feature_group_count=features, batch_group_count=batches)  # fmt: skip
    group = kernel.shape[0] // (features * batches)
    for n, o, *position in np.ndindex(*result.shape):
        g, total = o // group, 0
        for c, *offset in np.ndindex(*kernel.shape[1:]):
            at = [p * s + k * d - pad[0] for p, s, k, d, pad in zip(position, strides, offset, dilation, padding, strict=True)]
            if all(i >= 0 and i % s == 0 and i // s < size for i, s, size in zip(at, spread, sizes, strict=True)):
                image, channel = (n + 2 * g, c) if batches > 1 else (n, c + 2 * g)
                total += int(x[(image, channel, *(i // s for i, s in zip(at, spread, strict=True)))]) * int(kernel[(o, c, *offset)])
        assert result[(n, o, *position)] == total


@pytest.mark.parametrize("combiner", ["add", "multiply", "maximum", "minimum", "and", "or"])
def test_reduce_of_nothing_is_the_identity(combiner: str) -> None:
    classes = ("int",) if combiner in ("and", "or") else ("int", "float")
    for dtype in (*(d for name in classes for d in CLASSES[name]), BOOL):
        neutral = identity(combiner, dtype)
        assert neutral.dtype == dtype.numpy and neutral.shape == ()
        empty = reduced(np.zeros((2, 0), dtype.numpy), (1,), combiner)
        np.testing.assert_array_equal(widen(empty), np.broadcast_to(widen(neutral), (2,)))


def test_reduce() -> None:
    x = np.array([[1.0, NAN, -3.0], [4.0, 5.0, -0.0]], np.float32)
    np.testing.assert_array_equal(run("reduce", x, dimensions=(1,), combiner="maximum"), [NAN, 5.0])
    np.testing.assert_array_equal(run("reduce", x, dimensions=(0,), combiner="add"), [5.0, NAN, -3.0])
    zeros = run("reduce", np.array([[-0.0, 0.0], [0.0, -0.0], [-0.0, -0.0]]), dimensions=(1,), combiner="maximum")
    assert np.signbit(zeros).tolist() == [False, False, True]
    assert run("reduce", np.array([100, 100], np.int8), dimensions=(0,), combiner="add").item() == wrap(200, I8)
    assert run("reduce", np.array([True, False]), dimensions=(0,), combiner="and").item() is False
    assert run("reduce", np.array(3.0), dimensions=(), combiner="add").item() == 3.0


def test_reduce_does_not_depend_on_the_memory_layout() -> None:
    x = np.random.default_rng(2).normal(size=(33, 65)).astype(np.float32)
    a = run("reduce", x, dimensions=(0,), combiner="add")
    assert a.tobytes() == reduced(np.asfortranarray(x), (0,), "add").tobytes()
    assert a.tobytes() == run("reduce", np.ascontiguousarray(x.T), dimensions=(1,), combiner="add").tobytes()
