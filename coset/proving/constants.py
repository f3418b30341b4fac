"""What two programs compute from constants alone, brought into one form: folded by one of them, left to the runtime by the other, stored
whole or as a number that is broadcast, transposed, or rounded otherwise."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import permutations
from math import prod
from typing import Any

import numpy as np

from coset.comparing.fold import fallback_for
from coset.dialects.onnx.kept import KEPT
from coset.ir.constants import INLINE_ELEMENTS, constant_of
from coset.ir.dims import Dim
from coset.ir.errors import CosetError
from coset.ir.evaluate import evaluate
from coset.ir.term import CONSTANT, Term, constant, make, rebuild, topological
from coset.ir.types import TensorType, Type
from coset.prove.contents import hashed
from coset.prove.folded import CONSTANTS, computes, within
from coset.prove.valued import Evaluation, Uncomputed
from coset.proving.meanings import DEFINED, meaning_of
from coset.proving.steps import COMPUTED, MEANING, ROUNDED, CertificateStep, Mapped, hashed_value

MOST_AXES = 4  # of a constant whose orders are tried
MOST_ELEMENTS = 1 << 26  # of a value that is computed
MOST_CANDIDATES = 64  # terms that are computed for one constant
FAR = 0.1  # of the largest element: what is further apart is no rounding
BROADCAST = "stablehlo.broadcast_in_dim"
Goal = tuple[Term, Term]


def in_one_form(goals: Sequence[Goal]) -> tuple[list[Goal], list[CertificateStep]]:
    """The goals with what only one side has of constants computed, and numbers that fill a tensor as broadcasts; the steps to that."""
    sides = list(zip(*goals, strict=True))
    orders = [list(topological(side)) for side in sides]
    shared = set(orders[0]) & set(orders[1])
    steps: list[CertificateStep] = []
    made = [_folded(order, side, shared, steps) for order, side in zip(orders, sides, strict=True)]
    return [(made[0][one], made[1][other]) for one, other in goals], list(dict.fromkeys(steps))


def _folded(order: Sequence[Term], roots: Sequence[Term], shared: AbstractSet[Term], steps: list[CertificateStep]) -> dict[Term, Term]:
    """What the terms become that the roots need then; those of `shared` stay."""
    known = {term for term in order if not term.operands and term.op.name in CONSTANTS}
    by_parts: set[Term] = set()  # constant terms whose operands are computed first: nodes that were kept mean terms, broadcasts are large
    for term in order:
        if term.operands and is_computable(term) and all(operand in known for operand in term.operands):
            known.add(term)
            if term.op is KEPT or term.op.name == BROADCAST or any(operand.op is KEPT or operand in by_parts for operand in term.operands):
                by_parts.add(term)
    needed = set(roots)
    for term in reversed(order):
        if (term not in known) or (term in needed and term in by_parts and term not in shared):
            needed.update(term.operands)
    made: dict[Term, Term] = {}
    for term in order:
        if term not in needed:
            continue
        over = term if term in shared or (term in known and term not in by_parts) else rebuild(term, [made[each] for each in term.operands])
        if term in known and term not in shared and term.op.name != BROADCAST:
            over = _computed(_meant(over, steps) if term.op is KEPT else over, steps)
        made[term] = over
    return made


def _meant(term: Term, steps: list[CertificateStep]) -> Term:
    """What a node that was kept means; the node where it has no meaning."""
    found = meaning_of(term)
    if found is None:
        return term
    steps.append(CertificateStep(MEANING, (term,), (found,)))
    return found


def is_computable(term: Term) -> bool:
    """True for a term whose value follows from those of its operands, and is not too large."""
    small = isinstance(term.type, TensorType) and term.type.static is not None and prod(term.type.static) <= MOST_ELEMENTS
    known = term.op is KEPT or not (term.op.has("foreign") or term.op.has("effect") or term.op.has("hinted"))
    return small and known and term.tensor.dtype.kind != "string"


def _computed(term: Term, steps: list[CertificateStep]) -> Term:
    """The value of a term of constants; a number that fills it as a broadcast."""
    if not isinstance(term.type, TensorType) or term.tensor.dtype.kind == "string" or term.op.has("foreign"):
        return term
    try:
        found = term if term.op is CONSTANT else hashed_value(term)
    except CosetError:  # nothing here computes it
        return term
    if found is not term:
        steps.append(CertificateStep(COMPUTED, (term,), (found,)))
    number = _filling(found)
    if number is None:
        return found
    spread = make(BROADCAST, (number,), {"shape": found.tensor.dims, "broadcast_dimensions": ()})
    steps.append(CertificateStep(COMPUTED, (spread,), (found,)))
    return spread


def _filling(term: Term) -> Term | None:
    """The number that each element of a constant is; None where they differ, or there is one only."""
    array = term.attribute("value").array()
    if array.ndim == 0 or array.size == 0:
        return None
    bits = array.reshape(-1).view(f"V{array.itemsize}")
    return constant(constant_of(array.reshape(-1)[0], term.tensor.dtype)) if (bits == bits[0]).all() else None


# ---------------------------------------------------------------- the same elements, in another order or rounded otherwise


def paired(
    one: AbstractSet[Term], other: AbstractSet[Term], computed: Sequence[CertificateStep], *, rounded: bool
) -> list[tuple[CertificateStep, Term, Term]]:
    """For each constant that only one side has, one of the other that has its elements, as they are or in another order or shape: the step
    that says so, the other or the term that moves it, and the constant. `rounded`: whether values of the second side count that were
    rounded otherwise, where the steps `computed` say how to compute them."""
    sources = {step.right[0]: step.left[0] for step in computed if computes(step.left[0])}
    found: list[tuple[CertificateStep, Term, Term]] = []
    for side, rest, back in ((other, one, False), (one, other, True)):
        wanted = [term for term in _constants(side) if term not in rest]
        taken = {term for _, way, term in found for term in (term, *topological([way]))}
        candidates: dict[Hashable, list[tuple[Term, np.ndarray[Any, Any]]]] = {_size(term): [] for term in wanted}
        for term in _constants(rest):
            if _size(term) in candidates:  # the elements of no other are read
                candidates[_size(term)].append((term, _moments(term)))
        for term in wanted:
            near = candidates[_size(term)]
            if not near or (back and term in taken):
                continue
            moments = _moments(term)
            alike = [each for each, own in near if np.allclose(own, moments, rtol=1e-4, atol=1e-30, equal_nan=True)]
            ways = [way for each in alike for way in _ways(each, term)]
            pair = next(((step, way, term) for way in ways if (step := same_value(way, term, rounded=False)) is not None), None)
            if pair is None and rounded and not back:
                pair = next(((step, way, term) for way in ways if (step := _rounded(way, term, sources)) is not None), None)
            if pair is not None:
                found.append(pair)
    return found


def _rounded(way: Term, wanted: Term, sources: Mapping[Term, Term]) -> CertificateStep | None:
    """The step that what one of two constants is computed from is the other but for roundings."""
    (leaf,) = (each for each in topological([way]) if not each.operands)
    if leaf in sources:
        return same_value(Mapped({leaf: sources[leaf]}).all([way])[0], wanted, rounded=True)
    return same_value(sources[wanted], way, rounded=True) if wanted in sources and way is leaf else None


def _constants(side: AbstractSet[Term]) -> list[Term]:
    found = (term for term in side if term.op is CONSTANT and (term.tensor.rank or term.tensor.dtype.kind == "float"))
    return sorted(found, key=lambda term: str(term.attribute("value").key))


def _size(term: Term) -> Hashable:
    return term.tensor.dtype, prod(term.tensor.static or ())


def _moments(term: Term) -> np.ndarray[Any, Any]:
    """What the order of the elements does not change: the mean sizes of the elements and of their squares."""
    with np.errstate(all="ignore"):
        elements = np.abs(term.attribute("value").array().astype(np.float64, copy=False))
        return np.array([elements.mean(), (elements * elements).mean()])


def _ways(value: Term, like: Term) -> Iterator[Term]:
    """The constant, and movements of it, that have the type of another."""
    shape = like.tensor.dims
    if value.tensor.dims == shape:
        yield value
    if value.tensor.rank == like.tensor.rank <= MOST_AXES:
        for order in permutations(range(value.tensor.rank)):
            if tuple(value.tensor.dims[axis] for axis in order) == shape and order != tuple(range(value.tensor.rank)):
                yield make("stablehlo.transpose", (value,), {"permutation": order})
    if value.tensor.dims != shape:
        yield make("stablehlo.reshape", (value,), {"shape": shape})
        yield from _turned(value, shape)


def _turned(value: Term, shape: Sequence[Dim]) -> Iterator[Term]:
    """Transposes of the constant without its axes of 1, in this shape: filters of one place are a matrix, which may stand the other way."""
    inner, wanted = ([dim for dim in dims if dim != 1] for dims in (value.tensor.dims, shape))
    for order in permutations(range(len(inner))) if len(inner) == len(wanted) <= MOST_AXES else ():
        if [inner[axis] for axis in order] == wanted and order != tuple(range(len(inner))):
            plain = value if list(value.tensor.dims) == inner else make("stablehlo.reshape", (value,), {"shape": tuple(inner)})
            turned = make("stablehlo.transpose", (plain,), {"permutation": order})
            yield turned if list(shape) == wanted else make("stablehlo.reshape", (turned,), {"shape": tuple(shape)})


def same_value(term: Term, wanted: Term, *, rounded: bool) -> CertificateStep | None:
    """The step that a term of constants has the value of a constant, `rounded` otherwise at most; None where it has not."""
    value = _array(term)
    reason = None if value is None else _reason(term, value, wanted.attribute("value").array(), rounded=rounded and computes(term))
    return None if reason is None or (term is wanted) else CertificateStep(reason, (term,), (wanted,))


def _reason(term: Term, value: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any], *, rounded: bool) -> str | None:
    """How `term`, which has this value, is the wanted one; None where it is not."""
    if value.shape == wanted.shape and value.tobytes() == wanted.tobytes():
        return COMPUTED
    return ROUNDED if rounded and _is_rounded(term, value, wanted) else None


def _is_rounded(term: Term, value: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> bool:
    """Whether wanted numbers are within the bounds of the roundings of what a term computes."""
    if term.tensor.dtype.kind != "float" or value.shape != wanted.shape:
        return False
    largest = float(np.max(np.abs(value.astype(np.float64)), initial=0.0, where=np.isfinite(value.astype(np.float64))))
    if not within(wanted, value, FAR * largest):
        return False  # most are far away: their bounds need not be computed
    try:
        known = Evaluation({}, meaning_of, DEFINED, lambda *_: None).known(term)
    except (Uncomputed, CosetError):
        return False
    bounds = known.error.of(value)
    return bool(np.isfinite(bounds).all()) and within(wanted, value, bounds)


# ---------------------------------------------------------------- constants that someone else has computed


def recomputed(
    classes: Iterable[Sequence[Term]],
    wanted: Sequence[Term],
    actual: Callable[[Term], Term],
    *,
    rounded: bool,
    known: Iterable[CertificateStep] = (),
) -> Iterator[list[CertificateStep]]:
    """That terms of constants have the values of `wanted`: first of constants themselves, then of what moves them, and of numbers that fill
    a term, for those whom the ones before do not do. `classes`: terms that are known to be equal, of which one is computed; `actual`:
    what a term is in the programs, where others stand for their constants; `rounded`: whether values that were rounded otherwise count;
    `known`: steps so far."""
    by_type: dict[Type, list[tuple[Term, np.ndarray[Any, Any]]]] = {}
    for term in wanted:
        value = _array(actual(term))
        if value is not None:
            by_type.setdefault(term.type, []).append((term, value))
    numbers: dict[tuple[Any, bytes], Term] = {
        (term.tensor.dtype, value.tobytes()): term for row in by_type.values() for term, value in row if not term.tensor.rank
    }
    # what stands for a number that rounds already: the checker takes it for no other one
    stated = {step.right[0] for step in known if step.reason in (COMPUTED, ROUNDED) and rounds(step.left[0])}
    own = list(_made_of_constants(classes, by_type, actual))
    for stored in (True, False):
        found: list[CertificateStep] = []
        for members, made, value in own:
            places = [place for place in by_type.get(made.type, ()) if (place[0].op is CONSTANT) is stored and place[0] not in members]
            for place, wanted_value in places:
                reason = _reason(actual(made), value, wanted_value, rounded=rounded and computes(made))
                if reason is not None:
                    found += _stating(reason, made, place, wanted_value, stated)
        yield found
    yield [step for members, made, _ in own for step in _spread_number(members, made, numbers, actual)]


def _made_of_constants(
    classes: Iterable[Sequence[Term]], wanted: Mapping[Type, Any], actual: Callable[[Term], Term]
) -> Iterator[tuple[Sequence[Term], Term, np.ndarray[Any, Any]]]:
    """The classes of types in which something is wanted, or a number that fills them, with a term of constants and its value."""
    left = dict.fromkeys(wanted, MOST_CANDIDATES)
    filled = {type.dtype for type in wanted if isinstance(type, TensorType) and not type.rank}
    for members in classes:
        type = members[0].type
        counts = left.get(type, MOST_CANDIDATES if isinstance(type, TensorType) and type.dtype in filled else 0)
        constants = list(filter(_is_constant, members)) if counts else []
        made = next(filter(computes, constants), constants[0] if constants else None)
        value = None if made is None else _array(actual(made))
        if made is not None and value is not None:
            left[type] = counts - 1
            yield members, made, value


def _stating(reason: str, made: Term, place: Term, value: np.ndarray[Any, Any], stated: set[Term]) -> Iterator[CertificateStep]:
    """The steps that a term has the value of a place, where no number is `stated` a second time."""
    is_rounded = rounds(made)
    if is_rounded and (place in stated or (not computes(place) and not stated.isdisjoint(topological([place])))):
        return
    if place.op is CONSTANT:
        stated |= {place} if is_rounded else set()
        yield CertificateStep(reason, (made,), (place,))
        return
    stored = hashed(constant(constant_of(value, place.tensor.dtype)))  # its value is in neither program
    if (rounds(place) or is_rounded) and stored in stated:
        return
    stated |= {place, stored} if is_rounded else {stored} if rounds(place) else set()
    both = [CertificateStep(COMPUTED, (place,), (stored,)), CertificateStep(reason, (made,), (stored,))]
    if computes(place) or not is_rounded:
        yield from both
    elif stored.attribute("value").array().size <= INLINE_ELEMENTS:  # else no line says it
        stated |= {each for each in topological([place]) if each.op is CONSTANT}
        yield from reversed(both)  # what stands for something already is not rounded any more


def _spread_number(
    members: Sequence[Term], made: Term, numbers: Mapping[tuple[Any, bytes], Term], actual: Callable[[Term], Term]
) -> list[CertificateStep]:
    """The steps that what is computed is one of the numbers in every place, where it is: counts of elements are such."""
    value = _array(actual(made)) if numbers and computes(made) and made.tensor.rank and made.op.name != BROADCAST else None
    if value is None or not value.size or (value.reshape(-1) != value.reshape(-1)[0]).any():
        return []
    number = numbers.get((made.tensor.dtype, value.reshape(-1)[0].tobytes()))
    spread = None if number is None else make(BROADCAST, (number,), {"shape": made.tensor.dims, "broadcast_dimensions": ()})
    if spread is None or spread in members:
        return []
    stored = hashed(constant(constant_of(value, made.tensor.dtype)))
    return [CertificateStep(COMPUTED, (made,), (stored,)), CertificateStep(COMPUTED, (spread,), (stored,))]


def numbers_in(meanings: Iterable[Term]) -> list[CertificateStep]:
    """The steps from what definitions compute of small constants of whole numbers and truths, as places and axes are, to their values."""
    steps: list[CertificateStep] = []
    known: dict[Term, bool] = {}  # terms of constants alone -> whether one of them lists something, as no iota does
    for term in topological(meanings):
        whole = isinstance(term.type, TensorType) and term.tensor.dtype.kind in ("int", "uint", "bool") and term.type.static is not None
        if not whole or term.regions or prod(term.tensor.static or ()) > INLINE_ELEMENTS:
            continue
        if not term.operands and term.op.name in CONSTANTS:
            known[term] = term.op is CONSTANT and term.tensor.rank > 0
        elif term.operands and is_computable(term) and all(operand in known for operand in term.operands):
            known[term] = any(known[operand] for operand in term.operands)
            if known[term] and term.op.name != BROADCAST and (value := _value(term)) is not None:
                steps.append(CertificateStep(COMPUTED, (term,), (value,)))
    return steps


def _value(term: Term) -> Term | None:
    try:
        return hashed_value(term)
    except CosetError:  # nothing here computes it
        return None


def rounds(term: Term) -> bool:
    """True for floats that are more than moved."""
    return term.tensor.dtype.kind == "float" and computes(term)


def _is_constant(term: Term) -> bool:
    order = list(topological([term]))
    return all(is_computable(each) if each.operands else each.op.name in CONSTANTS for each in order)


def _array(term: Term) -> np.ndarray[Any, Any] | None:
    try:
        with np.errstate(all="ignore"):
            (found,) = evaluate([term], {}, fallback=fallback_for(None))
    except CosetError:
        return None
    return np.asarray(found)


def is_large(term: Term) -> bool:
    """True for a constant that no rule looks into, so that any of its type does in its place."""
    return term.op is CONSTANT and term.tensor.dtype.kind == "float" and prod(term.tensor.static or ()) > INLINE_ELEMENTS


def wanted_constants(goals: Sequence[Goal], meanings: Sequence[Term]) -> list[Term]:
    """The constants that only one side of the goals has, in order, and what is computed from such in what their ops mean."""
    sides = [list(topological(side)) for side in zip(*goals, strict=True)]
    shared = set(sides[0]) & set(sides[1])
    own = [term for side in sides for term in side if term not in shared]
    further = [term for term in topological(meanings) if term.operands and term.op.name != BROADCAST]
    found = [term for term in (*own, *topological(meanings)) if term.op is CONSTANT] + [
        term for term in (*own, *further) if term.operands and _is_constant(term)
    ]
    numbers = [term for term in dict.fromkeys(found) if isinstance(term.type, TensorType)]
    return [term for term in numbers if term.tensor.rank == 0 and term.tensor.dtype.kind == "float" and term.op is CONSTANT] + [
        term for term in numbers if term.tensor.rank
    ]
