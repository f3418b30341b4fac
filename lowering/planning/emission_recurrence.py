"""From a loop to the kernel of its rounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from coset.ir.dims import Dim, symbols
from coset.ir.term import GET, Term
from coset.lowering.kernels.index_arithmetic import is_within
from coset.lowering.kernels.indexing import Index, Source
from coset.lowering.kernels.kernel import ColumnFold, Dot, IndexValue, Loop, Recurrence, Result, Scalar, State, Store
from coset.lowering.planning.emission_body import KernelBody, SharedEmission, by_role, converted, word
from coset.lowering.planning.group import KernelGroup
from coset.lowering.planning.kinds import is_fold, wide
from coset.lowering.planning.recurrence import ROUND
from coset.lowering.planning.recurrence_places import DEPTH
from coset.lowering.planning.recurring import Recurring


def recurrence(emission: SharedEmission, group: KernelGroup) -> tuple[Recurrence, frozenset[Term]]:
    """The kernel of a group whose heavy term is a loop, and the terms outside of it that it computes."""
    (loop,) = group.heavy
    found = emission.recurring[loop]
    inside = found.light()
    rounds = _Round(replace(emission, light=emission.light | frozenset(inside)), group, {}, recurring=found)
    ends = {term.attribute("index"): emission.buffers[term] for term in group.at if term.op is GET and term in emission.buffers}
    stacks = {number: name for number, name in ends.items() if number in found.rounds.stacks}
    values = {number: rounds.scalar(found.rounds.stacks[number].update, found.layout.stacks[number]) for number in stacks}
    states = rounds.states({number for number in ends if number in found.rounds.carried})
    round_stores = tuple(Store(name, found.index(number), values[number]) for number, name in stacks.items())
    last = [(number, name) for number, name in ends.items() if number not in stacks]
    last_stores = tuple(Store(name, found.index(number), rounds.state(found.rounds.carried[number].parameter)) for number, name in last)
    rows = tuple(loop for loop in found.layout.loops if loop.name not in group.columns)
    columns = tuple(loop for loop in found.layout.loops if loop.name in group.columns)
    (each,) = by_role(group, "t")
    used = frozenset(term for term in rounds.used if term in emission.position)
    words = tuple(dict.fromkeys(["recurrence", *(word(term) for term in (*inside, *(term for term, _ in found.layout.reads)))]))
    kernel = Recurrence(
        "recurrence",
        rows,
        columns,
        each[0],
        states,
        tuple(rounds.steps),
        round_stores,
        last_stores,
        terms=words,
        picks=tuple(rounds.picks.values()),
    )
    return kernel, used | {loop, *(term for term in group.at if term.op is GET)}


@dataclass
class _Round(KernelBody):
    """The scalars of a round."""

    recurring: Recurring = field(kw_only=True)
    steps: list[ColumnFold | Dot] = field(default_factory=list)
    made: dict[tuple[Term, Index], Scalar] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.numbers = {each.parameter: number for number, each in self.recurring.rounds.carried.items()}
        self.read: dict[Term, None] = {}

    def state(self, parameter: Term) -> Result:
        """What is carried, as the round reads it."""
        self.read.setdefault(parameter)
        return Result(f"state{self.numbers[parameter]}", parameter.tensor.dtype)

    def states(self, wanted: set[int]) -> tuple[State, ...]:
        """The states that are stored, or that rounds read for others."""
        carried, at = self.recurring.rounds.carried, self.recurring.layout.at
        for number in sorted(wanted):
            self.state(carried[number].parameter)
        found: dict[Term, State] = {}
        while len(found) < len(self.read):
            parameter = next(each for each in self.read if each not in found)
            each, index = carried[self.numbers[parameter]], at[parameter]
            start, new = self.scalar(each.start, index), self.scalar(each.next, index)
            wide_ = any(symbols(dim) & self.group.columns for dim in index)
            found[parameter] = State(self.state(parameter).name, start, new, parameter.tensor.dtype, wide_)
        return tuple(sorted(found.values(), key=lambda state: int(state.name.removeprefix("state"))))

    def _known_start(self, value: Scalar, count: Dim) -> Dim | None:
        if not isinstance(value, IndexValue) or ROUND not in symbols(value.index):
            return super()._known_start(value, count)
        return value.index if is_within(value.index, 0, count, self.extents) else None

    def _leaf(self, term: Term, index: Index) -> Scalar | None:
        layout = self.recurring.layout
        if term in self.numbers:
            assert index == layout.at[term], f"{term} is read at {index}, but it stands at {layout.at[term]}"
            return self.state(term)
        if (term, index) not in layout.reads:
            return super()._leaf(term, index)
        sides = [self.done.get(each) for each in zip(term.operands, layout.reads[term, index], strict=True)]
        return None if None in sides else self._step(term, [side for side in sides if side is not None])

    def _sources(self, term: Term, index: Index) -> tuple[list[tuple[Term, Index]], tuple[Source, ...]]:
        reads = self.recurring.layout.reads.get((term, index))
        return super()._sources(term, index) if reads is None else (list(zip(term.operands, reads, strict=True)), ())

    def _step(self, term: Term, sides: Sequence[Scalar]) -> Scalar:
        """A fold or a product whose operands are known."""
        dtype = term.tensor.dtype
        if is_fold(term):
            name = f"fold{len(self.steps)}"
            self.steps.append(ColumnFold(name, term.attribute("combiner"), sides[0], wide(dtype)))
            return converted(Result(name, wide(dtype)), dtype)
        assert self.recurring.layout.deep is not None
        name, depth = f"dot{len(self.steps)}", (Loop(DEPTH, self.recurring.layout.deep),)
        lhs, rhs = sides if term.operands[0] in self.recurring.rounds.moving() else reversed(sides)
        self.steps.append(Dot(name, depth, lhs, rhs, dtype))
        return Result(name, dtype)
