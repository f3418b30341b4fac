"""Dims of results of opaque nodes that ONNX's inference leaves open: symbolic pools, resizes, and broadcasts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest

from coset.dialects.onnx.bounds import implied_bound, least
from coset.dialects.onnx.dtypes import USUAL
from coset.dialects.onnx.moves import axes_of_pad, bound_of_gather
from coset.dialects.onnx.node import Node, axis_of, constant_elements, define
from coset.frontends.onnx.types import UNKNOWN
from coset.ir import dims
from coset.ir.builtin import ABSENT
from coset.ir.dim_factors import factors as factors_of
from coset.ir.dims import Dim
from coset.ir.errors import CosetError
from coset.ir.types import TensorType, Type

Dims = Sequence[Dim | None] | None  # None: no rank is known, or a dim is not
BROADCASTING = {
    "Add", "Sub", "Mul", "Div", "Pow", "Mod", "And", "Or", "Xor", "Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual", "Where",
    "Max", "Min", "Sum", "Mean", "PRelu", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitShift",
}  # fmt: skip
ONE_SIDED = {"PRelu"}  # of which ONNX's inference (1.23) looks at the first operand alone, while kernels broadcast both ways

CONTROL = ("If", "Loop", "Scan")


def result_dims(node: Node) -> Dims:
    """The shape of the first result of `node`, as far as it is known from symbolic dims."""
    shape = _shape(node, 0)
    if node.name in BROADCASTING:
        return _broadcast([_shape(node, index) for index in range(len(node.operands))])
    if node.name == "Expand":
        return _broadcast([shape, node.dims(1)])
    if node.name == "Reshape":
        return _reshape(shape, node.dims(1))
    rule = _RULES.get(node.name)
    return None if rule is None or shape is None else rule(node, shape)


def _reshape(shape: Dims, target: Sequence[Dim] | None) -> Dims:
    """The dims that `target` names, and the one that is -1 where the others are numbers: what is left of the elements."""
    if target is None:
        return None
    result: list[Dim | None] = [dim if (least(dim) or 0) > 0 else None for dim in target]
    if shape is not None and None not in shape and target.count(-1) == 1:
        others = [dim for dim in target if dim != -1]
        if all(isinstance(dim, int) and dim > 0 for dim in others):
            result[target.index(-1)] = dims.divide_exactly(dims.product(dim for dim in shape if dim is not None), dims.product(others))
    return result


def defined_types(node: Node, types: Sequence[Type]) -> list[Type]:
    """`types` of the results of `node`, with those unknown or of unknown rank taken from its op's definition where that knows them; for an
    op of ONNX Runtime, and for branches and loops, those of dims that nothing says, too: the standard leaves one open for good reasons. So
    for element types of which nodes become no terms for lack of kernels alone."""
    operands = [operand.type for operand in node.operands if operand.op is not ABSENT]
    if not all(isinstance(type, TensorType) and type.shape is not None for type in operands):
        return list(types)
    spelled = frozenset[str]().union(*(_symbols(type) for type in operands))
    if not any(_is_open(type, spelled) for type in types):
        return list(types)
    try:
        found = define(node) or ()
    except CosetError:
        return list(types)
    result = list(types)
    for index, (type, term) in enumerate(zip(types, found, strict=False)):
        if not isinstance(term.type, TensorType) or not _is_open(type, spelled):
            continue
        own = _symbols(term.type) <= spelled  # symbols of the data's own have no meaning here
        if type == UNKNOWN or (isinstance(type, TensorType) and type.shape is None and term.type.dtype == type.dtype):
            result[index] = term.type if own else TensorType(term.type.dtype, None)
        elif (
            own
            and ("." in node.name or node.name in CONTROL or term.type.dtype not in USUAL)
            and isinstance(type, TensorType)
            and (type.dtype, type.rank) == (term.type.dtype, term.type.rank)
        ):
            result[index] = term.type
    return result


def _is_open(type: Type, spelled: frozenset[str]) -> bool:
    """True for the type of a result whose shape is not said by those of the operands, which speak of the symbols `spelled`."""
    return type == UNKNOWN or (isinstance(type, TensorType) and (type.shape is None or not _symbols(type) <= spelled))


def _symbols(type: Type) -> frozenset[str]:
    shape = type.shape if isinstance(type, TensorType) else None
    return frozenset[str]().union(*(dims.symbols(dim) for dim in shape or ()))


def bounds_of(node: Node) -> tuple[str, int] | None:
    """A symbol and the number that it is never above, because `node` would fail."""
    shapes: list[Sequence[Dim] | None] = []
    if node.name == "Gather":
        x, indices = node.operands
        ranked = _shape(node, 0) is not None and _shape(node, 1) is not None
        return bound_of_gather(x, indices, node.attributes.get("axis", 0)) if ranked else None
    if node.name == "Expand":
        shapes = [_shape(node, 0), node.dims(1)]
    elif node.name in BROADCASTING:
        shapes = [_shape(node, index) for index in range(len(node.operands))]
    known = [shape for shape in shapes if shape is not None]
    for position, shape in enumerate(known):
        for other in known[:position]:
            for a, b in zip(reversed(shape), reversed(other), strict=False):
                found = implied_bound(a, b)
                if found is not None:
                    return found
    return None


def fixed_by(node: Node) -> Iterator[tuple[str, int]]:
    """Symbols with the numbers that they are, because `node` would fail: what is concatenated has the same dims but for one. (ONNX Runtime
    lets tensors without elements pass, whatever their dims.)"""
    shapes = [_shape(node, index) for index in range(len(node.operands))] if node.name == "Concat" else []
    known = [shape for shape in shapes if shape is not None]
    ranks = {len(shape) for shape in known}
    axis = axis_of(node.attributes.get("axis", 1), *ranks) if len(known) == len(shapes) and len(ranks) == 1 else None
    for place, column in enumerate(zip(*known, strict=True)) if axis is not None else ():
        numbers = sorted({dim for dim in column if isinstance(dim, int)})
        if place != axis and len(numbers) == 1:
            yield from ((name, numbers[0]) for dim in column if (name := dims.alone(dim)) is not None)


def filled_by(node: Node) -> frozenset[str]:
    """Symbols that are at least 1, because `node` would fail: a Reshape finds the dim that is -1 by dividing by all others."""
    shape, asked = _shape(node, 0), node.dims(1) if node.name == "Reshape" else None
    if shape is None or asked is None or -1 not in asked or node.attributes.get("allowzero", 0):
        return frozenset()
    others = [shape[place] if dim == 0 and place < len(shape) else dim for place, dim in enumerate(asked)]
    return frozenset().union(*(factors_of(dim) or () for dim in others))


def _shape(node: Node, index: int) -> Sequence[Dim] | None:
    type = node.operands[index].type if index < len(node.operands) else None
    return type.shape if isinstance(type, TensorType) else None


def _broadcast(shapes: Sequence[Sequence[Dim] | None]) -> Dims:
    """Where one dim is above 1 it is the result's: the others are 1 or the same, or the node fails."""
    known = [list(reversed(shape)) for shape in shapes if shape is not None]
    if len(known) < len(shapes):
        return None
    result: list[Dim | None] = []
    for column in zip_longest(*known, fillvalue=1):
        large = [dim for dim in column if (least(dim) or 0) > 1]
        others = {dim for dim in column if dim != 1}
        result.append(large[0] if large else next(iter(others), 1) if len(others) <= 1 else None)
    return list(reversed(result))


