"""Components of graphs, by networkx: loaded when one is first asked for, since it is hundreds of modules."""

from __future__ import annotations

from collections.abc import Iterable

Edges = Iterable[tuple[int, int]]


def strong_components(edges: Edges, nodes: Iterable[int] = ()) -> list[set[int]]:
    """The strongly connected components of `nodes` and the ends of directed `edges`, those that others lead to first."""
    import networkx as nx

    graph: nx.DiGraph = nx.DiGraph()
    graph.add_nodes_from(nodes)
    graph.add_edges_from(edges)
    return list(nx.strongly_connected_components(graph))


def connected_components(edges: Edges, nodes: Iterable[int] = ()) -> list[set[int]]:
    """The connected components of the same, where `edges` have no direction."""
    import networkx as nx

    graph: nx.Graph = nx.Graph()
    graph.add_nodes_from(nodes)
    graph.add_edges_from(edges)
    return list(nx.connected_components(graph))
