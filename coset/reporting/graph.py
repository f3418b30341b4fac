"""A program as the graph that is drawn: its ops with all that is known of them; weights, views and parts of results folded into them."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from coset.extract.plain import saturated_of
from coset.extract.priced import Priced
from coset.extract.storage import BROADCAST
from coset.ir.builtin import ABSENT, DIMS, TOKEN
from coset.ir.evaluate import describe
from coset.ir.program import Program
from coset.ir.term import CONSTANT, GET, INPUT, TUPLE, Term, topological
from coset.reporting.layout import layout

SHOWN = 160  # letters of an attribute
MOST_CONSTANTS = 12  # that are listed for a node
HIDDEN = frozenset({"payload", "results", "type", "name", "domain", "effect"})  # attributes that the rest says already
GIVEN = "given"  # the attributes of a node that was kept as it came
MARKS = (CONSTANT, DIMS)
LEFT_OUT = (ABSENT, TOKEN, TUPLE)


@dataclass(frozen=True)
class DrawnSide:
    """A program to be drawn: `names` of its values, the class and the state of its terms, the rules that made them, and their prices.
    `kinds`: what the file calls the op of a value, by the value's name."""

    program: Program
    names: Mapping[Term, str]
    classes: Mapping[Term, int]
    states: Mapping[Term, str]
    rules: Mapping[Term, Sequence[str]] = field(default_factory=dict)
    prices: Priced | None = None
    kinds: Mapping[str, str] = field(default_factory=dict)