def note_likely(likely: dict[str, Dim], node: Node | None, type: Type) -> None:
    """Note what the dims of a result of `type` are in all but very small inputs, where they have no other name than a new one.

    It is what costs are predicted with, never what a type says.
    """
    shape = _shape(node, 0) if node is not None and _RULES.get(node.name) is _pool else None
    if node is None or shape is None or not isinstance(type, TensorType):
        return
    given = {name for dim in shape for name in dims.symbols(dim)}
    for dim, guess in zip(type.shape or (), _pool(node, shape, short=True) or (), strict=False):
        name = dims.alone(dim)
        if name is not None and name not in given and guess is not None:
            likely.setdefault(name, guess)


def _pool(node: Node, shape: Sequence[Dim], *, short: bool = False) -> Dims:
    """floor((dim + pads - window) / stride) + 1 (ONNX, MaxPool); windows beyond the end (`ceil_mode`) are left open.

    So is, but for `short`, a dim that may be too short for one window: ONNX Runtime rounds the quotient to zero there, not down.
    """
    given = node.attributes
    window = given.get("kernel_shape")
    if window is None or given.get("ceil_mode", 0) or len(shape) != len(window) + 2:
        return None
    count = len(window)
    strides, dilations = given.get("strides", (1,) * count), given.get("dilations", (1,) * count)
    pads = given.get("pads", (0,) * (2 * count))
    mode = given.get("auto_pad", "NOTSET")
    result: list[Dim | None] = [shape[0], shape[1]]
    for axis in range(count):
        dim = shape[2 + axis]
        if mode.startswith("SAME"):
            result.append(dims.ceildiv(dim, strides[axis]))
            continue
        padding = pads[axis] + pads[axis + count] if mode == "NOTSET" else 0
        room = dims.add(dim, padding - (window[axis] - 1) * dilations[axis] - 1)
        lowest = least(_raised(room))
        fits = short or strides[axis] == 1 or (lowest is not None and lowest >= 0)
        result.append(dims.add(dims.floordiv(room, strides[axis]), 1) if fits else None)
    return result


