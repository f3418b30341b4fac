"""What every run of an ONNX model that does not fail tells of it: bounds of dims, and the branch of an If that is always taken.

Such a fact shows while the model is read, often behind the place that it is about. So it is thrown, and the model is read
again with it. Of an If whose branches differ in rank each branch is assumed in turn: one after which a node that always runs
must fail is never taken.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from coset.ir.errors import CosetError
from coset.ir.program import Program
from coset.ir.term import Term
from coset.ir.types import TensorType

_RECURRENT = {"LSTM", "GRU", "RNN"}  # ops over [steps, batch, features]
_CONVOLUTIONS = {"Conv", "ConvTranspose"}  # the filters have as many dims as the data
_ASKED = 8  # Ifs of a model for which the two branches are tried: each is two readings


@dataclass(frozen=True)
class RunFacts:
    """`most`: symbol -> number that it is never above. `fixed`: symbol -> the number that it is. `branches`: an If, by its first result ->
    what its condition is, None where it may be both. `trying`: the last branch is an assumption."""

    most: Mapping[str, int] = field(default_factory=dict)
    fixed: Mapping[str, int] = field(default_factory=dict)
    branches: Mapping[str, bool | None] = field(default_factory=dict)
    trying: bool = False

    @property
    def asks(self) -> bool:
        """Whether a further If may be asked about."""
        return not self.trying and len(self.branches) < _ASKED


class Bounded(Exception):
    """Every run that does not fail has `symbol` at most `most`."""

    def __init__(self, symbol: str, most: int) -> None:
        super().__init__(symbol, most)
        self.symbol, self.most = symbol, most


class Fixed(Exception):
    """In every run that does not fail `symbol`, which no input has, is `number`."""

    def __init__(self, symbol: str, number: int) -> None:
        super().__init__(symbol, number)
        self.symbol, self.number = symbol, number


class UndecidedBranch(Exception):
    """What comes behind the If whose first result is called `name` depends on which of its branches is taken."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class Impossible(Exception):
    """A node that always runs must fail."""


def read(once: Callable[[RunFacts], Program]) -> Program:
    """What `once` reads with all facts that it meets.

    Raises:
        CosetError: as `once` does.
    """
    facts = RunFacts()
    while True:
        try:
            return once(facts)
        except Bounded as found:
            facts = _before(facts, found.symbol)
            facts = replace(facts, most={**facts.most, found.symbol: found.most})
        except Fixed as found:
            facts = _before(facts, found.symbol)
            facts = replace(facts, fixed={**facts.fixed, found.symbol: found.number})
        except UndecidedBranch as found:
            possible = [side for side in (True, False) if _possible(once, facts, found.name, side)]
            facts = _before(facts, "")
            facts = replace(facts, branches={**facts.branches, found.name: possible[0] if len(possible) == 1 else None})


def _before(facts: RunFacts, symbol: str) -> RunFacts:
    """The facts that hold when one about `symbol` is new: counted symbols behind it may be those of other dims in the next reading."""
    last = _place(symbol)

    def kept(known: Mapping[str, int]) -> dict[str, int]:
        return {name: number for name, number in known.items() if _place(name) < 0 or _place(name) <= last}

    return replace(facts, most=kept(facts.most), fixed=kept(facts.fixed))


def _place(symbol: str) -> int:
    """The place of a symbol in the order in which dims without a name are met; -1 of another name."""
    return int(symbol[1:]) if re.fullmatch(r"d\d+", symbol) else -1


def _possible(once: Callable[[RunFacts], Program], facts: RunFacts, name: str, side: bool) -> bool:
    """False where a run in which the condition of the If is `side` always fails. What cannot be read under the assumption is possible."""
    try:
        once(replace(facts, branches={**facts.branches, name: side}, trying=True))
    except Impossible:
        return False
    except (Bounded, Fixed, CosetError):
        return True
    return True


def wrong_rank(name: str, operands: Sequence[Term]) -> bool:
    """True where the ONNX op `name` fails because an operand has another rank than it takes, whatever the sizes."""
    ranks = [None if not isinstance(one.type, TensorType) or one.type.shape is None else one.type.rank for one in operands[:2]]
    if name in _RECURRENT:
        return ranks[0] not in (None, 3)
    return name in _CONVOLUTIONS and len(ranks) == 2 and None not in ranks and ranks[0] != ranks[1]
