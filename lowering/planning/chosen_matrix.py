"""Products of each row with a matrix of its own that an index chooses from some, as one call of `kernel.grouped_product`: before thin
products are opened, which would read the chosen matrices as they stand.
"""

from __future__ import annotations

from dataclasses import dataclass

from coset.dialects.hub.terms import reshape, transpose
from coset.ir.dims import product
from coset.ir.term import Term, make
from coset.lowering.planning.grouped import KEPT, is_grouped


@dataclass(frozen=True)
class _Chosen:
    """The matrices [groups, a, b] and the index of each of the leading dims' places."""

    matrices: Term
    group: Term


def chosen_matrix(term: Term) -> Term | None:
    """The contraction as a grouped product, or None where it is none that a kernel computes."""
    lhs, rhs = term.operands
    for side, other in (("rhs", "lhs"), ("lhs", "rhs")):
        operand, rows = (rhs, lhs) if side == "rhs" else (lhs, rhs)
        found = _chosen(operand)
        lead = operand.tensor.rank - 2
        batch, contract = term.attribute(f"{side}_batch"), term.attribute(f"{side}_contract")
        if found is None or batch != tuple(range(lead)) or len(contract) != 1 or contract[0] < lead:
            continue
        other_batch, (depth,) = term.attribute(f"{other}_batch"), term.attribute(f"{other}_contract")
        free = tuple(axis for axis in range(rows.tensor.rank) if axis not in (*other_batch, depth))
        if any(rows.tensor.dims[axis] != 1 for axis in free):
            continue
        count = product(rows.tensor.dims[axis] for axis in other_batch)
        x = reshape(transpose(rows, (*other_batch, *free, depth)), (count, rows.tensor.dims[depth]))
        w = found.matrices if contract[0] == lead else transpose(found.matrices, (0, 2, 1))
        if x.tensor.dtype != w.tensor.dtype or term.tensor.dtype != x.tensor.dtype:
            continue
        made = make(KEPT, (x, w, reshape(found.group, (count,))), {"ascending": False})
        if is_grouped(made):
            return reshape(made, term.tensor.dims)
    return None


def _chosen(term: Term) -> _Chosen | None:
    """What a gather of whole matrices along the first dim of three takes, at indices that are its first dims."""
    if term.op.name != "stablehlo.gather" or term.operands[0].tensor.rank != 3:
        return None
    matrices, indices = term.operands
    lead = term.tensor.rank - 2
    plain = (term.attribute("collapsed_slice_dims"), term.attribute("start_index_map"), term.attribute("operand_batching_dims"))
    if plain != ((0,), (0,), ()) or term.attribute("offset_dims") != (lead, lead + 1):
        return None
    if term.attribute("slice_sizes")[1:] != matrices.tensor.dims[1:] or term.attribute("index_vector_dim") < lead:
        return None
    return _Chosen(matrices, reshape(indices, term.tensor.dims[:lead]))
