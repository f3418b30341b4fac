"""ONNX's elementwise ops by our definitions against ONNX Runtime without optimization, or ONNX's own evaluator where it has no kernel."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import helper
from onnx.numpy_helper import saturate_cast, to_float8e8m0

from coset.dialects.onnx.dtypes import CODE_OF_DTYPE
from coset.ir.errors import CosetError
from coset.ir.types import DTYPES
from tests.dialects.onnx_runs import by_reference, by_runtime, model_of, ours, symbolic

FLOATS = ("f64", "f32", "f16", "bf16")
EIGHTS = ("f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz")
INTEGERS = ("i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8")
NARROW = ("i4", "i2", "u4", "u2")
SHAPES: tuple[tuple[int, ...], ...] = ((), (7,), (0, 3), (2, 3, 4))
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, np.inf, -np.inf, np.nan)


def draw(seed: int, dtype: str, shape: tuple[int, ...], *, low: float = -6, high: float = 6) -> Any:
    """Numbers of `dtype` between low and high (those that it holds)."""
    generator = np.random.default_rng(seed)
    kind = DTYPES[dtype].kind
    if kind == "bool":
        return generator.random(shape) < 0.5
    if kind == "float":
        return np.asarray(generator.uniform(low, high, shape)).astype(DTYPES[dtype].numpy)
    info = ml_dtypes.iinfo(DTYPES[dtype].numpy)
    bounds = max(int(low), int(info.min)), min(int(high), int(info.max))
    return np.asarray(generator.integers(bounds[0], bounds[1] + 1, shape)).astype(DTYPES[dtype].numpy)


def theirs(model: Any, inputs: Any) -> list[Any]:
    """ONNX Runtime's results; ONNX's own evaluator's where it has no kernel."""
    try:
        return by_runtime(model, inputs)
    except Exception:
        return by_reference(model, inputs)


def assert_close(found: Any, expected: Any, *, units: float = 0) -> None:
    """One type and shape; equal within `units` of rounding (0: equal values, all NaNs one)."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    if found.dtype.kind in "biu" or found.dtype.name in ("int4", "uint4", "int2", "uint2"):
        np.testing.assert_array_equal(found.astype(object), expected.astype(object))
        return
    eps = float(ml_dtypes.finfo(found.dtype).eps)
    a, b = found.astype(np.float64), expected.astype(np.float64)
    np.testing.assert_allclose(a, b, rtol=units * eps, atol=units * eps * 0.1, equal_nan=True)


# ---------------------------------------------------------------- conversions


def cast(x: Any, target: str) -> Any:
    """The conversion by NumPy, ml_dtypes and the onnx package's helpers."""
    dtype = DTYPES[target].numpy
    wide = x if x.dtype.kind in "iufb" else x.astype(np.float32)
    if target == "f8e8m0fnu":
        return to_float8e8m0(wide.astype(np.float32))
    with np.errstate(all="ignore"):
        return saturate_cast(wide.astype(np.float32), dtype) if target in EIGHTS else wide.astype(dtype)


@pytest.mark.parametrize("source", [*FLOATS, *EIGHTS, "f8e8m0fnu", "f4e2m1fn", *INTEGERS, *NARROW, "bool"])
def test_cast_takes_and_gives_every_type(source: str) -> None:
    """Values that the target holds or rounds; what lies beyond a float of 8 bits saturates."""
    for target in (*FLOATS, *EIGHTS, "f8e8m0fnu", "f4e2m1fn", *INTEGERS, *NARROW, "bool"):
        unsigned = DTYPES[target].kind == "uint" or "f8e8m0fnu" in (source, target)
        x = draw(len(target), source, (3, 5), low=0.51 if unsigned else -4, high=3 if target in ("u2", "i2") else 6)
        if source in FLOATS and target in EIGHTS:
            with np.errstate(over="ignore"):
                x = np.concatenate([x.ravel(), np.asarray([1e5, -1e5, 500, -0.0, np.inf, -np.inf, np.nan]).astype(x.dtype)])
        if DTYPES[target].kind == "int" and target in NARROW:
            x = np.clip(x.astype(np.float32), -2, 1).astype(x.dtype)
        model = model_of("Cast", [x], {"to": CODE_OF_DTYPE[DTYPES[target]]}, opset=26)
        assert_close(ours(model, [x])[0], cast(x, target))
        like = np.ones((), DTYPES[target].numpy)
        assert_close(ours(model_of("CastLike", [x, like], opset=25), [x, like])[0], cast(x, target))


