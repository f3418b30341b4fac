"""Running error bounds: the value of a term in its own arithmetic, with a bound of its distance from the real value.

First-order rules of Higham, *Accuracy and Stability of Numerical Algorithms* (2002), sections 2.2, 3.1 and 4.2: an operation adds
one unit of roundoff (four for library functions), a sum of n terms n of them, and an error of an operand is carried by
the operation itself, applied to the ends of the operand's interval. Where the bound says nothing it is infinite.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from coset.dialects.expansion import expanded
from coset.ir.op import Array
from coset.ir.term import CONSTANT, PARAMETER, Term, make, topological
from coset.ir.types import TensorType

LIBRARY_ULPS = 4.0  # NumPy's elementary functions are within 4 ulp of the truth (NumPy's own test limits)


def roundoff(dtype: Any) -> float:
    """The distance from 1 to the next number of a float dtype; 0 for exact ones."""
    kind = np.dtype(dtype)
    if kind.kind in "biu?":
        return 0.0
    if kind.kind == "c":
        return float(np.finfo(kind).eps)
    try:
        return float(ml_dtypes.finfo(kind).eps)  # type: ignore[no-untyped-call]
    except (ValueError, TypeError):
        return 0.0


def underflow(dtype: Any) -> float:
    """The smallest number of a float dtype, which is how far a result near 0 may be off; 0 for exact ones."""
    if np.dtype(dtype).kind == "c":
        return float(np.finfo(dtype).smallest_subnormal)
    return float(ml_dtypes.finfo(dtype).smallest_subnormal) if roundoff(dtype) else 0.0  # type: ignore[no-untyped-call]


def coarsest(roots: Sequence[Term]) -> float:
    """The roundoff of the coarsest float type in `roots`."""
    return max((roundoff(t.type.dtype.numpy) for t in topological(roots) if isinstance(t.type, TensorType)), default=0.0)


def evaluate_bounded(root: Term, inputs: Mapping[str, Array], *, rounds: bool = True) -> tuple[Array, Array]:
    """The value of `root` and, element by element, a bound of its error as f64; inputs and constants are exact.

    Unless a conversion `rounds`, its rounding is what the program says and no error.
    """
    values: dict[Term, Any] = {}
    errors: dict[Term, Any] = {}
    (primitive,) = expanded([root], keep=lambda _: False)
    with np.errstate(all="ignore"):
        for term in topological([primitive]):
            operands = [values[operand] for operand in term.operands]
            if term.op.name == "builtin.input":
                values[term] = inputs[term.attribute("name")]
            elif term.op.name == "builtin.absent":
                values[term] = None
            elif term.op.name in ("builtin.tuple", "builtin.get"):
                for table in (values, errors):
                    parts = [table[operand] for operand in term.operands]
                    table[term] = tuple(parts) if term.op.name == "builtin.tuple" else parts[0][term.attribute("index")]
                continue
            else:
                assert term.op.meaning is not None, f"{term.op.name} has no meaning"
                values[term] = term.op.meaning(term, operands, {})
            if not term.operands or values[term] is None:
                errors[term] = None if values[term] is None else np.zeros(np.shape(values[term]))
            else:
                errors[term] = _judged(term, operands, [errors[operand] for operand in term.operands], values[term], rounds)
    return np.asarray(values[primitive]), np.asarray(errors[primitive], np.float64)


def _judged(term: Term, operands: Sequence[Any], errors: Sequence[Any], value: Any, rounds: bool) -> Any:
    """The error of the value of an op."""
    if term.op.name == "stablehlo.map" and all(error is not None for error in errors):
        return _of_a_map(term, operands, errors, value, rounds)
    if term.op.name == "stablehlo.convert" and not rounds:
        return _carried(term, operands, errors, value)
    found = _error(term, operands, errors, value)
    return np.where(_overflows(operands, value), np.inf, found) if rounds and not isinstance(value, tuple) else found


def _overflows(operands: Sequence[Any], value: Any) -> Array:
    """Where a value is infinite though all operands are finite: how far it is off is not known."""
    floats = [operand for operand in operands if not isinstance(operand, tuple) and operand is not None and _is_float(operand)]
    if not floats or not _is_float(value) or not all(np.isfinite(_real(each)).all() for each in floats):
        return np.zeros(np.shape(value), bool)
    return np.isinf(_real(value))


def _of_a_map(term: Term, operands: Sequence[Any], errors: Sequence[Any], value: Any, rounds: bool) -> Any:
    """The error of a map: that of its function on whole arrays, where that has elementwise ops alone."""
    (region,) = term.regions
    (root,) = expanded(region.results, keep=lambda _: False)
    values: dict[Term, Any] = {}
    found: dict[Term, Any] = {}
    for each in topological([root]):
        if each.op is PARAMETER:
            values[each], found[each] = operands[each.attribute("index")], errors[each.attribute("index")]
            continue
        if each.op is not CONSTANT and (not each.op.has("elementwise") or each.op.meaning is None):
            return _error(term, operands, errors, value)
        own = [values[operand] for operand in each.operands]
        assert each.op.meaning is not None
        values[each] = each.op.meaning(each, own, {})
        spread = [np.broadcast_to(found[operand], np.shape(values[each])) for operand in each.operands]
        found[each] = _judged(each, own, spread, values[each], rounds) if own else np.zeros(np.shape(values[each]))
    return np.broadcast_to(found[root], np.shape(value))


def _error(term: Term, operands: Sequence[Any], errors: Sequence[Any], value: Any) -> Any:
    if isinstance(value, tuple) or _shifts_integers(term, operands, errors):
        parts = [part for error in errors for part in (error if isinstance(error, tuple) else (error,)) if part is not None]
        found = tuple(_vague(part, any(map(np.any, parts))) for part in (value if isinstance(value, tuple) else (value,)))
        return found if isinstance(value, tuple) else found[0]
    name, unit = term.op.name, roundoff(np.asarray(value).dtype)
    magnitude = np.abs(np.asarray(value, np.float64)) if np.asarray(value).dtype.kind != "c" else np.abs(value)
    magnitude = np.where(np.isinf(magnitude), 0.0, magnitude)  # an infinity does not round; a NaN that is computed has no bound
    if term.op.has("movement"):  # the errors move as the elements do; integers (indices, shapes) say where
        exact = np.asarray(value).dtype.kind in "biu"
        moved = [x if np.asarray(x).dtype.kind in "biu" else error for x, error in zip(operands, errors, strict=True)]
        return np.zeros(np.shape(value)) if exact else np.abs(_applied(term, moved))
    if name == "stablehlo.reduce":
        return _reduction_error(term, operands[0], errors[0], magnitude, unit)
    if name == "stablehlo.reduce_window":
        return _window_error(term, operands[0], errors[0], unit)
    if name in ("stablehlo.dot_general", "stablehlo.convolution"):
        a, b = (np.abs(_real(operand)) for operand in operands)
        count = 1 + max(1, int(np.prod(np.shape(operands[1]))))
        own = count * unit * _applied(term, [a, b])
        own = np.where(np.isfinite(np.asarray(value)), own, 0.0)
        return own + _applied(term, [a, errors[1]]) + _applied(term, [errors[0], b]) + _applied(term, [errors[0], errors[1]])
    if name == "stablehlo.compare":
        unsure = np.abs(_real(operands[0]) - _real(operands[1])) <= errors[0] + errors[1]
        return np.where(unsure & (errors[0] + errors[1] > 0), 1.0, 0.0)
    if name == "stablehlo.select":
        chosen = np.where(operands[0], errors[1], errors[2])
        gap = np.abs(_real(operands[1]) - _real(operands[2])) + np.maximum(errors[1], errors[2])
        return np.asarray(np.where(errors[0] > 0, gap, chosen))
    if not term.op.has("elementwise"):  # intervals of single operands say nothing of sums over many elements
        return _vague(value, any(error is not None and np.any(error) for error in errors))
    return _carried(term, operands, errors, value) + LIBRARY_ULPS * unit * magnitude + underflow(np.asarray(value).dtype)


def _shifts_integers(term: Term, operands: Sequence[Any], errors: Sequence[Any]) -> bool:
    """Whether an integer that may be another one goes into an op of which that says nothing: such errors are no roundings."""
    if term.op.name in ("stablehlo.compare", "stablehlo.select"):
        return False
    pairs = zip(operands, errors, strict=True)
    return any(error is not None and not _is_float(operand) and np.any(error) for operand, error in pairs)


def _vague(value: Any, moved: bool) -> Array:
    """No bound: infinite, but for integers that are made of what is exact."""
    return np.full(np.shape(value), np.inf if moved or _is_float(value) else 0.0)


def _is_float(value: Any) -> bool:
    return bool(roundoff(np.asarray(value).dtype))


def _reduction_error(term: Term, operand: Any, error: Any, magnitude: Array, unit: float) -> Array:
    combiner = term.attribute("combiner")
    axes = term.attribute("dimensions")
    count = int(np.prod([np.shape(operand)[axis] for axis in axes], initial=1))
    if combiner == "add":
        rounded = count * unit * np.sum(np.abs(_real(operand)), axis=axes)
        return np.asarray(np.sum(error, axis=axes) + np.where(np.isfinite(rounded), rounded, 0.0))  # an infinity does not round
    if combiner == "multiply":
        relative = np.sum(error / np.abs(_real(operand)), axis=axes)
        return np.asarray(np.nan_to_num(magnitude * (relative + count * unit), nan=np.inf))
    return np.max(error, axis=axes, initial=0.0)  # type: ignore[no-any-return]


def _window_error(term: Term, operand: Any, error: Any, unit: float) -> Array:
    """Of a sum the errors of its elements and their roundings; of an extreme at most the errors of all elements."""
    if term.attribute("combiner") not in ("add", "maximum", "minimum"):
        return np.full(np.shape(term.op.meaning(term, [operand], {})), np.inf)  # type: ignore[misc]
    sums = make(term.op.name, term.operands, {**dict(term.attributes), "combiner": "add"})
    count = int(np.prod(term.attribute("window_dimensions")))
    rounded = count * unit * _applied(sums, [np.abs(_real(operand))]) if term.attribute("combiner") == "add" else 0.0
    return np.asarray(_applied(sums, [error]) + rounded)


def _real(value: Any) -> Array:
    array = np.asarray(value)
    return array if array.dtype.kind == "c" else array.astype(np.float64)


def _applied(term: Term, arrays: Sequence[Any]) -> Array:
    """The op of `term` on f64 arrays, in its full precision."""
    assert term.op.meaning is not None
    wide = [array if np.asarray(array).dtype.kind in "biu" else np.asarray(array, np.float64) for array in arrays]
    return np.asarray(term.op.meaning(term, wide, {}), np.float64)


def _carried(term: Term, operands: Sequence[Any], errors: Sequence[Any], value: Any) -> Array:
    """What errors of the operands do to the value: the op at the ends of the interval of each operand in turn."""
    assert term.op.meaning is not None
    total = np.zeros(np.shape(value))
    for position, error in enumerate(errors):
        if error is None or not np.any(error) or np.asarray(operands[position]).dtype.kind in "biu?":
            continue
        worst = np.zeros(np.shape(value))
        for sign in (1.0, -1.0):
            moved = [_real(operand) if i != position else _real(operand) + sign * error for i, operand in enumerate(operands)]
            base = [_real(operand) for operand in operands]
            difference = np.abs(_real(term.op.meaning(term, moved, {})) - _real(term.op.meaning(term, base, {})))
            worst = np.maximum(worst, np.nan_to_num(np.asarray(difference, np.float64), nan=np.inf))
        worst = np.where(np.isnan(error), np.inf, worst)  # of a NaN that was computed: an integer of it does not show it
        total = total + 2.0 * worst  # the factor covers operands that move together, to first order
    return total
