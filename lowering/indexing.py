"""Movement as arithmetic on indices: where an element of a result comes from, and where an element of an operand goes to.

An index is one dim for each dim of a tensor, over a kernel's loops. `//` and `%` are simplified by what is known of the loops:
each runs over 0 .. extent - 1, so that `(32*i + j) // 32` is `i` where j runs to 31. The symbols of the program are taken as 1 or
more: with a dim of size 0 no index is ever asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from coset.ir.dims import (
    Atom,
    Dim,
    Monomial,
    Poly,
    Shape,
    add,
    divide_exactly,
    floordiv,
    mod,
    multiply,
    product,
    substitute,
    subtract,
    symbols,
)
from coset.ir.term import Term
from coset.lowering.kernel import Bound

Extents = Mapping[str, Dim]  # loop symbol -> how many values it takes
Index = tuple[Dim, ...]


def _sum(terms: Iterable[tuple[Monomial, int]]) -> Dim:
    total: dict[Monomial, int] = {}
    for monomial, coefficient in terms:
        total[monomial] = total.get(monomial, 0) + coefficient
    kept = {m: c for m, c in total.items() if c}
    if not kept:
        return 0
    return kept[()] if set(kept) == {()} else add(0, Poly(tuple(kept.items())))


def _terms(dim: Dim) -> tuple[tuple[Monomial, int], ...]:
    return dim.terms if isinstance(dim, Poly) else ((((), dim),) if dim else ())


def is_positive(dim: Dim) -> bool:
    """True when `dim` is seen to be 1 or more (symbols are)."""
    return is_natural(subtract(dim, 1))


def is_natural(dim: Dim) -> bool:
    """True when `dim`, without loops, is seen to be 0 or more: each of its symbols is 1 or more."""
    if isinstance(dim, int):
        return dim >= 0
    plain = {name: add(1, _symbol(name)) for name in symbols(dim)}
    shifted = substitute(dim, plain)
    return all(coefficient >= 0 for monomial, coefficient in _terms(shifted)) and all(
        atom.name in ("max", "min", "mod", "floordiv") or not atom.args for monomial, _ in _terms(shifted) for atom in monomial
    )


def _symbol(name: str) -> Poly:
    return Poly((((Atom(name),), 1),))


# ---------------------------------------------------------------- ranges


def range_of(dim: Dim, extents: Extents) -> tuple[Dim, Dim] | None:
    """The least and the largest value of `dim` over the loops, or None where it is not seen."""
    low: Dim = 0
    high: Dim = 0
    for monomial, coefficient in _terms(dim):
        least: Dim = 1
        most: Dim = 1
        for atom in monomial:
            found = _atom_range(atom, extents)
            if found is None or not is_natural(found[0]):
                return None
            least, most = multiply(least, found[0]), multiply(most, found[1])
        if coefficient < 0:
            least, most = most, least
        low, high = add(low, multiply(coefficient, least)), add(high, multiply(coefficient, most))
    return low, high


def _atom_range(atom: Atom, extents: Extents) -> tuple[Dim, Dim] | None:
    if not atom.args:
        one = _symbol(atom.name)
        return (0, subtract(extents[atom.name], 1)) if atom.name in extents else (one, one)
    if not any(symbols(arg) & extents.keys() for arg in atom.args):
        one = Poly((((atom,), 1),))
        return one, one
    if atom.name not in ("floordiv", "mod") or not is_positive(atom.args[1]):
        return None
    inner, divisor = range_of(atom.args[0], extents), atom.args[1]
    if atom.name == "mod":
        return 0, subtract(divisor, 1)
    return None if inner is None else (floordiv(inner[0], divisor), floordiv(inner[1], divisor))


def is_within(dim: Dim, low: Dim, high: Dim, extents: Extents) -> bool:
    """True when `low <= dim < high` is seen for all values of the loops."""
    found = range_of(dim, extents)
    return found is not None and is_natural(subtract(found[0], low)) and is_natural(subtract(subtract(high, 1), found[1]))


def is_outside(dim: Dim, low: Dim, high: Dim, extents: Extents) -> bool:
    """True when `low <= dim < high` is seen to be false for all values of the loops."""
    found = range_of(dim, extents)
    return found is not None and (is_natural(subtract(found[0], high)) or is_natural(subtract(subtract(low, 1), found[1])))


# ---------------------------------------------------------------- quotient and remainder


def divided(dim: Dim, divisor: Dim, extents: Extents) -> tuple[Dim, Dim]:
    """`dim // divisor` and `dim % divisor`, simplified; `divisor` is 1 or more."""
    if divisor == 1:
        return dim, 0
    if isinstance(dim, int) and isinstance(divisor, int):
        return dim // divisor, dim % divisor
    whole, rest = _multiples(dim, divisor)
    if is_within(rest, 0, divisor, extents):
        return whole, rest
    quotient, remainder = _by_factor(rest, divisor, extents)
    return add(whole, quotient), remainder


def _multiples(dim: Dim, divisor: Dim) -> tuple[Dim, Dim]:
    """(q, r) with dim = divisor * q + r, term by term: the terms that the divisor divides, and the others."""
    whole: Dim = 0
    rest: list[tuple[Monomial, int]] = []
    for monomial, coefficient in _terms(dim):
        one = _sum([(monomial, coefficient)])
        exact = divide_exactly(one, divisor)
        if exact is not None:
            whole = add(whole, exact)
        else:
            rest.append((monomial, coefficient))
    return whole, _sum(rest)


def _by_factor(dim: Dim, divisor: Dim, extents: Extents) -> tuple[Dim, Dim]:
    """As `divided`, where no term is a multiple: a factor g of the divisor is taken out of the terms that have it, where what is left
    stays below g: (g*a + b) // (g*c) is a // c."""
    for monomial, coefficient in _terms(dim):
        plain = tuple(atom for atom in monomial if not atom.args and atom.name not in extents)
        factor = _sum([(plain, abs(coefficient))])
        if factor == 1:
            continue
        rest_divisor = divide_exactly(divisor, factor)
        if rest_divisor is None or rest_divisor == 1:
            continue
        upper, lower = _multiples(dim, factor)
        if is_within(lower, 0, factor, extents):
            quotient, remainder = divided(upper, rest_divisor, extents)
            return quotient, joined(add(multiply(factor, remainder), lower))
    inner = _only_atom(dim)
    if inner is not None and inner.name == "floordiv" and is_positive(inner.args[1]):
        quotient = divided(inner.args[0], multiply(inner.args[1], divisor), extents)[0]
        return quotient, mod(dim, divisor)
    if inner is not None and inner.name == "mod" and divide_exactly(inner.args[1], divisor) is not None:
        return floordiv(dim, divisor), divided(inner.args[0], divisor, extents)[1]
    return floordiv(dim, divisor), mod(dim, divisor)


