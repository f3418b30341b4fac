"""Good picks fast: a cheapest-tree order that cannot have a cycle, then local search on what sharing makes cheaper.

Near-linear in the choices: one tree order, and refcounts along it. `cost_sets` adds a start that is often better, where it can
be afforded.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence

from coset.extract.cost_sets import cost_set_picks
from coset.extract.graphs import strong_components
from coset.extract.problem import Picks, Problem, cost_of, find_order, needed

SHARED_ROUNDS = 3  # times that the order is made anew with the shares of the best picks so far
SWEEPS = 4
TOUCHES_PER_CLASS = 30  # of one sweep: keeps a sweep linear where picks own large parts of the graph
HUGE = 1e300  # trees with sharing grow exponentially; from here on the order alone keeps them apart


def greedy(problem: Problem, *, starts: Iterable[Picks] = ()) -> Picks | None:
    """Picks for the classes that the roots need, or None when a root has no finite choice.

    The best of several: trees, trees with what the best so far shares, cost sets where they are affordable, and each of
    `starts` (picks of solutions), all improved by local search.
    """
    best, best_cost = _best_trees(problem)
    if best is None:
        return None
    sets = cost_set_picks(problem)
    for start in (*starts, *(() if sets is None else (sets,))):
        mended = repaired(problem, start)
        if mended is not None:
            found, cost = _search(problem, *tree_order(problem, _alone(problem), only=mended))
            if cost < best_cost * (1 - 1e-12):
                best, best_cost = found, cost
    return best


def _alone(problem: Problem) -> list[int]:
    return [1] * len(problem.classes)


def _best_trees(problem: Problem) -> tuple[Picks | None, float]:
    shares = _alone(problem)
    best: Picks | None = None
    best_cost = float("inf")
    for turn in range(1 + SHARED_ROUNDS):
        order, picks, trees = tree_order(problem, shares)
        if any(root not in picks for root in problem.roots):
            return None, best_cost
        found, cost = _search(problem, order, picks, trees)
        if turn and cost >= best_cost * (1 - 1e-12):
            break
        best, best_cost = found, cost
        shares = _shares(problem, best)
    return best, best_cost


def repaired(problem: Problem, picks: Picks) -> Picks | None:
    """`picks` where they have no cycle; the classes of cycles pick anew among choices that come after the others. None when
    that leaves a root without a finite choice."""
    if find_order(problem, picks) is not None:
        return {number: picks[number] for number in needed(problem, picks)}
    edges = ((number, child) for number in sorted(picks) for child in problem.classes[number][picks[number]].children)
    knotted = {number for group in strong_components(edges) if len(group) > 1 for number in group}
    free = {number: index for number, index in picks.items() if number not in knotted}
    _, found, _ = tree_order(problem, _alone(problem), only=free)
    return {number: found[number] for number in needed(problem, found)} if all(root in found for root in problem.roots) else None


def _search(problem: Problem, order: list[int], picks: Picks, trees: list[float]) -> tuple[Picks, float]:
    search = _Search(problem, order, picks, trees)
    search.run()
    return search.result()


def tree_order(problem: Problem, shares: Sequence[int], *, only: Mapping[int, int] | None = None) -> tuple[list[int], Picks, list[float]]:
    """Every class with a finite choice in an order in which each pick needs earlier classes only, cheapest tree first;
    the picks, and the tree cost of every class.

    The tree cost of a class counts a child's tree divided by the child's `shares`. With all shares 1 the trees are the
    cheapest there are (Knuth 1977); ties go to the lower class and choice. A class of `only` has that choice and no other.
    """
    waiting: list[list[tuple[int, int]]] = [[] for _ in problem.classes]
    missing: list[list[int]] = []
    sums: list[list[float]] = []
    heap: list[tuple[float, int, int]] = []
    for number, choices in enumerate(problem.classes):
        missing.append([len(entry.children) for entry in choices])
        sums.append([entry.cost for entry in choices])
        for index, entry in enumerate(choices):
            if only is not None and only.get(number, index) != index:
                continue
            for child in entry.children:
                waiting[child].append((number, index))
            if not entry.children:
                heap.append((entry.cost, number, index))
    heapq.heapify(heap)
    order: list[int] = []
    picks: Picks = {}
    trees = [HUGE] * len(problem.classes)
    while heap:
        tree, number, index = heapq.heappop(heap)
        if number in picks:
            continue
        picks[number], trees[number] = index, tree
        order.append(number)
        share = tree / shares[number]
        for parent, place in waiting[number]:
            missing[parent][place] -= 1
            sums[parent][place] = min(HUGE, sums[parent][place] + share)
            if not missing[parent][place] and parent not in picks:
                heapq.heappush(heap, (sums[parent][place], parent, place))
    return order, picks, trees


def _shares(problem: Problem, picks: Picks) -> list[int]:
    uses = [0] * len(problem.classes)
    for number in needed(problem, picks):
        for child in problem.classes[number][picks[number]].children:
            uses[child] += 1
    return [max(1, count) for count in uses]


class _Search:
    """Picks along a fixed order, with refcounts. Law: every pick's children stand earlier in the order, so no cycle can arise."""

    def __init__(self, problem: Problem, order: list[int], picks: Picks, trees: list[float]) -> None:
        self.problem = problem
        self.trees = trees
        self.order = order
        self.rank = [-1] * len(problem.classes)
        for place, number in enumerate(order):
            self.rank[number] = place
        self.picks = dict(picks)
        self.refs = [0] * len(problem.classes)
        self.touched = 0
        for root in dict.fromkeys(problem.roots):
            self._acquire(root)

    def _fits(self, number: int, index: int) -> bool:
        rank = self.rank[number]
        return all(0 <= self.rank[child] < rank for child in self.problem.classes[number][index].children)

    def run(self) -> None:
        """Sweeps over the needed classes, users first and then operands first, until one changes nothing."""
        for sweep in range(SWEEPS):
            self.touched = 0
            limit = TOUCHES_PER_CLASS * len(self.order) + 10_000
            changed = False
            for number in reversed(self.order) if sweep % 2 == 0 else self.order:
                if self.refs[number] and len(self.problem.classes[number]) > 1:
                    changed |= self._switch(number)
                    if self.touched > limit:
                        break
            if not changed:
                return

    def result(self) -> tuple[Picks, float]:
        """The picks of the needed classes, and their cost."""
        found = {number: self.picks[number] for number in needed(self.problem, self.picks)}
        return found, cost_of(self.problem, found)

    def _switch(self, number: int) -> bool:
        """Try every other choice of a needed class; keep the best. The new is acquired before the old is released, so that
        what both need is not walked."""
        changed = False
        choices = self.problem.classes[number]
        for index, entry in enumerate(choices):
            old = choices[self.picks[number]]
            if entry is old or not self._fits(number, index):
                continue
            delta = entry.cost - old.cost
            delta += sum(self._acquire(child, adapt=True) for child in entry.children)
            delta -= sum(self._release(child) for child in old.children)
            if delta < -1e-12 * max(entry.cost, old.cost):
                self.picks[number] = index
                changed = True
                continue
            for child in old.children:
                self._acquire(child)
            for child in entry.children:
                self._release(child)
        return changed

    def _acquire(self, root: int, *, adapt: bool = False) -> float:
        """Count one more use; the cost of the classes that this makes needed. `adapt`: they may change their picks first."""
        total = 0.0
        stack = [root]
        while stack:
            number = stack.pop()
            self.refs[number] += 1
            self.touched += 1
            if self.refs[number] > 1:
                continue
            if adapt and len(self.problem.classes[number]) > 1:
                self.picks[number] = min(range(len(self.problem.classes[number])), key=lambda index: self._outlook(number, index))
            entry = self.problem.classes[number][self.picks[number]]
            total += entry.cost
            stack.extend(entry.children)
        return total

    def _outlook(self, number: int, index: int) -> tuple[float, bool, int]:
        """What a choice adds to the classes needed now, looking one class deep; ties stay with the pick."""
        if not self._fits(number, index):
            return float("inf"), True, index
        entry = self.problem.classes[number][index]
        new = [child for child in entry.children if not self.refs[child]]
        return entry.cost + sum(self.trees[child] for child in new), index != self.picks[number], index

    def _release(self, root: int) -> float:
        """Count one use less; the cost of the classes that are no longer needed."""
        total = 0.0
        stack = [root]
        while stack:
            number = stack.pop()
            self.refs[number] -= 1
            self.touched += 1
            if self.refs[number]:
                continue
            entry = self.problem.classes[number][self.picks[number]]
            total += entry.cost
            stack.extend(entry.children)
        return total
