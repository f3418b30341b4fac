"""What becomes of the loops of a program that is lowered for a GPU: one kernel that goes through the rounds, or the rounds one after the
other, whichever is predicted to take less.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from coset.dialects.hub.region_terms import is_closed
from coset.ir.errors import CosetError
from coset.ir.term import Term, get, input_term, rebuild, topological
from coset.ir.types import TensorType
from coset.lowering.kernels.kernel import Plan, Recurrence
from coset.lowering.planning.loops import unrolled
from coset.lowering.planning.plan import plan
from coset.lowering.planning.recurrence import LOOP
from coset.lowering.planning.recurrence_products import lighter_loops
from coset.lowering.planning.rounds import products_of_rounds
from coset.lowering.triton.source import can_emit
from coset.pricing.judge import draft
from coset.pricing.plan_price import PlanPrices

Opened = Callable[[tuple[Term, ...]], tuple[Term, ...]]


@dataclass(frozen=True)
class Loops:
    """How loops are opened. `prices`: what plans take (None: no loop is a kernel). `opened`: terms over what is searched; `primitives`: the
    same where products stay products. `sums`: sums over rounds may be made in another order."""

    prices: PlanPrices | None
    opened: Opened
    primitives: Opened
    sums: bool

    def gone(self, roots: tuple[Term, ...]) -> tuple[Term, ...]:
        """`roots`, over what is searched, with loops as kernels that go through the rounds where these are predicted to take less, and
        others unrolled where their rounds are known."""
        if not any(term.op.name == LOOP for term in topological(roots)):
            return roots
        kept, kernels = lighter_loops(roots, self._pays, sums=self.sums) if self.prices is not None else (roots, frozenset())
        rounds = unrolled(kept, kernels)
        if rounds == kept:
            return roots if kept == roots else self.opened(kept)
        return self.opened(products_of_rounds(self.primitives(rounds), sums=self.sums))

    def _pays(self, loop: Term, live: Sequence[int]) -> bool:
        """Whether a loop is a kernel that takes no longer than its rounds one after the other, with what either needs before and behind it.
        What stands beside it is not looked at."""
        assert self.prices is not None
        operands = [
            each if not isinstance(each.type, TensorType) or is_closed(each) else input_term(f"x{place}", each.type)
            for place, each in enumerate(loop.operands)
        ]
        alone = tuple(get(rebuild(loop, operands), number) for number in live)
        if not all(isinstance(each.type, TensorType) for each in alone):
            return False
        try:
            kernels, _ = lighter_loops(alone, lambda *_: True, sums=self.sums)
            planned = self._planned(self.opened(kernels))
            if not any(isinstance(each, Recurrence) for each in planned.kernels):
                return False
            seconds = self.prices.plan_seconds(planned)
            if seconds <= self._waiting(planned):
                return True
            rounds = unrolled(alone)
            if any(term.op.name == LOOP for term in topological(rounds)):
                return True
            others = self._planned(self.opened(products_of_rounds(self.primitives(rounds), sums=self.sums)))
        except CosetError:  # no kernels can be planned for it: they are refused where the program is lowered
            return False
        return seconds <= self.prices.plan_seconds(others)

    def _waiting(self, planned: Plan) -> float:
        """What the rounds of one of the kernels take at least where they stand one after the other: of products of states each waits for
        the launch of the one before, as each of its columns needs all of that."""
        assert self.prices is not None and self.prices.fusion is not None
        launch = self.prices.target.kernels[self.prices.fusion.rows].launch.value
        counts = [kernel.round.extent for kernel in planned.kernels if isinstance(kernel, Recurrence) and kernel.dots]
        return launch * max((self.prices.sizes.number(count) for count in counts), default=0)

    def _planned(self, roots: Sequence[Term]) -> Plan:
        assert self.prices is not None
        exact = self.prices.numerics == "exact"
        return plan(draft(roots), self.prices.target, binding=self.prices.sizes.binding, computes=can_emit, exact=exact)
