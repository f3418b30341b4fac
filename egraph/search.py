"""The search itself, as it runs in the child process: phases of match, decide, apply, analyse, with a snapshot after each iteration."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from coset.egraph import barring, door, edges, facts, fractions
from coset.egraph.edges import Edge
from coset.egraph.encode import (
    ANALYSIS,
    FORGETTING,
    PIECES,
    PRELUDE,
    REFUSING,
    TYPING,
    EncodedRule,
    TableFrame,
    analysis_texts,
    apply_text,
    declarations,
    encode_rule,
    find_texts,
    plan_text,
    row,
    rulesets,
)
from coset.egraph.graph_commands import graph_commands, static_facts
from coset.egraph.growth import Counts, SearchStep, step_of
from coset.egraph.log import Recorder
from coset.egraph.ranges import in_range, too_heavy
from coset.egraph.relevance import relevant
from coset.egraph.request import Phase, Request
from coset.egraph.snapshot import Snapshot, take
from coset.egraph.tables import Tables
from coset.ir.term import AttributeItems, Term, topological
from coset.ir.types import TupleType
from coset.rules import payloads
from coset.rules.equation import RuleTypeError
from coset.rules.judges import provide
from coset.rules.rule import Rule

WAITING = 10_000  # matches, above which those that were refused are dropped


@dataclass
class Search:
    """One search over one e-graph; `run` yields snapshots, the last one with its `stop`."""

    request: Request
    stepwise: bool = False  # look for conflicts after each rule, to name the culprit
    tables: Tables = field(default_factory=Tables)
    engine: door.Engine = field(init=False)
    edges: edges.Edges = field(init=False)
    numbers: dict[Term, int] = field(default_factory=dict)
    phases: tuple[Phase, ...] = ()
    rules: list[EncodedRule] = field(default_factory=list)  # by number
    plans: dict[int, dict[tuple[int, ...], tuple[int, ...] | None]] = field(default_factory=dict)
    heavy: dict[tuple[int, tuple[int, ...]], frozenset[int]] = field(default_factory=dict)  # by rule and key: nodes that it may not store
    frames: dict[TableFrame, int] = field(default_factory=dict)  # the declared ones, and the most nodes that an applied right side has
    waiting: dict[str | Edge, list[EncodedRule]] = field(default_factory=dict)  # rules by an op or edge that the e-graph lacks
    complete: dict[int, list[EncodedRule]] = field(default_factory=dict)  # by phase those that lack none
    sought: set[int] = field(default_factory=set)  # rules whose find rules are declared
    planned: set[int] = field(default_factory=set)  # rules with a plan: their apply rules are declared
    pieces: dict[str, str] = field(default_factory=dict)  # relations of parts of left sides, by what they hold
    plan_tables: set[str] = field(default_factory=set)
    analysed: set[str] = field(default_factory=set)  # the constructors whose analysis is declared: those that may have nodes by now
    keys: dict[str, str] = field(default_factory=dict)  # the relations of keys that are declared, each with its constructor
    refused: list[tuple[EncodedRule, tuple[int, ...]]] = field(default_factory=list)  # keys, of which egglog was `told` so many
    untyped: list[tuple[int, str]] = field(default_factory=list)  # rules whose sides had no types in a situation, since the last step
    told: int = 0
    refusing: set[TableFrame] = field(default_factory=set)  # those whose rules that drop matches are declared
    sizes: dict[str, int] = field(default_factory=dict)  # rows of each table, when they were last counted
    asked: tuple[str, ...] = ()  # the facts about numbers that rules ask for: derived from when the first such rule is looked for
    recorder: Recorder | None = None
    barred: bool = False  # whether a constant has an infinity or a NaN in it
    fractional: bool = False  # whether something is rounded, so that there may be a fraction
    apart: bool = False  # each rule that is applied has a ruleset of its own
    iterations: int = 0
    steps: list[SearchStep] = field(default_factory=list)
    counts: Counts | None = None
    started: float = field(default_factory=time.monotonic)
    reserve: float = 0.0  # s before the deadline that the last snapshot needs
    shared: tuple[int, int] = (0, 0)  # how many types and payloads both processes know
    _static: tuple[int, int] = (0, 0)

    def __post_init__(self) -> None:
        """Number the input's terms and what they are made of, in the process that asks: it reads snapshots by these numbers."""
        roots = [*self.request.roots, *(term for pair in self.request.equalities for term in pair)]
        order = list(topological(roots))
        self.phases = relevant(self.request.phases, {f"{term.op.name}/{len(term.operands)}" for term in order})
        for number, phase in enumerate(self.phases):
            for rule in phase.rules:
                self.rules.append(encode_rule(rule, len(self.rules), number, self.tables))
        assert len({encoded.rule.name for encoded in self.rules}) == len(self.rules), "a rule is in two phases"
        for term in order:
            self.numbers[term] = len(self.numbers)
            self.tables.constructor(term.op, len(term.operands))
            self.tables.payload(term.attributes, term.regions)
            self.tables.types.number(term.type)
        arities = {name: arity for name, (_, arity) in self.tables.constructors.items()}
        self.complete = {number: [] for number in range(len(self.phases))}
        for encoded in self.rules:
            self.waiting.setdefault(next(iter(encoded.needs)), []).append(encoded)
        self.edges = edges.Edges({edge for encoded in self.rules for edge in encoded.edges}, arities)
        self.shared = (len(self.tables.types.values), len(self.tables.payloads.values))

    def run(self) -> Iterator[str]:
        """Search until saturation or a limit; yields `partial` after each iteration and at the end what stopped it."""
        self.counts = Counts() if self.request.counted else None
        self.recorder = Recorder() if self.request.logged else None
        self._load()
        stop = "saturated"  # only when every phase is
        for phase in range(len(self.phases)):
            if self.phases[phase].is_idle(self._present()):
                continue
            for iteration in range(self.request.limits.iterations):
                outcome = self._iterate(phase, iteration)
                self.iterations += 1
                self.steps.append(step_of(self, self.phases[phase].name, iteration, time.monotonic() - self.started, self.counts))
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

    @property
    def deadline(self) -> float:
        """When the time is spent, by the monotonic clock."""
        return self.started + self.request.limits.seconds

    def enodes(self) -> int:
        """How many e-nodes there were when they were last counted."""
        return sum(self.sizes.get(name, 0) for name in self.tables.constructors)

    def snapshot(self, stop: str) -> Snapshot:
        """The e-graph as it stands."""
        return take(self, stop)

    def _load(self) -> None:
        self.engine = door.Engine()
        self.engine.parse(PRELUDE)
        self.engine.parse(edges.PRELUDE)
        infinite = barring.constants(self.numbers)
        self.barred = bool(infinite)
        if self.barred:
            self.engine.parse(barring.PRELUDE)
        self.fractional = fractions.rounds(self.numbers)
        if self.fractional:
            self.engine.parse(fractions.PRELUDE)
        self._parse([*rulesets(self.rules), *declarations(self.tables)])
        self._look_into(self.tables.constructor(term.op, len(term.operands)) for term in self.numbers)
        self.engine.run([*graph_commands(self.numbers, self.tables), *barring.rows(infinite, self.tables)])
        for left, right in self.request.equalities:
            ends = [door.call("term", door.integer(self.numbers[term])) for term in (left, right)]
            self.engine.run([door.union(*ends)])
        self._analyse()
        self.sizes = self.engine.sizes()

    def _look_into(self, constructors: Iterable[str]) -> None:
        """Declare the analysis of those that had no nodes before: each rule of it costs time in every iteration."""
        new = [name for name in dict.fromkeys(constructors) if name not in self.analysed]
        self.analysed.update(new)
        self._parse(list(analysis_texts(new, self.tables)))
        if self.barred:
            self._parse([text for name in new for text in barring.derivations(name, self.tables)])
        if self.fractional:
            self._parse([text for name in new for text in fractions.derivations(name, self.tables, ANALYSIS)])
        if self.asked:
            self._parse([text for name in new for text in facts.derivations(name, self.asked, self.tables, ANALYSIS)])

    def _parse(self, texts: Sequence[str]) -> None:
        for text in texts:  # one by one: egglog keeps the whole text with every node that it parses from it
            self.engine.parse(text)

    def _present(self) -> Iterator[str]:
        """The ops that the e-graph has by now, with their numbers of operands."""
        return (f"{op.name}/{arity}" for name, (op, arity) in self.tables.constructors.items() if self.sizes.get(name))

    def _iterate(self, phase: int, iteration: int) -> str:
        before = self._progress()
        active = self._ready(phase, iteration)
        if self.pieces:
            self.engine.ruleset(PIECES, saturate=True)  # one piece may be inside another
        for ruleset in dict.fromkeys(encoded.find for encoded in active):
            self.engine.ruleset(ruleset)
            if time.monotonic() + self.reserve > self.deadline:
                return "time"
        if self.fractional:
            self.engine.ruleset(fractions.FRACTIONS)
        self.engine.ruleset(TYPING)
        if self.barred:
            self.engine.ruleset(barring.BARRING)
        self.sizes = self.engine.sizes()
        if not any(self.sizes[frame.match] for frame in self.frames):
            return "idle"
        self._decide()
        self._drop_refused()
        self._flush_static()
        if self.recorder is not None:
            self.recorder.record(self)
        if self.counts is not None:
            self.counts.match(self)
        full = self._apply([encoded for encoded in active if encoded.number in self.planned])
        self._analyse()
        if full:
            return "nodes"
        self.sizes = self.engine.sizes()
        return "idle" if self._progress() == before else "changed"

    def _ready(self, phase: int, iteration: int) -> list[EncodedRule]:
        """The rules whose left side is made of ops and edges that the e-graph has by now; a rule is declared when it first is."""
        self.edges.update(self.engine, self.sizes)
        there = {name for name in self.tables.constructors if self.sizes.get(name)} | self.edges.present  # what was there stays there
        freed = [encoded for need in there & self.waiting.keys() for encoded in self.waiting.pop(need)]
        for encoded in freed:
            needs: tuple[str | Edge, ...] = (*encoded.needs, *encoded.edges)
            lacking = next((need for need in needs if need not in there), None)
            if lacking is None:
                self.complete[encoded.phase].append(encoded)
            else:
                self.waiting.setdefault(lacking, []).append(encoded)
        for grown in {encoded.phase for encoded in freed}:
            self.complete[grown].sort(key=lambda encoded: encoded.number)
        ready = [each for each in self.complete[phase] if each.rule.limit is None or iteration < each.rule.limit]
        new = [encoded for encoded in ready if encoded.number not in self.sought]
        for frame in dict.fromkeys(encoded.frame for encoded in new):
            if frame not in self.frames:
                self.frames[frame] = 0
                if frame.key not in self.keys:
                    self.keys[frame.key] = frame.situation
                    self._parse(frame.key_declarations)
                self._parse([*frame.declarations, *(barring.frame_texts(frame) if self.barred else ())])
        self.sought.update(encoded.number for encoded in new)
        if self.barred and (told := barring.rule_rows(new)):
            self.engine.run(told)
        self._ask(fact for encoded in new for fact, _ in encoded.rule.facts)
        self._parse(find_texts(new, self.tables, self.pieces, fractional=self.fractional))
        return ready

    def _ask(self, wanted: Iterable[str]) -> None:
        """Derive facts about numbers from now on, and of what is there already."""
        new = tuple(fact for fact in facts.asked(wanted) if fact not in self.asked)
        if not new:
            return
        self.asked += new
        self._parse([*facts.declarations(new, ANALYSIS)])
        self._parse([text for name in sorted(self.analysed) for text in facts.derivations(name, new, self.tables, ANALYSIS)])
        known = self.tables.payloads.values[: self._static[1]]
        rows = [each for number, (attributes, _) in enumerate(known) for each in facts.rows(number, attributes, new)]
        if rows:
            self.engine.run(rows)
        self._analyse()

    def _room(self) -> int:
        """How many e-nodes more there may be."""
        return self.request.limits.nodes - self.enodes()

    def _near(self) -> bool:
        """True when all matches together might make more e-nodes than there may be."""
        return sum(self.sizes[frame.match] * most for frame, most in self.frames.items()) > self._room()

    def _drop_refused(self) -> None:
        """Drop the matches that were refused, where matches are many: they do no harm, and telling egglog of each refusal takes time."""
        if not self.refused or not (self._near() or sum(self.sizes[frame.match] for frame in self.frames) > WAITING):
            return
        rows = []
        for encoded, key in self.refused[self.told :]:
            if encoded.frame not in self.refusing:
                self.refusing.add(encoded.frame)
                self._parse(encoded.frame.refusal_declarations)
            rows.append(row("refused", encoded, key))
        self.told = len(self.refused)
        if rows:
            self.engine.run(rows)
        self.engine.ruleset(REFUSING)
        self.sizes = self.engine.sizes()

    def _apply(self, acting: Sequence[EncodedRule]) -> bool:
        """Build the right sides of all matches that the limit of e-nodes leaves room for; true when some are left, for later."""
        room, near = self._room(), self._near()
        if not (near or self.apart or self.stepwise):
            for ruleset in dict.fromkeys(encoded.apply for encoded in acting):
                self.engine.ruleset(ruleset)
            return False
        self._set_apart()
        chosen = acting
        if near:  # then it is worth the time to count by rule
            chosen = []
            counts = self._matches()
            for encoded in sorted(acting, key=lambda e: (counts[e.number] * len(e.right), e.number)):
                grows = counts[encoded.number] * len(encoded.right)
                if grows <= room:  # else the rows stay in the table: deferred, not dropped
                    room -= grows
                    chosen.append(encoded)
        if self.stepwise:
            for encoded in chosen:
                self.engine.ruleset(encoded.apply_alone)
                self._analyse(encoded)
        else:
            self.engine.together(f"apply_some_{self.iterations}", [encoded.apply_alone for encoded in chosen])
        return len(chosen) < len(acting)

    def _set_apart(self) -> None:
        """From now on rules are applied one by one, or some of them: each gets a ruleset of its own, which sees all rows that are left."""
        if not self.apart:
            self.apart = True
            for number in sorted(self.planned):
                self._declare_alone(self.rules[number])

    def _matches(self) -> Counter[int]:
        """How many matches wait, by rule."""
        tables, read = self.engine.frozen()
        return Counter(read(row.inputs[0]) for frame in self.frames for row in tables[frame.match].rows)

    def situations(self, tables: Mapping[str, Any]) -> dict[Any, Any]:
        """What every situation of frozen `tables` is of: its rule, what the rule is asked about, and zeros, not read yet."""
        return {row.output: row.inputs for name in self.keys.values() for row in tables[name].rows}

    def _progress(self) -> tuple[tuple[str, int], ...]:
        names = [*self.tables.constructors, *(frame.done for frame in self.frames), "known"]
        return tuple((name, size) for name in names if (size := self.sizes.get(name)))

    def _decide(self) -> None:
        """Answer the keys that are new."""
        keys = sorted(key for name in self.keys if self.sizes[name] for key in self.engine.integers(name))
        if not keys:
            return
        self.engine.ruleset(FORGETTING)  # so that each is read once or few times
        rows = []
        for number, *situation in keys:
            encoded = self.rules[number]
            key = tuple(situation[: encoded.frame.width])
            plans = self.plans.setdefault(number, {})
            if key in plans:
                continue
            plan = plans[key] = self._plan(encoded, key)
            if plan is None:
                self.refused.append((encoded, key))
                continue
            if number not in self.planned:
                self._declare_apply(encoded)
            rows.append(row(encoded.plan, encoded, key, *plan))
        if rows:
            self.engine.run(rows)

    def _declare_apply(self, encoded: EncodedRule) -> None:
        self.planned.add(encoded.number)
        self._look_into(self.tables.constructor(node.op, len(node.operands)) for node in encoded.made)
        self.frames[encoded.frame] = max(self.frames[encoded.frame], len(encoded.right))
        if encoded.plan not in self.plan_tables:
            self.plan_tables.add(encoded.plan)
            self.engine.parse(plan_text(encoded))
        if self.apart:
            self._declare_alone(encoded)
        else:
            self.engine.parse(apply_text(encoded, self.tables, encoded.apply))

    def _declare_alone(self, encoded: EncodedRule) -> None:
        self.engine.parse(f"(ruleset {encoded.apply_alone})")
        self.engine.parse(apply_text(encoded, self.tables, encoded.apply_alone))

    def _plan(self, encoded: EncodedRule, key: Sequence[int]) -> tuple[int, ...] | None:
        n, first = len(encoded.left), encoded.frame.nodes
        types = [self.tables.types.values[i] for i in key[first : first + encoded.binds]]
        given: list[AttributeItems] = []
        for node, number in zip(encoded.left, key, strict=False):
            items = payloads.described(node.op, *self.tables.payloads.values[number])
            if items is None:
                return None  # functions without names: the branches of a `case`
            given.append(items)
        typed = dict(zip(encoded.rule.typed, types, strict=False))  # then those of the variables
        left = [typed.get(index) for index in range(n)]
        if encoded.rule.roots > 1:
            left[0] = TupleType(tuple(typed[root.index] for root, _ in encoded.rule.pairs))
        try:
            decision = encoded.rule.decide(given, left, types[len(typed) :])
        except RuleTypeError as error:  # types that nobody looked at: one place less is no reason to end
            self.untyped.append((encoded.number, error.message))
            return None
        if decision is None or not in_range(encoded.rule, given, types[len(typed) :], decision):
            return None
        if heavy := too_heavy(encoded.rule, given, types[len(typed) :], decision):
            self.heavy[encoded.number, tuple(key)] = heavy
        parted = (payloads.parted(node.op, items) for node, items in zip(encoded.right, decision.attributes, strict=True))
        numbers = [self.tables.payload(*each) for each in parted]
        return (*numbers, *(self.tables.types.number(type) for type in decision.types))

    def _flush_static(self) -> None:
        commands = static_facts(self.tables, *self._static, self.asked)
        self._static = (len(self.tables.types.values), len(self.tables.payloads.values))
        if commands:
            self.engine.run(commands)

    def _analyse(self, last: EncodedRule | None = None) -> None:
        self._flush_static()
        self.engine.ruleset(ANALYSIS, saturate=True)
        if self.engine.size("conflict"):
            raise Conflict(last.rule if last else None, self._conflict_types())

    def _conflict_types(self) -> str:
        tables, read = self.engine.frozen()
        row = min(tables["conflict"].rows, key=lambda r: r.inputs)
        left, right = sorted(str(self.tables.types.values[read(value)]) for value in row.inputs[1:])
        return f"{left} and {right}"


def _load_judges() -> None:
    from coset.prove import combiners  # and Z3 with it: only for rules that ask for facts about payload functions

    assert combiners


provide(_load_judges)


class Conflict(Exception):
    """A class has got two types: some rule is unsound."""

    def __init__(self, rule: Rule | None, types: str) -> None:
        super().__init__(types)
        self.rule = rule
        self.types = types