@pytest.mark.parametrize("source", FLOATS[1:])
@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("target", EIGHTS)
def test_cast_to_eight_bits_has_the_tables_of_the_standard(source: str, saturate: int, target: str) -> None:
    largest = float(ml_dtypes.finfo(DTYPES[target].numpy).max)
    beyond = [65504.0, -65504.0, np.inf, -np.inf]
    x = np.asarray([0.0, -0.0, np.nan, *beyond, largest]).astype(DTYPES[source].numpy)
    model = model_of("Cast", [x], {"to": CODE_OF_DTYPE[DTYPES[target]], "saturate": saturate}, opset=24)
    found = ours(model, [x])[0].astype(np.float32)
    lost = np.inf if target == "f8e5m2" else np.nan
    expected = [largest, -largest, largest, -largest] if saturate else [lost, -lost, lost, -lost]
    np.testing.assert_array_equal(found, np.float32([0.0, 0.0, np.nan, *expected, largest]))
    assert bool(np.signbit(found[1])) == (not target.endswith("uz"))


@pytest.mark.parametrize("mode", ["up", "down", "nearest"])
@pytest.mark.parametrize("saturate", [0, 1])
def test_cast_to_powers_of_two_is_as_the_runtime_has_it(mode: str, saturate: int) -> None:
    """All exponents; the ends, where the onnx package's helper is not what the standard's table says."""
    x = np.float32(2.0) ** np.arange(-126, 128, dtype=np.float32)
    smallest = 2.0**-127
    ends = [0.0, np.inf, np.nan, 3e38, 1e-40, smallest, 1.25 * smallest, 1.5 * smallest, 1.75 * smallest]
    x = np.concatenate([x, x * np.float32(1.25), x * np.float32(1.5), x[:-1] * np.float32(1.75), np.float32(ends)])
    code = CODE_OF_DTYPE[DTYPES["f8e8m0fnu"]]
    model = model_of("Cast", [x], {"to": code, "round_mode": mode, "saturate": saturate}, opset=24)
    both = model_of("Cast", [x], {"to": code, "round_mode": mode, "saturate": saturate}, opset=24)
    both.graph.node.append(helper.make_node("Cast", ["y0"], ["z"], to=1))
    both.graph.output[0].CopyFrom(helper.make_empty_tensor_value_info("z"))
    np.testing.assert_array_equal(ours(model, [x])[0].astype(np.float32), by_runtime(both, [x])[0])


def test_bit_cast_between_all_types_of_one_width() -> None:
    names = (*FLOATS, *EIGHTS, "f8e8m0fnu", *INTEGERS)
    for source, target in itertools.permutations(names, 2):
        if DTYPES[source].bits == DTYPES[target].bits:
            x = draw(3, "u8", (4, DTYPES[source].bits), low=0, high=255).view(DTYPES[source].numpy)
            found = ours(model_of("BitCast", [x], {"to": CODE_OF_DTYPE[DTYPES[target]]}, opset=26), [x])[0]
            assert found.dtype == DTYPES[target].numpy and found.tobytes() == x.tobytes(), (source, target)
    flags = np.asarray([True, False, True])
    model = model_of("BitCast", [flags], {"to": CODE_OF_DTYPE[DTYPES["u8"]]}, opset=26)
    np.testing.assert_array_equal(ours(model, [flags])[0], np.uint8([1, 0, 1]))