def _only_atom(dim: Dim) -> Atom | None:
    terms = _terms(dim)
    return terms[0][0][0] if len(terms) == 1 and terms[0][1] == 1 and len(terms[0][0]) == 1 and terms[0][0][0].args else None


def joined(dim: Dim, extents: Extents | None = None) -> Dim:
    """`dim` with quotients and remainders of one thing put together: n * (x // n) + x % n is x, n * (x // n % m) + x % n is x % (n * m).
    With the loops' `extents`, quotients that were simplified are found too."""
    if isinstance(dim, int):
        return dim
    for monomial, coefficient in dim.terms:
        for place, atom in enumerate(monomial):
            if atom.name != "mod" or not atom.args:
                continue
            inner, divisor = atom.args
            rest = _sum([(monomial[:place] + monomial[place + 1 :], coefficient)])
            for wanted, whole in _partners(dim, inner, divisor, multiply(rest, divisor), extents):
                if len(_terms(wanted)) == 1 and _terms(wanted)[0] in dim.terms:
                    less = subtract(subtract(dim, wanted), _sum([(monomial, coefficient)]))
                    return joined(add(less, multiply(rest, whole)), extents)
    return dim


def _partners(dim: Poly, inner: Dim, divisor: Dim, factor: Dim, extents: Extents | None) -> list[tuple[Dim, Dim]]:
    """What may stand in `dim` beside inner % divisor, times `factor`, and what both are together."""
    quotients = {floordiv(inner, divisor), _nested(inner, divisor)}
    if extents is not None:
        quotients.add(divided(inner, divisor, extents)[0])
    found = [(multiply(factor, quotient), inner) for quotient in quotients]
    for monomial, _ in dim.terms:
        for atom in monomial:
            if atom.name == "mod" and atom.args and atom.args[0] in quotients:
                one = Poly((((atom,), 1),))
                found.append((multiply(factor, one), mod(inner, multiply(divisor, atom.args[1]))))
    return found


def _nested(inner: Dim, divisor: Dim) -> Dim:
    """`inner // divisor` where inner is itself a quotient: one quotient."""
    atom = _only_atom(inner)
    if atom is not None and atom.name == "floordiv":
        return floordiv(atom.args[0], multiply(atom.args[1], divisor))
    return floordiv(inner, divisor)


# ---------------------------------------------------------------- reshapes


def _factors(shape: Shape) -> list[int]:
    return [axis for axis, dim in enumerate(shape) if dim != 1]


