"""How StableHLO and CHLO operations become hub terms: by the table of spellings, or by a builder of their own."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from coset.dialects.hub.hints import HINTS, is_default, with_hints
from coset.dialects.hub.mlir_ops import FIELDS, GATHER, SILENT
from coset.dialects.hub.region_terms import total_order
from coset.dialects.hub.terms import broadcast, convert, numpy_broadcast, numpy_shape, reshape, splat, transpose
from coset.frontends.onnx.values import host_value
from coset.frontends.stablehlo.attributes import Foreign, dims_of, field_value
from coset.frontends.stablehlo.collectives import COLLECTIVE_BUILDERS
from coset.frontends.stablehlo.node import Builder, Built, MlirOperation
from coset.frontends.stablehlo.quantized import Floats, dequantized, is_computed_between, requantized, uniform_quantize
from coset.frontends.stablehlo.regions import REGION_BUILDERS
from coset.frontends.stablehlo.shapes import SHAPE_BUILDERS, folded, shape_operand
from coset.ir.builtin import DIMS
from coset.ir.op import find_op
from coset.ir.term import CONSTANT, TUPLE, Term, get, make, topological
from coset.ir.types import DTYPES, TensorType, TupleType


def build(node: MlirOperation) -> Built | None:
    """The results of `node` as hub terms, or None where we do not know the operation.

    Raises:
        Foreign: something that it says has no hub form.
        TypeRuleError: the hub refuses it.
    """
    if node.name not in _ANY_OPERANDS and not all(isinstance(x.type, TensorType) and x.type.shape is not None for x in node.operands):
        return None
    _refuse_lost(node)
    op = find_op(node.name)
    if is_computed_between(node, op):
        return requantized(node, build(Floats(node.op, node.name, dequantized(node.operands), node.scope, node.importer)))
    builder = BUILDERS.get(node.name)
    if builder is not None:
        return builder(node)
    if op is None and node.name in _SIMPLE:
        return _SIMPLE[node.name](node)
    if op is None or op.has("effect") or node.name.partition(".")[0] not in ("stablehlo", "chlo"):
        return None
    if node.regions:
        return None
    return plain(node, node.name, node.operands)


def _refuse_lost(node: MlirOperation) -> None:
    """What an operation says beside its meaning would be lost: it is kept as it is."""
    if node.name == "stablehlo.custom_call":
        return  # kept in any case, or a fact about sizes
    if any("." in name for name in node.op.attributes) or (hints_of(node) and node.name in BUILDERS and node.name not in _HINTED):
        raise Foreign


def hints_of(node: MlirOperation) -> dict[str, str]:
    """How an operation is to be computed, as texts; empty if in any way."""
    found = {name: node.text(name) or "" for name in HINTS if name in node.op.attributes}
    return {name: text for name, text in found.items() if not is_default(name, text)}


def _asked(node: MlirOperation, term: Term) -> Term:
    """`term` as the operation wants it computed."""
    found = with_hints(term, hints_of(node))
    if found is not term:
        node.importer.remember(found, node.op)
    return found


def plain(node: MlirOperation, name: str, operands: Sequence[Term]) -> Built:
    """The hub op `name` with the attributes that the table of spellings gives."""
    op = find_op(name)
    assert op is not None
    attributes: dict[str, Any] = {field.ours: field_value(node.op, field) for field in FIELDS.get(name, ())}
    wanted = {attribute.name for attribute in op.attributes}
    if "dtype" in wanted:
        attributes["dtype"] = node.result()[0]
    if "shape" in wanted:
        attributes["shape"] = node.shape()
    _refuse_unread(node, name)
    built = known(name, operands, attributes)
    if not hints_of(node):
        return built
    if not isinstance(built, Term) or built.op is not op:
        raise Foreign
    return _asked(node, built)


def _refuse_unread(node: MlirOperation, name: str) -> None:
    """An attribute that the table does not have may change the meaning: the operation is kept as it is."""
    read = {field.theirs for field in FIELDS.get(name, ())}
    for attribute in node.op.attributes:
        if attribute not in read and attribute not in SILENT and attribute not in HINTS:
            raise Foreign


def known(name: str, operands: Sequence[Term], attributes: dict[str, Any]) -> Built:
    """The term, evaluated where it is shape arithmetic and in normal form where it only moves elements."""
    result = folded(name, operands, attributes)
    if result is not None:
        return result
    term = _NORMAL[name](operands[0], attributes) if name in _NORMAL else make(name, operands, attributes)
    return [get(term, index) for index in range(len(term.type.items))] if isinstance(term.type, TupleType) else term


_NORMAL: dict[str, Any] = {
    "stablehlo.broadcast_in_dim": lambda x, a: broadcast(x, a["shape"], a["broadcast_dimensions"]),
    "stablehlo.reshape": lambda x, a: reshape(x, a["shape"]),
    "stablehlo.transpose": lambda x, a: transpose(x, a["permutation"]),
    "stablehlo.convert": lambda x, a: convert(x, a["dtype"]),
}


# ---------------------------------------------------------------- builders of their own


def _compare(node: MlirOperation) -> Built:
    """Total order of floats is an order of integers."""
    if node.value("compare_type", "NOTYPE") != "TOTALORDER" or node.operands[0].tensor.dtype.kind not in ("float", "complex"):
        return plain(node, node.name, node.operands)
    dtype = node.operands[0].tensor.dtype
    if dtype.kind == "complex" or f"i{dtype.bits}" not in DTYPES:
        raise Foreign
    return make(node.name, [total_order(x) for x in node.operands], {"direction": node.value("comparison_direction")})


def _dot_general(node: MlirOperation) -> Built:
    numbers = dims_of(node.op, "dot_dimension_numbers", "DotDimensionNumbers")
    attributes = {
        "lhs_batch": tuple(numbers.lhs_batching_dimensions), "rhs_batch": tuple(numbers.rhs_batching_dimensions),
        "lhs_contract": tuple(numbers.lhs_contracting_dimensions), "rhs_contract": tuple(numbers.rhs_contracting_dimensions),
    }  # fmt: skip
    return _asked(node, make("stablehlo.dot_general", _as_result(node, node.operands), attributes))


def _dot(node: MlirOperation) -> Built:
    rank = node.operands[0].tensor.rank
    term = make("stablehlo.dot_general", _as_result(node, node.operands), {"lhs_contract": (rank - 1,), "rhs_contract": (0,)})
    return _asked(node, term)


def _as_result(node: MlirOperation, operands: Sequence[Term]) -> list[Term]:
    """The operands of a contraction in the element type of the result: it says in what the sums are kept.

    Raises:
        Foreign: that type is narrower, and rounds what the operands hold.
    """
    dtype = node.result()[0]
    for operand in operands:
        ours = operand.tensor.dtype
        if ours != dtype and (ours.bits > dtype.bits or (ours.kind, dtype.kind) in (("float", "int"), ("float", "uint"), ("int", "uint"))):
            raise Foreign
    return [convert(operand, dtype) for operand in operands]


def _convolution(node: MlirOperation) -> Built:
    pairs = node.value("padding")
    spatial = node.operands[0].tensor.rank - 2
    padding = ((0, 0),) * spatial if pairs is None else tuple((int(low), int(high)) for low, high in np.asarray(pairs).reshape(-1, 2))
    return _in_our_layout(node, "stablehlo.convolution", (), {"padding": padding})


def _dynamic_conv(node: MlirOperation) -> Built:
    amounts = host_value(node.operands[2])
    if amounts is None:
        numbers = dims_of(node.op, "dimension_numbers", "ConvDimensionNumbers")
        shape, order = node.open_shape(), _layout(numbers, "output")
        return _in_our_layout(node, node.name, node.operands[2:], {"shape": tuple(shape[axis] for axis in order)})
    pairs = amounts.tolist()
    return _in_our_layout(node, "stablehlo.convolution", (), {"padding": tuple((low, high) for low, high in pairs)})


def _layout(numbers: Any, side: str) -> tuple[int, ...]:
    first, second = ("output_feature", "input_feature") if side == "kernel" else ("batch", "feature")
    leading = (getattr(numbers, f"{side}_{first}_dimension"), getattr(numbers, f"{side}_{second}_dimension"))
    return (*leading, *getattr(numbers, f"{side}_spatial_dimensions"))


def _in_our_layout(node: MlirOperation, name: str, more: Sequence[Term], given: dict[str, Any]) -> Built:
    """A convolution between transposes: ours is [N, C, spatial..] with [O, I, spatial..]."""
    numbers = dims_of(node.op, "dimension_numbers", "ConvDimensionNumbers")
    lhs, rhs = _as_result(node, node.operands[:2])
    ones = (1,) * (lhs.tensor.rank - 2)
    reversal = node.value("window_reversal", ())
    if any(reversal):
        axes = tuple(axis for axis, turned in zip(numbers.kernel_spatial_dimensions, reversal, strict=True) if turned)
        rhs = make("stablehlo.reverse", (rhs,), {"dimensions": axes})
    attributes = {
        "strides": node.value("window_strides", ones), "lhs_dilation": node.value("lhs_dilation", ones),
        "rhs_dilation": node.value("rhs_dilation", ones), "feature_group_count": node.value("feature_group_count"),
        "batch_group_count": node.value("batch_group_count"), **given,
    }  # fmt: skip
    operands = (transpose(lhs, _layout(numbers, "input")), transpose(rhs, _layout(numbers, "kernel")), *more)
    order = _layout(numbers, "output")
    return transpose(_asked(node, make(name, operands, attributes)), tuple(order.index(axis) for axis in range(len(order))))


def _gather_numbers(node: MlirOperation) -> dict[str, Any]:
    numbers = dims_of(node.op, "dimension_numbers", "GatherDimensionNumbers")
    lists = {name: tuple(getattr(numbers, name)) for name in GATHER}
    return {
        **lists, "index_vector_dim": numbers.index_vector_dim, "indices_are_sorted": bool(node.value("indices_are_sorted", False)),
    }  # fmt: skip


def _gather(node: MlirOperation) -> Built:
    return make(node.name, node.operands, {**_gather_numbers(node), "slice_sizes": tuple(node.value("slice_sizes"))})


def _dynamic_gather(node: MlirOperation) -> Built:
    sizes = shape_operand(node.operands[2])
    if sizes is not None:
        return make("stablehlo.gather", node.operands[:2], {**_gather_numbers(node), "slice_sizes": sizes})
    return make(node.name, node.operands, {**_gather_numbers(node), "shape": node.open_shape()})


def _rng_bit_generator(node: MlirOperation) -> Built:
    dtype, _ = node.result(1)
    algorithm = node.value("rng_algorithm")
    return known(node.name, node.operands, {"rng_algorithm": algorithm, "dtype": dtype, "shape": node.shape(1)})


def _custom_call(node: MlirOperation) -> Built | None:
    """JAX's assertions about dims are facts of every run that does not fail, and stand beside the program; other calls are kept."""
    if node.value("call_target_name") != "shape_assertion" or not node.operands or not is_about_dims(node.operands[0]):
        return None
    node.importer.keep_check(node.op)
    stated = node.operands[0]
    if stated.op.name == "stablehlo.compare" and stated.attribute("direction") == "EQ":
        left, right = (host_value(operand) for operand in stated.operands)
        if left is not None and right is not None:
            for a, b in zip(left.ravel().tolist(), right.ravel().tolist(), strict=True):
                node.importer.equal(a, b)
    return ()


