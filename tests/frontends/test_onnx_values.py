"""Shape arithmetic on symbols gives, for all numbers of the symbols, what ONNX computes on those numbers."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from coset.dialects.onnx.bounds import at_most, least, maximum, minimum
from coset.frontends.onnx import values as onnx_values
from coset.frontends.onnx.values import evaluate, host_array, host_value
from coset.ir import dims
from coset.ir.constants import constant_of
from coset.ir.dims import Dim
from coset.ir.term import Term
from coset.ir.types import BOOL, I32, I64

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


@settings(max_examples=120, deadline=None, derandomize=True)
@given(a=st.lists(DIM, min_size=1, max_size=3), b=st.one_of(DIM, st.integers(-7, 7)), fmod=st.integers(0, 1), binding=BINDING)
def test_remainders_have_the_sign_that_is_asked_for(a: list[Dim], b: Dim, fmod: int, binding: dict[str, int]) -> None:
    left, right = host_array(a, (len(a),)), host_array([b], ())
    term = evaluate("Mod", [left, right], {"fmod": fmod}, I64)
    if term is None:
        assert any(not isinstance(each, int) for each in (*a, b)) or b == 0, "of numbers it is known"
        return
    x, y = (np.array([dims.evaluate(d, binding) for d in h.ravel().tolist()]).reshape(h.shape) for h in (left, right))
    assert np.array_equal(numbers(term, binding), computed("Mod", [x, y], {"fmod": fmod}))


# operands and attributes of every rule that are drawn, beside those of `test_arithmetic`
DRAWN: dict[str, tuple[list[Any], list[dict[str, Any]]]] = {
    "Gather": ([[3, -1, 0, -4]], [{}, {"axis": 0}, {"axis": -1}]),
    "Slice": ([[-3, 0, 2, 9, -4], [9, -1, 1, 0, -(2**63), 2**63 - 1], [0, -1], [1, 2, -1, -2]], [{}]),
    "Unsqueeze": ([[0, 1, -1, -2]], [{}]),
    "Squeeze": ([[0, -1]], [{}]),
    "Reshape": ([[4, -1, 1, 0]], [{}, {"allowzero": 0}, {"allowzero": 1}]),
    "Concat": ([[7, 8, -1]], [{"axis": 0}, {"axis": -1}]),
    "ReduceProd": ([], [{}, {"keepdims": 0}, {"keepdims": 1}, {"axes": [0]}, {"axes": [-1], "keepdims": 0}]),
    "Expand": ([[4, 1, 2]], [{}]),
    "Transpose": ([], [{}, {"perm": [0]}]),
    "Range": ([[-3, 0, 5], [4, -4, 0], [1, -2, 3]], [{}]),
    "Where": ([[1, 0], [5, -5]], [{}]),
    "Identity": ([], [{}]),
    "Neg": ([], [{}]),
    "Not": ([], [{}]),
    "ConstantOfShape": ([], [{"value": constant_of(np.array([7]))}]),
    "Cast": ([], [{"to": 6}, {"to": 7}]),
}


def test_every_rule_is_drawn() -> None:
    assert set(onnx_values._RULES) == set(DRAWN)


def _operands(name: str, choices: list[Any], draw: random.Random) -> list[Any]:
    """The operands behind the first one: of a row of four numbers."""
    if name == "Range":
        return [np.array(draw.choice(choice)) for choice in choices]
    if name == "Slice":
        count = 4 if draw.random() < 0.5 else draw.choice([2, 3])
        return [np.array([draw.choice(choice)]) for choice in choices[:count]]
    if name in ("Unsqueeze", "Squeeze"):
        return [np.array([draw.choice(choices[0])])] if name == "Unsqueeze" or draw.random() < 0.5 else []
    if name == "Where":
        return [np.array([draw.choice(choice) for _ in range(4)]) for choice in (choices[1], choices[1])]
    return [np.array([draw.choice(choice) for _ in range(draw.choice([1, 2]))]) for choice in choices]


@pytest.mark.parametrize("name", DRAWN)
def test_every_rule_gives_what_onnx_computes(name: str) -> None:
    """Numbers, with every attribute that the rule reads."""
    draw, seen = random.Random(name), 0
    choices, forms = DRAWN[name]
    for turn in range(60):
        attributes = forms[turn % len(forms)]
        first = np.array([draw.choice([0, 1, 2, 3, -5]) for _ in range(1 if name == "Squeeze" else 4)])
        first = first % 2 == 0 if name in ("Where", "Not") else np.abs(first) if name == "ConstantOfShape" else first
        arrays = [*([first] if name != "Range" else []), *_operands(name, choices, draw)]
        result = BOOL if name == "Not" else I32 if attributes.get("to") == 6 else I64
        hosts = [host_array(array.ravel().tolist(), array.shape) for array in arrays]
        term = evaluate(name, hosts, attributes, result)
        told = {key: numpy_helper.from_array(value.array()) if key == "value" else value for key, value in attributes.items()}
        try:
            wanted = computed(name, arrays, told)
        except (ValueError, IndexError, RuntimeError, np.exceptions.AxisError):
            continue  # the node is wrong
        if term is not None:
            seen += 1
            assert np.array_equal(numbers(term, {}), wanted), (arrays, attributes)
            assert numbers(term, {}).dtype == wanted.dtype
    assert seen >= 10


def test_a_slice_backwards_from_before_the_start_has_the_first() -> None:
    """A start is clamped to the first, as the standard and ONNX Runtime have it; ONNX's evaluator gives nothing."""
    numbers_of = [host_array(row, (len(row),)) for row in ([3, 1, 0, 4], [-9], [-(2**63)], [0], [-1])]
    term = evaluate("Slice", numbers_of, {}, I64)
    assert term is not None and list(numbers(term, {})) == [3]


def test_an_attribute_that_no_rule_reads_is_not_passed_over() -> None:
    """As the broadcast of operands before opset 7."""
    x, y = host_array([1, 2], (2,)), host_array([3], (1,))
    assert evaluate("Add", [x, y], {}, I64) is not None
    assert evaluate("Add", [x, y], {"broadcast": 1, "axis": 0}, I64) is None


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
