"""Components of graphs, beside those of networkx."""

from __future__ import annotations

import random
import subprocess
import sys

import networkx as nx
import pytest

from coset.extract.graphs import connected_components, strong_components


@pytest.mark.parametrize("seed", range(60))
def test_components_are_those_of_networkx(seed: int) -> None:
    """Random graphs from sparse to dense, with loops, parallel edges and nodes that nothing touches."""
    draw = random.Random(seed)
    nodes = draw.sample(range(1000), draw.randint(1, 60))
    edges = [(draw.choice(nodes), draw.choice(nodes)) for _ in range(draw.randint(0, 2 * len(nodes)))]
    directed = nx.MultiDiGraph(edges)
    directed.add_nodes_from(nodes)
    strong = strong_components(edges, nodes)
    assert sorted(map(sorted, strong)) == sorted(map(sorted, nx.strongly_connected_components(directed)))
    place = {node: number for number, group in enumerate(strong) for node in group}
    assert all(place[end] <= place[start] for start, end in edges)
    assert sorted(map(sorted, connected_components(edges, nodes))) == sorted(map(sorted, nx.connected_components(directed.to_undirected())))


def test_a_long_ring_needs_no_recursion() -> None:
    ring = [(number, (number + 1) % 50_000) for number in range(50_000)]
    assert strong_components(ring) == connected_components(ring) == [set(range(50_000))]
    assert [min(group) for group in strong_components(ring[:-1])] == list(range(49_999, -1, -1))


def test_nothing_and_nodes_alone() -> None:
    assert strong_components([]) == connected_components([]) == []
    assert strong_components([], [3, 1]) == connected_components([], [3, 1]) == [{3}, {1}]


WITHOUT_CYCLE = """
import sys
from coset.extract.ilp import solve_exactly
from coset.extract.problem import Choice, Problem
problem = Problem(((Choice(1.0, (1,)), Choice(3.0, ())), (Choice(1.0, ()),)), (0,))
found = solve_exactly(problem, 3.0, nodes=100, seconds=60)
assert found.picks == {0: 0, 1: 0}, found
assert "networkx" not in sys.modules
"""


def test_picks_without_a_cycle_need_no_networkx() -> None:
    subprocess.run([sys.executable, "-c", WITHOUT_CYCLE], check=True)
