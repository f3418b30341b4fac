"""Why a package that differs from its model is not handed out: the kernel at fault, or the rule where all kernels do what they should."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from coset.comparing.check import CheckReport, breaking_rule
from coset.comparing.difference import difference
from coset.comparing.fault import Made, first_fault
from coset.comparing.feeds import Case
from coset.comparing.reference import noise_of, nudges, values_of
from coset.comparing.refused import Refused
from coset.ir.program import Program
from coset.lowering.kernels.kernel import Plan
from coset.searching.solving import finish, solve_task
from coset.searching.task import Task

OTHER = "leave rules out (--disable-rule)"  # then another form of the program is found


@dataclass(frozen=True)
class ComparedPackage:
    """A program and its plan (None: there is none), with the package that was compared, and the one of torch functions where that is
    another."""

    program: Program
    plan: Plan | None
    made: Made
    plain: Made | None


def refusal(original: Program, task: Task, report: CheckReport, candidate: ComparedPackage, *, amplified: float) -> Refused:
    """The error for a package that a comparison with the `original` refused; `amplified` as `against_reference`."""
    worst = report.worst
    assert worst is not None, "what differs differs in an output"
    what = f"output `{worst.output}` on {worst.case} inputs: {worst.problem or f'{worst.max_abs:.3g} off'}"
    message = f"the package differs from the model ({what}); it is not handed out"
    if candidate.plan is None:
        return Refused(message, rule=None, check=report, help=f"restrict --numerics, or {OTHER}; please report the model")
    case = Case(worst.case, report.feeds[worst.case])
    task.job.progress("looking for the kernel at fault")
    fault = first_fault(candidate.program, candidate.plan, case, report.binding, candidate.made, amplified=amplified, plain=candidate.plain)
    if fault is not None:
        help = f"another form of the program may do without this kernel: {OTHER}, or use --code aten; please report the model"
        return Refused(f"{message}; {fault}", rule=None, check=report, help=help, fault=fault.summary())
    task.job.progress("every kernel does what its ops mean: looking for the rule at fault")
    rule = _rule_at_fault(original, task, case)
    if rule is None:
        why = "every kernel does what its ops mean, and without any rule the program differs too"
        return Refused(f"{message}; {why}", rule=None, check=report, help="restrict --numerics; please report the model")
    why = f"every kernel does what its ops mean: rule `{rule}` breaks the program"
    return Refused(
        f"{message}; {why}", rule=rule, check=report, help=f"leave it out (--disable-rule {rule}); please report it with the model"
    )


def _rule_at_fault(original: Program, task: Task, case: Case) -> str | None:
    """The rule without which the program that is found would mean what the original does on a case; None where it is no rule."""
    expected = values_of(original, case.feed)
    noise = noise_of(original, nudges(original), case.feed, expected)

    def passes(names: Sequence[str]) -> bool:
        wanted = set(names)
        solved, _ = solve_task(task, [phase.where(lambda rule: rule.name in wanted) for phase in task.phases])
        found = values_of(finish(task, solved)[0], case.feed)
        return all(difference(case.name, name, value, found[name], noise[name], exact=False).ok for name, value in expected.items())

    return breaking_rule([rule.name for phase in task.phases for rule in phase.rules], passes)
