"""A snapshot: the e-graph as plain numbers, small enough to send from the search process at every checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from coset.egraph.heavy import ReachedGraph, free_classes, heavy_classes
from coset.egraph.log import Log
from coset.rules.pattern import Application, Variable

if TYPE_CHECKING:
    from coset.egraph.encode import EncodedRule
    from coset.egraph.search import Search

Node = tuple[str, tuple[int, ...], int]  # constructor, operand classes, payload number
Made = dict[tuple[int, int], list[int]]  # by the class and the position of an e-node, the numbers of rules
_first = itemgetter(0)


@dataclass(frozen=True)
class Snapshot:
    """The part of the e-graph that the roots reach, classes numbered densely from 0.

    `nodes[c]` are the e-nodes of class c, `types[c]` the numbers of its types, `known` the classes with a value at build time;
    `source` says for each input term (by number) its class and e-node; `origins` which rules (by number) made an e-node that
    the input has not; `merges` which rules made an e-node that it has equal to what they matched; `collapses` the classes where a rule
    made two values one without any node; `heavy` those that no program may store (`egraph.heavy`).
    """

    stop: str
    iterations: int
    enodes: int
    eclasses: int
    nodes: list[list[Node]]
    types: list[list[int]]
    known: list[int]
    roots: list[int]
    source: dict[int, tuple[int, int]]
    origins: dict[tuple[int, int], list[int]]
    merges: dict[tuple[int, int], list[int]]
    collapses: dict[int, list[int]]
    fired: dict[int, int]
    new_types: list[Any]
    new_payloads: list[Any]
    constructors: dict[str, tuple[str, int]]
    log: Log | None = None
    heavy: list[int] = field(default_factory=list)


def take(search: Search, stop: str) -> Snapshot:
    """Freeze the e-graph of `search` into a snapshot."""
    tables, read = search.engine.frozen()
    nodes_of: dict[Any, list[tuple[str, tuple[Any, ...], int]]] = {}
    for name, (_, arity) in sorted(search.tables.constructors.items()):
        rows = [(row.inputs, row.output) for row in tables[name].rows] if name in tables else []  # the inputs are a new list at each look
        for inputs, output in sorted(rows, key=_first):
            nodes_of.setdefault(output, []).append((name, tuple(inputs[:arity]), read(inputs[arity])))
    class_of_term = {read(row.inputs[0]): row.output for row in tables["term"].rows}
    roots = [class_of_term[search.numbers[term]] for term in search.request.roots]
    dense = _reach(roots, nodes_of)
    nodes, index = _numbered(dense, nodes_of)
    types: list[list[int]] = [[] for _ in dense]
    for row in tables["type_of"].rows:
        value, number = row.inputs
        if value in dense:
            types[dense[value]].append(read(number))
    known = sorted(dense[value] for row in tables["known"].rows if (value := row.inputs[0]) in dense)
    source = _source(search, class_of_term, index)
    applied = _applied(search, tables, read)
    situations = search.situations(tables)
    original = set(source.values())
    origins, merges, collapses = _provenance(search, applied, situations, read, index, dense, original)
    heavy: list[int] = []
    if search.heavy:
        given = (dense[value] for value in class_of_term.values() if value in dense)
        graph = ReachedGraph(nodes, index, dense, free_classes(search, types, known, given))
        reached = {number: [row for row in rows if row[0] in dense] for number, rows in applied.items()}
        heavy = heavy_classes(search, graph, reached, situations, read)
    types_from, payloads_from = search.shared
    return Snapshot(
        stop, search.iterations, sum(len(rows) for rows in nodes_of.values()), len(nodes_of), nodes, types, known,
        [dense[value] for value in roots], source, origins, merges, collapses,
        {number: len(rows) for number, rows in applied.items()},
        search.tables.types.values[types_from:], search.tables.payloads.values[payloads_from:],
        {name: (op.name, arity) for name, (op, arity) in search.tables.constructors.items()},
        None if search.recorder is None else search.recorder.log, heavy,
    )  # fmt: skip


def _numbered(
    dense: Mapping[Any, int], nodes_of: Mapping[Any, list[tuple[str, tuple[Any, ...], int]]]
) -> tuple[list[list[Node]], dict[Any, tuple[int, int]]]:
    """The nodes of each class, and where each stands: its class and its position, by constructor, operand values and payload."""
    nodes: list[list[Node]] = [[] for _ in dense]
    index: dict[Any, tuple[int, int]] = {}
    for value, number in dense.items():
        for name, operands, payload in nodes_of[value]:
            index[name, operands, payload] = (number, len(nodes[number]))
            nodes[number].append((name, tuple([dense[o] for o in operands]), payload))
    return nodes, index


def _reach(roots: list[Any], nodes_of: dict[Any, list[tuple[str, tuple[Any, ...], int]]]) -> dict[Any, int]:
    dense: dict[Any, int] = {}
    stack = list(reversed(roots))
    while stack:
        value = stack.pop()
        if value in dense:
            continue
        dense[value] = len(dense)
        for _, operands, _ in reversed(nodes_of[value]):
            stack.extend(o for o in reversed(operands) if o not in dense)
    return dense


def _source(search: Search, class_of_term: dict[int, Any], index: dict[Any, tuple[int, int]]) -> dict[int, tuple[int, int]]:
    found: dict[int, tuple[int, int]] = {}
    for term, number in search.numbers.items():
        operands = tuple(class_of_term[search.numbers[o]] for o in term.operands)
        key = (search.tables.constructor(term.op, len(term.operands)), operands, search.tables.payload(term.attributes, term.regions))
        if key in index:
            found[number] = index[key]
    return found


def _applied(search: Search, tables: Any, read: Callable[[Any], int]) -> dict[int, list[Any]]:
    """The rows of all applied matches (classes, situation), by rule."""
    found: dict[int, list[Any]] = {}
    for frame in search.frames:
        for row in tables[frame.done].rows:
            number, *rest = row.inputs
            found.setdefault(read(number), []).append(rest)
    return dict(sorted(found.items()))


def _provenance(
    search: Search,
    applied: dict[int, list[Any]],
    situations: dict[Any, Any],
    read: Callable[[Any], int],
    index: dict[Any, tuple[int, int]],
    dense: dict[Any, int],
    original: Set[tuple[int, int]],
) -> tuple[Made, Made, dict[int, list[int]]]:
    """Which rules made which e-nodes: each applied match is built again from the classes as they are now and looked up. What the input has
    (`original`) is kept apart, and of that only the roots of right sides: a rule made nothing of a node that it built below them."""
    origins: Made = {}
    merges: Made = {}
    collapses: dict[int, list[int]] = {}
    values_of = list(dense)
    for number, every in applied.items():
        encoded = search.rules[number]
        rows = [row for row in every if row[0] in dense]
        kept = [encoded.rule.typed.index(left.index) for left, right in encoded.rule.pairs if isinstance(right, Variable)]
        if rows and kept:
            collapses[encoded.number] = sorted({dense[row[column]] for row in rows for column in kept if row[column] in dense})
        if not encoded.made:
            continue
        builder = _Builder(encoded, search)
        for place, root in builder.places(rows, situations, read, index, values_of):
            if place in original and not root:
                continue
            made = (merges if place in original else origins).setdefault(place, [])
            if not made or made[-1] != number:
                made.append(number)
    return origins, merges, collapses


class _Builder:
    """Looks up the e-nodes of instances of one right side: its constructors and where operands come from, worked out once."""

    def __init__(self, encoded: EncodedRule, search: Search) -> None:
        column = {name: position for position, name in enumerate(encoded.rule.variables, start=len(encoded.rule.typed))}
        self.plans = search.plans.get(encoded.number, {})
        self.width = encoded.frame.width
        self.roots = {right.index for _, right in encoded.rule.pairs if isinstance(right, Application)}
        self.steps = [  # operands have higher numbers than their user: from the last to the first
            (node.index, search.tables.constructor(node.op, len(node.operands)),
             tuple((-1, o.index) if isinstance(o, Application) else (column[o.name], 0) for o in node.operands))
            for node in reversed(encoded.made)
        ]  # fmt: skip

    def places(
        self,
        rows: list[Any],
        situations: dict[Any, Any],
        read: Callable[[Any], int],
        index: dict[Any, tuple[int, int]],
        values_of: list[Any],
    ) -> Iterator[tuple[tuple[int, int], bool]]:
        """The (class, position) of every e-node of every instance that the snapshot holds, and whether it is a root of the right side."""
        decided: dict[Any, tuple[int, ...] | None] = {}
        for row in rows:
            plan = decided.get(row[-1])
            if plan is None:
                plan = decided[row[-1]] = self.plans[tuple(map(read, situations[row[-1]][1 : 1 + self.width]))]
                assert plan is not None
            values: dict[int, Any] = {}
            for number, name, sources in self.steps:
                operands = tuple([row[column] if column > 0 else values.get(inner) for column, inner in sources])
                place = index.get((name, operands, plan[number]))
                if place is not None:
                    values[number] = values_of[place[0]]
                    yield place, number in self.roots
