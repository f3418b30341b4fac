"""Local search under a cost that is no sum: choices of an extraction problem are changed, and somebody judges the program as a whole.

A move takes another choice of the same kind at all places at once: repeated layers gain together, and a program has few kinds. Moves
are tried from the one that loses least under the problem's own costs to the one that loses most.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from coset.extract.greedy import tree_order
from coset.extract.problem import Picks, Problem, find_order, needed

BETTER = 1e-9  # relative difference of costs that counts
APART = 8  # places of a move that are tried one after the other where all together are a cycle

Judge = Callable[[Picks], float]
Kind = Callable[[int, int], Hashable]
"""(class, choice) -> what is the same at places that take part in one move."""


@dataclass(frozen=True)
class Climbed:
    """The best picks that were judged, what they cost by the judge, and how many were judged."""

    picks: Picks
    cost: float
    judged: int


def climb(problem: Problem, starts: Sequence[Picks], kind: Kind, judge: Judge, *, most: int) -> Climbed:
    """The best of `starts` (solutions; at least one) and of what moves make of it, with at most `most` solutions judged (all starts
    are). The same for the same arguments."""
    judged = [(judge(picks), place) for place, picks in enumerate(starts)]
    cost, place = min(judged)
    best, count = starts[place], len(starts)
    tried: set[Hashable] = set()
    while count < most:
        moves = [move for move in _moves(problem, best, kind) if move.key not in tried]
        for move in moves:
            if count >= most:
                break
            tried.add(move.key)
            picks = _moved(problem, move)
            if picks is None:
                continue
            count += 1
            found = judge(picks)
            if found < cost * (1 - BETTER):
                best, cost = picks, found
                break
        else:
            break
    return Climbed(best, cost, count)


@dataclass(frozen=True)
class _Move:
    """`places` (class, choice) that are changed in `picks`, which has a pick for every class that can be computed."""

    key: Hashable
    loss: float
    places: Sequence[tuple[int, int]]
    picks: Picks


def _moves(problem: Problem, best: Picks, kind: Kind) -> list[_Move]:
    """All kinds of moves away from `best`, the least loss first. Classes that it does not need have their cheapest trees."""
    _, picks, trees = tree_order(problem, [1] * len(problem.classes), only=best)
    inside = needed(problem, best)
    known = set(inside)
    groups: dict[Hashable, list[tuple[int, int]]] = {}
    losses: dict[Hashable, float] = {}
    for number in inside:
        choices = problem.classes[number]
        own = choices[best[number]]
        for index, other in enumerate(choices):
            if index == best[number] or any(child not in picks for child in other.children):
                continue
            key = (kind(number, best[number]), kind(number, index))
            groups.setdefault(key, []).append((number, index))
            loss = other.cost - own.cost + sum(trees[child] for child in other.children if child not in known)
            losses[key] = losses.get(key, 0.0) + loss
    order = sorted(enumerate(groups), key=lambda item: (losses[item[1]], item[0]))
    return [_Move(key, losses[key], groups[key], picks) for _, key in order]


def _moved(problem: Problem, move: _Move) -> Picks | None:
    """The solution after the move, at as many of its places as go together; None where at none."""
    changed = dict(move.picks)
    for number, index in reversed(move.places):  # of two choices of one kind at one place the first
        changed[number] = index
    order = find_order(problem, changed)
    if order is not None:
        return {number: changed[number] for number in order}
    changed, done = dict(move.picks), 0
    for number, index in move.places[:APART]:
        before, changed[number] = changed[number], index
        if find_order(problem, changed) is None:
            changed[number] = before
        else:
            done += 1
    return {number: changed[number] for number in needed(problem, changed)} if done else None
