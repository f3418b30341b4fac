"""Loops whose number of rounds is known before they run, as these rounds one after the other.

A loop is one op to the search and to a plan, run from the host: it reads its condition back after each round, and nothing in its body
shares a kernel with what stands around it. Unrolled, counters become constants, slices at them become slices, and what each round
writes into one tensor becomes one concatenation.
"""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field

from coset.ir.dims import Shape
from coset.ir.errors import CosetError
from coset.ir.evaluate import evaluate
from coset.ir.term import CONSTANT, GET, Region, Term, constant, make, rebuild, topological
from coset.ir.types import TensorType, TupleType

MOST_ROUNDS = 1024
MOST_TERMS = 32768  # of all rounds of all loops of a program
MOST_JOINED = 16  # operands of one concatenation
_LOOP, _READ, _WRITE, _JOIN = "stablehlo.while", "stablehlo.dynamic_slice", "stablehlo.dynamic_update_slice", "stablehlo.concatenate"
_BRANCHES = ("stablehlo.if", "stablehlo.case")


def unrolled(roots: Iterable[Term], kept: Container[Term] = ()) -> tuple[Term, ...]:
    """`roots` with each loop of at most so many rounds and terms unrolled whose rounds integers alone decide that are constants, but for
    those that are `kept`."""
    given = tuple(roots)
    if not any(term.op.name == _LOOP for term in topological(given)):
        return given
    found = _Unrolling(kept=kept).terms(given, {})
    return given if found == given else _joined(found)


def from_the_host(term: Term, no_kernel: str) -> str:
    """What it means that a term is a loop, and why it is `no_kernel`; empty for any other."""
    if term.op.name != _LOOP:
        return ""
    return (
        "a loop that the host runs, which reads its condition back after each round: how often it goes round is not known before, or "
        f"more than {MOST_ROUNDS:,} times, or all rounds are more than {MOST_TERMS:,} ops; and it is no kernel: {no_kernel}"
    )


@dataclass
class _Unrolling:
    """`made`: the terms of all rounds so far, as they stand in bodies. `kept`: loops that stay."""

    made: int = 0
    kept: Container[Term] = ()
    states: dict[Term, tuple[Term, ...]] = field(default_factory=dict)  # results of what is gone, by what stands for it

    def terms(self, roots: Sequence[Term], known: dict[Term, Term]) -> tuple[Term, ...]:
        """`roots` over other terms in the place of those that are `known`. Functions nest as deep as a model's text does."""
        done = dict(known)
        several: dict[Term, tuple[Term, ...]] = {}  # what is gone, with what its results are now
        for term in topological(roots, known=known):
            if term.op is GET and term.operands[0] in several:
                done[term] = several[term.operands[0]][term.attribute("index")]
                continue
            operands = [done[operand] for operand in term.operands]
            results = self._opened(term, operands) if term not in self.kept else None
            if results is None:
                done[term] = _simpler(rebuild(term, operands))
            elif isinstance(term.type, TupleType):
                several[term] = results
                done[term] = term
            else:
                (done[term],) = results
        return tuple(done[root] for root in roots)

    def _opened(self, term: Term, operands: Sequence[Term]) -> tuple[Term, ...] | None:
        """The results of a loop whose rounds are known, or of a branch that is; None for anything else."""
        if term.op.name in _BRANCHES and operands[0].op is CONSTANT and not _is_drawn(term.regions):
            value, last = operands[0].attribute("value").array().item(), len(term.regions) - 1
            number = (0 if value else 1) if term.op.name == _BRANCHES[0] else value if 0 <= value <= last else last
            results = self.called(term.regions[number], operands[1:])
            return results if _fits(results, term) else None
        return self._rounds(term, operands) if term.op.name == _LOOP else None

    def called(self, region: Region, arguments: Sequence[Term]) -> tuple[Term, ...]:
        """The results of a function."""
        return self.terms(region.results, dict(zip(region.parameters, arguments, strict=True)))

    def _rounds(self, loop: Term, state: Sequence[Term]) -> tuple[Term, ...] | None:
        count = self._count(loop, state)
        if count is None or _is_drawn(loop.regions):
            return None
        size = count * _size(loop.regions[1])
        if not _fits(state, loop) or not _fits(loop.regions[1].results, loop):
            return None
        if self.made + size > MOST_TERMS:
            return None
        self.made += size
        state = tuple(state)
        for _ in range(count):
            state = self.called(loop.regions[1], state)
        return state

    def _count(self, loop: Term, state: Sequence[Term]) -> int | None:
        """How many rounds a loop has; None where that is not known, or they are too many."""
        condition, body = loop.regions
        deciding = _deciding(condition, body)
        known = {place: state[place] for place in deciding}
        if not all(_is_small_integer(value) for value in known.values()):
            return None
        inner = _Unrolling(MOST_TERMS)  # which unrolls nothing
        for count in range(MOST_ROUNDS + 1):
            (goes_on,) = inner.terms(condition.results, {condition.parameters[place]: value for place, value in known.items()})
            if goes_on.op is not CONSTANT:
                return None
            if not goes_on.attribute("value").array().item():
                return count
            given = {body.parameters[place]: value for place, value in known.items()}
            known = dict(zip(deciding, inner.terms([body.results[place] for place in deciding], given), strict=True))
            if not all(_is_small_integer(value) for value in known.values()):
                return None
        return None


