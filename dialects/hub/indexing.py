"""The hub's ops that read or write at indices known only at run time: slices, updates and gathers. Indices out of range are clamped.

Each op's type rule stands before its meaning. Source of the constraints: the StableHLO specification.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from coset.dialects.hub.checks import get_axes, get_bool, get_dims, get_int, may_be_at_most, require_class, tensor_of
from coset.dialects.hub.scalars import widen
from coset.dialects.hub.tensors import Binding, numbers, sliced
from coset.ir.dims import Dim, Shape
from coset.ir.errors import CosetError, require
from coset.ir.op import Array, Attributes
from coset.ir.types import TensorType, Type

if TYPE_CHECKING:
    from coset.ir.term import Term

_LARGEST = np.iinfo(np.int64).max


def as_positions(indices: Array) -> Array:
    """Integers as int64; what it cannot hold is its largest number, which is out of every range."""
    wide = widen(indices)
    return np.minimum(wide, wide.dtype.type(_LARGEST)).astype(np.int64) if wide.dtype == np.uint64 else wide.astype(np.int64)


def require_room(name: str, what: str, sizes: Sequence[int], shape: Sequence[int]) -> None:
    """What the type rule could not know of symbolic dims: nothing is larger than what it is cut from."""
    if any(size > dim for size, dim in zip(sizes, shape, strict=True)):
        raise CosetError(f"`{what}` of `{name}` is {tuple(sizes)}, but the operand has only {tuple(shape)}")


def _require_sizes(name: str, what: str, sizes: Shape, operand: TensorType) -> None:
    fits = all(may_be_at_most(size, dim) for size, dim in zip(sizes, operand.dims, strict=True))
    require(fits, f"`{what}` of `{name}` must be at most the operand's dims, but it is {_text(sizes)} and the operand {operand}")


def _text(sizes: Shape) -> str:
    return f"({', '.join(map(str, sizes))})"


# ---------------------------------------------------------------- slices at a start that is computed


def _require_starts(name: str, operand: TensorType, starts: Sequence[Type]) -> None:
    types = [tensor_of(start, f"start index {i} of `{name}`") for i, start in enumerate(starts)]
    require(len(types) == operand.rank, f"`{name}` takes one start index for each dim of {operand}, not {len(types)}")
    for i, type in enumerate(types):
        require(type.rank == 0, f"start index {i} of `{name}` must have rank 0, not {type}")
        require_class(name, f"start index {i}", type.dtype, "int")
        require(type == types[0], f"`{name}` takes start indices of one type, not {types[0]} and {type}")


def _positions(starts: Sequence[Array], shape: Sequence[int], sizes: Sequence[int]) -> list[int]:
    return [int(np.clip(as_positions(start), 0, dim - size)) for start, dim, size in zip(starts, shape, sizes, strict=True)]


def dynamic_slice_type(name: str, operands: Sequence[Type], attributes: Attributes) -> Type:
    """A tensor of `slice_sizes`."""
    require(len(operands) >= 1, f"`{name}` takes an operand and its start indices")
    operand = tensor_of(operands[0], f"`operand` of `{name}`")
    _require_starts(name, operand, operands[1:])
    sizes = get_dims(name, attributes, "slice_sizes", count=operand.rank)
    _require_sizes(name, "slice_sizes", sizes, operand)
    return TensorType(operand.dtype, sizes)


def dynamic_slice(term: Term, arrays: Sequence[Array], binding: Binding) -> Array:
    """A view from the clamped start."""
    x, *starts = arrays
    sizes = numbers(term.attribute("slice_sizes"), binding)
    require_room(term.op.name, "slice_sizes", sizes, x.shape)
    return sliced(x, (slice(at, at + size) for at, size in zip(_positions(starts, x.shape, sizes), sizes, strict=True)))


def dynamic_update_slice_type(name: str, operands: Sequence[Type], _: Attributes) -> Type:
    """The operand's type."""
    require(len(operands) >= 2, f"`{name}` takes an operand, an update and its start indices")
    operand, update = (tensor_of(x, f"`{what}` of `{name}`") for x, what in zip(operands, ("operand", "update"), strict=False))
    same = update.dtype == operand.dtype and update.rank == operand.rank
    require(same, f"`update` of `{name}` must have the operand's dtype and rank, but it is {update} and the operand {operand}")
    _require_sizes(name, "update", update.dims, operand)
    _require_starts(name, operand, operands[2:])
    return operand


