"""Ops with payload functions: their errors, what the interpreter cannot show, and payloads with more than elementwise ops inside."""

from __future__ import annotations

import time
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import coset.dialects
from coset.dialects.hub.payloads import Payload
from coset.dialects.hub.region_terms import Body, case_term, composite_term, if_term, region, while_term
from coset.dialects.hub.stablehlo import broadcast, reshape
from coset.ir import dims
from coset.ir.dims import symbol
from coset.ir.errors import CosetError
from coset.ir.evaluate import evaluate, region_function
from coset.ir.term import Region, Term, constant, get, input_term, make
from coset.ir.types import F32, I32, U8, DType, dtype_of, tensor

assert coset.dialects
Array = np.ndarray[Any, Any]
S = symbol("S")


def call(op: str, *terms: Term, payload: Region | None = None, **attributes: Any) -> Term:
    return make(f"stablehlo.{op}", terms, attributes, () if payload is None else (payload,))


def value(term: Term, **inputs: Array) -> Any:
    return evaluate([term], inputs)[0]


def of(array: object, dtype: type = np.float32) -> Term:
    return constant(np.asarray(array, dtype))


def below(dtype: DType = F32, direction: str = "LT") -> Region:
    return region([tensor(dtype)] * 2, lambda a, b: call("compare", a, b, direction=direction))


def binary(op: str, dtype: DType = F32) -> Region:
    return region([tensor(dtype)] * 2, lambda a, b: call(op, a, b))


ONE = tensor(F32)
DILATED = {"window_dimensions": (1, 2), "window_strides": (1, 1), "base_dilations": (1, 1), "window_dilations": (1, 1),
           "padding": ((0, 0), (0, 0))}  # fmt: skip
FLAT: dict[str, Any] = {
    "update_window_dims": (), "inserted_window_dims": (0,), "input_batching_dims": (), "scatter_indices_batching_dims": (),
    "scatter_dims_to_operand_dims": (0,), "index_vector_dim": 1,
}  # fmt: skip


def test_terms_of_different_payloads_are_different_terms() -> None:
    a, b = (call("reduce_region", of(np.ones(3)), of(0.0), dimensions=(0,), payload=binary(op)) for op in ("add", "multiply"))
    assert a is not b
    assert a is call("reduce_region", of(np.ones(3)), of(0.0), dimensions=(0,), payload=binary("add"))


# ---------------------------------------------------------------- symbolic dims


def test_shapes_are_symbolic() -> None:
    x = input_term("x", tensor(F32, S, 3))
    window = {**DILATED, "window_dimensions": (2, 1), "window_strides": (2, 1), "combiner": "add"}
    pooled = make("stablehlo.reduce_window", (x,), window)
    assert pooled.tensor.dims == (dims.add(dims.floordiv(dims.subtract(S, 2), 2), 1), 3)
    state = while_term([of(0, np.int32), x], lambda i, _: call("compare", i, of(2, np.int32), direction="LT"),
                       lambda i, x: [call("add", i, of(1, np.int32)), call("add", x, broadcast(of(1.0), (S, 3), ()))])  # fmt: skip
    assert get(state, 1).type == x.type
    np.testing.assert_array_equal(value(get(state, 1), x=np.zeros((4, 3), np.float32)), np.full((4, 3), 2, np.float32))
    assert value(pooled, x=np.ones((5, 3), np.float32)).shape == (2, 3)


# ---------------------------------------------------------------- values that the interpreter cannot show


def bits(array: Array) -> list[int]:
    return [int(b) for b in array.view(f"u{array.dtype.itemsize}")]


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2])
def test_total_order_is_that_of_ieee(dtype: Any) -> None:
    up = np.array([-np.nan, -np.inf, -1.0, -0.0, 0.0, 1.0, np.inf, np.nan]).astype(dtype)
    for direction, wanted in (("LT", up), ("GE", up[::-1])):
        given = of(up[[3, 7, 0, 5, 1, 6, 4, 2]], dtype)
        assert bits(value(call("sort", given, dimension=0, direction=direction, total=True))) == bits(wanted)


def test_nan_counts_as_the_largest_in_an_order() -> None:
    keys = of([np.nan, 1.0, -np.inf, np.inf])
    np.testing.assert_array_equal(value(call("sort", keys, dimension=0, direction="LT")), [-np.inf, 1, np.inf, np.nan])
    np.testing.assert_array_equal(value(call("sort", keys, dimension=0, direction="GT")), [np.nan, np.inf, 1, -np.inf])


