"""Selection over real ops: faces, constants, the input as a bound, and errors that name the op."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from equal_terms import saturated_with
from hypothesis import given, settings
from hypothesis import strategies as st

from coset.dialects.hub.stablehlo import broadcast, dot, reshape, splat, transpose
from coset.extract.select import reprice, select
from coset.extract.solve import SolveEffort
from coset.ir.builtin import absent
from coset.ir.dims import symbol
from coset.ir.errors import CosetError
from coset.ir.term import Term, constant, input_term, make
from coset.ir.types import F32, I32, tensor
from coset.targets.target import get_target

CPU = get_target("cpu-onnxruntime")
LAUNCH = CPU.kernels["add"].launch.value


def tensor_input(name: str, *shape: object) -> Term:
    return input_term(name, tensor(F32, *shape))  # type: ignore[arg-type]


def add(a: Term, b: Term) -> Term:
    return make("stablehlo.add", (a, b))


def seconds(*terms: Term) -> float:
    return reprice(terms, CPU, {})


X = tensor_input("x", 128, 768)
ROW = tensor_input("row", 768)
COLUMN = tensor_input("column", 128)
WIDE = broadcast(ROW, (128, 768), (1,))
TALL = broadcast(COLUMN, (128, 768), (0,))


# ---------------------------------------------------------------- faces


def test_a_broadcast_operand_of_an_elementwise_op_costs_nothing() -> None:
    assert seconds(add(X, WIDE)) < seconds(add(X, tensor_input("y", 128, 768))) < seconds(add(X, WIDE), WIDE)


def test_a_broadcast_that_is_also_used_in_memory_is_copied_once() -> None:
    joined = make("stablehlo.concatenate", (WIDE, X), {"dimension": 0})
    apart = seconds(joined) + seconds(add(X, WIDE))
    assert seconds(joined, add(X, WIDE)) == pytest.approx(apart)
    assert seconds(joined, joined) == seconds(joined)


def test_parts_that_are_together_all_of_a_value_share_one_launch() -> None:
    """Split; parts that leave something out are nodes of their own."""
    bounds = ((0, 64), (64, 100), (100, 128))
    parts = [make("stablehlo.slice", (X,), {"start": (start, 0), "limit": (end, 768), "strides": (1, 1)}) for start, end in bounds]
    alone = [seconds(part) for part in parts]
    launch = CPU.kernels["copy"].launch.value
    assert seconds(*parts) == pytest.approx(sum(alone) - 2 * launch)
    assert seconds(*parts[1:]) == pytest.approx(sum(alone[1:]))


def test_ones_in_the_middle_are_one_reshape() -> None:
    assert seconds(add(X, TALL)) - seconds(add(X, WIDE)) < 2 * LAUNCH
    assert seconds(add(X, TALL)) > seconds(add(X, WIDE)) - 1e-6


def test_a_reduction_under_a_broadcast_keeps_its_dims_for_nothing() -> None:
    total = make("stablehlo.reduce", (X,), {"dimensions": (1,), "combiner": "add"})
    centred = make("stablehlo.subtract", (X, broadcast(total, (128, 768), (0,))))
    host = CPU.kernels["host"].launch.value
    assert seconds(centred) == pytest.approx(seconds(total) + seconds(make("stablehlo.subtract", (X, TALL))) - host)
    assert seconds(centred, total) == pytest.approx(seconds(centred) + host)


def test_views_that_do_not_reach_the_result_are_copied() -> None:
    both = add(WIDE, broadcast(tensor_input("other", 768), (128, 768), (1,)))
    crossed = add(WIDE, TALL)
    assert seconds(both) > seconds(crossed) + 1e-6, "one of two equal rows is expanded; a row and a column span the result"


def test_the_copy_is_avoided_where_an_equal_form_needs_none() -> None:
    other = tensor_input("other", 768)
    late = broadcast(add(ROW, other), (128, 768), (1,))
    early = add(WIDE, broadcast(other, (128, 768), (1,)))
    chosen = select(saturated_with([add(X, early)], [(early, late)]), CPU, {})
    assert chosen.terms == (add(X, late),)
    assert chosen.cost < chosen.input_cost and chosen.gap == 0


def test_a_matmul_reads_its_batch_as_a_view() -> None:
    lhs = tensor_input("a", 8, 16, 32)
    rhs = tensor_input("b", 32, 16)
    product = dot(lhs, broadcast(rhs, (8, 32, 16), (1, 2)), lhs_batch=(0,), rhs_batch=(0,), lhs_contract=(2,), rhs_contract=(1,))
    plain = dot(lhs, tensor_input("c", 8, 32, 16), lhs_batch=(0,), rhs_batch=(0,), lhs_contract=(2,), rhs_contract=(1,))
    assert seconds(product) <= seconds(plain)


def test_an_operand_that_is_there_twice_is_read_once() -> None:
    """x + x is no dearer than 2 x: the sum has a kernel in the blocked layout of convolutions, the product with a number has none."""
    doubled = make("stablehlo.multiply", (splat(2.0, F32, X.tensor.dims), X))
    chosen = select(saturated_with([add(X, X)], [(add(X, X), doubled)]), CPU, {})
    assert chosen.terms == (add(X, X),)


def gemm(turned: bool, summand: bool) -> Term:
    """The product of two matrices of 256 x 256 as one Gemm."""
    operands = (tensor_input("a", 256, 256), tensor_input("b", 256, 256), tensor_input("c", 256, 256) if summand else absent())
    return make("onnx.Gemm", operands, {"alpha": 1.0, "beta": 1.0, "transA": int(turned), "transB": 0})


def test_a_summand_and_a_turned_operand_of_gemm_cost_a_pass_each() -> None:
    """Measured: 106 us alone, 24 us more for the summand, 33 us more for the left operand turned."""
    alone, summed, turned, both = (seconds(gemm(*case)) for case in ((False, False), (False, True), (True, False), (True, True)))
    assert alone < summed and alone < turned and both > max(summed, turned)
    plain = dot(tensor_input("a", 256, 256), tensor_input("b", 256, 256), lhs_contract=(1,), rhs_contract=(0,))
    assert seconds(add(plain, tensor_input("c", 256, 256))) < summed


# ---------------------------------------------------------------- constants


def test_a_large_weight_is_not_copied_for_nothing() -> None:
    """A transposed weight saves Gemm's pass over its summand, 7 us: 64 MiB are not stored for that, 256 KiB are."""
    for rows, size, copied in ((4, 4096, False), (64, 256, True)):
        x, weight = tensor_input("x", rows, size), constant(np.ones((size, size), np.float32))
        bias = constant(np.ones(size, np.float32))
        joined = make("onnx.Gemm", (x, weight, bias), {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 1})
        turned = transpose(weight, (1, 0))
        apart = add(dot(x, turned, lhs_contract=(1,), rhs_contract=(0,)), broadcast(bias, (rows, size), (1,)))
        chosen = select(saturated_with([joined], [(joined, apart)]), CPU, {})
        assert (turned in chosen.storable and chosen.terms == (apart,)) is copied, size


