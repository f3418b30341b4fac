"""Strategies that draw cases of the hub's data ops: bits, computed indices, dynamic shapes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from hub_cases import ANY_TYPE, BINDING, CASES, DIM, FAMILIES, PLAIN, SHAPE, Case, Draw, Shapes, adversarial, case_of, numbers
from hypothesis import strategies as st

from coset.dialects.hub.checks import may_be_at_most
from coset.dialects.hub.linalg import FFT_TYPES, TRANSPOSES
from coset.dialects.hub.scalars import cast, widen
from coset.ir import dims
from coset.ir.dims import Dim, Shape
from coset.ir.dtype_classes import CLASSES
from coset.ir.errors import TypeRuleError
from coset.ir.op import get_op
from coset.ir.quantized import QuantizedType, quantized
from coset.ir.types import DTYPES, F32, I32, DType, TensorType

ANY = sorted(CLASSES["number"] | CLASSES["bool"], key=str)
INDEX = sorted(CLASSES["int"], key=str)
SYMBOLS: list[Dim] = list(map(dims.symbol, BINDING))
SMALL = st.sampled_from([0, 1, 1, 2, 2, *SYMBOLS])
HIGH = st.one_of(SHAPE, st.lists(SMALL, min_size=4, max_size=6).map(tuple))  # up to rank 6


def stated(draw: Draw, shape: tuple[int, ...]) -> Shape:
    """The shape, each dim as a number or as a symbol that is bound to it."""
    names = {size: dims.symbol(name) for name, size in BINDING.items()}
    return tuple(draw(st.sampled_from([size, names.get(size, size)])) for size in shape)


def integers(draw: Draw, shape: tuple[int, ...], dtype: DType, low: int = -3, high: int = 6) -> np.ndarray[Any, Any]:
    """Numbers around the range of small dims, and now and then the extremes of the dtype."""
    random = np.random.default_rng(draw(st.integers(0, 10_000)))
    values = np.asarray(random.integers(low, high, shape))
    extreme = np.where(random.integers(0, 2, shape) == 1, -(2**63), 2**63 - 1)
    return cast(np.where(random.integers(0, 8, shape) == 0, extreme, values), dtype)


# ---------------------------------------------------------------- bits


@st.composite
def reduce_precision(draw: Draw) -> Shapes:
    return [draw(HIGH)], {"exponent_bits": draw(st.integers(1, 12)), "mantissa_bits": draw(st.integers(0, 55))}


@st.composite
def dimension_size(draw: Draw) -> Shapes:
    shape = (draw(DIM), *draw(SHAPE))
    return [shape], {"dimension": draw(st.integers(0, len(shape) - 1))}


@st.composite
def bitcast(draw: Draw) -> Case:
    old, new = draw(st.sampled_from(_pairs()))
    extra = _castable(old, new)
    shape = (*draw(HIGH), *([extra] if extra else []))
    array = adversarial(old, numbers(shape), draw(st.integers(0, 10_000)))
    return case_of("stablehlo.bitcast_convert", [(old, shape)], {"dtype": new}, [array])


@cache
def _pairs() -> list[tuple[DType, DType]]:
    return [(a, b) for a in ANY for b in ANY if _castable(a, b) is not None]


@cache
def _castable(old: DType, new: DType) -> int | None:
    """The last dim that the operand needs, 0 when none; None when the cast is refused."""
    infer = get_op("stablehlo.bitcast_convert").infer
    for last in (0, 2, 4, 8, 16, 32):
        try:
            infer([TensorType(old, (3, last) if last else (3,))], {"dtype": new})
        except TypeRuleError:
            continue
        return last
    return None


FAMILIES.update({"stablehlo.reduce_precision": reduce_precision, "stablehlo.get_dimension_size": dimension_size})
PLAIN.update(
    {
        "stablehlo.reduce_precision": lambda _: ([(2,)], {"exponent_bits": 3, "mantissa_bits": 1}),
        "stablehlo.get_dimension_size": lambda _: ([(2,)], {"dimension": 0}),
    }
)
CASES["stablehlo.bitcast_convert"] = bitcast


# ---------------------------------------------------------------- computed indices


def _sizes(draw: Draw, shape: Shape) -> Shape:
    """Slice sizes that fit in the shape."""
    return tuple(draw(st.sampled_from([dim, *[n for n in (0, 1, 1, 2) if _fits(n, dim)]])) for dim in shape)


def _fits(size: int, dim: Dim) -> bool:
    return size <= dim if isinstance(dim, int) else size <= 1 and may_be_at_most(size, dim)


@st.composite
def dynamic_slice(draw: Draw) -> Case:
    dtype, index, shape = draw(st.sampled_from(ANY)), draw(st.sampled_from(INDEX)), draw(HIGH)
    arrays = [adversarial(dtype, numbers(shape), draw(st.integers(0, 10_000)))] + [integers(draw, (), index) for _ in shape]
    return case_of("stablehlo.dynamic_slice", [(dtype, shape), *[(index, ())] * len(shape)], {"slice_sizes": _sizes(draw, shape)}, arrays)


@st.composite
def dynamic_update_slice(draw: Draw) -> Case:
    dtype, index, shape = draw(st.sampled_from(ANY)), draw(st.sampled_from(INDEX)), draw(HIGH)
    update, seed = _sizes(draw, shape), draw(st.integers(0, 10_000))
    arrays = [adversarial(dtype, numbers(x), seed + i) for i, x in enumerate((shape, update))] + [integers(draw, (), index) for _ in shape]
    return case_of("stablehlo.dynamic_update_slice", [(dtype, shape), (dtype, update), *[(index, ())] * len(shape)], {}, arrays)


@st.composite
def gather(draw: Draw) -> Case:
    dtype, index, seed = draw(st.sampled_from(ANY)), draw(st.sampled_from(INDEX)), draw(st.integers(0, 10_000))
    shape, indices, attributes, sizes = gather_parts(draw)
    arrays = [adversarial(dtype, numbers(shape), seed), integers(draw, numbers(indices), index)]
    return case_of("stablehlo.gather", [(dtype, shape), (index, indices)], {**attributes, "slice_sizes": sizes}, arrays)


@st.composite
def dynamic_gather(draw: Draw) -> Case:
    dtype, index, seed = draw(st.sampled_from(ANY)), draw(st.sampled_from(INDEX)), draw(st.integers(0, 10_000))
    shape, indices, attributes, sizes = gather_parts(draw)
    result = get_op("stablehlo.gather").infer([TensorType(dtype, shape), TensorType(index, indices)], {**attributes, "slice_sizes": sizes})
    assert isinstance(result, TensorType)
    arrays = [adversarial(dtype, numbers(shape), seed), integers(draw, numbers(indices), index), np.array(numbers(sizes), np.int32)]
    operands = [(dtype, shape), (index, indices), (I32, (len(shape),))]
    return case_of("stablehlo.dynamic_gather", operands, {**attributes, "shape": result.dims}, arrays)


def gather_parts(draw: Draw) -> tuple[Shape, Shape, dict[str, Any], Shape]:
    """The operand's shape, the indices' shape, the dimension numbers and the slice sizes of a gather."""
    shape = draw(HIGH)
    axes = draw(st.permutations(range(len(shape))))
    batching = tuple(sorted(axes[: draw(st.integers(0, min(2, len(axes))))]))
    mapped = [axis for axis in axes if axis not in batching]
    mapped = mapped[: draw(st.integers(0, len(mapped)))]
    can_go = [axis for axis in range(len(shape)) if axis not in batching and shape[axis] != 0]
    collapsed = tuple(axis for axis in can_go if draw(st.booleans()))
    sizes = tuple(1 if axis in collapsed + batching and shape[axis] != 0 else size for axis, size in enumerate(_sizes(draw, shape)))
    batch = [draw(SMALL) for _ in range(draw(st.integers(0, 2)))] + [shape[axis] for axis in batching]
    order = draw(st.permutations(range(len(batch))))
    sources = [order.index(len(batch) - len(batching) + i) for i in range(len(batching))]
    placed: list[Dim] = [batch[i] for i in order]
    implicit = len(mapped) == 1 and draw(st.booleans())
    vector = len(placed) if implicit else draw(st.integers(0, len(placed)))
    rank = len(placed) + len(shape) - len(collapsed) - len(batching)
    offsets = sorted(draw(st.permutations(range(rank)))[: rank - len(placed)])
    attributes = {
        "offset_dims": tuple(offsets), "collapsed_slice_dims": collapsed, "operand_batching_dims": batching,
        "start_indices_batching_dims": tuple(axis + (not implicit and axis >= vector) for axis in sources),
        "start_index_map": tuple(mapped), "index_vector_dim": vector, "indices_are_sorted": False,
    }  # fmt: skip
    indices = tuple(placed) if implicit else (*placed[:vector], len(mapped), *placed[vector:])
    return shape, indices, attributes, sizes


CASES.update({f"stablehlo.{f.__name__}": f for f in (dynamic_slice, dynamic_update_slice, gather, dynamic_gather)})


# ---------------------------------------------------------------- dynamic shapes

VECTOR = st.sampled_from([DTYPES[name] for name in ("i64", "i32", "i8", "u8", "u64")])


@st.composite
def dynamic_reshape(draw: Draw) -> Case:
    dtype, vector, shape = draw(st.sampled_from(ANY)), draw(VECTOR), draw(HIGH)
    target = [*draw(st.permutations(numbers(shape))), 1]
    if draw(st.booleans()) and len(target) >= 3:
        target[:2] = [target[0] * target[1]]
    arrays = [adversarial(dtype, numbers(shape), draw(st.integers(0, 10_000))), np.array(target, vector.numpy)]
    attributes = {"shape": stated(draw, tuple(target))}
    return case_of("stablehlo.dynamic_reshape", [(dtype, shape), (vector, (len(target),))], attributes, arrays)


@st.composite
def dynamic_broadcast_in_dim(draw: Draw) -> Case:
    (shape,), attributes = draw(FAMILIES["stablehlo.broadcast_in_dim"]())
    dtype, vector = draw(st.sampled_from(ANY)), draw(VECTOR)
    target = numbers(attributes["shape"])
    arrays = [adversarial(dtype, numbers(shape), draw(st.integers(0, 10_000))), np.array(target, vector.numpy)]
    hints = {key: tuple(i for i, dim in enumerate(shape) if (dim == 1) == one) if draw(st.booleans()) else () for key, one in (
        ("known_expanding_dimensions", True), ("known_nonexpanding_dimensions", False))}  # fmt: skip
    hints["known_nonexpanding_dimensions"] = tuple(
        i for i in hints["known_nonexpanding_dimensions"] if numbers(shape)[i] == target[attributes["broadcast_dimensions"][i]]
    )
    attributes = {**attributes, **hints, "shape": stated(draw, target)}
    return case_of("stablehlo.dynamic_broadcast_in_dim", [(dtype, shape), (vector, (len(target),))], attributes, arrays)


@st.composite
def dynamic_iota(draw: Draw) -> Case:
    shape, vector = numbers((draw(DIM), *draw(SHAPE))), draw(VECTOR)
    dtype = draw(st.sampled_from([d for d in ANY if d.kind != "bool"]))
    attributes = {"shape": stated(draw, shape), "dtype": dtype, "dimension": draw(st.integers(0, len(shape) - 1))}
    return case_of("stablehlo.dynamic_iota", [(vector, (len(shape),))], attributes, [np.array(shape, vector.numpy)])


@st.composite
def dynamic_pad(draw: Draw) -> Case:
    (shape, _), amounts = draw(FAMILIES["stablehlo.pad"]())
    dtype, vector, seed = draw(st.sampled_from(ANY)), draw(st.sampled_from([DTYPES["i64"], I32])), draw(st.integers(0, 10_000))
    sizes = numbers(shape)
    arrays = [adversarial(dtype, x, seed + i) for i, x in enumerate((sizes, ()))]
    arrays += [np.array(amounts[key], vector.numpy) for key in ("low", "high", "interior")]
    given = zip(sizes, amounts["low"], amounts["high"], amounts["interior"], strict=True)
    target = tuple(size + max(size - 1, 0) * gap + low + high for size, low, high, gap in given)
    operands = [(dtype, shape), (dtype, ()), *[(vector, (len(shape),))] * 3]
    return case_of("stablehlo.dynamic_pad", operands, {"shape": stated(draw, target)}, arrays)


@st.composite
def real_dynamic_slice(draw: Draw) -> Case:
    (shape,), bounds = draw(FAMILIES["stablehlo.slice"]())
    dtype, vector = draw(st.sampled_from(ANY)), draw(st.sampled_from([DTYPES["i64"], I32]))
    start, limit, strides = (numbers(bounds[key]) for key in ("start", "limit", "strides"))
    arrays = [adversarial(dtype, numbers(shape), draw(st.integers(0, 10_000)))]
    arrays += [np.array(bound, vector.numpy) for bound in (start, limit, strides)]
    target = tuple(-(-(last - first) // step) for first, last, step in zip(start, limit, strides, strict=True))
    operands = [(dtype, shape), *[(vector, (len(shape),))] * 3]
    return case_of("stablehlo.real_dynamic_slice", operands, {"shape": stated(draw, target)}, arrays)


@st.composite
def dynamic_conv(draw: Draw) -> Case:
    shapes, attributes = draw(FAMILIES["stablehlo.convolution"]())
    dtype, seed = draw(st.sampled_from(ANY)), draw(st.integers(0, 10_000))
    result = get_op("stablehlo.convolution").infer([TensorType(dtype, shape) for shape in shapes], attributes)
    assert isinstance(result, TensorType)
    padding = np.array(attributes.pop("padding"), np.int64).reshape(-1, 2)
    arrays = [adversarial(dtype, numbers(shape), seed + i) for i, shape in enumerate(shapes)] + [padding]
    operands = [*((dtype, shape) for shape in shapes), (DTYPES["i64"], padding.shape)]
    return case_of("stablehlo.dynamic_conv", operands, {**attributes, "shape": stated(draw, numbers(result.dims))}, arrays)


CASES.update({f"stablehlo.{f.__name__}": f for f in (
    dynamic_reshape, dynamic_broadcast_in_dim, dynamic_iota, dynamic_pad, real_dynamic_slice, dynamic_conv)})  # fmt: skip


# ---------------------------------------------------------------- linear algebra, normalization, random bits

ANY_TYPE.add("stablehlo.optimization_barrier")
FLOATS = [DTYPES[name] for name in ("f64", "f32", "f16", "bf16", "f8e5m2")]
COMPLEX = [DTYPES["c64"], DTYPES["c128"]]


def ordinary(draw: Draw, dtype: DType, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Normal numbers."""
    random = np.random.default_rng(draw(st.integers(0, 10_000)))
    values = random.normal(size=shape) + (1j * random.normal(size=shape) if dtype.kind == "complex" else 0)
    return cast(np.asarray(values), dtype)