def is_about_dims(term: Term) -> bool:
    """True for a value that is computed from numbers of dims alone."""
    return all(found.operands or found.op in (CONSTANT, DIMS) for found in topological([term]))


def _square(node: MlirOperation) -> Built:
    return make("stablehlo.multiply", node.operands * 2)


def _conjugate(node: MlirOperation) -> Built:
    (x,) = node.operands
    return make("stablehlo.complex", (make("stablehlo.real", (x,)), make("stablehlo.negate", (make("stablehlo.imag", (x,)),))))


def _tuple(node: MlirOperation) -> Built:
    return make("builtin.tuple", node.operands)


def _get_tuple_element(node: MlirOperation) -> Built:
    (whole,) = node.operands
    index = node.value("index")
    return whole.operands[index] if whole.op is TUPLE else get(whole, index)


def _broadcasting(name: str, node: MlirOperation) -> Built:
    """`chlo.broadcast_..`: operands are broadcast to each other, from the right where nothing is said."""
    shapes = [operand.tensor.dims for operand in node.operands]
    if node.value("broadcast_dimensions") not in (None, tuple(range(len(shapes[-1]) - min(map(len, shapes)), len(shapes[-1])))):
        raise Foreign
    shape = numpy_shape(*shapes)
    spread = [numpy_broadcast(operand, shape) for operand in node.operands]
    attributes = {"direction": node.value("comparison_direction")} if name == "stablehlo.compare" else {}
    return make(name, spread, attributes)


