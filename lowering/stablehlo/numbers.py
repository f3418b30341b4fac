"""Ops with dimension numbers (contractions, convolutions, gathers) and slices at computed indices, printed as StableHLO."""

from __future__ import annotations

from collections.abc import Sequence

from coset.dialects.hub.mlir_ops import GATHER
from coset.ir.term import Term
from coset.lowering.stablehlo.attributes import ints, pairs, truth
from coset.lowering.stablehlo.body import SIZE, PrintedBlock


def dot_general(body: PrintedBlock, term: Term, hints: Sequence[str] = ()) -> str:
    """`dot_general` with its four lists."""
    names = (("lhs_batching_dimensions", "lhs_batch"), ("rhs_batching_dimensions", "rhs_batch"),
             ("lhs_contracting_dimensions", "lhs_contract"), ("rhs_contracting_dimensions", "rhs_contract"))  # fmt: skip
    inside = ", ".join(f"{theirs} = [{', '.join(map(str, term.attribute(ours)))}]" for theirs, ours in names)
    attributes = [f"dot_dimension_numbers = #stablehlo.dot<{inside}>", *hints]
    return body.op(term.op.name, body.typed(term.operands), attributes, [body.type(term)])


def convolution(body: PrintedBlock, term: Term, hints: Sequence[str] = ()) -> str:
    """`convolution` and `dynamic_conv` in our layout."""
    spatial = [str(axis) for axis in range(term.operands[0].tensor.rank - 2)]
    layouts = [f"[{', '.join([*first, *spatial])}]" for first in (("b", "f"), ("o", "i"), ("b", "f"))]
    attributes = [
        f"dimension_numbers = #stablehlo.conv<{layouts[0]}x{layouts[1]}->{layouts[2]}>",
        *(f"{theirs} = {ints(term.attribute(ours))}" for ours, theirs in _CONVOLUTION.items()),
        f"feature_group_count = {term.attribute('feature_group_count')} : i64",
        f"batch_group_count = {term.attribute('batch_group_count')} : i64",
        *hints,
    ]
    if term.op.name == "stablehlo.convolution":
        attributes.append(f"padding = {pairs(term.attribute('padding'))}")
    return body.op(term.op.name, body.typed(term.operands), attributes, [body.type(term)])


_CONVOLUTION = {"strides": "window_strides", "lhs_dilation": "lhs_dilation", "rhs_dilation": "rhs_dilation"}


def gather(body: PrintedBlock, term: Term) -> str:
    """`gather`; where a size is symbolic, `dynamic_gather` with sizes that are computed."""
    lists = [f"{name} = [{', '.join(map(str, term.attribute(name)))}]" for name in GATHER]
    numbers = ", ".join([*lists, f"index_vector_dim = {term.attribute('index_vector_dim')}"])
    attributes = [
        f"dimension_numbers = #stablehlo.gather<{numbers}>",
        f"indices_are_sorted = {truth(term.attribute('indices_are_sorted'))}",
    ]
    operands, name = body.typed(term.operands), "stablehlo.dynamic_gather"
    if term.op.name == "stablehlo.gather":
        sizes = term.attribute("slice_sizes")
        if all(isinstance(size, int) for size in sizes):
            attributes.append(f"slice_sizes = {ints(sizes)}")
            name = term.op.name
        else:
            operands.append(body.vector(sizes, term))
    return body.op(name, operands, attributes, [body.type(term)])


def dynamic_slice(body: PrintedBlock, term: Term) -> str:
    """`dynamic_slice`; where a size is symbolic, `real_dynamic_slice` from the clamped starts."""
    sizes = term.attribute("slice_sizes")
    if all(isinstance(size, int) for size in sizes):
        return body.op(term.op.name, body.typed(term.operands), [f"slice_sizes = {ints(sizes)}"], [body.type(term)])
    operand, *starts = term.operands
    one, scalar, vector = f"tensor<1x{SIZE}>", f"tensor<{SIZE}>", f"tensor<{len(sizes)}x{SIZE}>"
    firsts, lasts = [], []
    for start, size, dim in zip(starts, sizes, operand.tensor.dims, strict=True):
        given = body.op("stablehlo.convert", body.typed([start]), [], [scalar])
        room = body.arithmetic("subtract", body.size(dim, term), body.size(size, term))
        first = body.arithmetic("maximum", body.size(0, term), body.arithmetic("minimum", given, room))
        last = body.arithmetic("add", first, body.size(size, term))
        firsts.append((body.op("stablehlo.reshape", [(first, scalar)], [], [one]), one))
        lasts.append((body.op("stablehlo.reshape", [(last, scalar)], [], [one]), one))
    bounds = [(body.op("stablehlo.concatenate", parts, ["dimension = 0 : i64"], [vector]), vector) for parts in (firsts, lasts)]
    operands = [*body.typed([operand]), *bounds, body.vector((1,) * len(sizes), term)]
    return body.op("stablehlo.real_dynamic_slice", operands, [], [body.type(term)])
