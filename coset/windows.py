"""Which convolutions of a program are kernels over windows, and which a library's: by the price of the whole plan, for what a kernel saves
is what it takes in of those beside it.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Set
from dataclasses import dataclass
from functools import cached_property

from coset.ir.program import Program
from coset.ir.term import Term, topological
from coset.lowering.kernel import Plan
from coset.lowering.plan import opened, plan
from coset.lowering.triton import can_emit
from coset.plan_price import PlanPrices
from coset.rules.rule import NUMERICS_ORDER
from coset.targets.target import Target

MOST = 48  # kinds of convolutions of a program that are looked at one by one


@dataclass(frozen=True)
class Planning:
    """What plans of one program are made for. `binding` and `atomics`: as `plan` takes them; `numerics`: of its kernels."""

    program: Program
    target: Target
    binding: Mapping[str, int]
    atomics: bool = False
    numerics: str = NUMERICS_ORDER[0]

    def library(self) -> Plan:
        """The plan in which a library does every convolution.

        Raises:
            CosetError: as `plan`.
        """
        return self._prices.laid_out(self._plan(frozenset()))

    def cheapest(self, by: PlanPrices) -> Plan:
        """The cheapest plan that is found `by` some prices: convolutions of one shape are all kernels or none, one shape after the other is
        tried out the other way.

        Raises:
            CosetError: as `plan`.
        """
        library = best = self._plan(frozenset())
        kinds = list(dict.fromkeys(_kind(term) for term in topological(opened(self.program)) if by.may_be_windowed(term)))
        if not kinds:
            return self._prices.laid_out(library)
        least, chosen = self._roughly(library, by), frozenset[Hashable]()
        for change in (frozenset(kinds), *(frozenset({kind}) for kind in kinds[:MOST])):
            trial = self._plan(chosen ^ change)
            seconds = self._roughly(trial, by)
            if seconds < least:
                best, least, chosen = trial, seconds, chosen ^ change
        return min((self._prices.laid_out(made) for made in (library, best)), key=by.plan_seconds)

    @cached_property
    def _prices(self) -> PlanPrices:
        """What orders of dims are chosen by."""
        return PlanPrices(self.target, self.binding, numerics=self.numerics)

    def _roughly(self, made: Plan, by: PlanPrices) -> float:
        """Seconds where whole regions have their features last or first."""
        return by.plan_seconds(self._prices.laid_out(made, rounds=0))

    def _plan(self, kinds: Set[Hashable]) -> Plan:
        def windows(term: Term) -> bool:
            return _kind(term) in kinds

        wanted = windows if kinds else None
        exact = self.numerics == "exact"
        return plan(self.program, self.target, binding=self.binding, computes=can_emit, windows=wanted, atomics=self.atomics, exact=exact)


def _kind(term: Term) -> Hashable:
    return (term.op, term.attributes, *(operand.type for operand in term.operands))
