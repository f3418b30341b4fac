"""Values of terms made of constants, each with a bound of how far two honest evaluations may be apart: NumPy, and a table of our own."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from coset.ir.constants import Constant
from coset.ir.term import CONSTANT, Term
from coset.ir.types import DType, TensorType
from coset.prove.second.answer import CannotSay, Refused
from coset.prove.second.bounds import BOUNDS, at_infinity, whole
from coset.prove.second.classes import below
from coset.prove.second.computed import COMPUTED, MOVED, MOVES
from coset.prove.second.formats import ROUND_UP, Array, form, is_float

BUDGET = 1 << 33  # operations that one certificate may spend
EACH = 1 << 14  # what an op costs, however small it is
LARGEST = 1 << 24  # elements of an array, or as many as all constants of the programs have together
LEAVES = frozenset({"builtin.constant", "builtin.absent", "stablehlo.iota"})
SAME_BITS = frozenset(f"stablehlo.{name}" for name in ("add", "subtract", "multiply", "divide", "sqrt", "convert"))


@dataclass(frozen=True)
class Value:
    """An array, and the bound of each element; infinite where there is none."""

    array: Array
    bound: Array


class Evaluator:
    """Values of terms within one budget; `recorded` are the bounds of constants that earlier lines said."""

    def __init__(self, elements: int, opened: Callable[[Term], Term]) -> None:
        self.left = BUDGET
        self.opened = opened  # what a term of a defined op means
        self.largest = max(elements, LARGEST)
        self.recorded: dict[Term, Array] = {}

    def value(self, root: Term) -> Value:
        """The value of a term that is made of constants alone.

        Raises:
            Refused: it is not, or costs more than is left.
            CannotSay: an op in it has no entry in the table.
        """
        done: dict[Term, Value] = {}
        for term in below([root]):
            if term.op.name == "builtin.absent":
                continue
            shape = term.type.static if isinstance(term.type, TensorType) else None
            if shape is None or not isinstance(term.type, TensorType):
                raise Refused(f"{term.type} is no static tensor")
            if term.op is not CONSTANT:
                self._spend(term, shape)
            operands = [done[operand] for operand in term.operands]
            if term.op.name not in LEAVES and term.op.name not in MOVES and term.op.name not in COMPUTED:
                done[term] = self.value(self.opened(term))
                continue
            with np.errstate(all="ignore"):
                done[term] = self._leaf(term) if term.op.name in LEAVES else self._computed(term, term.type.dtype, operands)
            if done[term].array.shape != shape:
                raise CannotSay(f"the value of {term.op.name} has another shape")
        return done[root]

    def _spend(self, term: Term, shape: tuple[int, ...]) -> None:
        count = math.prod(shape)
        work = count
        if term.op.name == "stablehlo.dot_general":
            contracted = [term.operands[0].tensor.dims[axis] for axis in term.attribute("lhs_contract")]
            work = 2 * count * math.prod(each for each in contracted if isinstance(each, int))
            work = work // 16 if is_float(term.tensor.dtype) else work
        sizes = [math.prod(operand.tensor.static or ()) for operand in term.operands if isinstance(operand.type, TensorType)]
        self.left -= EACH + count + sum(sizes) + work
        if self.left < 0 or count > self.largest:
            raise Refused(f"more than {BUDGET} operations")

    def _leaf(self, term: Term) -> Value:
        if term.op is CONSTANT:
            array = term.attribute("value").array()
            return Value(array, self.recorded.get(term, np.zeros(array.shape)))
        shape, axis = term.attribute("shape"), term.attribute("dimension")
        counts = np.arange(shape[axis]).reshape([-1 if place == axis else 1 for place in range(len(shape))])
        return Value(np.broadcast_to(counts, shape).astype(term.tensor.dtype.numpy), np.zeros(shape))

    def _computed(self, term: Term, dtype: DType, operands: Sequence[Value]) -> Value:
        name = term.op.name
        if name in MOVES:
            move = MOVED.get(name)
            if move is None:
                raise CannotSay(f"the value of {name}")
            if name == "stablehlo.gather":
                x, places = operands
                if places.bound.any():
                    raise Refused("places that are not exact")
                return Value(move(term, [x.array, places.array]), move(term, [x.bound, places.array]))
            return Value(move(term, [value.array for value in operands]), move(term, [value.bound for value in operands]))
        array = np.asarray(COMPUTED[name](term, [value.array for value in operands]))
        array = array if array.dtype == dtype.numpy else array.astype(dtype.numpy)
        return Value(array, self._bound(term, dtype, array, [(value.array, value.bound) for value in operands]))

    def _bound(self, term: Term, dtype: DType, v: Array, operands: Sequence[tuple[Array, Array]]) -> Array:
        name = term.op.name.split(".")[1]
        if not is_float(dtype):
            exact = not any(bool(e.any()) for _, e in operands) or whole(term, operands)
            return np.zeros(v.shape) if exact or not v.size else np.full(v.shape, np.inf)
        rule = BOUNDS.get(name)
        if rule is None:
            return np.full(v.shape, np.inf)
        bound = np.asarray(rule(term, form(dtype), v, operands), np.float64) * ROUND_UP
        bound = np.where(np.isnan(bound), np.inf, np.broadcast_to(bound, v.shape))
        return at_infinity(name, str(dict(term.attributes).get("combiner", "")), v, bound, operands)


# ---------------------------------------------------------------- terms of constants


def made_of_constants(term: Term) -> bool:
    """Whether all leaves are constants or counts, and the type is a static tensor."""
    if not isinstance(term.type, TensorType) or term.type.static is None:
        return False
    return all(each.op.name in LEAVES for each in below([term]) if not each.operands)


def moves_alone(term: Term) -> bool:
    """Whether nothing in a term computes."""
    return all(each.op.name in MOVES or each.op.name in LEAVES for each in below([term]))


def coarsest(term: Term) -> float:
    """The largest distance from 1 to the next number of the float types in a term."""
    types = {each.tensor.dtype for each in below([term]) if isinstance(each.type, TensorType) and is_float(each.tensor.dtype)}
    return max((form(dtype).eps for dtype in types), default=0.0)


def elements_of(terms: Sequence[Term]) -> int:
    """The elements of all constants among the terms together."""
    return sum(math.prod(term.tensor.static or ()) for term in terms if term.op is CONSTANT)


def constant(term: Term) -> Constant:
    """The constant of a constant term."""
    found: Constant = term.attribute("value")
    return found