def _fits(results: Sequence[Term], term: Term) -> bool:
    """Whether what stands for the results of a term has their types: a branch may say less of a shape than what it gives."""
    types = term.type.items if isinstance(term.type, TupleType) else (term.type,)
    return tuple(result.type for result in results) == tuple(types)


def _deciding(condition: Region, body: Region) -> list[int]:
    """The places of the state on which it depends how often a loop goes round."""
    found: set[int] = set()
    waiting = [_used(condition.results, condition.parameters)]
    while waiting:
        new = waiting.pop() - found
        found |= new
        waiting += [_used([body.results[place]], body.parameters) for place in new]
    return sorted(found)


def _used(results: Sequence[Term], parameters: Sequence[Term]) -> set[int]:
    below = set(topological(results))
    return {place for place, parameter in enumerate(parameters) if parameter in below}


def _size(region: Region) -> int:
    return sum(1 + sum(map(_size, term.regions)) for term in topological(region.results))


def _is_drawn(regions: Iterable[Region]) -> bool:
    """True where something gives another result each time, which is one term for all rounds if its operands are."""
    terms = [term for region in regions for term in topological(region.results)]
    return any(term.op.name == "stablehlo.rng" or term.op.has("foreign") or _is_drawn(term.regions) for term in terms)


# ---------------------------------------------------------------- places that are known


def _is_small_integer(term: Term) -> bool:
    return term.op is CONSTANT and term.tensor.rank == 0 and term.tensor.dtype.kind in ("int", "uint", "bool")


def _simpler(term: Term) -> Term:
    """A term of integers that are known as their value; a slice at places that are known as one that says so."""
    if term.op.name == _READ and all(map(_is_small_integer, term.operands[1:])):
        x, sizes = term.operands[0], term.attribute("slice_sizes")
        places = _places(x.tensor.dims, sizes, term.operands[1:])
        if places is not None:
            limit = tuple(place + size for place, size in zip(places, sizes, strict=True))
            return make("stablehlo.slice", (x,), {"start": places, "limit": limit, "strides": (1,) * len(places)})
    if not term.operands or not all(map(_is_small_integer, term.operands)):
        return term
    if not isinstance(term.type, TensorType) or term.type.rank or term.type.dtype.kind not in ("int", "uint", "bool"):
        return term
    try:
        (value,) = evaluate([term], {})
    except CosetError:
        return term
    return constant(value, term.type.dtype)


def _places(shape: Shape, sizes: Shape, starts: Sequence[Term]) -> tuple[int, ...] | None:
    """Where a slice of a static shape begins: inside, wherever it is asked for."""
    found = []
    for dim, size, start in zip(shape, sizes, starts, strict=True):
        if not isinstance(dim, int) or not isinstance(size, int):
            return None
        found.append(min(max(int(start.attribute("value").array().item()), 0), dim - size))
    return tuple(found)


