"""An order of classes with operands first that is mended where a new choice breaks it, or says that the choice makes a cycle.

Only the classes between the two ends of the edge that breaks it are looked at (Marchetti-Spaccamela, Nanni, Rohnert 1996). Places
are real numbers with room between them, so that moving some classes leaves all others where they are.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

REGION = 1_000  # classes that are looked at for one choice; more counts as a cycle
ROOM = 1e-9  # between two places; below it all are numbered anew

NOWHERE = -1.0  # the place of a class that cannot be computed


class Acyclic:
    """Law: every class stands behind those of `below[class]`, which the caller changes after it has asked."""

    def __init__(self, below: list[Collection[int]], order: Sequence[int]) -> None:
        """`order`, of the classes that can be computed, keeps the law."""
        self.below = below
        self.place = [NOWHERE] * len(below)
        self._number(order)

    def ordered(self) -> list[int]:
        """The classes that can be computed, operands first."""
        return sorted((n for n, place in enumerate(self.place) if place != NOWHERE), key=lambda number: (self.place[number], number))

    def allows(self, number: int, children: Sequence[int], *, region: int = REGION) -> bool:
        """True when `number` over `children` makes no cycle with all that is `below` other classes; they stand before it then."""
        place = self.place
        here = place[number]
        stack = []
        for child in children:
            if place[child] >= here:
                stack.append(child)
            elif place[child] == NOWHERE:
                return False
        if not stack:
            return True
        lowest = 0.0
        seen = set(stack)
        while stack:
            at = stack.pop()
            if at == number or len(seen) > region:
                return False
            for child in self.below[at]:
                if place[child] < here:
                    lowest = max(lowest, place[child])
                elif child not in seen:
                    seen.add(child)
                    stack.append(child)
        room = (here - lowest) / (len(seen) + 1)
        if room < ROOM:
            self._number(self.ordered())
            return self.allows(number, children, region=region)
        for position, at in enumerate(sorted(seen, key=place.__getitem__), 1):
            place[at] = lowest + room * position
        return True

    def restore(self, number: int, children: Sequence[int]) -> None:
        """Put `number` behind `children`, which are known to make no cycle."""
        mended = self.allows(number, children, region=len(self.place))
        assert mended, "picks that were without a cycle have one"

    def _number(self, order: Sequence[int]) -> None:
        """From 1, so that there is room before the first."""
        for at, number in enumerate(order, 1):
            self.place[number] = float(at)
