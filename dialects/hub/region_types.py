"""Type rules of the hub's ops with payload functions, over symbolic dims. Each guard is a constraint of the StableHLO specification."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from coset.dialects.hub import checks
from coset.dialects.hub.checks import get_axes, get_axis, get_counts, get_ints, get_padding, may_be_at_most, padded, tensor_of, window_count
from coset.dialects.hub.signatures import results_type
from coset.dialects.hub.types import COMBINERS
from coset.ir.dims import Dim
from coset.ir.errors import require
from coset.ir.op import Attributes
from coset.ir.types import BOOL, DTYPES, AbsentType, DType, ForeignType, TensorType, TokenType, TupleType, Type

SORTING = ("LT", "GT", "LE", "GE")
_NUMBERS = "number bool"


def _tensors(name: str, what: str, operands: Sequence[Type]) -> list[TensorType]:
    return [tensor_of(operand, f"{what} {i} of `{name}`") for i, operand in enumerate(operands)]


def get_bool(name: str, attributes: Attributes, key: str) -> bool:
    """The attribute `key`, true or false."""
    value = attributes[key]
    require(isinstance(value, bool), f"`{key}` of `{name}` must be true or false, not {value!r}")
    return value  # type: ignore[no-any-return]


def require_combiner(name: str, attributes: Attributes, dtypes: Sequence[DType], *more: str) -> None:
    """The attribute `combiner` is a word (`more` ones too) that takes these dtypes."""
    combiner = attributes["combiner"]
    words = (*COMBINERS, *more)
    require(combiner in words, f"`combiner` of `{name}` must be one of {', '.join(words)}, not {combiner!r}")
    for dtype in dtypes:
        checks.require_class(f"{name} {combiner}", "an operand", dtype, COMBINERS.get(combiner, _NUMBERS))


def _one_shape(name: str, what: str, types: Sequence[TensorType]) -> None:
    for i, type in enumerate(types):
        same = type.dims == types[0].dims
        require(same, f"`{name}` takes {what}s of one shape, but {what} 0 is {types[0]} and {what} {i} is {type}")


# ---------------------------------------------------------------- reductions


def _inputs_and_inits(name: str, operands: Sequence[Type]) -> list[TensorType]:
    """The inputs of a general reduction; an init value of rank 0 stands behind for each."""
    require(len(operands) >= 2 and len(operands) % 2 == 0, f"`{name}` takes inputs and as many init values, not {len(operands)} operands")
    types = _tensors(name, "operand", operands)
    inputs, inits = types[: len(types) // 2], types[len(types) // 2 :]
    _one_shape(name, "input", inputs)
    for i, (type, init) in enumerate(zip(inputs, inits, strict=True)):
        checks.require_class(name, f"input {i}", type.dtype, _NUMBERS)
        scalar = TensorType(type.dtype, ())
        require(init == scalar, f"init value {i} of `{name}` must be {scalar} as input {i} has {type.dtype} elements, not {init}")
    return inputs


def reduce_region(name: str, operands: Sequence[Type], attributes: Attributes) -> Type:
    """The inputs' dims without the reduced ones, which are sorted."""
    inputs = _inputs_and_inits(name, operands)
    axes = get_axes(name, attributes, "dimensions", inputs[0].rank)
    require(list(axes) == sorted(axes), f"`dimensions` of `{name}` must be sorted, not {axes}")
    shape = tuple(dim for axis, dim in enumerate(inputs[0].dims) if axis not in axes)
    return results_type([TensorType(type.dtype, shape) for type in inputs])


def _window_shape(name: str, operand: TensorType, attributes: Attributes) -> tuple[Dim, ...]:
    """How many windows there are along each dim."""
    rank = operand.rank

    def row(key: str) -> tuple[Dim, ...]:
        return get_counts(name, attributes, key, least=1, count=rank) if key in attributes else (1,) * rank

    keys = ("window_dimensions", "window_strides", "base_dilations", "window_dilations")
    rows = zip(operand.dims, *map(row, keys), get_padding(name, attributes, rank), strict=True)
    shape = []
    for axis, (dim, window, stride, base, dilation, (low, high)) in enumerate(rows):
        size = padded(dim, low, high, base)
        fits = not isinstance(size, int) or size >= 0
        require(fits, f"padding ({low}, {high}) of `{name}` leaves a negative dim {axis} of {operand}")
        shape.append(window_count(size, padded(window, 0, 0, dilation), stride))
    return tuple(shape)