# ---------------------------------------------------------------- what rounds write


@dataclass(frozen=True)
class _Written:
    """What is written into a tensor along one axis, from places of it on."""

    base: Term
    axis: int
    parts: dict[int, Term]


def _joined(roots: Sequence[Term]) -> tuple[Term, ...]:
    """`roots` with updates of neighbouring places of one tensor as one concatenation."""
    order = list(topological(roots))
    users: dict[Term, list[Term]] = {}
    for term in order:
        for operand in term.operands:
            users.setdefault(operand, []).append(term)
    ends = set(roots)
    inner = {
        term.operands[0] for term in order if term.op.name == _WRITE and len(users[term.operands[0]]) == 1 and term.operands[0] not in ends
    }
    done: dict[Term, Term] = {}
    for term in order:
        written = _written(term, inner) if term.op.name == _WRITE and term not in inner else None
        if written is None:
            done[term] = rebuild(term, [done[operand] for operand in term.operands])
        else:
            done[term] = _concatenated(written, done)
    return tuple(done[root] for root in roots)


def _written(last: Term, inner: set[Term]) -> _Written | None:
    """The chain of updates that ends with `last`, where two or more touch places of their own along one axis and all of every other."""
    chain = [last]
    while chain[-1].operands[0].op.name == _WRITE and chain[-1].operands[0] in inner:
        chain.append(chain[-1].operands[0])
    shape, updates = last.tensor.dims, [term.operands[1] for term in chain]
    starts = []
    for term, update in zip(chain, updates, strict=True):
        found = _places(shape, update.tensor.dims, term.operands[2:]) if all(map(_is_small_integer, term.operands[2:])) else None
        if found is None or 0 in update.tensor.dims:
            return None
        starts.append(found)
    axes = [axis for axis, dim in enumerate(shape) if any(update.tensor.dims[axis] != dim for update in updates)]
    if len(chain) < 2 or len(axes) != 1:
        return None
    (axis,) = axes
    parts: dict[int, Term] = {}
    for update, start in zip(updates, starts, strict=True):
        earlier = parts.setdefault(start[axis], update)
        if earlier.tensor.dims != update.tensor.dims:
            return None
    ends = [(at, at + int(part.tensor.dims[axis])) for at, part in sorted(parts.items())]  # type: ignore[arg-type]
    if any(end > at for (_, end), (at, _) in itertools.pairwise(ends)):
        return None
    return _Written(chain[-1].operands[0], axis, parts)


def _concatenated(written: _Written, done: dict[Term, Term]) -> Term:
    base, axis = done[written.base], written.axis
    length = base.tensor.dims[axis]
    assert isinstance(length, int)
    pieces: list[Term] = []
    place = 0
    for at, part in [*sorted(written.parts.items(), key=lambda item: item[0]), (length, None)]:
        if place < at:
            pieces.append(cut(base, axis, place, at))
        if part is not None:
            pieces.append(done[part])
            place = at + int(part.tensor.dims[axis])  # type: ignore[arg-type]
    return concatenated(pieces, axis)


def concatenated(pieces: Sequence[Term], axis: int) -> Term:
    """`pieces` one behind the other, a few at a time."""
    while len(pieces) > 1:
        pieces = [
            pieces[at] if at + 1 == len(pieces) else make(_JOIN, tuple(pieces[at : at + MOST_JOINED]), {"dimension": axis})
            for at in range(0, len(pieces), MOST_JOINED)
        ]
    return pieces[0]


def cut(x: Term, axis: int, low: int, high: int) -> Term:
    """The places from `low` to before `high` along `axis`."""
    if (low, high) == (0, x.tensor.dims[axis]):
        return x
    start, limit = [0] * x.tensor.rank, [*x.tensor.dims]
    start[axis], limit[axis] = low, high
    return make("stablehlo.slice", (x,), {"start": tuple(start), "limit": tuple(limit), "strides": (1,) * x.tensor.rank})
