"""Near misses: ops that the target has a kernel for and that a program nearly is, each with the condition that fails."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from coset.egraph.regions import Filling
from coset.explaining.missing import missing
from coset.explaining.nearest import AbsentApplication, Broken, Matcher, Miss, Near, Unequal, makers_in
from coset.explaining.words import Words
from coset.ir.term import Term
from coset.job.phases import PARTS
from coset.rules.pattern import applications
from coset.rules.rule import Rule
from coset.searching.regionwise import Solved
from coset.searching.task import Task

MOST = 12  # that are listed
NEAR = 0.9  # of a left side that must be there
LACKING = 1.1  # what may be missing: a variable that is two values, or attributes and conditions of a few ops
SMALLEST = 4  # ops that a left side has at least: of a smaller one anything is near
LARGEST = 30_000  # e-nodes, above which nothing is looked for


def near_misses(task: Task, solved: Solved) -> list[dict[str, Any]]:
    """What the report lists: `rule` (the op), `node` (the value of the model), `condition` with what is there instead, and `values`."""
    saturation = solved.saturation
    if saturation.enodes > LARGEST or solved.zones:
        return []
    makers = makers_in(task.phases)
    large = {op: [rule for rule in rules if _large(rule)] for op, rules in makers.items() if task.job.target.forms.get(op)}
    wanted = {op: rules for op, rules in large.items() if rules}
    matcher = Matcher(saturation.graph, makers, edits=False)
    words = Words(task.program, saturation, _actual(solved))
    found: list[tuple[str, Near]] = []
    for op, rules in wanted.items():
        found += [(op, near) for near in matcher.places(rules, sorted(words.names)) if _is_near(near) and not _there(wanted, near, solved)]
    return list(_told(sorted(found, key=lambda each: (*each[1].rank, each[0])), words))


def _large(rule: Rule) -> bool:
    """By its ops that compute something; what is defined by others counts for enough of them."""
    nodes = [node for node in applications(rule.left) if node.operands and not node.op.has("movement")]
    return len(nodes) >= SMALLEST or any(node.op.dialect == PARTS for node in nodes)


def _is_near(near: Near) -> bool:
    partial = near.partial
    return bool(partial.misses) and all(_told_of(miss) for miss in partial.misses) and partial.share >= NEAR and partial.lacks <= LACKING


def _told_of(miss: Miss) -> bool:
    """All ops are there, and something asked of them is not so."""
    return isinstance(miss, Broken | Unequal) or (isinstance(miss, AbsentApplication) and bool(miss.near))


def _there(wanted: Mapping[str, object], near: Near, solved: Solved) -> bool:
    """One of the ops was found there: that it might have been another one too is no news."""
    return any(node.op.name in wanted for node in solved.saturation.graph.nodes[near.eclass])


def _told(found: list[tuple[str, Near]], words: Words) -> Iterator[dict[str, Any]]:
    seen: set[int] = set()
    for op, near in found:
        if near.eclass in seen or len(seen) == MOST:
            continue
        seen.add(near.eclass)
        first = next(missing(near.partial.misses[0], words))
        yield {
            "rule": op, "node": words.value(near.eclass).strip("`"),
            "condition": f"{first['condition']}; {first['found']}", "values": first["values"],
        }  # fmt: skip


def _actual(solved: Solved) -> Mapping[Term, Term]:
    """The program's terms that those of regions stand for, at the first of their places."""
    found: dict[Term, Term] = {}
    for part in solved.parts:
        if part.region is not None and part.places:
            found.update(Filling.of(part.region, part.region.roots).fill(part.places[0], {}))
    return found
