"""Products of one operand: merged where a rule says that columns can be taken, each still what it was."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper

import coset
import coset.dialects
from coset.egraph.chains import product
from coset.egraph.merging import merge_products, takes_columns
from coset.ir import dims
from coset.ir.evaluate import evaluate
from coset.ir.term import Term, constant, input_term, topological
from coset.ir.types import F64, tensor
from coset.rules.library import load
from coset.rules.rule import Rule

assert coset.dialects
RULES = [rule for phase in load().phases for rule in phase.rules]


def products(rows: tuple[int, ...], inner: int, columns: Sequence[int]) -> tuple[Term, list[Term]]:
    x = input_term("x", tensor(F64, *rows, inner))
    rng = np.random.default_rng(len(columns))
    return x, [product(x, constant(rng.normal(size=(inner, count)), F64), batched=False) for count in columns]


def test_one_rule_of_the_library_says_it() -> None:
    assert {rule.family for rule in RULES if takes_columns(rule)} == {"columns_of_product"}


@settings(max_examples=40, deadline=None)
@given(st.sampled_from([(1,), (3,), (2, 2), (1, 1, 4)]), st.integers(1, 5), st.lists(st.integers(1, 4), min_size=2, max_size=5))
def test_each_product_is_columns_of_the_merged_one(rows: tuple[int, ...], inner: int, columns: list[int]) -> None:
    x, terms = products(rows, inner, columns)
    entered = merge_products(terms, RULES, 4)
    assert entered is not None and [old for old, _ in entered.pairs] == list(dict.fromkeys(terms))
    assert len({new.operands[0] for _, new in entered.pairs}) == 1
    given_x = {x: np.random.default_rng(0).normal(size=(*rows, inner))}
    for old, new in entered.pairs:
        assert old.type == new.type
        left, right = (evaluate([term], {"x": given_x[x]})[0] for term in (old, new))
        assert np.allclose(left, right)


def without(rules: Sequence[Rule]) -> list[Rule]:
    return [rule for rule in rules if not takes_columns(rule)]


@pytest.mark.parametrize("why", ["no rule", "rows", "one", "other operands", "known"])
def test_nothing_is_merged(why: str) -> None:
    _, terms = products((5,) if why == "rows" else (1,), 3, [2] if why == "one" else [2, 4])
    if why == "other operands":
        terms[1] = product(input_term("y", tensor(F64, 1, 3)), terms[1].operands[1], batched=False)
    if why == "known":
        terms = [product(constant(np.ones((1, 3)), F64), term.operands[1], batched=False) for term in terms]
    assert merge_products(terms, without(RULES) if why == "no rule" else RULES, 4) is None


def test_a_batch_that_is_not_known_is_not_few_rows() -> None:
    x = input_term("x", tensor(F64, dims.symbol("B"), 3))
    terms = [product(x, constant(np.full((3, 2), value), F64), batched=False) for value in (1.0, 2.0)]
    assert merge_products(terms, RULES, 4) is None


def gates(rows: int) -> onnx.ModelProto:
    """The gates of a recurrent cell: six products of one operand, each with an activation."""
    rng = np.random.default_rng(0)
    names = [f"w{i}" for i in range(6)]
    nodes = [helper.make_node("MatMul", ["x", name], [f"p{name}"]) for name in names]
    nodes += [helper.make_node("Tanh" if i % 2 else "Sigmoid", [f"p{name}"], [f"y{i}"]) for i, name in enumerate(names)]
    graph = helper.make_graph(
        nodes, "gates", [helper.make_tensor_value_info("x", 1, [rows, 128])],
        [helper.make_tensor_value_info(f"y{i}", 1, [rows, 128]) for i in range(6)],
        [numpy_helper.from_array(rng.normal(size=(128, 128)).astype(np.float32), name) for name in names],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("rows", [1, 64])
def test_a_program_of_few_rows_gets_one_product_and_one_split(rows: int) -> None:
    optimized = coset.optimize(gates(rows))
    ops = [term.op.name for term in topological(optimized.program.roots)]
    assert ops.count("stablehlo.dot_general") == (1 if rows == 1 else 6)
    used = {rule["name"].partition(".")[0] for rule in optimized.report["rules"]}
    assert ("columns_of_product" in used) is (rows == 1)
    written = onnx.load(optimized._draft.path)
    assert [node.op_type for node in written.graph.node].count("Split") == (1 if rows == 1 else 0)