@st.composite
def cholesky(draw: Draw) -> Case:
    dtype, size, batch = draw(st.sampled_from(FLOATS[:2] * 3 + FLOATS + COMPLEX)), draw(DIM), draw(SHAPE)
    shape, lower = (*batch, size, size), draw(st.booleans())
    factor = ordinary(draw, DTYPES["c128" if dtype.kind == "complex" else "f64"], numbers(shape))
    positive = factor @ np.conj(np.swapaxes(factor, -1, -2)) + 0.5 * np.eye(shape[-1] if isinstance(size, int) else numbers((size,))[0])
    broken = positive - 9 * np.eye(positive.shape[-1]) if draw(st.integers(0, 5)) == 0 else positive
    triangle = np.tril(broken) if lower else np.triu(broken)  # the other triangle is not to be read
    return case_of("stablehlo.cholesky", [(dtype, shape)], {"lower": lower}, [cast(triangle, dtype)])


@st.composite
def triangular_solve(draw: Draw) -> Case:
    dtype, size, batch, other = draw(st.sampled_from(FLOATS + COMPLEX)), draw(DIM), draw(SHAPE), draw(DIM)
    left, unit = draw(st.booleans()), draw(st.booleans())
    shapes = (*batch, size, size), (*batch, *((size, other) if left else (other, size)))
    attributes = {"left_side": left, "lower": draw(st.booleans()), "unit_diagonal": unit, "transpose_a": draw(st.sampled_from(TRANSPOSES))}
    a, b = (ordinary(draw, dtype, numbers(shape)) for shape in shapes)
    return case_of("stablehlo.triangular_solve", [(dtype, shape) for shape in shapes], attributes, [a, b])