def _raised(dim: Dim) -> Dim:
    """`dim` with each symbol s as s + 1, for bounds over dims of 1 or more."""
    return dims.substitute(dim, {name: dims.add(dims.symbol(name), 1) for name in dims.symbols(dim)})


def _transposed_convolution(node: Node, shape: Sequence[Dim]) -> Dims:
    """stride (dim - 1) + output padding + window - pads (ONNX, ConvTranspose)."""
    given = node.attributes
    weights = _shape(node, 1)
    if weights is None or "output_shape" in given or given.get("auto_pad", "NOTSET") != "NOTSET" or len(shape) != len(weights):
        return None
    count = len(shape) - 2
    strides, dilations, extra = (
        given.get(name, (default,) * count) for name, default in (("strides", 1), ("dilations", 1), ("output_padding", 0))
    )
    pads = given.get("pads", (0,) * (2 * count))
    if not all(len(each) == count for each in (strides, dilations, extra)) or len(pads) != 2 * count:
        return None
    result: list[Dim | None] = [shape[0], dims.multiply(weights[1], given.get("group", 1))]
    for axis in range(count):
        window = dims.add(dims.multiply(dims.subtract(weights[2 + axis], 1), dilations[axis]), 1)
        spread = dims.multiply(dims.subtract(shape[2 + axis], 1), strides[axis])
        result.append(dims.add(dims.add(spread, window), extra[axis] - pads[axis] - pads[axis + count]))
    return result


def _resize(node: Node, shape: Sequence[Dim]) -> Dims:
    """Sizes of the host, or floor(dim * scale) where the scale is a whole number or one over it."""
    given = node.attributes
    if "axes" in given or given.get("keep_aspect_ratio_policy", "stretch") != "stretch":
        return None
    if given.get("coordinate_transformation_mode") == "tf_crop_and_resize":
        return None
    sizes = node.dims(3)
    if sizes is not None and len(sizes) == len(shape):
        return sizes
    operand = node.operand(1 if node.since < 11 else 2)
    scales = None if operand is None else constant_elements(operand, 64)
    if scales is None or scales.size != len(shape):
        return None
    return [_scaled(dim, float(scale)) for dim, scale in zip(shape, scales.ravel().tolist(), strict=True)]


def _scaled(dim: Dim, scale: float) -> Dim | None:
    if scale >= 1 and scale.is_integer():
        return dims.multiply(dim, int(scale))
    inverse = 1 / scale if scale > 0 else 0.0
    return dims.floordiv(dim, int(inverse)) if inverse in (2.0, 4.0, 8.0, 16.0, 32.0) else None


def _tile(node: Node, shape: Sequence[Dim]) -> Dims:
    repeats = node.dims(1)
    if repeats is None or len(repeats) != len(shape):
        return None
    return [dims.multiply(dim, repeat) for dim, repeat in zip(shape, repeats, strict=True)]


def _padded(node: Node, shape: Sequence[Dim]) -> Dims:
    """In every mode the dim and what is added to it, which is below 0 where it is cut."""
    axes, pads = axes_of_pad(node, len(shape)), node.attributes.get("pads", node.ints(1))
    if axes is None or pads is None or len(pads) != 2 * len(axes):
        return None
    result = list(shape)
    for position, axis in enumerate(axes):
        result[axis] = dims.add(result[axis], pads[position] + pads[position + len(axes)])
    return result


def _deepened(node: Node, shape: Sequence[Dim]) -> Dims:
    """Blocks of space as channels, where they fill it exactly."""
    size = node.attributes["blocksize"]
    if len(shape) != 4:
        return None
    return [shape[0], dims.multiply(shape[1], size * size), *(dims.divide_exactly(dim, size) for dim in shape[2:])]


def _spread(node: Node, shape: Sequence[Dim]) -> Dims:
    """Channels as blocks of space."""
    size = node.attributes["blocksize"]
    if len(shape) != 4:
        return None
    return [shape[0], dims.divide_exactly(shape[1], size * size), *(dims.multiply(dim, size) for dim in shape[2:])]


_RULES: dict[str, Callable[[Node, Sequence[Dim]], Dims]] = {
    "MaxPool": _pool, "AveragePool": _pool, "LpPool": _pool, "ConvTranspose": _transposed_convolution, "Resize": _resize,
    "Upsample": _resize, "Tile": _tile, "Pad": _padded, "SpaceToDepth": _deepened, "DepthToSpace": _spread,
}  # fmt: skip