def _constant_like(node: MlirOperation) -> Built:
    value = node.value("value")
    operand = node.operands[0].tensor
    return splat(value, operand.dtype, operand.dims)


_BROADCASTING = (
    "add", "subtract", "multiply", "divide", "remainder", "power", "maximum", "minimum", "atan2", "and", "or", "xor", "shift_left",
    "shift_right_arithmetic", "shift_right_logical", "compare", "select", "complex",
)  # fmt: skip
_SIMPLE: dict[str, Builder] = {"chlo.square": _square, "chlo.conj": _conjugate}  # where CHLO's op is none of ours
_ANY_OPERANDS = frozenset({
    "stablehlo.tuple", "stablehlo.get_tuple_element", "stablehlo.if", "stablehlo.case", "stablehlo.while", "stablehlo.optimization_barrier",
    "stablehlo.composite", "shape.assuming", "shape.assuming_all", "cf.assert",
})  # fmt: skip
"""Operations whose operands need not be tensors."""
_HINTED = frozenset({"stablehlo.dot_general", "stablehlo.dot", "stablehlo.convolution", "stablehlo.dynamic_conv"})
"""Operations with a builder of their own that passes hints on."""
BUILDERS: dict[str, Builder] = {
    **SHAPE_BUILDERS,
    **REGION_BUILDERS,
    **COLLECTIVE_BUILDERS,
    **{f"chlo.broadcast_{name}": partial(_broadcasting, f"stablehlo.{name}") for name in _BROADCASTING},
    "stablehlo.compare": _compare, "stablehlo.dot_general": _dot_general, "stablehlo.dot": _dot, "stablehlo.convolution": _convolution,
    "chlo.constant_like": _constant_like, "stablehlo.gather": _gather, "stablehlo.dynamic_gather": _dynamic_gather,
    "stablehlo.dynamic_conv": _dynamic_conv, "stablehlo.rng_bit_generator": _rng_bit_generator, "stablehlo.tuple": _tuple,
    "stablehlo.get_tuple_element": _get_tuple_element, "stablehlo.custom_call": _custom_call,
    "stablehlo.uniform_quantize": uniform_quantize,
}  # fmt: skip