@st.composite
def fft(draw: Draw) -> Case:
    kind = draw(st.sampled_from(FFT_TYPES))
    length = tuple(draw(DIM) for _ in range(draw(st.integers(1, 3))))
    half = 0 if length[-1] == 0 else dims.add(dims.floordiv(length[-1], 2), 1)
    shape = (*draw(SHAPE), *length[:-1], half if kind == "IRFFT" else length[-1])
    dtype = draw(st.sampled_from([DTYPES["f32"], DTYPES["f64"]] if kind == "RFFT" else COMPLEX))
    array = ordinary(draw, dtype, numbers(shape))
    return case_of("stablehlo.fft", [(dtype, shape)], {"fft_type": kind, "fft_length": length}, [array])


def _batch_norm(name: str, features: int, *, gradient: bool = False) -> Callable[[], st.SearchStrategy[Case]]:
    @st.composite
    def strategy(draw: Draw) -> Case:
        dtype, shape = draw(st.sampled_from(FLOATS)), (draw(DIM), *draw(SHAPE))
        axis = draw(st.integers(0, len(shape) - 1))
        shapes = [shape, *[(shape[axis],)] * features, *[shape] * gradient]
        arrays = [ordinary(draw, dtype, numbers(one)) for one in shapes]
        if features > 2 or gradient:
            arrays[features] = cast(np.abs(widen(arrays[features])), dtype)  # a variance
        attributes = {"epsilon": draw(st.sampled_from([2.0**-10, 1.0])), "feature_index": axis}
        return case_of(name, [(dtype, one) for one in shapes], attributes, arrays)

    return strategy


