"""Frames and threads of axes, told apart by unification: what lists, axes and numbers of a rule are. For `prove.frames`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Union


class Unnatural(Exception):
    """Axes are used as what does not commute with leaving some out; the text says how."""


@dataclass(frozen=True)
class NotKnownYet:
    """What is not known yet."""

    number: int


@dataclass(frozen=True)
class FrameAxis:
    """An axis of a frame."""

    frame: int


@dataclass(frozen=True)
class AxisList:
    """A list with an item for each axis of a frame."""

    frame: int
    item: "Sort"


@dataclass(frozen=True)
class Plain:
    """A number, a dim, a truth, an element type: nothing that names an axis."""


Sort = Union[NotKnownYet, FrameAxis, AxisList, Plain]
PLAIN = Plain()


@dataclass
class Sorts:
    """What is known of the sorts and frames of one rule."""

    sorts: dict[int, Sort] = field(default_factory=dict)  # of what was unknown
    merged: dict[int, int] = field(default_factory=dict)  # frames that are one
    kept: dict[str, int] = field(default_factory=dict)  # frames of what is left of another one
    count: int = 0

    def fresh(self) -> int:
        self.count += 1
        return self.count

    def unknown(self) -> Sort:
        return NotKnownYet(self.fresh())

    def frame(self, number: int) -> int:
        while number in self.merged:
            number = self.merged[number]
        return number

    def found(self, sort: Sort) -> Sort:
        while isinstance(sort, NotKnownYet) and sort.number in self.sorts:
            sort = self.sorts[sort.number]
        return sort

    def join(self, a: int, b: int) -> int:
        first, second = self.frame(a), self.frame(b)
        if first != second:
            self.merged[second] = first
        return first

    def unify(self, a: Sort, b: Sort) -> Sort:
        a, b = self.found(a), self.found(b)
        if isinstance(a, NotKnownYet) or isinstance(b, NotKnownYet):
            if a != b:
                one, other = (a, b) if isinstance(a, NotKnownYet) else (b, a)
                assert isinstance(one, NotKnownYet)
                self.sorts[one.number] = other
        elif isinstance(a, FrameAxis) and isinstance(b, FrameAxis):
            self.join(a.frame, b.frame)
        elif isinstance(a, AxisList) and isinstance(b, AxisList):
            self.join(a.frame, b.frame)
            self.unify(a.item, b.item)
        elif a != b:
            raise Unnatural("an axis is taken for a number")
        return a

    def row(self, sort: Sort) -> AxisList:
        sort = self.found(sort)
        if isinstance(sort, AxisList):
            return sort
        made = AxisList(self.fresh(), self.unknown())
        self.unify(sort, made)
        return made

    def axes(self, sort: Sort) -> tuple[int, int]:
        """The frame of a list of axes, and the frame of these axes."""
        row = self.row(sort)
        axis = FrameAxis(self.fresh())
        self.unify(row.item, axis)
        return row.frame, axis.frame

    def rest(self, of: int, less: str) -> int:
        """The frame of the axes of one that are not in a list."""
        key = f"{self.frame(of)} less {less}"
        if key not in self.kept:
            self.kept[key] = self.fresh()
        return self.kept[key]
