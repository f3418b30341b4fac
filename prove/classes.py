"""Congruence closure for the checker: which terms are equal by the equations so far, and because equal operands give equal terms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from coset.ir.term import CONSTANT, Term, exact_key, topological


class Classes:
    """Terms in classes. Every term that is entered has its operands entered too."""

    def __init__(self) -> None:
        self.number: dict[Term, int] = {}
        self.parent: list[int] = []
        self.own: list[list[Term]] = []
        self.users: list[list[Term]] = []
        self.values: list[list[Term]] = []  # the constants of a class
        self.known: dict[Any, Term] = {}

    def enter(self, terms: Sequence[Term]) -> None:
        """Enter terms with all below them; those that are equal by congruence are joined."""
        for term in topological(terms, known=self.number):
            self.number[term] = len(self.parent)
            self.parent.append(len(self.parent))
            self.own.append([term])
            self.users.append([])
            self.values.append([term] if term.op is CONSTANT else [])
            for operand in term.operands:
                self.users[self.find(operand)].append(term)
            other = self.known.setdefault(self._sign(term), term)
            if other is not term:
                self.join(term, other)

    def same(self, one: Term, other: Term) -> bool:
        """Whether two terms that were entered are equal."""
        return self.find(one) == self.find(other)

    def members(self, number: int) -> list[Term]:
        """The terms of a class."""
        return self.own[number]

    def constants(self, term: Term) -> list[Term]:
        """The constants that are equal to a term; none where it was not entered."""
        return self.values[self.find(term)] if term in self.number else []

    def alone(self, term: Term) -> bool:
        """True of a term that is joined with no other."""
        return len(self.own[self.find(term)]) == 1

    def join(self, one: Term, other: Term) -> None:
        """Take two terms for equal, with what follows by congruence."""
        self.enter([one, other])
        pending = [(one, other)]
        while pending:
            small, large = (self.find(term) for term in pending.pop())
            if small == large:
                continue
            if len(self.users[small]) > len(self.users[large]):
                small, large = large, small
            self.parent[small] = large
            self.own[large] += self.own[small]
            self.values[large] += self.values[small]
            self.own[small], self.values[small] = [], []
            moved, self.users[small] = self.users[small], []
            for user in moved:
                equal = self.known.setdefault(self._sign(user), user)
                if equal is not user:
                    pending.append((user, equal))
            self.users[large] += moved

    def find(self, term: Term) -> int:
        """The number of a term's class."""
        number = self.number[term]
        while self.parent[number] != number:
            self.parent[number] = self.parent[self.parent[number]]
            number = self.parent[number]
        return number

    def _sign(self, term: Term) -> Any:
        return term.op, exact_key(term.attributes), term.regions, term.type, tuple(map(self.find, term.operands))
