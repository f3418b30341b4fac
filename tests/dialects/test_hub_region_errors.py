"""Ops with payload functions, collectives and host ops refuse what the specification forbids, each with its own sentence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import coset.dialects
from coset.dialects.hub.region_terms import region
from coset.ir.dims import symbol
from coset.ir.errors import TypeRuleError
from coset.ir.op import find_op
from coset.ir.term import Region, Term, constant, input_term, make
from coset.ir.types import BF16, BOOL, DTYPES, F32, I32, DType, Type, tensor

assert coset.dialects
S = symbol("S")


def call(op: str, *terms: Term, payload: Region | None = None, **attributes: Any) -> Term:
    return make(f"stablehlo.{op}", terms, attributes, () if payload is None else (payload,))


def of(array: object, dtype: type = np.float32) -> Term:
    return constant(np.asarray(array, dtype))


def binary(op: str, dtype: DType = F32) -> Region:
    return region([tensor(dtype)] * 2, lambda a, b: call(op, a, b))


LESS = region([tensor(F32)] * 2, lambda a, b: call("compare", a, b, direction="LT"))
NAMES = """
    reduce_region reduce_window reduce_window_region select_and_scatter sort scatter map if case while composite custom_call all_gather
    all_reduce all_to_all collective_broadcast collective_permute reduce_scatter partition_id replica_id send recv infeed outfeed
    after_all create_token