def dynamic_update_slice(term: Term, arrays: Sequence[Array], _: Binding) -> Array:
    """A copy with the update from the clamped start."""
    x, update, *starts = arrays
    require_room(term.op.name, "update", update.shape, x.shape)
    result = x.copy()
    at = _positions(starts, x.shape, update.shape)
    result[tuple(slice(first, first + size) for first, size in zip(at, update.shape, strict=True))] = update
    return result


# ---------------------------------------------------------------- gather


def gather_type(name: str, operands: Sequence[Type], attributes: Attributes) -> Type:
    """The dims of `start_indices` but its index vectors, with the kept dims of the slices put in at `offset_dims`."""
    require(len(operands) == 2, f"`{name}` takes 2 operands (operand, start_indices), not {len(operands)}")
    operand, indices = (tensor_of(x, f"`{what}` of `{name}`") for x, what in zip(operands, ("operand", "start_indices"), strict=True))
    sizes = get_dims(name, attributes, "slice_sizes", count=operand.rank)
    _require_sizes(name, "slice_sizes", sizes, operand)
    return TensorType(operand.dtype, gather_shape(name, operand, indices, attributes, sizes))


def gather_shape(name: str, operand: TensorType, indices: TensorType, attributes: Attributes, sizes: Shape | None) -> Shape:
    """The shape of a gather's result. Where `sizes` is None (they are computed) a dim that is a slice's is -1."""
    require_class(name, "`start_indices`", indices.dtype, "int")
    get_bool(name, attributes, "indices_are_sorted")
    gone = require_index_dims(name, operand, indices, attributes, ("collapsed_slice_dims", "operand_batching_dims"))
    for axis in gone:
        fits = sizes is None or may_be_at_most(sizes[axis], 1)
        require(fits, f"`slice_sizes` of `{name}` must be at most 1 in dim {axis}, which is collapsed or batching, not {sizes}")
    vector = attributes["index_vector_dim"]
    batch = [dim for axis, dim in enumerate(indices.dims) if axis != vector]
    kept: list[Dim] = [-1 if sizes is None else sizes[axis] for axis in range(operand.rank) if axis not in gone]
    offsets = get_axes(name, attributes, "offset_dims", len(batch) + len(kept), count=len(kept))
    require(list(offsets) == sorted(offsets), f"`offset_dims` of `{name}` must be sorted, not {offsets}")
    rest, slices = iter(batch), iter(kept)
    return tuple(next(slices) if axis in offsets else next(rest) for axis in range(len(batch) + len(kept)))


def require_index_dims(
    name: str, operand: TensorType, indices: TensorType, attributes: Attributes, gone: tuple[str, str]
) -> tuple[int, ...]:
    """The operand's dims that a gather's result does not have, after the checks of the dimension numbers."""
    collapsed, batching = (get_axes(name, attributes, key, operand.rank) for key in gone)
    for key, axes in zip(gone, (collapsed, batching), strict=True):
        require(list(axes) == sorted(axes), f"`{key}` of `{name}` must be sorted, not {axes}")
    require(not set(collapsed) & set(batching), f"`{gone[0]}` {collapsed} and `{gone[1]}` {batching} of `{name}` name one dim twice")
    vector = get_int(name, attributes, "index_vector_dim")
    require(0 <= vector <= indices.rank, f"`index_vector_dim` of `{name}` must lie in 0..{indices.rank}, not {vector}")
    index_map = get_axes(name, attributes, "start_index_map", operand.rank)
    length = indices.dims[vector] if vector < indices.rank else 1
    require(length == len(index_map), f"`start_index_map` of `{name}` has {len(index_map)} entries, but index vectors have {length}")
    require(not set(index_map) & set(batching), f"`start_index_map` {index_map} of `{name}` names a dim of `{gone[1]}` {batching}")
    sources = get_axes(name, attributes, "start_indices_batching_dims", indices.rank, count=len(batching))
    require(vector not in sources, f"`start_indices_batching_dims` {sources} of `{name}` names the index_vector_dim {vector}")
    for mine, other in zip(batching, sources, strict=True):
        same = operand.dims[mine] == indices.dims[other]
        require(same, f"batching dim {mine} of {operand} and batching dim {other} of start_indices {indices} differ in `{name}`")
    return collapsed + batching


