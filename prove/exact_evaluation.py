"""The exact evaluation of terms: real arithmetic with IEEE's infinities, NaN and signed zeros in which nothing rounds or overflows.

It is approximated in f64, with running error bounds: every float type of a term becomes f64, and a written conversion to a type that does
not hold every value of its source rounds as it says, unless it is how the definition of an op stores its result. Numbers that a rule
computes count exactly. Where f64 itself overflowed or lost a number on the way (`lost`) the values say nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from coset.dialects.expansion import expanded
from coset.ir.constants import Constant, constant_of
from coset.ir.op import Array
from coset.ir.term import CONSTANT, GET, Region, Term, constant, make, rebuild, topological
from coset.ir.types import DTYPES, DType, TensorType, TupleType, Type, dtype_of
from coset.prove.error_bound import evaluate_bounded
from coset.rules.functions import FUNCTIONS

WIDE = {"float": DTYPES["f64"], "complex": DTYPES["c128"]}
Numbers = Mapping[Term, Decimal]  # constants with the numbers that they are the roundings of
LOSSLESS = FUNCTIONS["lossless"].compute
_REFUSED = ("stablehlo.rng", "stablehlo.rng_bit_generator")
# ops that may make an infinity of finite numbers, and what is 0 there
_POLES = {"divide": 1, "remainder": 1, "rsqrt": 0, "log": 0, "power": 0}
_OTHER_POLES = frozenset(
    {"log_plus_one", "atanh", "erf_inv", "lgamma", "digamma", "polygamma", "zeta", "tan", "reduce_precision", "convert"}
)
_VANISHING = frozenset({"multiply", "divide", "exponential", "power", "logistic", "erfc", "rsqrt", "dot_general", "convolution"})


class Narrow(Exception):
    """A term that has no exact evaluation: its numbers are drawn, or of a type that is no plain number."""


@dataclass(frozen=True)
class ExactValues:
    """The values of a term's exact evaluation, with a bound of what f64 is off."""

    value: Array
    bound: Array


def exact(root: Term, inputs: Mapping[str, Array], numbers: Numbers, *, real: bool = False) -> ExactValues:
    """The exact evaluation of `root` on these inputs; where it is about `real` numbers conversions do not round.

    Raises:
        Narrow: it has none.
    """
    (wide,) = widened([root], numbers, real=real)
    value, bound = evaluate_bounded(wide, wide_inputs(inputs), rounds=False)
    return ExactValues(value, np.broadcast_to(bound, np.shape(value)))


def wide_inputs(inputs: Mapping[str, Array]) -> dict[str, Array]:
    """The same numbers in f64."""
    return {name: _wide_array(array) for name, array in inputs.items()}


def _wide_array(array: Array) -> Array:
    if array.dtype.kind == "c":
        return array.astype(np.complex128)
    return array.astype(np.float64) if array.dtype.kind not in "biuO" and dtype_of(array.dtype).kind == "float" else array


def widened(roots: Sequence[Term], numbers: Numbers, *, real: bool = False, around: bool = False) -> list[Term]:
    """`roots` with definitions opened, f64 in the place of every float type, and conversions that round as ops of their own, unless all
    numbers are `real`. Opaque nodes have no exact evaluation: it goes `around` them, which compute in their own types, where it may.

    Raises:
        Narrow: an op draws numbers, a type is no plain number, or a node is opaque.
    """
    results: set[Term] = set()
    opened = expanded(roots, lambda _: False, results)
    return _widened(opened, _Sense(numbers, real, results - set(roots), around))


@dataclass(frozen=True)
class _Sense:
    """What counts: the exact numbers of constants, whether all numbers are real, the results of ops that were opened, and whether opaque
    nodes compute in their own types."""

    numbers: Numbers
    real: bool
    results: Set[Term]
    around: bool


def _widened(roots: Sequence[Term], sense: _Sense) -> list[Term]:
    done: dict[Term, Term] = {}
    for term in topological(roots):
        done[term] = _wide(term, [done[operand] for operand in term.operands], sense)
    return [done[root] for root in roots]


def _wide(term: Term, operands: Sequence[Term], sense: _Sense) -> Term:
    opaque = term.op.has("foreign")
    if term.op.name in _REFUSED or (opaque and not sense.around):
        raise Narrow(term.op.name)
    if opaque:
        own = [_narrowed(x, operand.type) for x, operand in zip(operands, term.operands, strict=True)]
        return _plain(rebuild(term, own))
    if term.op is CONSTANT:
        return _number(term, sense.numbers)
    if term.op.name == "stablehlo.convert":
        source, target = term.operands[0].tensor.dtype, term.tensor.dtype
        stored = term in sense.results and source.kind == target.kind == "float"
        return _converted(operands[0], source, target, sense.real or stored)
    if term.op.name == "stablehlo.bitcast_convert":
        plain = _cast(operands[0], term.operands[0].tensor.dtype)
        return _cast(make(term.op, (plain,), dict(term.attributes)), _type(term.tensor.dtype))
    attributes = {name: _attribute(value) for name, value in term.attributes}
    made = make(term.op, operands, attributes, tuple(_region(region, sense) for region in term.regions))
    return _plain(made) if term.op is GET else made  # a part of what an opaque node gives


def _narrowed(x: Term, type: Type) -> Term:
    """A wide operand in its own type again."""
    return _cast(x, type.dtype) if isinstance(type, TensorType) else x


def _plain(x: Term) -> Term:
    """A value in the wide type of its kind, where it has one type."""
    return _cast(x, _type(x.tensor.dtype)) if isinstance(x.type, TensorType) else x


