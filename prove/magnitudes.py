"""How large the elements of a term are, in logarithms: products of powers of atoms, and what is known of each atom.

`Magnitudes.element(term, index)` is an element as a product. Reads of inputs are atoms; so are sums, choices (maximum, select) and
functions, with what bounds them by other products. The index is symbolic, as in `prove.denote`, whose index arithmetic serves here too: an
instance costs the same for all sizes. Where nothing is known of an op its elements are atoms without bounds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from coset.ir import dims
from coset.ir.dims import Dim
from coset.ir.errors import CosetError
from coset.ir.term import Term
from coset.ir.types import TensorType
from coset.prove import movement
from coset.prove.functions import Unprovable
from coset.prove.index import IndexFacts
from coset.prove.magnitude_functions import MOST_EXPONENT, SCALARS, as_float, logarithm_of
from coset.prove.products import ONE, ONE_STEP, ZERO, MagnitudeAtom, MagnitudeProduct, Option, by_key, negated, number, product
from coset.rules.definition import expand, is_defined

Index = tuple[Dim, ...]
UNKNOWN = 1 << 16  # elements of a dim that is a symbol: as many as f32 leaves room for
TOKEN = re.compile(r"\b[ik]:\d+")  # index variables in keys: of a tensor's element, and of what is folded


class Magnitudes:
    """Elements of terms as products. One serves both sides of an equation, so that what is equal has one key. `most`: in the place of every
    number of folded elements that is above 1, to see whether it counts."""

    def __init__(self, *, most: int | None = None) -> None:
        self.known = IndexFacts()
        self.most = most
        self.extents: dict[str, Dim] = {}
        self.atoms: dict[str, MagnitudeAtom] = {}
        self._memo: dict[tuple[Term, Index], MagnitudeProduct | None] = {}
        self._numbers: dict[Term, int] = {}
        self.counted = False  # whether numbers of folded elements came into it
        self.largest_logarithm = ZERO  # of the float type at hand, as a power of 2

    def generic(self, term: Term) -> MagnitudeProduct | None:
        """The element of a tensor at an index of new variables."""
        index = tuple(0 if dim == 1 else dims.symbol(self._fresh("i", dim)) for dim in term.tensor.dims)
        return self.element(term, index)

    def element(self, term: Term, index: Index) -> MagnitudeProduct | None:  # None: it is 0, or not finite
        """The element at `index`."""
        key = (term, index)
        if key not in self._memo:
            self._memo[key] = self._element(term, index)
        return self._memo[key]

    def canonical(self, key: str) -> str:
        """A key with its index variables numbered as they come, each with its extent: what two families of elements have in common."""
        names: dict[str, str] = {}

        def renamed(match: re.Match[str]) -> str:
            name = match.group()
            return names.setdefault(name, f"v{len(names)}|{self.extents.get(name)}")

        return TOKEN.sub(renamed, key)

    def atom(self, key: str, **known: Any) -> MagnitudeProduct:
        """The atom of this key as a product; what is known of it is said where it is first made."""
        if key not in self.atoms:
            self.atoms[key] = MagnitudeAtom(key, **known)
        return MagnitudeProduct(ZERO, ((self.atoms[key], ONE_STEP),))

    def renamed(self, value: MagnitudeProduct, names: Mapping[str, str]) -> MagnitudeProduct:
        """The same product of elements at other places: index variables under their new names."""
        factors = {self._renamed(atom, names): exponent for atom, exponent in value.factors}
        return MagnitudeProduct(value.log, by_key(factors), value.negative)

    def _renamed(self, atom: MagnitudeAtom, names: Mapping[str, str]) -> MagnitudeAtom:
        key = _with_names(atom.key, names)
        if key == atom.key:
            return atom
        if key not in self.atoms:
            options = tuple(
                Option(self.renamed(each.product, names), each.up, each.down, tuple(self.renamed(other, names) for other in each.least_of))
                for each in atom.options
            )
            caps, floors = (tuple(self.renamed(bound, names) for bound in bounds) for bounds in (atom.caps, atom.floors))
            self.atoms[key] = replace(atom, key=key, options=options, caps=caps, floors=floors, body=_with_names(atom.body, names))
        return self.atoms[key]

    # ---------------------------------------------------------------- ops

    def _element(self, term: Term, index: Index) -> MagnitudeProduct | None:
        name = term.op.name
        if name == "builtin.input":
            return self._read(term, index)
        if name == "builtin.constant":
            return self._constant(term, index)
        if is_defined(term.op):
            return self.element(expand(term), index)
        if name == "builtin.get" and term.operands[0].op.name == "builtin.tuple":
            return self.element(term.operands[0].operands[term.attribute("index")], index)
        if term.tensor.dtype.kind == "complex" or not isinstance(term.type, TensorType):
            return self._unknown(term, index)
        try:
            if name in _MOVES:
                return _MOVES[name](self, term, index)  # type: ignore[no-any-return]
            if term.op.has("movement"):
                return self._moved(term, index)
            if name in _FOLDS:
                return _FOLDS[name](self, term, index)
        except (Unprovable, CosetError, RecursionError):
            return self._unknown(term, index)
        if term.op.has("elementwise") and all(isinstance(x.type, TensorType) for x in term.operands):
            return self._elementwise(term, index)
        return self._unknown(term, index)

    def _read(self, term: Term, index: Index) -> MagnitudeProduct:
        name = str(term.attribute("name"))
        key = f"{name}[{', '.join(map(str, index))}]"
        return self.atom(key, read=name) if term.tensor.dtype.kind == "float" else self._whole(key, term.tensor)

    def _whole(self, key: str, type: TensorType) -> MagnitudeProduct:
        """An integer, or a truth: where it is not 0 its magnitude is at least 1."""
        bits = Fraction(0 if type.dtype.kind == "bool" else type.dtype.bits)
        return self.atom(key, nonnegative=type.dtype.kind != "int", caps=(MagnitudeProduct(bits),), floors=(ONE,))

    def _constant(self, term: Term, index: Index) -> MagnitudeProduct | None:
        array = term.attribute("value").array()
        if array.dtype.kind in "cO" or term.tensor.dtype.kind in ("complex", "string"):
            return self._unknown(term, index)
        if array.size == 1:
            return number(float(array.reshape(-1)[0]))
        if all(isinstance(i, int) for i in index):
            return number(float(array[tuple(index)]))
        wide = np.abs(array.astype(np.float64))
        wide = wide[(wide > 0) & np.isfinite(wide)]
        if not wide.size:
            return None
        low, high = (MagnitudeProduct(Fraction(math.log2(float(end)))) for end in (wide.min(), wide.max()))
        key = f"constant {term.attribute('value').key}[{', '.join(map(str, index))}]"
        return self.atom(key, nonnegative=bool((array.astype(np.float64) >= 0).all()), caps=(high,), floors=(low,))

    def _unknown(self, term: Term, index: Index) -> MagnitudeProduct:
        """An element of which nothing is known but its name."""
        identity = self._numbers.setdefault(term, len(self._numbers))
        key = f"t{identity}[{', '.join(map(str, index))}]"
        type = term.type
        if isinstance(type, TensorType) and type.dtype.kind not in ("float", "complex"):
            return self._whole(key, type)
        return self.atom(key)

    def _moved(self, term: Term, index: Index) -> MagnitudeProduct | None:
        """One of the operands' elements, at a place that is not known: its index is named by the op that takes it."""
        identity = self._numbers.setdefault(term, len(self._numbers))
        options: list[MagnitudeProduct | None] = []
        for x in term.operands:
            if isinstance(x.type, TensorType) and x.type.dtype == term.tensor.dtype:
                at = tuple(dims.symbol(f"m:{identity}:{axis}") for axis in range(x.tensor.rank))
                options.append(self.element(x, at))
        if not options and term.tensor.dtype.kind == "float":
            return self._unknown(term, index) if term.operands else self._whole(f"t{identity}[{', '.join(map(str, index))}]", term.tensor)
        return self.choice(f"t{identity}[{', '.join(map(str, index))}]", options)

    # what `prove.movement` asks of the elements

    def cases(
        self, dim: Dim, where: Callable[[], MagnitudeProduct | None], otherwise: Callable[[], MagnitudeProduct | None]
    ) -> MagnitudeProduct | None:
        """One value where `dim` >= 0, another where it is not."""
        dim = self.known.simplify(dim)
        if self.known.nonnegative(dim):
            return where()
        if self.known.nonnegative(dims.subtract(-1, dim)):
            return otherwise()
        return self.choice(f"[{dim}]", (where(), otherwise()))

    def choice(
        self, key: str, values: Sequence[MagnitudeProduct | None], *, nonnegative: bool = False, caps: tuple[MagnitudeProduct, ...] = ()
    ) -> MagnitudeProduct | None:
        """One of the values; `key` says which."""
        options = [value for value in values if value is not None]
        distinct = list({option.key: option for option in options}.values())
        if not distinct:
            return None
        if len(distinct) == 1 and len(options) == len(values) > 1:
            return distinct[0]
        full = f"one {key} {{{', '.join(sorted(option.key for option in distinct))}}}{' >= 0' if nonnegative else ''}"
        upright = nonnegative or all(option.nonnegative for option in distinct)
        return self.atom(full, nonnegative=upright, options=tuple(map(Option, distinct)), caps=caps)

    # ---------------------------------------------------------------- elementwise

    def _elementwise(self, term: Term, index: Index) -> MagnitudeProduct | None:
        name = term.op.name.split(".", 1)[1]
        values = [self.element(x, index if x.tensor.rank else ()) for x in term.operands]
        if term.tensor.dtype.kind != "float":
            keys = ", ".join("0" if value is None else value.key for value in values)
            return self._whole(f"{name} {term.attributes} {term.tensor.dtype}({keys})", term.tensor)
        if name == "select":
            return self.choice("0" if values[0] is None else values[0].key, values[1:])
        function = SCALARS.get(name)
        if function is not None:
            self.largest_logarithm = logarithm_of(term.tensor)
            return function(self, *values)
        keys = ", ".join("0" if value is None else value.key for value in values)
        return self.atom(f"{name}{term.attributes if term.attributes else ''}({keys})")

    def sum(self, a: MagnitudeProduct | None, b: MagnitudeProduct | None) -> MagnitudeProduct | None:
        """A sum: what cancels has no lower bound."""
        if a is None or b is None:
            return a if b is None else b
        if a.factors == b.factors:
            if a.negative != b.negative and a.log == b.log:
                return None
            total = sum((-1 if each.negative else 1) * 2.0 ** float(each.log - max(a.log, b.log)) for each in (a, b))
            common = number(total)
            return None if common is None else common.times(MagnitudeProduct(max(a.log, b.log), a.factors))
        for x, other in ((a, b), (b, a)):
            peak = _peak(x, other)  # what x - max(x) is, is -(max(x) - x): the difference that is never below 0 has the key
            if peak is not None:
                largest, taken = other.negated(), x.negated()
                options = (Option(largest, ONE_STEP, None), Option(taken, ONE_STEP, None))
                return self.atom(f"({largest.key} + {taken.key})", nonnegative=True, options=options, peak=peak).negated()
            if x.negative and not other.negative and _peak(x.negated(), other.negated()) is not None:
                return negated(self.sum(x.negated(), other.negated()))
        first, second = sorted((a, b), key=lambda each: each.negated().key if each.negative else each.key)
        if first.negative:  # -a - b is -(a + b), a - b is -(b - a): one key for both
            return negated(self.sum(first.negated(), second.negated()))
        upright = first.nonnegative and second.nonnegative
        down = ZERO if upright else None
        options = (Option(first, ONE_STEP, down), Option(second, ONE_STEP, down))
        floors = tuple(each for each in (first, second) if upright and each.positive)
        return self.atom(f"({first.key} + {second.key})", nonnegative=upright, positive=bool(floors), options=options, floors=floors)

    def exponential(self, x: MagnitudeProduct | None) -> MagnitudeProduct | None:
        """e to the value; e^-x is one over e^x."""
        if x is None:
            return ONE
        if not x.factors:
            return MagnitudeProduct(Fraction(math.log2(math.e) * as_float(x))) if x.log < MOST_EXPONENT else None
        if x.negative:
            turned = self.exponential(x.negated())
            return None if turned is None else turned.whole_power(-1)
        peak = x.factors[0][0].peak if len(x.factors) == 1 and x.factors[0][1] == 1 else None
        return self.atom(f"exp({x.key})", nonnegative=True, positive=True, floors=(ONE,) if x.nonnegative else (), peak=peak)

    # ---------------------------------------------------------------- folds

    def _fresh(self, letter: str, extent: Dim) -> str:
        name = f"{letter}:{len(self.extents)}"
        self.extents[name] = extent
        self.known = self.known.with_variables({name: extent})
        return name

    def bound(self, extents: Iterable[Dim]) -> list[Dim]:
        """Fresh variables to fold over, 0 for a dim of one element."""
        return [0 if extent == 1 else dims.symbol(self._fresh("k", extent)) for extent in extents]

    def folded(self, combiner: str, variables: Sequence[Dim], body: MagnitudeProduct | None) -> MagnitudeProduct | None:
        """The fold of `body` over all values of the variables."""
        names = [str(variable) for variable in variables if not isinstance(variable, int)]
        if body is None or not names:
            return body
        if combiner == "add":
            return self._summed(names, body)
        key, upright = self._bound_key(combiner, names, body), body.nonnegative
        if combiner == "maximum":
            return self.atom(key, nonnegative=upright, options=(Option(body),), body=body.key, over=frozenset(names))
        return self.atom(key, nonnegative=upright, options=(Option(body),) if combiner == "minimum" else ())

    def _summed(self, names: Sequence[str], body: MagnitudeProduct) -> MagnitudeProduct | None:
        inside = {atom: power for atom, power in body.factors if any(name in TOKEN.findall(atom.key) for name in names)}
        outside = MagnitudeProduct(body.log, tuple(item for item in body.factors if item[0] not in inside), body.negative)
        count = self._count(names)
        if not inside:  # the same number many times
            return outside.times(MagnitudeProduct(count))
        term = MagnitudeProduct(ZERO, by_key(inside))
        floors = (term,) if term.positive else ()
        peak = term.factors[0][0].peak if len(term.factors) == 1 and term.factors[0][1] == -1 else None
        if peak is not None and peak <= frozenset(names) and term.nonnegative:
            floors = (*floors, ONE)
        key = self._bound_key("add", names, term)
        options = (Option(term, count, ZERO if term.nonnegative else None),)
        return outside.times(self.atom(key, nonnegative=term.nonnegative, positive=term.positive, options=options, floors=floors))

    def _count(self, names: Iterable[str]) -> Fraction:
        """log2 of how many elements are folded."""
        total = ZERO
        self.counted = True
        for name in names:
            extent = self.extents[name]
            number = extent if isinstance(extent, int) else UNKNOWN
            if self.most is not None and number > 1:
                number = self.most
            total += Fraction(math.log2(number)) if number > 1 else ZERO
        return total

    def _bound_key(self, combiner: str, names: Sequence[str], body: MagnitudeProduct) -> str:
        depth = 1 + max((int(found) for found in re.findall(r"\bb(\d+)_", body.key)), default=-1)
        free = [name for name in dict.fromkeys(TOKEN.findall(body.key)) if name in names]
        renamed = {name: f"b{depth}_{place}" for place, name in enumerate(free)}
        extents = ", ".join(sorted(f"{renamed.get(name, '_')} < {self.extents[name]}" for name in names))
        return f"{combiner}{{{extents}}} {_with_names(body.key, renamed)}"

    # ---------------------------------------------------------------- ops that fold

    def _reduce(self, term: Term, index: Index) -> MagnitudeProduct | None:
        (x,), axes = term.operands, term.attribute("dimensions")
        variables = dict(zip(axes, self.bound(x.tensor.dims[axis] for axis in axes), strict=True))
        kept = iter(index)
        source = tuple(variables[axis] if axis in variables else next(kept) for axis in range(x.tensor.rank))
        return self.folded(term.attribute("combiner"), list(variables.values()), self.element(x, source))

    def _dot(self, term: Term, index: Index) -> MagnitudeProduct | None:
        contract = (term.attribute("lhs_contract"), term.attribute("rhs_contract"))
        batch = (term.attribute("lhs_batch"), term.attribute("rhs_batch"))
        a, b = term.operands
        variables = self.bound(a.tensor.dims[axis] for axis in contract[0])
        rest = iter(index[len(batch[0]) :])
        factors: list[MagnitudeProduct | None] = []
        for side, x in enumerate((a, b)):
            given = dict(zip(contract[side], variables, strict=True)) | dict(zip(batch[side], index, strict=False))
            factors.append(self.element(x, tuple(given[axis] if axis in given else next(rest) for axis in range(x.tensor.rank))))
        return self.folded("add", variables, product(*factors))

    def _window(self, term: Term, index: Index) -> MagnitudeProduct | None:
        """A fold of elements near each other: which ones is not looked at."""
        x = term.operands[0]
        found = self.element(x, tuple(self.bound(x.tensor.dims)))
        combiner, extents = term.attribute("combiner"), term.attribute("window_dimensions")
        return self._of_some(term, index, combiner, found, extents)

    def _convolution(self, term: Term, index: Index) -> MagnitudeProduct | None:
        x, w = term.operands
        body = product(*(self.element(each, tuple(self.bound(each.tensor.dims))) for each in (x, w)))
        return self._of_some(term, index, "add", body, w.tensor.dims[1:])

    def _of_some(
        self, term: Term, index: Index, combiner: str, body: MagnitudeProduct | None, extents: Sequence[Dim]
    ) -> MagnitudeProduct | None:
        """The fold of some `extents` of elements like `body`."""
        if body is None:
            return None
        key = f"t{self._numbers.setdefault(term, len(self._numbers))}[{', '.join(map(str, index))}]"
        names = [str(variable) for variable in self.bound(extents) if not isinstance(variable, int)]
        if combiner in ("maximum", "minimum"):
            return self.atom(key, nonnegative=body.nonnegative, options=(Option(body),))
        down = ZERO if body.nonnegative else None
        options = (Option(body, self._count(names), down),) if combiner == "add" else ()
        return self.atom(key, nonnegative=body.nonnegative, options=options)


