"""Type rules of the hub's ops, over symbolic dims. Each guard is a constraint of the StableHLO specification.

A rule is a function of the op's name, the operand types and the attributes; the op table binds the name. Two dims are
equal when their canonical forms are. An inequality between dims is refused when it is known to be false: what cannot
be known before the symbols have numbers is left to the evaluator.
"""

from __future__ import annotations

from collections.abc import Sequence

from coset.dialects.hub.checks import (
    get_axes,
    get_axis,
    get_counts,
    get_dims,
    get_dtype,
    get_padding,
    may_be_at_most,
    may_be_equal,
    padded,
    require_class,
    require_same,
    tensor_of,
    tensors,
    window_count,
    without,
)
from coset.ir import dims
from coset.ir.dims import Dim, Poly
from coset.ir.errors import TypeRuleError, require
from coset.ir.op import Attributes
from coset.ir.types import BOOL, DTYPES, TensorType, Type

DIRECTIONS = ("EQ", "NE", "LT", "LE", "GT", "GE")
COMBINERS = {
    "add": "number bool", "multiply": "number bool", "maximum": "number bool", "minimum": "number bool",
    "and": "int bool", "or": "int bool",
}  # fmt: skip
_REAL_PART = {DTYPES["c64"]: DTYPES["f32"], DTYPES["c128"]: DTYPES["f64"]}


# ---------------------------------------------------------------- elementwise


def pointwise(name: str, operands: Sequence[Type], _: Attributes, *, names: tuple[str, ...], classes: str) -> Type:
    """Operands of one type give that type."""
    types = tensors(name, operands, *names)
    require_class(name, f"`{names[0]}`", types[0].dtype, classes)
    require_same(name, types, [f"`{n}`" for n in names])
    return types[0]


def predicate(name: str, operands: Sequence[Type], _: Attributes, *, classes: str) -> Type:
    """One operand gives booleans of its shape."""
    (operand,) = tensors(name, operands, "operand")
    require_class(name, "`operand`", operand.dtype, classes)
    return TensorType(BOOL, operand.shape)


def magnitude(name: str, operands: Sequence[Type], _: Attributes) -> Type:
    """The absolute value of a complex number is real."""
    (operand,) = tensors(name, operands, "operand")
    require_class(name, "`operand`", operand.dtype, "signed float complex")
    return TensorType(_REAL_PART.get(operand.dtype, operand.dtype), operand.shape)


def compare(name: str, operands: Sequence[Type], attributes: Attributes) -> Type:
    """Operands of one type give booleans; strings have equality only."""
    types = tensors(name, operands, "lhs", "rhs")
    direction = attributes["direction"]
    require(direction in DIRECTIONS, f"`direction` of `{name}` must be one of {', '.join(DIRECTIONS)}, not {direction!r}")
    require_same(name, types, ("`lhs`", "`rhs`"))
    if types[0].dtype.kind == "quantized":
        require_class(name, "`lhs`", types[0].dtype, "number bool")
    ordered = direction not in ("EQ", "NE")
    require(not ordered or types[0].dtype.kind != "string", f"`{name}` orders numbers, not strings (direction {direction})")
    return TensorType(BOOL, types[0].shape)


def select(name: str, operands: Sequence[Type], _: Attributes) -> Type:
    """The predicate has the shape of the values, or rank 0."""
    pred, on_true, on_false = tensors(name, operands, "pred", "on_true", "on_false")
    require(pred.dtype is BOOL, f"`pred` of `{name}` must be bool, not {pred.dtype}")
    require_same(name, (on_true, on_false), ("`on_true`", "`on_false`"))
    fits = pred.rank == 0 or pred.shape == on_true.shape
    if not fits:
        raise TypeRuleError(f"`pred` of `{name}` must have rank 0 or the shape of the values, but it is {pred} and they are {on_true}")
    return on_true


