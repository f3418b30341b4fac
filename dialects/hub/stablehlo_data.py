"""The hub, second part: ops on bits and parts of elements, ops at computed indices, dynamic shapes.

Source of every meaning: the StableHLO specification (https://openxla.org/stablehlo/spec). Each family has a file
(`hub_bits`, `hub_indexing`, `hub_dynamic`) with its type rules and meanings; this one registers the ops.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from coset.dialects.hub import bits, dynamic, indexing
from coset.dialects.hub.quantized import per_tensor
from coset.dialects.hub.stablehlo import SPECIFICATION, Rule
from coset.dialects.hub.types import pointwise
from coset.ir import dims
from coset.ir.dims import Dim
from coset.ir.op import Attribute, Attributes, Meaning, Op, register
from coset.ir.types import TensorType, Type


def _op(name: str, infer: Rule, meaning: Meaning | None, document: str, *attributes: Attribute, traits: str = "", **more: Any) -> Op:
    full = f"stablehlo.{name}"
    return register(Op(full, partial(infer, full), meaning, attributes, traits=frozenset(traits.split()),
                       source=SPECIFICATION + name, document=document, **more))  # fmt: skip


def _no_flops(_: Type, __: Sequence[Type], ___: Attributes) -> Dim:
    return 0


def _moving(name: str, infer: Rule, meaning: Meaning, document: str, *attributes: Attribute, **more: Any) -> Op:
    return _op(name, per_tensor(infer), meaning, document, *attributes, traits="movement", flops=_no_flops, **more)


_ONE = ("operand",)
_SHAPE, _DTYPE, _DIMENSION = Attribute("shape", "dims"), Attribute("dtype", "dtype"), Attribute("dimension", "int")

# ---------------------------------------------------------------- bits and parts

COMPLEX = _op("complex", bits.complex_type, bits.complex_, "The complex number lhs + i * rhs.", traits="elementwise",
              operands=("lhs", "rhs"), flops=_no_flops)  # fmt: skip
REAL = _op("real", bits.part_type, bits.real, "The real part.", traits="elementwise", operands=_ONE, flops=_no_flops)
IMAG = _op("imag", bits.part_type, bits.imaginary, "The imaginary part; 0 of a real operand.", traits="elementwise", operands=_ONE,
           flops=_no_flops)  # fmt: skip
BITCAST_CONVERT = _op("bitcast_convert", bits.bitcast_type, bits.bitcast_convert,
                      "The operand's bits read as `dtype`; a last dim holds the parts (low bits first) where the widths differ.",
                      _DTYPE, operands=_ONE, flops=_no_flops)  # fmt: skip
POPCNT = _op("popcnt", partial(pointwise, names=_ONE, classes="int"), bits.popcnt, "The number of bits that are set.",
             traits="elementwise", operands=_ONE)  # fmt: skip
COUNT_LEADING_ZEROS = _op("count_leading_zeros", partial(pointwise, names=_ONE, classes="int"), bits.count_leading_zeros,
                          "The number of zero bits above the highest bit that is set.", traits="elementwise", operands=_ONE)  # fmt: skip
REDUCE_PRECISION = _op("reduce_precision", bits.reduce_precision_type, bits.reduce_precision,
                       "The operand rounded to a float of `exponent_bits` and `mantissa_bits`, and back.",
                       Attribute("exponent_bits", "int"), Attribute("mantissa_bits", "int"), traits="elementwise",
                       operands=_ONE)  # fmt: skip
GET_DIMENSION_SIZE = _op("get_dimension_size", bits.dimension_size_type, bits.get_dimension_size,
                         "The size of dim `dimension` as an i32.", _DIMENSION, operands=_ONE, flops=_no_flops)  # fmt: skip

# ---------------------------------------------------------------- computed indices

_GATHER = (
    Attribute("offset_dims", "ints"), Attribute("collapsed_slice_dims", "ints"),
    Attribute("operand_batching_dims", "ints", (), required=False), Attribute("start_indices_batching_dims", "ints", (), required=False),
    Attribute("start_index_map", "ints"), Attribute("index_vector_dim", "int"),
    Attribute("indices_are_sorted", "bool", False, required=False),
)  # fmt: skip
DYNAMIC_SLICE = _moving("dynamic_slice", indexing.dynamic_slice_type, indexing.dynamic_slice,
                        "The slice of `slice_sizes` from the start indices, clamped so that it lies in the operand.",
                        Attribute("slice_sizes", "dims"), operands=("operand", "start_indices"), variadic=True)  # fmt: skip
DYNAMIC_UPDATE_SLICE = _moving("dynamic_update_slice", indexing.dynamic_update_slice_type, indexing.dynamic_update_slice,
                               "The operand with `update` at the start indices, clamped so that it lies in the operand.",
                               operands=("operand", "update", "start_indices"), variadic=True)  # fmt: skip
GATHER = _moving("gather", indexing.gather_type, indexing.gather,
                 "The slices of `slice_sizes` at the (clamped) index vectors of `start_indices`, along the dims `offset_dims`.",
                 *_GATHER, Attribute("slice_sizes", "dims"), operands=("operand", "start_indices"))  # fmt: skip

# ---------------------------------------------------------------- dynamic shapes

DYNAMIC_RESHAPE = _moving("dynamic_reshape", dynamic.dynamic_reshape_type, dynamic.dynamic_reshape,
                          "The same elements in row-major order under the shape `output_shape`.",
                          _SHAPE, operands=("operand", "output_shape"))  # fmt: skip
DYNAMIC_BROADCAST_IN_DIM = _moving(
    "dynamic_broadcast_in_dim", dynamic.dynamic_broadcast_type, dynamic.dynamic_broadcast_in_dim,
    "`broadcast_in_dim` to the shape `output_dimensions`; the known dims are hints.", _SHAPE, Attribute("broadcast_dimensions", "ints"),
    *(Attribute(key, "ints", (), required=False) for key in dynamic.HINTS), operands=("operand", "output_dimensions"))  # fmt: skip
DYNAMIC_IOTA = _moving("dynamic_iota", dynamic.dynamic_iota_type, dynamic.dynamic_iota,
                       "0, 1, 2 .. along `dimension` of the shape `output_shape`.", _SHAPE, _DTYPE, _DIMENSION,
                       operands=("output_shape",))  # fmt: skip
DYNAMIC_PAD = _moving("dynamic_pad", dynamic.dynamic_pad_type, dynamic.dynamic_pad,
                      "`pad` by amounts that are operands.", _SHAPE,
                      operands=("operand", "padding_value", "low", "high", "interior"))  # fmt: skip
REAL_DYNAMIC_SLICE = _moving("real_dynamic_slice", dynamic.real_dynamic_slice_type, dynamic.real_dynamic_slice,
                             "`slice` by bounds that are operands.", _SHAPE, operands=("operand", "start", "limit", "strides"))  # fmt: skip
DYNAMIC_GATHER = _moving("dynamic_gather", dynamic.dynamic_gather_type, dynamic.dynamic_gather,
                         "`gather` of slices whose sizes are an operand.", *_GATHER, _SHAPE,
                         operands=("operand", "start_indices", "slice_sizes"))  # fmt: skip


def _convolution_flops(result: Type, operands: Sequence[Type], _: Attributes) -> Dim:
    """A multiplication and an addition for each result element and each element of one output channel's filter."""
    assert isinstance(result, TensorType) and isinstance(operands[1], TensorType)
    return dims.multiply(2, dims.multiply(result.elements, dims.product(operands[1].dims[1:])))


DYNAMIC_CONV = _op("dynamic_conv", dynamic.dynamic_conv_type, dynamic.dynamic_conv, "`convolution` with padding that is an operand.",
                   Attribute("strides", "ints"), Attribute("lhs_dilation", "ints"), Attribute("rhs_dilation", "ints"),
                   Attribute("feature_group_count", "int", 1, required=False), Attribute("batch_group_count", "int", 1, required=False),
                   _SHAPE, operands=("lhs", "rhs", "padding"), flops=_convolution_flops)  # fmt: skip
