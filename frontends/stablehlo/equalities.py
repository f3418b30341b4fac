"""Which dims of an operation's operands are equal in every run that does not fail: what its constraints say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from coset.frontends.stablehlo.attributes import dims_of
from coset.frontends.stablehlo.node import MlirOperation
from coset.ir import dims
from coset.ir.dims import Dim, Shape
from coset.ir.op import find_op
from coset.ir.types import TensorType

_ALIKE = {"stablehlo.map", "stablehlo.sort"}


def equal_dims(node: MlirOperation) -> Iterator[tuple[Dim, Dim]]:
    """Pairs of dims that must be equal."""
    shapes = [operand.type.shape for operand in node.operands if isinstance(operand.type, TensorType) and operand.type.shape is not None]
    if len(shapes) != len(node.operands):
        return
    op = find_op(node.name)
    if node.name in _RULES:
        yield from _RULES[node.name](node, shapes)
    elif (op is not None and op.has("elementwise")) or node.name in _ALIKE:
        yield from _alike([shape for shape in shapes if shape])


def _concatenation(node: MlirOperation, shapes: Sequence[Shape]) -> Iterator[tuple[Dim, Dim]]:
    axis = node.value("dimension")
    yield from _alike([(*shape[:axis], *shape[axis + 1 :]) for shape in shapes])


def _reduction(_: MlirOperation, shapes: Sequence[Shape]) -> Iterator[tuple[Dim, Dim]]:
    yield from _alike(shapes[: len(shapes) // 2])


def _reshaping(node: MlirOperation, shapes: Sequence[Shape]) -> Iterator[tuple[Dim, Dim]]:
    sizes = node.result()[1]
    unknown = [dim for dim in shapes[0] if not isinstance(dim, int)]
    if len(unknown) == 1 and None not in sizes:
        total = _product(size for size in sizes if size is not None)
        rest = _product(dim for dim in shapes[0] if isinstance(dim, int))
        if rest and total % rest == 0:
            yield unknown[0], total // rest


def _normalization(node: MlirOperation, shapes: Sequence[Shape]) -> Iterator[tuple[Dim, Dim]]:
    feature = shapes[0][node.value("feature_index")]
    yield from ((feature, shape[0]) for shape in shapes[1:] if len(shape) == 1)
    yield from _alike([shape for shape in shapes if len(shape) == len(shapes[0])] if len(shapes[0]) > 1 else shapes)


def _square(_: MlirOperation, shapes: Sequence[Shape]) -> Iterator[tuple[Dim, Dim]]:
    yield shapes[0][-2], shapes[0][-1]


def _triangular(node: MlirOperation, shapes: Sequence[Shape]) -> Iterator[tuple[Dim, Dim]]:
    a, b = shapes
    yield a[-2], a[-1]
    yield a[-1], b[-2 if node.value("left_side") else -1]
    yield from zip(a[:-2], b[:-2], strict=True)


def _gathering(node: MlirOperation, shapes: Sequence[Shape]) -> Iterator[tuple[Dim, Dim]]:
    numbers = dims_of(node.op, "dimension_numbers", "GatherDimensionNumbers")
    for a, b in zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True):
        yield shapes[0][a], shapes[1][b]


def _scattering(node: MlirOperation, shapes: Sequence[Shape]) -> Iterator[tuple[Dim, Dim]]:
    numbers = dims_of(node.op, "scatter_dimension_numbers", "ScatterDimensionNumbers")
    count = len(shapes) // 2
    indices, updates = shapes[count], shapes[count + 1 :]
    yield from _alike(shapes[:count])
    yield from _alike(updates)
    for a, b in zip(numbers.input_batching_dims, numbers.scatter_indices_batching_dims, strict=True):
        yield shapes[0][a], indices[b]
    places = [dim for axis, dim in enumerate(indices) if axis != numbers.index_vector_dim]
    windows = set(numbers.update_window_dims)
    yield from zip(places, (dim for axis, dim in enumerate(updates[0]) if axis not in windows), strict=False)


def _selection(node: MlirOperation, shapes: Sequence[Shape]) -> Iterator[tuple[Dim, Dim]]:
    """The source has an element for each window."""
    ones = (1,) * len(shapes[0])
    pairs = node.value("padding")
    padding = [(0, 0)] * len(ones) if pairs is None else [(int(low), int(high)) for low, high in pairs.reshape(-1, 2)]
    windows, strides = node.value("window_dimensions", ones), node.value("window_strides", ones)
    for dim, given, window, stride, (low, high) in zip(shapes[0], shapes[1], windows, strides, padding, strict=True):
        room = dims.add(dim, low + high - window)
        yield given, dims.add(dims.floordiv(room, stride), 1)


def _convolution(node: MlirOperation, shapes: Sequence[Shape]) -> Iterator[tuple[Dim, Dim]]:
    numbers = dims_of(node.op, "dimension_numbers", "ConvDimensionNumbers")
    channels = dims.multiply(shapes[1][numbers.kernel_input_feature_dimension], node.value("feature_group_count"))
    yield shapes[0][numbers.input_feature_dimension], channels


def _scan(node: MlirOperation, shapes: Sequence[Shape]) -> Iterator[tuple[Dim, Dim]]:
    """Inputs have equally many slices."""
    axis, count = node.value("dimension"), node.value("operandSegmentSizes")[0]
    yield from _alike([shape[axis : axis + 1] for shape in shapes[:count]])


def _product(sizes: Iterator[int]) -> int:
    total = 1
    for size in sizes:
        total *= size
    return total


def _alike(shapes: Sequence[Shape]) -> Iterator[tuple[Dim, Dim]]:
    for shape in shapes[1:]:
        if len(shape) == len(shapes[0]):
            yield from zip(shapes[0], shape, strict=True)


def _contraction(node: MlirOperation, shapes: Sequence[Shape]) -> Iterator[tuple[Dim, Dim]]:
    numbers = dims_of(node.op, "dot_dimension_numbers", "DotDimensionNumbers")
    left = [*numbers.lhs_batching_dimensions, *numbers.lhs_contracting_dimensions]
    right = [*numbers.rhs_batching_dimensions, *numbers.rhs_contracting_dimensions]
    for a, b in zip(left, right, strict=True):
        yield shapes[0][a], shapes[1][b]


Rule = Callable[[MlirOperation, Sequence[Shape]], Iterator[tuple[Dim, Dim]]]
_RULES: dict[str, Rule] = {
    "stablehlo.dot_general": _contraction, "stablehlo.concatenate": _concatenation, "stablehlo.reduce": _reduction,
    "stablehlo.reduce_window": _reduction, "stablehlo.reshape": _reshaping, "stablehlo.batch_norm_inference": _normalization,
    "stablehlo.batch_norm_training": _normalization, "stablehlo.batch_norm_grad": _normalization, "stablehlo.cholesky": _square,
    "stablehlo.triangular_solve": _triangular, "stablehlo.gather": _gathering, "stablehlo.dynamic_gather": _gathering,
    "stablehlo.scatter": _scattering, "stablehlo.select_and_scatter": _selection, "stablehlo.convolution": _convolution,
    "stablehlo.dynamic_conv": _convolution, "chlo.scan": _scan,
}  # fmt: skip