@st.composite
def rng_bit_generator(draw: Draw) -> Case:
    algorithm = draw(st.sampled_from(["THREE_FRY", "PHILOX", "DEFAULT"]))
    count = 2 if algorithm == "THREE_FRY" else draw(st.sampled_from([2, 3]))
    state = [draw(st.sampled_from([0, 1, 2**32 - 1, 2**64 - 1, 123456789012345])) for _ in range(count)]
    dtype = draw(st.sampled_from([d for d in ANY if d.kind in ("int", "uint", "float") and d.bits >= 8]))
    attributes = {"rng_algorithm": algorithm, "dtype": dtype, "shape": draw(HIGH)}
    return case_of("stablehlo.rng_bit_generator", [(DTYPES["u64"], (count,))], attributes, [np.array(state, np.uint64)])


@st.composite
def rng(draw: Draw) -> Case:
    distribution, shape = draw(st.sampled_from(["UNIFORM", "NORMAL"])), draw(SHAPE)
    dtype = draw(st.sampled_from(FLOATS if distribution == "NORMAL" else [*FLOATS, I32, DTYPES["bool"]]))
    arrays = [ordinary(draw, dtype, ()), ordinary(draw, dtype, ()), np.array(numbers(shape), np.int64)]
    operands = [(dtype, ()), (dtype, ()), (DTYPES["i64"], (len(shape),))]
    return case_of("stablehlo.rng", operands, {"rng_distribution": distribution, "shape": shape}, arrays)


