"""What an element of a term is: the hub's ops as index arithmetic and scalar functions, for symbolic sizes.

`Denotation.element(term, index)` is the element of `term` at `index` (dims over index variables) as a form over elements of the inputs.
Conditions on the index that the ranges do not decide are raised as `Split`: the caller looks at both cases. An op that is not
interpreted is an atom over its operands' elements at generic indices, so that equal terms stay equal.
Source of the meanings: https://openxla.org/stablehlo/spec.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from decimal import Decimal
from fractions import Fraction
from functools import partial
from types import MappingProxyType
from typing import Any

import ml_dtypes
import numpy as np

from coset.ir import dims
from coset.ir.dims import Dim
from coset.ir.term import Region, Term
from coset.ir.types import DTYPES, DType, TensorType
from coset.prove import contractions, control, exact_functions, functions, integers, movement, scalar
from coset.prove.deadline import look
from coset.prove.fold import Folds, height
from coset.prove.functions import Domain, Need, Reals, Unprovable
from coset.prove.index import IndexFacts
from coset.prove.poles import PoleReals
from coset.prove.scalar import Apply, MonomialSum, Read, Where
from coset.prove.substitution import variables
from coset.prove.whole_forms import as_dim, counts, ends, is_held
from coset.rules.definition import expand, is_defined
from coset.rules.functions import FUNCTIONS

Index = tuple[Dim, ...]
LOSSLESS = FUNCTIONS["lossless"].compute
COUNTING = frozenset({"f32", "f64"})  # types of which every count of elements is taken to be a number; f16 ends at 65504
NO_NUMBERS: Mapping[Term, Decimal] = MappingProxyType({})


class Split(Exception):
    """A condition that is open: `dim` >= 0."""

    def __init__(self, dim: Dim) -> None:
        super().__init__(f"{dim} >= 0")
        self.dim = dim


class Denotation:
    """Elements of terms where `known` holds. `real`: floats are real numbers; else every float operation is an atom. `rounds`: written
    conversions that round do so over the reals too, but for those `stored`. `numbers`: what constants are the roundings of. `poles`:
    reciprocals of sums stay what they are where these are 0.

    `opaque` are elementwise ops that stay uninterpreted: what is shown holds for any elementwise op in their place.
    """

    def __init__(
        self, known: IndexFacts, *, real: bool, rounds: bool = True, exceptions: frozenset[str] = frozenset(),
        opaque: frozenset[str] = frozenset(), numbers: Mapping[Term, Decimal] = NO_NUMBERS, stored: frozenset[Term] = frozenset(),
        poles: bool = False,
    ) -> None:  # fmt: skip
        self.known, self.real, self.rounds, self.exceptions, self.opaque = known, real, rounds, exceptions, opaque
        self.numbers, self.stored = numbers, stored
        self.domain = Domain(self._bound_facts, self._positive)
        self.reals = PoleReals(self.domain) if poles else Reals(self.domain)
        self.folds = Folds()
        self.widths = False  # whether the number of bits of an integer has made a difference
        self._memo: dict[tuple[Term, Index], tuple[MonomialSum, frozenset[Need]]] = {}
        self._extents: dict[str, Dim] = {}  # of all variables that were ever bound
        self._given: dict[Term, MonomialSum] = {}  # of the parameters of the payload function that is looked into
        self._read: dict[str, DType] = {}  # the element types of inputs and constants, by the names of their reads

    def element(self, term: Term, index: Index) -> MonomialSum:
        """The element of a tensor `term` at `index`."""
        look()
        found = self._memo.get((term, index))
        if found is None and not self.real:  # every operation of numbers is defined
            form = self._element(term, index)
            self._memo[term, index] = form, frozenset()
            return form
        if found is None:
            self.domain.begin()
            form = self._element(term, index)
            self._memo[term, index] = form, self.domain.end()
            return form
        if found[1]:
            self.domain.again(found[1])
        return found[0]

    @contextmanager
    def _where(self, fact: Dim) -> Iterator[None]:
        """Inside, `fact` >= 0 holds: elements that are looked at there are not those of other places."""
        before = self.known, self._memo
        self.known, self._memo = self.known.with_fact(fact), {}
        try:
            yield
        finally:
            self.known, self._memo = before

    @contextmanager
    def strict(self) -> Iterator[None]:
        """Inside, exceptions do not count: an op that tells the zeros apart is around."""
        before = self.exceptions, self._memo
        if self.exceptions:
            self.exceptions, self._memo = frozenset(), {}
        try:
            yield
        finally:
            self.exceptions, self._memo = before

    def _element(self, term: Term, index: Index) -> MonomialSum:
        name = term.op.name
        if term in self._given:
            return self._given[term]
        if name == "builtin.input":
            self._read[str(term.attribute("name"))] = term.tensor.dtype
            return scalar.atom(Read(term.attribute("name"), index), 1) if not _is_bool(term) else _truth_read(term, index)
        if name in self.opaque:
            with self.strict():
                arguments = [self.element(x, index if x.tensor.rank else ()) for x in term.operands]
            what = f"{name} {term.attributes} {term.tensor.dtype}"
            return functions.truth(what, *arguments) if _is_bool(term) else scalar.atom(Apply(what, tuple(arguments)))
        if is_defined(term.op):
            return self.element(self._opened(term), index)
        if name == "builtin.get":
            whole = term.operands[0]
            while is_defined(whole.op):
                whole = expand(whole)
            if whole.op.name == "builtin.tuple":
                return self.element(whole.operands[term.attribute("index")], index)
        handler = _HANDLERS.get(name)
        if handler is not None:
            return handler(self, term, index)
        if term.op.has("elementwise"):
            return self._elementwise(term, index)
        return self.uninterpreted(term, index)

    def _opened(self, term: Term) -> Term:
        """What defines `term`, less the conversion by which the definition stores its result: results are compared as they are stored."""
        found = expand(term)
        if self.real and found.op.name == "stablehlo.convert":
            kinds = [each.tensor.dtype.kind for each in (found, found.operands[0])]
            return found.operands[0] if kinds == ["float", "float"] else found
        return found

    def applied(self, region: Region, arguments: Sequence[MonomialSum]) -> list[MonomialSum]:
        """The results of a payload function of single elements, at an index of none."""
        before = self._given, self._memo
        self._given, self._memo = dict(zip(region.parameters, arguments, strict=True)), {}
        try:
            return [self.element(result, ()) for result in region.results]
        finally:
            self._given, self._memo = before

    # ---------------------------------------------------------------- leaves

    def _constant(self, term: Term, index: Index) -> MonomialSum:
        array = term.attribute("value").array()
        if self.real and term in self.numbers:
            return scalar.number(Fraction(self.numbers[term]))
        if array.size == 1:
            return self.number(array.reshape(-1)[0], term.tensor)
        if all(isinstance(i, int) for i in index):
            return self.number(array[tuple(index)], term.tensor)
        read = f"constant {term.tensor} {term.attribute('value').key}"
        self._read[read] = term.tensor.dtype
        return scalar.atom(Read(read, index))

    def number(self, value: Any, type: TensorType) -> MonomialSum:
        if type.dtype.kind in ("bool", "int", "uint"):
            return scalar.number(int(value))
        if type.dtype.kind != "float":
            return scalar.atom(Apply(f"{type.dtype} {value!r}", ()))
        number = float(value)
        if np.isnan(number):
            return exact_functions.NAN
        if np.isinf(number):
            return exact_functions.INFINITE if number > 0 else self.scalar("negate", [exact_functions.INFINITE], type)
        if number == 0 and np.signbit(number) and not self.real:
            return exact_functions.MINUS_ZERO
        return scalar.number(Fraction(number))

    def _dims(self, term: Term, index: Index) -> MonomialSum:
        numbers = term.attribute("dims")
        if not index:
            return scalar.size(numbers[0] if isinstance(numbers, tuple) else numbers)
        if isinstance(index[0], int):
            return scalar.size(numbers[index[0]])
        raise Unprovable("an element of a computed shape at a symbolic place")

    def _iota(self, term: Term, index: Index) -> MonomialSum:
        if not self.real and term.tensor.dtype.kind == "float":
            return scalar.atom(Apply(f"iota {term.tensor.dtype}", (scalar.size(index[term.attribute("dimension")]),)))
        return scalar.size(index[term.attribute("dimension")])

    # ---------------------------------------------------------------- conditions on indices

    def cases(self, dim: Dim, where: Callable[[], MonomialSum], otherwise: Callable[[], MonomialSum]) -> MonomialSum:
        """One value where `dim` >= 0, another where it is not."""
        dim = self.known.simplify(dim)
        if self.known.nonnegative(dim):
            return where()
        if self.known.nonnegative(dims.subtract(-1, dim)):
            return otherwise()
        if not any(name.startswith(("k:", "g:")) for name in dims.symbols(dim)):
            raise Split(dim)
        with self._where(dim):
            holds = where()
        with self._where(dims.subtract(-1, dim)):
            fails = otherwise()
        if holds == fails:
            return holds
        above, below = (scalar.atom(Where(side)) for side in (dim, dims.subtract(-1, dim)))  # both become ranges of sums
        found = scalar.add(scalar.multiply(above, holds), scalar.multiply(below, fails))
        self.reals.picked(found, (holds, fails))
        return found

    # ---------------------------------------------------------------- elementwise

    def _elementwise(self, term: Term, index: Index) -> MonomialSum:
        name = term.op.name.split(".", 1)[1]
        if name == "select":
            condition, a, b = (partial(self.element, x, index if x.tensor.rank else ()) for x in term.operands)
            return self.chosen(condition(), a, b)
        with nullcontext() if name in exact_functions.BLIND else self.strict():
            operands = [self.element(x, index if x.tensor.rank else ()) for x in term.operands]
        kinds = [x.tensor.dtype.kind for x in term.operands]
        if name == "compare":
            return self._compare(term.attribute("direction"), operands, term.operands[0].tensor.dtype)
        if name == "convert":
            floats = term.operands[0].tensor.dtype.kind == term.tensor.dtype.kind == "float"
            if self.real and floats and term in self.stored:
                return operands[0]
            found = self._converted(operands[0], term.operands[0].tensor, term.tensor)
            if not floats:
                self.reals.read(*operands)
                self.reals.summed(found)
            return found
        if name == "clamp":
            low, x, high = operands
            return self.scalar("minimum", [self.scalar("maximum", [x, low], term.tensor), high], term.tensor)
        if term.tensor.dtype.kind == "bool" and name in functions.BOOLS and set(kinds) == {"bool"}:
            return functions.BOOLS[name](*operands)
        if term.tensor.dtype.kind == "bool" or term.attributes:
            self.reals.read(*operands)
        if term.tensor.dtype.kind == "bool":
            return functions.truth(name, *operands)
        if term.attributes:
            return scalar.atom(Apply(f"{name} {dict(term.attributes)}", tuple(operands)))
        return self.scalar(name, operands, term.tensor)

    def chosen(self, condition: MonomialSum, a: Callable[[], MonomialSum], b: Callable[[], MonomialSum]) -> MonomialSum:
        """One of two values, neither of which needs to be defined where it is not chosen."""
        with self.domain.under(condition):
            first = a()
        with self.domain.under(functions.negation(condition)):
            second = b()
        found = functions.choice(condition, first, second)
        self.reals.picked(found, (first, second))
        return found

    def scalar(self, name: str, operands: Sequence[MonomialSum], type: TensorType) -> MonomialSum:
        """An operation by the kind of its element type."""
        if type.dtype.kind == "bool" and name in functions.BOOLS:
            return functions.BOOLS[name](*operands)
        if functions.wraps(type.dtype):
            if name == "divide" and operands[1] == scalar.ONE:
                return operands[0]
            found = integers.INTEGERS.get(name)
            # what an operation that is no ring operation does depends on the sign and on the bits above
            if name in ("maximum", "minimum"):
                return functions.sorted_call(f"{name} {type.dtype}", *operands)
            if name == "power":
                return integers.power_of_integer(operands[0], operands[1], type.dtype)
            if name == "remainder":
                return integers.remainder_of_integers(operands[0], operands[1], type.dtype)
            if name == "abs":  # -128 is what its magnitude wraps around to
                return scalar.multiply(operands[0], scalar.atom(Apply(f"sign {type.dtype}", tuple(operands))))
            places = operands[1].number if name in ("shift_right_logical", "shift_right_arithmetic", "shift_left") else None
            if places is not None and places.denominator == 1:
                self.widths = True
                return integers.shifted(name, operands[0], int(places) % (1 << type.dtype.bits), type.dtype)
            return found(*operands) if found else scalar.atom(Apply(f"{name} {type.dtype}", tuple(operands)))
        if type.dtype.kind == "float" and self.real:
            found = self.reals.table.get(name)
            return found(*operands) if found else self.reals.partial(name, scalar.atom(Apply(name, tuple(operands))))
        if type.dtype.kind == "float":
            if (
                name in ("maximum", "minimum") and type.dtype.name not in exact_functions.IEEE
            ):  # what is too large is NaN there, or the largest
                return functions.sorted_call(name, *operands)
            unsigned = frozenset({"signed_zero"}) if type.dtype.name.endswith("fnuz") else frozenset[str]()  # it has one zero only
            return exact_functions.exact(name, operands, self.exceptions | unsigned)
        if name in ("negate", "add", "subtract"):  # of complex numbers, part by part
            return exact_functions.exact(name, operands, self.exceptions)
        if name in ("maximum", "minimum") and operands[0] == operands[1]:  # which of two it is where a part is NaN is not said
            return operands[0]
        return scalar.atom(Apply(f"{name} {type.dtype}", tuple(operands)))

    def _compare(self, direction: str, operands: Sequence[MonomialSum], dtype: DType) -> MonomialSum:
        a, b = operands
        kept = [functions.conversion(x) for x in operands]
        if kept[0] is not None and kept[1] is not None and kept[0].function == kept[1].function:
            source = DTYPES[kept[0].function.split()[1]]
            if LOSSLESS(source, dtype):  # it keeps the order, and what is equal
                return self._compare(direction, [x.arguments[0] for x in kept if x is not None], source)
        if dtype.kind == "bool":
            return functions.compare_bools(direction, a, b)
        if functions.wraps(dtype):
            return self.compare_integers(direction, a, b, dtype)
        return self.reals.compare(direction, a, b) if self.real else exact_functions.exact_compare(direction, a, b)

    def compare_integers(self, direction: str, a: MonomialSum, b: MonomialSum, dtype: DType) -> MonomialSum:
        """Integers wrap around: no sign of a difference. Of index variables alone it is index arithmetic."""
        gap = self._distance(a, b, dtype)
        if gap is not None and direction in ("LT", "LE", "GT", "GE"):
            bound = {"GE": gap, "GT": dims.subtract(gap, 1), "LE": dims.multiply(-1, gap), "LT": dims.subtract(-1, gap)}[direction]
            return self.cases(bound, lambda: scalar.ONE, lambda: scalar.ZERO)
        if direction in ("GT", "GE"):
            return self.compare_integers("LT" if direction == "GT" else "LE", b, a, dtype)
        if direction == "NE":
            return functions.negation(self.compare_integers("EQ", a, b, dtype))
        if direction == "EQ":
            return scalar.ONE if a == b else functions.truth(f"equal {dtype}", *sorted((a, b), key=lambda form: form.key))
        if direction == "LE":
            return functions.negation(self.compare_integers("LT", b, a, dtype))
        return scalar.ZERO if a == b else functions.truth(f"less {dtype}", a, b)

    def _distance(self, a: MonomialSum, b: MonomialSum, dtype: DType) -> Dim | None:
        """a - b where both are dims that the type holds for sure, so that nothing has wrapped around; else None."""
        first, second = as_dim(a), as_dim(b)
        if first is None or second is None:
            return None
        self.widths = True
        if not (self._holds(first, dtype) and self._holds(second, dtype)):
            return None
        return dims.subtract(first, second)

    def _holds(self, dim: Dim, dtype: DType) -> bool:
        """Whether an integer type has the number that a dim is, whatever its symbols are: then it is what the type makes of the dim."""
        low, high = ends(dtype)
        least, greatest = self.known.bounds(dim)
        return least >= low and greatest <= high

    def _converted(self, a: MonomialSum, source: TensorType, target: TensorType) -> MonomialSum:
        from_, to = source.dtype, target.dtype
        keeps = not self.rounds or LOSSLESS(from_, to)  # what does not may round, which is no real number's way
        if from_ == to or (from_.kind == to.kind == "float" and self.real and keeps):
            return a
        self.widths = self.widths or functions.wraps(from_) or functions.wraps(to)
        if to.kind in ("int", "uint", "float", "complex") and is_held(a, from_) and is_held(a, to):
            return a
        if from_.kind == "bool" and to.kind == "float" and self.real:
            return a
        counted = functions.wraps(from_) and to.kind == "float" and self.real
        held = not self.rounds or (counts(a) and to.name in COUNTING) or self._keeps(a, from_, to) if counted else False
        if held and self._unwrapped(a, from_):
            return a
        if functions.wraps(from_) and functions.wraps(to) and to.bits <= from_.bits:
            return a if to.bits == from_.bits else integers.narrowed(a, to)  # the same bits: what depends on the sign says so
        if functions.wraps(from_) and functions.wraps(to) and (dim := as_dim(a)) is not None and self._holds(dim, from_):
            return a  # it has not wrapped around in fewer bits
        inner = functions.conversion(a)
        if inner is not None:
            first = DTYPES[inner.function.split()[1]]
            whole = functions.wraps(first) and functions.wraps(to) and not functions.wraps(from_)
            if LOSSLESS(first, from_) and not (whole and not LOSSLESS(first, to)):  # keeps every value; floats saturate, integers wrap
                return self._converted(inner.arguments[0], TensorType(first, source.shape), target)
        if to.kind == "bool":
            truth = is_held(a, DTYPES["bool"]) and scalar.multiply(a, a) == a
            return a if truth else functions.truth(f"convert {from_}", a)
        return scalar.atom(Apply(f"convert {from_} {to}", (a,)))

    def _unwrapped(self, form: MonomialSum, dtype: DType) -> bool:
        """True where an integer is one number of `dtype`, not what a ring operation has left of it: its value is that of the form."""
        if is_held(form, dtype) or ((dim := as_dim(form)) is not None and self._holds(dim, dtype)):
            return True
        factor = form.alone
        if isinstance(factor, Read):  # of the same bits under the other sign it is another number
            return self._read.get(factor.name) == dtype
        return isinstance(factor, Apply) and factor.function.endswith(f" {dtype}")

    def _keeps(self, form: MonomialSum, source: DType, target: DType) -> bool:
        """Whether a float type has the number that an integer is: else a written conversion rounds."""
        if LOSSLESS(source, target):
            return True
        dim = as_dim(form)
        least, greatest = (-math.inf, math.inf) if dim is None else self.known.bounds(dim)
        digits = int(ml_dtypes.finfo(target.numpy).nmant) + 1  # type: ignore[no-untyped-call]
        return bool(max(-least, greatest) <= 1 << digits)

    # ---------------------------------------------------------------- folds

    def _bound_facts(self) -> tuple[Dim, ...]:
        """What is known of bound variables here."""
        return tuple(fact for fact in self.known.facts if any(name.startswith("k:") for name in dims.symbols(fact)))

    def needed(self) -> dict[tuple[str, MonomialSum], MonomialSum]:
        """What the elements that were looked at need: of which kind, a form for all values of the variables that are bound in it, and the
        condition under which it is needed."""
        joined: dict[tuple[str, MonomialSum, tuple[Dim, ...]], MonomialSum] = {}
        for need in self.domain.needs_of_all:
            condition = scalar.ONE
            for each in need.conditions:
                condition = scalar.multiply(condition, each)
            key = need.kind, need.form, self._about(need.facts, need.form, condition)
            joined[key] = functions.either(joined.get(key, scalar.ZERO), condition)
        found: dict[tuple[str, MonomialSum], MonomialSum] = {}
        for (kind, form, facts), condition in joined.items():
            if condition == scalar.ZERO:
                continue
            closed = self._closed(form, facts, condition)
            form, condition = (form, condition) if closed is None else (closed, scalar.ONE)
            found[kind, form] = functions.either(found.get((kind, form), scalar.ZERO), condition)
        return found

    @staticmethod
    def _about(facts: Sequence[Dim], form: MonomialSum, condition: MonomialSum) -> tuple[Dim, ...]:
        """The facts that speak of variables which are bound in a form or in its condition."""
        names = {name for name in variables(form) | variables(condition) if name.startswith("k:")}
        return tuple(fact for fact in facts if dims.symbols(fact) & names)

    def _closed(self, form: MonomialSum, facts: Sequence[Dim], condition: MonomialSum) -> MonomialSum | None:
        """What a condition on `form` is about: the values of bound variables for which it is asked are said too. None where none is."""
        names = {name for name in variables(form) | variables(condition) if name.startswith("k:")}
        names |= {name for fact in facts for name in dims.symbols(fact) if name.startswith("k:")}
        if not names:
            return None
        told = () if condition == scalar.ONE else (condition,)
        inner = scalar.atom(Apply("needed", (form, *(scalar.atom(Where(fact)) for fact in facts), *told)))
        bound = tuple((name, self._extents[name]) for name in sorted(names))
        return self.folds.extreme("needed", bound, inner, self.known.with_variables(dict(bound)))

    def _positive(self, dim: Dim) -> bool:
        return self.known.nonnegative(dims.subtract(dim, 1))

    def bound(self, extents: Sequence[Dim]) -> tuple[tuple[str, Dim], ...]:
        found = tuple((self.folds.fresh(), extent) for extent in extents)
        self._extents |= dict(found)
        return found

    def folded(
        self, combiner: str, variables: tuple[tuple[str, Dim], ...], body: Callable[[], MonomialSum], type: TensorType, order: str = ""
    ) -> MonomialSum:
        """The fold of `body`; `order` names the order in which an op adds, and rounds, where that counts."""
        before, memo = self.known, self._memo
        self.known = before.with_variables(dict(variables))
        if any(not isinstance(extent, int) for _, extent in variables):
            self._memo = {}  # what is known inside, that there is a place, is not known of elements outside
        try:
            inner = body()
        finally:
            self.known, self._memo = before, memo
        floats = type.dtype.kind == "float"
        rounds = not self.real and type.dtype.kind in ("float", "complex") and combiner in ("add", "multiply")
        # a sum begins with 0, and 0 + -0 is 0: where signs of zeros count, a sum of one element is not that element; nor is of complex
        # numbers a product, whose 1 has a 0 that makes NaN of infinity
        plain_first = self.real or combiner != "add" or "signed_zero" in self.exceptions
        parts = type.dtype.kind == "complex" and combiner == "add" and "signed_zero" in self.exceptions
        bare = parts or (type.dtype.kind != "complex" and (plain_first or not floats))
        once: dict[str, Dim] = {name: 0 for name, extent in variables if extent == 1}
        if once:  # one place makes no order; where the 0 counts that a sum begins with, one such variable stays
            some = tuple((name, extent) for name, extent in variables if name not in once)
            inner = self.folds.renamed(inner, once, before.with_variables(dict(some)))
            variables = some if some or bare else variables[:1]
        ring = combiner == "add" and (self.real or functions.wraps(type.dtype)) and type.dtype.kind != "bool"
        if not variables:  # of no place too: what the fold begins with meets the element
            return inner if bare else scalar.atom(Apply(f"folded {combiner} {type.dtype}", (inner,)))
        if ring or (combiner in ("maximum", "minimum") and self.real and floats):
            return self._of_reals(combiner, variables, inner)
        if rounds:  # the order of the operations counts
            return self._in_order(combiner, variables, inner, order)
        kind = type.dtype if functions.wraps(type.dtype) else type.dtype.kind
        ascending = functions.conversion(inner)  # between floats with infinities it keeps the order, and what the fold of nothing is
        if ascending is not None and combiner in ("maximum", "minimum") and set(ascending.function.split()[1:]) <= exact_functions.IEEE:
            largest = self.folds.extreme(f"{combiner} {kind}", variables, ascending.arguments[0], self.known)
            return scalar.atom(Apply(ascending.function, (largest,)))
        found = self.folds.extreme(f"{combiner} {kind}", variables, inner, self.known)
        self.reals.picked(found, (inner,))
        return found

    def _of_reals(self, combiner: str, variables: tuple[tuple[str, Dim], ...], inner: MonomialSum) -> MonomialSum:
        """A fold whose order makes no difference: a sum, or of the reals the largest or smallest element."""
        if combiner == "add":
            found = self.folds.sum(variables, inner, self.known)
            self.reals.summed(found, inner)
        else:
            found = self.folds.extreme(combiner, variables, inner, self.known)
            self.reals.picked(found, (inner,))
        return found

    def _in_order(self, combiner: str, variables: tuple[tuple[str, Dim], ...], inner: MonomialSum, order: str) -> MonomialSum:
        """A fold whose operations have an order, as an atom."""
        own = f"o:{1 + height(inner)}"  # a fold's names are not those of the folds inside it
        names: dict[str, Dim] = {old: dims.symbol(f"{own}:{i}") for i, (old, _) in enumerate(variables)}
        plain = tuple((f"{own}:{i}", extent) for i, (_, extent) in enumerate(variables))
        inside = self.known.with_variables(dict(plain))
        flipped = inner.call("negate") if combiner == "add" and "signed_zero" in self.exceptions else None
        added = self.folds.renamed(flipped.arguments[0] if flipped else inner, names, inside)
        result = scalar.atom(scalar.Fold(f"ordered {order}{combiner}", plain, added))
        return exact_functions.exact("negate", (result,), self.exceptions) if flipped else result  # rounding knows no sign

    # ---------------------------------------------------------------- what is not interpreted

    def uninterpreted(self, term: Term, index: Index) -> MonomialSum:
        """The op as an atom over its operands as functions of generic indices."""
        with self.strict():
            return self._applied(term, index)

    def _applied(self, term: Term, index: Index) -> MonomialSum:
        arguments: list[MonomialSum] = [scalar.size(i) for i in index]
        for x in term.operands:
            if not isinstance(x.type, TensorType) or x.type.shape is None:
                raise Unprovable(f"`{term.op.name}` on {x.type}")
            names = tuple(f"g:{axis}" for axis in range(x.tensor.rank))
            before = self.known, self._memo
            self.known, self._memo = before[0].rebound(dict(zip(names, x.tensor.dims, strict=True))), {}
            try:
                arguments.append(self.element(x, tuple(map(dims.symbol, names))))
            finally:
                self.known, self._memo = before
            arguments += [scalar.size(dim) for dim in x.tensor.dims]
        payloads = "".join(f" function {_number(region)}" for region in term.regions)
        taken = [(x.tensor.dtype, x.tensor.rank) for x in term.operands]
        name = f"{term.op.name}{payloads} {term.attributes} {taken}"
        return functions.truth(name, *arguments) if _is_bool(term) else scalar.atom(Apply(name, tuple(arguments)))


_REGIONS: dict[Region, int] = {}


def _number(region: Region) -> int:
    """A number that no other payload function has."""
    return _REGIONS.setdefault(region, len(_REGIONS))


def _is_bool(term: Term) -> bool:
    return isinstance(term.type, TensorType) and term.type.dtype.kind == "bool"


def _truth_read(term: Term, index: Index) -> MonomialSum:
    return functions.truth(f"input {term.attribute('name')}", *(scalar.size(i) for i in index))  # no function is called so


Handler = Callable[[Denotation, Term, Index], MonomialSum]
_HANDLERS: dict[str, Handler] = {
    "builtin.constant": Denotation._constant,
    "builtin.dims": Denotation._dims,
    "stablehlo.iota": Denotation._iota,
    "stablehlo.map": control.map_,
    "stablehlo.reduce_region": control.fold,
    "stablehlo.if": control.branch,
    "stablehlo.while": control.loop,
    "stablehlo.broadcast_in_dim": movement.broadcast,
    "stablehlo.transpose": movement.transpose,
    "stablehlo.reshape": movement.reshape,
    "stablehlo.slice": movement.slice,
    "stablehlo.reverse": movement.reverse,
    "stablehlo.concatenate": movement.concatenate,
    "stablehlo.pad": movement.pad,
    "stablehlo.reduce": contractions.reduce,
    "stablehlo.reduce_window": contractions.reduce_window,
    "stablehlo.dot_general": contractions.dot,
    "stablehlo.convolution": contractions.convolution,
}