def gather(term: Term, arrays: Sequence[Array], binding: Binding) -> Array:
    """One indexed read of all slices; see `gathered`."""
    sizes = numbers(term.attribute("slice_sizes"), binding)
    return gathered(term.op.name, arrays[0], arrays[1], sizes, dict(term.attributes))


def gathered(name: str, x: Array, indices: Array, sizes: Sequence[int], attributes: Mapping[str, Any]) -> Array:
    """The slices of `x` of `sizes` at the clamped index vectors. Dims that no index moves are read as slices, the others by one
    NumPy indexing over all index vectors, so that the index arrays are as large as the part that they move."""
    require_room(name, "slice_sizes", sizes, x.shape)
    positions = index_columns(x, indices, sizes, attributes)
    moved = sorted(positions)
    whole = [axis for axis in range(x.ndim) if axis not in positions]
    batch = batch_shape(indices, attributes["index_vector_dim"])
    gone = (*attributes["collapsed_slice_dims"], *attributes["operand_batching_dims"])
    kept = [axis for axis in range(x.ndim) if axis not in gone]
    offsets = attributes["offset_dims"]
    rank = len(batch) + len(kept)
    source = [len(batch) + offsets.index(i) if i in offsets else i - sum(o < i for o in offsets) for i in range(rank)]
    shape = (*batch, *(sizes[axis] for axis in kept))
    if 0 in shape:
        return np.empty([shape[i] for i in source], x.dtype)
    if any(sizes[axis] == 0 for axis in gone):
        raise CosetError(f"`{name}` has slices without elements ({tuple(sizes)}) in a result that has some")
    view = sliced(x.transpose(moved + whole), [slice(None)] * len(moved) + [slice(sizes[axis]) for axis in whole])
    spread = [len(batch) + len(moved)] * len(moved)
    places = []
    for i, axis in enumerate(moved):
        steps = np.arange(sizes[axis]).reshape([-1 if j == len(batch) + i else 1 for j in range(spread[i])])
        places.append(positions[axis].reshape([*positions[axis].shape, *[1] * len(moved)]) + steps)
    picked = view[tuple(places)] if moved else np.broadcast_to(view, (*batch, *view.shape))
    order = [len(batch) + (moved + whole).index(axis) for axis in range(x.ndim)]
    full = picked.transpose([*range(len(batch)), *order]).reshape(shape)
    return full.transpose(source)


def batch_shape(indices: Array, vector: int) -> tuple[int, ...]:
    """The dims of the index vectors: all of `indices` but the dim that holds a vector."""
    return tuple(size for axis, size in enumerate(indices.shape) if axis != vector)


def index_columns(x: Array, indices: Array, sizes: Sequence[int], attributes: Mapping[str, Any]) -> dict[int, Array]:
    """For each dim of `x` that the index vectors or the batching dims move: the clamped starts, one for each index vector."""
    vector = attributes["index_vector_dim"]
    batch = batch_shape(indices, vector)
    vectors = np.moveaxis(indices if vector < indices.ndim else indices[..., None], vector, -1)
    columns = {}
    for i, axis in enumerate(attributes["start_index_map"]):
        columns[axis] = np.clip(as_positions(vectors[..., i]), 0, x.shape[axis] - sizes[axis])
    for axis, other in zip(attributes["operand_batching_dims"], attributes["start_indices_batching_dims"], strict=True):
        place = other - (vector < other)
        counts = np.arange(batch[place]).reshape([-1 if j == place else 1 for j in range(len(batch))])
        columns[axis] = np.broadcast_to(counts, batch)
    return columns