@pytest.mark.parametrize("direction", ["LT", "GT", "LE", "GE"])
@pytest.mark.parametrize("size", [0, 1, 2, 3, 7, 64, 100])
def test_a_comparator_orders_as_its_direction_does(direction: str, size: int) -> None:
    random = np.random.default_rng(size)
    keys, places = of(random.integers(0, 5, (3, size))), of(np.tile(np.arange(size), (3, 1)), np.int32)
    types = [ONE, ONE, tensor(I32), tensor(I32)]
    payload = region(types, lambda a, b, *_: call("compare", a, b, direction=direction))
    by_word = value(call("sort", keys, places, dimension=1, direction=direction))
    by_region = value(call("sort", keys, places, dimension=1, direction="region", payload=payload))
    for a, b in zip(by_word, by_region, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_comparator_that_is_no_order_still_permutes() -> None:
    random = np.random.default_rng(0)
    keys = random.normal(size=(4, 50)).astype(np.float32)
    keys[random.random(keys.shape) < 0.3] = np.nan
    found = value(call("sort", of(keys), dimension=1, direction="region", payload=below()))
    np.testing.assert_array_equal(np.sort(found, axis=1), np.sort(keys, axis=1))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, ml_dtypes.bfloat16, np.int8, np.uint64, np.complex64])
@pytest.mark.parametrize("combiner", ["add", "multiply", "maximum", "minimum", "second"])
def test_a_word_scatters_as_its_function_does(dtype: Any, combiner: str) -> None:
    random = np.random.default_rng(1)
    numbers = random.integers(-1, 2, (2, 40)).astype(np.int8).astype(dtype)
    at = of(random.integers(-1, 6, (40, 1)), np.int32)
    kind = dtype_of(np.dtype(dtype))
    payload = region([tensor(kind)] * 2, lambda a, b: b if combiner == "second" else call(combiner, a, b))
    given = (constant(numbers[0, :5]), at, constant(numbers[1]))
    by_word = value(call("scatter", *given, **{**FLAT, "combiner": combiner}))
    by_region = value(call("scatter", *given, **{**FLAT, "combiner": "region"}, payload=payload))
    np.testing.assert_array_equal(by_word, by_region)


def test_extremes_of_signed_zeros_and_nan_do_not_depend_on_the_order() -> None:
    at = of([[0], [0], [1], [1], [2]], np.int32)
    for order in ([0, 1, 2, 3, 4], [1, 0, 3, 2, 4]):
        updates = np.array([-0.0, 0.0, np.nan, 1.0, -0.0], np.float32)[order]
        for combiner, start, wanted in (("maximum", -np.inf, [0.0, np.nan, -0.0]), ("minimum", np.inf, [-0.0, np.nan, -0.0])):
            found = value(call("scatter", of([start] * 3), at, of(updates), **{**FLAT, "combiner": combiner}))
            np.testing.assert_array_equal(found, wanted)
            np.testing.assert_array_equal(np.signbit(found[[0, 2]]), np.signbit(np.array(wanted)[[0, 2]]))


def test_the_last_of_repeated_updates_stays() -> None:
    size = 10_000
    at = of(np.arange(size)[:, None] % 7, np.int32)
    found = value(call("scatter", of(np.zeros(7)), at, of(np.arange(size)), **{**FLAT, "combiner": "second"}))
    np.testing.assert_array_equal(found, [9996 + i - 7 * (i > 3) for i in range(7)])


def test_huge_unsigned_indices_lie_outside() -> None:
    at = of([[2**64 - 1], [2**63], [1]], np.uint64)
    found = value(call("scatter", of(np.zeros(3)), at, of([1.0, 2.0, 3.0]), **{**FLAT, "combiner": "add"}))
    np.testing.assert_array_equal(found, [0, 3, 0])


def test_sums_of_narrow_floats_are_rounded_once() -> None:
    ones = np.ones((1, 1000), ml_dtypes.bfloat16)
    window = {**DILATED, "window_dimensions": (1, 1000), "combiner": "add"}
    assert value(call("reduce_window", constant(ones), **window)).item() == 1000  # 256 + 1 is 256 in bf16
    at = of(np.zeros((1000, 1)), np.int32)
    found = value(call("scatter", constant(ones[0, :1]), at, constant(ones[0]), **{**FLAT, "combiner": "add"}))
    assert found.item() == float(ml_dtypes.bfloat16(1001))


