"""From groups of terms to kernels: each stored value as a scalar expression over the kernel's loops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field

from coset.dialects.hub_tensors import identity
from coset.ir.dims import Dim, add, multiply, symbol, symbols
from coset.ir.op import get_op
from coset.ir.term import ABSENT, CONSTANT, PARAMETER, Term, make, rebuild
from coset.ir.types import DTYPES, F32, I32, DType
from coset.lowering.attention import Attended
from coset.lowering.group import ATTENTION, GROUPED, LIBRARY, PRODUCT, ROWS, SCAN, SCATTER, SORT, TILED, Group
from coset.lowering.index_values import folded
from coset.lowering.indexing import ALTERNATIVES, Index, Source, sources
from coset.lowering.kernel import (
    Apply,
    Attention,
    Bound,
    Choose,
    Fold,
    Grouped,
    IndexValue,
    Kernel,
    Library,
    Load,
    Loop,
    Number,
    Pick,
    Pointwise,
    Product,
    Result,
    Rows,
    Scalar,
    Scan,
    Scatter,
    Sort,
    Store,
)
from coset.lowering.kinds import is_arithmetic
from coset.lowering.picking import PICKED, Start, clamped, picked_sources, starts
from coset.lowering.scanning import prefix_of
from coset.lowering.sorting import results_of

HEAVY = frozenset(
    {"stablehlo.reduce", "stablehlo.reduce_window", "stablehlo.dot_general", "stablehlo.scatter", "stablehlo.sort", "kernel.first_sorted",
     "kernel.grouped_product"}
)  # fmt: skip


def wide(dtype: DType) -> DType:
    """The type that values of `dtype` are summed in: f32 and 32-bit integers at least."""
    if dtype.kind == "float":
        return F32 if dtype.bits < 32 else dtype
    if dtype.kind in ("int", "uint") and dtype.bits < 32:
        return I32 if dtype.kind == "int" else DTYPES["u32"]
    return dtype


def number(term: Term) -> Number:
    """A constant of rank 0 as a number."""
    value = term.attribute("value").array()[()]
    dtype = term.tensor.dtype
    kinds = {"bool": bool, "int": int, "uint": int, "complex": complex}
    return Number(kinds.get(dtype.kind, float)(value), dtype)


@dataclass
class Emission:
    """What all kernels share: the buffer of each stored term, and each term's group."""

    buffers: Mapping[Term, str]
    results: Mapping[Term, tuple[str, ...]]  # of libraries
    home: Mapping[Term, Group]
    light: Set[Term]
    position: Mapping[Term, int]
    attended: Mapping[Term, Attended]  # by the product of queries and keys


@dataclass(frozen=True)
class _Ends:
    """The name of a kernel, its last fields (stores, words, picks), and the terms that it computes."""

    name: str
    last: tuple[tuple[Store, ...], tuple[str, ...], tuple[Pick, ...]]
    used: frozenset[Term]


@dataclass
class _Body:
    """The scalars of one kernel; equal values at equal places are one object."""

    emission: Emission
    group: Group
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

    def ends(self, names: Mapping[Term, str]) -> _Ends:
        """What is left of the kernel where its one heavy term is done, whose results have these names."""
        self.names |= names
        self.used |= set(self.group.heavy)
        stores = tuple(self.stores().values())
        known = self.known()
        return _Ends(_name(known), (stores, tuple(map(_word, known)), tuple(self.picks.values())), frozenset(self.used | names.keys()))

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
            key = (*place, start.count)
            if key not in self.picks:
                self.picks[key] = Pick(f"pick:{len(self.picks)}", start.count, clamped(self.done[place], start.count))
                self.extents[self.picks[key].name] = start.count
            found.append((start, symbol(self.picks[key].name)))
        return [], picked_sources(term, index, found, self.extents)

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
            kept = self.names[term] != "dot" and (term.op.name == "stablehlo.reduce" or self.group.kind in (*TILED, SCAN, SCATTER))
            dtype = wide(term.tensor.dtype) if kept else term.tensor.dtype
            return _converted(Result(self.names[term], dtype), term.tensor.dtype)
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
            return Apply(term.op, tuple(values), term.tensor.dtype, term.attributes) if known is None else known
        if len(values) == 1:
            return values[0]
        assert term.op.name in ALTERNATIVES or term.op.name in PICKED
        found = values[-1]
        for part, value in zip(reversed(parts[:-1]), reversed(values[:-1]), strict=True):
            found = Choose(part.bounds, value, found, term.tensor.dtype)
        return found


