"""Whether the right side of a rule stores less precise values than the left one (E in docs/numerics.md).

A value that the right side stores has at least as many significand bits as a left value of the same exact evaluation or, where there is
none, as the widest that the left side stores besides its inputs. What a type holds without rounding loses nothing. Ops that are made for
their precision are not opened.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from coset.dialects.expansion import expanded
from coset.dialects.hub.scalars import cast
from coset.ir.errors import CosetError
from coset.ir.evaluate import evaluate
from coset.ir.op import Array
from coset.ir.term import CONSTANT, INPUT, Term, topological
from coset.ir.types import DType, TensorType
from coset.prove.exact_evaluation import Narrow, Numbers, wide_inputs, widened
from coset.rules.definition import evaluate_defined

SAME = 1e-9  # of the largest element: values this near are of one exact evaluation
# ops that keep digits that their parts lose, and what they are opened into
PRECISE = {"log_plus_one": "log", "exponential_minus_one": "exponential", "erfc": "erf"}

STIR = 1 / 64  # of a number

WHOLE = frozenset({"floor", "ceil", "round_nearest_even", "round_nearest_afz", "remainder"})  # what they are the rest of is exact

SUMS = frozenset({"reduce", "reduce_window", "dot_general", "convolution"})


def lost_precision(pair: tuple[Term, Term], inputs: Mapping[str, Array], numbers: tuple[Numbers, Numbers]) -> str:
    """What the right side of an instance stores with fewer digits than the left one; empty where nothing is. Decided on `inputs`, which
    should be ordinary numbers."""
    opened = _opens(pair)
    if opened:
        return f"the right side opens `{opened}`, which is made for its precision"
    left, right = expanded(pair, keep=lambda _: False)
    if not any(_is_float(term) for term in topological((left, right))):
        return ""
    try:
        before, after = (_values(side, inputs, own) for side, own in zip((left, right), numbers, strict=True))
    except Narrow:
        return ""
    computed = [bits(term.tensor.dtype) for term in before if _computes(term)]
    widest = max(computed, default=0)
    moved = _moved(before, after, right)
    if moved:
        stirred = _stirred(inputs)  # numbers of a few bits have a mean of 0, or are those of another value, by chance
        again = (_values(side, stirred, own) for side, own in zip((left, right), numbers, strict=True))
        moved = _moved(next(again), next(again), right)
    return moved or _coarser(before, after, widest) or _coarser_of_long(left, right, inputs, numbers, widest)


def _coarser(before: Mapping[Term, Array], after: Mapping[Term, Array], widest: int) -> str:
    """What the right side rounds to a coarser type than the left side does, which computes in types of so many bits at most."""
    for term, value in after.items():
        dtype = term.tensor.dtype
        if term in before or not _computes(term) or _held(value, dtype) or not np.isfinite(value).any():
            continue  # it is there on the left, or nothing is rounded
        same = [bits(other.tensor.dtype) for other, seen in before.items() if _same(seen, value)]
        if bits(dtype) < (min(same) if same else widest):
            return f"the right side stores `{term.op.name}` in {dtype}, the left side the same value in a finer type"
    return ""


def _coarser_of_long(left: Term, right: Term, inputs: Mapping[str, Array], numbers: tuple[Numbers, Numbers], widest: int) -> str:
    """The same where integers that become floats have all the digits of their types: a coarse type holds products of short ones."""
    terms = topological((left, right))
    if not any(_base(term) == "convert" and _is_float(term) and not _is_float(term.operands[0]) for term in terms):
        return ""
    long = long_integers(inputs, np.random.default_rng(0))
    try:
        before, after = (_values(side, long, own) for side, own in zip((left, right), numbers, strict=True))
    except CosetError:  # an index that is none
        return ""
    return _coarser(before, after, widest)


def long_integers(inputs: Mapping[str, Array], generator: np.random.Generator) -> dict[str, Array]:
    """The inputs with integers of all the digits of their types, with the signs that they have; other inputs as they are."""

    def long(values: Array) -> Array:
        if values.dtype.kind not in "iu":
            return values
        most = min(int(np.iinfo(values.dtype).max), 1 << 53)  # what f64 tells apart
        drawn = generator.integers(most // 2, most, values.shape, endpoint=True)
        return np.where(values < 0, -drawn, drawn).astype(values.dtype)

    return {name: long(value) for name, value in inputs.items()}


def _moved(before: Mapping[Term, Array], after: Mapping[Term, Array], right: Term) -> str:
    """What the right side computes of other numbers than the left one, though that is exact as it stands: a fraction, or a variance, whose
    numbers lie about their mean."""
    for term in topological([right]):
        if _base(term) not in WHOLE and not _is_cut(term):
            continue
        for operand in term.operands:
            if operand not in after or operand in before or not _computes(operand) or not np.isfinite(after[operand]).any():
                continue
            if not any(_same(seen, after[operand]) for seen in before.values()):
                return f"the right side moves something into `{_base(term)}`, which is exact as it stands"
    if _apart(before, after):
        return "the right side takes a fraction apart, which is exact as it stands"
    if any(_about_the_mean(*each, 3) for each in before.items()) and not any(_about_the_mean(*each, 2) for each in after.items()):
        return "the right side opens a variance about the mean, which is made for its precision"
    return ""


def _apart(before: Mapping[Term, Array], after: Mapping[Term, Array]) -> bool:
    """Whether a fraction of the left side (x - floor(x)) is none of the values of the right side, which has its whole part."""
    for term, value in before.items():
        rest = _fraction_of(term)
        if rest is None or not np.isfinite(value).any() or not np.any(value):
            continue
        whole = any(_base(each) == _base(rest) and each.operands == rest.operands for each in after)
        if whole and not any(_same(np.abs(seen), np.abs(value)) for seen in after.values()):
            return True
    return False


def _fraction_of(term: Term) -> Term | None:
    """The whole part that a difference takes from the number that it is of; None where it is another difference."""
    if _base(term) != "subtract":
        return None
    pairs = (term.operands, term.operands[::-1])
    return next((whole for number, whole in pairs if _base(whole) in WHOLE and whole.operands[0] is number), None)


def _is_cut(term: Term) -> bool:
    """Whether it is a conversion of a float to a whole number."""
    return _base(term) == "convert" and _is_float(term.operands[0]) and not _is_float(term)


def _about_the_mean(term: Term, value: Array, least: int) -> bool:
    """Whether values are differences from the mean along some of their axes that have at least so many elements."""
    if _base(term) != "subtract" or not np.isfinite(value).all() or not np.any(value):
        return False
    if not any(_base(each) in SUMS for each in topological([term])):  # numbers that happen to have no sum
        return False
    largest = np.abs(value).max()
    chosen = (axes for count in range(1, value.ndim + 1) for axes in itertools.combinations(range(value.ndim), count))
    counts = ((axes, math.prod(value.shape[axis] for axis in axes)) for axes in chosen)
    return any(np.abs(value.sum(axes)).max() <= SAME * largest * count for axes, count in counts if count >= least)


def _opens(pair: tuple[Term, Term]) -> str:
    """The op made for precision that only the left side has, while the right side has its parts."""
    before, after = (Counter(_names([side])) for side in pair)
    for fine, plain in PRECISE.items():
        if before[fine] > after[fine] and after[plain] > before[plain]:
            return fine
    return ""


def _names(roots: Sequence[Term]) -> list[str]:
    return [term.op.name.rpartition(".")[2] for term in topological(expanded(roots, keep=lambda term: _base(term) in PRECISE))]


def _base(term: Term) -> str:
    return term.op.name.rpartition(".")[2]


def bits(dtype: DType) -> int:
    """The significand bits of a float type, the leading one among them."""
    return int(ml_dtypes.finfo(dtype.numpy).nmant) + 1  # type: ignore[no-untyped-call]


def _is_float(term: Term) -> bool:
    return isinstance(term.type, TensorType) and term.type.dtype.kind == "float"


def _computes(term: Term) -> bool:
    return _is_float(term) and term.op is not INPUT and term.op is not CONSTANT and not term.op.has("movement")


def _values(root: Term, inputs: Mapping[str, Array], numbers: Numbers) -> dict[Term, Array]:
    """The exact evaluation of each float value on the way to `root`."""
    terms = [term for term in topological([root]) if _is_float(term)]
    with np.errstate(all="ignore"):
        found: list[Any] = evaluate(widened(terms, numbers), wide_inputs(inputs), fallback=evaluate_defined)
    return {term: np.asarray(value, np.float64) for term, value in zip(terms, found, strict=True)}


def _stirred(inputs: Mapping[str, Array]) -> dict[str, Array]:
    """The inputs with each number of a float moved by up to a 64th of itself, so that its sign, or that it is 0, stays."""
    generator = np.random.default_rng(0)
    wide = wide_inputs(inputs).items()  # where floats alone became f64
    return {name: value * generator.uniform(1 - STIR, 1 + STIR, value.shape) if value.dtype.kind == "f" else value for name, value in wide}


def _held(value: Array, dtype: DType) -> bool:
    """Whether the type holds the values as they are."""
    stored = np.asarray(cast(value, dtype)).astype(np.float64)
    return bool(np.array_equal(stored, value, equal_nan=True))


def _same(one: Array, other: Array) -> bool:
    """Whether two values have the same numbers in them, wherever they stand."""
    a, b = (np.unique(each[np.isfinite(each)]) for each in (one, other))
    if a.size != b.size or not a.size:
        return False
    return bool(np.abs(a - b).max() <= SAME * max(np.abs(a).max(), np.abs(b).max()))
