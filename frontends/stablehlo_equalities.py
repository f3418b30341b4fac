"""Which dims of an operation's operands are equal in every run that does not fail: what its constraints say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from coset.frontends.stablehlo_attributes import Foreign, dims_of
from coset.frontends.stablehlo_node import Node
from coset.ir.dims import Dim, Shape
from coset.ir.op import find_op
from coset.ir.types import TensorType

_ALIKE = {"stablehlo.map", "stablehlo.sort", "stablehlo.complex", "stablehlo.add", "stablehlo.select_and_scatter"}


def equal_dims(node: Node) -> Iterator[tuple[Dim, Dim]]:
    """Pairs of dims that must be equal."""
    shapes = [operand.type.shape for operand in node.operands if isinstance(operand.type, TensorType) and operand.type.shape is not None]
    if len(shapes) != len(node.operands):
        return
    op = find_op(node.name)
    if node.name == "stablehlo.dot_general":
        yield from _contraction(node, shapes)
    elif node.name == "stablehlo.concatenate":
        axis = node.value("dimension")
        yield from _alike([(*shape[:axis], *shape[axis + 1 :]) for shape in shapes])
    elif node.name == "stablehlo.reduce":
        yield from _alike(shapes[: len(shapes) // 2])
    elif (op is not None and op.has("elementwise")) or node.name in _ALIKE:
        yield from _alike([shape for shape in shapes if shape])
    elif node.name == "stablehlo.reshape":
        sizes = node.result()[1]
        unknown = [dim for dim in shapes[0] if not isinstance(dim, int)]
        if len(unknown) == 1 and None not in sizes:
            total = _product(size for size in sizes if size is not None)
            rest = _product(dim for dim in shapes[0] if isinstance(dim, int))
            if rest and total % rest == 0:
                yield unknown[0], total // rest


def _product(sizes: Iterator[int]) -> int:
    total = 1
    for size in sizes:
        total *= size
    return total


def _alike(shapes: Sequence[Shape]) -> Iterator[tuple[Dim, Dim]]:
    for shape in shapes[1:]:
        if len(shape) == len(shapes[0]):
            yield from zip(shapes[0], shape, strict=True)


def _contraction(node: Node, shapes: Sequence[Shape]) -> Iterator[tuple[Dim, Dim]]:
    try:
        numbers = dims_of(node.op, "dot_dimension_numbers", "DotDimensionNumbers")
    except Foreign:
        return
    left = [*numbers.lhs_batching_dimensions, *numbers.lhs_contracting_dimensions]
    right = [*numbers.rhs_batching_dimensions, *numbers.rhs_contracting_dimensions]
    for a, b in zip(left, right, strict=True):
        yield shapes[0][a], shapes[1][b]
