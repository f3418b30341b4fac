"""Shape arithmetic on symbols gives, for all numbers of the symbols, what ONNX computes on those numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from onnx import helper
from onnx.reference import ReferenceEvaluator

from coset.dialects.onnx_bounds import at_most, least, maximum, minimum
from coset.frontends.onnx_values import evaluate, host_array, host_value
from coset.ir import dims
from coset.ir.dims import Dim
from coset.ir.term import Term
from coset.ir.types import BOOL, I64

NAMES = ("A", "B")
SYMBOLS = [dims.symbol(name) for name in NAMES]


def _grown(inner: st.SearchStrategy[Dim]) -> st.SearchStrategy[Dim]:
    binary = st.sampled_from([dims.add, dims.subtract, dims.multiply, dims.maximum, dims.minimum])
    divisions = st.sampled_from([dims.floordiv, dims.mod])
    return st.one_of(
        st.builds(lambda f, a, b: f(a, b), binary, inner, inner), st.builds(lambda f, a, n: f(a, n), divisions, inner, st.integers(1, 5))
    )


DIM = st.recursive(st.one_of(st.integers(-4, 9), st.sampled_from(SYMBOLS)), _grown, max_leaves=5)
BINDING = st.fixed_dictionaries({name: st.integers(0, 12) for name in NAMES})


@settings(max_examples=300, deadline=None, derandomize=True)
@given(a=DIM, b=DIM, binding=BINDING)
def test_bounds_and_orders_hold(a: Dim, b: Dim, binding: dict[str, int]) -> None:
    x, y = dims.evaluate(a, binding), dims.evaluate(b, binding)
    low = least(a)
    assert low is None or low <= x
    order = at_most(a, b)
    assert order is None or order == (x <= y)
    assert dims.evaluate(maximum(a, b), binding) == max(x, y)
    assert dims.evaluate(minimum(a, b), binding) == min(x, y)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(a=DIM, most=st.integers(0, 12), binding=BINDING)
def test_bounds_hold_below_what_a_symbol_may_be(a: Dim, most: int, binding: dict[str, int]) -> None:
    assume(binding["A"] <= most)
    low = least(a, {"A": most})
    assert low is None or low <= dims.evaluate(a, binding)


def computed(name: str, arrays: list[Any], attributes: dict[str, Any]) -> Any:
    """What ONNX's evaluator computes on numbers."""
    node = helper.make_node(name, [f"x{i}" for i in range(len(arrays))], ["y"], **attributes)
    inputs = [helper.make_tensor_value_info(f"x{i}", 9 if a.dtype == np.bool_ else 7, a.shape) for i, a in enumerate(arrays)]
    graph = helper.make_graph([node], "g", inputs, [helper.make_tensor_value_info("y", 7, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    return ReferenceEvaluator(model).run(None, {f"x{i}": a for i, a in enumerate(arrays)})[0]


def numbers(term: Term, binding: dict[str, int]) -> Any:
    host = host_value(term)
    assert host is not None
    return np.array([dims.evaluate(item, binding) for item in host.ravel().tolist()], term.tensor.dtype.numpy).reshape(host.shape)


@pytest.mark.parametrize(
    "name", ["Add", "Sub", "Mul", "Div", "Mod", "Max", "Min", "Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"]
)
@settings(max_examples=40, deadline=None, derandomize=True)
@given(a=st.lists(DIM, min_size=1, max_size=3), b=DIM, binding=BINDING)
def test_arithmetic(name: str, a: list[Dim], b: Dim, binding: dict[str, int]) -> None:
    left, right = host_array(a, (len(a),)), host_array([b], ())
    term = evaluate(name, [left, right], {}, BOOL if name in ("Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual") else I64)
    if term is None:
        return
    x, y = (np.array([dims.evaluate(d, binding) for d in h.ravel().tolist()]).reshape(h.shape) for h in (left, right))
    assert name not in ("Div", "Mod") or (y != 0).all(), "a divisor that may be 0 is not divided by"
    with np.errstate(all="ignore"):
        assert np.array_equal(numbers(term, binding), computed(name, [x, y], {}))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(x=DIM, by=st.integers(1, 5), more=st.integers(-3, 3), binding=BINDING)
def test_what_has_no_rest_is_divided(x: Dim, by: int, more: int, binding: dict[str, int]) -> None:
    """As `lowering/` writes x // by: whether x may be negative does not matter then."""
    whole = dims.add(dims.subtract(x, dims.mod(x, by)), by * more)
    term = evaluate("Div", [host_array([whole], (1,)), host_array([by], (1,))], {}, I64)
    assert term is not None
    assert numbers(term, binding) == [dims.evaluate(x, binding) // by + more]


MOVES: list[tuple[str, list[list[int]], dict[str, Any]]] = [
    ("Gather", [[3, -1, 0]], {"axis": 0}), ("Slice", [[1], [9]], {}), ("Slice", [[-1], [-(2**63)], [0], [-2]], {}),
    ("Slice", [[-3], [-1]], {}),
    ("Unsqueeze", [[0, -1]], {}), ("Reshape", [[2, -1]], {}), ("Concat", [[7, 8]], {"axis": 0}), ("ReduceProd", [], {"keepdims": 0}),
    ("ReduceProd", [], {"axes": [0]}), ("Identity", [], {}), ("Neg", [], {}), ("Squeeze", [], {}), ("Expand", [[2, 4]], {}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "others", "attributes"), MOVES, ids=lambda part: str(part))
def test_movement(name: str, others: list[list[int]], attributes: dict[str, Any]) -> None:
    a, b = SYMBOLS
    elements = [a, 3, dims.add(dims.multiply(2, a), b), b]
    term = evaluate(name, [host_array(elements, (4,)), *(host_array(o, (len(o),)) for o in others)], attributes, I64)
    assert term is not None
    binding = {"A": 5, "B": 2}
    x = np.array([dims.evaluate(d, binding) for d in elements])
    assert np.array_equal(numbers(term, binding), computed(name, [x, *(np.array(o) for o in others)], attributes))


def test_what_cannot_be_sure_is_not_evaluated() -> None:
    a, b = SYMBOLS
    assert evaluate("Div", [host_array([dims.subtract(a, 1)], (1,)), host_array([2], (1,))], {}, I64) is None
    assert evaluate("Div", [host_array([a], (1,)), host_array([b], (1,))], {}, I64) is None, "b may be 0"
    less = dims.subtract(a, 1)
    assert evaluate("Div", [host_array([dims.subtract(less, dims.mod(less, 3))], (1,)), host_array([2], (1,))], {}, I64) is None
    assert evaluate("Equal", [host_array([a], (1,)), host_array([b], (1,))], {}, BOOL) is None
    assert evaluate("Add", [host_array([2**63 - 1], (1,)), host_array([1], (1,))], {}, I64) is None, "it wraps"
    assert evaluate("Equal", [host_array([a], (1,)), host_array([-1], (1,))], {}, BOOL) is not None, "a dim is never -1"