def _with_names(key: str, names: Mapping[str, str]) -> str:
    return TOKEN.sub(lambda found: names.get(found.group(), found.group()), key)


def _pad(elements: Magnitudes, term: Term, index: Index) -> MagnitudeProduct | None:
    x, value = term.operands
    source: list[Dim] = []
    for i, low, gap in zip(index, term.attribute("low"), term.attribute("interior"), strict=True):
        source.append(dims.floordiv(dims.subtract(i, low), dims.add(gap, 1)))
    return elements.choice(f"pad [{', '.join(map(str, source))}]", (elements.element(x, tuple(source)), elements.element(value, ())))


def _peak(x: MagnitudeProduct, largest: MagnitudeProduct) -> frozenset[str] | None:
    """The variables over which x + `largest` reaches 0 where that is x - max(x), which is nowhere above 0."""
    atom = largest.factors[0][0] if len(largest.factors) == 1 and largest.factors[0][1] == 1 else None
    if atom is None or not atom.over or not largest.negative or largest.log:
        return None
    names = {name: f"n{place}" for place, name in enumerate(sorted(atom.over))}
    seen = set[str]()
    pattern = ""
    for part in re.split(r"\b([ik]:\d+)", atom.body):
        if part not in names:
            pattern += re.escape(part)
        else:
            pattern += f"(?P={names[part]})" if part in seen else f"(?P<{names[part]}>[ik]:\\d+)"
            seen.add(part)
    found = re.fullmatch(pattern, x.key)
    return None if found is None else frozenset(found.groupdict().values())


_MOVES: dict[str, Callable[..., Any]] = {
    "stablehlo.broadcast_in_dim": movement.broadcast, "stablehlo.transpose": movement.transpose, "stablehlo.reshape": movement.reshape,
    "stablehlo.slice": movement.slice, "stablehlo.reverse": movement.reverse, "stablehlo.concatenate": movement.concatenate,
    "stablehlo.pad": _pad,
}  # fmt: skip
_FOLDS: dict[str, Callable[[Magnitudes, Term, Index], MagnitudeProduct | None]] = {
    "stablehlo.reduce": Magnitudes._reduce, "stablehlo.dot_general": Magnitudes._dot, "stablehlo.convolution": Magnitudes._convolution,
    "stablehlo.reduce_window": Magnitudes._window,
}  # fmt: skip