def clamp(name: str, operands: Sequence[Type], _: Attributes) -> Type:
    """Each bound has the type of the operand, or is one element of its dtype."""
    low, operand, high = tensors(name, operands, "min", "operand", "max")
    require_class(name, "`operand`", operand.dtype, "number bool")
    for what, bound in (("min", low), ("max", high)):
        require(bound.dtype == operand.dtype, f"`{what}` of `{name}` must have {operand.dtype} elements as the operand, not {bound.dtype}")
        fits = bound.rank == 0 or bound.shape == operand.shape
        if not fits:
            raise TypeRuleError(
                f"`{what}` of `{name}` must have rank 0 or the shape of the operand, but it is {bound} and the operand {operand}"
            )
    return operand


def convert(name: str, operands: Sequence[Type], attributes: Attributes) -> Type:
    """The operand's shape with another element type."""
    (operand,) = tensors(name, operands, "operand")
    dtype = get_dtype(name, attributes)
    for what in (operand.dtype, dtype):
        require_class(name, "one side", what, "number bool")
    return TensorType(dtype, operand.shape)


# ---------------------------------------------------------------- movement


def broadcast_in_dim(name: str, operands: Sequence[Type], attributes: Attributes) -> Type:
    """Dim i of the operand becomes dim `broadcast_dimensions[i]`; it is 1 or already of that size."""
    (operand,) = tensors(name, operands, "operand")
    shape = get_dims(name, attributes, "shape")
    axes = get_axes(name, attributes, "broadcast_dimensions", len(shape), count=operand.rank)
    for i, (dim, axis) in enumerate(zip(operand.dims, axes, strict=True)):
        fits = dim in (1, shape[axis])
        if not fits:
            raise TypeRuleError(
                f"`{name}` cannot make dim {axis} of size {shape[axis]} from dim {i} of {operand}: it must be 1 or {shape[axis]}"
            )
    return TensorType(operand.dtype, shape)


def reshape(name: str, operands: Sequence[Type], attributes: Attributes) -> Type:
    """As many elements as the operand has; a `//` of dims is read as exact, which the reshape itself asserts."""
    (operand,) = tensors(name, operands, "operand")
    result = TensorType(operand.dtype, get_dims(name, attributes, "shape"))
    same = may_be_equal(operand.elements, result.elements)
    if not same:
        raise TypeRuleError(
            f"`{name}` keeps the number of elements, but {operand} has {operand.elements} and {result} has {result.elements}"
        )
    return result


def transpose(name: str, operands: Sequence[Type], attributes: Attributes) -> Type:
    """Dim i of the result is dim `permutation[i]` of the operand."""
    (operand,) = tensors(name, operands, "operand")
    permutation = get_axes(name, attributes, "permutation", operand.rank, count=operand.rank)
    return TensorType(operand.dtype, tuple(operand.dims[axis] for axis in permutation))


def slice(name: str, operands: Sequence[Type], attributes: Attributes) -> Type:
    """0 <= start <= limit <= dim, every `strides`-th element."""
    (operand,) = tensors(name, operands, "operand")
    start, limit = (get_dims(name, attributes, key, count=operand.rank) for key in ("start", "limit"))
    strides = get_dims(name, attributes, "strides", count=operand.rank)  # symbols in proofs
    require(0 not in strides, f"`strides` of `{name}` must be 1 or more everywhere, not {strides}")
    for axis, (first, last, dim) in enumerate(zip(start, limit, operand.dims, strict=True)):
        inside = may_be_at_most(first, last) and may_be_at_most(last, dim)
        if not inside:
            raise TypeRuleError(f"`{name}` takes {first} to {last} of dim {axis}, which has {dim}; it must be 0 <= start <= limit <= {dim}")
    sizes = (dims.ceildiv(dims.subtract(b, a), s) for a, b, s in zip(start, limit, strides, strict=True))
    return TensorType(operand.dtype, tuple(sizes))


