"""Where the values of a round stand: each over the rows and columns of one kernel, so that programs with rows of their own need nothing
of each other, and what folds and products go through are the columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count as counting
from math import prod
from typing import TYPE_CHECKING

from coset.ir.dims import Dim, Shape, alone, substitute, symbol, symbols
from coset.ir.term import CONSTANT, Term, topological
from coset.lowering.kernels.indexing import Index, sources
from coset.lowering.kernels.kernel import Loop
from coset.lowering.planning.kinds import KernelLimits, cost_of, is_fold, is_light
from coset.lowering.planning.picking import PICKED
from coset.lowering.planning.recurrence import ROUND, Rounds

if TYPE_CHECKING:
    pass

DEPTH = "loop:k0"  # what a product of a round goes through, in the columns' place
PRODUCT = "stablehlo.dot_general"
WIDEST = 4096  # elements of the columns of a state
WIDEST_PRODUCT = {"f32": 64, "f16": 128, "bf16": 128}  # columns; f32 without tensor cores spills its registers beyond, as compiled ahead
MOST_STEPS = 64  # folds and products of a round
MOST_VISITED = 20_000
STATES = frozenset({"f64", "f32", "f16", "bf16", "i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8", "bool"})


class Irregular(Exception):
    """Why a loop is no kernel."""


@dataclass(frozen=True)
class RecurrenceLayout:
    """The loops of a recurrence but for the round, which of them are `columns`, where each parameter of what is carried stands, and where
    each update of a stack, without the place of the round; `deep`: the extent of what products go through, None where there are none."""

    loops: tuple[Loop, ...]
    columns: frozenset[str]
    at: Mapping[Term, Index]
    stacks: Mapping[int, Index]
    reads: Mapping[tuple[Term, Index], tuple[Index, ...]]
    deep: Dim | None

    @property
    def rows(self) -> frozenset[str]:
        """The loops that are not columns."""
        return frozenset(loop.name for loop in self.loops) - self.columns


def layout_of(rounds: Rounds) -> RecurrenceLayout:
    """Where the values of a loop's rounds stand.

    Raises:
        Irregular: it is no kernel.
    """
    return _Places(rounds).layout()


@dataclass
class _Places:
    """`at`: where parameters stand that are placed; `reads`: where folds and products read their operands; `columns`: loops that these go
    through; `deep`: the extent that products go through."""

    rounds: Rounds
    loops: list[Loop] = field(default_factory=list)
    at: dict[Term, Index] = field(default_factory=dict)
    reads: dict[tuple[Term, Index], tuple[Index, ...]] = field(default_factory=dict)
    through: list[frozenset[str]] = field(default_factory=list)
    deep: Dim | None = None
    names: Iterator[int] = field(default_factory=counting)

    def layout(self) -> RecurrenceLayout:
        rounds = self.rounds
        self.moving, self.turning = rounds.moving(), rounds.turning()
        self.walked = set(self.moving)  # and what is folded without states
        for term in topological(rounds.results(), known=rounds.outside):
            if is_fold(term) or any(operand in self.walked for operand in term.operands):
                self.walked.add(term)
        self.parameters = {each.parameter: each for each in rounds.carried.values()}
        self._require_known()
        self._begin()
        waiting = [*self.at]
        seen: set[tuple[Term, Index]] = set()
        while len(self.at) < len(self.parameters) or waiting:
            while waiting:
                parameter = waiting.pop()
                waiting += self._visit(self.parameters[parameter].next, self.at[parameter], seen)
            left = [parameter for parameter in self.parameters if parameter not in self.at]
            if left:
                self.at[left[0]] = self._bound(self.parameters[left[0]].next)
                waiting.append(left[0])
        stacks = {}
        for number, stack in rounds.stacks.items():
            stacks[number] = self._bound(stack.update)
            if self._visit(stack.update, stacks[number], seen):
                raise Irregular("a state is read, but no other state depends on it")
        return self._checked(stacks)

    def _require_known(self) -> None:
        for each in self.parameters:
            if each.tensor.dtype.name not in STATES:
                raise Irregular(f"it carries {each.tensor.dtype}")
        size = 0
        for term in topological(self.rounds.results(), known=self.rounds.outside):
            if term.op is CONSTANT and term.tensor.rank:
                raise Irregular("a constant of several elements is in it, which has no buffer there")
            if term in self.parameters or term.op is CONSTANT:
                continue
            size += cost_of(term)
            if not (is_light(term) or is_fold(term) or (term in self.moving and term.op.name == PRODUCT)):
                raise Irregular(f"`{term.op.name}` is in it")
            if term in self.moving and term.op.name in PICKED:
                raise Irregular("a place of what is carried is read or written")
        if size > KernelLimits.scalars:
            raise Irregular("a round is more than a kernel holds")

    def _begin(self) -> None:
        """Loops over the state with the most dims."""
        first = max(self.parameters, key=lambda each: (each.tensor.rank, _known_elements(each.tensor.dims)), default=None)
        if first is None:
            raise Irregular("nothing is carried from round to round")
        index: list[Dim] = []
        for dim in first.tensor.dims:
            if dim == 1:
                index.append(0)
                continue
            self.loops.append(Loop(f"loop:i{len(self.loops)}", dim))
            index.append(self.loops[-1].index)
        self.at[first] = tuple(index)

    @property
    def extents(self) -> dict[str, Dim]:
        return {ROUND: self.rounds.count, **{loop.name: loop.extent for loop in self.loops}}

    # ------------------------------------------------------------ walks

    def _visit(self, root: Term, at: Index, seen: set[tuple[Term, Index]]) -> list[Term]:
        """Go through what `root` needs of what is carried; the parameters that were first come upon, which stand where they are read."""
        placed: list[Term] = []
        stack = [(root, at)]
        while stack:
            term, index = stack.pop()
            if (term, index) in seen or term not in self.walked:
                continue
            seen.add((term, index))
            if len(seen) > MOST_VISITED:
                raise Irregular("a round is too long")
            if term in self.parameters:
                if term not in self.at:
                    if not self._is_place(term, index):
                        raise Irregular("a state is read at other places than the kernel's loops")
                    self.at[term] = index
                    placed.append(term)
                elif self.at[term] != index:
                    raise Irregular("a state is read at two places at once")
                continue
            stack += self._below(term, index)
        return placed

    def _is_place(self, term: Term, index: Index) -> bool:
        """Whether a state can stand at an index: each dim is a loop of its own."""
        names = [alone(dim) for dim, size in zip(index, term.tensor.dims, strict=True) if size != 1]
        extents = self.extents
        sizes = [size for size in term.tensor.dims if size != 1]
        return len(set(names)) == len(names) and all(
            name is not None and name != ROUND and extents.get(name) == size for name, size in zip(names, sizes, strict=True)
        )

    def _below(self, term: Term, index: Index) -> list[tuple[Term, Index]]:
        if is_fold(term) or term.op.name == PRODUCT:
            key = (term, index)
            if key not in self.reads:
                if len(self.reads) >= MOST_STEPS:
                    raise Irregular("a round has too many folds and products")
                self.reads[key] = self._folding(term, index) if is_fold(term) else self._multiplying(term, index)
            return list(zip(term.operands, self.reads[key], strict=True))
        return [(term.operands[source.operand], source.index) for source in sources(term, index, self.extents)]

    def _folding(self, term: Term, index: Index) -> tuple[Index, ...]:
        operand = term.operands[0]
        read = self._bound(operand, dict(zip(_kept(term), index, strict=True)))
        folded = frozenset[str]().union(*(symbols(read[axis]) for axis in term.attribute("dimensions")))
        if folded & frozenset[str]().union(*map(symbols, index)):  # a dim of no state, which has the extent of a column
            raise Irregular("a fold or a product goes through what its result moves along")
        self.through.append(folded)
        return (read,)

    def _multiplying(self, term: Term, index: Index) -> tuple[Index, ...]:
        """Where the state's side of a product is read, and where the matrix's: with the depth in the place of the columns."""
        sides = [operand in self.moving for operand in term.operands]
        if any(operand in self.turning for operand, moves in zip(term.operands, sides, strict=True) if not moves) or all(sides):
            raise Irregular("a product has states on both of its sides, or another matrix in each round")
        mine = sides.index(True)
        word, other_word = ("lhs", "rhs") if mine == 0 else ("rhs", "lhs")
        state, matrix = term.operands[mine], term.operands[1 - mine]
        if len(term.attribute("lhs_contract")) != 1 or matrix.tensor.rank != 2:
            raise Irregular("a product of what is carried is none by a matrix")
        for each in (state, matrix, term):
            if each.tensor.dtype.name not in WIDEST_PRODUCT:
                raise Irregular(f"a product is of {each.tensor.dtype}")
        (summed,), (deep,) = term.attribute(f"{word}_contract"), term.attribute(f"{other_word}_contract")
        free = [axis for axis in range(state.tensor.rank) if axis != summed]
        own = index[: len(free)] if mine == 0 else index[1:]
        wide = index[-1] if mine == 0 else index[0]
        read = self._bound(state, dict(zip(free, own, strict=True)))
        column = alone(read[summed])
        if column is None:
            raise Irregular("a product does not go through a dim of what is carried")
        if column in frozenset[str]().union(*map(symbols, own)):
            raise Irregular("a fold or a product goes through what its result moves along")
        if symbols(wide) & self.extents.keys() != {column}:
            raise Irregular("a product's columns are not those of what is carried")
        self.through.append(frozenset({column}))
        self.deep = state.tensor.dims[summed]
        matrix_index: list[Dim] = [wide, wide]
        matrix_index[deep] = symbol(DEPTH)
        sides_read = (read, tuple(matrix_index))
        return sides_read if mine == 0 else (sides_read[1], sides_read[0])

    # ------------------------------------------------------------ places that are looked for

    def _bound(self, term: Term, known: Mapping[int, Dim] | None = None) -> Index:
        """The index over the loops at which `term` reads states where they stand; of dims that no state says, loops of their extents in
        order. `known`: what is given of the index."""
        given = dict(known or {})
        fresh: dict[str, Dim] = {}
        index: list[Dim] = []
        for axis, dim in enumerate(term.tensor.dims):
            if axis in given:
                index.append(given[axis])
            elif dim == 1:
                index.append(0)
            else:
                name = f"loop:free{next(self.names)}"
                fresh[name] = dim
                index.append(symbol(name))
        found = self._probe(term, tuple(index), fresh)
        taken = frozenset[str]().union(*map(symbols, given.values()), *map(symbols, found.values()))
        free = [loop for loop in self.loops if loop.name not in taken]
        for name, dim in fresh.items():
            if name not in found:
                loop = next((loop for loop in free if loop.extent == dim), None)
                if loop is None:
                    raise Irregular("a value has a dim that no state has")
                free.remove(loop)
                found[name] = loop.index
        return tuple(substitute(dim, found) for dim in index)

    def _probe(self, root: Term, at: Index, fresh: Mapping[str, Dim]) -> dict[str, Dim]:
        """What the `fresh` symbols of an index are, by the states that stand somewhere."""
        found: dict[str, Dim] = {}
        extents = {**self.extents, **fresh}
        seen: set[tuple[Term, Index]] = set()
        stack = [(root, at)]
        while stack and len(found) < len(fresh):
            term, index = stack.pop()
            if (term, index) in seen or term not in self.moving:
                continue
            seen.add((term, index))
            if len(seen) > MOST_VISITED:
                raise Irregular("a round is too long")
            if term in self.at:
                for dim, place in zip(index, self.at[term], strict=True):
                    name = alone(dim)
                    if name in fresh and alone(place) in self.extents and self.extents[alone(place) or ""] == fresh[name or ""]:
                        found.setdefault(name or "", place)
            elif term not in self.parameters:
                stack += self._loosely(term, index, extents)
        return found

    def _loosely(self, term: Term, index: Index, extents: dict[str, Dim]) -> list[tuple[Term, Index]]:
        """Where operands are read, with a new symbol for each dim that is gone in the result."""

        def fresh(dim: Dim) -> Dim:
            name = f"loop:free{next(self.names)}"
            extents[name] = dim
            return symbol(name)

        if is_fold(term):
            kept = dict(zip(_kept(term), index, strict=True))
            return [(term.operands[0], tuple(kept.get(axis, fresh(dim)) for axis, dim in enumerate(term.operands[0].tensor.dims)))]
        if term.op.name != PRODUCT:
            return [(term.operands[source.operand], source.index) for source in sources(term, index, extents)]
        found = []
        batch = len(term.attribute("lhs_batch"))
        place = batch
        for operand, word in zip(term.operands, ("lhs", "rhs"), strict=True):
            read: dict[int, Dim] = dict(zip(term.attribute(f"{word}_batch"), index, strict=False))
            for axis, dim in enumerate(operand.tensor.dims):
                if axis in term.attribute(f"{word}_contract"):
                    read[axis] = fresh(dim)
                elif axis not in read:
                    read[axis] = index[place]
                    place += 1
            found.append((operand, tuple(read[axis] for axis in range(operand.tensor.rank))))
        return found

    # ------------------------------------------------------------ what must hold

    def _checked(self, stacks: Mapping[int, Index]) -> RecurrenceLayout:
        every = [frozenset[str]().union(*map(symbols, index)) for index in (*self.at.values(), *stacks.values())]
        columns = frozenset[str]().union(*self.through, *every) - frozenset.intersection(*every)  # what not all have, and what is folded
        columns |= frozenset[str]().union(*self.through)
        found = RecurrenceLayout(tuple(self.loops), columns, self.at, stacks, self.reads, self.deep)
        if any(folded != columns for folded in self.through if folded):
            raise Irregular("it folds along several dims")
        for index in (*self.at.values(), *stacks.values()):
            own = [name for dim in index for name in symbols(dim)]
            if len(own) != len(set(own)):
                raise Irregular("a value moves along one dim of what is carried twice")
            if set(own) & columns and not columns <= set(own):
                raise Irregular("a value is the same for several columns")
        self._require_small(found)
        return found

    def _require_small(self, found: RecurrenceLayout) -> None:
        width = [loop.extent for loop in self.loops if loop.name in found.columns]
        if any(not isinstance(extent, int) for extent in width):
            raise Irregular("its columns are of unknown number")
        whole = prod(extent for extent in width if isinstance(extent, int))
        products = [term for term, _ in self.reads if term.op.name == PRODUCT]
        most = min((WIDEST_PRODUCT[operand.tensor.dtype.name] for term in products for operand in term.operands), default=WIDEST)
        if whole > most:
            raise Irregular("its columns, or the matrix that they are multiplied by, are more than a program holds")


def _kept(term: Term) -> list[int]:
    """The axes of a fold's operand that its result has."""
    return [axis for axis in range(term.operands[0].tensor.rank) if axis not in term.attribute("dimensions")]


def _known_elements(shape: Shape) -> int:
    return prod(dim for dim in shape if isinstance(dim, int))


# ---------------------------------------------------------------- in a plan
