"""Values of an e-graph in words: the names that the model gives them, else how they are computed from such."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from coset.egraph.saturate import Saturation
from coset.egraph.saturated import ENode
from coset.ir.program import Program
from coset.ir.program_source import source_of
from coset.ir.term import Term
from coset.rules.refusal import value_text
from coset.rules.wording import OPERATORS, short

DEEPEST = 2  # levels of ops that are written out
FORMS = 4  # ops that are listed of what a class has
NOT_SHOWN = frozenset({"shape", "broadcast_dimensions", "type", "name"})


@dataclass
class Words:
    """Names and texts of the classes of a searched `program`."""

    program: Program
    saturation: Saturation
    actual: Mapping[Term, Term] = field(default_factory=dict)  # the program's terms that those of regions stand for

    @cached_property
    def names(self) -> Mapping[int, tuple[str, ...]]:
        """What the model calls the value of a class."""
        found: dict[int, dict[str, None]] = {}
        given = source_of(self.program).names
        for term, (number, _) in self.saturation.source.items():
            own = self.actual.get(term, term)
            name = given.get(own) or (own.attribute("name") if own.op.name == "builtin.input" else None)
            if name:
                found.setdefault(number, {}).setdefault(name)
        for (name, _), root in zip(self.program.outputs, self.saturation.graph.roots if not self.actual else (), strict=False):
            found.setdefault(root, {}).setdefault(name)
        return {number: tuple(names) for number, names in found.items()}

    @cached_property
    def given(self) -> frozenset[int]:
        """The classes of the values that the model computes."""
        return frozenset(number for number, _ in self.saturation.source.values())

    def value(self, eclass: int) -> str:
        """What a class is called; one without a name by how it is computed."""
        names = self.names.get(eclass)
        return f"`{names[0]}`" if names else self.text(eclass)

    def place(self, eclass: int) -> str:
        """A class with its name, where it has one, and how the model computes it."""
        names = self.names.get(eclass)
        node = self._shown(eclass)
        moved = node.op.has("movement") and len(node.children) == 1 and not names
        text = f"{short(node.op.name)}({self.place(node.children[0])})" if moved else self.text(eclass, named=False)
        return f"`{names[0]}` = {text}" if names and text != names[0] else text

    def text(self, eclass: int, *, named: bool = True, depth: int = DEEPEST) -> str:
        """How a class is computed: as the model does where it does, else in the smallest way."""
        return self._text(eclass, depth, named)[0]

    def node(self, eclass: int, position: int) -> str:
        """How one e-node of a class computes it."""
        return self._of(self.saturation.graph.nodes[eclass][position], DEEPEST)[0]

    def _text(self, eclass: int, depth: int, named: bool) -> tuple[str, bool]:
        """And whether it is a sum or a product, which goes into parentheses."""
        names = self.names.get(eclass)
        return (names[0], False) if named and names else self._of(self._shown(eclass), depth)

    def _of(self, node: ENode, depth: int) -> tuple[str, bool]:
        if node.op.name == "builtin.constant":
            return value_text(dict(node.attributes)["value"]), False
        if not node.children and node.op.name == "builtin.input":
            return str(dict(node.attributes)["name"]), False
        if depth <= 0 and node.children:
            return "..", False
        free = len(node.children) == 1 and node.op.has("movement")
        inner = [self._text(child, depth - (not free), True) for child in node.children]
        if node.op.name in OPERATORS and len(inner) == 2:
            return f" {OPERATORS[node.op.name]} ".join(f"({text})" if mixed else text for text, mixed in inner), True
        if short(node.op.name) == "bcast" and self._shown(node.children[0]).op.name == "builtin.constant":
            return inner[0]
        said = [text for text, _ in inner]
        said += [f"{name}: {value_text(value)}" for name, value in node.attributes if name not in NOT_SHOWN and _telling(value)]
        return f"{short(node.op.name)}({', '.join(said)})", False

    def forms(self, eclass: int) -> str:
        """The ops that compute a class, those of the model first."""
        nodes = sorted(self.saturation.graph.nodes[eclass], key=lambda node: not node.original)
        names = list(dict.fromkeys(short(node.op.name) for node in nodes))
        return ", ".join(names[:FORMS]) + (f" and {len(names) - FORMS} more" if len(names) > FORMS else "")

    def _shown(self, eclass: int) -> ENode:
        nodes = [node for node in self.saturation.graph.nodes[eclass] if eclass not in node.children]  # x + 0 is one of x's
        return next((node for node in nodes if node.original), None) or min(nodes, key=self._size)

    def _size(self, node: ENode) -> float:
        return 1 + sum(self._smallest[child] for child in node.children)

    @cached_property
    def _smallest(self) -> list[float]:
        """Of each class the ops of its smallest form, counted as a tree."""
        graph = self.saturation.graph
        sizes = [float("inf")] * len(graph.nodes)
        users: list[list[tuple[int, int]]] = [[] for _ in graph.nodes]
        waiting: dict[tuple[int, int], int] = {}
        heap: list[tuple[float, int]] = []
        for number, nodes in enumerate(graph.nodes):
            for position, node in enumerate(nodes):
                children = set(node.children)
                waiting[number, position] = len(children)
                for child in children:
                    users[child].append((number, position))
                if not children:
                    heap.append((1.0, number))
        heapq.heapify(heap)
        while heap:
            size, number = heapq.heappop(heap)
            if sizes[number] <= size:
                continue
            sizes[number] = size
            for user, position in users[number]:
                waiting[user, position] -= 1
                if not waiting[user, position]:
                    whole = 1 + sum(sizes[child] for child in graph.nodes[user][position].children)
                    if whole < sizes[user]:
                        heapq.heappush(heap, (whole, user))
        return sizes


def _telling(value: object) -> bool:
    """Attributes that are neither absent nor long."""
    return value is not None and value != () and len(value_text(value)) <= 24
