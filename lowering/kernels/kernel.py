"""What a GPU kernel computes: loops over scalar expressions (`scalar`), which are read from buffers and stored into buffers. The kinds of
kernels, each from a file of its own, and what every kind is asked."""

from coset.lowering.kernels.attention import Attention
from coset.lowering.kernels.computed import (
    ColumnFold,
    Computed,
    Dot,
    Kernel,
    PlaceKey,
    extents_of,
    loops_of,
    reads,
    results_in,
    step_values,
    stores_of,
    used_picks,
    values_of,
    with_step_values,
    with_stores,
    writes,
)
from coset.lowering.kernels.library import Library
from coset.lowering.kernels.plan import Buffer, HeldTerm, Plan, StreamPlan
from coset.lowering.kernels.pointwise import Pointwise
from coset.lowering.kernels.product import Grouped, Product
from coset.lowering.kernels.recurrence import Recurrence, State
from coset.lowering.kernels.retraced import Chain, Slope, Statistics, Sum, stores_by_sum
from coset.lowering.kernels.rows import Rows
from coset.lowering.kernels.scalar import (
    Choose,
    InBounds,
    IndexValue,
    Load,
    Loop,
    Pick,
    Result,
    Scalar,
    ScalarConstant,
    ScalarOp,
    Store,
    dims_in,
    operands_of,
    scalars,
)
from coset.lowering.kernels.scan import Scan
from coset.lowering.kernels.scatter import ATOMIC, LOOP, SORTED, Scatter
from coset.lowering.kernels.sort import Sort

__all__ = [
    "ATOMIC", "KINDS", "LOOP", "SORTED", "Attention", "Buffer", "Chain", "Choose", "ColumnFold", "Computed", "Dot", "Grouped",
    "HeldTerm", "InBounds", "IndexValue",
    "Kernel", "Library", "Load", "Loop", "Pick", "PlaceKey", "Plan", "Pointwise", "Product", "Recurrence", "Result", "Rows", "Scalar",
    "ScalarConstant", "ScalarOp", "Scan", "Scatter", "Slope", "Sort", "State", "Statistics", "Store", "StreamPlan", "Sum", "dims_in",
    "extents_of", "loops_of", "operands_of", "reads", "results_in", "scalars", "step_values", "stores_by_sum", "stores_of", "used_picks",
    "values_of", "with_step_values", "with_stores", "writes",
]  # fmt: skip

KINDS: tuple[type[Computed], ...] = (
    Pointwise, Rows, Scan, Sort, Product, Grouped, Attention, Statistics, Chain, Scatter, Recurrence,
)  # fmt: skip
"""Every kind of kernel that plans are made of. Each stage above says in a table of its own how it treats a kind."""