class _Listed:
    """Values by number, each once."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._numbers: dict[Hashable, int] = {}

    def number(self, value: Any, key: Hashable) -> int:
        """The number of `value`, which is known by `key`."""
        if key not in self._numbers:
            self._numbers[key] = len(self.values)
            self.values.append(value)
        return self._numbers[key]


def graph_of(side: DrawnSide, *, breaks: Callable[[Sequence[int], Sequence[int]], Sequence[int]] | None = None) -> dict[str, Any]:
    """The graph as the page reads it: columns of what is known of each node, in an order in which operands come first, and the edges.
    `breaks`: the layers at which its columns begin, from the classes of its nodes and the layer of each."""
    drawn = _Drawn(side)
    operands = drawn.operands()
    first = layout(operands)
    classes = [side.classes.get(term, 0) for term in drawn.terms]
    placed = first if breaks is None else layout(operands, breaks=breaks(classes, first.layers))
    ops, types, attributes, rules, kinds = _Listed(), _Listed(), _Listed(), _Listed(), _Listed()
    nodes: dict[str, list[Any]] = defaultdict(list)
    for number, term in enumerate(drawn.terms):
        shown = attributes_of(term)
        nodes["op"].append(ops.number(*[describe(term)] * 2))
        nodes["type"].append(types.number(*[str(term.type)] * 2))
        nodes["attributes"].append(attributes.number(shown, tuple(shown)))
        nodes["name"].append(drawn.name(term))
        nodes["kind"].append(kinds.number(*[drawn.kind(term)] * 2))
        nodes["outputs"].append(drawn.outputs.get(term, []))
        nodes["constants"].append(drawn.constants_of(term))
        nodes["class"].append(classes[number])
        nodes["state"].append(side.states.get(term, ""))
        nodes["rules"].append([rules.number(name, name) for name in side.rules.get(term, ())])
        nodes["seconds"].append(drawn.seconds(term))
        nodes["host"].append(int(side.prices is not None and term in side.prices.hosted))
    nodes["x"], nodes["y"], nodes["layer"] = placed.x, placed.y, placed.layers
    edges = [[edge.source, edge.target, *([-1] if edge.lanes is None else edge.lanes)] for edge in placed.edges]
    return {
        "nodes": dict(nodes), "edges": edges, "ops": ops.values, "types": types.values, "attributes": attributes.values,
        "rules": rules.values, "kinds": kinds.values,
        "breaks": placed.breaks, "width": placed.width, "height": placed.height, "folded": drawn.views,
        "hosted": side.prices is not None and bool(side.prices.hosted),
    }  # fmt: skip


def attributes_of(term: Term) -> list[tuple[str, str]]:
    """The attributes as text, and how many ops each payload function has."""
    found = []
    pairs = [pair for name, value in term.attributes for pair in (value if name == GIVEN else [(name, value)])]
    for name, value in pairs:
        if name not in HIDDEN:
            text = str(value)
            found.append((name, text if len(text) <= SHOWN else f"{text[:SHOWN]}…"))
    for number, region in enumerate(term.regions):
        found.append((f"function {number + 1}", f"{sum(1 for _ in topological(region.results))} ops"))
    return found


class _Drawn:
    """The terms of a side that are nodes, in order."""

    def __init__(self, side: DrawnSide) -> None:
        self.side = side
        saturated, order = saturated_of(side.program.roots)
        self.constant = {term for number, term in enumerate(order) if number in saturated.constant}
        ends = {term for _, term in side.program.outputs}
        self.shown: dict[Term, Term | None] = {}  # what a term is drawn as: itself, what it is a view or a part of, or nothing
        self.terms: list[Term] = []
        self.views = 0
        for term in order:
            if term in self.constant or term.op in MARKS or term.op in LEFT_OUT:
                self.shown[term] = None
            elif (term.op is GET or self._is_view(term)) and (term not in ends or term.op is GET):
                self.shown[term] = self.shown[term.operands[0]]
                self.views += term.op is not GET
            else:
                self.shown[term] = term
                self.terms.append(term)
        self.outputs: dict[Term, list[str]] = {}
        for name, root in side.program.outputs:
            node = self.shown[root]
            if node is not None:
                self.outputs.setdefault(node, []).append(name)
        self.parts: dict[Term, list[str]] = {}
        for term in order:
            if term.op is GET and term in side.names and self.shown[term] is not None:
                self.parts.setdefault(self.shown[term], []).append(side.names[term])  # type: ignore[arg-type]

    def _is_view(self, term: Term) -> bool:
        """True for a broadcast that costs nothing: its users read it as what it is a broadcast of."""
        return term.op.name == BROADCAST and not self.seconds(term)

    def seconds(self, term: Term) -> float:
        """What a term is predicted to cost."""
        return 0.0 if self.side.prices is None else self.side.prices.seconds.get(term, 0.0)

    def operands(self) -> list[list[int]]:
        """The nodes that each node reads."""
        number = {term: place for place, term in enumerate(self.terms)}
        found = []
        for term in self.terms:
            read = (self.shown[operand] for operand in self._operands(term))
            found.append([number[node] for node in dict.fromkeys(read) if node is not None])
        return found

    def _operands(self, term: Term) -> list[Term]:
        """The operands, those of a tuple one by one."""
        found: list[Term] = []
        stack = list(reversed(term.operands))
        while stack:
            operand = stack.pop()
            if operand.op is TUPLE:
                stack += reversed(operand.operands)
            else:
                found.append(operand)
        return found

    def constants_of(self, term: Term) -> list[str]:
        """The weights and numbers that a node reads, in words."""
        found = []
        for operand in self._operands(term):
            source = operand
            while source.op.name == BROADCAST and source.operands[0] in self.constant:
                source = source.operands[0]
            if (source in self.constant or source.op in MARKS) and source.op not in LEFT_OUT:
                name = self.side.names.get(source) or self.side.names.get(operand)
                words = _number(source) or str(source.type)
                found.append(f"{name}: {words}" if name else words)
        return [*found[:MOST_CONSTANTS], *([f"and {len(found) - MOST_CONSTANTS} more"] if len(found) > MOST_CONSTANTS else [])]

    def name(self, term: Term) -> str:
        """What the value of a node is called; of an input its own name."""
        if term.op is INPUT:
            return str(term.attribute("name"))
        return self.side.names.get(term) or ", ".join(self.parts.get(term, ()))

    def kind(self, term: Term) -> str:
        """What the file calls the op; nothing where it has no node of its own there, or calls it as we do."""
        names = (self.side.names.get(term, ""), *self.parts.get(term, ()))
        found = next((self.side.kinds[name] for name in names if name in self.side.kinds), "")
        return "" if found == describe(term).rpartition(".")[2] else found


def _number(term: Term) -> str:
    """The value of a constant that is a single number; nothing of any other."""
    if term.op is not CONSTANT or prod(term.tensor.static or ()) != 1:
        return ""
    return f"{term.attribute('value').array().reshape(-1)[0]!s} {term.tensor.dtype.name}"


def aligned(first: Mapping[str, Any]) -> Callable[[Sequence[int], Sequence[int]], Sequence[int]]:
    """For `graph_of`: columns that begin where those of the graph `first` do, by the classes that both have."""
    nodes = first["nodes"]
    begins = first["breaks"]

    def breaks(classes: Sequence[int], layers: Sequence[int]) -> Sequence[int]:
        here: dict[int, int] = {}
        for eclass, layer in zip(classes, layers, strict=True):
            here[eclass] = max(layer, here.get(eclass, 0))
        depth = max(layers, default=-1) + 1
        mates: dict[int, list[int]] = defaultdict(list)  # layer there -> the layers here of the same values
        for eclass, layer in zip(nodes["class"], nodes["layer"], strict=True):
            if eclass in here:
                mates[layer].append(here[eclass])
        known = sorted(mates)
        found = [0]
        for begin in begins[1:] if known else ():
            after = bisect_left(known, begin)
            near = min(known[max(0, after - 1) : after + 1], key=lambda layer: (abs(layer - begin), -layer))
            wanted = min(mates[near]) + begin - near
            if found[-1] < wanted < depth:
                found.append(wanted)
        return found

    return breaks