QUANTIZED = [
    quantized(DTYPES["i8"], F32, (0.5,), (3,)), quantized(DTYPES["u8"], F32, (0.1,), (128,)), quantized(I32, F32, (2.0,), (-7,)),
    quantized(DTYPES["i4"], F32, (1.5,), (0,), limits=(-7, 7)), quantized(DTYPES["i16"], DTYPES["bf16"], (0.25,), (9,)),
    quantized(DTYPES["i8"], F32, (0.25, 3.0, 0.7), (1, -128, 127), axis=1), quantized(DTYPES["u4"], DTYPES["f16"], (0.3,), (8,)),
]  # fmt: skip


def _quantized_shape(draw: Draw, dtype: DType) -> Shape:
    return (draw(DIM), 3, *draw(SHAPE)) if isinstance(dtype, QuantizedType) and dtype.axis == 1 else draw(HIGH)


@st.composite
def uniform_quantize(draw: Draw) -> Case:
    dtype = draw(st.sampled_from(QUANTIZED))
    shape, seed = _quantized_shape(draw, dtype), draw(st.integers(0, 10_000))
    again = [q for q in QUANTIZED if q.expressed == dtype.expressed and q.axis is None]
    source = draw(st.sampled_from([dtype.expressed, dtype.expressed, *again]))
    array = stored(source, numbers(shape), seed) if isinstance(source, QuantizedType) else adversarial(source, numbers(shape), seed)
    return case_of("stablehlo.uniform_quantize", [(source, shape)], {"dtype": dtype}, [array])


def stored(dtype: QuantizedType, shape: tuple[int, ...], seed: int) -> np.ndarray[Any, Any]:
    """Integers within the limits."""
    return cast(np.asarray(np.random.default_rng(seed).integers(dtype.minimum, dtype.maximum + 1, shape)), dtype.storage)


@st.composite
def uniform_dequantize(draw: Draw) -> Case:
    dtype = draw(st.sampled_from(QUANTIZED))
    shape = _quantized_shape(draw, dtype)
    return case_of("stablehlo.uniform_dequantize", [(dtype, shape)], {}, [stored(dtype, numbers(shape), draw(st.integers(0, 10_000)))])


@st.composite
def optimization_barrier(draw: Draw) -> Case:
    operands = [(draw(st.sampled_from(ANY)), draw(SHAPE)) for _ in range(draw(st.integers(1, 3)))]
    arrays = [adversarial(dtype, numbers(shape), i) for i, (dtype, shape) in enumerate(operands)]
    return case_of("stablehlo.optimization_barrier", operands, {}, arrays)


CASES.update({f"stablehlo.{f.__name__}": f for f in (
    cholesky, triangular_solve, fft, rng_bit_generator, rng, optimization_barrier, uniform_quantize, uniform_dequantize)})  # fmt: skip
CASES["stablehlo.batch_norm_inference"] = _batch_norm("stablehlo.batch_norm_inference", 4)
CASES["stablehlo.batch_norm_training"] = _batch_norm("stablehlo.batch_norm_training", 2)
CASES["stablehlo.batch_norm_grad"] = _batch_norm("stablehlo.batch_norm_grad", 3, gradient=True)
