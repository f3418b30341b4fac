"""What is put together looked at part by part: a value of the other program as its slices, and slices and axes of one element moved to
what they are parts of, by rules that only ever move them down, so that many steps of them are few terms."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise

from coset.egraph.request import Phase
from coset.ir.dims import Dim, add
from coset.ir.term import Term, make, rebuild
from coset.proving.constants import Goal
from coset.proving.steps import CertificateStep, said
from coset.rules.rule import Rule

CONCATENATE, SLICE, RESHAPE, TRANSPOSE = (f"stablehlo.{name}" for name in ("concatenate", "slice", "reshape", "transpose"))
UNDONE = {RESHAPE: ("reshape_reshape", "reshape_identity"), TRANSPOSE: ("transpose_transpose", "transpose_identity")}
Meaning = Callable[[Term], Term | None]
MOST_PARTS = 16
PARTS = "parts"  # the phase of rules that only proofs by parts use
# Rules of other phases by which slices, reshapes and transposes go down to what they move, and give nothing back
DOWN = frozenset({
    "slice_identity", "slice_of_transpose", "slice_of_broadcast", "slice_of_scalar", "slice_of_pad", "slice_of_reverse",
    "slice_of_first_part", "slice_of_second_part", "slice_unary", "slice_binary", "slice_of_iota", "reduce_of_slice",
    "map_of_slice",
    "reshape_identity", "reshape_reshape", "reshape_of_scalar", "reshape_of_broadcast", "reshape_unary", "reshape_binary", "reshape_choice",
    "transpose_of_ones", "broadcast_without_ones", "broadcast_adds_ones",
    "transpose_identity", "transpose_transpose", "transpose_unary", "transpose_binary", "transpose_choice", "transpose_of_broadcast",
    "broadcast_of_transpose", "reduce_transposed", "transpose_in_left_operand", "transpose_in_right_operand", "transpose_of_contraction",
    "broadcast_identity", "broadcast_broadcast", "reverse_nothing", "concatenate_slices", "three_side_by_side", "four_side_by_side",
    "pointwise_as_product",
})  # fmt: skip


def down(phases: Iterable[Phase]) -> Phase:
    """The rules of `phases` that move slices, reshapes and transposes down, as one phase."""
    rules = ((phase.name, rule) for phase in phases for rule in phase.rules)
    return Phase(PARTS, tuple(rule for name, rule in rules if name == PARTS or re.split(r"[\[#*]", rule.name)[0] in DOWN))


def in_parts(goals: Iterable[Goal], rules: Mapping[str, Rule], meaning: Meaning) -> tuple[list[CertificateStep], list[Goal]]:
    """The steps to the terms of each goal as parts side by side, where one of them is put together, perhaps moved afterwards, and the pairs
    of parts, which are looked at in the same way; goals of which neither term is stay as they are. `meaning`: what a term is defined as."""
    steps: list[CertificateStep] = []
    found: list[Goal] = []
    waiting = list(goals)[::-1]
    parts = 0
    while waiting:
        one, other = waiting.pop()
        alike = one.type == other.type  # operands of two ops of one name need not be
        for whole, joined, back in ((one, other, False), (other, one, True)) if alike else ():
            chain, inner = _moved_from(joined, meaning)
            if inner.op.name != CONCATENATE or not 1 < len(inner.operands) <= MOST_PARTS or parts + len(inner.operands) > 4 * MOST_PARTS:
                continue
            before, moves = moved_back(whole, chain, rules)
            pieces, sliced = _sliced(before, inner, rules)
            steps += [*moves, *_nested(inner, rules), *sliced]
            parts += len(pieces)
            pairs = zip(pieces, inner.operands, strict=True)
            waiting += [(mine, theirs) if not back else (theirs, mine) for mine, theirs in pairs][::-1]
            break
        else:
            found.append((one, other))
    return steps, found


def _moved_from(term: Term, meaning: Meaning) -> tuple[list[Term], Term]:
    """The reshapes and transposes at the top of a term, and what they move; through what terms mean."""
    chain = []
    while True:
        if term.op.name in UNDONE:
            chain.append(term)
            term = term.operands[0]
        elif (found := meaning(term)) is not None and found.op.name in (*UNDONE, CONCATENATE):
            term = found
        else:
            return chain, term


def moved_back(whole: Term, chain: Sequence[Term], rules: Mapping[str, Rule]) -> tuple[Term, list[CertificateStep]]:
    """What the reshapes and transposes of `chain`, from the last one to the first, move to `whole`, and the steps that they do."""
    backs = [whole]
    for each in chain:
        if each.op.name == RESHAPE:
            backs.append(make(RESHAPE, (backs[-1],), {"shape": each.operands[0].tensor.dims}))
        else:
            order = each.attribute("permutation")
            backs.append(make(TRANSPOSE, (backs[-1],), {"permutation": tuple(order.index(axis) for axis in range(len(order)))}))
    steps = []
    for each, inner, back in zip(reversed(chain), reversed(backs[:-1]), reversed(backs), strict=False):
        term = rebuild(each, [back])
        for name in UNDONE[each.op.name]:
            step = None if name not in rules else said(rules[name], term)
            if step is not None:
                steps.append(step)
                (term,) = step.right
        assert term is inner
    return backs[-1], steps


def _nested(joined: Term, rules: Mapping[str, Rule]) -> list[CertificateStep]:
    """The steps to the first of many parts side by side, and the last one beside them, and so on."""
    beside = [rule for name, rule in rules.items() if "side_by_side" in name and len(rule.pairs[0][0].operands) > 2]
    steps = []
    while len(joined.operands) > 2:
        step = next(step for rule in beside if (step := said(rule, joined)) is not None)
        steps.append(step)
        joined = step.right[0].operands[0]
    return steps


def _sliced(whole: Term, like: Term, rules: Mapping[str, Rule]) -> tuple[list[Term], list[CertificateStep]]:
    """The parts of a term that is cut as another one is put together, and the steps that they are it."""
    axis, rank = like.attribute("dimension"), whole.tensor.rank
    ends: list[Dim] = [0]
    for part in like.operands:
        ends.append(add(ends[-1], part.tensor.dims[axis]))

    def cut(low: Dim, high: Dim) -> Term:
        start: list[Dim] = [0] * rank
        limit = list(whole.tensor.dims)
        start[axis], limit[axis] = low, high
        return make(SLICE, (whole,), {"start": tuple(start), "limit": tuple(limit), "strides": (1,) * rank})

    parts = [cut(*pair) for pair in pairwise(ends)]
    steps, first = [], parts[0]
    for part in parts[1:]:
        step = said(rules["concatenate_slices"], make(CONCATENATE, (first, part), {"dimension": axis}))
        assert step is not None
        steps.append(step)
        first = step.right[0]
    step = said(rules["slice_identity"], first)
    assert step is not None
    return parts, [*steps, step]