def test_what_is_known_at_build_time_costs_nothing() -> None:
    weight = constant(np.ones((64, 64), np.float32))
    x = tensor_input("x", 16, 64)
    product = dot(x, transpose(weight, (1, 0)), lhs_contract=(1,), rhs_contract=(0,))
    assert seconds(product) == seconds(dot(x, constant(np.zeros((64, 64), np.float32)), lhs_contract=(1,), rhs_contract=(0,)))
    assert seconds(transpose(weight, (1, 0))) == 0


def test_a_constant_that_would_be_a_large_file_is_made_at_run_time_unless_the_runtime_folds() -> None:
    small = constant(np.arange(1024, dtype=np.float32))
    large = make("stablehlo.add", (broadcast(small, (4096, 1024), (1,)), broadcast(small, (4096, 1024), (1,))))
    storing = replace(CPU, folds_constants=False)
    assert reprice([large], storing, {}) > 1e-4 and seconds(large) == 0
    assert reprice([splat(0.0, F32, (64, 64))], storing, {}) == 0
    for target in (CPU, storing):
        storable = select(saturated_with([large]), target, {}).storable
        assert small in storable and large not in storable


def test_a_constant_that_no_kernel_makes_is_stored_whatever_its_size() -> None:
    small = constant(np.arange(1024, dtype=np.float32))
    large = make("stablehlo.add", (broadcast(small, (4096, 1024), (1,)), broadcast(small, (4096, 1024), (1,))))
    storing = replace(CPU, folds_constants=False)
    chosen = select(saturated_with([large]), storing, {}, printable=lambda name, *_: "no" if name == "stablehlo.add" else None)
    assert chosen.terms == (large,) and chosen.cost < 1e-5 and large in chosen.storable