def _converted(value: Scalar, dtype: DType) -> Scalar:
    return value if value.dtype == dtype else Apply(get_op("stablehlo.convert"), (value,), dtype, (("dtype", dtype),))


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
        found = Choose((Bound(place, count, count + 1),), values[count], found, term.tensor.dtype)
    return found


# ---------------------------------------------------------------- kernels


def emit(emission: Emission, group: Group, live: set[Term]) -> tuple[Kernel, frozenset[Term]]:
    """The kernel of `group`, of whose terms `live` are needed, and the terms that it computes."""
    if group.kind in _EMITTERS:
        return _EMITTERS[group.kind](emission, group)
    folds = [term for term in group.heavy if term in live]
    names: dict[Term, str] = {}
    body = _Body(emission, group, names)
    steps: list[tuple[Scalar, ...]] = []
    for place, term in enumerate(folds):
        steps.append(tuple(body.scalar(operand, index) for operand, index in zip(term.operands, group.reads[term], strict=True)))
        names[term] = "sum" if group.kind == PRODUCT else f"fold{place}"
        body.used.add(term)
    stored = body.stores()
    stores = tuple(stored.values())
    used = body.known()
    words = tuple(map(_word, used))
    name = _name(used)
    picks = tuple(body.picks.values())
    if group.kind == PRODUCT:
        batch, m, n, k = _by_role(group, "bmnk")
        ((lhs, rhs),) = steps
        accumulator = wide(folds[0].tensor.dtype)
        return Product(name, batch, m, n, k, lhs, rhs, accumulator, stores, words, picks), frozenset(body.used)
    if group.kind != ROWS:
        return Pointwise(name, tuple(group.loops.values()), stores, words, picks), frozenset(body.used)
    is_row = [group.is_row(group.at[term]) for term in stored]
    parts = tuple(
        Fold(names[term], term.attribute("combiner"), step[0], wide(term.tensor.dtype)) for term, step in zip(folds, steps, strict=True)
    )
    rows, columns = _rows(group)
    row_stores = tuple(store for store, row in zip(stores, is_row, strict=True) if row)
    elements = tuple(store for store, row in zip(stores, is_row, strict=True) if not row)
    return Rows(name, rows, columns, parts, row_stores, elements, words, picks), frozenset(body.used)


def _attention(emission: Emission, group: Group) -> tuple[Kernel, frozenset[Term]]:
    dot, weights, result = group.heavy
    attended = emission.attended[dot]
    names = {dot: "dot"}
    body = _Body(emission, group, names)
    batch, m, n, keys, k = _by_role(group, "bmnsk")
    query, key = (body.scalar(operand, index) for operand, index in zip(dot.operands, group.reads[dot], strict=True))
    score = body.scalar(weights.operands[0], group.at[dot])
    value = body.scalar(result.operands[1], *group.reads[result])
    names[result] = "sum"
    body.used |= {dot, weights, result}
    stores = tuple(body.stores().values())
    words = tuple(map(_word, body.known()))
    safe, seen = weights.attribute("safe"), attended.seen(group.at[dot])
    accumulator, picks = wide(result.tensor.dtype), tuple(body.picks.values())
    sides, dtype = (query, key, score, value), dot.tensor.dtype
    kernel = Attention("attention", batch, m, n, keys, k, *sides, dtype, accumulator, safe, seen, stores, words, picks)
    return kernel, frozenset(body.used)


