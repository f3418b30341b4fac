"""How StableHLO spells the attributes of the hub's ops: one table, read from right to left on import and from left to right by the printer.

Source: the StableHLO specification (https://openxla.org/stablehlo/spec) and its ODS definitions (StablehloOps.td, ChloOps.td).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Field:
    """One attribute: our name, theirs, and how it is written.

    Kinds: `i64s` (array<i64: ..>), `bools`, `i64`, `i32`, `f32`, `bool`, `pairs` (a dense matrix of two columns), `string`, or
    `enum NAME` (`#stablehlo<NAME WORD>`). With `default` it may be missing on their side, and then has this value.
    """

    ours: str
    theirs: str
    kind: str
    default: object = None


def _same(kind: str, *names: str) -> tuple[Field, ...]:
    return tuple(Field(name, name, kind) for name in names)


_FROM_RESULT: tuple[Field, ...] = ()  # `shape` and `dtype` are those of the result
_BATCH_NORM = (Field("epsilon", "epsilon", "f32"), Field("feature_index", "feature_index", "i64"))
WINDOW = (
    Field("window_strides", "window_strides", "i64s"), Field("base_dilations", "base_dilations", "i64s"),
    Field("window_dilations", "window_dilations", "i64s"), Field("padding", "padding", "pairs"),
)  # fmt: skip
FIELDS: dict[str, tuple[Field, ...]] = {
    "stablehlo.compare": (Field("direction", "comparison_direction", "enum comparison_direction"),),
    "stablehlo.broadcast_in_dim": _same("i64s", "broadcast_dimensions"),
    "stablehlo.transpose": _same("i64s", "permutation"),
    "stablehlo.slice": (
        Field("start", "start_indices", "i64s"), Field("limit", "limit_indices", "i64s"), Field("strides", "strides", "i64s"),
    ),
    "stablehlo.concatenate": _same("i64", "dimension"),
    "stablehlo.pad": (
        Field("low", "edge_padding_low", "i64s"), Field("high", "edge_padding_high", "i64s"),
        Field("interior", "interior_padding", "i64s"),
    ),
    "stablehlo.reverse": _same("i64s", "dimensions"),
    "stablehlo.iota": (Field("dimension", "iota_dimension", "i64"),),
    "stablehlo.get_dimension_size": _same("i64", "dimension"),
    "stablehlo.reduce_precision": _same("i32", "exponent_bits", "mantissa_bits"),
    "stablehlo.dynamic_slice": _same("i64s", "slice_sizes"),
    "stablehlo.dynamic_broadcast_in_dim": (
        Field("broadcast_dimensions", "broadcast_dimensions", "i64s"),
        Field("known_expanding_dimensions", "known_expanding_dimensions", "i64s", ()),
        Field("known_nonexpanding_dimensions", "known_nonexpanding_dimensions", "i64s", ()),
    ),
    "stablehlo.dynamic_iota": (Field("dimension", "iota_dimension", "i64"),),
    "stablehlo.cholesky": (Field("lower", "lower", "bool", False),),
    "stablehlo.triangular_solve": (
        *_same("bool", "left_side", "lower", "unit_diagonal"), Field("transpose_a", "transpose_a", "enum transpose"),
    ),
    "stablehlo.fft": (Field("fft_type", "fft_type", "enum fft_type"), Field("fft_length", "fft_length", "i64s")),
    "stablehlo.batch_norm_inference": _BATCH_NORM,
    "stablehlo.batch_norm_training": _BATCH_NORM,
    "stablehlo.batch_norm_grad": _BATCH_NORM,
    "stablehlo.rng_bit_generator": (Field("rng_algorithm", "rng_algorithm", "enum rng_algorithm"),),
    "stablehlo.rng": (Field("rng_distribution", "rng_distribution", "enum rng_distribution"),),
    "stablehlo.reduce": _same("i64s", "dimensions"),
    "stablehlo.reduce_region": _same("i64s", "dimensions"),
    "chlo.top_k": _same("i64", "k"),
    "stablehlo.map": _same("i64s", "dimensions"),
    "stablehlo.reduce_window": (Field("window_dimensions", "window_dimensions", "i64s"), *WINDOW),
    "stablehlo.reduce_window_region": (Field("window_dimensions", "window_dimensions", "i64s"), *WINDOW),
    "stablehlo.select_and_scatter": (
        Field("window_dimensions", "window_dimensions", "i64s"), Field("window_strides", "window_strides", "i64s"),
        Field("padding", "padding", "pairs"),
    ),
}  # fmt: skip
GATHER = (
    "offset_dims", "collapsed_slice_dims", "operand_batching_dims", "start_indices_batching_dims", "start_index_map",
)  # fmt: skip
"""The lists of `#stablehlo.gather`, under their names there and here."""
SCATTER = {
    "update_window_dims": "update_window_dims", "inserted_window_dims": "inserted_window_dims",
    "input_batching_dims": "input_batching_dims", "scatter_indices_batching_dims": "scatter_indices_batching_dims",
    "scatter_dims_to_operand_dims": "scattered_dims_to_operand_dims",
}  # fmt: skip
"""The lists of `#stablehlo.scatter`, to the names that the bindings give them."""
# attributes that say nothing beside the rest of the operation
SILENT = frozenset({"compare_type", "known_expanding_dimensions", "known_nonexpanding_dimensions", "xla_shape"})
