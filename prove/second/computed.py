"""What ops compute, on NumPy arrays: a table of our own. What is not in it, or a case that it does not know, cannot be said."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from coset.ir.dims import Poly
from coset.ir.term import Term
from coset.prove.second.answer import CannotSay, Refused
from coset.prove.second.formats import Array

MOVES = frozenset(
    f"stablehlo.{name}" for name in ("transpose", "reshape", "broadcast_in_dim", "slice", "reverse", "concatenate", "pad", "gather")
)


def _numbers(values: Any) -> tuple[int, ...]:
    if any(isinstance(each, Poly) for each in values):
        raise Refused("symbols in what is computed")
    return tuple(values)


def _broadcast(term: Term, arrays: Sequence[Array]) -> Array:
    shape, axes = _numbers(term.attribute("shape")), term.attribute("broadcast_dimensions")
    x = arrays[0].transpose(sorted(range(len(axes)), key=lambda i: axes[i]))
    sizes = iter(x.shape)
    view = [next(sizes) if place in axes else 1 for place in range(len(shape))]
    return np.array(np.broadcast_to(x.reshape(view), shape))


def _slice(term: Term, arrays: Sequence[Array]) -> Array:
    places = zip(_numbers(term.attribute("start")), _numbers(term.attribute("limit")), term.attribute("strides"), strict=True)
    index: tuple[Any, ...] = tuple(slice(first, last, step) for first, last, step in places)
    return np.asarray(arrays[0][(*index, ...)])


def _pad(term: Term, arrays: Sequence[Array]) -> Array:
    x, fill = arrays
    low, high, between = (term.attribute(name) for name in ("low", "high", "interior"))
    sizes = [size + max(size - 1, 0) * gap for size, gap in zip(x.shape, between, strict=True)]
    if min((*low, *high), default=0) < 0:
        raise CannotSay("padding that crops")
    result = np.full([a + size + b for a, size, b in zip(low, sizes, high, strict=True)], fill.reshape(-1)[0], x.dtype)
    result[tuple(slice(a, a + size, gap + 1) for a, size, gap in zip(low, sizes, between, strict=True))] = x
    return result


def _gather(term: Term, arrays: Sequence[Array]) -> Array:
    """Slices of the operand at index vectors that are clamped so that they lie in it."""
    x, starts = arrays
    told = dict(term.attributes)
    sizes, shape = _numbers(told["slice_sizes"]), term.tensor.static
    assert shape is not None
    places = np.indices(shape, sparse=True)
    batch = [places[axis] for axis in range(len(shape)) if axis not in told["offset_dims"]]
    offsets = iter([places[axis] for axis in told["offset_dims"]])
    vector = told["index_vector_dim"]
    index: list[Any] = []
    for axis in range(x.ndim):
        alone = axis in told["collapsed_slice_dims"] or axis in told["operand_batching_dims"]
        place: Any = 0 if alone else next(offsets)
        if axis in told["operand_batching_dims"]:
            which = told["start_indices_batching_dims"][told["operand_batching_dims"].index(axis)]
            place = place + batch[which - (which > vector)]
        elif axis in told["start_index_map"]:
            number = told["start_index_map"].index(axis)
            row = list(batch)
            if vector < starts.ndim:
                row.insert(vector, np.asarray(number))
            start = np.asarray(starts[tuple(row)]) if row else starts
            place = place + np.clip(start.astype(np.int64), 0, x.shape[axis] - sizes[axis])
        index.append(place)
    return np.array(np.broadcast_to(x[tuple(index)], shape))


MOVED: dict[str, Callable[[Term, Sequence[Array]], Array]] = {
    "stablehlo.broadcast_in_dim": _broadcast,
    "stablehlo.reshape": lambda term, arrays: arrays[0].reshape(_numbers(term.attribute("shape"))),
    "stablehlo.transpose": lambda term, arrays: np.ascontiguousarray(arrays[0].transpose(term.attribute("permutation"))),
    "stablehlo.slice": _slice,
    "stablehlo.reverse": lambda term, arrays: np.flip(arrays[0], term.attribute("dimensions")),
    "stablehlo.concatenate": lambda term, arrays: np.concatenate(arrays, axis=term.attribute("dimension")),
    "stablehlo.pad": _pad,
    "stablehlo.gather": _gather,
}


def _in_f32(compute: Callable[..., Array]) -> Callable[[Term, Sequence[Array]], Array]:
    """A function of floats; those narrower than f32 are computed in f32 and rounded once."""

    def computed(_: Term, arrays: Sequence[Array]) -> Array:
        first = arrays[0].dtype
        if first.kind in "biu" or first in (np.float32, np.float64):
            return np.asarray(compute(*arrays))
        if first.kind == "c":
            raise CannotSay("complex numbers that are computed")
        return np.asarray(compute(*(array.astype(np.float32) for array in arrays))).astype(first)

    return computed


def _divide(a: Array, b: Array) -> Array:
    if a.dtype.kind in "iu":
        if not b.all():
            raise CannotSay("an integer divided by zero")
        quotient = np.abs(a.astype(object)) // np.abs(b.astype(object))
        return np.asarray(np.where((a < 0) != (b < 0), -quotient, quotient)).astype(a.dtype)
    if a.dtype.kind == "b":
        raise CannotSay("a quotient of truths")
    return np.asarray(a / b)


def _floats(name: str, compute: Callable[..., Array]) -> Callable[..., Array]:
    def of_floats(*arrays: Array) -> Array:
        if arrays[0].dtype.kind in "biu":
            raise CannotSay(f"{name} of integers")
        return compute(*arrays)

    return of_floats


def _no_truths(name: str, compute: Callable[..., Array]) -> Callable[..., Array]:
    def of_numbers(*arrays: Array) -> Array:
        if arrays[0].dtype.kind == "b":
            raise CannotSay(f"{name} of truths")
        return compute(*arrays)

    return of_numbers


def _extreme(compute: Any) -> Callable[..., Array]:
    """NaN if one is, and -0 below 0."""

    def larger(a: Array, b: Array) -> Array:
        result = np.asarray(compute(a, b))
        if a.dtype.kind == "f":
            zeros = (a == 0) & (b == 0)
            sign = np.signbit(a) & np.signbit(b) if compute is np.maximum else np.signbit(a) | np.signbit(b)
            result = np.where(zeros, np.where(sign, np.asarray(-0.0, a.dtype), np.asarray(0.0, a.dtype)), result)
        return result

    return larger


def _compare(term: Term, arrays: Sequence[Array]) -> Array:
    functions = {"EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal}
    word = term.attribute("direction")
    if word not in functions or arrays[0].dtype.kind == "c":
        raise CannotSay(f"the comparison {word}")
    return np.asarray(functions[word](*arrays))


def _convert(term: Term, arrays: Sequence[Array]) -> Array:
    x, target = arrays[0], term.tensor.dtype
    source = term.operands[0].tensor.dtype
    if source is target:
        return x
    if source.kind in ("bool", "int", "uint") and target.kind in ("int", "uint") and target.bits >= 8:
        return x.astype(target.numpy)
    if target.kind == "float" and source.kind in ("bool", "int", "uint") and target.bits >= 32:
        return x.astype(target.numpy)
    if target.kind == "float" and source.kind == "float" and target.bits >= 16 and source.bits >= 16:
        if source.name == "f64" and target.name == "bf16":
            raise CannotSay("f64 as bf16")
        return x.astype(target.numpy)
    if target.kind == "bool":
        return np.asarray(x != 0)
    raise CannotSay(f"{source} as {target}")


def _dot(term: Term, arrays: Sequence[Array]) -> Array:
    a, b = (rows(term, arrays, side) for side in (0, 1))
    first = arrays[0].dtype
    if first.kind == "c":
        raise CannotSay("complex numbers that are computed")
    if first.kind == "b":
        return np.asarray(matrix_product(term, a.astype(np.int64), b.astype(np.int64)) != 0)
    widened = np.float32 if first.kind not in "iu" and first.itemsize < 4 else first
    return matrix_product(term, a.astype(widened), b.astype(widened)).astype(first)


def rows(term: Term, arrays: Sequence[Array], side: int) -> Array:
    """An operand as [batch, free, contracted], or on the right as [batch, contracted, free]."""
    name = ("lhs", "rhs")[side]
    batch, contract = term.attribute(f"{name}_batch"), term.attribute(f"{name}_contract")
    x = arrays[side]
    free = tuple(axis for axis in range(x.ndim) if axis not in batch + contract)
    order = batch + (free + contract if side == 0 else contract + free)
    sizes = [math.prod(x.shape[axis] for axis in group) for group in ((free, contract) if side == 0 else (contract, free))]
    return np.ascontiguousarray(x.transpose(order)).reshape(*(x.shape[axis] for axis in batch), *sizes)


def matrix_product(term: Term, a: Array, b: Array) -> Array:
    return np.asarray(np.matmul(a, b)).reshape(term.tensor.static or ())


def _reduce(term: Term, arrays: Sequence[Array]) -> Array:
    x, axes = arrays[0], tuple(term.attribute("dimensions"))
    word = term.attribute("combiner")
    functions: dict[str, Any] = {
        "add": np.add,
        "multiply": np.multiply,
        "maximum": np.maximum,
        "minimum": np.minimum,
        "and": np.logical_and,
        "or": np.logical_or,
    }
    if word not in functions or x.dtype.kind == "c" or (word in ("maximum", "minimum") and 0 in x.shape):
        raise CannotSay(f"a reduction with {word}")
    if x.dtype.kind == "b" and word not in ("and", "or"):
        raise CannotSay("a reduction of truths")
    widened = x.astype(np.float32) if x.dtype.kind not in "biu" and x.dtype.itemsize < 4 else x
    if word in ("and", "or") and x.dtype.kind != "b":
        raise CannotSay("bits of integers that are reduced")
    for axis in sorted(axes, reverse=True):
        widened = functions[word].reduce(widened, axis=axis, dtype=widened.dtype)
    return np.asarray(widened).astype(x.dtype)


def erf(x: Array) -> Array:
    """The error function of floats of 64 bits."""
    return np.asarray(np.vectorize(math.erf, otypes=[np.float64])(x))


COMPUTED: dict[str, Callable[[Term, Sequence[Array]], Array]] = {
    "stablehlo.add": _in_f32(_no_truths("a sum", np.add)),
    "stablehlo.subtract": _in_f32(_no_truths("a difference", np.subtract)),
    "stablehlo.multiply": _in_f32(_no_truths("a product", np.multiply)),
    "stablehlo.divide": _in_f32(_divide),
    "stablehlo.maximum": _in_f32(_extreme(np.maximum)),
    "stablehlo.minimum": _in_f32(_extreme(np.minimum)),
    "stablehlo.negate": _in_f32(_no_truths("a negative", np.negative)),
    "stablehlo.abs": _in_f32(np.abs),
    "stablehlo.sqrt": _in_f32(_floats("sqrt", np.sqrt)),
    "stablehlo.rsqrt": _in_f32(_floats("rsqrt", lambda x: np.asarray(1 / np.sqrt(x)).astype(x.dtype))),
    "stablehlo.exponential": _in_f32(_floats("exp", np.exp)),
    "stablehlo.log": _in_f32(_floats("log", np.log)),
    "stablehlo.log_plus_one": _in_f32(_floats("log1p", np.log1p)),
    "stablehlo.exponential_minus_one": _in_f32(_floats("expm1", np.expm1)),
    "stablehlo.logistic": _in_f32(_floats("logistic", lambda x: np.asarray(1 / (1 + np.exp(-x))).astype(x.dtype))),
    "stablehlo.cbrt": _in_f32(_floats("cbrt", np.cbrt)),
    "chlo.erf": _in_f32(_floats("erf", lambda x: erf(x.astype(np.float64)).astype(x.dtype))),
    "stablehlo.tanh": _in_f32(_floats("tanh", np.tanh)),
    "stablehlo.sine": _in_f32(_floats("sine", np.sin)),
    "stablehlo.cosine": _in_f32(_floats("cosine", np.cos)),
    "stablehlo.power": _in_f32(_floats("power", np.power)),
    "stablehlo.floor": _in_f32(_floats("floor", np.floor)),
    "stablehlo.ceil": _in_f32(_floats("ceil", np.ceil)),
    "stablehlo.select": lambda term, arrays: np.where(arrays[0], arrays[1], arrays[2]),
    "stablehlo.compare": _compare,
    "stablehlo.convert": _convert,
    "stablehlo.dot_general": _dot,
    "stablehlo.reduce": _reduce,
    "stablehlo.and": lambda term, arrays: np.bitwise_and(*arrays),
    "stablehlo.or": lambda term, arrays: np.bitwise_or(*arrays),
    "stablehlo.xor": lambda term, arrays: np.bitwise_xor(*arrays),
    "stablehlo.not": lambda term, arrays: np.invert(arrays[0]),
}


ELEMENTWISE = frozenset(name.split(".")[1] for name in COMPUTED) - {"dot_general", "reduce"}
