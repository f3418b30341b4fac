"""How much heavier the values are that the right side of an equation stores than those of the left, over all finite inputs.

Stored values are inputs and results of ops, a defined op being one op; what an op keeps inside is not stored. In logarithms every value is
bounded by products (`prove.magnitudes`), and how far one can outweigh the heaviest of the left is a linear program. See `docs/rules.md`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache

import ml_dtypes

from coset.ir.term import Term, topological
from coset.ir.types import DType, TensorType
from coset.prove.deadline import look
from coset.prove.drawn_growth import LARGEST_DEGREE, MeasuredGrowth, measured, range_of
from coset.prove.magnitudes import TOKEN, Magnitudes
from coset.prove.products import ONE_STEP, ZERO, MagnitudeAtom, MagnitudeProduct, Option
from coset.prove.simplex import Contradiction, Limit, largest
from coset.prove.stored import LIMITS, Growth, StoredGrowth, width_of
from coset.prove.summands import bounds_of_summands, only_added
from coset.rules.definition import expand, is_defined

MOST_DEGREE = 8  # that is looked for
MOST_BRANCHES = 64  # choices of what an element may be, all together
MOST_MATCHES = 64  # of one value of the left with atoms at hand
HEAVIEST = "W"  # the variable for the heaviest value of the left
# ops whose results are exact below the normal range, or one of their operands
SUMS = frozenset((
    "stablehlo.add", "stablehlo.subtract", "stablehlo.reduce", "stablehlo.reduce_window", "stablehlo.dot_general", "stablehlo.convolution",
    "stablehlo.maximum", "stablehlo.minimum", "stablehlo.select", "stablehlo.clamp", "stablehlo.negate", "stablehlo.abs",
    "stablehlo.convert",
))  # fmt: skip
LEAST_WEIGHTS = {16: -8, 32: -64, 64: -512}  # as a power of 2, below which weights do not count
DOMAINS = {8: 8.0, 16: 12.0, 32: 112.0}  # log2 of the values within which products of as many as the degree says are admitted


def admitted(growth: Growth, dtype: DType) -> bool:
    """Whether the values of this float type are admitted."""
    return all(value.admitted for value in growth.values if value.dtype == dtype)


@cache
def _range(dtype: DType) -> Fraction:
    """log2 of the largest number of a float type."""
    info = ml_dtypes.finfo(dtype.numpy)  # type: ignore[no-untyped-call]
    return Fraction(int(info.maxexp)) if dtype.bits > 8 else Fraction(math.log2(float(info.max)))


@dataclass(frozen=True)
class _Family:
    """A value of the left side, for every element. A `constant` has the first weight alone."""

    product: MagnitudeProduct
    dtype: DType
    constant: bool


def growth(
    left: Term, right: Term, *, constants: frozenset[str] = frozenset(), facts: Mapping[str, str] | None = None, most: int | None = None,
    known: Mapping[Term, StoredGrowth] | None = None, opens: bool = False, deciding: bool = False,
) -> Growth:  # fmt: skip
    """The growth of one instance: both sides over the same inputs, of which `constants` are numbers of the program.

    With `facts` (what is known of inputs by name) the sides have numbers for sizes, and what cannot be shown is drawn; what was drawn
    before is `known`. `most`: in the place of every number of elements above 1 that an op folds. Where the right side `opens` a defined op
    what is only added counts by the first weight alone. For `deciding` no degree is looked for that would not be admitted.
    """
    elements = Magnitudes(most=most)
    mine = _stored(left)
    fixed = _constant_terms((left, right), constants)
    equal = [term for term in _results(right) if _is_float(term)]  # a result of the right side is one of the left
    products = [(term, elements.generic(term)) for term in (*mine, *equal)]
    families = [_Family(found, term.tensor.dtype, term in fixed) for term, found in products if found is not None]
    program = _Program(elements, families, constants, deciding=deciding)
    values: dict[Term, StoredGrowth] = {}
    same = {*mine, *equal}
    light = fixed | (only_added(list(topological([right])), _results(right)) if opens else set())
    for term in _stored(right):
        found = None if term in mine or term in equal else elements.generic(term)
        if found is not None and program.holds(found):
            same.add(term)
        elif found is not None:
            values[term] = program.stored(term, found, counts_below=term not in light and not _sums(term))
    values |= _by_sums(right, values, same)
    unknown = [term for term, value in values.items() if not value.bounded]
    if unknown and facts is not None:
        below = {term: term not in light and not _sums(term) for term in unknown}
        values |= _drawn(values, mine, below, constants, facts)
    values |= {term: value for term, value in (known or {}).items() if term in unknown}
    return Growth(tuple(values.values()), elements.counted, values)


def _by_sums(right: Term, values: Mapping[Term, StoredGrowth], same: AbstractSet[Term]) -> dict[Term, StoredGrowth]:
    """What is known of `values` that are summands of values bounded by the first weight; `same` are those that the left has."""

    def known(term: Term) -> float:
        return 0.0 if term in same else values[term].first if term in values else math.inf

    found = bounds_of_summands(list(filter(_is_float, topological([right]))), known)
    lower = {term: bound for term, bound in found.items() if term in values and math.isfinite(values[term].second)}
    return {term: replace(values[term], first=bound, degree=None, over=0.0) for term, bound in lower.items()}


def _drawn(
    values: Mapping[Term, StoredGrowth],
    left: Sequence[Term],
    below: Mapping[Term, bool],
    constants: frozenset[str],
    facts: Mapping[str, str],
) -> dict[Term, StoredGrowth]:
    """What is measured of values of which nothing could be shown."""
    width = max(width_of(values[term].dtype) for term in below)
    least = float(LEAST_WEIGHTS.get(min(width, 32), -range_of(next(iter(below)).tensor.dtype)))
    found = measured(left, below, constants, facts, least=least, room=DOMAINS[min(width, 32)])
    return {term: _as_stored(values[term], each) for term, each in found.items()}


def _as_stored(value: StoredGrowth, found: MeasuredGrowth) -> StoredGrowth:
    close = max(found.first, found.second) <= LIMITS[32][0]  # as a bound; else as a degree, if it is one
    degree = LARGEST_DEGREE if not close and found.over <= 0.0 and LIMITS[width_of(value.dtype)][2] else None
    first, second = (math.inf, math.inf) if degree is not None else (max(found.first, 0.0), max(found.second, 0.0))
    return StoredGrowth(value.what, value.dtype, first, second, degree, 0.0, drawn=True)


def _results(root: Term) -> list[Term]:
    return list(root.operands) if root.op.name == "builtin.tuple" else [root]


def _stored(root: Term) -> list[Term]:
    """The float values that a side stores: what only moves elements stores nothing new."""
    results = set(_results(root))
    floats = filter(_is_float, topological([root]))
    return [term for term in floats if term in results or not term.op.has("movement") or not term.operands]


def _is_float(term: Term) -> bool:
    return isinstance(term.type, TensorType) and term.type.dtype.kind == "float"


def _constant_terms(roots: Sequence[Term], constants: frozenset[str]) -> set[Term]:
    """What is computed of constants alone."""
    found: set[Term] = set()
    for term in topological(roots):
        if term.op.name == "builtin.input":
            fixed = str(term.attribute("name")) in constants
        else:
            fixed = all(operand in found or operand.op.name == "builtin.absent" for operand in term.operands)
        if fixed:
            found.add(term)
    return found


def _sums(term: Term) -> bool:
    """Whether the second weight of a result does not count."""
    while is_defined(term.op):
        term = expand(term)
    while term.op.has("movement") and term.operands:
        term = term.operands[0]
    return term.op.name in SUMS


class _Program:
    """The linear programs over the magnitudes of one instance."""

    def __init__(self, elements: Magnitudes, families: Sequence[_Family], constants: frozenset[str], *, deciding: bool) -> None:
        self.deciding = deciding
        self.elements, self.families, self.constants = elements, families, constants
        self.keys = {elements.canonical(family.product.key.removeprefix("-")) for family in families if not family.constant}
        self.reads = {family.product.factors[0][0].read: family for family in families if _is_read(family.product)}

    def holds(self, value: MagnitudeProduct) -> bool:
        """Whether a value of the left is the same."""
        return self.elements.canonical(value.key.removeprefix("-")) in self.keys

    def stored(self, term: Term, value: MagnitudeProduct, *, counts_below: bool) -> StoredGrowth:
        """What is known of a stored value of the right side."""
        dtype = term.tensor.dtype
        first = self._outweighs(value, dtype, 1)
        second = self._outweighs(value, dtype, -1) if counts_below else -math.inf
        degree, over = None, 0.0
        if not (math.isfinite(max(first, second)) or max(first, second) == -math.inf):
            most = LIMITS[width_of(dtype)][2] if self.deciding else MOST_DEGREE
            degree, over = self._degree(value, most, both=counts_below)
        return StoredGrowth(term.op.name, dtype, max(first, 0.0), max(second, 0.0), degree, over)

    def _outweighs(self, value: MagnitudeProduct, dtype: DType, sign: int) -> float:
        """log2 of how far a value can outweigh the heaviest of the left, by the first weight (`sign` 1) or the second (-1)."""
        goal = _linear(value, sign)
        goal[HEAVIEST] = goal.get(HEAVIEST, ZERO) - 1
        base = sign * value.log - _range(dtype)
        least = LEAST_WEIGHTS.get(width_of(dtype))
        floor = Limit({HEAVIEST: Fraction(-1)}, _range(dtype) if least is None else Fraction(-least))
        return self._largest(value, goal, base, [floor], weighted=True)

    def _degree(self, value: MagnitudeProduct, most: int, *, both: bool) -> tuple[int | None, float]:
        """The least degree up to `most` for which there is a bound, and that bound."""
        for degree in range(1, most + 1):
            bounds = []
            for sign in (1, -1) if both else (1,):
                goal = _linear(value, sign)
                goal[HEAVIEST] = Fraction(-degree)
                bounds.append(self._largest(value, goal, sign * value.log, [Limit({HEAVIEST: Fraction(-1)}, ZERO)], weighted=False))
                if bounds[-1] == math.inf:
                    break
            if max(bounds) < math.inf:
                return degree, max(*bounds, 0.0)
        return None, 0.0

    def _largest(
        self, value: MagnitudeProduct, goal: Mapping[str, Fraction], base: Fraction, limits: Sequence[Limit], *, weighted: bool
    ) -> float:
        """The largest value of `goal` + `base`, over all cases of what the atoms may be."""
        found = -math.inf
        for atoms in self._cases(value):
            look()
            if atoms is None:
                return math.inf
            known = [*limits, *_about(atoms), *self._of_left(list(atoms), weighted)]
            try:
                most = largest(goal, known)
            except Contradiction:
                continue
            if most is None:
                return math.inf
            found = max(found, float(most + base))
        return found

    def _cases(self, value: MagnitudeProduct) -> list[dict[MagnitudeAtom, Option | None] | None]:
        """The atoms that count for a value in each case of what they may be: also those that stand beside its own in values of the left."""
        own = [atom for atom, _ in value.factors]
        found = list(_branches([*own, *(atom for product in self._beside(own) for atom, _ in product.factors)]))
        return list(_branches(own)) if None in found else found

    def _beside(self, atoms: Sequence[MagnitudeAtom]) -> Iterator[MagnitudeProduct]:
        """Values of the left that speak of one of the atoms, beside such as are never 0 (where one is, the others may be anything)."""
        for family in self.families:
            for own, _ in family.product.factors:
                if all(other.positive for other, _ in family.product.factors if other is not own):
                    inside = [inner for bound in _bounds(own) for inner, _ in bound.factors] if own.positive else []
                    for mentioned, atom in itertools.product((*([] if own.read else [own]), *inside), atoms):
                        names = self._renaming(mentioned.key, atom.key)
                        if names is not None:
                            yield self.elements.renamed(family.product, names)

    def _renaming(self, key: str, other: str) -> dict[str, str] | None:
        """The names of index variables that make one key the other."""
        if TOKEN.sub("_", key) != TOKEN.sub("_", other):
            return None
        pairs = set(zip(TOKEN.findall(key), TOKEN.findall(other), strict=True))
        names = dict(pairs)
        extents = self.elements.extents
        one_to_one = len(names) == len(pairs) == len(set(names.values()))
        return names if one_to_one and all(extents[a] == extents[b] for a, b in pairs) else None

    def _of_left(self, atoms: Sequence[MagnitudeAtom], weighted: bool) -> Iterator[Limit]:
        """No value of the left side outweighs the heaviest. Unweighted: its logarithm is no further from 0, that of a constant too."""
        for atom in atoms:
            if atom.read in self.reads:
                yield from _within({atom.key: ONE_STEP}, ZERO, self.reads[atom.read], weighted, atom.read not in self.constants)
        for family in self.families:
            if _is_read(family.product):
                continue
            for form in self._matched(family.product, atoms):
                yield from _within(form, family.product.log, family, weighted, not family.constant)

    def _matched(self, product: MagnitudeProduct, atoms: Sequence[MagnitudeAtom]) -> Iterator[dict[str, Fraction]]:
        """The elements of a family that are made of the atoms at hand, as linear forms."""
        own = [atom for atom, _ in product.factors]
        wanted = self.elements.canonical(" ".join(atom.key for atom in own))
        options = [[other for other in atoms if TOKEN.sub("_", other.key) == TOKEN.sub("_", atom.key)] for atom in own]
        for chosen in itertools.islice(itertools.product(*options), MOST_MATCHES):
            if self.elements.canonical(" ".join(atom.key for atom in chosen)) == wanted:
                form: dict[str, Fraction] = {}
                for atom, (_, exponent) in zip(chosen, product.factors, strict=True):
                    form[atom.key] = form.get(atom.key, ZERO) + exponent
                yield form


def _is_read(product: MagnitudeProduct) -> bool:
    return len(product.factors) == 1 and product.factors[0][1] == 1 and not product.log and bool(product.factors[0][0].read)


def _within(form: Mapping[str, Fraction], log: Fraction, family: _Family, weighted: bool, below: bool) -> Iterator[Limit]:
    """The weights of form + log are at most the heaviest."""
    span = _range(family.dtype) if weighted else ZERO
    yield Limit({**form, HEAVIEST: Fraction(-1)}, span - log)
    if below or not weighted:
        yield Limit({**{key: -value for key, value in form.items()}, HEAVIEST: Fraction(-1)}, span + log)


def _bounds(atom: MagnitudeAtom) -> list[MagnitudeProduct]:
    """The products that an atom is bounded by."""
    return [*atom.caps, *atom.floors, *(option.product for option in atom.options)]


def _linear(product: MagnitudeProduct, sign: int = 1) -> dict[str, Fraction]:
    return {atom.key: sign * exponent for atom, exponent in product.factors}


def _branches(atoms: Sequence[MagnitudeAtom]) -> Iterator[dict[MagnitudeAtom, Option | None] | None]:
    """The atoms and those that they lead to, each with one of its options, in every way; None where there are too many ways."""
    waiting: list[tuple[dict[MagnitudeAtom, Option | None], list[MagnitudeAtom]]] = [({}, list(atoms))]
    count = 1
    while waiting:
        chosen, open_ = waiting.pop()
        while open_ and open_[-1] in chosen:
            open_.pop()
        if not open_:
            yield chosen
            continue
        atom = open_[-1]
        count += max(0, len(atom.options) - 1)
        if count > MOST_BRANCHES:
            yield None
            return
        led = [inner for product in (*atom.caps, *atom.floors) for inner, _ in product.factors]
        for option in atom.options or (None,):
            products = () if option is None else (option.product, *option.least_of)
            more = [inner for product in products for inner, _ in product.factors]
            waiting.append(({**chosen, atom: option}, [*open_[:-1], *led, *more]))


def _about(atoms: Mapping[MagnitudeAtom, Option | None]) -> Iterator[Limit]:
    """What is known of the atoms in one case."""
    for atom, option in atoms.items():
        above = [(cap, ZERO) for cap in atom.caps]
        above += [(option.product, option.up)] if option is not None and option.up is not None else []
        below = [(floor, ZERO) for floor in atom.floors]
        below += [(option.product, option.down)] if option is not None and option.down is not None else []
        if option is not None:
            for other in option.least_of:
                yield Limit(_difference(_linear(option.product), _linear(other)), other.log - option.product.log)
        for bound, slack in above:
            yield Limit(_difference({atom.key: ONE_STEP}, _linear(bound)), bound.log + slack)
        for bound, slack in below:
            yield Limit(_difference(_linear(bound), {atom.key: ONE_STEP}), slack - bound.log)


def _difference(a: Mapping[str, Fraction], b: Mapping[str, Fraction]) -> dict[str, Fraction]:
    found = dict(a)
    for key, value in b.items():
        found[key] = found.get(key, ZERO) - value
    return found