def _aligned(left: Shape, right: Shape) -> list[tuple[list[int], list[int]]]:
    """The dims of two shapes with equally many elements in groups that have equally many: (axes of left, axes of right)."""
    cuts: list[dict[Dim, int]] = []
    for shape in (left, right):
        total: Dim = 1
        at: dict[Dim, int] = {}
        for position, axis in enumerate(_factors(shape)):
            total = multiply(total, shape[axis])
            at[total] = position + 1
        cuts.append(at)
    first, second = _factors(left), _factors(right)
    groups: list[tuple[list[int], list[int]]] = []
    done = (0, 0)
    ends = [(place, cuts[1][total]) for total, place in cuts[0].items() if total in cuts[1]]
    for end in (*ends, (len(first), len(second))):
        if end[0] >= done[0] and end[1] >= done[1] and end != done:
            groups.append((first[done[0] : end[0]], second[done[1] : end[1]]))
            done = end
    return groups


def reshaped(index: Index, shape: Shape, other: Shape, extents: Extents) -> Index:
    """The index in a tensor of shape `other` of the element at `index` of `shape`: both are the same elements in row-major order."""
    result: list[Dim] = [0] * len(other)
    if 0 in shape or 0 in other:
        return tuple(result)
    for mine, theirs in _aligned(shape, other):
        if len(mine) == len(theirs) == 1:
            result[theirs[0]] = index[mine[0]]
            continue
        place: Dim = 0
        for axis in mine:
            place = add(multiply(place, shape[axis]), index[axis])
        place = joined(place, extents)
        for axis in reversed(theirs[1:]):
            place, result[axis] = divided(place, other[axis], extents)
        if theirs:
            result[theirs[0]] = place
    return tuple(result)


def merges_and_splits(shape: Shape, other: Shape) -> bool:
    """True for a reshape that makes each dim from several, or several from one: no element's place mixes dims."""
    return all(len(mine) <= 1 or len(theirs) <= 1 for mine, theirs in _aligned(shape, other))


def complexity(dim: Dim) -> int:
    """The number of atoms in `dim`, counted up to a thousand."""
    total = 0
    stack: list[Dim] = [dim]
    while stack and total < 1000:
        for monomial, _ in _terms(stack.pop()):
            total += len(monomial)
            stack += [arg for atom in monomial for arg in atom.args]
    return total


def strides_of(shape: Shape) -> Shape:
    """The row-major strides of `shape`, in elements."""
    return tuple(product(shape[axis + 1 :]) for axis in range(len(shape)))


def offset(index: Index, shape: Shape, extents: Extents | None = None, *, strides: Shape | None = None) -> Dim:
    """The place in memory, in elements, of the element `index` of a row-major tensor of `shape` (or with other `strides`); quotients and
    remainders of one loop are one term again where they are next to each other in memory. `extents` of the loops help to see it."""
    steps = strides_of(shape) if strides is None else strides
    total: Dim = 0
    for i, step in zip(index, steps, strict=True):
        total = add(total, multiply(i, step))
    return joined(total, extents)


# ---------------------------------------------------------------- from result to operand


@dataclass(frozen=True)
class Source:
    """Where an element comes from: the element `index` of operand `operand` where all `bounds` hold."""

    operand: int
    index: Index
    bounds: tuple[Bound, ...] = ()


def sources(term: Term, index: Index, extents: Extents) -> tuple[Source, ...]:
    """Where the element `index` of a movement (or an elementwise op) comes from: one source for each operand that is read there.

    The sources of a concatenate and a pad have bounds; the first whose bounds hold is the one, and the last has none.
    """
    name = term.op.name.removeprefix("stablehlo.")
    move = _MOVES.get(name)
    if move is not None:
        return move(term, index, extents)
    rank = len(index)
    return tuple(Source(i, index if operand.tensor.rank == rank else ()) for i, operand in enumerate(term.operands))


def _broadcast(term: Term, index: Index, _: Extents) -> tuple[Source, ...]:
    axes, shape = term.attribute("broadcast_dimensions"), term.operands[0].tensor.dims
    return (Source(0, tuple(0 if dim == 1 else index[axis] for dim, axis in zip(shape, axes, strict=True))),)


def _reshape(term: Term, index: Index, extents: Extents) -> tuple[Source, ...]:
    return (Source(0, reshaped(index, term.tensor.dims, term.operands[0].tensor.dims, extents)),)


def _transpose(term: Term, index: Index, _: Extents) -> tuple[Source, ...]:
    result: list[Dim] = [0] * len(index)
    for place, axis in enumerate(term.attribute("permutation")):
        result[axis] = index[place]
    return (Source(0, tuple(result)),)


