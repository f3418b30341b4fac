"""Local search over whole moves: a class that nobody uses is opened for all who gain by it, one that is used is closed.

Picks of one class at a time do not find a merge that pays only when several users take it. What a move changes is written down, so
that it is taken back exactly where it gains nothing. See `coset.extract.acyclic` for how all picks stay without a cycle.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence

from coset.extract.acyclic import Acyclic
from coset.extract.problem import Picks, Problem, cost_of, needed

SAME = 1e-12  # relative difference of costs that are one
HELD, LEFT = -1, -2  # instead of a choice: a use for the sake of a move, and its end
TOUCHES = 300  # for each choice, over all moves: classes that are counted and choices that are looked at; keeps the search linear


class Moves:
    """Picks for every class with a finite choice, how often each class is used, and what the needed ones cost together."""

    def __init__(self, problem: Problem, picks: Picks, order: Sequence[int], trees: Sequence[float]) -> None:
        """`order` has every class that is picked behind those that its pick needs; `trees` says about what a class costs alone."""
        self.problem = problem
        self.classes = problem.classes
        self.trees = trees
        self.picks = dict(picks)
        below: list[Collection[int]] = [() for _ in problem.classes]
        for number in order:
            below[number] = problem.classes[number][self.picks[number]].children
        self.acyclic = Acyclic(below, order)
        self.users: list[list[int]] = [[] for _ in problem.classes]
        self.over: list[dict[int, list[int]]] = [{} for _ in problem.classes]  # the choices of a class by what they use
        for number in order:
            for index, entry in enumerate(self.classes[number]):
                for child in set(entry.children):
                    self.over[number].setdefault(child, []).append(index)
            for child in sorted(self.over[number]):
                self.users[child].append(number)
        self.refs = [0] * len(problem.classes)
        self.touched, self.most = 0, 0
        self.cost = 0.0
        self.done: list[tuple[int, int]] = []  # what can be taken back: (class, what it picked before) or (class, HELD)
        for root in dict.fromkeys(problem.roots):
            self._acquire(root)

    def result(self) -> tuple[Picks, float]:
        """The picks of the needed classes, and their cost."""
        found = {number: self.picks[number] for number in needed(self.problem, self.picks)}
        return found, cost_of(self.problem, found)

    def follow(self, wanted: Picks) -> None:
        """Take over what is `wanted`, class by class, where it makes no cycle with what was taken over before."""
        for number in self.acyclic.ordered():
            index = wanted.get(number, self.picks[number])
            if index != self.picks[number] and self._allows(number, index):
                self._change(number, index)

    def run(self, numbers: Iterable[int], *, end: float = float("inf")) -> None:
        """Improve the classes `numbers`, and again those around a move that gained, until none gains, or the time is `end`."""
        queue = deque(numbers)
        queued = set(queue)
        self.most = self.touched + TOUCHES * sum(map(len, self.classes))
        while queue and self.touched <= self.most and time.monotonic() <= end:
            number = queue.popleft()
            queued.discard(number)
            self.done.clear()
            self._improve(number)
            for near in self.around(number for number, _ in self.done):
                if near not in queued:
                    queued.add(near)
                    queue.append(near)

    def around(self, numbers: Iterable[int]) -> list[int]:
        """The classes that may be worth another look where the picks of `numbers` have changed: these, their users, their children and
        the users of those."""
        found: dict[int, None] = {}
        for number in dict.fromkeys(numbers):
            found[number] = None
            for child in self.classes[number][self.picks[number]].children:
                found[child] = None
                found.update(dict.fromkeys(self.users[child]))
            found.update(dict.fromkeys(self.users[number]))
        return list(found)

    def _improve(self, number: int) -> None:
        if not self.refs[number]:
            self._try(self._open, number)
            return
        self._settle(number)
        self._try(self._close, number)

    def _settle(self, number: int) -> None:
        for index in range(len(self.classes[number])):
            if index != self.picks[number]:
                self._try(self._switch_if_worth_it, number, index)

    def _try(self, move: Callable[..., bool], *arguments: int) -> bool:
        """Make a move, and take it back unless the cost falls; none when enough was looked at: one class can have thousands of choices."""
        if self.touched > self.most:
            return False
        mark, before = len(self.done), self.cost
        if move(*arguments) and self.cost < before * (1 - SAME):
            return True
        self._take_back(mark)
        return False

    # ---------------------------------------------------------------- moves: each says whether it came to its end

    def _open(self, number: int) -> bool:
        """Let every needed class that may use `number` do so, and then go back where that does not gain."""
        wanted = [(user, index) for user in self.users[number] if self.refs[user] for index in self.over[user][number]]
        least = min(entry.cost for entry in self.classes[number])
        if not wanted or self._gain(wanted) <= least:
            return False
        self._adapt(number, -1)
        self._hold(number)
        for user, index in wanted:
            if self.refs[user] and self.picks[user] != index:
                self._switch(user, index)
        for user, _ in wanted:
            if self.refs[user]:
                self._settle(user)
        self._let_go(number)
        return True

    def _close(self, number: int) -> bool:
        """Let every class that uses `number` use something else."""
        using = [user for user in self.users[number] if self.refs[user] and self._uses(user, number)]
        others = [self._without(user, number) for user in using]
        if not using or not all(others):
            return False
        cheapest = [min((self.classes[user][index].cost, index) for index in each)[1] for user, each in zip(using, others, strict=True)]
        if self._gain(list(zip(using, cheapest, strict=True))) <= 0:
            return False
        for user, indices in zip(using, others, strict=True):
            if self.refs[user] and self._uses(user, number) and not self._switch_to_best(user, indices):
                return False
        return True

    def _switch_to_best(self, number: int, indices: Sequence[int]) -> bool:
        gains = []
        for index in indices:
            mark, before = len(self.done), self.cost
            if self._switch(number, index):
                gains.append((self.cost - before, index))
            self._take_back(mark)
        return bool(gains) and self._switch(number, min(gains)[1])

    def _without(self, user: int, number: int) -> list[int]:
        return [index for index, entry in enumerate(self.classes[user]) if number not in entry.children]

    def _uses(self, user: int, number: int) -> bool:
        return number in self.classes[user][self.picks[user]].children

    def _gain(self, wanted: Sequence[tuple[int, int]]) -> float:
        """What switching to these choices saves at most: what it makes needed is not counted."""
        before = self.cost
        gone = []
        saved = 0.0
        for user, index in dict(wanted).items():
            old, new = self.classes[user][self.picks[user]], self.classes[user][index]
            saved += old.cost - new.cost
            gone += [child for child in old.children if child not in new.children]
        for child in gone:
            self._release(child)
        saved += before - self.cost
        for child in gone:
            self._acquire(child)
        self.cost = before
        return saved

    def _switch_if_worth_it(self, number: int, index: int) -> bool:
        return self._gain([(number, index)]) > 0 and self._switch(number, index)

    def _switch(self, number: int, index: int) -> bool:
        """Change the pick of a needed class, and before it those of classes that only this makes needed."""
        for child in self.classes[number][index].children:
            self._adapt(child, number)
        if not self._allows(number, index):
            return False
        self._pick(number, index)
        return True

    def _allows(self, number: int, index: int) -> bool:
        return self.acyclic.allows(number, self.classes[number][index].children)

    def _adapt(self, root: int, user: int) -> None:
        """Give classes that are not needed the picks that are cheapest now, from `root` down."""
        stack, seen = [root], {root}
        while stack:
            number = stack.pop()
            if self.refs[number]:
                continue
            choices = self.classes[number]
            if len(choices) > 1:
                self.touched += len(choices)
                index = min(range(len(choices)), key=lambda index: self._outlook(number, index, user))
                if index != self.picks[number] and self._allows(number, index):
                    self._pick(number, index)
            for child in choices[self.picks[number]].children:
                if child not in seen:
                    seen.add(child)
                    stack.append(child)

    def _outlook(self, number: int, index: int, user: int) -> tuple[float, bool, int]:
        """About what a choice adds to the classes needed now; ties stay with the pick."""
        entry = self.classes[number][index]
        if user in entry.children or number in entry.children:
            return float("inf"), True, index
        new = sum([self.trees[child] for child in entry.children if not self.refs[child]])
        return entry.cost + new, index != self.picks[number], index

    # ---------------------------------------------------------------- steps, which can be taken back

    def _pick(self, number: int, index: int) -> None:
        self.done.append((number, self.picks[number]))
        self._change(number, index)

    def _change(self, number: int, index: int) -> None:
        old, new = self.classes[number][self.picks[number]], self.classes[number][index]
        self.picks[number] = index
        self.acyclic.below[number] = new.children
        if self.refs[number]:
            self.cost += new.cost - old.cost
            for child in new.children:
                self._acquire(child)
            for child in old.children:
                self._release(child)

    def _hold(self, number: int) -> None:
        self.done.append((number, HELD))
        self._acquire(number)

    def _let_go(self, number: int) -> None:
        self.done.append((number, LEFT))
        self._release(number)

    def _take_back(self, mark: int) -> None:
        while len(self.done) > mark:
            number, what = self.done.pop()
            if what == HELD:
                self._release(number)
            elif what == LEFT:
                self._acquire(number)
            else:
                self.acyclic.restore(number, self.classes[number][what].children)
                self._change(number, what)

    def _acquire(self, root: int) -> None:
        """Count one more use, and pay for the classes that this makes needed."""
        stack = [root]
        while stack:
            number = stack.pop()
            self.refs[number] += 1
            self.touched += 1
            if self.refs[number] == 1:
                entry = self.classes[number][self.picks[number]]
                self.cost += entry.cost
                stack.extend(entry.children)

    def _release(self, root: int) -> None:
        """Count one use less, and pay no more for the classes that are not needed any longer."""
        stack = [root]
        while stack:
            number = stack.pop()
            self.refs[number] -= 1
            self.touched += 1
            if not self.refs[number]:
                entry = self.classes[number][self.picks[number]]
                self.cost -= entry.cost
                stack.extend(entry.children)
