"""ATen's products and convolutions with their gradients, as hub terms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from coset.dialects.aten.node import AtenNode, Built, NoTerm, aten, convert, given_as, wide
from coset.dialects.composite import kernel
from coset.dialects.hub import stablehlo, stablehlo_data
from coset.dialects.hub.terms import broadcast, dot, reshape
from coset.dialects.onnx import ops as onnx_ops
from coset.dialects.onnx import windows as onnx_windows
from coset.dialects.onnx.arithmetic import add, compare, fold, iota, multiply, padded, unsqueeze
from coset.ir import dims
from coset.ir.builtin import ABSENT, absent
from coset.ir.dims import Dim, Poly
from coset.ir.term import Term, make
from coset.ir.types import F32, I32

PRIMITIVES = (kernel, onnx_ops, onnx_windows, stablehlo, stablehlo_data)  # their ops are made here

# ---------------------------------------------------------------- products


@aten("mm.default")
def _mm(node: AtenNode) -> Built:
    return dot(node.term("self"), node.term("mat2"), lhs_contract=(1,), rhs_contract=(0,))


@aten("bmm.default")
def _bmm(node: AtenNode) -> Built:
    return batched(node.term("self"), node.term("mat2"))


def batched(a: Term, b: Term) -> Term:
    """The products of two stacks of matrices."""
    return dot(a, b, lhs_batch=(0,), rhs_batch=(0,), lhs_contract=(2,), rhs_contract=(1,))


@aten("_grouped_mm.default")
def _grouped_mm(node: AtenNode) -> Built:
    """Rows that lie in the order of their groups, each times the matrix of its group; `offs`: where the groups end. What rows behind the
    last group give torch does not say."""
    x, w, ends = node.term("self"), node.term("mat2"), node.arguments.get("offs")
    if node.arguments.get("bias") is not None or node.dtype != x.tensor.dtype:
        raise NoTerm("a grouped product with a bias, or in another element type, has no term")
    if ends is None and x.tensor.rank == w.tensor.rank == 3:
        return batched(x, w)
    if ends is None or (x.tensor.rank, w.tensor.rank) != (2, 3):
        raise NoTerm("a grouped product of what its groups do not divide by rows has no term")
    rows = iota((x.tensor.dims[0], w.tensor.dims[0]), 0, ends.tensor.dtype)
    before = compare(rows, "GE", unsqueeze(ends, 0))
    group = fold(convert(before, I32), (1,), keep=False)
    return make("kernel.grouped_product", (x, w, group), {"ascending": True})


@aten("_scaled_mm.default")
def _scaled_mm(node: AtenNode) -> Built:
    """8-bit floats summed in f32, times a scale for each operand, or for each row and column."""
    operands = [convert(node.term(key), F32) for key in ("self", "mat2")]
    total = dot(*operands, lhs_contract=(1,), rhs_contract=(0,))
    for axis, key in enumerate(("scale_a", "scale_b")):
        total = multiply(total, _spread_scale(node.term(key), total, axis))
    if node.arguments.get("bias") is not None:
        total = add(total, broadcast(convert(node.term("bias"), F32), total.tensor.dims, (1,)))
    if node.arguments.get("scale_result") is not None or node.dtype.bits < 16:
        raise NoTerm("a scaled product that is rounded to 8-bit floats has no term: how it saturates torch does not say")
    return convert(total, node.dtype)


def _spread_scale(scale: Term, total: Term, axis: int) -> Term:
    """A scale for each index along `axis` of a product, or one for all, as large as the product."""
    wanted, sizes = total.tensor.dims, scale.tensor.dims
    if scale.tensor.dtype == F32 and all(dim == 1 for dim in sizes):
        return broadcast(reshape(scale, ()), wanted, ())
    if scale.tensor.dtype == F32 and len(sizes) == 2 and sizes[axis] == wanted[axis] and sizes[1 - axis] == 1:
        return broadcast(reshape(scale, (wanted[axis],)), wanted, (axis,))
    raise NoTerm("a scaled product has a term where scales are f32, one for each operand or for each row and column")


@aten("addmm.default")
def _addmm(node: AtenNode) -> Built:
    product = dot(node.term("mat1"), node.term("mat2"), lhs_contract=(1,), rhs_contract=(0,))
    return _added(node, product)


def _added(node: AtenNode, product: Term) -> Term:
    """beta * self + alpha * product; with a beta of 0 a NaN of self is not added."""
    own, beta, alpha = node.term("self"), node["beta"], node["alpha"]
    working = product.tensor.dtype if beta in (0, 1) and alpha == 1 else wide(product.tensor.dtype)
    total = convert(product, working)
    if alpha != 1:
        total = multiply(total, given_as(working, alpha))
    if beta != 0:
        summand = convert(own, working)
        total = add(total, summand if beta == 1 else multiply(summand, given_as(working, beta)))
    return convert(total, node.dtype)


# ---------------------------------------------------------------- convolutions


class ConvolutionWindows:
    """The numbers of a convolution in all its spatial dims."""

    def __init__(self, node: AtenNode) -> None:
        count = node.term("input").tensor.rank - 2
        self.count = count
        self.strides, self.padding, self.dilations = (node.ints(key, count) for key in ("stride", "padding", "dilation"))
        self.groups, self.transposed = int(node.number("groups")), bool(node["transposed"])
        self.more = node.ints("output_padding", count) if self.transposed else (0,) * count

    def reaches(self, w: Term) -> list[Dim]:
        """How far the last element of the window is from its first."""
        return [dims.multiply(dims.subtract(k, 1), d) for k, d in zip(w.tensor.dims[2:], self.dilations, strict=True)]


@aten("convolution.default")
def _convolution(node: AtenNode) -> Built:
    windows, x, w = ConvolutionWindows(node), node.term("input"), node.term("weight")
    bias = absent() if node["bias"] is None else node.term("bias")
    return _transposed(windows, x, w, bias, node.shape[2:]) if windows.transposed else _forward(windows, x, w, bias)


def _forward(windows: ConvolutionWindows, x: Term, w: Term, bias: Term) -> Term:
    attributes = {
        "strides": windows.strides, "dilations": windows.dilations, "group": windows.groups,
        "padding": tuple((pad, pad) for pad in windows.padding),
    }  # fmt: skip
    return make("onnx.Conv", (x, w, bias), attributes)


def _transposed(windows: ConvolutionWindows, x: Term, w: Term, bias: Term, wanted: Sequence[Dim]) -> Term:
    """The transpose of a convolution, whose result is as large as `wanted`; w [in, out / groups, ..]."""
    pairs: list[tuple[Dim, Dim]] = []
    for extent, reach, pad, stride, size in zip(
        x.tensor.dims[2:], windows.reaches(w), windows.padding, windows.strides, wanted, strict=True
    ):
        low = dims.subtract(reach, pad)
        spread = dims.add(dims.multiply(dims.subtract(extent, 1), stride), 1)
        high = dims.subtract(dims.add(dims.subtract(size, 1), dims.add(reach, 1)), dims.add(spread, low))
        pairs.append((low, high))
    attributes = {"strides": windows.strides, "dilations": windows.dilations, "group": windows.groups, "padding": tuple(pairs)}
    if any(isinstance(width, Poly) for pair in pairs for width in pair):
        x = padded(
            x, (0, 0, *(low for low, _ in pairs)), (0, 0, *(high for _, high in pairs)), 0, (0, 0, *(s - 1 for s in windows.strides))
        )
        attributes |= {"strides": (1,) * windows.count, "padding": ((0, 0),) * windows.count}
    found = make("kernel.transposed_convolution", (x, w), attributes)
    return found if bias.op is ABSENT else make("stablehlo.add", (found, broadcast(bias, found.tensor.dims, (1,))))


@aten("convolution_backward.default")
def _convolution_backward(node: AtenNode) -> Built:
    """The gradients of the input, the filters and the bias, each where it is asked for."""
    windows, g, x, w = ConvolutionWindows(node), node.term("grad_output"), node.term("input"), node.term("weight")
    wanted = node["output_mask"]
    results: list[Term | None] = [None, None, None]
    if wanted[0]:
        own = _forward(windows, g, w, absent()) if windows.transposed else _transposed(windows, g, w, absent(), x.tensor.dims[2:])
        results[0] = own
    if wanted[1]:
        results[1] = _filters_gradient(windows, g, x, w) if windows.transposed else _filters_gradient(windows, x, g, w)
    if wanted[2]:
        axes = (0, *range(2, g.tensor.rank))
        total = make("stablehlo.reduce", (convert(g, wide(g.tensor.dtype)),), {"dimensions": axes, "combiner": "add"})
        results[2] = convert(total, g.tensor.dtype)
    return tuple(results)


def _filters_gradient(windows: ConvolutionWindows, x: Term, g: Term, w: Term) -> Term:
    """What moves the filters w [O, I / groups, ..] of a convolution from x [N, I, ..] to g [N, O, ..]."""
    pairs: list[tuple[Dim, Dim]] = []
    for extent, size, reach, pad, stride in zip(
        x.tensor.dims[2:], g.tensor.dims[2:], windows.reaches(w), windows.padding, windows.strides, strict=True
    ):
        whole = dims.add(dims.multiply(dims.subtract(size, 1), stride), dims.add(reach, 1))
        pairs.append((pad, dims.subtract(dims.subtract(whole, extent), pad)))
    if any(isinstance(width, Poly) for pair in pairs for width in pair):
        x = padded(x, (0, 0, *(low for low, _ in pairs)), (0, 0, *(high for _, high in pairs)), 0)
        pairs = [(0, 0)] * windows.count
    attributes: dict[str, Any] = {
        "strides": windows.strides, "padding": tuple(pairs), "dilations": windows.dilations, "group": windows.groups,
    }  # fmt: skip
    return reshape(make("kernel.filter_gradient", (x, g), attributes), w.tensor.dims)