# ---------------------------------------------------------------- activations


def erf(x: Any) -> Any:
    """The error function of f64."""
    return np.asarray([math.erf(value) if value == value else value for value in x.ravel()]).reshape(x.shape)


def gelu(x: Any, approximate: str = "none") -> Any:
    """Both forms of Gelu."""
    inner = np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)) if approximate == "tanh" else erf(x / math.sqrt(2))
    return 0.5 * x * (1 + inner)


SINGLE_FIFTH, SINGLE_HUNDREDTH = float(np.float32(0.2)), float(np.float32(0.01))  # defaults as ONNX stores them

# op -> (the function on f64, choices of attributes, opsets)
ACTIVATIONS: dict[str, tuple[Callable[..., Any], tuple[dict[str, Any], ...], tuple[int, ...]]] = {
    "Celu": (lambda x, alpha=1.0: np.where(x > 0, x, alpha * np.expm1(x / alpha)), ({}, {"alpha": 0.75}, {"alpha": 2.0}), (12, 28)),
    "Elu": (lambda x, alpha=1.0: np.where(x > 0, x, alpha * np.expm1(x)), ({}, {"alpha": 0.75}), (6, 22)),
    "Gelu": (gelu, ({}, {"approximate": "tanh"}), (20,)),
    "HardSigmoid": (lambda x, alpha=SINGLE_FIFTH, beta=0.5: np.clip(alpha * x + beta, 0, 1), ({}, {"alpha": 0.5, "beta": 0.25}), (6, 22)),
    "HardSwish": (lambda x: x * np.clip(x / 6 + 0.5, 0, 1), ({},), (14, 22)),
    "LeakyRelu": (lambda x, alpha=SINGLE_HUNDREDTH: np.where(x < 0, alpha * x, x), ({}, {"alpha": 0.25}), (6, 16)),
    "Mish": (lambda x: x * np.tanh(np.log1p(np.exp(x))), ({},), (18, 22)),
    "Selu": (
        lambda x, alpha=1.67326319217681884765625, gamma=1.05070102214813232421875: gamma * np.where(x > 0, x, alpha * np.expm1(x)),
        ({}, {"alpha": 1.5, "gamma": 2.0}), (6, 22),
    ),
    "Softplus": (lambda x: np.log1p(np.exp(x)), ({},), (1, 22)),
    "Softsign": (lambda x: x / (1 + np.abs(x)), ({},), (1, 22)),
    "Swish": (lambda x, alpha=1.0: x / (1 + np.exp(-alpha * x)), ({}, {"alpha": 0.5}), (24,)),
    "ThresholdedRelu": (lambda x, alpha=1.0: np.where(x > alpha, x, 0), ({}, {"alpha": 0.5}, {"alpha": -2.0}), (10, 22)),
}  # fmt: skip


