"""Lines `computed` and `rounded`: which values of constants are admitted, and the bounds that they leave behind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from coset.ir.term import CONSTANT, Term, constant, make
from coset.ir.types import F32, TensorType
from coset.prove.second.answer import Refused
from coset.prove.second.classes import Classes, below
from coset.prove.second.formats import Array, is_float, same_elements, wide
from coset.prove.second.scope import Found
from coset.prove.second.values import Evaluator, Value, coarsest, made_of_constants, moves_alone

CANCELLED = 256  # a bound may be this part of the value at most; of coarse types more


class Folding:
    """What was computed so far: whose terms the two programs have, and which constants were computed with."""

    def __init__(self, before: Sequence[Term], after: Sequence[Term], evaluator: Evaluator, classes: Classes) -> None:
        self.programs = (frozenset(before), frozenset(after))
        self.evaluator = evaluator
        self.classes = classes
        self.used: set[Term] = set()

    def value(self, t: Term) -> Value:
        """The value of a term made of constants.

        Raises:
            Refused: it is none.
        """
        if not made_of_constants(t):
            raise Refused("a term that is not made of constants alone")
        return self.evaluator.value(t)

    def computed(self, t: Term, value: Value, c: Term, known: bool) -> None:
        """Admit that `t` is the constant `c`, which is its value; `known`: `c` had a number before."""
        inexact = bool(value.bound.any())
        if inexact and not is_float(t.tensor.dtype):
            raise Refused("what is no float, computed from what is not exact")
        if inexact and not moves_alone(t) and not self._own(t, c):
            value = self._admitted(t, value)
        self._no_drift(t, c, value)
        if inexact:
            self._no_second_life(t, c, known)
            self._record(c, value.bound)
        elif c in self.evaluator.recorded and not self._joined(t, c):
            self._passed_on(t, c)
        self._use(t)

    def rounded(self, t: Term, value: Value, c: Term) -> None:
        """Admit that `t` is the constant `c` but for roundings."""
        if moves_alone(t):
            raise Refused("a weight is never another weight")
        if c.op is not CONSTANT or not isinstance(c.type, TensorType) or c.type != t.type or not is_float(t.tensor.dtype):
            raise Refused("what a term is rounded to is a constant of its type")
        if not np.isfinite(value.bound).all():
            raise Refused("an element of what is computed has no error bound")
        array = c.attribute("value").array()
        self._near(array, value)
        with np.errstate(invalid="ignore"):
            far = np.abs(wide(array) - wide(value.array))
        value = Value(array, value.bound + np.where(np.isfinite(far), far, 0))
        if not self._own(t, c):
            value = self._admitted(t, value)
        self._no_drift(t, c, value)
        if value.bound.any():
            self._no_second_life(t, c, True)
            self._record(c, value.bound)
        elif c in self.evaluator.recorded and not self._joined(t, c):
            raise Refused("an exact value with the bytes of a rounded one")
        self._use(t)

    def _admitted(self, t: Term, value: Value) -> Value:
        """The value with a bound that is small beside each element, or beside most of them: if need be, with how far it is from the same
        computed in f64, and that from the truth."""
        share = max(1 / CANCELLED, min(0.51, 64 * coarsest(t)))
        if not _small(value, share):
            double = in_double(t, self.evaluator.recorded)
            if double is not None:
                root, recorded = double
                better = self.evaluator.value(root, recorded)
                value = replace(value, bound=np.abs(wide(value.array) - better.array) + better.bound)
        if not _small(value, share):
            raise Refused("numbers that cancel, or absorb others")
        return value

    def _own(self, t: Term, c: Term) -> bool:
        """Whether one program has the term and not the constant, and the other one the constant and not the term."""
        return any(t in one and c not in one and c in other and t not in other for one, other in (self.programs, self.programs[::-1]))

    def _near(self, array: Array, value: Value, own: Array | float = 0.0) -> None:
        """The elements of an array lie within the bounds of a value, and their own."""
        if array.dtype.kind in "biuc":
            if not np.array_equal(array, value.array):
                raise Refused("the constant has other elements")
            return
        finite = np.isfinite(wide(value.array))
        far = np.abs(wide(array) - wide(value.array))
        if not np.where(finite, far <= value.bound + own, same_elements(array, value.array)).all():
            raise Refused("the constant is further away than roundings explain")

    def _no_drift(self, t: Term, c: Term, value: Value) -> None:
        for other in {*self.classes.alike(t), *(self.classes.alike(c) if c in self.classes.parent else ())}:
            if other.op is CONSTANT and other is not c and other.type == t.type:
                self._near(other.attribute("value").array(), value, self.evaluator.recorded.get(other, 0.0))

    def _no_second_life(self, t: Term, c: Term, known: bool) -> None:
        if c is not t and c in below([t]):
            raise Refused("a constant that is computed from itself, with roundings")
        if not known or self._joined(t, c):
            return
        if self._own(t, c):
            if c in self.used:
                raise Refused("a constant that was looked at already")
            return
        places = sum(c in program for program in self.programs)
        if len(self.classes.alike(c)) > 1 or places == 2 or c in self.used or c in self.evaluator.recorded:
            raise Refused("a constant that stands for another number as well")

    def _joined(self, t: Term, c: Term) -> bool:
        return c in self.classes.parent and self.classes.equal(t, c)

    def _passed_on(self, t: Term, c: Term) -> None:
        """A constant with a bound is the value of exact moves of another one, which then has the bound as well."""
        leaves = [each for each in below([t]) if each.op is CONSTANT]
        if not moves_alone(t) or len(leaves) != 1:
            raise Refused("an exact value with the bytes of a rounded one")
        (leaf,) = leaves
        if sum(leaf in program for program in self.programs) > 1 or len(self.classes.alike(leaf)) > 1 or leaf in self.used:
            raise Refused("an exact value with the bytes of a rounded one")
        self._record(leaf, np.full(leaf.tensor.static or (), self.evaluator.recorded[c].max()))

    def _record(self, c: Term, bound: Array) -> None:
        known = self.evaluator.recorded.get(c)
        self.evaluator.recorded[c] = bound if known is None else np.maximum(known, bound)

    def looked_at(self, left: Sequence[Term], found: Found) -> None:
        """Take note of the constants that the left side of a rule has matched, variables aside.

        Raises:
            Refused: one of them was rounded.
        """
        variables = {each for name, value in found.values.items() if name in found.scope.variables for each in _terms(value)}
        stack, seen = list(left), set[Term]()
        while stack:
            term = stack.pop()
            if term in variables or term in seen:
                continue
            seen.add(term)
            stack += term.operands
            if term in self.evaluator.recorded:
                raise Refused("a rule looks at a number that was rounded")
            if term.op is CONSTANT:
                self.used.add(term)

    def _use(self, t: Term) -> None:
        self.used.update(each for each in below([t]) if each.op is CONSTANT)


def _small(value: Value, share: float) -> bool:
    size = np.abs(wide(value.array))
    some = size[np.isfinite(size) & (size != 0)]
    scale = np.maximum(np.where(np.isfinite(size), size, 0), np.median(some) if some.size else 0.0)
    return bool((value.bound <= scale * share).all())


DOUBLED = frozenset({
    "add", "subtract", "negate", "multiply", "divide", "dot_general", "reduce", "transpose", "reshape", "broadcast_in_dim", "slice",
    "reverse", "concatenate",
})  # fmt: skip


def in_double(t: Term, recorded: Mapping[Term, Array]) -> tuple[Term, dict[Term, Array]] | None:
    """A term of f32 as one of f64, with the bounds of its constants; None where it has more than sums, products and moves."""
    done: dict[Term, Term] = {}
    bounds: dict[Term, Array] = {}
    for each in below([t]):
        if not isinstance(each.type, TensorType) or each.tensor.dtype is not F32:
            return None
        if each.op is CONSTANT:
            done[each] = constant(each.attribute("value").array().astype(np.float64))
            if each in recorded:
                bounds[done[each]] = recorded[each]
        elif each.op.name.removeprefix("stablehlo.") in DOUBLED:
            done[each] = make(each.op, [done[operand] for operand in each.operands], dict(each.attributes))
        else:
            return None
    return done[t], bounds


def _terms(value: object) -> Sequence[Term]:
    return (value,) if isinstance(value, Term) else value if isinstance(value, tuple) else ()
