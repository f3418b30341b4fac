"""Predicted seconds of many matrix products at once: the cost that orders chains, the same as `Pricer`'s for one of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from coset.extract.cost import Pricer
from coset.extract.work import PANEL
from coset.ir.op import Array, get_op
from coset.ir.types import DType, tensor
from coset.targets.target import Curve, Kernel, Target, Tiles

ProductCost = Callable[[DType, int, int, Array, int], Array]


def product_seconds(target: Target) -> ProductCost:
    """The cost of [batch, m, k] x [batch, k, n] for an array of k, s; infinite where the target has no kernel."""
    pricer = Pricer(target, {})
    op = get_op("stablehlo.dot_general")
    kernels: dict[tuple[DType, bool], Kernel | None] = {}

    def kernel_of(dtype: DType, batched: bool) -> Kernel | None:
        lead = (2,) if batched else ()
        axes = tuple(range(len(lead)))
        attributes = (
            ("lhs_batch", axes), ("lhs_contract", (len(lead) + 1,)), ("rhs_batch", axes), ("rhs_contract", (len(lead),)),
        )  # fmt: skip
        matrix = tensor(dtype, *lead, 2, 2)
        form = pricer.form(op, attributes, matrix, (matrix, matrix))
        return None if form is None else target.kernels[form.kernel]

    def cost(dtype: DType, batch: int, m: int, k: Array, n: int) -> Array:
        key = (dtype, batch > 1)
        if key not in kernels:
            kernels[key] = kernel_of(*key)
        kernel = kernels[key]
        if kernel is None:
            return np.full(len(k), np.inf)
        return _seconds(kernel, dtype, batch, m, k.astype(np.float64), n)

    return cost


def _seconds(kernel: Kernel, dtype: DType, batch: int, m: int, k: Array, n: int) -> Array:
    rate = kernel.rate(dtype.name)
    working = np.zeros_like(k)
    if rate is not None:
        flops = _flops(kernel.tiles, batch, m, k, n)
        share = np.ones_like(k)
        if kernel.rows is not None:
            share = np.minimum(share, kernel.rows.at(max(1.0, m)))
        if kernel.work is not None:
            share = np.minimum(share, _at(kernel.work, np.maximum(1.0, flops)))
        working = flops / (rate.value * share)
    moving = np.zeros_like(k)
    if kernel.bandwidth is not None:
        moved = batch * (m * k + k * n + m * n) * dtype.bytes
        moving = moved / _at(kernel.bandwidth, moved)
    pieces = kernel.piece.value * (batch - 1) if kernel.piece is not None else 0.0
    return kernel.launch.value + pieces + np.maximum(working, moving)


def _flops(tiles: Tiles | None, batch: int, m: int, k: Array, n: int) -> Array:
    """As `coset.extract.work.Product.flops`."""
    if tiles is None:
        return 2.0 * batch * m * k * max(n, PANEL)
    rows, columns = (-(-size // tile) * tile for size, tile in ((m, tiles.rows), (n, tiles.columns)))
    return 2.0 * batch * rows * (np.ceil(k / tiles.depth) * tiles.depth) * columns


def _at(curve: Curve, x: Array) -> Array:
    xs, ys = np.log(np.array(curve.points)).T
    found: Array = np.exp(np.interp(np.log(x), xs, ys))
    return found
