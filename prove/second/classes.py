"""Terms by number, and which of them are equal so far: a union-find that is closed under equal operands."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

from coset.ir.constants import Constant, constant_of
from coset.ir.stored import pieces
from coset.ir.term import CONSTANT, Term, intern


class Contents:
    """Weights by their types and bytes: the same weight of two files is one term."""

    def __init__(self) -> None:
        self.known: dict[tuple[str, bytes], Constant] = {}

    def term(self, term: Term, operands: Sequence[Term]) -> Term:
        """`term` over other operands; a constant is the first that was seen with its type and bytes."""
        if term.op is not CONSTANT:
            return intern(term.op, tuple(operands), term.attributes, term.regions, term.type)
        value = self.constant(term.attribute("value"))
        return intern(term.op, (), (("value", value),), (), value.type)

    def constant(self, value: Constant) -> Constant:
        """The first constant that was seen with these bytes."""
        digest = hashlib.sha256()
        if value.type.dtype.kind == "string":
            digest.update(value.key.encode())
        else:
            for piece in pieces(value):
                digest.update(piece)
        key = (str(value.type), digest.digest())
        if key not in self.known:
            self.known[key] = (
                value if value.bytes <= 1 << 20 or value.type.dtype.kind == "string" else constant_of(value.array(), value.type.dtype)
            )
        return self.known[key]

    def terms(self, roots: Iterable[Term]) -> list[Term]:
        """The roots over weights that are one each."""
        done: dict[Term, Term] = {}
        given = list(roots)
        for term in below(given):
            done[term] = self.term(term, [done[operand] for operand in term.operands])
        return [done[root] for root in given]


def below(roots: Iterable[Term]) -> list[Term]:
    """Each term under the roots once: operands before users, the first operand first."""
    order: list[Term] = []
    seen: set[Term] = set()
    for root in roots:
        stack = [(root, iter(root.operands))] if root not in seen else []
        seen.add(root)
        while stack:
            term, operands = stack[-1]
            following = next((operand for operand in operands if operand not in seen), None)
            if following is None:
                stack.pop()
                order.append(term)
            else:
                seen.add(following)
                stack.append((following, iter(following.operands)))
    return order


class Classes:
    """Classes of equal terms. Terms with one op, one set of attributes and functions and equal operands are equal."""

    def __init__(self) -> None:
        self.parent: dict[Term, Term] = {}
        self.users: dict[Term, list[Term]] = {}
        self.shapes: dict[Any, Term] = {}
        self.members: dict[Term, list[Term]] = {}

    def add(self, term: Term) -> None:
        """Enter a term and all that is below it."""
        for each in below([term]):
            if each not in self.parent:
                self.parent[each], self.users[each], self.members[each] = each, [], [each]
                for operand in each.operands:
                    self.users[self.find(operand)].append(each)
                self._meet([each])

    def find(self, term: Term) -> Term:
        """The term that stands for the class."""
        root = term
        while self.parent[root] is not root:
            root = self.parent[root]
        while self.parent[term] is not root:
            self.parent[term], term = root, self.parent[term]
        return root

    def equal(self, a: Term, b: Term) -> bool:
        """Whether two entered terms are known to be equal."""
        return self.find(a) is self.find(b)

    def alike(self, term: Term) -> list[Term]:
        """All terms of the class."""
        return self.members[self.find(term)]

    def join(self, a: Term, b: Term) -> None:
        """Make two entered terms equal, and what follows."""
        waiting = [(a, b)]
        while waiting:
            one, other = (self.find(term) for term in waiting.pop())
            if one is other:
                continue
            if len(self.users[one]) + len(self.members[one]) < len(self.users[other]) + len(self.members[other]):
                one, other = other, one
            users = self.users.pop(other)
            self.parent[other] = one
            self.members[one] += self.members.pop(other)
            self.users[one] += users
            waiting += self._found(users)

    def _meet(self, terms: list[Term]) -> None:
        for a, b in self._found(terms):
            self.join(a, b)

    def _found(self, terms: list[Term]) -> list[tuple[Term, Term]]:
        """Pairs of which one is of `terms` that are equal by their operands."""
        pairs = []
        for term in terms:
            key = (term.op, tuple(self.find(operand) for operand in term.operands), term.exact, term.regions, term.type)
            first = self.shapes.setdefault(key, term)
            if first is not term:
                pairs.append((first, term))
        return pairs