def _scan(emission: Emission, group: Group) -> tuple[Kernel, frozenset[Term]]:
    (term,) = group.heavy
    prefix = prefix_of(term)
    assert prefix is not None
    (read,), combiner, dtype = group.reads[term], term.attribute("combiner"), term.tensor.dtype
    body = _Body(emission, group, {})
    value = body.scalar(term.operands[0], read)
    if prefix.shift:  # the first counts nothing
        start = Number(identity(combiner, dtype).item(), dtype)
        value = Choose((Bound(read[prefix.axis], 0, term.tensor.dims[prefix.axis]),), value, start, dtype)
    ends = body.ends({term: "scan"})
    (name,) = symbols(group.at[term][prefix.axis]) & group.extents.keys()
    column = next(loop for loop in group.loops.values() if loop.name == name)
    rows = tuple(loop for loop in group.loops.values() if loop is not column)
    return Scan(ends.name, rows, column, value, combiner, wide(dtype), *ends.last), ends.used


def _scatter(emission: Emission, group: Group) -> tuple[Kernel, frozenset[Term]]:
    (term,) = group.heavy
    body = _Body(emission, group, {})
    base, key, value = body.heavy()
    ends = body.ends({term: "sum"})
    rows, columns, updates = _by_role(group, "rcs")
    combiner, dtype = term.attribute("combiner"), wide(term.tensor.dtype)
    return Scatter(ends.name, rows, columns, updates, base, key, value, combiner, dtype, group.form, *ends.last), ends.used


def _grouped(emission: Emission, group: Group) -> tuple[Kernel, frozenset[Term]]:
    (term,) = group.heavy
    body = _Body(emission, group, {})
    lhs, rhs, key = body.heavy()
    ends = body.ends({term: "sum"})
    each, m, n, k = _by_role(group, "bmnk")
    return Grouped(ends.name, each, m, n, k, key, lhs, rhs, wide(term.tensor.dtype), *ends.last), ends.used


def _sort(emission: Emission, group: Group) -> tuple[Kernel, frozenset[Term]]:
    (term,) = group.heavy
    body = _Body(emission, group, {})
    values = body.heavy()
    ends = body.ends(results_of(term, group))
    rows, (column,), front = _by_role(group, "icf")
    return Sort(
        ends.name, rows, column, front, values[0], values, term.attribute("direction"), term.attribute("total"), *ends.last
    ), ends.used


def _by_role(group: Group, roles: str) -> Iterator[tuple[Loop, ...]]:
    """The loops of a group that stand in each role."""
    return (tuple(loop for key, loop in group.loops.items() if key[0] == role) for role in roles)


def _rows(group: Group) -> tuple[tuple[Loop, ...], tuple[Loop, ...]]:
    rows = tuple(loop for loop in group.loops.values() if loop.name not in group.columns)
    return rows, tuple(loop for loop in group.loops.values() if loop.name in group.columns)


def _word(term: Term) -> str:
    return term.op.name.split(".", 1)[1]


def _name(used: Sequence[Term]) -> str:
    """The first few of a kernel's ops; a number is put before them in launch order."""
    wanted = [_word(term) for term in used if is_arithmetic(term) or term.op.name in HEAVY] or [_word(term) for term in used]
    short = list(dict.fromkeys(_SHORT.get(word, word) for word in wanted))
    return "_".join([*short[:3], *(["etc"] if len(short) > 3 else [])])


_SHORT = {
    "dot_general": "dot", "broadcast_in_dim": "broadcast", "exponential": "exp", "maximum": "max", "minimum": "min", "multiply": "mul",
    "reduce_window": "scan", "subtract": "sub", "divide": "div", "concatenate": "concat", "negate": "neg",
}  # fmt: skip


def _library(emission: Emission, group: Group) -> tuple[Library, frozenset[Term]]:
    (term,) = group.heavy
    given = [o if o.op is ABSENT else make(PARAMETER, (), {"index": i, "type": o.type}) for i, o in enumerate(term.operands)]
    alone = rebuild(term, given)
    operands = tuple(emission.buffers.get(operand) for operand in term.operands)
    word = _word(term)
    return Library(_SHORT.get(word, word), alone, operands, emission.results[term], (word,)), frozenset({term})


_EMITTERS = {LIBRARY: _library, ATTENTION: _attention, SCAN: _scan, GROUPED: _grouped, SORT: _sort, SCATTER: _scatter}
