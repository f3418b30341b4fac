"""Products of rounds that stand one after the other, as one product: what each round multiplies of its own place of a tensor by one
matrix, and sums of what each round contributes (gradients of weights).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

from coset.dialects.hub.terms import convert, reshape
from coset.ir.op import Op
from coset.ir.term import AttributeItems, Term, make, rebuild, topological
from coset.ir.types import DType
from coset.lowering.planning.kinds import is_plain
from coset.lowering.planning.loops import concatenated, cut

LEAST_USED = 0.5  # of the places that one product computes
_PRODUCT, _SUM, _SLICE = "stablehlo.dot_general", "stablehlo.add", "stablehlo.slice"
_MOVING = ("stablehlo.transpose", "stablehlo.reshape")
_SIDES = ("lhs", "rhs")
_Moves = tuple[tuple[Op, AttributeItems], ...]
_Stacks = dict[frozenset[Term], Term]  # what was put one beside the other along a new first axis, by what it is
_Joined = tuple[set[Term], list[Term]]  # summands that are gone, and what stands for them
_Join = Callable[[Sequence[Term], dict[Term, int], dict[Term, Term]], _Joined]  # of summands, how often terms are used, what is done


def products_of_rounds(roots: Iterable[Term], *, sums: bool) -> tuple[Term, ...]:
    """`roots` with products of places of one tensor by one operand as places of one product; and, where `sums` may be made in another
    order, with sums of products as one whose sum goes through all of them. Sums of integers have no order."""
    stacks: _Stacks = {}
    found = _summed(_hoisted(tuple(roots)), partial(_one_product, stacks), sums=sums)
    return _summed(found, partial(_one_reduction, stacks), sums=sums) if stacks else found


@dataclass(frozen=True)
class _Source:
    """What single places are read of: `base` along `axis`, whose place is `dropped` from the dims or has size 1 there, converted on the
    way to these types."""

    base: Term
    axis: int
    dropped: bool
    dtypes: tuple[DType, ...]

    def whole(self, done: dict[Term, Term], low: int, high: int) -> Term:
        """The places from `low` to before `high`, all at once."""
        found = cut(done[self.base], self.axis, low, high)
        for dtype in self.dtypes:
            found = convert(found, dtype)
        return found

    def lifted(self, axes: Sequence[int]) -> tuple[int, ...]:
        """The axes of a place as axes of the whole."""
        return tuple(axis + (self.dropped and axis >= self.axis) for axis in axes)


@dataclass(frozen=True)
class _Family:
    """Products that differ only in the place that one `side` reads."""

    side: int
    source: _Source
    other: Term
    attributes: AttributeItems


@dataclass
class _Shared:
    """One product for a family: its members with their places, and the term once it is made."""

    members: dict[Term, int] = field(default_factory=dict)
    product: Term | None = None

    @property
    def low(self) -> int:
        return min(self.members.values())

    @property
    def high(self) -> int:
        return max(self.members.values()) + 1

    @property
    def pays(self) -> bool:
        """Whether there are several, and most of what one product computes is used."""
        return len(self.members) > 1 and len(self.members) >= LEAST_USED * (self.high - self.low)


# ---------------------------------------------------------------- one operand


def _hoisted(roots: tuple[Term, ...]) -> tuple[Term, ...]:
    order = list(topological(roots))
    families: dict[_Family, _Shared] = {}
    for term in order:
        for family, place in _families(term):
            families.setdefault(family, _Shared()).members[term] = place
    chosen: dict[Term, _Family] = {}
    for family, shared in families.items():
        if shared.pays and chosen.keys().isdisjoint(shared.members):
            chosen |= dict.fromkeys(shared.members, family)
    if not chosen:
        return roots
    done: dict[Term, Term] = {}
    for term in order:
        if term in chosen:
            done[term] = _place_of(term, chosen[term], families[chosen[term]], done)
        else:
            done[term] = rebuild(term, [done[operand] for operand in term.operands])
    return tuple(done[root] for root in roots)


def _families(term: Term) -> Iterable[tuple[_Family, int]]:
    """The families that a product may be in, with its place."""
    if term.op.name != _PRODUCT or not all(is_plain(operand.tensor) for operand in term.operands):
        return
    for side, operand in enumerate(term.operands):
        found = _read(operand)
        if found is None:
            continue
        source, place = found
        taken = (*term.attribute(f"{_SIDES[side]}_batch"), *term.attribute(f"{_SIDES[side]}_contract"))
        if source.dropped or source.axis not in taken:
            yield _Family(side, source, term.operands[1 - side], term.attributes), place


def _place_of(term: Term, family: _Family, shared: _Shared, done: dict[Term, Term]) -> Term:
    """What stands for one product of a family: its place in the shared one."""
    side, source = _SIDES[family.side], family.source
    attributes = dict(family.attributes)
    for name in (f"{side}_batch", f"{side}_contract"):
        attributes[name] = source.lifted(attributes[name])
    if shared.product is None:
        whole, other = source.whole(done, shared.low, shared.high), done[family.other]
        shared.product = make(_PRODUCT, (whole, other) if family.side == 0 else (other, whole), attributes)
    taken = {*attributes[f"{side}_batch"], *attributes[f"{side}_contract"]}
    axis = len(attributes["lhs_batch"]) + sum(each not in taken for each in range(source.axis))
    if family.side == 1:  # the other's own dims come first
        axis += family.other.tensor.rank - len(attributes["lhs_batch"]) - len(attributes["lhs_contract"])
    place = shared.members[term] - shared.low
    return reshape(cut(shared.product, axis, place, place + 1), term.tensor.dims)


# ---------------------------------------------------------------- sums


def _summed(roots: tuple[Term, ...], joined: _Join, *, sums: bool) -> tuple[Term, ...]:
    """`roots` with what `joined` makes of the summands of each sum."""
    order = list(topological(roots))
    uses: dict[Term, int] = dict.fromkeys(order, 0)
    for term in order:
        for operand in term.operands:
            uses[operand] += 1
    for root in roots:
        uses[root] += 1
    inner = {
        operand
        for term in order
        if term.op.name == _SUM
        for operand in term.operands
        if operand.op.name == _SUM and uses[operand] == 1 and operand.type == term.type
    }
    done: dict[Term, Term] = {}
    for term in order:
        own = [done[operand] for operand in term.operands]
        found = None
        if term.op.name == _SUM and term not in inner and (sums or term.tensor.dtype.kind in ("int", "uint")):
            found = _total(_summands(term, inner), uses, done, joined)
        done[term] = rebuild(term, own) if found is None else found
    return tuple(done[root] for root in roots)


def _summands(whole: Term, inner: set[Term]) -> list[Term]:
    found, waiting = [], [whole]
    while waiting:
        term = waiting.pop()
        if term is whole or term in inner:
            waiting += reversed(term.operands)
        else:
            found.append(term)
    return found


def _total(summands: Sequence[Term], uses: dict[Term, int], done: dict[Term, Term], joined: _Join) -> Term | None:
    """The sum of what is left and of what is new; None where nothing is."""
    gone, new = joined(summands, uses, done)
    if not new:
        return None
    total, *rest = [*(done[term] for term in summands if term not in gone), *new]
    for term in rest:
        total = make(_SUM, (total, term))
    return total


def _one_product(stacks: _Stacks, summands: Sequence[Term], uses: dict[Term, int], done: dict[Term, Term]) -> _Joined:
    """Products whose one side reads neighbouring places of a tensor, as one product that sums over them too."""
    families: dict[tuple[int, _Source, AttributeItems, _Moves], dict[int, tuple[Term, Term]]] = {}
    for summand in summands:
        term, moves = _unmoved(summand, uses)
        if term.op.name == _PRODUCT and uses[term] == 1 and all(is_plain(operand.tensor) for operand in term.operands):
            for side, operand in enumerate(term.operands):
                found = _read(operand)
                if found is not None and found[0].dropped:
                    families.setdefault((side, found[0], term.attributes, moves), {})[found[1]] = (summand, term)
    joined: set[Term] = set()
    products = []
    for (side, source, attributes, moves), members in families.items():
        places, own = sorted(members), {summand for summand, _ in members.values()}
        if len(places) > 1 and places[-1] - places[0] + 1 == len(places) and joined.isdisjoint(own):
            joined |= own
            others = [done[members[place][1].operands[1 - side]] for place in places]
            stack = concatenated([reshape(other, (1, *other.tensor.dims)) for other in others], 0)
            if len(set(others)) == len(others):
                stacks[frozenset(others)] = stack
            whole = source.whole(done, places[0], places[-1] + 1)
            products.append(_moved(_through(side, whole, source, stack, attributes), moves))
    return joined, products


def _one_reduction(stacks: _Stacks, summands: Sequence[Term], uses: dict[Term, int], done: dict[Term, Term]) -> _Joined:
    """Sums of all members of a stack as one sum of it: the gradient of what was added in each round."""
    families: dict[tuple[AttributeItems, _Moves], dict[Term, Term]] = {}
    for summand in summands:
        term, moves = _unmoved(summand, uses)
        if term.op.name != "stablehlo.reduce" or uses[term] > 1 or term.attribute("combiner") != "add":
            continue
        (operand,) = term.operands
        if done[operand] is operand:  # else what is stacked is no part of the new program
            families.setdefault((term.attributes, moves), {})[operand] = summand
    joined: set[Term] = set()
    sums = []
    for (attributes, moves), members in families.items():
        stack = stacks.get(frozenset(members))
        if stack is not None:
            joined |= set(members.values())
            dimensions = (0, *(axis + 1 for axis in dict(attributes)["dimensions"]))
            sums.append(_moved(make("stablehlo.reduce", (stack,), {**dict(attributes), "dimensions": dimensions}), moves))
    return joined, sums


def _moved(term: Term, moves: _Moves) -> Term:
    for op, given in reversed(moves):
        term = make(op, (term,), dict(given))
    return term


def _unmoved(term: Term, uses: dict[Term, int]) -> tuple[Term, _Moves]:
    """What is transposed and reshaped on the way into a sum, and how, the last first."""
    moves = []
    while term.op.name in _MOVING and uses[term] == 1:
        moves.append((term.op, term.attributes))
        (term,) = term.operands
    return term, tuple(moves)


def _through(side: int, whole: Term, source: _Source, stack: Term, attributes: AttributeItems) -> Term:
    """One product that also sums over the places of `whole`, each by one of the `stack`."""
    here, there = _SIDES[side], _SIDES[1 - side]
    given = dict(attributes)
    for axes in ("batch", "contract"):
        given[f"{here}_{axes}"] = source.lifted(given[f"{here}_{axes}"])
        given[f"{there}_{axes}"] = tuple(axis + 1 for axis in given[f"{there}_{axes}"])
    given[f"{here}_contract"] = (source.axis, *given[f"{here}_contract"])
    given[f"{there}_contract"] = (0, *given[f"{there}_contract"])
    return make(_PRODUCT, (whole, stack) if side == 0 else (stack, whole), given)


# ---------------------------------------------------------------- places


def _read(term: Term) -> tuple[_Source, int] | None:
    """What `term` reads one place of, and which; None where it does something else."""
    dtypes: list[DType] = []
    flat: Term | None = None
    while term.op.name == "stablehlo.convert" or (term.op.name == "stablehlo.reshape" and flat is None):
        if term.op.name == "stablehlo.convert":
            dtypes.append(term.tensor.dtype)
        else:
            flat = term
        (term,) = term.operands
    if term.op.name != _SLICE:
        return None
    base, dims = term.operands[0], term.tensor.dims
    axes = [axis for axis, (own, dim) in enumerate(zip(dims, base.tensor.dims, strict=True)) if own != dim]
    if len(axes) != 1 or dims[axes[0]] != 1:
        return None
    (axis,) = axes
    if flat is not None and flat.tensor.dims != (*dims[:axis], *dims[axis + 1 :]):
        return None
    return _Source(base, axis, flat is not None, tuple(reversed(dtypes))), term.attribute("start")[axis]
