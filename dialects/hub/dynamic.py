"""The hub's dynamic ops: those whose shape, padding or bounds are operands, computed at run time.

`shape` states the result's shape as far as it is known: numbers, dims, or fresh symbols that the evaluator binds from the
value. The operands rule; a value that contradicts `shape` is refused. Each op's type rule stands before its meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from coset.dialects.hub.checks import get_axes, get_axis, get_dims, get_dtype, may_be_equal, require_class, tensor_of, tensors
from coset.dialects.hub.indexing import as_positions, gather_shape, gathered
from coset.dialects.hub.scalars import cast
from coset.dialects.hub.tensors import Binding, broadcasted, convolved_over, padded, sliced
from coset.dialects.hub.types import convolution
from coset.ir import dims
from coset.ir.dims import Dim, Shape
from coset.ir.errors import CosetError, require
from coset.ir.op import Array, Attributes
from coset.ir.types import TensorType, Type

if TYPE_CHECKING:
    from coset.ir.term import Term


# ---------------------------------------------------------------- what the dynamic ops share


def _require_vector(name: str, what: str, vector: TensorType, count: int) -> None:
    fits = vector.dtype.kind in ("int", "uint") and vector.shape == (count,)
    require(fits, f"`{what}` of `{name}` must be {count} integers, not {vector}")


def known_shape(term: Term, shape: Sequence[int], binding: Binding) -> tuple[int, ...]:
    """`shape`, which the operands gave.

    Raises:
        CosetError: it is no shape, or not the one that the term's type states (as far as its symbols are bound).
    """
    fits = all(size >= 0 and size == _bound(dim, binding, size) for size, dim in zip(shape, term.tensor.dims, strict=True))
    if not fits:
        raise CosetError(f"the operands of `{term.op.name}` ask for the shape {tuple(shape)}, but its type is {term.type}")
    return tuple(shape)


def _bound(dim: Dim, binding: Binding, unknown: int) -> int:
    value = dims.substitute(dim, binding)
    return value if isinstance(value, int) else unknown


def _ints(array: Array) -> list[int]:
    return [int(number) for number in as_positions(array)]


# ---------------------------------------------------------------- shapes


def dynamic_reshape_type(name: str, operands: Sequence[Type], attributes: Attributes) -> Type:
    """A tensor of `shape`; the number of elements is compared where both are numbers."""
    operand, output_shape = tensors(name, operands, "operand", "output_shape")
    result = TensorType(operand.dtype, get_dims(name, attributes, "shape"))
    _require_vector(name, "output_shape", output_shape, result.rank)
    known = operand.static is not None and result.static is not None
    same = not known or may_be_equal(operand.elements, result.elements)
    require(same, f"`{name}` keeps the number of elements, but {operand} has {operand.elements} and {result} has {result.elements}")
    return result


def dynamic_reshape(term: Term, arrays: Sequence[Array], binding: Binding) -> Array:
    """The same elements in row-major order."""
    shape = known_shape(term, _ints(arrays[1]), binding)
    if prod(shape) != arrays[0].size:
        raise CosetError(f"`{term.op.name}` cannot give {arrays[0].shape} the shape {shape}: the number of elements differs")
    return arrays[0].reshape(shape)


HINTS = ("known_expanding_dimensions", "known_nonexpanding_dimensions")


def dynamic_broadcast_type(name: str, operands: Sequence[Type], attributes: Attributes) -> Type:
    """A tensor of `shape`; a dim of the operand must be 1 or, as far as is known, the one that it becomes."""
    operand, output = tensors(name, operands, "operand", "output_dimensions")
    shape = get_dims(name, attributes, "shape")
    _require_vector(name, "output_dimensions", output, len(shape))
    axes = get_axes(name, attributes, "broadcast_dimensions", len(shape), count=operand.rank)
    for i, (dim, axis) in enumerate(zip(operand.dims, axes, strict=True)):
        fits = dim == 1 or not isinstance(dims.subtract(dim, shape[axis]), int) or dim == shape[axis]
        require(fits, f"`{name}` cannot make dim {axis} of size {shape[axis]} from dim {i} of {operand}: it must be 1 or {shape[axis]}")
    expanding, kept = (get_axes(name, attributes, key, operand.rank) for key in HINTS)
    require(not set(expanding) & set(kept), f"`{name}` knows a dim to expand and not to expand: {expanding}, {kept}")
    return TensorType(operand.dtype, shape)


def dynamic_broadcast_in_dim(term: Term, arrays: Sequence[Array], binding: Binding) -> Array:
    """A read-only view."""
    shape = known_shape(term, _ints(arrays[1]), binding)
    axes = term.attribute("broadcast_dimensions")
    if any(size not in (1, shape[axis]) for size, axis in zip(arrays[0].shape, axes, strict=True)):
        raise CosetError(f"`{term.op.name}` cannot broadcast {arrays[0].shape} along the dims {axes} of {shape}")
    return broadcasted(arrays[0], shape, axes)


def dynamic_iota_type(name: str, operands: Sequence[Type], attributes: Attributes) -> Type:
    """A tensor of `shape`, rank 1 or more."""
    (output_shape,) = tensors(name, operands, "output_shape")
    shape, dtype = get_dims(name, attributes, "shape"), get_dtype(name, attributes)
    _require_vector(name, "output_shape", output_shape, len(shape))
    require_class(name, "the result", dtype, "number")
    get_axis(name, attributes, "dimension", len(shape))
    return TensorType(dtype, shape)


def dynamic_iota(term: Term, arrays: Sequence[Array], binding: Binding) -> Array:
    """0, 1, 2 .. along `dimension`."""
    shape, axis = known_shape(term, _ints(arrays[0]), binding), term.attribute("dimension")
    return broadcasted(cast(np.arange(shape[axis], dtype=np.int64), term.tensor.dtype), shape, (axis,))


# ---------------------------------------------------------------- padding and slices


def dynamic_pad_type(name: str, operands: Sequence[Type], attributes: Attributes) -> Type:
    """A tensor of `shape`."""
    operand, value, *amounts = tensors(name, operands, "operand", "padding_value", "low", "high", "interior")
    require(value == TensorType(operand.dtype, ()), f"`padding_value` of `{name}` must be one {operand.dtype} of rank 0, not {value}")
    for what, amount in zip(("low", "high", "interior"), amounts, strict=True):
        _require_vector(name, what, amount, operand.rank)
    return TensorType(operand.dtype, get_dims(name, attributes, "shape", count=operand.rank))


def dynamic_pad(term: Term, arrays: Sequence[Array], binding: Binding) -> Array:
    """`interior` elements between neighbours, `low` before and `high` after; negative ones crop."""
    low, high, interior = map(_ints, arrays[2:])
    if any(gap < 0 for gap in interior):
        raise CosetError(f"`interior` of `{term.op.name}` must be 0 or more everywhere, not {tuple(interior)}")
    sizes = zip(arrays[0].shape, low, high, interior, strict=True)
    known_shape(term, [size + max(size - 1, 0) * gap + a + b for size, a, b, gap in sizes], binding)
    return padded(arrays[0], arrays[1], low, high, interior)


def real_dynamic_slice_type(name: str, operands: Sequence[Type], attributes: Attributes) -> Type:
    """A tensor of `shape`."""
    operand, *bounds = tensors(name, operands, "operand", "start", "limit", "strides")
    for what, bound in zip(("start", "limit", "strides"), bounds, strict=True):
        _require_vector(name, what, bound, operand.rank)
        require(bound == bounds[0], f"`start`, `limit` and `strides` of `{name}` must have one type, not {bounds[0]} and {bound}")
    return TensorType(operand.dtype, get_dims(name, attributes, "shape", count=operand.rank))


def real_dynamic_slice(term: Term, arrays: Sequence[Array], binding: Binding) -> Array:
    """A view; the bounds must lie in the operand as those of `slice` must."""
    x = arrays[0]
    bounds = list(zip(*map(_ints, arrays[1:]), x.shape, strict=True))
    for axis, (start, limit, stride, size) in enumerate(bounds):
        if not 0 <= start <= limit <= size or stride < 1:
            raise CosetError(f"`{term.op.name}` takes {start} to {limit} by {stride} of dim {axis}, which has {size}")
    known_shape(term, [-(-(limit - start) // stride) for start, limit, stride, _ in bounds], binding)
    return sliced(x, (slice(start, limit, stride) for start, limit, stride, _ in bounds))


# ---------------------------------------------------------------- gather and convolution


def _joined(name: str, computed: Sequence[Dim | None], stated: Shape) -> Shape:
    """The stated shape, after the check that no dim contradicts what the operands' types say (None: nothing)."""
    require(len(computed) == len(stated), f"`shape` of `{name}` must have {len(computed)} dims, not {len(stated)}: {stated}")
    for axis, (known, dim) in enumerate(zip(computed, stated, strict=True)):
        differ = known is not None and isinstance(dims.subtract(known, dim), int) and known != dim
        require(not differ, f"`shape` of `{name}` has {dim} in dim {axis}, which is {known}")
    return stated