def reduce_window(name: str, operands: Sequence[Type], attributes: Attributes) -> Type:
    """One element for each window."""
    (operand,) = checks.tensors(name, operands, "operand")
    require_combiner(name, attributes, [operand.dtype])
    return TensorType(operand.dtype, _window_shape(name, operand, attributes))


def reduce_window_region(name: str, operands: Sequence[Type], attributes: Attributes) -> Type:
    """One element of each input for each window."""
    inputs = _inputs_and_inits(name, operands)
    shape = _window_shape(name, inputs[0], attributes)
    return results_type([TensorType(type.dtype, shape) for type in inputs])


def select_and_scatter(name: str, operands: Sequence[Type], attributes: Attributes) -> Type:
    """The operand's type; the source has one element for each window."""
    operand, source, init = checks.tensors(name, operands, "operand", "source", "init_value")
    select = attributes["select"]
    words = (*SORTING, "region")
    require(select in words, f"`select` of `{name}` must be one of {', '.join(words)}, not {select!r}")
    require_combiner(name, attributes, [operand.dtype], "region")
    require(init == TensorType(operand.dtype, ()), f"`init_value` of `{name}` must be one {operand.dtype} of rank 0, not {init}")
    wanted = TensorType(operand.dtype, _window_shape(name, operand, attributes))
    require(source == wanted, f"`source` of `{name}` must have one element for each window of {operand}: {wanted}, not {source}")
    return operand


# ---------------------------------------------------------------- sort and scatter


def sort(name: str, operands: Sequence[Type], attributes: Attributes) -> Type:
    """The operands' types."""
    require(len(operands) >= 1, f"`{name}` takes one operand or more")
    types = _tensors(name, "operand", operands)
    _one_shape(name, "operand", types)
    get_axis(name, attributes, "dimension", types[0].rank)
    direction = attributes["direction"]
    words = (*SORTING, "region")
    require(direction in words, f"`direction` of `{name}` must be one of {', '.join(words)}, not {direction!r}")
    for key in ("is_stable", "total"):
        get_bool(name, attributes, key)
    for i, type in enumerate(types):
        checks.require_class(name, f"operand {i}", type.dtype, _NUMBERS)
    return results_type(types)


def scatter(name: str, operands: Sequence[Type], attributes: Attributes) -> Type:
    """The operands' types; the updates are a window for each index."""
    count = checks.get_int(name, attributes, "count")
    require(count >= 1, f"`count` of `{name}` must be 1 or more, not {count}")
    wanted = 2 * count + 1
    require(len(operands) == wanted, f"`{name}` takes {count} operands, the indices and as many updates: {wanted}, not {len(operands)}")
    types = _tensors(name, "operand", operands)
    inputs, indices, updates = types[:count], types[count], types[count + 1 :]
    _one_shape(name, "operand", inputs)
    _one_shape(name, "update", updates)
    for i, (type, update) in enumerate(zip(inputs, updates, strict=True)):
        same = type.dtype == update.dtype
        require(same, f"update {i} of `{name}` must have {type.dtype} elements as the operand has, not {update.dtype}")
    checks.require_class(name, "the index tensor", indices.dtype, "int")
    require_combiner(name, attributes, [type.dtype for type in inputs], "second", "region")
    for key in ("indices_are_sorted", "unique_indices"):
        get_bool(name, attributes, key)
    _scatter_dims(name, inputs[0], indices, updates[0], attributes)
    return results_type(inputs)


def _sorted_axes(name: str, attributes: Attributes, key: str, rank: int) -> tuple[int, ...]:
    axes = get_axes(name, attributes, key, rank)
    require(list(axes) == sorted(axes), f"`{key}` of `{name}` must be sorted, not {axes}")
    return axes


