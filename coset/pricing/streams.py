"""A package's kernels beside each other, where its target predicts that this pays."""

from __future__ import annotations

from typing import Any

from coset.lowering.arranging.streams import beside
from coset.lowering.kernels.kernel import Plan
from coset.pricing.plan_price import PlanPrices


def on_streams(plan: Plan, prices: PlanPrices, most: int | None) -> tuple[Plan, dict[str, Any] | None]:
    """The plan with its kernels on up to `most` streams (None: as many as the target has), and what a report says of it; the plan as it is
    and None where one kernel after the other is as good, or the target does not say what waiting costs."""
    numbers = prices.target.numbers
    if "wait" not in numbers or (most is None and "streams" not in numbers):
        return plan, None
    prices.plan_seconds(plan)  # gives a number to each symbol that has none
    found = beside(plan, prices.work, most=int(numbers["streams"].value) if most is None else most, wait=numbers["wait"].value)
    if found is None:
        return plan, None
    streams = found.plan.streams
    assert streams is not None
    told = {
        "count": max(streams.of) + 1, "seconds": found.seconds, "in_turn": found.in_turn, "waits": sum(map(len, streams.waits)),
        "arena": found.plan.arena, "arena_in_turn": plan.arena,
    }  # fmt: skip
    return found.plan, told
