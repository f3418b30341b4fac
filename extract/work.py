"""How much one op does: elements, FLOP, rows of a contraction and bytes, with the dim symbols bound to numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, prod

from coset.ir import dims
from coset.ir.dims import Dim
from coset.ir.op import Attributes, Op
from coset.ir.types import TensorType, TupleType, Type
from coset.targets.target import Tiles

ASSUMED_DIM = 16  # for a symbol that the caller gives no number for (a data-dependent count, say)
SOFTMAX = 110  # FLOP of a product that take as long as one element of a softmax does, its mask included
ROW = 300  # FLOP of a rotation that take as long as the beginning of a row (`python -m benchmarks.rotations`)
PANEL = 16  # columns that MLAS multiplies at once: a product with fewer costs as much


class WorkSizes:
    """Numbers for dims and types under one binding, remembered by type."""

    def __init__(self, binding: Mapping[str, int]) -> None:
        self.binding = dict(binding)
        self.assumed: dict[str, int] = {}
        self._elements: dict[Type, float] = {}

    def number(self, dim: Dim) -> int:
        """The dim as a number, never negative; a symbol without a number is taken as `ASSUMED_DIM` and noted in `assumed`."""
        if isinstance(dim, int):
            return dim
        for name in dims.symbols(dim) - self.binding.keys():
            self.binding[name] = self.assumed[name] = ASSUMED_DIM
        return max(0, dims.evaluate(dim, self.binding))

    def product(self, numbers: Sequence[Dim]) -> float:
        """The product of dims."""
        total = 1.0
        for dim in numbers:
            total *= self.number(dim)
        return total

    def elements(self, type: Type) -> float:
        """Elements of a tensor of known rank, of all items of a tuple; 0 for anything else."""
        found = self._elements.get(type)
        if found is None:
            if isinstance(type, TupleType):
                found = sum(self.elements(item) for item in type.items)
            else:
                found = self.product(type.shape) if isinstance(type, TensorType) and type.shape is not None else 0.0
            self._elements[type] = found
        return found

    def bytes(self, type: Type) -> float:
        """Bytes of a value; 0 for what is no tensor of known rank."""
        if isinstance(type, TupleType):
            return sum(self.bytes(item) for item in type.items)
        return self.elements(type) * type.dtype.bytes if isinstance(type, TensorType) else 0.0


@dataclass(frozen=True)
class ContractionWork:
    """A contraction as batches of [rows, depth] x [depth, columns]. `panel`: the columns that a kernel without tiles works on at once."""

    batch: float
    rows: float
    depth: float
    columns: float
    panel: int = PANEL

    def flops(self, tiles: Tiles | None) -> float:
        """A multiplication and an addition each, with what the panels or the tiles waste."""
        if tiles is None:
            return 2 * self.batch * self.rows * self.depth * max(self.columns, self.panel)
        sizes = ((self.rows, tiles.rows), (self.depth, tiles.depth), (self.columns, tiles.columns))
        return 2 * self.batch * prod(ceil(size / tile) * tile for size, tile in sizes)


Contraction = Callable[[Attributes, Type, Sequence[Type], WorkSizes], ContractionWork]


def _dot(attributes: Attributes, _: Type, operands: Sequence[Type], sizes: WorkSizes) -> ContractionWork:
    lhs, rhs = operands[0], operands[1]
    assert isinstance(lhs, TensorType) and isinstance(rhs, TensorType)
    batch = sizes.product([lhs.dims[axis] for axis in attributes["lhs_batch"]])
    depth = sizes.product([lhs.dims[axis] for axis in attributes["lhs_contract"]])
    each = max(1.0, batch * depth)
    return ContractionWork(batch, sizes.elements(lhs) / each, depth, sizes.elements(rhs) / each)


def _gemm(attributes: Attributes, _: Type, operands: Sequence[Type], sizes: WorkSizes) -> ContractionWork:
    a, b = operands[0], operands[1]
    assert isinstance(a, TensorType) and isinstance(b, TensorType)
    rows, depth = reversed(a.dims) if attributes["transA"] else a.dims
    return ContractionWork(1, sizes.number(rows), sizes.number(depth), sizes.number(b.dims[0 if attributes["transB"] else 1]))


def _convolution(attributes: Attributes, result: Type, operands: Sequence[Type], sizes: WorkSizes) -> ContractionWork:
    """Every result element sums over one filter; columns are the channels of a group. Kernels without tiles pad none of them: what they
    lose on few channels is in their rates."""
    weight = operands[1]
    assert isinstance(weight, TensorType)
    groups: int = attributes["group"] if "group" in attributes else attributes["feature_group_count"]
    channels = max(1.0, float(sizes.number(weight.dims[0])))
    return ContractionWork(groups, sizes.elements(result) / channels, sizes.product(weight.dims[1:]), channels / groups, panel=0)


def _transposed_convolution(attributes: Attributes, _: Type, operands: Sequence[Type], sizes: WorkSizes) -> ContractionWork:
    """Every element of x is spread by one filter."""
    x, weight = operands[0], operands[1]
    assert isinstance(x, TensorType) and isinstance(weight, TensorType)
    groups, channels = attributes["group"], max(1.0, float(sizes.number(x.dims[1])))
    return ContractionWork(groups, sizes.elements(x) / channels, channels / groups, sizes.product(weight.dims[1:]), panel=0)


def _filter_gradient(attributes: Attributes, result: Type, operands: Sequence[Type], sizes: WorkSizes) -> ContractionWork:
    """Every element of a filter sums over one channel of g."""
    g = operands[1]
    assert isinstance(g, TensorType) and isinstance(result, TensorType)
    groups, channels = attributes["group"], max(1.0, float(sizes.number(g.dims[1])))
    return ContractionWork(groups, channels / groups, sizes.elements(g) / channels, sizes.product(result.dims[1:]), panel=0)


CONTRACTIONS: dict[str, Contraction] = {
    "stablehlo.dot_general": _dot,
    "onnx.Gemm": _gemm,
    "stablehlo.convolution": _convolution,
    "onnx.Conv": _convolution,
    "onnx.ConvTranspose": _transposed_convolution,
    "kernel.transposed_convolution": _transposed_convolution,
    "kernel.filter_gradient": _filter_gradient,
}


def _self_attention(attributes: Attributes, _: Type, operands: Sequence[Type], sizes: WorkSizes) -> tuple[float, float]:
    """The projections, the scores, their softmax, and the weighted values. Each product of a head has as many rows as a sequence."""
    x, weights = operands[0], operands[1]
    assert isinstance(x, TensorType) and isinstance(weights, TensorType)
    batch, length, depth = (sizes.number(dim) for dim in x.dims)
    projected = sizes.number(weights.dims[1])
    heads: int = attributes["num_heads"]
    scores = batch * length * length * (4 * projected / 3 + SOFTMAX * heads)
    return 2.0 * batch * length * depth * projected + scores, float(length)


def _rotated_heads(_: Attributes, result: Type, operands: Sequence[Type], sizes: WorkSizes) -> tuple[float, float]:
    """Two products and a sum for each element, and what each row takes whatever it holds."""
    assert isinstance(result, TensorType)
    return 3 * sizes.elements(result) + ROW * sizes.product(result.dims[:-1]), float("inf")


KERNELS: dict[str, Callable[[Attributes, Type, Sequence[Type], WorkSizes], tuple[float, float]]] = {
    "ort.SelfAttention": _self_attention,
    **dict.fromkeys(("ort.RotatedHeads", "ort.RotatedSequences", "ort.RotatedParts", "ort.RotatedSequenceParts"), _rotated_heads),
}


def pieces_of(op: Op, attributes: Attributes, result: Type, operands: Sequence[Type], sizes: WorkSizes) -> float:
    """The pieces that a runtime goes through one by one: products of a batch beyond the first, operands that are joined, a slice."""
    contraction = CONTRACTIONS.get(op.name)
    if contraction is not None:
        return max(0.0, contraction(attributes, result, operands, sizes).batch - 1)
    return {"stablehlo.concatenate": float(len(operands)), "stablehlo.slice": 1.0}.get(op.name, 0.0)


def flops_of(
    op: Op, attributes: Attributes, result: Type, operands: Sequence[Type], sizes: WorkSizes, tiles: Tiles | None = None
) -> tuple[float, float]:
    """FLOP, those that `tiles` pad a contraction with among them, and its rows (infinite for other ops, which have no panels to fill)."""
    contraction = CONTRACTIONS.get(op.name)
    if contraction is not None:
        product = contraction(attributes, result, operands, sizes)
        return product.flops(tiles), product.rows
    kernel = KERNELS.get(op.name)
    if kernel is not None:
        return kernel(attributes, result, operands, sizes)
    if op.flops is not None:
        return float(sizes.number(op.flops(result, operands, attributes))), float("inf")
    return sizes.elements(result), float("inf")
