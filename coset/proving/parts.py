"""What is put together looked at part by part: a value of the other program as its slices, and slices and axes of one element moved to
what they are parts of, by rules that only ever move them down, so that many steps of them are few terms."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from coset.egraph.search import Phase
from coset.ir.term import Term, make
from coset.proving.constants import Goal
from coset.proving.steps import Step
from coset.rules.applied import decided, matched, right_sides
from coset.rules.rule import Rule

CONCATENATE, SLICE = "stablehlo.concatenate", "stablehlo.slice"
MOST_PARTS = 16
# Rules by which slices, reshapes and transposes go down to what they move, and give nothing back
DOWN = frozenset({
    "slice_identity", "slice_slice", "slice_of_transpose", "slice_of_broadcast", "slice_of_scalar", "slice_of_pad", "slice_of_reverse",
    "slice_of_first_part", "slice_of_second_part", "slice_unary", "slice_binary", "slice_choice", "slice_of_iota", "reduce_of_slice",
    "map_of_slice", "slice_of_contraction", "slice_of_split_axis_anywhere", "slice_of_merged_axes", "slice_within_merged_axes",
    "groups_of_convolution", "channels_of_convolution",
    "reshape_identity", "reshape_reshape", "reshape_of_scalar", "reshape_of_broadcast", "reshape_unary", "reshape_binary", "reshape_choice",
    "transpose_without_ones", "transpose_of_ones", "broadcast_without_ones", "broadcast_adds_ones", "batch_without_ones",
    "one_before_reduction",
    "transpose_identity", "transpose_transpose", "transpose_unary", "transpose_binary", "transpose_choice", "transpose_of_broadcast",
    "broadcast_of_transpose", "reduce_transposed", "transpose_in_left_operand", "transpose_in_right_operand", "transpose_of_contraction",
    "broadcast_identity", "broadcast_broadcast", "reverse_nothing", "concatenate_slices",
})  # fmt: skip


def down(phases: Iterable[Phase]) -> Phase:
    """The rules of `phases` that move slices, reshapes and transposes down, as one phase."""
    rules = (rule for phase in phases for rule in phase.rules)
    return Phase("parts", tuple(rule for rule in rules if re.split(r"[\[#*]", rule.name)[0] in DOWN))


def in_parts(one: Term, other: Term, rules: Mapping[str, Rule]) -> tuple[list[Step], list[Goal]] | None:
    """The steps to both terms as parts side by side, where one of them is put together, and the pairs of parts; None where neither is, or
    one has too many parts."""
    for whole, joined, back in ((one, other, False), (other, one, True)):
        if joined.op.name == CONCATENATE and 1 < len(joined.operands) <= MOST_PARTS:
            steps = [*_nested(joined, rules)]
            parts, sliced = _sliced(whole, joined, rules)
            pairs = list(zip(parts, joined.operands, strict=True))
            return [*steps, *sliced], [(mine, theirs) if not back else (theirs, mine) for mine, theirs in pairs]
    return None


def said(rule: Rule | None, root: Term) -> Step | None:
    """The rule at `root`; None where it does not hold there."""
    found = None if rule is None else matched(rule, (root,))
    decision = None if found is None or rule is None else decided(rule, *found)
    return None if found is None or decision is None or rule is None else Step(rule, (root,), right_sides(rule, decision, found[1]))


def _nested(joined: Term, rules: Mapping[str, Rule]) -> list[Step]:
    """The steps to the first of many parts side by side, and the last one beside them, and so on."""
    beside = [rule for name, rule in rules.items() if "side_by_side" in name and len(rule.pairs[0][0].operands) > 2]
    steps = []
    while len(joined.operands) > 2:
        step = next(step for rule in beside if (step := said(rule, joined)) is not None)
        steps.append(step)
        joined = step.right[0].operands[0]
    return steps


def _sliced(whole: Term, like: Term, rules: Mapping[str, Rule]) -> tuple[list[Term], list[Step]]:
    """The parts of a term that is cut as another one is put together, and the steps that they are it."""
    axis, rank = like.attribute("dimension"), whole.tensor.rank
    ends = [0]
    for part in like.operands:
        ends.append(ends[-1] + part.tensor.dims[axis])

    def cut(low: object, high: object) -> Term:
        start, limit = [0] * rank, list(whole.tensor.dims)
        start[axis], limit[axis] = low, high
        return make(SLICE, (whole,), {"start": tuple(start), "limit": tuple(limit), "strides": (1,) * rank})

    parts = [cut(*pair) for pair in zip(ends, ends[1:], strict=False)]
    steps, first = [], parts[0]
    for part in parts[1:]:
        step = said(rules["concatenate_slices"], make(CONCATENATE, (first, part), {"dimension": axis}))
        assert step is not None
        steps.append(step)
        first = step.right[0]
    step = said(rules["slice_identity"], first)
    assert step is not None
    return parts, [*steps, step]
