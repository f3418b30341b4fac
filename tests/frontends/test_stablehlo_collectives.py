"""Collectives come in typed and go out as they came; what the hub does not say of one keeps it as it is."""

from __future__ import annotations

import pytest

pytest.importorskip("torch_mlir")

from coset.frontends.stablehlo.program import import_stablehlo
from coset.ir.term import Term
from coset.lowering.stablehlo.module import print_stablehlo

GROUPS = "replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>"
CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 7, type = 1>"
ADD = """({ ^bb0(%a: tensor<f32>, %b: tensor<f32>): %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32> })"""
OTHER = """({ ^bb0(%a: tensor<f32>, %b: tensor<f32>): %s = stablehlo.subtract %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32> })"""
CALLS = {
    "all_gather": (f"all_gather_dim = 1 : i64, {GROUPS}", "", "4x6"),
    "all_reduce": (GROUPS, ADD, "4x3"),
    "all_reduce of its own": (GROUPS, OTHER, "4x3"),
    "all_to_all": (f"split_dimension = 0 : i64, concat_dimension = 1 : i64, split_count = 2 : i64, {GROUPS}", "", "2x6"),
    "collective_broadcast": (GROUPS, "", "4x3"),
    "collective_permute": ("source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>", "", "4x3"),
    "reduce_scatter": (f"scatter_dimension = 0 : i64, {GROUPS}", ADD, "2x3"),
}
FLAT = ("all_gather", "all_reduce", "all_reduce of its own", "reduce_scatter")  # take use_global_device_ids


def module(name: str, *more: str) -> str:
    attributes, body, shape = CALLS[name]
    op = name.split(" ", maxsplit=1)[0]
    call = f'"stablehlo.{op}"(%x) <{{{", ".join([attributes, *more])}}}> {body} : (tensor<4x3xf32>) -> tensor<{shape}xf32>'
    return f"func.func @main(%x: tensor<4x3xf32>) -> tensor<{shape}xf32> {{\n  %r = {call}\n  return %r : tensor<{shape}xf32>\n}}"


def imported(text: str) -> Term:
    program = import_stablehlo(text)
    assert import_stablehlo(print_stablehlo(program)).roots == program.roots
    return program.roots[0]


@pytest.mark.parametrize("name", CALLS)
def test_a_collective_is_typed_and_printed_again(name: str) -> None:
    plain, over = imported(module(name)), imported(module(name, CHANNEL))
    assert plain.op.name == over.op.name == f"stablehlo.{name.split(' ')[0]}"
    assert (plain.attribute("channel_id"), over.attribute("channel_id")) == (0, 7)
    assert bool(plain.regions) == (name == "all_reduce of its own")


@pytest.mark.parametrize("name", FLAT)
def test_global_device_ids_are_kept(name: str) -> None:
    assert imported(module(name, CHANNEL, "use_global_device_ids")).attribute("use_global_device_ids") is True


def test_a_channel_to_the_host_keeps_the_operation_as_it_is() -> None:
    assert imported(module("all_reduce", CHANNEL.replace("type = 1", "type = 2"))).op.name == "builtin.opaque"