@pytest.mark.parametrize("op", ACTIVATIONS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_activations(op: str, dtype: str) -> None:
    """Against the function on f64, within a few roundings of the element type."""
    function, choices, opsets = ACTIVATIONS[op]
    for opset, attributes, shape in itertools.product(opsets, choices, SHAPES):
        x = draw(len(shape), dtype, shape, low=-4, high=4)
        if x.size > 8:
            x.reshape(-1)[:5] = np.asarray(SPECIAL[:5]).astype(x.dtype)
        expected = np.asarray(function(x.astype(np.float64), **attributes)).astype(x.dtype)
        assert_close(ours(model_of(op, [x], attributes, opset=opset), [x])[0], expected, units=24)


@pytest.mark.parametrize("op", ACTIVATIONS)
def test_activations_as_the_runtime_has_them(op: str) -> None:
    """The runtime has no kernel for the newest versions: the first is compared."""
    _, choices, opsets = ACTIVATIONS[op]
    for attributes, shape in itertools.product(choices, SHAPES[1:]):
        x = draw(len(shape), "f32", shape)
        model = model_of(op, [x], attributes, opset=opsets[0])
        assert_close(ours(model, [x])[0], by_runtime(model, [x])[0], units=40)


def test_softplus_does_not_overflow() -> None:
    x = np.float32([-1e4, -100, -30, 0, 88.8, 100, 1e4, np.inf, -np.inf, np.nan])
    model = model_of("Softplus", [x], {}, opset=22)
    assert_close(ours(model, [x])[0], np.logaddexp(x.astype(np.float64), 0).astype(np.float32), units=24)


@pytest.mark.parametrize("dtype", FLOATS)
def test_swiglu(dtype: str) -> None:
    for shape, alpha in itertools.product(SHAPES, (1.0, 0.5)):
        a, b = draw(1, dtype, shape), draw(2, dtype, shape)
        wide = a.astype(np.float64)
        expected = wide / (1 + np.exp(-alpha * wide)) * b.astype(np.float64)
        model = model_of("SwiGLU", [a, b], {"alpha": alpha}, opset=28)
        assert_close(ours(model, [a, b])[0], expected.astype(a.dtype), units=8)


@pytest.mark.parametrize("dtype", [*FLOATS[:3], *INTEGERS])
@pytest.mark.parametrize("attributes", [{}, {"lambd": 1.5, "bias": 1.5}, {"lambd": 2.0, "bias": -1.0}], ids=str)
def test_shrink(dtype: str, attributes: dict[str, Any]) -> None:
    for shape in SHAPES:
        x = draw(5, dtype, shape, low=0 if dtype[0] == "u" and attributes else -6, high=60)
        bias, lambd, wide = attributes.get("bias", 0.0), attributes.get("lambd", 0.5), x.astype(np.float64)
        expected = np.where(wide < -lambd, wide + bias, np.where(wide > lambd, wide - bias, 0))
        assert_close(ours(model_of("Shrink", [x], attributes, opset=9), [x])[0], expected.astype(x.dtype), units=2)


@pytest.mark.parametrize("dtype", [*FLOATS, "i64", "i32", "u64", "u32"])
def test_prelu(dtype: str) -> None:
    for shape, slope in (((2, 3, 4), (3, 1)), ((2, 3), (2, 3)), ((4,), ()), ((0, 2), (2,)), ((), ()), ((1,), (3, 1)), ((2, 1), (2, 2, 3))):
        x, s = draw(1, dtype, shape), draw(2, dtype, slope, low=-2, high=3)
        model = model_of("PRelu", [x, s], opset=16)
        assert_close(ours(model, [x, s])[0], theirs(model, [x, s])[0], units=1)


# ---------------------------------------------------------------- arithmetic and predicates


@pytest.mark.parametrize("dtype", [*FLOATS, *EIGHTS])
@pytest.mark.parametrize("negative", [0, 1])
@pytest.mark.parametrize("positive", [0, 1])
def test_is_inf_finds_the_infinities_that_are_asked_for(dtype: str, negative: int, positive: int) -> None:
    x = np.asarray(SPECIAL).astype(DTYPES[dtype].numpy)
    model = model_of("IsInf", [x], {"detect_negative": negative, "detect_positive": positive}, opset=20)
    wide = x.astype(np.float64)
    expected = ((wide == np.inf) & bool(positive)) | ((wide == -np.inf) & bool(negative))
    np.testing.assert_array_equal(ours(model, [x])[0], expected)


PAIRS = (((2, 3), (3,)), ((2, 1), (1, 4)), ((), (3,)), ((0, 3), (1, 1)), ((5,), (5,)))


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
@pytest.mark.parametrize("fmod", [0, 1])
def test_mod(dtype: str, fmod: int) -> None:
    for seed, (left, right) in enumerate(PAIRS):
        a, b = draw(seed, dtype, left, low=-60, high=60), draw(seed + 9, dtype, right, low=1, high=9)
        if dtype[0] != "u":
            b = np.where(draw(seed, "bool", right), b, -b).astype(b.dtype)
        model = model_of("Mod", [a, b], {"fmod": fmod}, opset=28)
        expected = np.fmod(a.astype(np.float32), b.astype(np.float32)).astype(a.dtype) if dtype == "bf16" and fmod else np.mod(a, b)
        expected = np.fmod(a, b) if fmod and dtype != "bf16" else expected
        assert_close(ours(model, [a, b])[0], np.asarray(expected), units=2)


@pytest.mark.parametrize("dtype", FLOATS[:3])
def test_mod_of_special_floats_is_as_the_standard_says(dtype: str) -> None:
    rows = [(0.0, -2.0, -0.0), (-0.0, 2.0, 0.0), (np.inf, 2.0, np.nan), (1.0, 0.0, np.nan), (1.0, np.inf, 1.0), (-1.0, np.inf, np.inf),
            (1.0, -np.inf, -np.inf), (-1.0, -np.inf, -1.0), (np.nan, 1.0, np.nan), (1.0, np.nan, np.nan), (5.0, -3.0, -1.0)]  # fmt: skip
    a, b, expected = (np.asarray(column).astype(DTYPES[dtype].numpy) for column in zip(*rows, strict=True))
    found = ours(model_of("Mod", [a, b], opset=28), [a, b])[0]
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found[:2]), [True, False])


