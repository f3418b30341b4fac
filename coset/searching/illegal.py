"""Why a target runs no node of an op that a search found."""

from __future__ import annotations

from coset.egraph.saturated import Saturated
from coset.extract.cost import Pricer


def why_illegal(op: str, graph: Saturated, pricer: Pricer) -> str:
    """Why the target has no form for any e-node of the op; "" if it has one for some, or the graph has none."""
    reason = ""
    for number, nodes in enumerate(graph.nodes):
        for node in nodes:
            if node.op.name != op:
                continue
            types = tuple(graph.types[child] for child in node.children)
            if pricer.form(node.op, node.attributes, graph.types[number], types, original=node.original) is not None:
                return ""
            reason = pricer.why_illegal(node.op, node.attributes, types)
    return reason
