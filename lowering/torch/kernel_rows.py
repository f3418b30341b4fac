"""Kernels of elementwise ops, reductions, scans, sorts and scatters as torch."""

from __future__ import annotations

from collections.abc import Sequence

from coset.ir.dims import Dim, product
from coset.lowering.kernels.kernel import (
    Loop,
    Pointwise,
    Rows,
    Scalar,
    Scan,
    Scatter,
    Sort,
)
from coset.lowering.torch.contractions import identity_text
from coset.lowering.torch.dims import tuple_text
from coset.lowering.torch.dtypes import ORDER_OF_U64, narrowed
from coset.lowering.torch.elementwise import converted
from coset.lowering.torch.kernel_writer import KernelWriter


def write_pointwise(writer: KernelWriter, kernel: Pointwise) -> None:
    """Stores over all loops."""
    writer.begin(kernel.loops)
    writer.stores(kernel.stores, len(kernel.loops))


def write_rows(writer: KernelWriter, kernel: Rows) -> None:
    """One fold after the other, then the stores."""
    writer.begin((*kernel.rows, *kernel.columns))
    count = len(kernel.rows)
    axes = tuple_text(range(count, len(writer.loops)))
    for fold in kernel.folds:
        value = f"torch.broadcast_to({converted(writer.value(fold.value), fold.value.dtype, fold.dtype)}, {writer.shape(writer.loops)})"
        kept = tuple_text([*(writer.dim(loop.extent) for loop in kernel.rows), *["1"] * len(kernel.columns)])
        text = f"fold({value}, {axes}, {fold.combiner!r}, {identity_text(fold.combiner, fold.dtype)}).reshape({kept})"
        name = f"r{len(writer.results)}"
        writer.lines.append(f"{name} = {narrowed(text, fold.dtype)}")
        writer.results[fold.name] = name
    writer.stores(kernel.row_stores, count)
    writer.stores(kernel.element_stores, len(writer.loops))


def write_scan(writer: KernelWriter, kernel: Scan) -> None:
    """All folds from the first element to each."""
    writer.begin((*kernel.rows, kernel.column))
    value = converted(writer.value(kernel.value), kernel.value.dtype, kernel.dtype)
    text = narrowed(
        f"scanned(torch.broadcast_to({value}, {writer.shape(writer.loops)}), {len(kernel.rows)}, {kernel.combiner!r})", kernel.dtype
    )
    writer.lines.append(f"scan = {text}")
    writer.results["scan"] = "scan"
    writer.stores(kernel.stores, len(writer.loops))


def write_sort(writer: KernelWriter, kernel: Sort) -> None:
    """Whole rows in order, of which the first are kept."""
    outer = (*kernel.rows, *kernel.front)
    writer.begin((*outer, kernel.column))
    rows, dtype = (*kernel.rows, kernel.column), kernel.key.dtype
    key, *values = (_along(writer, value, rows) for value in (kernel.key, *kernel.values))
    if dtype.kind == "float" and kernel.total:
        key = f"total_order({key}, one_nan=False)"
    key = f"{key} ^ {ORDER_OF_U64}" if dtype.name == "u64" else key
    writer.lines.append(f"ranked = sort({tuple_text(values)}, {key}, {len(kernel.rows)}, {kernel.direction!r})")
    count = writer.dim(_extent(kernel.front))
    for place in range(len(values)):
        writer.lines.append(f"sorted{place} = ranked[{place}][..., :{count}].reshape({writer.ends(outer)})")
        writer.results[f"sorted{place}"] = f"sorted{place}"
    writer.stores(kernel.stores, len(outer))


def _along(writer: KernelWriter, value: Scalar, own: Sequence[Loop]) -> str:
    """A value over these loops alone."""
    whole = f"torch.broadcast_to({writer.value(value)}, {writer.ends(own)})"
    return f"{whole}.reshape({writer.shape(own)})"


def write_scatter(writer: KernelWriter, kernel: Scatter) -> None:
    """Rows as matrices: the operand's by columns, and those of the updates."""
    writer.begin((*kernel.rows, *kernel.columns, *kernel.updates))
    base = writer.matrix("base", kernel.base, (), kernel.rows, kernel.columns, kernel.dtype)
    key = writer.matrix("key", kernel.key, (), kernel.updates, (), kernel.key.dtype)
    value = writer.matrix("value", kernel.value, (), kernel.updates, kernel.columns, kernel.dtype)
    rows = (*kernel.rows, *kernel.columns)
    turn = f" ^ {ORDER_OF_U64}" if kernel.dtype.name == "u64" and kernel.combiner in ("maximum", "minimum") else ""
    whole = f"scattered({base}[0]{turn}, {key}.reshape(-1), {value}[0]{turn}, {kernel.combiner!r}){turn}"
    text = narrowed(whole, kernel.dtype)
    writer.lines.append(f"total = ({text}).reshape({writer.ends(rows)})")
    writer.results["sum"] = "total"
    writer.stores(kernel.stores, len(rows))


def _extent(loops: Sequence[Loop]) -> Dim:
    return product(loop.extent for loop in loops)
