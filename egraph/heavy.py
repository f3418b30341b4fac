"""Which classes of an e-graph a program may not store, by range: values inside a defined op that is opened, and what rests on them alone.

Rules look into a defined op whatever its parts weigh. A class may be stored if the input has it, if it is known at build time or has no
floats, or if a rule made it over classes that may be stored; but not as a node that is too heavy in its situation
(`egraph.ranges.too_heavy`). What moves the elements of what may be stored may be stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from coset.egraph.tables import Tables
from coset.ir.types import TensorType
from coset.rules.pattern import Application, Pattern

if TYPE_CHECKING:
    from coset.egraph.encode import EncodedRule
    from coset.egraph.search import Search

Key = tuple[int, ...]


@dataclass(frozen=True)
class ReachedGraph:
    """The classes that roots reach, as a snapshot numbers them. `index`: the place of an e-node by constructor, operand values and payload;
    `dense`: the number of a class by value; `free`: classes that may be stored in any case."""

    nodes: Sequence[Sequence[tuple[str, tuple[int, ...], int]]]
    index: Mapping[Any, tuple[int, int]]
    dense: Mapping[Any, int]
    free: frozenset[int]

    @cached_property
    def values(self) -> list[Any]:
        """The value of each class."""
        return list(self.dense)


@dataclass(frozen=True)
class _Instance:
    """A rule at classes: those that it has on the left, those that it made beside its roots, and which of these are too heavy there."""

    left: frozenset[int]
    made: frozenset[int]
    heavy: frozenset[int]


def free_classes(search: Search, types: Sequence[Sequence[int]], known: Iterable[int], given: Iterable[int]) -> frozenset[int]:
    """The classes of values that are no floats, with the `known` ones and those that are `given`."""
    tables = search.tables.types.values
    plain = (number for number, own in enumerate(types) if not all(_is_float(tables[each]) for each in own))
    return frozenset((*known, *given, *plain))


def _is_float(type: object) -> bool:
    return isinstance(type, TensorType) and type.dtype.kind == "float"


def heavy_classes(
    search: Search, graph: ReachedGraph, applied: Mapping[int, Sequence[Any]], situations: Mapping[Any, Any], read: Callable[[Any], int]
) -> list[int]:  # fmt: skip
    """The classes that may not be stored."""

    def instances(numbers: Iterable[int]) -> list[_Instance]:
        readers = ((number, _Reader(search, search.rules[number], graph)) for number in numbers if _makes_more(search.rules[number]))
        return [each for number, reader in readers for each in reader.instances(applied[number], situations, read)]

    opening = {number for number, _ in search.heavy} & applied.keys()
    first = instances(sorted(opening))
    if not any(each.heavy - graph.free for each in first):
        return []
    every = [*first, *instances(number for number in applied if number not in opening)]
    doubtful = _doubtful(every, graph.free)
    return sorted(doubtful - _storable(doubtful, every, graph, search.tables))


def _makes_more(encoded: EncodedRule) -> bool:
    """Whether a right side has nodes beside its roots."""
    return len(encoded.made) > sum(isinstance(right, Application) for _, right in encoded.rule.pairs)


def _doubtful(instances: Sequence[_Instance], free: frozenset[int]) -> set[int]:
    """The classes that something too heavy may have had a part in."""
    found = {number for instance in instances for number in instance.heavy} - free
    while found:
        more = {number for each in instances if not found.isdisjoint(each.left) for number in each.made} - free - found
        if not more:
            break
        found |= more
    return found


def _storable(doubtful: set[int], instances: Sequence[_Instance], graph: ReachedGraph, tables: Tables) -> set[int]:
    """Those of the doubtful classes that something made of what may be stored, or that move it."""
    ways: dict[int, list[frozenset[int]]] = {number: [] for number in doubtful}
    for instance in instances:
        for number in instance.made - instance.heavy:
            if number in ways:
                ways[number].append(instance.left)
    for number in doubtful:
        for name, operands, _ in graph.nodes[number]:
            if operands and tables.constructors[name][0].has("movement"):
                ways[number].append(frozenset(operands))
    left = set(doubtful)
    while True:
        shown = {number for number in left if any(left.isdisjoint(way) for way in ways[number])}
        if not shown:
            return doubtful - left
        left -= shown


class _Reader:
    """Reads the applied matches of one rule as instances: where the nodes of both sides are found, worked out once."""

    def __init__(self, search: Search, encoded: EncodedRule, graph: ReachedGraph) -> None:
        rule = encoded.rule
        self.encoded, self.graph, self.heavy = encoded, graph, search.heavy
        self.plans = search.plans.get(encoded.number, {})
        columns = {name: place for place, name in enumerate(rule.variables, start=len(rule.typed))}
        self.typed = {index: place for place, index in enumerate(rule.typed)}
        self.left = [each for each in _steps(encoded.left, search.tables, columns) if not (rule.roots > 1 and each[0] == 0)]
        self.right = _steps(encoded.made, search.tables, columns)
        self.roots = {right.index for _, right in rule.pairs if isinstance(right, Application)}

    def instances(self, rows: Sequence[Any], situations: Mapping[Any, Any], read: Callable[[Any], int]) -> Iterator[_Instance]:
        """The instances that make something which may not be stored in any case."""
        keys: dict[Any, Key] = {}
        for row in rows:
            key = keys.get(row[-1])
            if key is None:
                key = keys[row[-1]] = tuple(map(read, situations[row[-1]][1 : 1 + self.encoded.frame.width]))
            plan = self.plans[key]
            assert plan is not None
            places = {index: place for index, place in self._classes(row, self.right, plan, {}).items() if index not in self.roots}
            if self.graph.free.issuperset(places.values()):
                continue
            named = {index: row[column] for index, column in self.typed.items()}
            left = {*self._classes(row, self.left, key, named).values()}
            left.update(self.graph.dense[value] for value in row[:-1] if value in self.graph.dense)
            heavy = self.heavy.get((self.encoded.number, key), frozenset())
            yield _Instance(
                frozenset(left), frozenset(places.values()), frozenset(place for index, place in places.items() if index in heavy)
            )

    def _classes(self, row: Any, steps: Sequence[_Step], payloads: Sequence[int], named: dict[int, Any]) -> dict[int, int]:
        """The classes of the nodes of a side in a match, by index: those that the graph has."""
        values, found = dict(named), dict[int, int]()
        for index, name, sources in steps:
            operands = tuple([row[column] if column >= 0 else values.get(inner) for column, inner in sources])
            place = self.graph.index.get((name, operands, payloads[index]))
            if place is not None:
                found[index] = place[0]
                values[index] = self.graph.values[place[0]]
        return found


_Step = tuple[int, str, tuple[tuple[int, int], ...]]  # a node of a side: its index, constructor and the sources of its operands


def _steps(nodes: Sequence[Application], tables: Tables, columns: Mapping[str, int]) -> list[_Step]:
    """The nodes of a side, operands first: they have higher indices than their user. An operand comes from a column of the match, or, where
    that is -1, from the node with the index behind it."""

    def source(operand: Pattern) -> tuple[int, int]:
        return (-1, operand.index) if isinstance(operand, Application) else (columns[operand.name], 0)

    return [(node.index, tables.constructor(node.op, len(node.operands)), tuple(map(source, node.operands))) for node in reversed(nodes)]
