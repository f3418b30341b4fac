"""ATen's pools with their gradients, as hub terms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coset.dialects.aten.node import AtenNode, Built, NoTerm, aten, by_onnx, convert, wide
from coset.dialects.hub import stablehlo_regions
from coset.dialects.hub.terms import dot, literal, reshape, splat, transpose
from coset.dialects.onnx import ops as onnx_ops
from coset.dialects.onnx import windows as onnx_windows
from coset.dialects.onnx.arithmetic import divide, iota, padded
from coset.dialects.onnx.pool_positions import largest_positions
from coset.ir import dims
from coset.ir.dims import Dim
from coset.ir.term import Term, make

PRIMITIVES = (onnx_ops, onnx_windows, stablehlo_regions)  # their ops are made here
Pairs = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Pool:
    """Windows over the last dims: `padding` at both ends, and `extra` behind it so that the last window is whole (`ceil_mode`)."""

    window: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[int, ...]
    dilations: tuple[int, ...]
    extra: tuple[int, ...]

    @property
    def whole(self) -> Pairs:
        """All padding; negative numbers at the end cut off what no window reaches."""
        return tuple((pad, pad + more) for pad, more in zip(self.padding, self.extra, strict=True))


def pool_of(node: AtenNode, x: Term, result: Sequence[Dim], count: int) -> Pool:
    """The windows of a pool over the last `count` dims of `x`, whose result has the sizes `result`.

    Raises:
        NoTerm: the padding that `ceil_mode` adds depends on a symbol.
    """
    window = node.ints("kernel_size", count)
    given = node.ints("stride")
    strides = node.ints("stride", count) if given else window
    padding = node.ints("padding", count)
    dilations = node.ints("dilation", count) if "dilation" in node.arguments else (1,) * count
    extra = []
    for extent, size, k, s, p, d in zip(x.tensor.dims[-count:], result, window, strides, padding, dilations, strict=True):
        needed = dims.add(dims.multiply(dims.subtract(size, 1), s), (k - 1) * d + 1)
        more = dims.subtract(needed, dims.add(extent, 2 * p))
        if not isinstance(more, int) and node["ceil_mode"] and not node.name.startswith("avg_pool"):
            raise NoTerm("with ceil_mode the padding of a pool depends on a symbol")
        extra.append(max(more, 0) if isinstance(more, int) else 0)
    return Pool(window, strides, padding, dilations, tuple(extra))


def _batched(x: Term, count: int) -> Term:
    """`x` with a batch dim where it has none."""
    return x if x.tensor.rank == count + 2 else reshape(x, (1, *x.tensor.dims))


# ---------------------------------------------------------------- the largest


@aten("max_pool2d_with_indices.default", "max_pool3d_with_indices.default")
def _max_pool(node: AtenNode) -> Built:
    """The largest elements, and where each stands in its plane."""
    count = 3 if "3d" in node.name else 2
    x = _batched(node.term("self"), count)
    pool = pool_of(node, x, node.shape[-count:], count)
    attributes = {"window": pool.window, "strides": pool.strides, "dilations": pool.dilations, "padding": pool.whole}
    values = make("onnx.MaxPool", (x,), attributes)
    plane = x.tensor.dims[2:]
    flat = reshape(iota((dims.product(plane),), 0), plane)
    places = make("stablehlo.broadcast_in_dim", (flat,), {"shape": x.tensor.dims, "broadcast_dimensions": tuple(range(2, count + 2))})
    return tuple(reshape(each, node.shape) for each in (values, largest_positions(x, places, attributes)))


@aten("max_pool2d_with_indices_backward.default")
def _max_pool_backward(node: AtenNode) -> Built:
    """Each gradient added where its largest element stands."""
    x, g, at = node.term("self"), node.term("grad_output"), node.term("indices")
    outer = x.tensor.dims[:-2]
    size, count = dims.product(x.tensor.dims[-2:]), dims.product(g.tensor.dims[-2:])
    working = wide(x.tensor.dtype)
    rows = dims.product(outer)
    empty = splat(0, working, (rows, size))
    operands = (empty, reshape(at, (rows, count)), reshape(convert(g, working), (rows, count)))
    total = make("onnx.ScatterElements", operands, {"axis": 1, "combiner": "add"})
    return convert(reshape(total, x.tensor.dims), x.tensor.dtype)


# ---------------------------------------------------------------- means


@aten("avg_pool2d.default", "avg_pool3d.default")
def _avg_pool(node: AtenNode) -> Built:
    count = int(node.name[len("avg_pool")])
    x = _batched(node.term("self"), count)
    pool = pool_of(node, x, node.shape[-count:], count)
    divisor = node.arguments.get("divisor_override")
    working = convert(x, wide(node.dtype))
    if divisor is not None:
        return reshape(convert(divide(_total(pool, working, pool.whole), float(divisor)), node.dtype), node.shape)
    attributes = {
        "kernel_shape": pool.window, "strides": pool.strides, "pads": (*pool.padding, *pool.padding),
        "ceil_mode": int(bool(node["ceil_mode"])), "count_include_pad": int(bool(node["count_include_pad"])),
    }  # fmt: skip
    (mean,) = by_onnx("AveragePool", (working,), attributes)
    return convert(mean if mean.tensor.rank == len(node.shape) else reshape(mean, node.shape), node.dtype)


def _total(pool: Pool, x: Term, padding: Pairs) -> Term:
    attributes = {"window": pool.window, "strides": pool.strides, "dilations": pool.dilations, "padding": padding}
    return make("part.window_sum", (x,), attributes)


@aten("avg_pool2d_backward.default")
def _avg_pool_backward(node: AtenNode) -> Built:
    """Each gradient over the count of its window, added to all elements of the window."""
    count = 2
    shape = node.term("self").tensor.dims
    x, g = (_batched(node.term(key), count) for key in ("self", "grad_output"))
    pool = pool_of(node, x, g.tensor.dims[-count:], count)
    working = wide(g.tensor.dtype)
    g = convert(g, working)
    divisor = node["divisor_override"]
    if divisor is not None:
        share = divide(g, float(divisor))
    else:
        ones = splat(1, working, (1, 1, *x.tensor.dims[2:]))
        inside = bool(node["count_include_pad"])
        if inside:
            low = (0, 0, *pool.padding)
            ones = make("stablehlo.pad", (ones, splat(1, working, ())), {"low": low, "high": low, "interior": (0,) * len(low)})
        rest = tuple((0, more) for more in pool.extra) if inside else pool.whole
        share = divide(g, _total(pool, ones, rest))
    low = tuple(k - 1 - p for k, p in zip(pool.window, pool.padding, strict=True))
    high: list[Dim] = []
    for extent, size, k, s, before in zip(x.tensor.dims[2:], g.tensor.dims[2:], pool.window, pool.strides, low, strict=True):
        spread = dims.add(dims.multiply(dims.subtract(size, 1), s), 1)
        high.append(dims.subtract(dims.add(extent, k - 1), dims.add(spread, before)))
    around = padded(share, (0, 0, *low), (0, 0, *high), 0, (0, 0, *(s - 1 for s in pool.strides)))
    attributes = {"window": pool.window, "strides": (1,) * count, "dilations": (1,) * count, "padding": ((0, 0),) * count}
    return reshape(convert(make("part.window_sum", (around,), attributes), node.dtype), shape)


# ---------------------------------------------------------------- means over parts of a size that the result says


def _shares(extent: int, parts: int) -> np.ndarray[Any, Any]:
    """[extent, parts]: what share each element has in the mean of each part."""
    found = np.zeros((extent, parts))
    for part in range(parts):
        first, last = part * extent // parts, -(-(part + 1) * extent // parts)
        found[first:last, part] = 1 / (last - first)
    return found


def _spread(node: AtenNode, x: Term, extents: Sequence[Dim], parts: Sequence[Dim], *, back: bool) -> Term:
    """`x` times the matrix of shares along each of its last dims, or times its transpose."""
    working = wide(x.tensor.dtype)
    x = convert(x, working)
    count = len(extents)
    for place, (extent, size) in enumerate(zip(extents, parts, strict=True)):
        if not isinstance(extent, int) or not isinstance(size, int):
            raise NoTerm("an adaptive pool over a dim that only a run tells")
        axis = x.tensor.rank - count + place
        matrix = literal(_shares(extent, size).astype(working.numpy), working)
        product = dot(x, matrix, lhs_contract=(axis,), rhs_contract=(1 if back else 0,))
        order = list(range(product.tensor.rank - 1))
        order.insert(axis, product.tensor.rank - 1)
        x = transpose(product, tuple(order))
    return convert(x, node.dtype)


@aten("_adaptive_avg_pool2d.default", "_adaptive_avg_pool3d.default")
def _adaptive(node: AtenNode) -> Built:
    count = 3 if "3d" in node.name else 2
    x = node.term("self")
    extents, parts = x.tensor.dims[-count:], node.shape[-count:]
    if all(size == 1 for size in parts):
        axes = tuple(range(x.tensor.rank - count, x.tensor.rank))
        mean = make("onnx.ReduceMean", (convert(x, wide(x.tensor.dtype)),), {"dimensions": axes})
        return reshape(convert(mean, node.dtype), node.shape)
    return _spread(node, x, extents, parts, back=False)


@aten("_adaptive_avg_pool2d_backward.default", "_adaptive_avg_pool3d_backward.default")
def _adaptive_backward(node: AtenNode) -> Built:
    count = 3 if "3d" in node.name else 2
    g, x = node.term("grad_output"), node.term("self")
    return _spread(node, g, x.tensor.dims[-count:], g.tensor.dims[-count:], back=True)
