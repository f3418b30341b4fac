"""How an e-graph grew, iteration by iteration: what a search says of itself while it runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from coset.egraph.encode import TableFrame
    from coset.egraph.search import Search

Numbers = Mapping[int, int]
MOST_ROWS = 100_000  # of matches, above which they are not counted by rule


@dataclass(frozen=True)
class SearchStep:
    """The e-graph after one iteration (from 0) of a phase, `seconds` after the search began. By number of the rule, where that is counted:
    how many matches waited (`matched`) and were built (`applied`) in this iteration, and how many situations its conditions `refused`;
    always: what is wrong with its sides in a situation in which they have no type, or two, which was dropped (`untyped`)."""

    phase: str
    iteration: int
    enodes: int
    eclasses: int
    seconds: float
    matched: Numbers = field(default_factory=dict)
    refused: Numbers = field(default_factory=dict)
    applied: Numbers = field(default_factory=dict)
    untyped: Sequence[tuple[int, str]] = ()


@dataclass(frozen=True)
class Watch:
    """Who is told of each `step`, of the names of rules before the first one, and of what was chosen afterwards for a piece of the program:
    its predicted seconds, and those of the piece as it was. `counted`: by rule too, which takes two looks at the whole e-graph an
    iteration."""

    step: Callable[[SearchStep], None] = lambda _: None
    named: Callable[[tuple[str, ...]], None] = lambda _: None
    chosen: Callable[[float, float], None] = lambda _, __: None
    counted: bool = False


SILENT = Watch()


@dataclass
class Counts:
    """Counts by rule in a search: of the iteration at hand, and of all before it."""

    matched: Counter[int] = field(default_factory=Counter)
    applied: Counter[int] = field(default_factory=Counter)
    refused: int = 0
    done: dict[TableFrame, tuple[int, Counter[int]]] = field(default_factory=dict)  # what each table of applied matches held, at this size

    def match(self, search: Search) -> None:
        """Count what waits, before it is applied."""
        if _many(search, "match"):
            return
        tables, read = search.engine.frozen()
        self.matched = sum((_by_rule(tables[frame.match], read) for frame in search.frames if search.sizes[frame.match]), Counter())

    def take(self, search: Search) -> dict[str, Any]:
        """The counts of the iteration that has ended; nothing where they would take longer than the iteration."""
        if _many(search, "done"):
            return {}
        tables, read = search.engine.frozen()
        for frame in search.frames:
            size = search.sizes.get(frame.done, 0)
            if self.done.get(frame, (0, None))[0] != size:
                self.done[frame] = size, _by_rule(tables[frame.done], read)
        total = sum((counts for _, counts in self.done.values()), Counter())
        refused = Counter(encoded.number for encoded, _ in search.refused[self.refused :])
        found = {"matched": dict(self.matched), "refused": dict(refused), "applied": dict(total - self.applied)}
        self.matched, self.applied, self.refused = Counter(), total, len(search.refused)
        return found


def _by_rule(table: Any, read: Callable[[Any], int]) -> Counter[int]:
    """How many rows of a table each rule has: their first columns."""
    return Counter({read(value): many for value, many in Counter(row.inputs[0] for row in table.rows).items()})


def _many(search: Search, table: str) -> bool:
    return sum(search.sizes.get(getattr(frame, table), 0) for frame in search.frames) > MOST_ROWS


def step_of(search: Search, phase: str, iteration: int, seconds: float, counts: Counts | None) -> SearchStep:
    """The step that `search` has just taken, from the sizes of its tables as they were last counted."""
    found = {} if counts is None else counts.take(search)
    untyped, search.untyped = tuple(search.untyped), []
    return SearchStep(phase, iteration, search.enodes(), search.sizes.get("type_of", 0), seconds, untyped=untyped, **found)
