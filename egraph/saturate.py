"""Saturate: a search under its limits, and the e-graph that it found, whatever ended it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from coset.egraph.child import SearchOutcome, search_in_child
from coset.egraph.growth import SILENT, SearchStep, Watch
from coset.egraph.limits import Limits
from coset.egraph.log import Decoder
from coset.egraph.request import Phase, Request
from coset.egraph.saturated import ENode, Saturated
from coset.egraph.search import Search
from coset.egraph.serving import serve
from coset.egraph.snapshot import Snapshot
from coset.ir.op import get_op
from coset.ir.term import Term, topological
from coset.rules.rule import Rule

CUT_SHORT = ("time", "memory", "interrupt", "died")  # stops that come at another place each time


@dataclass(frozen=True)
class Saturation:
    """A searched e-graph with its history: why it `stop`ped (saturated, iterations, nodes, or one of `CUT_SHORT`), how
    often each rule was applied, which rules made which new e-nodes (`origins`), which made an e-node of the input equal to another value
    (`merges`), and where rules made values one without any node (`collapses`).
    `source` says where the terms of the input are: the class, and the index of the e-node there. `warning`: what the user should know
    of the way in which the search ended, "" where that is nothing."""

    graph: Saturated
    rules: tuple[Rule, ...]
    stop: str
    iterations: int
    enodes: int
    eclasses: int
    seconds: float
    fired: dict[int, int]
    origins: dict[tuple[int, int], list[int]]
    merges: dict[tuple[int, int], list[int]]
    collapses: dict[int, list[int]]
    source: Mapping[Term, tuple[int, int]]
    decoder: Decoder | None = None
    warning: str = ""
    growth: tuple[SearchStep, ...] = ()


def saturate(
    roots: Sequence[Term], phases: Sequence[Phase], limits: Limits, *,
    equalities: Sequence[tuple[Term, Term]] = (), logged: bool = False, watch: Watch = SILENT, loads: Sequence[str] = (),
) -> Saturation:  # fmt: skip
    """Search the programs that equal `roots` under the rules of `phases`. `loads`: modules that are needed next, loaded meanwhile.

    Raises:
        CosetError: a rule is unsound in a way that types show; the rule is named.
    """
    search = Search(Request(tuple(roots), tuple(equalities), tuple(phases), limits, logged, watch.counted))
    steps: list[SearchStep] = []
    watch.named(tuple(encoded.rule.name for encoded in search.rules))

    def told(step: SearchStep) -> None:
        steps.append(step)
        watch.step(step)

    found = search_in_child(search, told, loads) if hasattr(os, "fork") else _in_process(search, told)
    rules = tuple(encoded.rule for encoded in search.rules)
    decoded = _untouched(search, rules, found) if found.snapshot is None else _decode(search, found.snapshot, rules, found)
    return replace(decoded, growth=tuple(steps))


def _in_process(search: Search, told: Callable[[SearchStep], None]) -> SearchOutcome:
    """Where processes cannot fork: the same search, without a memory limit."""
    messages: list[tuple[str, Any]] = []
    serve(search, lambda message: told(message[1]) if message[0] == "step" else messages.append(message))
    kind, value = messages[-1]
    if kind == "error":
        raise value
    return SearchOutcome(value)


def _decode(search: Search, snapshot: Snapshot, rules: tuple[Rule, ...], found: SearchOutcome) -> Saturation:
    shared_types, shared_payloads = search.shared
    types = search.tables.types.values[:shared_types] + snapshot.new_types
    payloads = search.tables.payloads.values[:shared_payloads] + snapshot.new_payloads
    ops = {name: get_op(op) for name, (op, _) in snapshot.constructors.items()}
    given = {term: number for term in topological(search.request.roots) if (number := search.numbers[term]) in snapshot.source}
    original = {snapshot.source[number] for number in given.values()}  # not the equal terms that were entered
    classes = []
    for number, nodes in enumerate(snapshot.nodes):
        entries = []
        for position, (name, operands, payload) in enumerate(nodes):
            attributes, regions = payloads[payload]
            entries.append(ENode(ops[name], operands, attributes, regions, (number, position) in original))
        classes.append(tuple(entries))
    for number, held in enumerate(snapshot.types):
        assert len(held) == 1, f"class {number} has {len(held)} types"
    graph = Saturated(
        [types[held[0]] for held in snapshot.types], classes, tuple(snapshot.roots), frozenset(snapshot.known),
        tuple(snapshot.source[number] for number in given.values()), frozenset(snapshot.heavy),
    )  # fmt: skip
    source = {term: snapshot.source[number] for term, number in given.items()}
    constructors = {name: (ops[name], arity) for name, (_, arity) in snapshot.constructors.items()}
    decoder = None if snapshot.log is None else Decoder(snapshot.log, rules, payloads, constructors)
    return Saturation(
        graph, rules, found.stop or snapshot.stop, snapshot.iterations, snapshot.enodes, snapshot.eclasses,
        time.monotonic() - search.started, snapshot.fired, snapshot.origins, snapshot.merges,
        snapshot.collapses, source, decoder, found.warning,
    )  # fmt: skip


def _untouched(search: Search, rules: tuple[Rule, ...], found: SearchOutcome) -> Saturation:
    """The input as an e-graph of its own: what is left when a limit came before the first checkpoint."""
    order = list(topological(search.request.roots))
    number = {term: i for i, term in enumerate(order)}
    nodes: list[tuple[ENode, ...]] = [
        (ENode(t.op, tuple(number[o] for o in t.operands), t.attributes, t.regions, original=True),) for t in order
    ]
    graph = Saturated(
        [term.type for term in order],
        nodes,
        tuple(number[r] for r in search.request.roots),
        frozenset(),
        tuple((i, 0) for i in range(len(order))),
    )
    source = {term: (i, 0) for i, term in enumerate(order)}
    seconds = time.monotonic() - search.started
    return Saturation(graph, rules, found.stop, 0, len(order), len(order), seconds, {}, {}, {}, {}, source, None, found.warning)
