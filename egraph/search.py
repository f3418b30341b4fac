"""The search itself, as it runs in the child process: phases of match, decide, apply, analyse, with a snapshot after each iteration."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from coset.egraph import door
from coset.egraph.encode import (
    ANALYSIS,
    PRELUDE,
    EncodedRule,
    apply_text,
    declarations,
    encode_rule,
    find_text,
    graph_commands,
    plan_row,
    refuse_text,
    static_facts,
    typing_text,
)
from coset.egraph.limits import Limits
from coset.egraph.relevance import relevant
from coset.egraph.snapshot import Snapshot, take
from coset.egraph.tables import Tables
from coset.ir.errors import CosetError
from coset.ir.term import Term, topological
from coset.rules.rule import Rule


@dataclass(frozen=True)
class Phase:
    """Rules that run together until nothing new is found or the iterations are spent."""

    name: str
    rules: tuple[Rule, ...]


@dataclass(frozen=True)
class Request:
    """A search: the roots, equalities already shown (term, equal term), the phases in order, and the limits."""

    roots: tuple[Term, ...]
    equalities: tuple[tuple[Term, Term], ...]
    phases: tuple[Phase, ...]
    limits: Limits


@dataclass
class Search:
    """One search over one e-graph; `run` yields snapshots, the last one with its `stop`."""

    request: Request
    stepwise: bool = False  # look for conflicts after each rule, to name the culprit
    tables: Tables = field(default_factory=Tables)
    engine: door.Engine = field(init=False)
    numbers: dict[Term, int] = field(default_factory=dict)
    phases: tuple[Phase, ...] = ()
    rules: dict[str, EncodedRule] = field(default_factory=dict)
    plans: dict[int, dict[tuple[int, ...], tuple[int, ...] | None]] = field(default_factory=dict)
    sought: set[int] = field(default_factory=set)  # rules whose find rules are declared
    planned: set[int] = field(default_factory=set)  # rules with a plan: their apply rules are declared
    refusing: set[int] = field(default_factory=set)  # rules that refused a key
    iterations: int = 0
    shared: tuple[int, int] = (0, 0)  # how many types and payloads both processes know
    _static: tuple[int, int] = (0, 0)

    def __post_init__(self) -> None:
        """Number the input's terms and what they are made of, in the process that asks: it reads snapshots by these numbers."""
        roots = [*self.request.roots, *(term for pair in self.request.equalities for term in pair)]
        order = list(topological(roots))
        self.phases = relevant(self.request.phases, {f"{term.op.name}/{len(term.operands)}" for term in order})
        for number, phase in enumerate(self.phases):
            for rule in phase.rules:
                assert rule.name not in self.rules, f"rule {rule.name} is in two phases"
                self.rules[rule.name] = encode_rule(rule, len(self.rules), number, self.tables)
        for term in order:
            self.numbers[term] = len(self.numbers)
            self.tables.constructor(term.op, len(term.operands))
            self.tables.payload(term.attributes, term.regions)
            self.tables.types.number(term.type)
        self.shared = (len(self.tables.types.values), len(self.tables.payloads.values))

    def run(self) -> Iterator[str]:
        """Search until saturation or a limit; yields `partial` after each iteration and at the end what stopped it."""
        deadline = time.monotonic() + self.request.limits.seconds
        self._load()
        stop = "saturated"  # only when every phase is
        for phase in self.phases:
            for iteration in range(self.request.limits.iterations):
                outcome = self._iterate(phase, iteration, deadline)
                self.iterations += 1
                if outcome == "idle":
                    break
                if outcome in ("time", "nodes"):
                    stop = outcome
                    break
                yield "partial"
            else:
                stop = "iterations" if stop == "saturated" else stop
            if stop == "time":
                break
        yield stop

    def snapshot(self, stop: str) -> Snapshot:
        """The e-graph as it stands."""
        return take(self, stop)

    def _load(self) -> None:
        self.engine = door.Engine()
        self.engine.parse(PRELUDE)
        for number in range(len(self.phases)):
            self.engine.parse(f"(ruleset find_all_{number})")
        self._parse(declarations(self.tables))
        self.engine.run(graph_commands(self.numbers, self.tables))
        for left, right in self.request.equalities:
            ends = [door.call("term", door.integer(self.numbers[term])) for term in (left, right)]
            self.engine.run([door.union(*ends)])
        self._analyse()

    def _parse(self, texts: Sequence[str]) -> None:
        for text in texts:  # one by one: egglog keeps the whole text with every node that it parses from it
            self.engine.parse(text)

    def _iterate(self, phase: Phase, iteration: int, deadline: float) -> str:
        active = self._ready([self.rules[r.name] for r in phase.rules if r.limit is None or iteration < r.limit])
        for ruleset in dict.fromkeys(encoded.find for encoded in active):
            self.engine.ruleset(ruleset)
            if time.monotonic() > deadline:
                return "time"
        sizes = self._typed(active)
        before = self._progress(sizes)
        waiting = [encoded for encoded in active if sizes.get(encoded.match)]
        if not waiting:
            return "idle"
        refused = [encoded.refuse for encoded in waiting if self._decide(encoded, sizes[encoded.key])]
        if refused:
            self.engine.together(f"all_refuse_{self.iterations}", refused)
            sizes = self.engine.sizes()
        self._flush_static()
        full = self._apply([encoded for encoded in waiting if sizes[encoded.match]], sizes)
        self._analyse()
        if full:
            return "nodes"
        return "idle" if self._progress(self.engine.sizes()) == before else "changed"

    def _ready(self, rules: Sequence[EncodedRule]) -> list[EncodedRule]:
        """The rules whose left side is made of ops that the e-graph has by now; a rule is declared when it first is."""
        sizes = self.engine.sizes()
        ready = [encoded for encoded in rules if all(sizes.get(name) for name in encoded.needs)]
        for encoded in ready:
            if encoded.number not in self.sought:
                self.sought.add(encoded.number)
                self._parse(find_text(encoded, self.tables))
        return ready

    def _typed(self, active: Sequence[EncodedRule]) -> dict[str, int]:
        """The sizes of all tables when what the rules found has become matches, as far as its types are known."""
        sizes = self.engine.sizes()
        found = [encoded for encoded in active if sizes[encoded.found]]
        for encoded in found:
            if encoded.number not in self.plans:
                self.plans[encoded.number] = {}
                self._parse(typing_text(encoded))
        self.engine.together(f"all_typing_{self.iterations}", [encoded.typing for encoded in found])
        return self.engine.sizes() if found else sizes

    def _apply(self, waiting: Sequence[EncodedRule], sizes: dict[str, int]) -> bool:
        """Build the right sides of all matches that the limit of e-nodes leaves room for; true when some are left, for later."""
        room = self.request.limits.nodes - self.enodes(sizes)
        chosen: list[EncodedRule] = []
        for encoded in sorted(waiting, key=lambda e: (sizes[e.match] * len(e.right), e.number)):
            grows = sizes[encoded.match] * len(encoded.right)
            if grows <= room:  # else the rows stay in the table: deferred, not dropped
                room -= grows
                chosen.append(encoded)
        if self.stepwise:
            for encoded in chosen:
                self.engine.ruleset(encoded.apply)
                self._analyse(encoded)
        else:
            self.engine.together(f"all_apply_{self.iterations}", [encoded.apply for encoded in chosen])
        return len(chosen) < len(waiting)

    def _progress(self, sizes: dict[str, int]) -> tuple[int, ...]:
        names = [*self.tables.constructors, *(encoded.done for encoded in self.rules.values()), "known"]
        return tuple(sizes.get(name, 0) for name in names)

    def acting(self) -> list[EncodedRule]:
        """The rules that had a match that was not refused: only they have tables of plans and of applied matches."""
        return [encoded for encoded in self.rules.values() if encoded.number in self.planned]

    def enodes(self, sizes: dict[str, int]) -> int:
        """E-nodes: the rows of all constructors."""
        return sum(sizes.get(name, 0) for name in self.tables.constructors)

    def _decide(self, encoded: EncodedRule, count: int) -> bool:
        """Answer the keys that are new; true when the rule has refused keys."""
        plans = self.plans[encoded.number]
        if count > len(plans):
            new = {key: self._plan(encoded, key) for key in sorted(self.engine.integers(encoded.key)) if key not in plans}
            plans.update(new)
            if encoded.number not in self.planned and any(plan is not None for plan in new.values()):
                self.planned.add(encoded.number)
                self._parse(apply_text(encoded, self.tables))
            if encoded.number not in self.refusing and any(plan is None for plan in new.values()):
                self.refusing.add(encoded.number)
                self._parse(refuse_text(encoded))
            self.engine.run([plan_row(encoded, key, plan) for key, plan in new.items()])
        return encoded.number in self.refusing

    def _plan(self, encoded: EncodedRule, key: Sequence[int]) -> tuple[int, ...] | None:
        n = len(encoded.left)
        payloads = [self.tables.payloads.values[i] for i in key[:n]]
        types = [self.tables.types.values[i] for i in key[n:]]
        if any(regions for _, regions in payloads):
            return None  # rules over payload regions come with the region patterns of the language
        decision = encoded.rule.decide([attributes for attributes, _ in payloads], types[:n], types[n:])
        if decision is None:
            return None
        numbers = [self.tables.payload(attributes) for attributes in decision.attributes]
        return (*numbers, *(self.tables.types.number(type) for type in decision.types))

    def _flush_static(self) -> None:
        commands = static_facts(self.tables, *self._static)
        self._static = (len(self.tables.types.values), len(self.tables.payloads.values))
        if commands:
            self.engine.run(commands)

    def _analyse(self, last: EncodedRule | None = None) -> None:
        self._flush_static()
        self.engine.ruleset(ANALYSIS, saturate=True)
        if self.engine.sizes()["conflict"]:
            raise Conflict(last.rule if last else None, self._conflict_types())

    def _conflict_types(self) -> str:
        tables, read = self.engine.frozen()
        row = min(tables["conflict"].rows, key=lambda r: r.inputs)
        left, right = sorted(str(self.tables.types.values[read(value)]) for value in row.inputs[1:])
        return f"{left} and {right}"