def test_constants_are_rebuilt_as_the_e_graph_has_them() -> None:
    weight = constant(np.ones((64, 64), np.float32))
    chosen = select(saturated_with([transpose(weight, (1, 0))]), CPU, {})
    assert chosen.terms == (transpose(weight, (1, 0)),) and chosen.cost == 0 == chosen.lower_bound


# ---------------------------------------------------------------- the input bounds the output


def test_the_input_is_returned_when_it_is_cheapest() -> None:
    program = add(X, WIDE)
    dear = transpose(transpose(program, (1, 0)), (1, 0))
    chosen = select(saturated_with([program], [(program, dear)]), CPU, {})
    assert chosen.terms == (program,) and chosen.cost == chosen.input_cost == chosen.lower_bound


def test_a_class_that_refers_to_itself_is_extracted_without_the_cycle() -> None:
    zero = add(X, splat(0.0, F32, (128, 768)))
    chosen = select(saturated_with([zero], [(X, zero)]), CPU, {})
    assert chosen.terms == (X,) and chosen.cost == 0 and chosen.input_cost > 0


def test_equal_terms_of_the_input_are_both_paid_in_the_input_and_once_in_the_output() -> None:
    double = make("stablehlo.multiply", (X, splat(2.0, F32, (128, 768))))
    total = add(X, X)
    chosen = select(saturated_with([add(total, double)], [(total, double)]), CPU, {})
    both = seconds(total) + seconds(double) + seconds(add(X, X))  # the last sum has one class as both operands, which it reads once
    assert chosen.input_cost == pytest.approx(both)
    assert chosen.cost == pytest.approx(min(seconds(add(total, total)), seconds(add(double, double))))


def test_merged_products_are_weighed_with_what_they_share() -> None:
    x = tensor_input("x", 1, 64)
    weights = [tensor_input(f"w{i}", 64, 64) for i in range(3)]
    apart = [dot(x, w, lhs_contract=(1,), rhs_contract=(0,)) for w in weights]
    merged = dot(x, make("stablehlo.concatenate", weights, {"dimension": 1}), lhs_contract=(1,), rhs_contract=(0,))
    cut = [make("stablehlo.slice", (merged,), {"start": (0, 64 * i), "limit": (1, 64 * i + 64), "strides": (1, 1)}) for i in range(3)]
    chosen = select(saturated_with(apart, list(zip(apart, cut, strict=True))), CPU, {})
    assert chosen.cost == pytest.approx(min(seconds(*apart), seconds(*cut)))
    assert seconds(*chosen.terms) == pytest.approx(chosen.cost)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_output_input_and_bound_are_in_order_and_the_terms_cost_what_is_said(data: st.DataObject) -> None:
    pool = [X, WIDE, TALL, splat(2.0, F32, (128, 768))]
    for _ in range(data.draw(st.integers(1, 8))):
        a, b = data.draw(st.sampled_from(pool)), data.draw(st.sampled_from(pool))
        op = data.draw(st.sampled_from(("stablehlo.add", "stablehlo.multiply", "stablehlo.maximum")))
        pool.append(make(op, (a, b)))
    equal = []
    for term in pool[4:]:
        if data.draw(st.booleans()):
            equal.append((term, data.draw(st.sampled_from(pool))))
    roots = [data.draw(st.sampled_from(pool)), pool[-1]]
    chosen = select(saturated_with(roots, equal), CPU, {})
    assert chosen.lower_bound <= chosen.cost <= chosen.input_cost * (1 + 1e-12)
    # without congruence closure two classes can become one term, which is then paid once
    assert reprice(chosen.terms, CPU, {}) <= chosen.cost * (1 + 1e-9)
    assert equal or reprice(chosen.terms, CPU, {}) == pytest.approx(chosen.cost, rel=1e-9, abs=1e-15)
    assert equal or chosen.input_cost == pytest.approx(seconds(*roots), rel=1e-9, abs=1e-15)
    again = select(saturated_with(roots, equal), CPU, {})
    assert again.terms == chosen.terms and again.chosen == chosen.chosen


