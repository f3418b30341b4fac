"""Bytes that are live while a program runs in a given order, and an order that needs fewer.

Inputs are held all the time, as their caller holds them, and outputs to the end. A step needs its operands and its result at once.
Weights are not counted, nor what a runtime takes for itself (packed weights, scratch memory, an arena's gaps).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from coset.ir.term import GET, INPUT, TUPLE, Term, topological
from coset.lowering.arranging.ordering import Rank, by_growth, by_size, greedy_order

Bytes = Callable[[Term], int]


@dataclass(frozen=True)
class LiveStep:
    """The computation of a value from others; a `view` takes no bytes of its own and keeps those of the one value that it reads.
    `together`: values that come with the result, and whose bytes are counted as long as any of them is read."""

    result: Term
    reads: tuple[Term, ...]
    view: bool = False
    together: tuple[Term, ...] = ()


@dataclass(frozen=True)
class Steps:
    """What a program does, in the order in which it is printed, between `inputs` and `outputs`."""

    steps: tuple[LiveStep, ...]
    inputs: tuple[Term, ...]
    outputs: tuple[Term, ...]

    def in_order(self, order: Sequence[int]) -> Steps:
        """The same steps in another order."""
        return Steps(tuple(self.steps[at] for at in order), self.inputs, self.outputs)


def peak(given: Steps, bytes_of: Bytes) -> int:
    """The most bytes that are live at once."""
    flow = _Flow(given, bytes_of)
    left = list(flow.uses)
    live = most = flow.held
    for at in range(len(given.steps)):
        live += flow.sizes[at]
        most = max(most, live)
        for value in flow.reads[at]:
            left[value] -= 1
        live -= sum(flow.sizes[value] for value in {*flow.reads[at], at} if not left[value])
    return most


def lessened(given: Steps, bytes_of: Bytes) -> Steps:
    """The steps in the order of least peak among that given and two greedy ones: the step that frees most next, or the one that
    takes least. Ties stay in the order given."""
    flow = _Flow(given, bytes_of)
    orders: Sequence[Sequence[int]] = (range(len(given.steps)), flow.greedily(by_growth), flow.greedily(by_size))
    return min((given.in_order(order) for order in orders), key=lambda steps: peak(steps, bytes_of))


class _Flow:
    """Steps by number: what each takes (`sizes`), the steps whose values it reads with views seen through, and how often each value is
    read; that of an output once more, so that it stays."""

    def __init__(self, given: Steps, bytes_of: Bytes) -> None:
        place = {step.result: at for at, step in enumerate(given.steps)}
        self.held = sum(bytes_of(term) for term in dict.fromkeys(given.inputs))
        self.sizes = [0 if step.view else sum(bytes_of(term) for term in (step.result, *step.together)) for step in given.steps]
        self.needs = [sorted({place[term] for term in step.reads if term in place}) for step in given.steps]
        base = list(range(len(given.steps)))
        self.reads: list[list[int]] = []
        for at, step in enumerate(given.steps):
            assert all(other < at for other in self.needs[at]), "steps stand behind what they read"
            if step.view and self.needs[at]:
                base[at] = base[self.needs[at][0]]
            self.reads.append(sorted({base[other] for other in self.needs[at]}))
        self.uses = [0] * len(given.steps)
        for values in self.reads:
            for value in values:
                self.uses[value] += 1
        for term in given.outputs:
            if term in place:
                self.uses[base[place[term]]] += 1

    def greedily(self, rank: Rank) -> list[int]:
        """All steps, of those that can come next the one of least `rank`."""
        return greedy_order(self.sizes, self.needs, self.reads, self.sizes, self.uses, rank)


def places_of(order: Steps) -> dict[Term, int]:
    """Where each value is computed."""
    return {step.result: at for at, step in enumerate(order.steps)}


def steps_of(roots: Sequence[Term], outputs: Sequence[Term]) -> Steps:
    """What a program does where every op is computed as it stands."""
    found = []
    constant: set[Term] = set()
    terms = list(topological(roots))
    for term in terms:
        if term.op is INPUT:
            continue
        if all(operand in constant for operand in term.operands):
            constant.add(term)
        else:
            reads = tuple(operand for operand in dict.fromkeys(term.operands) if operand not in constant)
            found.append(LiveStep(term, reads, term.op in (GET, TUPLE)))
    return Steps(tuple(found), tuple(term for term in terms if term.op is INPUT), tuple(outputs))