@pytest.mark.parametrize("window", [1, 2, 3, 16, 17, 63, 100])
@pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (2, 1), (1, 3), (5, 2)])
def test_long_windows_are_folded_as_short_ones(window: int, stride: int, dilation: int) -> None:
    numbers = np.random.default_rng(window).integers(-9, 9, 150)
    attributes = {"window_dimensions": (window,), "window_strides": (stride,), "window_dilations": (dilation,),
                  "base_dilations": (2,), "padding": ((window, -1),)}  # fmt: skip
    by_word = value(call("reduce_window", of(numbers, np.int32), **attributes, combiner="add"))
    by_region = value(call("reduce_window_region", of(numbers, np.int32), of(0, np.int32), **attributes, payload=binary("add", I32)))
    np.testing.assert_array_equal(by_word, by_region)


def test_long_reductions_by_a_payload_keep_the_order_of_an_associative_one() -> None:
    size = 100_003
    keys = np.random.default_rng(0).integers(0, 50, size).astype(np.float32)

    def first_largest(a: Term, i: Term, b: Term, j: Term) -> list[Term]:
        keep = call("compare", a, b, direction="GE")
        return [call("select", keep, a, b), call("select", keep, i, j)]

    payload = region([ONE, tensor(I32)] * 2, first_largest)
    term = call("reduce_region", of(keys), of(np.arange(size), np.int32), of(-np.inf), of(-1, np.int32), dimensions=(0,), payload=payload)
    found = value(term)
    assert (found[0].item(), found[1].item()) == (keys.max(), int(keys.argmax()))


# ---------------------------------------------------------------- control flow


@pytest.mark.parametrize(("index", "wanted"), [(-1, 12), (0, 3), (1, 4), (2, 12), (7, 12)])
def test_an_index_out_of_range_takes_the_last_branch(index: int, wanted: int) -> None:
    bodies: list[Body] = [lambda x: x, lambda x: call("add", x, of(1.0)), lambda x: call("multiply", x, of(4.0))]
    assert value(case_term(of(index, np.int32), [of(3.0)], *bodies)) == wanted


def test_a_loop_may_not_run_and_may_hold_one_state() -> None:
    def until(limit: float) -> Term:
        return while_term([of(1.0)], lambda x: call("compare", x, of(limit), direction="LT"), lambda x: call("add", x, x))

    assert until(0).type == ONE
    assert (value(until(0)), value(until(1000))) == (1, 1024)


def test_loops_nest_and_a_composite_means_its_decomposition() -> None:
    one, two = of(1, np.int32), of(3, np.int32)

    def inner(x: Term) -> Term:
        state = while_term([of(0, np.int32), x], lambda i, _: call("compare", i, two, direction="LT"),
                           lambda i, x: [call("add", i, one), call("add", x, one)])  # fmt: skip
        return get(state, 1)

    outer = while_term([of(0, np.int32), of(0, np.int32)], lambda i, _: call("compare", i, two, direction="LT"),
                       lambda i, x: [call("add", i, one), composite_term("ours.add_three", [x], inner)])  # fmt: skip
    assert value(get(outer, 1)) == 9


def test_a_deep_body_needs_no_deep_stack() -> None:
    def body(x: Term) -> Term:
        for _ in range(5000):
            x = call("add", x, of(1.0))
        return x

    assert value(composite_term("ours.deep", [of(0.0)], body)) == 5000
    np.testing.assert_array_equal(value(call("map", of(np.zeros(3)), dimensions=(0,), payload=region([ONE], body))), [5000] * 3)


def test_a_body_without_a_meaning_says_so() -> None:
    body = region([ONE], lambda x: make("stablehlo.custom_call", (x,), {"call_target_name": "f", "results": (ONE,)}))
    with pytest.raises(CosetError, match="custom_call"):
        value(call("map", of(np.zeros(3)), dimensions=(0,), payload=body))


def test_the_fallback_reaches_into_bodies() -> None:
    opaque = {"call_target_name": "f", "results": (ONE,)}
    term = if_term(of(True, np.bool_), [of(2.0)], lambda x: make("stablehlo.custom_call", (x,), opaque), lambda x: x)
    body = region([ONE], lambda x: make("stablehlo.custom_call", (x,), opaque))
    mapped = call("map", of([1.0, 2.0]), dimensions=(0,), payload=body)
    found = evaluate([term, mapped], {}, fallback=lambda _, arrays: np.float32(10) * arrays[0])
    assert found[0] == 20
    np.testing.assert_array_equal(found[1], [10, 20])