def _slice(term: Term, index: Index, _: Extents) -> tuple[Source, ...]:
    moved = (
        add(start, multiply(step, i)) for start, step, i in zip(term.attribute("start"), term.attribute("strides"), index, strict=True)
    )
    return (Source(0, tuple(moved)),)


def _reverse(term: Term, index: Index, _: Extents) -> tuple[Source, ...]:
    axes = term.attribute("dimensions")
    last = (subtract(subtract(dim, 1), i) if axis in axes else i for axis, (dim, i) in enumerate(zip(term.tensor.dims, index, strict=True)))
    return (Source(0, tuple(last)),)


def _bounds(bounds: Iterable[Bound], extents: Extents) -> tuple[tuple[Bound, ...], bool]:
    """The bounds that are not seen to hold always, and whether they can hold at all."""
    left = [bound for bound in bounds if not is_within(bound.index, bound.low, bound.high, extents)]
    return tuple(left), not any(is_outside(bound.index, bound.low, bound.high, extents) for bound in left)


def _concatenate(term: Term, index: Index, extents: Extents) -> tuple[Source, ...]:
    axis = term.attribute("dimension")
    found: list[Source] = []
    start: Dim = 0
    for i, operand in enumerate(term.operands):
        end = add(start, operand.tensor.dims[axis])
        inner = (*index[:axis], subtract(index[axis], start), *index[axis + 1 :])
        last = i == len(term.operands) - 1
        bounds, possible = _bounds(() if last else (Bound(index[axis], start, end),), extents)
        if possible and operand.tensor.dims[axis] != 0:
            found.append(Source(i, inner, bounds))
            if not bounds:
                break
        start = end
    if found and found[-1].bounds:  # the inputs after it are empty
        found[-1] = Source(found[-1].operand, found[-1].index)
    return tuple(found)


def _pad(term: Term, index: Index, extents: Extents) -> tuple[Source, ...]:
    bounds: list[Bound] = []
    inner: list[Dim] = []
    shape = term.operands[0].tensor.dims
    for i, dim, low, gap in zip(index, shape, term.attribute("low"), term.attribute("interior"), strict=True):
        moved = subtract(i, low)
        if gap:
            bounds.append(Bound(moved, 0, add(multiply(subtract(dim, 1), gap + 1), 1)))
            moved, off = divided(moved, gap + 1, extents)
            bounds.append(Bound(off, 0, 1))
        else:
            bounds.append(Bound(moved, 0, dim))
        inner.append(moved)
    left, possible = _bounds(bounds, extents)
    outside = Source(1, ())
    if not possible or 0 in shape:
        return (outside,)
    inside = Source(0, tuple(inner), left)
    return (inside, outside) if left else (inside,)


def _none(_: Term, __: Index, ___: Extents) -> tuple[Source, ...]:
    return ()


_MOVES = {
    "broadcast_in_dim": _broadcast, "reshape": _reshape, "transpose": _transpose, "slice": _slice, "reverse": _reverse,
    "concatenate": _concatenate, "pad": _pad, "iota": _none,
}  # fmt: skip
ALTERNATIVES = frozenset({"stablehlo.concatenate", "stablehlo.pad"})  # one of the sources is the element; the others are not read
MOVEMENTS = frozenset(f"stablehlo.{name}" for name in _MOVES) - {"stablehlo.iota"}
BIJECTIVE = frozenset(f"stablehlo.{name}" for name in ("reshape", "transpose", "reverse"))


# ---------------------------------------------------------------- from operand to result


def target(term: Term, operand: int, index: Index, extents: Extents) -> Index | None:
    """Where the element `index` of operand number `operand` stands in the result: for elementwise ops and the movements that keep every
    element exactly once. None for all others."""
    name = term.op.name
    if name == "stablehlo.reshape":
        return reshaped(index, term.operands[0].tensor.dims, term.tensor.dims, extents)
    if name == "stablehlo.transpose":
        return tuple(index[axis] for axis in term.attribute("permutation"))
    if name == "stablehlo.reverse":
        return _reverse(term, index, extents)[0].index
    if name == "stablehlo.broadcast_in_dim":
        return _spread(term, index)
    if name in MOVEMENTS or not term.op.has("elementwise"):
        return None
    return index if term.operands[operand].tensor.rank == term.tensor.rank else None


def _spread(term: Term, index: Index) -> Index | None:
    """Of a broadcast that adds dims of size 1 only."""
    axes, shape = term.attribute("broadcast_dimensions"), term.tensor.dims
    kept = dict(zip(axes, zip(term.operands[0].tensor.dims, index, strict=True), strict=True))
    if any(dim != (kept[axis][0] if axis in kept else 1) for axis, dim in enumerate(shape)):
        return None
    return tuple(kept[axis][1] if axis in kept else 0 for axis in range(len(shape)))
