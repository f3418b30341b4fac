"""Loops that are one kernel: which they are, and how a plan begins one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from coset.ir.term import GET, Term, topological
from coset.lowering.kernels.indexing import Index
from coset.lowering.kernels.kernel import Loop
from coset.lowering.planning.group import RECURRENCE
from coset.lowering.planning.kinds import cost_of, is_light
from coset.lowering.planning.recurrence import LOOP, ROUND, Rounds, rounds_of
from coset.lowering.planning.recurrence_places import DEPTH, PRODUCT, Irregular, RecurrenceLayout, layout_of

if TYPE_CHECKING:
    from coset.lowering.planning.grouping import Grouper


@dataclass(frozen=True)
class Recurring:
    """A loop that is one kernel."""

    rounds: Rounds
    layout: RecurrenceLayout

    def index(self, number: int) -> Index:
        """Where result `number` of the loop stands; a stack's over the round."""
        if number in self.rounds.carried:
            return self.layout.at[self.rounds.carried[number].parameter]
        stack, index = self.rounds.stacks[number], list(self.layout.stacks[number])
        index[stack.axis] = stack.place
        return tuple(index)

    def light(self) -> list[Term]:
        """The terms of a round that are neither folds nor products nor outside."""
        return [term for term in topological(self.rounds.results(), known=self.rounds.outside) if is_light(term)]

    def matrices(self) -> list[Term]:
        """What states are multiplied by."""
        moving = self.rounds.moving()
        products = [term for term, _ in self.layout.reads if term.op.name == PRODUCT]
        return [operand for term in products for operand in term.operands if operand not in moving]


_KNOWN: WeakKeyDictionary[Term, Recurring | str] = WeakKeyDictionary()


def recurring(loop: Term) -> Recurring | str:
    """A loop as a kernel, or why it is none."""
    if loop not in _KNOWN:
        found = _tried(loop, opened=False)
        again = _tried(loop, opened=True) if isinstance(found, str) else found
        _KNOWN[loop] = found if isinstance(again, str) else again
    return _KNOWN[loop]


def no_kernel(loop: Term) -> str:
    """Why a loop is no kernel."""
    found = recurring(loop) if loop.op.name == LOOP else ""
    return found if isinstance(found, str) else "an op in it has no form in kernels, or what no round changes is read of it"


def _tried(loop: Term, *, opened: bool) -> Recurring | str:
    rounds = rounds_of(loop, opened=opened)
    if rounds is None:
        return "its rounds are not counted to a bound that is known before"
    try:
        return Recurring(rounds, layout_of(rounds))
    except Irregular as why:
        return str(why)


def recurring_in(order: Iterable[Term], computes: Callable[[Term], bool] = lambda _: True) -> dict[Term, Recurring]:
    """The loops among terms that are kernels: those of which only what is carried and stacks is read, and all of whose ops kernels
    compute."""
    found: dict[Term, Recurring] = {}
    spoiled: set[Term] = set()
    for term in order:
        if term.op.name == LOOP:
            each = recurring(term)
            if isinstance(each, Recurring) and all(map(computes, each.light())):
                found[term] = each
        elif term.op is GET and term.operands[0] in found:
            rounds = found[term.operands[0]].rounds
            if term.attribute("index") in rounds.known:
                spoiled.add(term.operands[0])
    return {loop: each for loop, each in found.items() if loop not in spoiled}


def place_recurrence(walk: Grouper, term: Term) -> None:
    """Begin a kernel with a loop."""
    found = walk.loops[term]
    rows = [loop.extent for loop in found.layout.loops if loop.name in found.layout.rows]
    matrices = [each for each in topological(found.matrices()) if each in found.rounds.outside]
    walk.store_operands(matrices, [rows] * len(matrices))  # each program reads the whole of them
    group = walk.open(RECURRENCE, term)
    group.loops = {f"i{number}": loop for number, loop in enumerate(found.layout.loops)}
    group.loops["t0"] = Loop(ROUND, found.rounds.count)
    if found.layout.deep is not None:
        group.loops["k0"] = Loop(DEPTH, found.layout.deep)
    group.columns = found.layout.columns
    group.heavy.append(term)
    group.size += sum(map(cost_of, found.light()))
    size = group.size
    for operand in dict.fromkeys(term.operands):
        if operand in walk.weight and operand not in walk.home:
            size += walk.weight[operand]
            if size > walk.limits.scalars:
                size -= walk.weight[operand]
                walk.found.required.add(operand)
                walk.pointwise(operand)
    walk.add(group, term, ())


def result_index(walk: Grouper, term: Term) -> Index:
    """Where a result of a loop stands in its kernel."""
    return walk.loops[term.operands[0]].index(term.attribute("index"))
