"""CHLO's ops on values: the functions against SciPy, the definitions against JAX and NumPy; every op of the dialect is here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import scipy.special as reference

import coset.dialects
from coset.ir.dims import symbol
from coset.ir.errors import CosetError
from coset.ir.evaluate import evaluate
from coset.ir.registry import all_ops
from coset.ir.term import input_term, make
from coset.ir.types import DTYPES, F32, I32, TensorType, TupleType, dtype_of, tensor
from coset.rules.definition import evaluate_defined

assert coset.dialects
RANDOM = np.random.default_rng(0)
# https://openxla.org/stablehlo/generated/chlo, without what is read into other terms: `constant` (builtin.constant)
OPS = [
    "_asin_acos_kernel", "acos", "acosh", "asin", "asinh", "atan", "atanh", "bessel_i1e", "conj", "constant_like", "cosh", "digamma",
    "erf", "erf_inv", "erfc", "is_inf", "is_neg_inf", "is_pos_inf", "lgamma", "mulhi", "next_after", "polygamma", "ragged_dot", "scan",
    "sinh", "square", "tan", "top_k", "zeta",
]  # fmt: skip
BROADCAST = [
    "add", "and", "atan2", "compare", "complex", "divide", "maximum", "minimum", "multiply", "next_after", "or", "polygamma", "power",
    "remainder", "select", "shift_left", "shift_right_arithmetic", "shift_right_logical", "subtract", "xor", "zeta",
]  # fmt: skip


def value(name: str, *arrays: Any, **attributes: object) -> Any:
    given = [np.asarray(array) for array in arrays]
    terms = [input_term(f"i{i}", TensorType(dtype_of(array.dtype), array.shape)) for i, array in enumerate(given)]
    term = make(f"chlo.{name}", terms, attributes)
    with np.errstate(all="ignore"):
        (found,) = evaluate([term], {f"i{i}": array for i, array in enumerate(given)}, fallback=evaluate_defined)
    parts = list(zip(found, term.type.items, strict=True)) if isinstance(term.type, TupleType) else [(found, term.type)]
    assert all(part.shape == type.shape and part.dtype == type.dtype.numpy for part, type in parts)
    return found


def test_every_op_is_there() -> None:
    own = {op.name for op in all_ops() if op.dialect == "chlo"}
    assert own == {f"chlo.{name}" for name in [*OPS, "is_nan", *(f"broadcast_{name}" for name in BROADCAST)]}


SPECIAL = {"lgamma": reference.gammaln, "digamma": reference.digamma, "bessel_i1e": reference.i1e, "erf_inv": reference.erfinv}
ENDS = [0.5, 1.0, 2.0, -0.5, -1.0, 1e-10, 1e10, 30.0, 1e300, np.inf, -np.inf, np.nan]


@pytest.mark.parametrize("name", SPECIAL)
def test_functions_of_one_number(name: str) -> None:
    x = RANDOM.uniform(-1, 1, 2000) if name == "erf_inv" else np.concatenate([RANDOM.normal(size=2000) * 8, ENDS])
    x = x[~np.isneginf(x)] if name == "lgamma" else x  # log of infinity, for which SciPy has -inf
    expected = SPECIAL[name](x)
    np.testing.assert_allclose(value(name, x), expected, rtol=1e-12, atol=1e-14)
    narrow = x[~(np.abs(x) == 1e300)].astype(np.float32)
    np.testing.assert_allclose(value(name, narrow), SPECIAL[name](narrow.astype(np.float64)).astype(np.float32), rtol=2e-7)


def test_functions_of_two_numbers() -> None:
    x, q = 1 + RANDOM.exponential(3, 500), RANDOM.exponential(4, 500)
    np.testing.assert_allclose(value("zeta", x, q), reference.zeta(x, q), rtol=1e-13)
    n = RANDOM.integers(0, 6, 500)
    np.testing.assert_allclose(value("polygamma", n.astype(np.float64), q), reference.polygamma(n, q), rtol=1e-11, atol=1e-14)
    ends = np.array([(3, -1.5), (2.5, -1.5), (1, 1), (0.5, 1), (2, 0), (3, 2)])
    with jax.enable_x64(True):
        np.testing.assert_allclose(value("zeta", *ends.T), jax.lax.zeta(*map(jnp.asarray, ends.T)), rtol=1e-13)
        orders = np.array([(0.0, 2.0), (1.0, -1.5), (1.5, 2.0), (-1.0, 2.0), (0.0, 0.0)])
        np.testing.assert_allclose(value("polygamma", *orders.T), jax.lax.polygamma(*map(jnp.asarray, orders.T)), rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, ml_dtypes.bfloat16], ids=str)
def test_next_after(dtype: Any) -> None:
    info = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    numbers = [0.0, -0.0, 1.0, -1.0, 2.5, np.inf, -np.inf, np.nan, info.max, -info.max, info.tiny, info.smallest_subnormal]
    x, y = (part.ravel().astype(dtype) for part in np.meshgrid(np.array(numbers, np.float64), np.array(numbers, np.float64)))
    found = value("next_after", x, y)
    np.testing.assert_array_equal(found.astype(np.float64), np.nextafter(x, y).astype(np.float64))
    zero = (found == 0) & (x != y)
    np.testing.assert_array_equal(np.signbit(found[zero]), np.signbit(np.nextafter(x, y)[zero]))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64], ids=str)
def test_mulhi(dtype: Any) -> None:
    info = np.iinfo(dtype)
    a, b = RANDOM.integers(info.min, info.max, (2, 300), dtype=dtype, endpoint=True)
    a[:3], b[:3] = (info.min, info.max, info.min), (info.min, info.max, info.max)
    expected = np.array([(int(x) * int(y)) >> info.bits for x, y in zip(a, b, strict=True)], dtype)
    np.testing.assert_array_equal(value("mulhi", a, b), expected)


def test_parts_and_predicates() -> None:
    x = np.array([np.inf, -np.inf, np.nan, 0.0, -1.5], np.float32)
    np.testing.assert_array_equal(value("is_pos_inf", x), np.isposinf(x))
    np.testing.assert_array_equal(value("is_neg_inf", x), np.isneginf(x))
    np.testing.assert_array_equal(value("square", x), x * x)
    np.testing.assert_array_equal(value("conj", x), x)
    np.testing.assert_allclose(value("tan", x[3:]), np.tan(x[3:]), rtol=1e-6)
    z = (RANDOM.normal(size=5) + 1j * RANDOM.normal(size=5)).astype(np.complex64)
    np.testing.assert_array_equal(value("conj", z), np.conj(z))
    np.testing.assert_array_equal(value("square", z), z * z)
    np.testing.assert_array_equal(value("constant_like", x, value=2.5), np.full(5, 2.5, np.float32))
    np.testing.assert_array_equal(value("constant_like", np.array([1, 2]), value=7.0), [7, 7])
    np.testing.assert_array_equal(value("constant_like", np.float32(1), value=-0.0), np.float32(-0.0))


def test_the_kernel_of_the_inverse_sine() -> None:
    z = RANDOM.normal(size=50) + 1j * RANDOM.normal(size=50)
    w = value("_asin_acos_kernel", z)
    np.testing.assert_allclose(np.arctan2(z.real, w.real) + 1j * np.sign(z.imag) * w.imag, np.arcsin(z), rtol=1e-9)
    np.testing.assert_allclose(np.arctan2(w.real, z.real) - 1j * np.sign(z.imag) * w.imag, np.arccos(z), rtol=1e-9)


@pytest.mark.parametrize("shape, k", [((7,), 3), ((2, 5), 5), ((2, 3, 4), 1), ((4, 6), 0)], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.uint8], ids=str)
def test_top_k(shape: tuple[int, ...], k: int, dtype: Any) -> None:
    x = RANDOM.integers(0, 5, shape).astype(dtype)
    values, indices = value("top_k", x, k=k)
    expected = jax.lax.top_k(x, k)
    np.testing.assert_array_equal(values, expected[0])
    np.testing.assert_array_equal(indices, expected[1])


def test_top_k_orders_nan_first() -> None:
    values, indices = value("top_k", np.array([1, np.nan, np.inf, -np.inf], np.float32), k=3)
    np.testing.assert_array_equal(values, [np.nan, np.inf, 1])
    assert list(indices) == [1, 2, 0]
    assert make("chlo.top_k", [input_term("x", tensor(F32, symbol("B"), 9))], {"k": 2}).type == TupleType(
        (tensor(F32, symbol("B"), 2), tensor(I32, symbol("B"), 2))
    )
    with pytest.raises(CosetError, match=r"chlo\.top_k"):
        make("chlo.top_k", [input_term("x", tensor(F32, 4))], {"k": 5})


RAGGED = {
    "rows": ((6, 4), (3, 4, 5), ((1,), (1,)), ((), ()), (0,), (0,)),
    "rows of a batch": ((2, 6, 4), (3, 2, 4, 5), ((2,), (2,)), ((0,), (1,)), (1,), (0,)),
    "contracted": ((5, 6), (6, 4), ((1,), (0,)), ((), ()), (1,), ()),
    "contracted, batch": ((2, 5, 6), (2, 6, 4), ((2,), (1,)), ((0,), (0,)), (2,), ()),
}


@pytest.mark.parametrize("name", RAGGED)
@pytest.mark.parametrize("sizes", [(2, 3, 1), (0, 2, 2), (6, 0, 0)], ids=str)
def test_ragged_dot(name: str, sizes: tuple[int, ...]) -> None:
    a, b, contract, batch, ragged, group = RAGGED[name]
    lhs, rhs = RANDOM.normal(size=a).astype(np.float32), RANDOM.normal(size=b).astype(np.float32)
    numbers = jax.lax.RaggedDotDimensionNumbers((contract, batch), ragged, group)
    counts = np.array(sizes, np.int32)
    plain = counts if not batch[0] else np.broadcast_to(counts, (2, 3))
    expected = jax.lax.ragged_dot_general(lhs, rhs, plain, numbers)
    attributes = {"lhs_contract": contract[0], "rhs_contract": contract[1], "lhs_batch": batch[0], "rhs_batch": batch[1]}
    found = value("ragged_dot", lhs, rhs, counts, **attributes, lhs_ragged=ragged, rhs_group=group)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


NUMPY = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide, "maximum": np.maximum, "minimum": np.minimum,
    "power": np.power, "atan2": np.arctan2, "remainder": np.fmod, "next_after": np.nextafter, "zeta": reference.zeta,
    "polygamma": lambda n, x: reference.polygamma(n.astype(int), x), "complex": lambda a, b: a + 1j * b,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "shift_left": np.left_shift, "shift_right_logical": np.right_shift,
    "shift_right_arithmetic": np.right_shift,
}  # fmt: skip
WHOLE = ("and", "or", "xor", "shift_left", "shift_right_logical", "shift_right_arithmetic")
SHAPES = [((2, 3), (2, 3)), ((3,), (2, 3)), ((2, 1), (3,)), ((), (2, 2)), ((4, 1, 2), (3, 1)), ((0, 2), (1, 2))]


@pytest.mark.parametrize("name", BROADCAST)
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_broadcasting_is_numpys(name: str, shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    if name == "select":
        pred, (a, b) = RANDOM.integers(0, 2, shapes[0]) == 1, (RANDOM.normal(size=shape) for shape in shapes)
        np.testing.assert_array_equal(value("broadcast_select", pred, a, b), np.where(pred, a, b))
    elif name == "compare":
        a, b = (RANDOM.integers(0, 3, shape) for shape in shapes)
        np.testing.assert_array_equal(value("broadcast_compare", a, b, direction="GE"), a >= b)
    else:
        draw = (lambda s: RANDOM.integers(0, 7, s)) if name in WHOLE else (lambda s: RANDOM.integers(2, 6, s).astype(np.float32))
        a, b = (np.asarray(draw(shape)) for shape in shapes)
        np.testing.assert_allclose(value(f"broadcast_{name}", a, b), NUMPY[name](a, b), rtol=1e-5)


def test_broadcast_dimensions() -> None:
    a, b = RANDOM.normal(size=(2,)), RANDOM.normal(size=(2, 3))
    np.testing.assert_array_equal(value("broadcast_add", a, b, broadcast_dimensions=(0,)), a[:, None] + b)
    np.testing.assert_array_equal(value("broadcast_subtract", b, a, broadcast_dimensions=(0,)), b - a[:, None])
    both = make("chlo.broadcast_complex", [input_term("a", tensor(F32, symbol("B"), 1)), input_term("b", tensor(F32, 3))])
    assert both.type == tensor(DTYPES["c64"], symbol("B"), 3)
    with pytest.raises(CosetError, match=r"chlo\.broadcast_add"):
        value("broadcast_add", a, b)


def test_the_file_is_named_in_the_source() -> None:
    sources = {op.source.split(":")[0] for op in all_ops() if op.name.startswith("chlo.broadcast_")}
    assert sources == {"hub/chlo.rules"} and (Path(__file__).parents[2] / "dialects" / "hub" / "chlo.rules").exists()
