"""Values of terms made of constants, each with a bound of how far two honest evaluations may be apart: NumPy, and a table of our own."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from coset.ir.constants import Constant
from coset.ir.term import CONSTANT, Term
from coset.ir.types import DType, TensorType
from coset.prove.second.answer import CannotSay, Refused
from coset.prove.second.bounds import BOUNDS, at_infinity, changed_numbers, whole
from coset.prove.second.classes import below
from coset.prove.second.computed import COMPUTED
from coset.prove.second.formats import ROUND_UP, Array, form, is_float
from coset.prove.second.moves import COUNTED, MOVED, counted, data

BUDGET = 1 << 33  # operations that one certificate may spend
EACH = 1 << 14  # what an op costs, however small it is
LARGEST = 1 << 24  # elements of an array, or as many as all constants of the programs have together
LEAVES = frozenset({"builtin.constant", "builtin.absent", "stablehlo.iota"})
SAME_BITS = frozenset(
    f"stablehlo.{name}"
    for name in (
        "add",
        "subtract",
        "multiply",
        "divide",
        "sqrt",
        "convert",
        "negate",
        "abs",
        "maximum",
        "minimum",
        "clamp",
        "select",
        "compare",
    )
)  # what every library computes to the last bit


@dataclass(frozen=True)
class Value:
    """An array, and the bound of each element; infinite where there is none. `bounded` is false where the table gives no bounds at all."""

    array: Array
    bound: Array
    bounded: bool = True


def unbounded(array: Array) -> Value:
    """An array of which nobody knows how far another evaluation is from it."""
    return Value(array, np.full(array.shape, np.inf), array.size == 0)


class Evaluator:
    """Values of terms within one budget; `recorded` are the bounds of constants that earlier lines said."""

    def __init__(self, elements: int, opened: Callable[[Term], Term]) -> None:
        self.left = BUDGET
        self.opened = opened  # what a term of a defined op means
        self.largest = max(elements, LARGEST)
        self.recorded: dict[Term, Array] = {}
        self.loose = False  # whether a value since this was last made false may have other bits in another library

    def value(self, root: Term, recorded: Mapping[Term, Array] | None = None) -> Value:
        """The value of a term that is made of constants alone; `recorded` are other bounds of its constants than the certificate's.

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
                raise CannotSay(f"the value of {term.op.name}, which is no static tensor")
            if term.op is not CONSTANT:
                self._spend(term, shape)
            operands = [done[operand] for operand in term.operands if operand in done]
            name = term.op.name
            if name not in LEAVES and name not in COUNTED and name not in MOVED and name not in COMPUTED:
                if term.op.has("movement"):
                    raise CannotSay(f"the value of {name}")
                done[term] = self.value(self.opened(term), recorded)
                continue
            with np.errstate(all="ignore"):
                done[term] = self._one(term, term.type.dtype, operands, self.recorded if recorded is None else recorded)
            if done[term].array.shape != shape:
                raise CannotSay(f"the value of {name} has another shape")
            if name not in SAME_BITS and not term.op.has("movement") and term.op is not CONSTANT:
                self.loose = self.loose or bool(done[term].bound.any())
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

    def _one(self, term: Term, dtype: DType, operands: Sequence[Value], recorded: Mapping[Term, Array]) -> Value:
        name = term.op.name
        if term.op is CONSTANT:
            array = term.attribute("value").array()
            return Value(array, recorded.get(term, np.zeros(array.shape)))
        if name in COUNTED or name in MOVED:
            moved = 0 if name in COUNTED else data(name)
            places = [] if moved is None else operands[moved:]
            array = counted(term) if name in COUNTED else MOVED[name](term, [value.array for value in operands])
            if not all(value.bounded for value in operands) or any(each.bound.any() for each in places):
                return unbounded(array)
            if name in COUNTED:
                return Value(array, np.zeros(array.shape))
            return Value(array, MOVED[name](term, [*(value.bound for value in operands[:moved]), *(value.array for value in places)]))
        array = np.asarray(COMPUTED[name](term, [value.array for value in operands]))
        array = array if array.dtype == dtype.numpy else array.astype(dtype.numpy)
        bound = None
        if all(value.bounded for value in operands):
            bound = self._bound(term, dtype, array, [(value.array, value.bound) for value in operands])
        return unbounded(array) if bound is None else Value(array, bound)

    def _bound(self, term: Term, dtype: DType, v: Array, operands: Sequence[tuple[Array, Array]]) -> Array | None:
        name = term.op.name.split(".")[1]
        if not v.size:
            return np.zeros(v.shape)
        if dtype.kind != "float":
            if dtype.kind == "complex":
                changed: Array | None = changed_numbers(term, v, operands)
                return changed
            exact = not any(bool(e.any()) for _, e in operands) or whole(term, operands)
            return np.zeros(v.shape) if exact else None
        rule = BOUNDS.get(name)
        own = None if rule is None else rule(term, form(dtype), v, operands)
        if own is None:
            return None
        bound = np.asarray(own, np.float64) * ROUND_UP
        bound = np.where(np.isnan(bound), np.inf, np.broadcast_to(bound, v.shape))
        return at_infinity(name, term, form(dtype), v, bound, operands)


# ---------------------------------------------------------------- terms of constants


def made_of_constants(term: Term) -> bool:
    """Whether all leaves are constants or counts, and the type is a static tensor."""
    if not isinstance(term.type, TensorType) or term.type.static is None:
        return False
    parts = below([term])
    if any(each.op.has("distributed") or each.op.has("effect") or each.op.has("hinted") for each in parts):
        return False
    return all(each.op.name in LEAVES for each in parts if not each.operands)


def moves_alone(term: Term) -> bool:
    """Whether nothing in a term computes."""
    return all(each.op.has("movement") or each.op.name in LEAVES for each in below([term]))


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
