"""Printed collectives: groups and pairs as matrices, the channel between devices, the combination as a block."""

from __future__ import annotations

from collections.abc import Sequence

from coset.ir.term import Term
from coset.lowering.stablehlo.body import PrintedBlock
from coset.lowering.stablehlo.regions import combiner_block, region_block

_NUMBERS = ("all_gather_dim", "split_dimension", "concat_dimension", "split_count", "scatter_dimension")
_MATRICES = ("replica_groups", "source_target_pairs")


def collective(body: PrintedBlock, term: Term) -> str:
    """Any collective: its attributes say which ones it has."""
    given = dict(term.attributes)
    attributes = [f"{name} = {given[name]} : i64" for name in _NUMBERS if name in given]
    attributes += [f"{name} = {_matrix(given[name])}" for name in _MATRICES if name in given]
    if given["channel_id"]:
        attributes.append(f"channel_handle = #stablehlo.channel_handle<handle = {given['channel_id']}, type = 1>")
    if given.get("use_global_device_ids"):
        attributes.append("use_global_device_ids")
    blocks = []
    if "combiner" in given:
        word, dtype = given["combiner"], term.operands[0].tensor.dtype
        blocks = [region_block(body, term.regions[0]) if word == "region" else combiner_block(body, word, dtype)]
    return body.op(term.op.name, body.typed(term.operands), attributes, body.result_types(term.type), regions=blocks)


def _matrix(rows: Sequence[Sequence[int]]) -> str:
    columns = len(rows[0]) if rows else 0
    inside = f"[{', '.join(str(list(row)) for row in rows)}]" if rows and columns else ""
    return f"dense<{inside}> : tensor<{len(rows)}x{columns}xi64>"


COLLECTIVES = ("all_gather", "all_reduce", "all_to_all", "collective_broadcast", "collective_permute", "reduce_scatter")
COLLECTIVE_PRINTERS = {f"stablehlo.{name}": collective for name in COLLECTIVES}
