"""Drops choices that only pass another class on: whoever would use their class can use what they pass on directly.

A slice of a larger product as the merged product of some is such a choice: each user of it can be cut out of the larger one. Such
choices make cycles, from which a linear relaxation of the problem draws values for nothing.
"""

from __future__ import annotations

from coset.extract.greedy import tree_order
from coset.extract.problem import Choice, Problem

USERS = 64  # of a class, and rivals of a user: above, nothing is dropped, so that the work stays linear
ROUNDS = 4
SAME = 1e-12


def without_forwards(problem: Problem) -> tuple[Problem, list[tuple[int, ...]]]:
    """The problem with the choices that are left, which still has a best solution of `problem`, and where they were in each class.

    Choice n of class c goes when every choice m over c, of any class u, has a rival in u over at most the children of n and the other
    children of m, and the rivals together cost no more than n and the choices that they replace (or m and n would close a cycle).
    """
    classes = [dict(enumerate(choices)) for choices in problem.classes]
    users: list[list[tuple[int, int]]] = [[] for _ in classes]
    for number, choices in enumerate(classes):
        for index, entry in choices.items():
            for child in entry.children:
                users[child].append((number, index))
    roots = set(problem.roots)
    candidates = [c for c, choices in enumerate(classes) if c not in roots and len(users[c]) <= USERS]
    for _ in range(ROUNDS):
        before = sum(map(len, classes))
        for number in candidates:
            own = classes[number]
            for index in list(own):
                if _only_forwards(classes, users, number, own[index]):
                    del own[index]
        if sum(map(len, classes)) == before:
            break
    _, finite, _ = tree_order(Problem([tuple(choices.values()) for choices in classes], problem.roots), [1] * len(classes))
    kept = [tuple(i for i, entry in choices.items() if all(child in finite for child in entry.children)) for choices in classes]
    left = [tuple(choices[i] for i in indices) for choices, indices in zip(classes, kept, strict=True)]
    return Problem(left, problem.roots), kept


def _only_forwards(classes: list[dict[int, Choice]], users: list[list[tuple[int, int]]], number: int, entry: Choice) -> bool:
    left = entry.cost * (1 + SAME)
    dearest: dict[int, float] = {}  # of each user class, which picks once: how much more its dearest rival costs
    for user, place in users[number]:
        using = classes[user].get(place)
        if using is None or user in entry.children or not all(classes[child] for child in using.children):
            continue
        allowed = {*using.children, *entry.children} - {number}
        rivals = classes[user].values() if len(classes[user]) <= USERS else ()
        costs = [rival.cost for rival in rivals if allowed.issuperset(rival.children)]
        if not costs:
            return False
        dearest[user] = max(dearest.get(user, 0.0), min(costs) - using.cost)
        if sum(dearest.values()) > left:
            return False
    return True
