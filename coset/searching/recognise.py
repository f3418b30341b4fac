"""Recognition: which composite ops a program is, whatever the spelling. Definitions are read from right to left; the rules do the rest."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import coset.dialects
from coset.comparing.difference import Difference, difference
from coset.comparing.feeds import Case, Feed, cases
from coset.comparing.fold import fallback_for
from coset.comparing.noise import largest_step, moved
from coset.comparing.sizes import bindings
from coset.egraph.limits import Limits
from coset.egraph.saturate import Saturation, saturate
from coset.egraph.saturated import ENode, Saturated
from coset.extract.select import select
from coset.ir.errors import CosetError
from coset.ir.evaluate import evaluate_program
from coset.ir.program import Program
from coset.ir.term import Term
from coset.job.own_rules import NO_RULES
from coset.job.phases import permitted_phases, with_parts
from coset.targets.target import Form, get_target

assert coset.dialects  # imported so that every op and definition is registered

TARGET = "recognition"
DRAWN = ("normal", "second")  # the promise `real` says nothing about NaN and overflow


@dataclass(frozen=True)
class Recognised:
    """The program with the fewest kernels that was found, and the wanted ops in it.

    `found`: the terms of wanted ops, operands before users. `rest`: the names of all other kernels, with repeats; movement, casts
    and what no input goes into are none. `saturation`: the e-graph, with its size and what ended the search. `difference`: the output
    that is furthest from the original's in the NumPy evaluator.
    """

    program: Program
    found: tuple[Term, ...]
    rest: tuple[str, ...]
    saturation: Saturation
    difference: Difference

    def at_roots(self, op: str) -> tuple[ENode, ...]:
        """The e-nodes of `op` that equal an output up to movement and casts, chosen or not."""
        return tuple(node for node in _at_roots(self.saturation.graph) if node.op.name == op)


def recognise(program: Program, ops: Collection[str], *, numerics: str = "real", limits: Limits | None = None) -> Recognised:
    """`program` in terms of the defined `ops` (by name) where it equals them: they and what they are made of are looked for in every
    form of the program that the library's rules find within `numerics`; then the fewest kernels are chosen.

    Raises:
        CosetError: an op has no definition, the program cannot be evaluated, or the result differs from it (a rule is unsound).
    """
    limits = limits or Limits()
    wanted = with_parts(ops)
    phases = permitted_phases(NO_RULES, numerics, lambda rule: not rule.recognises or rule.definition in wanted, sought=ops)
    saturation = saturate(program.roots, phases, limits)
    binding = next(bindings(program, {}))
    target = get_target(TARGET)
    target = replace(target, forms={**target.forms, **{name: (Form("wanted"),) for name in ops}})
    selection = select(saturation.graph, target, binding, limits)
    recognised = program.with_roots(selection.terms)
    kernels = list(_kernels(recognised))
    return Recognised(
        recognised,
        tuple(term for term in kernels if term.op.name in ops),
        tuple(sorted(term.op.name for term in kernels if term.op.name not in ops)),
        saturation,
        _compared(program, recognised),
    )


def _kernels(program: Program) -> Iterator[Term]:
    """The terms that are computed when the program runs: neither movement, nor casts, nor what no input goes into."""
    free = get_target(TARGET).forms.keys()
    dependent: set[Term] = set()
    for term in program.terms():
        if term.op.name == "builtin.input" or any(operand in dependent for operand in term.operands):
            dependent.add(term)
            if term.op.name not in free:
                yield term


def _at_roots(graph: Saturated) -> Iterator[ENode]:
    """The e-nodes of the roots' classes, and of those classes that movement and casts alone make a root of."""
    free = get_target(TARGET).forms.keys()
    stack, seen = list(graph.roots), set(graph.roots)
    while stack:
        for node in graph.nodes[stack.pop()]:
            yield node
            if node.op.name in free and len(node.children) == 1 and node.children[0] not in seen:
                seen.add(node.children[0])
                stack.append(node.children[0])


def _compared(program: Program, recognised: Program) -> Difference:
    """The output that is furthest from the original's on drawn inputs.

    Raises:
        CosetError: one is beyond its tolerance, or the original cannot be evaluated on drawn inputs.
    """
    found = [
        difference(case.name, name, np.asarray(wanted), np.asarray(got), noise, exact=False)
        for case, expected, steps in _runs(program)
        for (name, _), wanted, got, noise in zip(program.outputs, expected, _evaluated(recognised, case.feed), steps, strict=False)
    ]
    worst = max(found, key=lambda each: (not each.ok, each.max_abs / each.tolerance if each.tolerance else each.max_abs))
    if not worst.ok:
        raise CosetError(f"what was recognised is another program: {worst}")
    return worst


def _runs(program: Program) -> list[tuple[Case, list[Any], list[Any]]]:
    """Drawn inputs with the outputs, and how far each of them moves when every input moves by one rounding error."""
    refusal: CosetError | None = None
    for binding in bindings(program, {}):
        found = []
        try:
            for case in cases(program, binding):
                if case.name in DRAWN:
                    outputs = _evaluated(program, case.feed)
                    pairs = zip(_evaluated(program, moved(case.feed)), outputs, strict=True)
                    found.append((case, outputs, [_step(a, b) for a, b in pairs]))
            return found
        except CosetError as error:
            refusal = error
    assert refusal is not None
    raise refusal


def _evaluated(program: Program, feed: Feed) -> list[Any]:
    with np.errstate(all="ignore"):
        return evaluate_program(program, feed, fallback=fallback_for(program.source))


def _step(a: Any, b: Any) -> float:
    """The largest finite difference of two outputs that are real."""
    return largest_step(a, b) if isinstance(a, np.ndarray) and a.dtype.kind in "fV" else 0.0