def _number(term: Term, numbers: Numbers) -> Term:
    value: Constant = term.attribute("value")
    number = numbers.get(term)
    if number is None:
        wide = _type(value.type.dtype)
        return term if wide == value.type.dtype else constant(constant_of(value.array().astype(wide.numpy), wide))
    nearest = constant(constant_of(np.asarray(float(number)), DTYPES["f64"]))
    if Decimal(float(number)) == number:
        return nearest
    return make(
        "stablehlo.multiply", (nearest, constant(constant_of(np.asarray(1.0), DTYPES["f64"])))
    )  # whose bound is that of the rounding


def _converted(x: Term, source: DType, target: DType, plain: bool) -> Term:
    """The conversion from `source` to `target` of the wide `x`, which rounds unless it is `plain`."""
    if _type(target) == target and target.kind not in WIDE:
        return _cast(x, target)
    if _keeps(source, target) or (plain and source.kind in ("float", "int", "uint")):
        return _cast(x, _type(target))
    return _cast(_cast(x, target), _type(target))


def _keeps(source: DType, target: DType) -> bool:
    """Whether a type holds every value of another one: to the rules it does not of floats of 8 bits, which f32 and f64 do hold."""
    narrow = source.kind == "float" and source.bits <= 8 and target.name in ("f32", "f64")
    return narrow or bool(LOSSLESS(source, target))


def _cast(x: Term, dtype: DType) -> Term:
    return x if x.tensor.dtype == dtype else make("stablehlo.convert", (x,), {"dtype": dtype})


def _region(region: Region, sense: _Sense) -> Region:
    ends = _widened((*region.parameters, *region.results), sense)
    return Region(tuple(ends[: len(region.parameters)]), tuple(ends[len(region.parameters) :]))


def _attribute(value: Any) -> Any:
    if isinstance(value, DType):
        return _type(value)
    if isinstance(value, TensorType):
        return TensorType(_type(value.dtype), value.shape)
    if isinstance(value, TupleType):
        return TupleType(tuple(_attribute(item) for item in value.items))
    if isinstance(value, Constant):
        wide = _type(value.type.dtype)
        return value if wide == value.type.dtype else constant_of(value.array().astype(wide.numpy), wide)
    return tuple(_attribute(item) for item in value) if type(value) is tuple else value


def _type(dtype: DType) -> DType:
    if dtype.kind in ("float", "complex"):
        return WIDE[dtype.kind]
    if dtype.kind not in ("int", "uint", "bool", "string"):
        raise Narrow(str(dtype))
    return dtype


def lost(roots: Sequence[Term], inputs: Mapping[str, Array], numbers: Numbers, *, real: bool) -> bool:
    """Whether a number left the range of f64 on the way to `roots`: an infinity of finite numbers, or a 0 of others."""
    values: dict[Term, Any] = {}
    wide = wide_inputs(inputs)
    ends = widened(roots, numbers, real=real)
    with np.errstate(all="ignore"):
        for term in topological(ends):
            operands = [values[operand] for operand in term.operands]
            if term.op.name == "builtin.input":
                values[term] = wide[term.attribute("name")]
                continue
            if term.op.name == "builtin.absent":
                values[term] = None
                continue
            if term.op.name == "builtin.tuple":
                values[term] = tuple(operands)
                continue
            assert term.op.meaning is not None
            values[term] = term.op.meaning(term, operands, {})
            if _left_the_range(term, operands, values[term], vanishes=term not in ends):
                return True
    return False


def _left_the_range(term: Term, operands: Sequence[Any], value: Any, *, vanishes: bool) -> bool:
    """Whether a value is infinite, or 0 where that counts as one that `vanishes`, only because f64 has no such number."""
    name = term.op.name.removeprefix("stablehlo.")
    floats = [np.asarray(x) for x in operands if isinstance(x, np.ndarray | np.generic) and np.asarray(x).dtype.kind in "fc"]
    if isinstance(value, tuple) or not floats or np.asarray(value).dtype.kind not in "fc" or term.op.has("movement"):
        return False
    array = np.asarray(value)
    if name in ("reduce", "reduce_window") and not floats[0].size:
        return False  # the extreme of nothing is infinite and was not computed
    if overflows(name, array, [(bool(np.isfinite(x).all()), bool((x == 0).any())) for x in floats]):
        return True
    if name not in _VANISHING or not vanishes:  # a result that is next to nothing differs from others as 0 does
        return False
    small = (np.abs(array) < np.finfo(np.float64).tiny) & np.isfinite(array)
    if name in ("dot_general", "convolution"):
        return bool((small & (array != 0)).any())
    shapes = [x for x in floats if x.shape in ((), array.shape)]
    whole = np.logical_and.reduce([np.broadcast_to((x != 0) & np.isfinite(x), array.shape) for x in shapes])
    return bool((small & (whole if name in ("multiply", "divide") else np.isfinite(np.broadcast_to(shapes[0], array.shape)))).any())


def overflows(name: str, value: Array, operands: Sequence[tuple[bool, bool]]) -> bool:
    """Whether a value of the op is infinite only because f64 has no such number. `operands`: of each float one whether all are finite, and
    whether there is a 0."""
    if np.isfinite(value).all() or not all(finite for finite, _ in operands) or name in _OTHER_POLES:
        return False
    place = _POLES.get(name)
    if place is not None and operands[min(place, len(operands) - 1)][1]:
        return False
    return not (np.isnan(value).any() and not np.isinf(value).any() and place is None and name in _UNDEFINED)


_UNDEFINED = frozenset({"sqrt", "asin", "acos", "acosh", "sine", "cosine", "power", "log"})  # NaN of numbers out of their domain
