"""Kernels of products and of attention as torch."""

from __future__ import annotations

from coset.lowering.kernels.kernel import (
    Attention,
    Chain,
    Grouped,
    Product,
    Statistics,
    loops_of,
    stores_by_sum,
)
from coset.lowering.torch.elementwise import converted
from coset.lowering.torch.kernel_writer import KernelWriter


def write_product(writer: KernelWriter, kernel: Product) -> None:
    """A product of matrices."""
    outer = (*kernel.batch, *kernel.m, *kernel.n)
    writer.begin((*outer, *kernel.k))
    left = writer.matrix("m0", kernel.lhs, kernel.batch, kernel.m, kernel.k, kernel.accumulator)
    right = writer.matrix("m1", kernel.rhs, kernel.batch, kernel.n, kernel.k, kernel.accumulator)
    text = f"{left} @ {right}.mT"
    if kernel.accumulator.kind in ("int", "uint", "bool"):
        text = f"einsum_of_integers('bmk,bnk->bmn', {left}, {right}, {kernel.accumulator.bits})"
    writer.lines.append(f"total = ({text}).reshape({writer.ends(outer)})")
    writer.results["sum"] = "total"
    writer.stores(kernel.stores, len(outer))


def write_grouped(writer: KernelWriter, kernel: Grouped) -> None:
    """A product for each group of rows."""
    outer = (*kernel.m, *kernel.n)
    writer.begin((*outer, *kernel.batch, *kernel.k))
    left = writer.matrix("m0", kernel.lhs, (), kernel.m, kernel.k, kernel.accumulator)
    right = writer.matrix("m1", kernel.rhs, kernel.batch, kernel.k, kernel.n, kernel.accumulator)
    key = writer.matrix("key", kernel.key, (), kernel.m, (), kernel.key.dtype)
    writer.lines.append(f"total = grouped({left}[0], {right}, {key}.reshape(-1)).reshape({writer.ends(outer)})")
    writer.results["sum"] = "total"
    writer.stores(kernel.stores, len(outer))


def write_attention(writer: KernelWriter, kernel: Attention) -> None:
    """The scores as a whole, and their softmax as the scalar meaning has it: the largest is taken off, a row of -inf is NaN or 0."""
    outer, inner = (*kernel.batch, *kernel.m, *kernel.n), (*kernel.keys, *kernel.k)
    writer.begin((*outer, *inner))
    query = writer.matrix("m0", kernel.query, kernel.batch, kernel.m, kernel.k, kernel.accumulator)
    key = writer.matrix("m1", kernel.key, kernel.batch, kernel.keys, kernel.k, kernel.accumulator)
    rows = (*kernel.batch, *kernel.m, *kernel.keys)
    dot = converted(f"({query} @ {key}.mT)", kernel.accumulator, kernel.dtype)
    writer.lines.append(f"dot = {dot}.reshape({writer.ends(rows)})")
    writer.results["dot"] = "dot"
    scores = writer.matrix("scores", kernel.score, kernel.batch, kernel.m, kernel.keys, kernel.accumulator)
    value = writer.matrix("m2", kernel.value, kernel.batch, kernel.keys, kernel.n, kernel.accumulator)
    writer.lines.append(f"total = (weights_of({scores}, {kernel.safe}) @ {value}).reshape({writer.ends(outer)})")
    writer.results["sum"] = "total"
    writer.stores(kernel.stores, len(outer))


def _dots(writer: KernelWriter, kernel: Statistics | Chain) -> None:
    """The products that scores are made of, each as a whole."""
    batch, rows, summed, accumulator = kernel.batch, kernel.rows, kernel.summed, kernel.accumulator
    outer = (*batch, *rows)
    writer.begin(loops_of(kernel))
    for dot in kernel.dots:
        left = writer.matrix(f"{dot.name}_left", dot.lhs, batch, rows, dot.k, accumulator)
        right = writer.matrix(f"{dot.name}_right", dot.rhs, batch, summed, dot.k, accumulator)
        text = converted(f"({left} @ {right}.mT)", accumulator, dot.dtype)
        writer.lines.append(f"{dot.name} = {text}.reshape({writer.ends((*outer, *summed))})")
        writer.results[dot.name] = dot.name


def write_statistics(writer: KernelWriter, kernel: Statistics) -> None:
    """What a softmax of the scores is made with."""
    _dots(writer, kernel)
    batch, rows, summed, accumulator = kernel.batch, kernel.rows, kernel.summed, kernel.accumulator
    outer = (*batch, *rows)
    scores = writer.matrix("scores", kernel.score, batch, rows, summed, accumulator)
    writer.lines.append(f"top, share = statistics_of({scores}, {kernel.safe})")
    for name in ("top", "share"):
        writer.lines.append(f"{name} = {name}.reshape({writer.ends(outer)})")
        writer.results[name] = name
    for slope in kernel.slopes:
        reached = writer.matrix(f"{slope.name}_reached", slope.value, batch, rows, summed, accumulator)
        writer.lines.append(f"{slope.name} = (weights_of({scores}, {kernel.safe}) * {reached}).sum(2).reshape({writer.ends(outer)})")
        writer.results[slope.name] = slope.name
    writer.stores(kernel.stores, len(outer))


def write_chain(writer: KernelWriter, kernel: Chain) -> None:
    """Sums of what is made of the scores."""
    _dots(writer, kernel)
    batch, rows, summed, accumulator = kernel.batch, kernel.rows, kernel.summed, kernel.accumulator
    outer = (*batch, *rows)
    for each in kernel.sums:
        weight = writer.matrix(f"{each.name}_weight", each.weight, batch, rows, summed, accumulator)
        value = writer.matrix(f"{each.name}_value", each.value, batch, summed, each.n, accumulator)
        writer.lines.append(f"{each.name} = ({weight} @ {value}).reshape({writer.ends((*outer, *each.n))})")
        writer.results[each.name] = each.name
    for store, own in stores_by_sum(kernel):
        writer.store(store, (*outer, *own.n))