# ---------------------------------------------------------------- payloads on whole arrays

ROW = of([1.0, 2.0, 3.0])


def _by_branch(x: Term) -> Term:
    return if_term(call("compare", x, of(0.0), direction="LT"), [x], lambda x: call("negate", x), lambda x: call("sqrt", x))


def _by_loop(x: Term) -> Term:
    """Doubled while below 10, in as many rounds as that element needs."""
    small = while_term([call("abs", x)], lambda x: call("compare", x, of(10.0), direction="LT"),
                       lambda x: call("add", call("add", x, x), of(1.0)))  # fmt: skip
    return call("multiply", small, of(2.0))


def _by_case(x: Term) -> Term:
    pair = case_term(call("convert", x, dtype=I32), [x], lambda x: [x, of(7.0)], lambda x: [call("add", x, x), x], lambda x: [of(5.0), x])
    return call("subtract", get(pair, 0), get(pair, 1))


def _by_row(x: Term) -> Term:
    """Ops of rank 1 inside: broadcast, elementwise against a constant row, a clamp with bounds of rank 0, a sum, a reshape."""
    spread = call("multiply", broadcast(x, (3,), ()), ROW)
    kept = call("clamp", of(-2.0), spread, x)
    total = call("reduce", kept, dimensions=(0,), combiner="add")
    return reshape(reshape(total, (1,)), ())


def _by_pick(x: Term) -> Term:
    chosen = call("select", call("compare", x, of(1.0), direction="GT"), ROW, broadcast(x, (3,), ()))
    return call("reduce", chosen, dimensions=(0,), combiner="maximum")


def _by_definition(x: Term) -> Term:
    return make("onnx.Relu", (x,))


BODIES: dict[str, Body] = {
    "if": _by_branch, "while": _by_loop, "case": _by_case, "row": _by_row, "select": _by_pick, "defined": _by_definition,
    "constant": lambda x: of(4.0), "parameter": lambda x: x,
    "random": lambda x: _by_branch(_by_loop(_by_case(x))),
}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("shape", [(), (0,), (7,), (2, 0, 3), (3, 4)])
def test_a_payload_on_an_array_is_the_payload_of_each_element(name: str, shape: tuple[int, ...]) -> None:
    body = region([ONE], BODIES[name])
    numbers = np.random.default_rng(5).uniform(-4, 4, shape).astype(np.float32)
    (found,) = Payload(body, {})(numbers)
    from coset.rules.definition import evaluate_defined

    one = region_function(body, {}, evaluate_defined)
    wanted = [one(np.asarray(number))[0] for number in numbers.reshape(-1)]
    assert found.shape == shape and found.dtype == np.float32
    np.testing.assert_array_equal(found.reshape(-1), np.array(wanted, np.float32))


def test_payloads_are_not_called_once_for_each_element() -> None:
    numbers = np.arange(300_000, dtype=np.float32)
    started = time.perf_counter()
    value(call("map", of(numbers), dimensions=(0,), payload=region([ONE], _by_branch)))
    value(call("sort", of(numbers[:20_000] % 97), dimension=0, direction="region", payload=below()))
    value(call("scatter", of(np.zeros(100_000)), of((np.arange(200_000) % 100_000)[:, None], np.int32), of(np.ones(200_000)),
               **{**FLAT, "combiner": "region"}, payload=binary("add")))  # fmt: skip
    assert time.perf_counter() - started < 5  # about 0.2 s; element by element it is more than 20


def test_a_collective_has_a_meaning_where_a_process_is_alone() -> None:
    alone = call("all_reduce", of([1.0, 2.0]), replica_groups=((0,),), combiner="add")
    np.testing.assert_array_equal(value(alone), [1, 2])
    with pytest.raises(CosetError, match="needs other processes"):
        value(call("all_reduce", of([1.0, 2.0]), replica_groups=((0, 1),), combiner="add"))
    gathered = call("all_gather", input_term("x", tensor(U8, S)), all_gather_dim=0, replica_groups=((0, 1),), group_size=2)
    assert str(gathered.type) == "u8[2*S]"