def test_mod_of_floats_needs_fmod_before_version_28() -> None:
    inputs = [np.float32([5]), np.float32([3])]
    with pytest.raises(CosetError, match="no definition of `Mod` fits"):
        ours(model_of("Mod", inputs, opset=13), inputs)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
def test_bit_shift(dtype: str, direction: str) -> None:
    info = np.iinfo(DTYPES[dtype].numpy)
    for seed, (left, right) in enumerate(PAIRS):
        x = draw(seed, dtype, left, low=max(int(info.min), -(1 << 40)), high=min(int(info.max), 1 << 40))
        y = draw(seed, dtype, right, low=-3, high=info.bits + 3)
        model = model_of("BitShift", [x, y], {"direction": direction}, opset=28)
        assert_close(ours(model, [x, y])[0], by_reference(model, [x, y])[0])


POW_BASES, POW_EXPONENTS = ("i32", "i64", "f16", "f32", "f64", "bf16"), (*INTEGERS, *FLOATS)


@pytest.mark.parametrize("base", POW_BASES)
def test_pow_takes_two_types(base: str) -> None:
    for exponent in POW_EXPONENTS:
        x, y = draw(1, base, (3, 4), low=1, high=5), draw(2, exponent, (4,), low=0, high=4)
        if DTYPES[base].kind == "int" and DTYPES[exponent].kind == "float":
            y = np.round(y.astype(np.float32)).astype(y.dtype)
        model = model_of("Pow", [x, y], opset=15)
        expected = np.power(x.astype(np.float64), y.astype(np.float64)).astype(x.dtype)
        assert_close(ours(model, [x, y])[0], expected, units=4)


def test_pow_of_integers_wraps() -> None:
    x, y = np.int32([3, -2, 7]), np.int64([40, 31, 3])
    expected = [int(a) ** int(b) % (1 << 32) for a, b in zip(x, y, strict=True)]
    np.testing.assert_array_equal(ours(model_of("Pow", [x, y], opset=15), [x, y])[0], np.asarray(expected, np.uint32).view(np.int32))


@pytest.mark.parametrize("op", ["Mod", "Pow", "PRelu", "Celu", "Shrink"])
def test_definitions_hold_for_symbolic_dims(op: str) -> None:
    inputs = [draw(i, "f32", (2, 3), low=0.5) for i in range(2 if op in ("Mod", "Pow", "PRelu") else 1)]
    open_dims = {i: {0: "B"} for i in range(len(inputs))}
    model = model_of(op, inputs, opset=28 if op == "Mod" else 22)
    assert_close(symbolic(op, inputs, {}, open_dims, since=28 if op == "Mod" else 15)[0], ours(model, inputs)[0])