@pytest.mark.slow
def test_a_deep_program_is_selected_without_recursion() -> None:
    x = tensor_input("x", 4)
    term = x
    for i in range(20_000):
        term = make(("stablehlo.abs", "stablehlo.floor")[i % 2], (term,))
    chosen = select(saturated_with([term]), CPU, {})
    assert chosen.terms == (term,) and chosen.method == "pruned"
    assert chosen.cost >= 20_000 * LAUNCH


# ---------------------------------------------------------------- legality, dims


def test_an_op_without_a_legal_form_is_named_with_the_reason() -> None:
    bits = input_term("x", tensor(I32, 4))
    shifted = make("stablehlo.shift_right_arithmetic", (bits, bits))
    with pytest.raises(CosetError, match=r"`stablehlo.shift_right_arithmetic`: the target has no kernel") as caught:
        select(saturated_with([make("stablehlo.add", (shifted, shifted))]), CPU, {})
    assert "cpu-onnxruntime" in str(caught.value)


def test_a_legal_equal_form_replaces_an_illegal_one() -> None:
    bits = input_term("x", tensor(I32, 4))
    shifted, legal = make("stablehlo.shift_right_arithmetic", (bits, bits)), make("stablehlo.divide", (bits, bits))
    chosen = select(saturated_with([shifted], [(shifted, legal)]), CPU, {})
    assert chosen.terms == (legal,) and math.isinf(chosen.input_cost)


def test_what_the_printer_refuses_is_not_chosen() -> None:
    program = add(X, X)
    other = make("stablehlo.multiply", (X, splat(2.0, F32, (128, 768))))
    graph = saturated_with([program], [(program, other)])
    refuse = lambda name, *_: "too new" if name == "stablehlo.add" else None  # noqa: E731
    assert select(graph, CPU, {}, printable=refuse).terms == (other,)
    with pytest.raises(CosetError, match="too new"):
        select(saturated_with([program]), CPU, {}, printable=refuse)


def test_dims_are_numbers_of_the_binding_and_assumed_where_it_is_silent() -> None:
    rows = symbol("rows")
    x = tensor_input("x", rows, 64)
    term = make("stablehlo.exponential", (x,))
    assert reprice([term], CPU, {"rows": 1}) < reprice([term], CPU, {"rows": 4096})
    chosen = select(saturated_with([term]), CPU, {})
    assert dict(chosen.assumed) == {"rows": 16}


def test_greedy_effort_keeps_the_promise_too() -> None:
    early = add(WIDE, broadcast(COLUMN, (128, 768), (0,)))
    root = reshape(add(early, X), (768, 128))
    chosen = select(saturated_with([root]), CPU, {}, effort=SolveEffort(choices=0))
    assert chosen.cost <= chosen.input_cost * (1 + 1e-12)
