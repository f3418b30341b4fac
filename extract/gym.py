"""Extraction problems as JSON, as extraction-gym and egraph-serialize have them (github.com/egraphs-good): read and written.

`nodes`: by name, each with its `op`, its `children` (names of any node of the class that is meant), its `eclass`, its `cost` (1 where it
is not said) and whether it is `subsumed` (no choice any more); `root_eclasses`; other keys are not looked at.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coset.extract.greedy import tree_order
from coset.extract.problem import Choice, Problem, choice
from coset.ir.errors import CosetError
from coset.ir.place import Place

FORMAT = "see github.com/egraphs-good/extraction-gym: {nodes: {name: {op, children, eclass, cost}}, root_eclasses}"


@dataclass(frozen=True)
class Named:
    """A problem with the op of each choice, for whoever reads it."""

    problem: Problem
    ops: Sequence[Sequence[str]]


def read_problem(path: Path) -> Problem:
    """The problem in a file: classes in the order in which they come up, each with its choices in theirs.

    Raises:
        CosetError: the file is not there, is no JSON, or lacks something; the place says where.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise CosetError(f"`{path}` cannot be read: {error.strerror}", help="name a JSON file of an e-graph") from None
    except UnicodeDecodeError as error:
        raise CosetError(f"`{path}` is no text: {error.reason} at byte {error.start}", help=FORMAT) from None
    return parse_problem(text, str(path))


def parse_problem(text: str, file: str) -> Problem:
    """As `read_problem`, of the text of `file`."""
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        lines = text.splitlines()
        source = lines[error.lineno - 1][:200] if error.lineno <= len(lines) and error.colno <= 200 else ""
        raise CosetError(f"no JSON: {error.msg}", place=Place(file, error.lineno, error.colno, source), help=FORMAT) from None
    except RecursionError:
        raise CosetError("no e-graph: JSON that is nested too deep", place=Place(file), help=FORMAT) from None
    reader = _Reader(file)
    nodes = reader.a(dict, reader.member(data, "nodes", "the file"), "`nodes`")
    roots = reader.a(list, reader.member(data, "root_eclasses", "the file"), "`root_eclasses`")
    classes: dict[str, int] = {}
    home: dict[str, int] = {}
    for name, node in nodes.items():
        eclass = reader.a(str, reader.member(node, "eclass", f"node `{name}`"), f"`eclass` of node `{name}`")
        home[name] = classes.setdefault(eclass, len(classes))
    made: list[list[Choice]] = [[] for _ in classes]
    for name, node in nodes.items():
        entry = reader.choice(name, node, home)
        if not reader.a(bool, node.get("subsumed", False), f"`subsumed` of node `{name}`"):
            made[home[name]].append(entry)
    for root in roots:
        if not isinstance(root, str) or root not in classes:
            raise reader.error(f"the root `{root}` is the class of no node")
    return Problem([tuple(choices) for choices in made], tuple(dict.fromkeys(classes[root] for root in roots)))


@dataclass(frozen=True)
class _Reader:
    """Looks at what was read, and says what is wrong with it."""

    file: str

    def error(self, message: str) -> CosetError:
        return CosetError(message, place=Place(self.file), help=FORMAT)

    def a(self, kind: type, value: Any, what: str) -> Any:
        words: Mapping[type, str] = {dict: "an object", list: "a list", str: "a string", bool: "true or false"}
        if not isinstance(value, kind):
            raise self.error(f"{what} is not {words[kind]}")
        return value

    def member(self, value: Any, key: str, what: str) -> Any:
        if key not in self.a(dict, value, what):
            raise self.error(f"{what} has no `{key}`")
        return value[key]

    def choice(self, name: str, node: Mapping[str, Any], home: Mapping[str, int]) -> Choice:
        """The node as a choice of its class."""
        cost = node.get("cost", 1.0)
        if isinstance(cost, bool) or not isinstance(cost, int | float) or not 0 <= cost < math.inf:
            raise self.error(f"`cost` of node `{name}` is not a number that is finite and not negative: {json.dumps(cost)[:40]}")
        children = self.a(list, self.member(node, "children", f"node `{name}`"), f"`children` of node `{name}`")
        for child in children:
            if not isinstance(child, str) or child not in home:
                raise self.error(f"the child `{child}` of node `{name}` is no node")
        return choice(float(cost), (home[child] for child in children))


def render_problem(named: Named) -> str:
    """The problem as text that `read_problem` takes. What cannot be computed is left out, as no node can stand for it."""
    problem = named.problem
    _, finite, _ = tree_order(problem, [1] * len(problem.classes))
    left = [
        [(index, entry) for index, entry in enumerate(choices) if all(child in finite for child in entry.children)]
        for choices in problem.classes
    ]
    first = {number: f"{number}.{choices[0][0]}" for number, choices in enumerate(left) if choices}
    nodes = {
        f"{number}.{index}": {
            "op": named.ops[number][index], "children": [first[child] for child in entry.children],
            "eclass": str(number), "cost": entry.cost,
        }
        for number, choices in enumerate(left) for index, entry in choices
    }  # fmt: skip
    roots = [str(root) for root in problem.roots if root in first]
    return json.dumps({"nodes": nodes, "root_eclasses": roots}, indent=1, allow_nan=False) + "\n"


def side_by_side(parts: Sequence[Named]) -> Named:
    """Problems that share nothing as one."""
    classes: list[Sequence[Choice]] = []
    roots: list[int] = []
    ops: list[Sequence[str]] = []
    for part in parts:
        above = len(classes)
        roots += [root + above for root in part.problem.roots]
        for choices in part.problem.classes:
            classes.append(tuple(Choice(entry.cost, tuple(child + above for child in entry.children)) for entry in choices))
        ops += part.ops
    return Named(Problem(classes, tuple(roots)), ops)
