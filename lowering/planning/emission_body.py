"""The scalars of one kernel: terms at indices of its loops, read from buffers, from its steps, or computed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import reduce

from coset.ir.dims import Dim, add, multiply, symbol
from coset.ir.op import get_op
from coset.ir.term import CONSTANT, Term
from coset.ir.types import DType
from coset.lowering.kernels.indexing import ALTERNATIVES, Index, Source, sources
from coset.lowering.kernels.kernel import Choose, InBounds, IndexValue, Load, Loop, Pick, Result, Scalar, ScalarConstant, ScalarOp, Store
from coset.lowering.planning.attention import Attended
from coset.lowering.planning.attention_gradients import Traced
from coset.lowering.planning.group import SCAN, SCATTER, TILED, KernelGroup
from coset.lowering.planning.index_values import folded
from coset.lowering.planning.kinds import FOLDED, SUMMED, is_arithmetic, wide
from coset.lowering.planning.picking import PICKED, Start, clamped, known_place, picked_sources, starts
from coset.lowering.planning.recurring import Recurring

HEAVY = frozenset(
    {"stablehlo.reduce", "stablehlo.reduce_window", "stablehlo.dot_general", "stablehlo.scatter", "stablehlo.sort", "kernel.first_sorted",
     "kernel.grouped_product", "kernel.windowed_product", SUMMED, FOLDED}
)  # fmt: skip
SHORT = {
    "dot_general": "dot", "broadcast_in_dim": "broadcast", "exponential": "exp", "maximum": "max", "minimum": "min", "multiply": "mul",
    "reduce_window": "scan", "subtract": "sub", "divide": "div", "concatenate": "concat", "negate": "neg",
    "windowed_product": "conv", "windowed_sum": "conv", "windowed_fold": "pool",
}  # fmt: skip


def number(term: Term) -> ScalarConstant:
    """A constant of rank 0 as a number."""
    value = term.attribute("value").array()[()]
    dtype = term.tensor.dtype
    kinds = {"bool": bool, "int": int, "uint": int, "complex": complex}
    return ScalarConstant(kinds.get(dtype.kind, float)(value), dtype)


@dataclass
class SharedEmission:
    """What all kernels share: the buffer of each stored term, and each term's group."""

    buffers: Mapping[Term, str]
    results: Mapping[Term, tuple[str, ...]]  # of libraries
    home: Mapping[Term, KernelGroup]
    light: Set[Term]
    position: Mapping[Term, int]
    attended: Mapping[Term, Attended]  # by the product of queries and keys
    traced: Mapping[Term, Traced]  # by their products
    recurring: Mapping[Term, Recurring]  # loops that are kernels


@dataclass(frozen=True)
class Ends:
    """What every kernel of one heavy term ends with: its name, stores, words for its terms, picks, and the terms that it computes."""

    name: str
    stores: tuple[Store, ...]
    terms: tuple[str, ...]
    picks: tuple[Pick, ...]
    used: frozenset[Term]


