"""The rules that take part in a search, by phase: what the numerics allow, what the target can use, what the user adds or leaves out."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any

from coset.dialects.onnx.own import domain_and_name
from coset.egraph.request import Phase
from coset.ir.errors import CosetError
from coset.ir.op import get_op
from coset.job.admission import EVERY_RULE
from coset.job.job import Job
from coset.job.kernels import kernel_errors
from coset.job.own_rules import OwnRules, warn
from coset.lowering.onnx.named import first_version
from coset.rules.definition import definition_of, is_defined, is_kernel
from coset.rules.equation import NUMERICS_ORDER
from coset.rules.library import DEFAULT, load
from coset.rules.rule import Rule, permitted
from coset.rules.written import WrittenRule
from coset.targets.ops import check_ops
from coset.targets.target import Target, get_target, target_names

COMPOSITE = "kernel"  # the dialect of composite kernels, and the phase that looks for them
LAST = "recognise"  # the phase of those rules, and of rules that need what they find
WITNESS = "witness"  # the phase of rules that only certificates are made with
MOVING = "parts"  # the phase of those that run by themselves, where programs are compared part by part
RUNTIME = "ort"  # the dialect of ONNX Runtime's own ops
PARTS = "part"  # the dialect of what definitions have in common, which no target runs alone


def phases_for(job: Job, newest: int) -> list[Phase]:
    """The rules that the job allows somewhere, where `newest` is the highest version of ONNX's ops that the result may use.

    Raises:
        CosetError: as `permitted_phases` and `Admission.check`; a target of the user's speaks of ops that there are not, or a kernel is
            said to be on a target that does not have it.
    """
    if job.numerics not in NUMERICS_ORDER:
        raise CosetError(f"there are no numerics `{job.numerics}`", help=f"one of: {', '.join(NUMERICS_ORDER)}")
    check_ops(job.target)
    run = [get_op(op).name for forms in _run_on(job.target) for op, found in forms.items() if found]  # read by that: they may be recognised
    composites = with_parts(op for op in run if op.startswith(f"{COMPOSITE}.") or is_kernel(op) or domain_and_name(get_op(op)) is not None)
    own = job.own()
    warn(own, job.progress)
    phases = permitted_phases(own, job.weakest, lambda rule: _wanted(rule, job.target, newest, composites), sought=job.target.forms)
    if job.admission != EVERY_RULE:
        every = permitted_phases(own, NUMERICS_ORDER[-1], lambda _: True)
        job.admission.check(rule for phase in every for rule in phase.rules)
        phases = job.admission.phases(phases)
    for error in kernel_errors():
        raise error
    return phases


def permitted_phases(own: OwnRules, numerics: str, wanted: Callable[[Rule], bool], *, sought: Container[str] | None = None) -> list[Phase]:
    """The library's rules and the user's `own` ones that promise no less than `numerics` and are `wanted`, by phase.

    Recognition comes last: ops are looked for in all forms that the other phases found, and give them no new ones. Behind it come
    composite kernels with the movement around named ops that they need, where one is wanted: one of those that are `sought`, not only what
    they are made of; None: any.

    Raises:
        CosetError: there are no such numerics, or a file has a mistake.
    """
    if numerics not in NUMERICS_ORDER:
        raise CosetError(f"there are no numerics `{numerics}`", help=f"one of: {', '.join(NUMERICS_ORDER)}")
    written = [rule for rule in own.sources if isinstance(rule, WrittenRule)]
    library = load([*DEFAULT, *(path for path in own.sources if not isinstance(path, WrittenRule))], written=written)
    usable = [
        (phase.name, [own.assured(r) for r in phase.rules if permitted(r.numerics, numerics) and wanted(r)]) for phase in library.phases
    ]
    recognised = [rule for _, rules in usable for rule in rules if rule.recognises]
    plain = {name: tuple(rule for rule in rules if not rule.recognises) for name, rules in usable}
    named, composite = ([r for r in recognised if _is_composite(r) is kind] for kind in (False, True))
    last, moving = (*plain.pop(LAST, ()), *named), plain.pop(COMPOSITE, ())
    for name in (WITNESS, MOVING):
        plain.pop(name, None)
    phases = [*(Phase(name, rules) for name, rules in plain.items()), Phase(LAST, last)]
    # movement around named ops is for those who ask for what they are parts of
    if not composite:
        return phases
    found = frozenset(str(rule.definition) for rule in composite)
    seeks = found if sought is None else frozenset(op for op in found if op in sought)
    return [*phases, Phase(COMPOSITE, (*moving, *composite), seeks)]


def _is_composite(rule: Rule) -> bool:
    """Whether a rule finds a composite kernel, or an op of the user's that means something with one."""
    return rule.dialect == COMPOSITE or any(spelled.startswith(f"{COMPOSITE}.") for spelled in rule.reads)


def with_witnesses(phases: Sequence[Phase], numerics: str = "reassociates") -> list[Phase]:
    """`phases` with the rules that certificates are made with and that promise no less than `numerics`, in the one that has most rules:
    what they are about arises there. Behind them is the phase of those about parts."""
    every = {phase.name: [rule for rule in phase.rules if permitted(rule.numerics, numerics)] for phase in load(DEFAULT).phases}
    given = list(phases) or [Phase(WITNESS, ())]
    place = max(range(len(given)), key=lambda at: len(given[at].rules))
    given[place] = replace(given[place], rules=(*every.get(WITNESS, ()), *given[place].rules))
    return [*given, Phase(MOVING, tuple(every.get(MOVING, ())))]


def with_parts(ops: Iterable[str]) -> set[str]:
    """`ops` and every defined op that their definitions are made of: none of them is found before its parts are."""
    found: set[str] = set()
    pending = sorted(ops)
    for name in pending:
        if not is_defined(get_op(name)):
            raise CosetError(f"`{name}` has no definition to be recognised by", help="`coset rules --ops` lists the definitions")
    while pending:
        name = pending.pop()
        if name not in found and is_defined(get_op(name)):
            found.add(name)
            pending += sorted(definition_of(get_op(name)).mentioned)
    return found


def _of_runtimes(spelled: Iterable[str]) -> list[str]:
    """Among ops with their numbers of operands the kernels of targets and what only those are made of."""
    names = {each.rpartition("/")[0] for each in spelled}
    return sorted(name for name in names if is_kernel(name) or name.partition(".")[0] == RUNTIME)


def _run_on(target: Target) -> list[Mapping[str, Any]]:
    """The forms of the target and of its host."""
    return [target.forms, *([] if target.host is None else [get_target(target.host).forms])]


def _wanted(rule: Rule, target: Target, newest: int, composites: AbstractSet[str]) -> bool:
    """No definition is read of an op that the target runs whole. Others are read from right to left only into ops that the target runs and
    the model's version of ONNX can hold, and into those that its `composites` are made of; a `kernel` only into those of the targets that
    it names. A rule that makes one, or a part of one, is for targets that run it."""
    if rule.definition is None:
        return set(_of_runtimes(rule.makes)) <= composites
    if any(form.whole for form in target.forms.get(rule.definition, ())):
        return False
    if not rule.recognises:
        return True
    kernel = {get_target(name).name for name in rule.targets if name in target_names()}
    if rule.targets and kernel.isdisjoint((target.name, *target.bases)):
        return False
    runs = rule.definition in target.forms or rule.dialect == target.dialect
    runs |= target.host is not None and rule.definition in get_target(target.host).forms
    return rule.dialect == PARTS or rule.definition in composites or (runs and first_version(rule.definition) <= newest)
