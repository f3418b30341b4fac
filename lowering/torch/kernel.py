"""A plan's kernel as a torch function over whole buffers: what is launched where no Triton kernel is. Each loop is an axis."""

from __future__ import annotations

from collections.abc import Callable

from coset.lowering.kernels.kernel import (
    Attention,
    Chain,
    Computed,
    Grouped,
    Plan,
    Pointwise,
    Product,
    Recurrence,
    Rows,
    Scan,
    Scatter,
    Sort,
    Statistics,
    reads,
    writes,
)
from coset.lowering.torch.kernel_products import write_attention, write_chain, write_grouped, write_product, write_statistics
from coset.lowering.torch.kernel_recurrence import write_recurrence
from coset.lowering.torch.kernel_rows import write_pointwise, write_rows, write_scan, write_scatter, write_sort
from coset.lowering.torch.kernel_writer import KernelWriter

WRITERS: dict[type[Computed], Callable[..., None]] = {
    Pointwise: write_pointwise, Rows: write_rows, Scan: write_scan, Sort: write_sort, Product: write_product, Grouped: write_grouped,
    Attention: write_attention, Statistics: write_statistics, Chain: write_chain, Scatter: write_scatter, Recurrence: write_recurrence,
}  # fmt: skip
"""What writes the body of a kernel of each kind, given the writer and the kernel."""


def kernel_function(kernel: Computed, plan: Plan, symbols: dict[str, str]) -> str:
    """The text of a function `kernel.name(buffers read, buffers written, dims)`; `symbols` are the Python names of dim symbols."""
    writer = KernelWriter(kernel, plan, symbols)
    for name in reads(kernel):
        buffer = plan.buffers[name]
        if buffer.packed is not None:
            writer.lines.append(f"{name} = unpacked({name}, {buffer.packed}, {buffer.dtype.name!r})")
    WRITERS[type(kernel)](writer, kernel)
    head = f"def {kernel.name}({', '.join(kernel_arguments(kernel, symbols))}):"
    document = f'    """{", ".join(kernel.terms) or kernel.name}."""'
    return "\n".join([head, document, *(f"    {line}" for line in writer.lines)]) + "\n"


def kernel_arguments(kernel: Computed, symbols: dict[str, str]) -> list[str]:
    """The arguments of that function in a call: buffers by name, then the dims."""
    buffers = dict.fromkeys((*reads(kernel), *writes(kernel)))
    return [*buffers, *dict.fromkeys(symbols.values()), "device"]
