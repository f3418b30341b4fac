"""The one flow of an optimization, whatever the formats: read, search, extract, write, compare, and say what was done."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from coset.comparing.check import CheckReport, breaking_rule
from coset.comparing.deadline import Talk, within
from coset.comparing.noise import weight_bytes
from coset.comparing.reference import read_program
from coset.comparing.refused import refused, unblamed
from coset.comparing.rounding import AT_ENDS, by_rounding, only_at_ends, usual
from coset.comparing.weights import WeightScales, scales_of
from coset.egraph.growth import SILENT
from coset.extract.candidates import strayed
from coset.extract.select import reprice
from coset.ir.collector import no_collection
from coset.ir.errors import CosetError
from coset.ir.held import working_folder
from coset.ir.program import Program
from coset.job import machine
from coset.job.phases import with_witnesses
from coset.optimizing import running
from coset.optimizing.formats import Compare, Flow
from coset.optimizing.measured import TimedProgram, race
from coset.optimizing.report import Seconds, certified_rules, report_of
from coset.prove.certificate import Certificate
from coset.prove.certificate_file import packed
from coset.rules.elaborated import comes_with_coset
from coset.searching.inside import Inside
from coset.searching.memory import choose, live_bytes
from coset.searching.regionwise import Solved
from coset.searching.solving import Searched, finish, keeps_every_bit, refuse_idle, solve_task
from coset.searching.task import Task, wanted_roots
from coset.searching.usage import Usage, exceptions_of, may_round, together, used_rules
from coset.targets.running import Running
from coset.targets.target import Target

LEFT_OUT = 3  # rules without which a program is tried again
TRIALS = 12  # searches, at most, that find the rule that breaks a program
LOOSE = "the runtime gives the model other bits as soon as it is written anew, without any rule (docs/undefined.md, bits)"


@no_collection()  # terms, graphs and plans stay until the end: to look through them took a tenth of the time on 20,000 nodes
def run_flow(flow: Flow, path: Path, started: float) -> tuple[Program, dict[str, Any], Certificate | None]:
    """The optimized program and the report; the model that was compared is at `path`. With a certificate where the job asks for one and
    there is one: else the report says why not.

    Raises:
        CosetError: bad input. `Refused`: the result differs; the rule that breaks the program was found by replay.
    """
    task = flow.read()
    read = time.perf_counter()
    with working_folder("coset-work-") as folder:
        whole = checked(task, flow, path, folder, Seconds(read=read - started))
        task, made, check, settled, spent = whole.task, whole.made, whole.judged.check, whole.judged.settled, whole.spent
        first, measured = made.solved, None
        if task.job.measure:
            made, check, measured = _raced(task, flow, made, check, path, folder, settled)
    report = report_of(task, flow, made.program, made.solved, made.usage, made.folded, check, spent)
    if measured is not None and made.solved is not first:  # its own prices are not the target's
        report["cost"] = _predicted(first, reprice(made.program.roots, task.job.target, task.binding))
    memory = {"input": live_bytes(task, flow.steps(task.program)), "output": live_bytes(task, flow.steps(made.program))}
    session = None if settled is None else settled.summary()
    if task.job.picture is not None:
        report |= task.job.picture(task, made.solved, made.program, flow.names(made.program), flow.kinds(made.program))
    certificate, said = _certified(task, made.solved, path) if task.job.certified else (None, None)
    if certificate is not None:
        report |= certified_rules(certificate, with_witnesses(task.phases, task.job.weakest))
    found = {**report, "memory": memory, "session": session, "left_out": whole.left_out, "measured": measured, "certificate": said}
    return made.program, found, certificate


@dataclass(frozen=True)
class CheckedProgram:
    """What was made of a task without the rules that broke it, as the comparison judged it. `left_out` are the entries of these rules."""

    task: Task
    made: _Made
    judged: _Judged
    spent: Seconds
    left_out: list[dict[str, str]]


def checked(task: Task, flow: Flow, path: Path, folder: Path, spent: Seconds) -> CheckedProgram:
    """The cheapest program found that is equal to the original, written to `path`. What breaks it is left out, a few entries at most.

    Raises:
        CosetError: it cannot be compared. `Refused`: the result differs, and nothing may be left out.
    """
    left_out: list[dict[str, str]] = []
    progress = task.job.progress
    while True:
        made = _make(task, flow, path)
        begun = time.perf_counter()
        progress("comparing with the original")
        judging = partial(_judged, task, flow, made, path, folder, len(left_out))
        judged = within(judging, task.job.check_seconds, say=progress, memory=_most_memory(task))
        spent = spent.more(made.seconds, time.perf_counter() - begun)
        if not judged.breaks:
            return CheckedProgram(task, made, judged, spent, left_out)
        left_out.append({"rule": judged.breaks, "problem": str(judged.check.worst)})
        task = _without(task, judged.breaks)


def _most_memory(task: Task) -> int:
    """Bytes by which the process of a comparison may grow: what the machine has, beside the weights of both models, which lie in files.
    What needs more (a size that was drawn and means a huge tensor) is refused by the runtime there, and ends nothing else."""
    return machine.memory() + 2 * weight_bytes(task.program)


@dataclass(frozen=True)
class _Judged:
    """What the comparison of a program found: the options that it is handed out with, or the entry of the library that `breaks` it."""

    check: CheckReport
    settled: running.Settled | None = None
    breaks: str = ""


def _judged(task: Task, flow: Flow, made: _Made, path: Path, folder: Path, left_out: int, talk: Talk) -> _Judged:
    """What was made and written at `path` beside the original, after so many entries were `left_out`; in a process of its own.

    Raises:
        Refused: as `_broken_by`.
    """
    task = replace(task, job=replace(task.job, progress=talk.say, watch=SILENT))
    compare, attempt = flow.comparison(task, folder), folder / flow.attempt
    check, exact = compare(path, exact=made.exact, exceptions=made.exceptions), made.exact
    if exact and not check.ok and may_round(made.solved) and _exact_rules_keep_bits(task, flow, compare, attempt):
        check, exact = compare(path, exact=False, exceptions=made.exceptions), False
    elif exact and not check.ok and not _keeps_bits(task, flow, compare, attempt):
        check, exact = replace(compare(path, exact=False, exceptions=made.exceptions), loose=LOOSE), False
    if not check.ok:
        check = _as_rounded(task, flow, compare, made, path, attempt, check)
    scales: WeightScales | None = None
    if check.ok:
        scales = scales_of(task.program, check.binding)
        check = scales.compare(check, made.program, made.exceptions)
    settled, breaks = None, ""
    if check.ok:
        settled = _settled(task, flow, compare, made, path, check)
    else:
        talk.more(task.job.check_seconds + TRIALS * task.job.limits.seconds, unblamed(check))
        heavy = None if scales is None else scales.compare
        breaks = _broken_by(task, flow, compare, check, attempt, left_out, exact=exact, heavy=heavy)
    return _Judged(replace(check, feeds={}), settled, breaks)  # nobody looks at the inputs again


def _certified(task: Task, solved: Solved, path: Path) -> tuple[Certificate | None, dict[str, Any]]:
    """The certificate of what is written at `path`, which the checker has accepted, and what the report says of it."""
    from coset.proving.certify import CertifiedWay, certify  # few ask for one
    from coset.proving.steps import Uncertified

    task.job.progress("making the certificate")
    before, after = (read_program(each, inline=not task.job.keep_functions, own=task.job.own().ops) for each in (task.job.model, path))
    phases = with_witnesses(task.phases, task.job.weakest)
    try:
        certificate, said = certify(CertifiedWay(task.program, wanted_roots(task), solved, before, after), phases)
    except Uncertified as error:
        return None, {"ok": False, "reason": error.message}
    return certificate, {"ok": True, **said, "bytes": len(packed(certificate))}


@dataclass(frozen=True)
class _Made:
    """A program that was made and written with the options `wanted`: what it rests on, and the seconds of its stages."""

    solved: Solved
    usage: Sequence[Usage]
    program: Program
    folded: int
    wanted: Running | None
    exact: bool
    seconds: Seconds
    known: Searched

    @property
    def exceptions(self) -> frozenset[str]:
        """What the rules that it rests on except."""
        return exceptions_of(self.usage)


def _make(task: Task, flow: Flow, path: Path, *, prices: Target | None = None, known: Searched | None = None) -> _Made:
    started = time.perf_counter()
    task.job.progress("searching equal programs" if prices is None else "choosing another program")
    found: Searched = {} if known is None else known
    searched = extracted = 0.0

    def solve_at(byte_price: float) -> Solved:
        nonlocal searched, extracted
        solved, seconds = solve_task(task, task.phases, flow.printable(task), prices=prices, byte_price=byte_price, known=found)
        searched, extracted = searched + seconds, time.perf_counter()
        return solved

    chosen = choose(task, solve_at, flow.steps, reorders=flow.reorders)
    refuse_idle(task.job.target, chosen.solved)
    solved, program, folded = chosen.solved, chosen.program, chosen.folded
    usage = _usage(task, solved)
    wanted = flow.chosen(program, solved.cost)
    flow.write(program, path, wanted)
    exact = _exact(task, flow, folded, usage)
    seconds = Seconds(0.0, searched, extracted - started - searched, time.perf_counter() - extracted, 0.0)
    return _Made(solved, usage, program, folded, wanted, exact, seconds, found)


def _raced(
    task: Task, flow: Flow, made: _Made, check: CheckReport, path: Path, folder: Path, settled: running.Settled | None
) -> tuple[_Made, CheckReport, dict[str, Any]]:
    """The fastest of `made`, at `path`, and of other programs of its e-graph, by the clock; all are compared and run with the same options.

    Raises:
        CosetError: nothing here runs such programs.
    """
    options = None if settled is None else settled.running
    first = flow.timed(path, options, task)
    if first is None:
        raise CosetError("--measure times programs, and nothing here runs this one", help="leave it out, or write ONNX")
    others: list[tuple[int, _Made, Path]] = []
    roots = {made.program.roots}
    for index in range(1, task.job.measure + 1):
        place = folder / f"{index}-{flow.attempt}"
        try:
            other = _make(task, flow, place, prices=strayed(task.job.target, index), known=made.known)
        except CosetError:  # at these prices no program that was found keeps to the limits of the job
            continue
        if other.program.roots not in roots:
            roots.add(other.program.roots)
            flow.write(other.program, place, options)
            others.append((index, other, place))
    comparing = partial(_same, task, flow, others, folder, options)
    reports = within(comparing, task.job.check_seconds * len(others)) if others else []
    tried: dict[int, tuple[_Made, CheckReport, Path]] = {0: (made, check, path)}
    candidates = [TimedProgram(0, sum(flow.ops(made.program).values()), made.solved.cost, first)]
    for (index, other, place), compared in zip(others, reports, strict=True):
        call = None if compared is None else flow.timed(place, options, task)
        if compared is not None and call is not None:
            tried[index] = (other, compared, place)
            predicted = reprice(other.program.roots, task.job.target, task.binding)
            candidates.append(TimedProgram(index, sum(flow.ops(other.program).values()), predicted, call))
    outcome = race(candidates, task.job.progress)
    chosen, compared, place = tried[outcome.fastest]
    if outcome.fastest:
        flow.write(chosen.program, path, options)
    return chosen, compared, {"chosen": outcome.fastest, "candidates": outcome.rows}


def _same(
    task: Task, flow: Flow, others: Sequence[tuple[int, _Made, Path]], folder: Path, options: Running | None, _: Talk
) -> list[CheckReport | None]:  # fmt: skip
    """The comparison of each program that was made and written; None for one that differs, as it is or with `options`."""
    compare = flow.comparison(task, folder)

    def report(other: _Made, place: Path) -> CheckReport | None:
        found = compare(place, exact=other.exact, exceptions=other.exceptions)
        same = found.ok and (options is None or compare(place, exact=False, running=options, exceptions=other.exceptions).ok)
        return replace(found, feeds={}) if same else None

    return [report(other, place) for _, other, place in others]


def _predicted(first: Solved, output: float) -> dict[str, Any]:
    """The costs of a program that the clock chose, where the model had chosen `first`."""
    gap = max(0.0, (output - first.lower_bound) / output) if output else 0.0
    return {"input": first.input_cost, "output": output, "lower_bound": first.lower_bound, "gap": gap, "method": "measured"}


Heavy = Callable[[CheckReport, Program, AbstractSet[str]], CheckReport]  # the report on a program, with what is too heavy


def _broken_by(
    task: Task, flow: Flow, compare: Compare, check: CheckReport, attempt: Path, left_out: int, *, exact: bool, heavy: Heavy | None
) -> str:  # fmt: skip
    """The entry that breaks the program, where it may be left out after `left_out` others.

    Raises:
        Refused: it may not, or no rule is at fault.
    """
    task.job.progress("the result differs; looking for the rule that breaks it")
    culprit = _culprit(task, flow, compare, attempt, exact=exact, heavy=heavy)
    rule = next((rule for phase in task.phases for rule in phase.rules if rule.name == culprit), None)
    if rule is None or not comes_with_coset(Path(rule.place.file)) or left_out == LEFT_OUT:  # a rule of the user's is the user's to mend
        raise refused(culprit, check, sorted(task.job.own().ops & flow.given(task.program).keys()))
    task.job.progress(f"rule `{rule.name}` breaks this program; going on without it")
    return rule.family


def _keeps_bits(task: Task, flow: Flow, compare: Compare, attempt: Path) -> bool:
    """Whether the program as it was read has every bit of the original when it is written: the runtime multiplies by a transposed
    operand in another order than by an operand that was transposed before."""
    flow.write(task.program, attempt, None)
    return compare(attempt, exact=True).ok


def _exact_rules_keep_bits(task: Task, flow: Flow, compare: Compare, attempt: Path) -> bool:
    """Whether the program that exact rules alone give has every bit. Then others have rounded, which only led to what is known to be used;
    else a rule that says `exact` is not."""
    solved, _ = solve_task(task, [phase.where(keeps_every_bit) for phase in task.phases], flow.printable(task))
    flow.write(finish(task, solved)[0], attempt, None)
    return compare(attempt, exact=True).ok


def _as_rounded(
    task: Task, flow: Flow, compare: Compare, made: _Made, path: Path, attempt: Path, check: CheckReport
) -> CheckReport:  # fmt: skip
    """The comparison by the evaluator of what differs at the ends alone, where the program as it was read, which is written to `attempt`,
    does so too when the runtime runs it; else `check`."""
    if not only_at_ends(check) or not flow.bitwise or not flow.runs(compare) or task.job.keep:
        return check
    flow.write(task.program, attempt, None)
    if compare(attempt, exact=False).ok:
        return check  # a rule does it
    written = read_program(path, inline=not task.job.keep_functions, own=task.job.own().ops)
    found = by_rounding(task.program, written, check, exact=made.exact, exceptions=made.exceptions)
    return check if found is None else found


def _without(task: Task, family: str) -> Task:
    """The task without the rules of one entry."""
    kept = [phase.where(lambda rule: rule.family != family) for phase in task.phases]
    return replace(task, phases=kept)


def _settled(task: Task, flow: Flow, compare: Compare, made: _Made, path: Path, check: CheckReport) -> running.Settled | None:
    """The options with which what was made, written at `path` with those `wanted`, is handed out; written again where they are others.

    The runtime's optimizer rounds where it likes: that is held to the tolerance, also where the rules keep every bit. Where the runtime
    differs at the ends without its optimizer, and the evaluator has judged (`check`), nothing is asked there.
    """
    sessions = task.job.target.sessions
    if made.wanted is None or sessions is None:
        return None
    if not flow.runs(compare):
        flow.write(made.program, path, None)
        return None
    task.job.progress("comparing as it will be run")
    seen: Callable[[CheckReport], CheckReport] = usual if check.loose == AT_ENDS else lambda report: report
    return running.settle(
        made.wanted,
        sessions.levels,
        lambda options: seen(compare(path, exact=False, running=options, exceptions=made.exceptions)),
        lambda options: flow.write(made.program, path, options),
    )


def _usage(task: Task, solved: Solved) -> list[Usage]:
    """The rules that were used, also inside functions that stay."""
    return together([used_rules(solved), *(each.usage for each in task.functions if isinstance(each, Inside))])


def _exact(task: Task, flow: Flow, folded: int, usage: Sequence[Usage]) -> bool:
    """Whether a program that rests on these rules, with so many constants computed, is to have every bit of the original. Under `exact`
    constants are computed where that has the bits of the runtime (decision 62)."""
    kept = not folded or task.job.weakest == "exact"
    return flow.bitwise and kept and all(keeps_every_bit(one.rule) for one in usage)


def _culprit(task: Task, flow: Flow, compare: Compare, attempt: Path, *, exact: bool, heavy: Heavy | None) -> str | None:
    """The rule without which the program would pass; None where it fails without any. Programs are tried at the path `attempt`; bits
    count where they did when it failed (`exact`), and weights where something was `heavy`."""

    def passes(names: Sequence[str]) -> bool:
        kept = [phase.where(lambda rule: rule.name in names) for phase in task.phases]
        solved, _ = solve_task(task, kept, flow.printable(task))
        optimized, folded = finish(task, solved)
        flow.write(optimized, attempt, None)
        usage = _usage(task, solved)
        exceptions = exceptions_of(usage)
        found = compare(attempt, exact=exact and _exact(task, flow, folded, usage), exceptions=exceptions)
        return found.ok and (heavy is None or heavy(found, optimized, exceptions).ok)

    return breaking_rule([rule.name for phase in task.phases for rule in phase.rules], passes)
