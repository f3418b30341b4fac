"""Which ops stand directly above which in the e-graph: a rule is declared when every edge of its left side is there.

Of the rules whose ops are all present about half never find an op of their left side above the next one. To declare such a rule takes
0.3 ms, and to look for it some microseconds for each node of it in every iteration, found or not; edges are few and grow slowly.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from coset.egraph import door

HEADS, EDGES = "heads", "edges"
PRELUDE = f"""
(relation head (T i64))
(relation edge (i64 i64 i64))
(ruleset {HEADS})
(ruleset {EDGES})
"""
Edge = tuple[str, int, str]  # a constructor, the place of an operand, a constructor that this operand is a node of


@dataclass
class Edges:
    """The edges that are in an e-graph, of those that are `wanted`; `arities` by constructor."""

    wanted: Collection[Edge]
    arities: Mapping[str, int]
    present: set[Edge] = field(default_factory=set)
    names: list[str] = field(init=False)  # constructors by number
    declared: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.names = sorted({name for above, _, below in self.wanted for name in (above, below)})

    def update(self, engine: door.Engine, sizes: Mapping[str, int]) -> None:
        """Take note of the edges that are there; `sizes` are the rows of each table."""
        for text in self._texts([name for name in self.names if name not in self.declared and sizes.get(name)]):
            engine.parse(text)
        engine.ruleset(HEADS)
        engine.ruleset(EDGES)
        if engine.size("edge") > len(self.present):
            self.present = {(self.names[above], place, self.names[below]) for above, place, below in engine.integers("edge")}

    def _texts(self, new: Iterable[str]) -> Iterable[str]:
        """The rules that note the nodes of `new` constructors and what stands below them."""
        heads = {below for _, _, below in self.wanted}
        numbers = {name: number for number, name in enumerate(self.names)}
        for name in new:
            self.declared.add(name)
            node = f"(= e ({name} {' '.join(f'x{i}' for i in range(self.arities[name]))} p))"
            if name in heads:
                yield f'(rule ({node}) ((head e {numbers[name]})) :ruleset {HEADS} :name "head_{name}")'
            for place in sorted({place for above, place, _ in self.wanted if above == name}):
                edge = f"(edge {numbers[name]} {place} below)"
                yield f'(rule ({node} (head x{place} below)) ({edge}) :ruleset {EDGES} :name "edge_{name}_{place}")'