def _scatter_dims(name: str, operand: TensorType, indices: TensorType, update: TensorType, attributes: Attributes) -> None:
    windows = _sorted_axes(name, attributes, "update_window_dims", update.rank)
    inserted = _sorted_axes(name, attributes, "inserted_window_dims", operand.rank)
    batching = _sorted_axes(name, attributes, "input_batching_dims", operand.rank)
    named = get_axes(name, attributes, "scatter_dims_to_operand_dims", operand.rank)
    require(not set(inserted) & set(batching), f"`{name}` has a dim both inserted and batching: {inserted}, {batching}")
    require(not set(named) & set(batching), f"`{name}` has a dim both scattered to and batching: {named}, {batching}")
    total = len(windows) + len(inserted) + len(batching)
    require(total == operand.rank, f"window, inserted and batching dims of `{name}` must be as many as {operand} has dims, not {total}")
    vector = checks.get_int(name, attributes, "index_vector_dim")
    require(0 <= vector <= indices.rank, f"`index_vector_dim` of `{name}` must lie in 0..{indices.rank}, not {vector}")
    length = indices.dims[vector] if vector < indices.rank else 1
    require(length == len(named), f"`{name}` has {length} numbers in an index but {len(named)} dims that they name: {named}")
    paired = get_axes(name, attributes, "scatter_indices_batching_dims", indices.rank, count=len(batching))
    require(vector not in paired, f"`index_vector_dim` {vector} of `{name}` is a batching dim too: {paired}")
    for a, b in zip(batching, paired, strict=True):
        same = operand.dims[a] == indices.dims[b]
        require(same, f"batching dim {a} of {operand} is {operand.dims[a]} but dim {b} of the indices {indices} is {indices.dims[b]}")
    scattered = tuple(dim for axis, dim in enumerate(update.dims) if axis not in windows)
    expected = tuple(dim for axis, dim in enumerate(indices.dims) if axis != vector)
    fits = scattered == expected
    require(fits, f"the updates {update} of `{name}` must have, beside the windows, the dims {expected} of the indices, not {scattered}")
    moved = [axis for axis in range(operand.rank) if axis not in inserted and axis not in batching]
    for axis, window in zip(moved, windows, strict=True):
        inside = may_be_at_most(update.dims[window], operand.dims[axis])
        require(inside, f"the window dim {window} of the updates {update} of `{name}` is larger than dim {axis} of {operand}")


# ---------------------------------------------------------------- map and control flow


def map_(name: str, operands: Sequence[Type], attributes: Attributes) -> Type:
    """The operands' shape."""
    require(len(operands) >= 1, f"`{name}` takes one operand or more")
    types = _tensors(name, "operand", operands)
    _one_shape(name, "operand", types)
    every = tuple(range(types[0].rank))
    named = get_ints(name, attributes, "dimensions")
    require(named == every, f"`dimensions` of `{name}` must be {every}, every one of {types[0]}, not {named}")
    dtype = types[0].dtype if attributes["dtype"] is None else checks.get_dtype(name, attributes)
    return TensorType(dtype, types[0].dims)


def stated_results(name: str, attributes: Attributes) -> tuple[Type, ...]:
    """The attribute `results`, a tuple of types."""
    value: Any = attributes["results"]
    known = (TensorType, TupleType, TokenType, ForeignType, AbsentType)
    fine = isinstance(value, tuple) and all(isinstance(item, known) for item in value)
    require(fine, f"`results` of `{name}` must be a tuple of types, not {value!r}")
    return value  # type: ignore[no-any-return]


def if_(name: str, operands: Sequence[Type], attributes: Attributes) -> Type:
    """The stated results; the predicate is one boolean."""
    require(len(operands) >= 1, f"`{name}` takes a predicate and what its branches capture")
    pred = tensor_of(operands[0], f"`pred` of `{name}`")
    require(pred == TensorType(BOOL, ()), f"`pred` of `{name}` must be bool[], not {pred}")
    return results_type(stated_results(name, attributes))


def case(name: str, operands: Sequence[Type], attributes: Attributes) -> Type:
    """The stated results; the index is one i32."""
    require(len(operands) >= 1, f"`{name}` takes an index and what its branches capture")
    index = tensor_of(operands[0], f"`index` of `{name}`")
    require(index == TensorType(DTYPES["i32"], ()), f"`index` of `{name}` must be i32[], not {index}")
    return results_type(stated_results(name, attributes))


def while_(_: str, operands: Sequence[Type], __: Attributes) -> Type:
    """The state's types."""
    return results_type(operands)


def composite(name: str, _: Sequence[Type], attributes: Attributes) -> Type:
    """The stated results."""
    called = attributes["name"]
    require(isinstance(called, str) and called != "", f"`name` of `{name}` must say which composite it is, not {called!r}")
    return results_type(stated_results(name, attributes))
