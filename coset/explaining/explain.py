"""Explain: where the rules of one name match in a model, or the nearest they come to it and what keeps them from matching."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coset.comparing.reference import read_program
from coset.egraph.request import Phase
from coset.egraph.saturate import Saturation, saturate
from coset.explaining.missing import missing
from coset.explaining.nearest import Matcher, Near, Unequal, makers_in
from coset.explaining.words import Words
from coset.extract.cost import Pricer
from coset.ir.errors import CosetError
from coset.ir.op import find_op, get_op
from coset.ir.suggestions import like, meant
from coset.job.job import Job
from coset.job.own_ops import why_unwritten
from coset.job.phases import COMPOSITE, permitted_phases, with_parts
from coset.optimizing.pipeline import flow_for, suffix
from coset.packaging.asked import DIALECT
from coset.packaging.searched import searched
from coset.rules.definition import is_defined
from coset.rules.equation import NUMERICS_ORDER
from coset.rules.pattern import Application
from coset.rules.rule import RECOGNISE, Rule, permitted
from coset.searching.illegal import why_illegal
from coset.searching.solving import solve_task
from coset.searching.task import Task, wanted_roots
from coset.searching.usage import used_rules

PLACES = 20  # that are listed
NEAREST = 3  # places that are listed where there is no match
MISSES = 3  # of a place
APART = 0.25  # how much less than of the nearest may be there at others that are listed
LEAST = 0.35  # of a left side that must be there for a place to be near


@dataclass(frozen=True)
class ExplainedRule:
    """What is asked: `rule` names a rule, an entry of the library or an op that has a definition; `at` a value of the model."""

    job: Job
    rule: str
    at: str | None = None


def explain(question: ExplainedRule) -> dict[str, Any]:
    """Where the rule matches (`matched`), how many nodes of the chosen program it made (`used`), how much longer the program is predicted
    to take without it where it made none (`slower_without`, s), and why it did no more (`reasons`, `nearest`).

    The whole program is searched with the rules that the job allows and the one that is asked for, whatever it promises. A place is a
    value of the model; a match at a value that only a rule made is given as how that is computed.

    Raises:
        CosetError: there is no such rule or value; as `optimize` for the model.
    """
    started = time.perf_counter()
    job = question.job
    task = _task(job)
    rules = named_rules(job, question.rule)
    phases = _with(rules, task)
    job.progress("searching equal programs")
    saturation = saturate(wanted_roots(task), phases, job.limits)
    words = Words(task.program, saturation)
    job.progress(f"matching {len(rules)} rules in {saturation.enodes} e-nodes")
    makers = makers_in(phases)
    matcher = Matcher(saturation.graph, makers)
    classes = sorted(words.given) if question.at is None else [_class_of(question.at, words)]
    near = matcher.places(rules, classes)
    whole = _once(each for each in near if each.partial.whole)
    if not whole and question.at is None:
        whole = _once(each for each in Matcher(saturation.graph, makers, edits=False).places(rules) if each.partial.whole)
    gain, nearest = (_gain(task, rules), []) if whole else (RuleGain(), _nearest(near))
    return {
        "not_shown": job.own().told(),
        "rule": question.rule,
        "rules": sorted({rule.family for rule in rules}),
        "source": f"{rules[0].place.file}:{rules[0].place.line}",
        "matched": [{"value": words.value(each.eclass), "text": words.place(each.eclass), "rule": each.rule.name} for each in whole],
        "used": gain.made,
        "slower_without": gain.slower,
        "reasons": list(_reasons(rules, task, saturation, whole, gain)),
        "nearest": [_told(each, words) for each in nearest],
        "egraph": {"enodes": saturation.enodes, "eclasses": saturation.eclasses, "stop": saturation.stop},
        "seconds": time.perf_counter() - started,
    }


def _task(job: Job) -> Task:
    """The model as `coset optimize` reads it, or `coset lower` where that is what the target is for."""
    if job.target.dialect == DIALECT:
        job.progress("reading the model")
        return searched(job, read_program(job.model, own=job.own().ops))
    return flow_for(job, Path(f"explained{suffix(job.target)}")).read()


def named_rules(job: Job, name: str) -> tuple[Rule, ...]:
    """The rules called `name`: by themselves, by their entry, or by the op that they find; with those rules that make it of others.

    Raises:
        CosetError: there are none.
    """
    every = [rule for phase in permitted_phases(job.own(), NUMERICS_ORDER[-1], lambda _: True) for rule in phase.rules]
    for wanted_name in (name, name + RECOGNISE):
        found = [rule for rule in every if wanted_name in (rule.name, rule.family)]
        recognising = [rule for rule in found if rule.definition is None or rule.recognises]
        if recognising:
            ops = {rule.definition for rule in recognising} - {None}
            others = [rule for rule in every if rule not in recognising and rule.roots == 1 and _made(rule) in ops]
            return (*recognising, *others)
    known = dict.fromkeys(rule.family.removesuffix(RECOGNISE) for rule in every)
    ends = [each for each in known if each.rpartition(".")[2].lower() == name.rpartition(".")[2].lower()]
    if len(ends) == 1 and "." not in name:
        return named_rules(job, ends[0])
    help = meant(ends) or like(name, known) or "`coset rules` and `coset rules --ops` list them"
    op = find_op(name)
    if op is not None and is_defined(op):
        raise CosetError(f"the definition of `{name}` is only expanded: no rule looks for it in programs", help=help)
    raise CosetError(f"there is no rule, and no op with a definition, called `{name}`", help=help)


def _with(rules: Sequence[Rule], task: Task) -> list[Phase]:
    """The phases of the task with the rules that are asked about, and those that find what they are made of."""
    inside = with_parts({str(rule.definition) for rule in rules if rule.definition is not None})
    wanted = {rule.name for rule in rules}
    composite = any(get_op(op).dialect == COMPOSITE for op in inside)

    def taken(rule: Rule) -> bool:
        moving = composite and rule.definition is None and rule.phase == COMPOSITE  # movement around named ops that composites need
        return rule.name in wanted or moving or (rule.definition in inside and rule.recognises)

    more = permitted_phases(task.job.own(), NUMERICS_ORDER[-1], taken)
    phases = {phase.name: list(phase.rules) for phase in task.phases}
    there = {rule.name for found in phases.values() for rule in found}
    for phase in more:
        phases.setdefault(phase.name, []).extend(rule for rule in phase.rules if rule.name not in there)
    return [Phase(name, tuple(found)) for name, found in phases.items()]


def _made(rule: Rule) -> str | None:
    """The op that the right side of a rule is, where its left side has none of it."""
    right = rule.right
    if not isinstance(right, Application) or any(_op(key) == right.op.name for key in rule.reads):
        return None
    return right.op.name


def _class_of(name: str, words: Words) -> int:
    for eclass, names in words.names.items():
        if name in names:
            return eclass
    known = (each for names in words.names.values() for each in names)
    help = like(name, known) or "--at takes the name of a value that a node computes"
    raise CosetError(f"the model has no value `{name}` that the search knows", help=help)


def _once(near: Iterator[Near] | Sequence[Near]) -> list[Near]:
    """The first at each class."""
    found: dict[int, Near] = {}
    for each in near:
        found.setdefault(each.eclass, each)
    return list(found.values())[:PLACES]


def _nearest(near: Sequence[Near]) -> list[Near]:
    """A few places, none of which lacks what one before it lacks."""
    least = max(LEAST, near[0].partial.share - APART) if near else LEAST
    found: list[Near] = []
    known: set[tuple[int, str]] = set()
    for each in _once(near):
        lacking = {(miss.first if isinstance(miss, Unequal) else miss.eclass, miss.rule.family) for miss in each.partial.misses}
        if each.partial.share >= least and not lacking & known:
            found.append(each)
        known |= lacking
    return found[:NEAREST]


@dataclass(frozen=True)
class RuleGain:
    """What rules did for the chosen program: how many of its e-nodes they `made`, and, where none, how much longer the program that is
    chosen without them is predicted to take, s."""

    made: int = 0
    slower: float = 0.0


def _gain(task: Task, rules: Sequence[Rule]) -> RuleGain:
    """What the rules did; a second search tells it where no node is theirs, because they may only have led to what others made."""
    active = {rule.name for phase in task.phases for rule in phase.rules}
    names = {rule.name for rule in rules} & active
    if not names:
        return RuleGain()
    solved, _ = solve_task(task, task.phases)
    made = sum(usage.count for usage in used_rules(solved) if usage.rule.name in names)
    if made:
        return RuleGain(made)
    others, _ = solve_task(task, [phase.where(lambda rule: rule.name not in names) for phase in task.phases])
    return RuleGain(0, max(0.0, others.cost - solved.cost))


def _reasons(rules: Sequence[Rule], task: Task, saturation: Saturation, matched: Sequence[Near], gain: RuleGain) -> Iterator[str]:
    """What keeps the rules out, apart from their left sides."""
    graph = saturation.graph
    job = task.job
    active = {rule.name for phase in task.phases for rule in phase.rules}
    weaker = sorted({str(rule.numerics) for rule in rules if not permitted(rule.numerics, job.numerics)})
    if weaker and not any(permitted(rule.numerics, job.numerics) for rule in rules):
        yield f"it promises {', '.join(weaker)}, and numerics `{job.numerics}` allow no less: --numerics {weaker[0].split()[0]} lets it in"
    elif not any(job.admission.admits(rule) for rule in rules):
        yield "it is left out by --disable-rule or --only-rules"
    elif not gain.made and (illegal := _illegal(rules, task, saturation)):
        yield illegal
    elif not any(rule.name in active for rule in rules):
        made = sorted({str(rule.definition) for rule in rules if rule.definition is not None})
        yield f"the target `{job.target.name}` does not run {', '.join(f'`{op}`' for op in made)}, or the model's opset has it not"
    elif matched and not gain.made:
        if all(_stands(each, saturation) for each in matched):
            yield "the model has it there as it is"
        elif gain.slower > 0:
            more = f"without it the program is predicted to take {gain.slower * 1e3:.3g} ms more"
            yield f"it made no node of the chosen program but led to some: {more}"
        else:
            yield "it matched, and the program that was chosen is predicted to be no slower without it"
    if saturation.stop not in ("saturated", "iterations") and not matched:
        yield f"the search ended by its limit ({saturation.stop}): what comes later was not looked at"
    if not matched:
        there = {f"{node.op.name}/{len(node.children)}" for nodes in graph.nodes for node in nodes}
        lacking = [{op for op in map(_op, rule.reads - there) if not is_defined(get_op(op))} for rule in rules]
        if all(lacking):
            yield f"no form of the model has {' or '.join(f'`{op}`' for op in sorted(set().union(*lacking)))}"


def _illegal(rules: Sequence[Rule], task: Task, saturation: Saturation) -> str:
    """Why the target runs no node of the user's op that the rules find; "" where it runs one."""
    pricer = Pricer(task.job.target, task.binding)
    for op in sorted({str(rule.definition) for rule in rules if rule.recognises} & task.job.own().ops):
        unwritten, why = why_unwritten(op, task.job.target), why_illegal(op, saturation.graph, pricer)
        if unwritten or why:
            return unwritten or f"the target `{task.job.target.name}` cannot run `{op}` there: {why}"
    return ""


def _stands(near: Near, saturation: Saturation) -> bool:
    """Whether the model has the op that a rule finds where it finds it."""
    return any(node.original and node.op.name == near.rule.definition for node in saturation.graph.nodes[near.eclass])


def _op(key: str) -> str:
    return key.partition("/")[0]


def _told(near: Near, words: Words) -> dict[str, Any]:
    misses = [told for miss in near.partial.misses for told in missing(miss, words)]
    return {
        "value": words.value(near.eclass), "text": words.place(near.eclass), "rule": near.rule.name,
        "share": near.partial.share, "missing": misses[:MISSES],
    }  # fmt: skip