def concatenate(name: str, operands: Sequence[Type], attributes: Attributes) -> Type:
    """Inputs equal but for one dim, which adds up."""
    require(len(operands) >= 1, f"`{name}` takes one input or more")
    types = [tensor_of(operand, f"input {i} of `{name}`") for i, operand in enumerate(operands)]
    first = types[0]
    axis = get_axis(name, attributes, "dimension", first.rank)
    total: Dim = 0
    for i, type in enumerate(types):
        same = type.rank == first.rank and (type.dtype, *without(type.dims, axis)) == (first.dtype, *without(first.dims, axis))
        if not same:
            raise TypeRuleError(f"inputs of `{name}` may differ in dim {axis} only, but input 0 is {first} and input {i} is {type}")
        total = dims.add(total, type.dims[axis])
    return TensorType(first.dtype, (*first.dims[:axis], total, *first.dims[axis + 1 :]))


def pad(name: str, operands: Sequence[Type], attributes: Attributes) -> Type:
    """low + (dim - 1) * (interior + 1) + 1 + high; low and high may be negative."""
    operand, value = tensors(name, operands, "operand", "padding_value")
    require(value == TensorType(operand.dtype, ()), f"`padding_value` of `{name}` must be one {operand.dtype} of rank 0, not {value}")
    low, high = (get_counts(name, attributes, key, count=operand.rank) for key in ("low", "high"))
    interior = get_counts(name, attributes, "interior", least=0, count=operand.rank)
    shape = tuple(padded(d, a, b, dims.add(i, 1)) for d, a, b, i in zip(operand.dims, low, high, interior, strict=True))
    fits = all(not isinstance(dim, int) or dim >= 0 for dim in shape)
    if not fits:
        raise TypeRuleError(f"`{name}` of {operand} by low {low}, high {high}, interior {interior} leaves a negative dim: {shape}")
    return TensorType(operand.dtype, shape)


def reverse(name: str, operands: Sequence[Type], attributes: Attributes) -> Type:
    """The operand's type."""
    (operand,) = tensors(name, operands, "operand")
    get_axes(name, attributes, "dimensions", operand.rank)
    return operand


def iota(name: str, operands: Sequence[Type], attributes: Attributes) -> Type:
    """A tensor of the stated shape, rank 1 or more."""
    tensors(name, operands)
    shape, dtype = get_dims(name, attributes, "shape"), get_dtype(name, attributes)
    require_class(name, "the result", dtype, "number")
    get_axis(name, attributes, "dimension", len(shape))
    return TensorType(dtype, shape)


# ---------------------------------------------------------------- contractions


def dot_general(name: str, operands: Sequence[Type], attributes: Attributes) -> Type:
    """Batch dims, then the free dims of lhs, then those of rhs."""
    types = lhs, rhs = tensors(name, operands, "lhs", "rhs")
    require_class(name, "`lhs`", lhs.dtype, "number bool")
    require(lhs.dtype == rhs.dtype, f"`{name}` takes operands of one element type, not {lhs.dtype} and {rhs.dtype}")
    free: list[Dim] = []
    for side, type in zip(("lhs", "rhs"), types, strict=True):
        batch = get_axes(name, attributes, f"{side}_batch", type.rank)
        contract = get_axes(name, attributes, f"{side}_contract", type.rank)
        if not set(batch).isdisjoint(contract):
            raise TypeRuleError(f"`{side}` of `{name}` has a dim that is batch and contracted: {batch}, {contract}")
        free += [dim for axis, dim in enumerate(type.dims) if axis not in batch and axis not in contract]
    for role in ("batch", "contract"):
        _require_pairs(name, role, lhs, rhs, attributes[f"lhs_{role}"], attributes[f"rhs_{role}"])
    return TensorType(lhs.dtype, (*(lhs.dims[axis] for axis in attributes["lhs_batch"]), *free))