def dynamic_gather_type(name: str, operands: Sequence[Type], attributes: Attributes) -> Type:
    """A tensor of `shape`."""
    operand, indices, sizes = tensors(name, operands, "operand", "start_indices", "slice_sizes")
    _require_vector(name, "slice_sizes", sizes, operand.rank)
    computed = gather_shape(name, operand, indices, attributes, None)
    shape = get_dims(name, attributes, "shape")
    return TensorType(operand.dtype, _joined(name, [None if dim == -1 else dim for dim in computed], shape))


def dynamic_gather(term: Term, arrays: Sequence[Array], binding: Binding) -> Array:
    """One indexed read of all slices."""
    sizes = _ints(arrays[2])
    gone = (*term.attribute("collapsed_slice_dims"), *term.attribute("operand_batching_dims"))
    if any(size < 0 for size in sizes) or any(sizes[axis] > 1 for axis in gone):
        raise CosetError(f"`slice_sizes` of `{term.op.name}` must be 0 or more, and at most 1 in the dims {gone}, not {tuple(sizes)}")
    result = gathered(term.op.name, arrays[0], arrays[1], sizes, dict(term.attributes))
    known_shape(term, result.shape, binding)
    return result


def dynamic_conv_type(name: str, operands: Sequence[Type], attributes: Attributes) -> Type:
    """A tensor of `shape`: its batch and features are those of `convolution`, its spatial dims depend on the padding."""
    lhs, rhs, padding = tensors(name, operands, "lhs", "rhs", "padding")
    require(lhs.rank >= 2, f"`lhs` of `{name}` must have rank 2 or more, not {lhs}")
    spatial = lhs.rank - 2
    fits = padding.dtype.kind in ("int", "uint") and padding.shape == (spatial, 2)
    require(fits, f"`padding` of `{name}` must be {spatial} pairs of integers, not {padding}")
    result = tensor_of(convolution(name, (lhs, rhs), {**attributes, "padding": ((0, 0),) * spatial}), "the result")
    shape = get_dims(name, attributes, "shape")
    return TensorType(lhs.dtype, _joined(name, (*result.dims[:2], *[None] * spatial), shape))


def dynamic_conv(term: Term, arrays: Sequence[Array], binding: Binding) -> Array:
    """The convolution with this padding."""
    padding = [(low, high) for low, high in as_positions(arrays[2]).tolist()]
    result = convolved_over(arrays[0], arrays[1], padding, dict(term.attributes))
    known_shape(term, result.shape, binding)
    return result