class Conflict(Exception):
    """A class has got two types: some rule is unsound."""

    def __init__(self, rule: Rule | None, types: str) -> None:
        super().__init__(types)
        self.rule = rule
        self.types = types


def conflict_error(request: Request, conflict: Conflict) -> CosetError:
    """The user's error for a conflict, with the rule that makes it: found by running again, one rule after the other."""
    culprit = conflict.rule
    if culprit is None:
        try:
            for _ in Search(request, stepwise=True).run():
                pass
        except Conflict as again:
            culprit = again.rule
    if culprit is None:
        return CosetError(f"the program itself makes one value of two types, {conflict.types}")
    return CosetError(
        f"rule `{culprit.name}` is unsound: it makes one value of two types, {conflict.types}",
        place=culprit.place,
        help="guard the rule with a condition on the types, or leave it out",
    )


CHECKPOINT_SECONDS = 0.5  # before the first checkpoint
Send = Callable[[tuple[str, Any]], None]


def serve(search: Search, send: Send) -> None:
    """Run `search`, sending ("snapshot", Snapshot)... and at the end ("done", Snapshot), or ("error", CosetError)."""
    quiet_until = time.monotonic() + CHECKPOINT_SECONDS
    try:
        for stop in search.run():
            now = time.monotonic()
            if stop != "partial":
                send(("done", search.snapshot(stop)))
            elif now >= quiet_until:  # a checkpoint costs time; keep it to about a tenth of the search
                send(("snapshot", search.snapshot(stop)))
                quiet_until = now + 10 * (time.monotonic() - now)
    except Conflict as conflict:
        send(("error", conflict_error(search.request, conflict)))
    except CosetError as error:
        send(("error", error))