def _require_pairs(name: str, role: str, lhs: TensorType, rhs: TensorType, left: tuple[int, ...], right: tuple[int, ...]) -> None:
    require(len(left) == len(right), f"`{name}` needs as many lhs_{role} dims as rhs_{role} dims, not {left} and {right}")
    for a, b in zip(left, right, strict=True):
        if lhs.dims[a] != rhs.dims[b]:
            one, other = f"{role} dim {a} of lhs {lhs} is {lhs.dims[a]}", f"{role} dim {b} of rhs {rhs} is {rhs.dims[b]}"
            raise TypeRuleError(f"{one} but {other} in `{name}`")


def convolution(name: str, operands: Sequence[Type], attributes: Attributes) -> Type:
    """lhs [N, C, spatial..] and rhs [O, C / feature_group_count, window..] give [N / batch_group_count, O, spatial'..]."""
    lhs, rhs = tensors(name, operands, "lhs", "rhs")
    require_class(name, "`lhs`", lhs.dtype, "number bool")
    require(lhs.dtype == rhs.dtype, f"`{name}` takes operands of one element type, not {lhs.dtype} and {rhs.dtype}")
    if lhs.rank != rhs.rank or lhs.rank < 2:
        raise TypeRuleError(f"`{name}` takes operands of one rank of 2 or more, not {lhs} and {rhs}")
    spatial = lhs.rank - 2
    strides, lhs_dilation, rhs_dilation = (
        get_counts(name, attributes, key, least=1, count=spatial) for key in ("strides", "lhs_dilation", "rhs_dilation")
    )
    batch = _groups(name, lhs, rhs, attributes)
    sizes = tuple(
        window_count(padded(lhs.dims[2 + i], low, high, lhs_dilation[i]), padded(rhs.dims[2 + i], 0, 0, rhs_dilation[i]), strides[i])
        for i, (low, high) in enumerate(get_padding(name, attributes, spatial))
    )
    return TensorType(lhs.dtype, (batch, rhs.dims[0], *sizes))


def _groups(name: str, lhs: TensorType, rhs: TensorType, attributes: Attributes) -> Dim:
    """The batch of the result; the group counts divide what they must."""
    features, batches = (_group_count(name, attributes, key) for key in ("feature_group_count", "batch_group_count"))
    require(features == 1 or batches == 1, f"`{name}` groups features or batches, not both ({features} and {batches})")
    channels = dims.multiply(rhs.dims[1], features)
    require(lhs.dims[1] == channels, f"`{name}` has {lhs.dims[1]} input channels, but the filter's {rhs.dims[1]} times {features} groups")
    for count, dim, what in ((dims.multiply(features, batches), rhs.dims[0], "output channels"), (batches, lhs.dims[0], "batch")):
        require(dims.mod(dim, count) == 0 or not isinstance(dim, int), f"{count} groups of `{name}` do not divide the {what} {dim}")
    return dims.floordiv(lhs.dims[0], batches)


def _group_count(name: str, attributes: Attributes, key: str) -> Dim:
    """The attribute `key`, a number of groups."""
    value = attributes[key]
    require(isinstance(value, int | Poly) and not isinstance(value, bool), f"`{key}` of `{name}` must be an integer, not {value!r}")
    require(isinstance(value, Poly) or value >= 1, f"`{key}` of `{name}` must be 1 or more, not {value}")
    return value  # type: ignore[no-any-return]


def reduce(name: str, operands: Sequence[Type], attributes: Attributes) -> Type:
    """The operand's dims without the reduced ones, which are sorted."""
    (operand,) = tensors(name, operands, "operand")
    axes = get_axes(name, attributes, "dimensions", operand.rank)
    require(list(axes) == sorted(axes), f"`dimensions` of `{name}` must be sorted, not {axes}")
    combiner = attributes["combiner"]
    require(combiner in COMBINERS, f"`combiner` of `{name}` must be one of {', '.join(COMBINERS)}, not {combiner!r}")
    require_class(f"{name} {combiner}", "`operand`", operand.dtype, COMBINERS[combiner])
    return TensorType(operand.dtype, tuple(dim for axis, dim in enumerate(operand.dims) if axis not in axes))