@dataclass
class KernelBody:
    """The scalars of one kernel; equal values at equal places are one object."""

    emission: SharedEmission
    group: KernelGroup
    names: dict[Term, str]
    done: dict[tuple[Term, Index], Scalar] = field(default_factory=dict)
    used: set[Term] = field(default_factory=set)
    picks: dict[tuple[Term, Index, Dim], Pick] = field(default_factory=dict)  # by the index tensor, its element, and the bound
    extents: dict[str, Dim] = field(default_factory=dict)  # of loops and picks

    def __post_init__(self) -> None:
        self.extents |= self.group.extents

    def scalar(self, term: Term, index: Index) -> Scalar:
        """`term` at `index`."""
        stack = [(term, index)]
        while stack:
            key = stack[-1]
            if key in self.done:
                stack.pop()
                continue
            found = self._leaf(*key)
            if found is None:
                needed, parts = self._sources(*key)
                if needed:
                    stack += reversed(needed)
                    continue
                waiting = [(key[0].operands[part.operand], self._place(*key, part)) for part in parts]
                left = [child for child in waiting if child not in self.done]
                if left:
                    stack += reversed(left)
                    continue
                found = self._combined(*key, parts, [self.done[child] for child in waiting])
            self.done[key] = found
            stack.pop()
        return self.done[term, index]

    def heavy(self) -> tuple[Scalar, ...]:
        """What the one heavy term of the kernel reads."""
        (term,) = self.group.heavy
        return tuple(self.scalar(operand, index) for operand, index in zip(term.operands, self.group.reads[term], strict=True))

    def ends(self, names: Mapping[Term, str]) -> Ends:
        """What is left of the kernel where its one heavy term is done, whose results have these names."""
        self.names |= names
        self.used |= set(self.group.heavy)
        stores = tuple(self.stores().values())
        known = self.known()
        used = frozenset(self.used | names.keys())
        return Ends(name_of(known), stores, tuple(map(word, known)), tuple(self.picks.values()), used)

    def stores(self) -> dict[Term, Store]:
        """What of the kernel's own goes to memory."""
        buffers, at = self.emission.buffers, self.group.at
        return {term: Store(buffers[term], at[term], self.scalar(term, at[term])) for term in at if term in buffers}

    def known(self) -> list[Term]:
        """The terms that were used so far, in the program's order."""
        return sorted(self.used, key=lambda term: self.emission.position[term])

    def _sources(self, term: Term, index: Index) -> tuple[list[tuple[Term, Index]], tuple[Source, ...]]:
        """Where an element comes from, or the elements of index tensors that must be known before."""
        if term.op.name not in PICKED:
            return [], sources(term, index, self.extents)
        begins = starts(term, index)
        places = [(term.operands[start.operand], start.index) for start in begins]
        needed = [place for place in places if place not in self.done]
        if needed:
            return needed, ()
        found: list[tuple[Start, Dim]] = []
        for start, place in zip(begins, places, strict=True):
            known = self._known_start(self.done[place], start.count)
            if known is not None:
                found.append((start, known))
                continue
            key = (*place, start.count)
            if key not in self.picks:
                self.picks[key] = Pick(f"pick:{len(self.picks)}", start.count, clamped(self.done[place], start.count))
                self.extents[self.picks[key].name] = start.count
            found.append((start, symbol(self.picks[key].name)))
        return [], picked_sources(term, index, found, self.extents)

    def _known_start(self, value: Scalar, count: Dim) -> Dim | None:
        """The place where a slice begins, where it is a dim over the kernel's loops that needs no clamping; None: it is a pick."""
        return known_place(value, count)

    def _place(self, term: Term, index: Index, source: Source) -> Index:
        """Where an operand is read: where the walk put it, for a term that is itself where the walk put it (its index, computed anew, may
        be the same in other words)."""
        operand, group = term.operands[source.operand], self.group
        together = operand in group.part and group.part.get(term) == group.part[operand]
        return group.at[operand] if together and group.at[term] == index else source.index

    def _leaf(self, term: Term, index: Index) -> Scalar | None:
        """The scalar of a term that is not computed from operands here, or None."""
        if term in self.names:
            assert index == self.group.at[term], f"{term} is read at {index}, but its kernel makes it at {self.group.at[term]}"
            kept = not self.names[term].startswith("dot") and (
                term.op.name == "stablehlo.reduce" or self.group.kind in (*TILED, SCAN, SCATTER)
            )
            dtype = wide(term.tensor.dtype) if kept else term.tensor.dtype
            return converted(Result(self.names[term], dtype), term.tensor.dtype)
        if term.op is CONSTANT and term.tensor.rank == 0:
            return number(term)
        if term in self.emission.buffers and (term not in self.emission.light or self.emission.home.get(term) is not self.group):
            return Load(self.emission.buffers[term], index, term.tensor.dtype)
        self.used.add(term)
        if term.op.name == "stablehlo.iota":
            return IndexValue(index[term.attribute("dimension")], term.tensor.dtype)
        if term.op.name == "builtin.dims":
            return _dims(term, index)
        assert term in self.emission.light, f"{term} is needed by a kernel that does not make it, and it is not stored"
        return None

    def _combined(self, term: Term, index: Index, parts: Sequence[Source], values: Sequence[Scalar]) -> Scalar:
        if is_arithmetic(term) or term.op.name == "stablehlo.bitcast_convert":
            known = folded(term.op, values, term.tensor.dtype, term.attributes, self.extents)
            return ScalarOp(term.op, tuple(values), term.tensor.dtype, term.attributes) if known is None else known
        if term.op.name == SUMMED:
            return _summed(values, term.tensor.dtype)
        if term.op.name == FOLDED:
            return _folded(term.attribute("combiner"), values, term.tensor.dtype)
        if len(values) == 1:
            return values[0]
        assert term.op.name in ALTERNATIVES or term.op.name in PICKED
        found = values[-1]
        for part, value in zip(reversed(parts[:-1]), reversed(values[:-1]), strict=True):
            found = Choose(part.bounds, value, found, term.tensor.dtype)
        return found


def converted(value: Scalar, dtype: DType) -> Scalar:
    """A value as one of another element type."""
    return value if value.dtype == dtype else ScalarOp(get_op("stablehlo.convert"), (value,), dtype, (("dtype", dtype),))


def _summed(values: Sequence[Scalar], dtype: DType) -> Scalar:
    """The first half of `values` times the second half, added up one after the other in f32 at least."""
    inner = wide(dtype)
    factors = [converted(value, inner) for value in values]
    half = len(factors) // 2
    parts = [ScalarOp(get_op("stablehlo.multiply"), pair, inner) for pair in zip(factors[:half], factors[half:], strict=True)]
    return converted(reduce(lambda total, part: ScalarOp(get_op("stablehlo.add"), (total, part), inner), parts), dtype)


def _folded(combiner: str, values: Sequence[Scalar], dtype: DType) -> Scalar:
    """`values` one after the other, added up in f32 at least."""
    inner = wide(dtype) if combiner == "add" else dtype
    op = get_op(f"stablehlo.{combiner}")
    return converted(reduce(lambda total, value: ScalarOp(op, (total, value), inner), (converted(value, inner) for value in values)), dtype)


def _dims(term: Term, index: Index) -> Scalar:
    """Numbers of the host: the one at `index`, chosen by bounds where the index is no number."""
    values = [IndexValue(dim, term.tensor.dtype) for dim in term.attribute("dims")]
    place: Dim = 0
    for dim, i in zip(term.tensor.dims, index, strict=True):
        place = add(multiply(place, dim), i)
    if isinstance(place, int):
        return values[place]
    found: Scalar = values[-1]
    for count in reversed(range(len(values) - 1)):
        found = Choose((InBounds(place, count, count + 1),), values[count], found, term.tensor.dtype)
    return found


def by_role(group: KernelGroup, roles: str) -> Iterator[tuple[Loop, ...]]:
    """The loops of a group that stand in each role."""
    return (tuple(loop for key, loop in group.loops.items() if key[0] == role) for role in roles)


def word(term: Term) -> str:
    return term.op.name.split(".", 1)[1]


def name_of(used: Sequence[Term]) -> str:
    """The first few of a kernel's ops; a number is put before them in launch order."""
    wanted = [word(term) for term in used if is_arithmetic(term) or term.op.name in HEAVY] or [word(term) for term in used]
    short = list(dict.fromkeys(SHORT.get(each, each) for each in wanted))
    return "_".join([*short[:3], *(["etc"] if len(short) > 3 else [])])
