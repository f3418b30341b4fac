"""Scatters as scatters by rows, which kernels compute: index vectors become numbers of rows, and many updates are sorted by these once.

The dims that indices, batches or inserted dims say are the rows, merged into one dim; the windows, which have to be whole, are the columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from coset.dialects.hub.terms import convert, reshape, transpose
from coset.dialects.onnx import arithmetic as a
from coset.dialects.onnx.selection import ordered
from coset.dialects.onnx.selection import take as rows_at
from coset.ir.dims import Dim, evaluate, product
from coset.ir.term import Term, make, rewritten
from coset.ir.types import I32, I64, DType, TupleType
from coset.lowering.planning.kinds import KernelLimits, is_plain
from coset.lowering.planning.scattering import COMBINERS, FEW, is_unordered

_LAST = (1 << 31) - 1


def by_rows(roots: Iterable[Term], limits: KernelLimits, binding: Mapping[str, int]) -> tuple[Term, ...]:
    """`roots` with each scatter that a kernel computes as one by rows. `binding` gives typical numbers of dim symbols: they decide whether
    the updates are sorted, and the result holds for all."""
    return rewritten(roots, lambda term: _by_rows(term, limits, binding) if _is_taken(term) else term)


def _is_taken(term: Term) -> bool:
    """True for a scatter of plain numbers whose windows are whole along dims that no index moves."""
    if term.op.name != "stablehlo.scatter" or isinstance(term.type, TupleType) or term.attribute("combiner") not in COMBINERS:
        return False
    x, indices, updates = (operand.tensor for operand in term.operands)
    if not is_plain(x) or not is_plain(indices) or 0 in (*x.dims, *updates.dims):
        return False
    columns, windows = _columns(term), term.attribute("update_window_dims")
    whole = all(x.dims[axis] == updates.dims[window] for axis, window in zip(columns, windows, strict=True))
    named = set(term.attribute("scatter_dims_to_operand_dims"))
    return whole and bool(named) and not set(columns) & named


def _columns(term: Term) -> tuple[int, ...]:
    """The operand's axes that windows move along."""
    gone = (*term.attribute("inserted_window_dims"), *term.attribute("input_batching_dims"))
    return tuple(axis for axis in range(term.tensor.rank) if axis not in gone)


def _by_rows(term: Term, limits: KernelLimits, binding: Mapping[str, int]) -> Term:
    x, indices, updates = term.operands
    columns, windows = _columns(term), term.attribute("update_window_dims")
    rows = tuple(axis for axis in range(x.tensor.rank) if axis not in columns)
    order = (*rows, *columns)
    widths = tuple(x.tensor.dims[axis] for axis in columns)
    table = transpose(x, order)
    merged = reshape(table, (product(table.tensor.dims[: len(rows)]), *widths))
    scattered = tuple(axis for axis in range(updates.tensor.rank) if axis not in windows)
    count = product(updates.tensor.dims[axis] for axis in scattered)
    values = reshape(transpose(updates, (*scattered, *windows)), (count, *widths))
    ascending = term.attribute("indices_are_sorted") and len(rows) == 1 and indices.tensor.dtype.kind == "int"
    keys = reshape(_keys(term, rows, narrow=not ascending), (count,))
    if not ascending and evaluate(count, dict(binding)) > FEW and not is_unordered(term, limits):
        keys, places = ordered((keys, a.iota((count,), 0, _index_type(count))))
        values, ascending = rows_at(values, places, 0), True
    attributes = {
        "update_window_dims": tuple(range(1, len(widths) + 1)), "inserted_window_dims": (0,), "input_batching_dims": (),
        "scatter_indices_batching_dims": (), "scatter_dims_to_operand_dims": (0,), "index_vector_dim": 1, "indices_are_sorted": ascending,
        "combiner": term.attribute("combiner"),
    }  # fmt: skip
    found = make("stablehlo.scatter", (merged, keys, values), attributes)
    inverse = tuple(order.index(axis) for axis in range(len(order)))
    return transpose(reshape(found, table.tensor.dims), inverse)


def _index_type(count: Dim) -> DType:
    return I32 if isinstance(count, int) and count <= _LAST else I64


def _keys(term: Term, rows: tuple[int, ...], *, narrow: bool) -> Term:
    """The number of the row of each index vector; -1 for one that is outside. Where not `narrow`, the one number of each as it is."""
    x, indices, updates = term.operands
    vector, named = term.attribute("index_vector_dim"), term.attribute("scatter_dims_to_operand_dims")
    extents = tuple(x.tensor.dims[axis] for axis in rows)
    wide = indices.tensor.dtype.bits == 64 or indices.tensor.dtype.name == "u32" or _index_type(product(extents)) is I64
    dtype = I64 if wide else I32
    shape = tuple(dim for axis, dim in enumerate(updates.tensor.dims) if axis not in term.attribute("update_window_dims"))
    places: dict[int, Term] = {}
    for position, axis in enumerate(named):
        part = indices if vector == indices.tensor.rank else a.take(indices, vector, position, position + 1)
        places[axis] = convert(reshape(part, shape), dtype)
    for axis, where in zip(term.attribute("input_batching_dims"), term.attribute("scatter_indices_batching_dims"), strict=True):
        places[axis] = a.iota(shape, where - (where > vector), dtype)
    if not narrow:
        return places[rows[0]]
    outside: list[Term] = []
    flat: Term | None = None  # 0
    for axis, extent in zip(rows, extents, strict=True):
        place = places.get(axis)
        if axis in named:
            outside += [a.compare(places[axis], "LT", 0), a.compare(places[axis], "GE", extent)]
        if flat is None or place is None:
            flat = place if flat is None else a.multiply(flat, extent)
        else:
            flat = a.add(a.multiply(flat, extent), place)
    assert flat is not None, "an index names a row"
    if len(rows) == 1 and (not wide or _index_type(extents[0]) is I64):
        return flat  # an index outside is no row's number as it is
    checked = outside[0]
    for condition in outside[1:]:
        checked = a.either(checked, condition)
    return convert(a.select(checked, -1, flat), _index_type(product(extents)))
