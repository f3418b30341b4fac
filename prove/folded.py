"""Constants that a certificate computes: what `computed` and `rounded` lines are admitted for (docs/certificates.md, "Constants")."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from coset.ir.constants import constant_of
from coset.ir.op import AT_RUN_TIME
from coset.ir.term import CONSTANT, Term, constant, make, topological
from coset.ir.types import F32, TensorType
from coset.prove.bound import NONE, NOTHING, Bound, magnitude, roundoff
from coset.prove.budget import Budget, TooMuch
from coset.prove.certificate import Rejected
from coset.prove.classes import Classes
from coset.prove.contents import hashed
from coset.prove.valued import Evaluation, KnownValue, Uncomputed

T = TypeVar("T")
CONSTANTS = frozenset({"builtin.constant", "builtin.absent", "stablehlo.iota"})  # leaves whose values are known
LEAST, ROUNDINGS, MOST = 2.0**-8, 64.0, 0.51  # of an element: how far a number may be from what it stands for; of coarse types, so many


SUMS = ("add", "subtract", "negate", "multiply", "divide", "dot_general", "reduce", "transpose", "reshape", "broadcast_in_dim", "slice",
        "reverse", "concatenate")  # fmt: skip
PLAIN = frozenset({"builtin.constant", *(f"stablehlo.{name}" for name in SUMS)})
STANDS = "a rounded value is a constant that stands for something else already"


def computes(term: Term) -> bool:
    """True where a term does more than to move the elements of its leaves."""
    return any(each.operands and not each.op.has("movement") for each in topological([term]))


def leaves_of(term: Term) -> set[Term]:
    """What a term is computed from."""
    return {each for each in topological([term]) if not each.operands}


def coarsest(term: Term) -> float:
    """The largest distance from 1 to the next number of the float types that a term computes in."""
    types = {each.tensor.dtype for each in topological([term]) if isinstance(each.type, TensorType)}
    return max((roundoff(dtype) for dtype in types if dtype.kind == "float"), default=0.0)


def depends_on_processes(term: Term) -> bool:
    """True where a value depends on other processes, on when it is computed, or on how the runtime does it; in functions too."""
    stack = [term]
    while stack:
        for each in topological([stack.pop()]):
            if not each.op.traits.isdisjoint(AT_RUN_TIME):
                return True
            stack += [result for region in each.regions for result in region.results]
    return False


def refuse_unless(holds: bool, message: str) -> None:
    """Raise `Rejected` with the message where it does not hold."""
    if not holds:
        raise Rejected(message)


def required(value: T | None, message: str) -> T:
    """The value; raise `Rejected` with the message where there is none."""
    if value is None:
        raise Rejected(message)
    return value


@dataclass
class Folding:
    """The constants of one certificate. `before`, `after`: the constant terms and all others of the two programs; `recorded`: bounds of
    constants that were rounded; `looked`: constants that something was computed from, or that a rule or a law looked at."""

    classes: Classes
    before: AbstractSet[Term]
    after: AbstractSet[Term]
    meaning: Callable[[Term], Term | None]
    fallback: Callable[[Term, Sequence[Any]], Any]
    budget: Budget
    recorded: dict[Term, Bound] = field(default_factory=dict)
    looked: set[Term] = field(default_factory=set)
    computed: int = 0
    rounded: int = 0
    absolute: float = 0.0  # the largest bounds of rounded elements
    relative: float = 0.0
    stable: bool = True  # whether every correct evaluation has these bits

    def value(self, term: Term) -> Term:
        """The constant that `term` is, for a `computed` line.

        Raises:
            Rejected: it is none, or nothing may be joined with it.
        """
        known, leaves = self._known(term)
        made = hashed(constant(constant_of(known.value, term.tensor.dtype)))
        refuse_unless(made.type == term.type, "the value has another type")
        array = made.attribute("value").array()
        self.stable &= known.stable
        self.computed += 1
        if term.tensor.dtype.kind not in ("float", "complex"):
            refuse_unless(known.error.exact, "it is computed from rounded numbers, which another evaluation may have on the other side")
            self._agree(term, made, array, NOTHING)
        elif known.error.exact:
            self._agree(term, made, array, NOTHING)
            self._exactly(term, made, leaves)
        else:
            own = self._own(term, made)
            refuse_unless(own or known.error is not NONE, "there is no bound of how it rounds")
            error = known.error if own or not computes(term) else self._admitted(term, known.error, array)
            self._define(term, made, error, array, own, leaves)
        self.looked |= leaves
        return made

    def rounding(self, term: Term, other: Term) -> None:
        """Check that `term` is the constant `other` but for roundings.

        Raises:
            Rejected: it is not.
        """
        refuse_unless(other.op is CONSTANT and term.type == other.type, "it is no constant of this type")
        refuse_unless(other.tensor.dtype.kind == "float", "only floats are rounded")
        refuse_unless(computes(term), "nothing is computed, so that nothing rounds")
        known, leaves = self._known(term)
        array = np.asarray(known.value)
        bounds = np.asarray(known.error.of(array))
        claimed = other.attribute("value").array()
        refuse_unless(bool(np.isfinite(bounds).all()), "there is no bound of how it rounds")
        near = within(claimed, array, bounds)
        refuse_unless(near, "the constant is not what is computed: an element is further away than the bound of its roundings")
        with np.errstate(invalid="ignore"):
            apart = magnitude(claimed.astype(np.float64) - array.astype(np.float64))
        error = Bound(known.error.relative, known.error.absolute + apart) if np.any(apart) else known.error
        own = self._own(term, other)
        self._define(term, other, error if own else self._admitted(term, error, claimed), claimed, own, leaves)
        self.looked |= leaves
        self.stable &= known.stable and np.ascontiguousarray(claimed).tobytes() == np.ascontiguousarray(array).tobytes()
        self.rounded += 1

    # ------------------------------------------------------------ what is known

    def _known(self, term: Term) -> tuple[KnownValue, set[Term]]:
        """The value with its bounds, and the constants that it is computed from."""
        refuse_unless(isinstance(term.type, TensorType) and term.tensor.static is not None, "only tensors of known size are computed")
        leaves = leaves_of(term)
        refuse_unless(all(leaf.op.name in CONSTANTS for leaf in leaves), "it is not constant")
        refuse_unless(not depends_on_processes(term), "its value depends on other processes")
        known = self._evaluated(term, self.recorded)
        refuse_unless(known.parts is None and known.value is not None, "it is no tensor")
        return known, {leaf for leaf in leaves if leaf.op is CONSTANT}

    def _evaluated(self, term: Term, recorded: Mapping[Term, Bound]) -> KnownValue:
        try:
            with self.budget.counting():
                return Evaluation(recorded, self.meaning, self.fallback, self.budget.spend).known(term)
        except TooMuch as error:
            raise Rejected(str(error)) from None
        except Uncomputed as error:
            raise Rejected(f"`{error}` has no value here") from None

    def _own(self, term: Term, value: Term) -> bool:
        """Whether one program computes what the other has as a constant."""
        return any(
            term in one and term not in other and value in other and value not in one
            for one, other in ((self.before, self.after), (self.after, self.before))
        )

    def _admitted(self, term: Term, error: Bound, array: Any) -> Bound:
        """How far a constant is from a term: by its bound or, if that is too large, in f64. Refuses numbers that cancel or absorb some."""
        limit = max(LEAST, min(MOST, ROUNDINGS * coarsest(term)))
        wide = None if _is_small(error, array, limit) else in_f64(term)
        if wide is not None:
            leaves = {wide[each]: bound for each, bound in self.recorded.items() if each in wide}
            known = self._evaluated(wide[term], leaves)
            error = Bound(0.0, np.abs(array.astype(np.float64) - known.value) + known.error.of(known.value))
        refuse_unless(_is_small(error, array, limit), "it is ill-conditioned: its roundings make it another number")
        return error

    def _agree(self, term: Term, value: Term, array: Any, error: Bound) -> None:
        """Refuse a value that constants on either side are not, but for roundings."""
        others = {*self.classes.constants(term), *self.classes.constants(value)} - {value}
        for each in others:
            own = self.recorded.get(each, NOTHING)
            near = within(each.attribute("value").array(), array, error.of(array) + own.of(array))
            refuse_unless(near, "it is equal to another constant already, which is further away than roundings explain")

    def _exactly(self, term: Term, value: Term, leaves: set[Term]) -> None:
        """An exact value that stands for a rounded one: what it is moved from is known no better than that."""
        bound = self.recorded.get(value)
        if bound is None or (term in self.classes.number and self.classes.same(term, value)):
            return
        moved = len(leaves) == 1 and not computes(term) and all(map(self._is_new, leaves))
        refuse_unless(moved, "the value stands for a rounded number already")
        for leaf in leaves:
            self._record(leaf, Bound(0.0, float(np.max(bound.of(value.attribute("value").array()), initial=0.0))))

    def _define(self, term: Term, value: Term, error: Bound, array: Any, own: bool, leaves: set[Term]) -> None:
        """Take a rounded constant for what it is computed as, from others."""
        refuse_unless(
            error.exact or value is term or value not in leaves, "a number is said to be what is computed from it, with roundings"
        )
        self._agree(term, value, array, error)
        joined = value in self.classes.number and term in self.classes.number and self.classes.same(term, value)
        new = value not in self.classes.number or joined or (self._is_new(value) and value not in self.recorded)
        refuse_unless(error.exact or new or (own and value not in self.looked), STANDS)
        self._record(value, error)

    def _is_new(self, value: Term) -> bool:
        """Whether nothing was said or computed with a constant that at most one program has."""
        both = value in self.before and value in self.after
        return not both and value not in self.looked and (value not in self.classes.number or self.classes.alone(value))

    def _record(self, value: Term, error: Bound) -> None:
        self.recorded[value] = self.recorded.get(value, NOTHING).united(error)
        array = value.attribute("value").array()
        if error.plain and not error.absolute:
            self.absolute = max(self.absolute, error.relative * float(np.max(magnitude(array), initial=0.0)))
            self.relative = max(self.relative, error.relative)
        else:
            sizes, bounds = magnitude(array), error.of(array)
            self.absolute = max(self.absolute, float(np.max(bounds, initial=0.0)))
            shares = np.divide(bounds, sizes, out=np.zeros(sizes.shape), where=sizes > 0)
            self.relative = max(self.relative, float(np.max(shares, initial=0.0)))


def in_f64(term: Term) -> dict[Term, Term] | None:
    """Terms of f32 as such of f64: None where one is of another type, or is no sum, product or move."""
    made: dict[Term, Term] = {}
    for each in topological([term]):
        if not isinstance(each.type, TensorType) or each.tensor.dtype is not F32 or each.op.name not in PLAIN:
            return None
        if each.op is CONSTANT:
            made[each] = constant(each.attribute("value").array().astype(np.float64))
        else:
            made[each] = make(each.op, [made[operand] for operand in each.operands], dict(each.attributes))
    return made


def _is_small(found: Bound, array: Any, limit: float) -> bool:
    """Whether a bound is small beside each element, or beside most of them."""
    if found.plain and not found.absolute and found.relative <= limit:
        return True
    sizes = magnitude(array)
    return bool(np.all(found.of(array) <= np.maximum(sizes, _median(sizes)) * limit))


def _median(sizes: Any) -> float:
    """The median of the elements that are not 0; 0 without one."""
    some = sizes[sizes > 0]
    return float(np.median(some)) if some.size else 0.0


def within(claimed: Any, value: Any, bounds: Any) -> bool:
    """Whether each finite element is as near to the value as its bound says, and any other is the same."""
    if np.shape(claimed) != np.shape(value):
        return False
    if np.asarray(value).dtype.kind in "OSUbiu":
        return bool(np.array_equal(claimed, value))
    kind = np.complex128 if np.asarray(value).dtype.kind == "c" else np.float64
    one, other = np.asarray(claimed).astype(kind), np.asarray(value).astype(kind)
    finite = np.isfinite(other)
    if not np.array_equal(one[~finite], other[~finite], equal_nan=True) or not np.isfinite(one[finite]).all():
        return False
    return bool(np.all(np.abs(one - other)[finite] <= np.broadcast_to(np.asarray(bounds, np.float64), one.shape)[finite]))