"""


def test_every_op_of_the_specification_with_a_payload_or_a_partner_is_there() -> None:
    assert all(find_op(f"stablehlo.{name}") for name in NAMES.split())


# ---------------------------------------------------------------- errors

X, Y = tensor(F32, 2, 3), tensor(F32, S)
ONE = tensor(F32)
WINDOW = {"window_dimensions": (1, 2), "window_strides": (1, 1), "padding": ((0, 0), (0, 0))}
DILATED = {**WINDOW, "base_dilations": (1, 1), "window_dilations": (1, 1)}
SCATTER: dict[str, Any] = {
    "update_window_dims": (1,), "inserted_window_dims": (0,), "input_batching_dims": (), "scatter_indices_batching_dims": (),
    "scatter_dims_to_operand_dims": (0,), "index_vector_dim": 1, "combiner": "add",
}  # fmt: skip
BATCHED = {**SCATTER, "inserted_window_dims": (), "input_batching_dims": (0,), "scatter_indices_batching_dims": (0,)}
HALVES = {"replica_groups": ((0, 1),), "group_size": 2}
AT = tensor(I32, 5, 1)
NEW = tensor(F32, 5, 3)
ADD = binary("add")
NEGATE = region([ONE], lambda a: call("negate", a))
REFUSED: list[tuple[str, tuple[Type, ...], dict[str, Any], tuple[Region, ...], str]] = [
    ("reduce_region", (X,), {"dimensions": (0,)}, (ADD,), "as many init values"),
    ("reduce_region", (X, X), {"dimensions": (0,)}, (ADD,), "init value 0"),
    ("reduce_region", (X, tensor(BF16)), {"dimensions": (0,)}, (ADD,), "init value 0"),
    ("reduce_region", (X, Y, ONE, ONE), {"dimensions": (0,)}, (ADD,), "one shape"),
    ("reduce_region", (X, ONE), {"dimensions": (1, 0)}, (ADD,), "must be sorted"),
    ("reduce_region", (X, ONE), {"dimensions": (2,)}, (ADD,), "must lie in"),
    ("reduce_region", (X, ONE), {"dimensions": (0,)}, (), r"takes 1 regions \(body\), not 0"),
    ("reduce_region", (X, ONE), {"dimensions": (0,)}, (LESS,), "must give"),
    ("reduce_region", (X, ONE), {"dimensions": (0,)}, (NEGATE,), "must take"),
    ("reduce_window", (X,), {**DILATED, "combiner": "and"}, (), "int or bool"),
    ("reduce_window", (X,), {**DILATED, "combiner": "mean"}, (), "must be one of"),
    ("reduce_window", (X,), {**DILATED, "combiner": "add"}, (ADD,), "takes no regions"),
    ("reduce_window", (X,), {**DILATED, "combiner": "add", "window_dimensions": (0, 1)}, (), "must be 1 or more"),
    ("reduce_window", (X,), {**DILATED, "combiner": "add", "base_dilations": (0, 1)}, (), "must be 1 or more"),
    ("reduce_window", (X,), {**DILATED, "combiner": "add", "window_strides": (1,)}, (), "must have 2 entries"),
    ("reduce_window", (X,), {**DILATED, "combiner": "add", "padding": ((0, 0),)}, (), "2 pairs"),
    ("reduce_window", (X,), {**DILATED, "combiner": "add", "padding": ((-2, -1), (0, 0))}, (), "negative dim 0"),
    ("reduce_window_region", (X, ONE), DILATED, (LESS,), "must give"),
    ("select_and_scatter", (X, X, ONE), {**WINDOW, "select": "GE", "combiner": "add"}, (), r"one element for each window.*f32\[2, 2\]"),
    ("select_and_scatter", (X, tensor(F32, 2, 2), X), {**WINDOW, "select": "GE", "combiner": "add"}, (), "init_value"),
    ("select_and_scatter", (X, tensor(F32, 2, 2), ONE), {**WINDOW, "select": "EQ", "combiner": "add"}, (), "`select`"),
    ("select_and_scatter", (X, tensor(F32, 2, 2), ONE), {**WINDOW, "select": "region", "combiner": "add"}, (), r"1 regions \(selector\)"),
    ("select_and_scatter", (X, tensor(F32, 2, 2), ONE), {**WINDOW, "select": "region", "combiner": "add"}, (ADD,), "selector .* must give"),
    ("sort", (), {"dimension": 0, "direction": "LT"}, (), "one operand or more"),
    ("sort", (ONE,), {"dimension": 0, "direction": "LT"}, (), "must lie in"),
    ("sort", (X, Y), {"dimension": 0, "direction": "LT"}, (), "one shape"),
    ("sort", (X,), {"dimension": 0, "direction": "EQ"}, (), "must be one of"),
    ("sort", (X,), {"dimension": 0, "direction": "LT", "is_stable": 1}, (), "true or false"),
    ("sort", (X, X), {"dimension": 0, "direction": "region"}, (LESS,), "must take"),
    ("sort", (X,), {"dimension": 0, "direction": "region"}, (ADD,), "must give"),
    ("scatter", (X, AT, NEW), {**SCATTER, "count": 2}, (), "takes 2 operands"),
    ("scatter", (X, tensor(F32, 5, 1), NEW), SCATTER, (), "takes int elements"),
    ("scatter", (X, AT, tensor(F32, 5, 4)), SCATTER, (), "larger than dim 1"),
    ("scatter", (X, AT, tensor(F32, 4, 3)), SCATTER, (), "must have, beside the windows"),
    ("scatter", (X, AT, tensor(BF16, 5, 3)), SCATTER, (), "must have f32 elements"),
    ("scatter", (X, tensor(I32, 5, 2), NEW), SCATTER, (), "2 numbers in an index but 1 dims"),
    ("scatter", (X, AT, NEW), {**SCATTER, "index_vector_dim": 3}, (), "must lie in"),
    ("scatter", (X, AT, NEW), {**SCATTER, "inserted_window_dims": ()}, (), "must be as many"),
    ("scatter", (X, AT, NEW), {**SCATTER, "inserted_window_dims": (2,)}, (), "must lie in"),
    ("scatter", (X, AT, NEW), {**SCATTER, "update_window_dims": (1, 0)}, (), "must be sorted"),
    ("scatter", (X, AT, NEW), {**SCATTER, "input_batching_dims": (0,), "scatter_indices_batching_dims": (0,)}, (), "both inserted and"),
    ("scatter", (X, AT, NEW), BATCHED, (), "both scattered to and batching"),
    ("scatter", (X, AT, NEW), {**BATCHED, "scatter_dims_to_operand_dims": (1,)}, (), "batching dim 0"),
    ("scatter", (X, AT, NEW), {**SCATTER, "combiner": "region"}, (LESS,), "must give"),
    ("scatter", (X, AT, NEW), {**SCATTER, "combiner": "or"}, (), "int or bool"),
    ("map", (X, X), {"dimensions": (0,)}, (ADD,), "every one of"),
    ("map", (X, X), {"dimensions": (0, 1)}, (LESS,), "must give"),
    ("if", (X,), {"results": ()}, (), "must be bool"),
    ("if", (tensor(BOOL), ONE), {"results": (ONE,)}, (NEGATE,), "true branch, false branch"),
    ("if", (tensor(BOOL), ONE), {"results": (X,)}, (NEGATE, NEGATE), "must give"),
    ("if", (tensor(BOOL),), {"results": (ONE,)}, (NEGATE, NEGATE), "must take"),
    ("case", (tensor(DTYPES["i64"]), ONE), {"results": (ONE,)}, (NEGATE,), "must be i32"),
    ("case", (tensor(I32), ONE), {"results": (ONE,)}, (), "one branch or more"),
    ("while", (ONE, ONE), {}, (LESS,), "condition, body"),
    ("while", (ONE, ONE), {}, (LESS, ADD), "the body .* must give"),
    ("while", (ONE, ONE), {}, (ADD, ADD), "the condition .* must give"),
    ("composite", (ONE,), {"name": "", "results": (ONE,)}, (NEGATE,), "which composite"),
    ("composite", (ONE,), {"name": "f", "results": (X,)}, (NEGATE,), "the decomposition .* must give"),
    ("add", (ONE, ONE), {}, (ADD,), "takes no regions"),
    ("all_gather", (X,), {"all_gather_dim": 0, "replica_groups": ((0, 1),), "group_size": 3}, (), "have 2 processes"),
    ("all_gather", (X,), {"all_gather_dim": 2, "replica_groups": ((0, 1),), "group_size": 2}, (), "must lie in"),
    ("all_reduce", (X,), {"replica_groups": ((0, 1), (1, 2)), "combiner": "add"}, (), "each process once"),
    ("all_reduce", (X,), {"replica_groups": ((0, 1), (2,)), "combiner": "add"}, (), "one length"),
    ("all_reduce", (X,), {"replica_groups": ((0,),), "combiner": "add", "use_global_device_ids": True}, (), "needs a `channel_id`"),
    ("all_reduce", (X,), {"replica_groups": ((0,),), "combiner": "region"}, (), "computation"),
    ("all_to_all", (X,), {"split_dimension": 1, "concat_dimension": 0, "split_count": 2, "replica_groups": ((0, 1),)}, (), "do not divide"),
    ("all_to_all", (X,), {"split_dimension": 1, "concat_dimension": 0, "split_count": 3, "replica_groups": ((0, 1),)}, (), "2 processes"),
    ("reduce_scatter", (X,), {**HALVES, "scatter_dimension": 1, "combiner": "add"}, (), "do not divide"),
    ("collective_permute", (X,), {"source_target_pairs": ((0, 1), (0, 2))}, (), "once as source"),
    ("after_all", (X,), {}, (), "takes a token"),
    ("send", (X,), {"channel_id": 0}, (), "takes a token"),
    ("custom_call", (X,), {"call_target_name": "f", "results": (X,), "effect": True}, (), "token first"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "types", "attributes", "regions", "message"), REFUSED, ids=lambda v: v if isinstance(v, str) else "")
def test_wrong_terms_are_refused(
    name: str, types: tuple[Type, ...], attributes: dict[str, Any], regions: tuple[Region, ...], message: str
) -> None:
    with pytest.raises(TypeRuleError, match=message):
        make(f"stablehlo.{name}", [input_term(f"x{i}", type) for i, type in enumerate(types)], attributes, regions)


def test_a_region_may_not_capture() -> None:
    outer = input_term("outer", ONE)
    with pytest.raises(TypeRuleError, match=r"captures .* give captured values as operands"):
        call("reduce_region", of(np.ones(3)), of(0.0), dimensions=(0,), payload=region([ONE, ONE], lambda a, _: call("add", a, outer)))
    foreign = region([ONE] * 3, lambda a, b, c: c).parameters[2]
    with pytest.raises(TypeRuleError, match="no parameter of it"):
        call("reduce_region", of(np.ones(3)), of(0.0), dimensions=(0,), payload=region([ONE, ONE], lambda a, _: call("add", a, foreign)))
    swapped = Region(ADD.parameters[::-1], ADD.results)
    with pytest.raises(TypeRuleError, match="index i"):
        call("reduce_region", of(np.ones(3)), of(0.0), dimensions=(0,), payload=swapped)
