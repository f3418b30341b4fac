"""Rows that meet a matrix of their own: what models write becomes a grouped product on a GPU where that is faster; values stay."""

from __future__ import annotations

import numpy as np
import pytest

import coset.dialects  # noqa: F401  (fills the registry)
from coset.dialects.hub.terms import dot, reshape
from coset.egraph.limits import Limits
from coset.ir.evaluate import evaluate_program
from coset.ir.program import Program
from coset.ir.term import Term, input_term, make
from coset.ir.types import F32, I64, TensorType
from coset.job.job import Job
from coset.job.machine import find_target
from coset.lowering.planning.chosen_matrix import chosen_matrix
from coset.lowering.planning.contraction import dot as thin
from coset.lowering.planning.grouped import KEPT, is_grouped
from coset.lowering.planning.primitive import primitive
from coset.packaging.searched import searched
from coset.rules.definition import evaluate_defined
from coset.searching.solving import finish, solve_task

EXPERTS, DEPTH, COLUMNS = 8, 512, 1024
WAYS = ("einsum", "einsum_turned", "matmul", "matmul_of_columns", "two_dims")


def written(way: str, rows: int) -> Program:
    x, group = input_term("x", TensorType(F32, (rows, DEPTH))), input_term("group", TensorType(I64, (rows,)))
    w = input_term("w", TensorType(F32, (EXPERTS, DEPTH, COLUMNS)))
    if way in ("einsum_turned", "matmul_of_columns"):
        w = input_term("w", TensorType(F32, (EXPERTS, COLUMNS, DEPTH)))
    chosen = make("onnx.Gather", (w, group), {"axis": 0})
    return Program((x, w, group), (("y", _product(way, x, chosen, w, group, rows)),))


def _product(way: str, x: Term, chosen: Term, w: Term, group: Term, rows: int) -> Term:
    if way == "einsum":
        return dot(x, chosen, lhs_batch=(0,), rhs_batch=(0,), lhs_contract=(1,), rhs_contract=(1,))
    if way == "einsum_turned":
        return dot(chosen, x, lhs_batch=(0,), rhs_batch=(0,), lhs_contract=(2,), rhs_contract=(1,))
    if way == "matmul":
        return reshape(make("onnx.MatMul", (reshape(x, (rows, 1, DEPTH)), chosen)), (rows, COLUMNS))
    if way == "matmul_of_columns":
        return reshape(make("onnx.MatMul", (chosen, reshape(x, (rows, DEPTH, 1)))), (rows, COLUMNS))
    matrices = make("onnx.Gather", (w, reshape(group, (rows // 2, 2))), {"axis": 0})
    both = dot(reshape(x, (rows // 2, 2, DEPTH)), matrices, lhs_batch=(0, 1), rhs_batch=(0, 1), lhs_contract=(2,), rhs_contract=(2,))
    return reshape(both, (rows, COLUMNS))


@pytest.mark.parametrize("way", WAYS)
def test_each_way_is_a_grouped_product_of_the_same_values(way: str) -> None:
    program = written(way, 12)
    found = program.with_roots(primitive(program, is_grouped, product=lambda term: chosen_matrix(term) or thin(term)))
    assert [term.op.name for term in found.terms()].count(KEPT) == 1
    draw = np.random.default_rng(1)
    feeds = {term.attribute("name"): draw.integers(-3, 4, term.tensor.static).astype(np.float32) for term in program.inputs[:2]}
    feeds["group"] = np.array([0, 7, 7, -1, -8, 3, 3, 3, 0, 1, 2, 3])
    (expected,), (value,) = (evaluate_program(each, feeds, fallback=evaluate_defined) for each in (program, found))
    np.testing.assert_array_equal(value, expected)


def test_what_is_none_stays_a_contraction() -> None:
    """Matrices that differ from row to row without an index, parts of matrices, and several rows for each."""
    x, y = input_term("x", TensorType(F32, (12, 5, 6))), input_term("y", TensorType(F32, (12, 6, 7)))
    w, group = input_term("w", TensorType(F32, (3, 6, 7))), input_term("group", TensorType(I64, (12,)))
    chosen = make("onnx.Gather", (w, group), {"axis": 0})
    sides = {"lhs_batch": (0,), "rhs_batch": (0,), "lhs_contract": (2,), "rhs_contract": (1,)}
    for left, right in ((x, y), (x, chosen)):
        (root,) = primitive(Program((x, y, w, group), (("y", dot(left, right, **sides)),)), is_grouped, product=chosen_matrix)
        assert KEPT not in [term.op.name for term in Program((x, y, w, group), (("y", root),)).terms()]


@pytest.mark.parametrize(("rows", "grouped"), [(8192, True), (2, False)])
def test_many_rows_are_grouped_and_few_are_not(rows: int, grouped: bool) -> None:
    """Two rows read two matrices: sorting would cost more."""
    program = written("einsum", rows)
    job = Job(program, find_target("nvidia-h200"), "reassociates", Limits(seconds=20), (), {}, lambda _: None)
    task = searched(job, program)
    solved, _ = solve_task(task, task.phases)
    found, _ = finish(task, solved)
    assert (KEPT in [term.op.name for term in found.terms()]) is grouped
