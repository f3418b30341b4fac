"""Congruence closure over terms, with the equations that join two of them.

After Nieuwenhuis and Oliveras, "Proof-producing congruence closure" (RTA 2005): classes are trees of merges beside the union-find, and
what joins two terms is read off the path between them, congruences in turn by the paths between their operands.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field

from coset.ir.term import Term, exact_key

Reason = int | None
"""The number of an equation; None for a congruence."""


@dataclass
class Closure:
    """Terms by number, joined by equations and by congruence. Operands of a term that is entered are entered with it."""

    terms: list[Term] = field(default_factory=list)
    number: dict[Term, int] = field(default_factory=dict)
    operands: list[tuple[int, ...]] = field(default_factory=list)
    heads: list[int] = field(default_factory=list)  # what a term is but for its operands, as a number
    _heads: dict[Hashable, int] = field(default_factory=dict)
    parent: list[int] = field(default_factory=list)  # union-find, by size
    members: list[list[int]] = field(default_factory=list)  # of a root
    users: list[list[int]] = field(default_factory=list)  # terms over a member of the class, of a root
    lookup: dict[tuple[int, ...], int] = field(default_factory=dict)
    edge: list[tuple[int, Reason] | None] = field(default_factory=list)  # towards the root of the tree of merges

    def enter(self, roots: Iterable[Term]) -> None:
        """Enter terms with all below them; those that are equal by congruence are joined."""
        stack = [(root, False) for root in roots]
        while stack:
            term, ready = stack.pop()
            if term in self.number:
                continue
            if ready:
                self._add(term)
                continue
            stack.append((term, True))
            stack += [(operand, False) for operand in term.operands if operand not in self.number]

    def _add(self, term: Term) -> None:
        number = self.number[term] = len(self.terms)
        self.terms.append(term)
        self.operands.append(tuple(self.number[operand] for operand in term.operands))
        key = (term.op, exact_key(term.attributes), term.regions, term.type)
        self.heads.append(self._heads.setdefault(key, len(self._heads)))
        self.parent.append(number)
        self.members.append([number])
        self.users.append([])
        self.edge.append(None)
        for operand in dict.fromkeys(map(self.find, self.operands[number])):
            self.users[operand].append(number)
        self._congruent([number])

    def find(self, number: int) -> int:
        """The class of a term."""
        parent = self.parent
        while parent[number] != number:
            parent[number] = parent[parent[number]]
            number = parent[number]
        return number

    def terms_of(self, number: int) -> list[Term]:
        """The terms of a class."""
        return [self.terms[member] for member in self.members[self.find(number)]]

    def same(self, one: Term, other: Term) -> bool:
        """True when they are joined by now; both were entered."""
        return self.find(self.number[one]) == self.find(self.number[other])

    def join(self, one: Term, other: Term, reason: int) -> None:
        """Equation number `reason`: the two terms, which are entered, are equal."""
        self._merge([(self.number[one], self.number[other], reason)])

    def _congruent(self, numbers: Sequence[int]) -> None:
        pending: list[tuple[int, int, Reason]] = []
        for number in numbers:
            signature = (self.heads[number], *map(self.find, self.operands[number]))
            other = self.lookup.setdefault(signature, number)
            if other != number and self.find(other) != self.find(number):
                pending.append((number, other, None))
        if pending:
            self._merge(pending)

    def _merge(self, pending: list[tuple[int, int, Reason]]) -> None:
        while pending:
            one, other, reason = pending.pop()
            small, large = self.find(one), self.find(other)
            if small == large:
                continue
            if len(self.members[small]) > len(self.members[large]):
                small, large, one, other = large, small, other, one
            self._turn(one)
            self.edge[one] = (other, reason)
            self.parent[small] = large
            self.members[large] += self.members[small]
            self.members[small] = []
            users, self.users[small] = self.users[small], []
            for user in users:
                signature = (self.heads[user], *map(self.find, self.operands[user]))
                found = self.lookup.setdefault(signature, user)
                if found != user and self.find(found) != self.find(user):
                    pending.append((user, found, None))
            self.users[large] += users

    def _turn(self, number: int) -> None:
        """Make `number` the root of its tree of merges."""
        before: tuple[int, Reason] | None = None
        current: int | None = number
        while current is not None:
            edge = self.edge[current]
            self.edge[current] = before
            if edge is None:
                break
            before = (current, edge[1])
            current = edge[0]

    # ------------------------------------------------------------ what joins two terms

    def explain(self, goals: Iterable[tuple[Term, Term]]) -> set[int]:
        """The numbers of equations that join each pair, which is joined."""
        found: set[int] = set()
        done: set[tuple[int, int]] = set()
        stack = [(self.number[one], self.number[other]) for one, other in goals]
        while stack:
            one, other = stack.pop()
            if one == other or (one, other) in done:
                continue
            done.add((one, other))
            for start, end, reason in self._path(one, other):
                if reason is not None:
                    found.add(reason)
                else:
                    stack += zip(self.operands[start], self.operands[end], strict=True)
        return found

    def _path(self, one: int, other: int) -> list[tuple[int, int, Reason]]:
        above: dict[int, int] = {}
        current, steps = one, [one]
        while True:
            above[current] = len(steps) - 1
            edge = self.edge[current]
            if edge is None:
                break
            current = edge[0]
            steps.append(current)
        path: list[tuple[int, int, Reason]] = []
        current = other
        while current not in above:
            edge = self.edge[current]
            assert edge is not None, "the terms are not joined"
            path.append((current, edge[0], edge[1]))
            current = edge[0]
        for start in steps[: above[current]]:
            edge = self.edge[start]
            assert edge is not None
            path.append((start, edge[0], edge[1]))
        return path
