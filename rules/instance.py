"""An instance of a rule, and how instances are drawn: in order with symbolic dims, or at random with numbers."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from coset.ir.dims import Dim, symbol
from coset.ir.op import Op
from coset.ir.term import AttributeItems, exact_key
from coset.ir.types import Type

NUMBERS = (2, 3, 1, 4, 5, 8)
ROW = 4096  # elements of a row that has all combinations of some numbers
# more places than an integer of 8 bits counts, with or without sign, or whose squares wrap around in 32
COUNTS = (129, 257, 46_342, 65_537)
EXPANSION = 20  # what the type of a defined op costs, or payload functions to try, in types of other ops
QUESTIONS = 1500 * EXPANSION  # that type rules answer in one draw
MOST = 20_000  # choices of each kind where everything is looked at


@dataclass(frozen=True)
class Instance:
    """Arguments of `Rule.decide`, and the values of the names behind them."""

    attributes: tuple[AttributeItems, ...]
    left_types: tuple[Type, ...]
    variable_types: tuple[Type, ...]
    values: dict[str, Any]


@dataclass
class InstanceSearch:
    """How instances are drawn: in order with symbolic dims, or at random with numbers. `failures` are the type rules' refusals."""

    random: random.Random | None = None
    dtypes: int = 3
    most_rank: int = 3
    least_rank: int = 0
    attempts: int = 300
    pool: Sequence[int] = NUMBERS
    failures: list[tuple[int, str]] = field(default_factory=list)
    budget: int = QUESTIONS
    spent: int = 0
    elements: tuple[str, ...] = ()  # the dtypes to take of each class, instead of the first `dtypes` of it
    further: tuple[str, ...] = ()  # dtypes to take beside those of a class that has them
    exhaustive: bool = False  # every value of what can be enumerated, for proofs; `gaps` says what could not
    gaps: set[str] = field(default_factory=set)
    symbolic: bool = False  # the numbers that say where an op reads (`rules/places.py`) are symbols
    watch: Callable[[], None] = lambda: None  # asked at each question; may raise when there is no time left
    choices: Mapping[str, Callable[[dict[str, Any]], list[int]]] = field(default_factory=dict)  # all values of names that have few
    numbers: Mapping[str, float] = field(default_factory=dict)  # names that stand for any number, and the number that marks them
    turn: int = 0  # of many draws at random: each begins with another choice of element types
    rare: bool = False  # whether a number was drawn that constants seldom hold
    firing: bool = False  # whether what conditions refuse is passed over at once, instead of being left to `decide`
    uneven: bool = False  # whether lists of numbers are mixed from others, and numbers are those of conditions
    empty: bool = False  # whether dims may be 0
    long: bool = False  # whether dims may be as large as narrow integers count
    high: bool = False  # whether ranks are high, so that dims must be small
    row: bool = False  # whether dims are long enough for all combinations of some numbers
    sizes: Sequence[int] = ()  # dims that a rule speaks of, of which each is one

    def arrange(self, options: Sequence[Any]) -> list[Any]:
        """The order in which options are tried."""
        chosen = list(options)
        if self.random is not None:
            self.random.shuffle(chosen)
        return chosen

    def rotated(self, options: Sequence[Any]) -> list[Any]:
        """The options in one order that begins elsewhere in every turn, far from the last beginning: each comes first once."""
        chosen = list(options)
        if self.random is not None and chosen:
            random.Random(len(chosen)).shuffle(chosen)
            stride = next(step for step in range(round(0.618 * len(chosen)), 2 * len(chosen) + 1) if math.gcd(step, len(chosen)) == 1)
            start = self.turn * stride % len(chosen)
            chosen = chosen[start:] + chosen[:start]
        return chosen

    def ordered(self, hints: Sequence[Any], options: Sequence[Any]) -> list[Any]:
        """Values in the order in which they are tried: the first hint, which is a default, and then all others."""
        found = list({exact_key(value): value for value in (*hints, *options)}.values())
        return [*found[:1], *self.arrange(found[1:])] if hints else self.arrange(found)

    def first(self, options: Iterable[Any], most: int) -> Iterator[Any]:
        """The first `most` options, or all of them where everything is looked at."""
        for number, option in enumerate(options):
            if number >= (MOST if self.exhaustive else most):
                if self.exhaustive:
                    self.gaps.add("more instances than are looked at")
                return
            yield option

    def guess(self, what: str) -> None:
        """Note that some values of `what` are left out."""
        if self.exhaustive:
            self.gaps.add(what)

    def spend(self, op: Op) -> bool:
        """Count one question to the type rule of `op`, which expands one that is defined; False when the budget of a draw is used up."""
        self.watch()
        self.spent += 1 if op.meaning is not None else EXPANSION
        return self.spent <= self.budget

    def dim(self, name: str) -> Dim:
        """A value for the dim `name`."""
        return symbol(name) if self.random is None else self.random.choice(self.pool)

    def refresh(self) -> None:
        """Draw the numbers that dims are made of: few different ones, so that dims which must agree often do."""
        if self.random is not None:
            self.pool = self.random.sample(NUMBERS, self.random.choice((1, 2, 3, 6)))
            if self.empty:
                self.pool = [0, *self.pool[:2]]
            elif self.long:
                self.pool = [self.random.choice(COUNTS), 1]
            elif self.row:
                self.pool = [ROW]
            elif self.sizes:
                self.pool = self.sizes
            elif self.high:
                self.pool = self.random.sample((1, 2, 3, 4), 3)
