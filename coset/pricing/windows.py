"""Which convolutions of a program are kernels over windows, and which products a library's: by the price of the whole plan, for what a
kernel saves is what it takes in of those beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Set
from dataclasses import dataclass
from functools import cached_property, partial

from coset.ir.program import Program
from coset.ir.term import Term, topological
from coset.lowering.kernels.kernel import Plan
from coset.lowering.planning.plan import opened, plan
from coset.lowering.triton.source import can_emit
from coset.pricing.convolutions import windows_may_pay
from coset.pricing.library import library_may_pay, library_pays
from coset.pricing.plan_price import PlanPrices
from coset.rules.equation import NUMERICS_ORDER
from coset.targets.target import Target

MOST = 48  # kinds of convolutions and products of a program that are looked at one by one


@dataclass(frozen=True)
class Planning:
    """What plans of one program are made for. `binding` and `atomics`: as `plan` takes them; `numerics`: of its kernels."""

    program: Program
    target: Target
    binding: Mapping[str, int]
    atomics: bool = False
    numerics: str = NUMERICS_ORDER[0]

    def library(self) -> Plan:
        """The plan in which a library does every convolution, and the products that pay by themselves.

        Raises:
            CosetError: as `plan`.
        """
        return self._prices.laid_out(self._plan(self._paying(self._prices)))

    def cheapest(self, by: PlanPrices) -> Plan:
        """The cheapest plan that is found `by` some prices: convolutions of one shape are all kernels or none, products of one shape all a
        library's or none, one shape after the other is tried out the other way.

        Raises:
            CosetError: as `plan`.
        """
        windows = self._kinds(partial(windows_may_pay, by.machine))
        products = self._kinds(partial(library_may_pay, by.machine))
        chosen = self._paying(by)
        library = best = self._plan(chosen)
        if not windows and not products:
            return self._prices.laid_out(library)
        least, tried = self._roughly(library, by), {chosen}
        together = (frozenset(windows), frozenset(products) - chosen, frozenset(products) & chosen)
        for change in (*together, *(frozenset({kind}) for kind in [*windows, *products][:MOST])):
            if chosen ^ change in tried:
                continue
            tried.add(chosen ^ change)
            trial = self._plan(chosen ^ change)
            seconds = self._roughly(trial, by)
            if seconds < least:
                best, least, chosen = trial, seconds, chosen ^ change
        return min((self._prices.laid_out(made) for made in (library, best)), key=by.plan_seconds)

    @cached_property
    def _prices(self) -> PlanPrices:
        """What orders of dims are chosen by."""
        return PlanPrices(self.target, self.binding, numerics=self.numerics)

    @cached_property
    def _terms(self) -> tuple[Term, ...]:
        return tuple(topological(opened(self.program)))

    def _kinds(self, wanted: Callable[[Term], bool]) -> list[Hashable]:
        """The kinds of ops that are `wanted`, each once."""
        return list(dict.fromkeys(_kind(term) for term in self._terms if wanted(term)))

    def _paying(self, by: PlanPrices) -> frozenset[Hashable]:
        """The kinds of products that a library does sooner, whatever is beside them."""
        return frozenset(self._kinds(partial(library_pays, by.machine)))

    def _roughly(self, made: Plan, by: PlanPrices) -> float:
        """Seconds where whole regions have their features last or first."""
        return by.plan_seconds(self._prices.laid_out(made, rounds=0))

    def _plan(self, kinds: Set[Hashable]) -> Plan:
        """The plan in which those kinds are done the other way: convolutions by kernels, products by a library."""

        def windows(term: Term) -> bool:
            return _kind(term) in kinds

        def libraries(term: Term) -> bool:
            return _kind(term) in kinds and library_may_pay(self._prices.machine, term)

        wanted = windows if kinds else None
        return plan(
            self.program, self.target, binding=self.binding, computes=can_emit, windows=wanted, libraries=libraries, atomics=self.atomics,
            exact=self.numerics == "exact",
        )  # fmt: skip


def _kind(term: Term) -> Hashable:
    return (term.op, term.attributes, *(operand.type for operand in term.operands))
