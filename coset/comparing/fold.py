"""Build-time evaluation: what an extracted program computes from constants alone is computed once and kept as a constant."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from math import prod
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from coset.backends.onnxruntime import LIBRARIES, Feed, evaluate_opaque, node_values
from coset.comparing.noise import wide
from coset.comparing.worker import WORKER, RequestLost
from coset.dialects.hub.hints import evaluate_hinted, is_sharding
from coset.ir.builtin import HINTED
from coset.ir.constants import constant_of
from coset.ir.errors import CosetError
from coset.ir.evaluate import Fallback, describe, evaluate
from coset.ir.op import Array
from coset.ir.program_source import ProgramSource
from coset.ir.term import Term, constant, rebuild, topological
from coset.ir.types import TensorType
from coset.prove.budget import Budget, TooMuch
from coset.prove.error_bound import roundoff
from coset.rules.definition import evaluate_defined

T = TypeVar("T")
KNOWN = ("builtin.constant", "builtin.absent")  # values already
FEW = 16  # roundings of the largest element, up to which a runtime has computed the same constant
ONE_WAY = 0.125  # roundings for each summand, where all sums round one way: equal numbers one after the other, in eight lanes
COARSE = 2.0**-16  # ... of a type of fewer digits one
LARGE = 1 << 22  # bytes for which threads are begun
OPERATIONS = 1 << 36  # for one constant, as `coset.prove.budget` counts them: a minute at most; what takes more is left to the runtime
SECONDS = 60.0  # for what a runtime computes of constants: in a process of its own, so long at most
LOST: WeakKeyDictionary[Term, str] = WeakKeyDictionary()  # constants that a runtime died of, or was late with, and how: never asked again


def fallback_for(source: ProgramSource | None, seconds: float = SECONDS) -> Fallback:
    """Values of terms whose op has no NumPy meaning of its own: its definition's, of a hinted one its op's, or, of an opaque one, its
    foreign runtime's, which has so many seconds, in a process of its own. `coset.comparing.worker.Lost`: it is late there, or dies."""
    run = partial(_node_apart, seconds)

    def value(term: Term, arrays: Sequence[Any]) -> Any:
        if term.op is HINTED:
            return evaluate_hinted(term, arrays)
        if is_sharding(term):
            return arrays[0]
        return evaluate_opaque(term, arrays, source, run) if term.op.has("foreign") else evaluate_defined(term, arrays)

    return value


def fallback_of_constants(source: ProgramSource | None, seconds: float = SECONDS) -> Fallback:
    """`fallback_for` what is computed from constants alone: a node that its runtime was lost with is not tried again."""
    run = fallback_for(source, seconds)

    def value(term: Term, arrays: Sequence[Any]) -> Any:
        if term in LOST:
            raise RequestLost(LOST[term])
        if is_sharding(term):
            raise CosetError("what is said of a value on devices stays in the program")
        try:
            return run(term, arrays)
        except RequestLost as error:
            LOST[term] = error.message
            raise

    return value


def lost_among(terms: Iterable[Term]) -> dict[Term, str]:
    """Those of some terms that a runtime was lost with, and how."""
    return {term: LOST[term] for term in terms if term in LOST} if LOST else {}


def apart(work: Callable[..., T], *given: Any, seconds: float, doing: str) -> T:
    """`work(*given)` of a function of a module that runs models, in the process for that.

    Raises:
        CosetError: as the work does. Lost: it did not end in `seconds`, or its process died.
    """
    result: T = WORKER.ask(_with_libraries, tuple(LIBRARIES), work, *given, seconds=seconds, doing=doing)
    return result


def _with_libraries(libraries: Sequence[str], work: Callable[..., T], *given: Any) -> T:
    LIBRARIES[:] = libraries  # which may have come after this process was forked
    return work(*given)


def _node_apart(seconds: float, model: bytes, feed: Feed) -> list[Any]:
    return apart(_run, model, dict(feed), seconds=seconds, doing="computing a node alone")


def _run(model: bytes, feed: Feed) -> list[Any]:
    return node_values(model, feed)


Runtime = Callable[[Sequence[Term], ProgramSource | None, float], Mapping[Term, Array]]
"""What a runtime computes for constant terms of a program with this `source`, as far as it does within so many seconds; what it is lost
with is among the `LOST` then."""


def fold(
    roots: Sequence[Term], storable: AbstractSet[Term], source: ProgramSource | None, *, value_of: Callable[[Term], Term] | None = None,
    runtime: Runtime | None = None, exact: bool = False, seconds: float = SECONDS,
) -> tuple[tuple[Term, ...], int]:  # fmt: skip
    """`roots` with every largest subterm that is `storable` (constant and not too large: see `Selection`) replaced by its value, or by
    what `value_of` gives for it, and how many were. A broadcast of a constant stays: the printers make it implicit. So does what has no
    value here, a node that no definition fits, or would take too long (`OPERATIONS`), and what a runtime dies of or needs more `seconds`
    for (`LOST` says it): whoever runs the program computes it. Where a `runtime` is given and has a value that differs from the
    evaluator's by more than a few roundings, its value is taken; `exact`: where it has other bits the term stays.
    """
    order = list(topological(roots))
    replaced: dict[Term, Term] = {}
    values: dict[Term, Term] = {}
    known: dict[Term, Term] = {}
    if value_of is None:
        storable, known = _known_values(order, roots, storable, source, runtime, exact, seconds)

    def value(term: Term) -> Term:
        if term not in values:
            values[term] = _spread(term, known) if value_of is None else value_of(term)
        return values[term]

    count = 0
    for term in order:
        operands = [replaced[operand] for operand in term.operands]
        if term in storable:
            replaced[term] = term  # folded where an unknown term or a root uses it
            continue
        fresh = [value(o) if o in storable else r for o, r in zip(term.operands, operands, strict=True)]
        count += sum(a is not b for a, b in zip(fresh, operands, strict=True))
        replaced[term] = rebuild(term, fresh)
    results = []
    for root in roots:
        result = value(root) if root in storable else replaced[root]
        count += root in storable and result is not root
        results.append(result)
    return tuple(results), count


def _known_values(
    order: Sequence[Term], roots: Sequence[Term], storable: AbstractSet[Term], source: ProgramSource | None, runtime: Runtime | None,
    exact: bool, seconds: float,
) -> tuple[AbstractSet[Term], dict[Term, Term]]:  # fmt: skip
    """Which of the `storable` terms have a value here, and the values of the largest ones, those of the `runtime` where they count: what
    turns out to have none is left out, and the rest is asked for again."""
    fallback = fallback_of_constants(source, seconds)
    missing: AbstractSet[Term] = frozenset()
    done: dict[Term, Any] = {}
    while True:
        storable = storable - missing - _around(order, lost_among(order).keys())
        asked = _largest(order, roots, storable)
        try:
            known = _computed(asked, fallback, done)
        except Costly as error:
            missing = {*error.terms, *(term for term in asked if _base(term) in error.terms)}
            continue
        except RequestLost:
            continue
        except CosetError:
            missing = _without_value(asked, fallback)
            continue
        began = time.monotonic()
        given = {} if runtime is None else runtime(list(known), source, seconds)
        runtime = runtime if time.monotonic() - began < seconds else None  # late once: the evaluator has what is left
        if lost_among(known):
            continue
        apart = {term: array for term, array in given.items() if not _is_near(term, known[term], array, exact)}
        missing = _around(order, apart.keys()) if exact else frozenset()
        if not missing:
            return storable, known | {term: constant(constant_of(array, term.tensor.dtype)) for term, array in apart.items()}


def _largest(order: Sequence[Term], roots: Sequence[Term], storable: AbstractSet[Term]) -> list[Term]:
    """The `storable` terms that are read by others, or are roots."""
    read = [operand for term in order if term not in storable for operand in term.operands if operand in storable]
    return [*read, *(root for root in roots if root in storable)]


def _is_near(term: Term, value: Term, given: Array, exact: bool) -> bool:
    """Whether two values of a constant term have the same bits or, where they need not be exact, differ by roundings: of a sum that
    cancels, which are small beside its largest element. Then the evaluator's is as right as the runtime's, and has a certificate."""
    own = value.attribute("value").array()
    if exact or own.dtype.kind in "biuO":
        return bool(np.array_equal(own.reshape(-1).view(np.uint8), np.ascontiguousarray(given).reshape(-1).view(np.uint8)))
    with np.errstate(all="ignore"):
        left, right = (wide(array) for array in (own, given))
        finite = np.isfinite(left) & np.isfinite(right)
        step = roundoff(own.dtype)
        count = FEW + _summands(term) * ONE_WAY
        most = (count * step if step < COARSE else step) * float(np.max(np.abs(left), initial=0.0, where=finite))
        close = finite & (np.abs(left - right) <= most)
    return bool(np.all(close | (left == right) | (np.isnan(left) & np.isnan(right))))


def _summands(term: Term) -> float:
    """How many numbers the longest sum in a constant term has, at most: what an op reads for each element that it gives."""
    sums = []
    for each in topological([term]):
        sizes = [
            prod(one.type.static) for one in (each, *each.operands) if isinstance(one.type, TensorType) and one.type.static is not None
        ]
        if len(sizes) > 1:
            sums.append(max(sizes[1:]) / max(1, sizes[0]))
    return max(sums, default=0.0)


def _around(order: Sequence[Term], terms: AbstractSet[Term]) -> set[Term]:
    """Some terms with what is computed from them and what they are computed from: a runtime computes another thing where it has a part."""
    if not terms:
        return set()
    found = set(terms)
    for term in order:
        if any(operand in found for operand in term.operands):
            found.add(term)
    return found | {term for term in topological(list(terms)) if term.operands}


def computed(term: Term, fallback: Fallback) -> Term:
    """A constant `term` as its value, under the broadcasts that it ends in."""
    return _spread(term, _computed([term], fallback))


class Costly(CosetError):
    """Constant `terms` that would take too long to compute."""

    def __init__(self, terms: AbstractSet[Term]) -> None:
        super().__init__(f"`{describe(next(iter(terms)))}` is a constant that takes more than {OPERATIONS:.0e} operations to compute")
        self.terms = terms


def _computed(terms: Iterable[Term], fallback: Fallback, done: dict[Term, Any] | None = None) -> dict[Term, Term]:
    """The values of what is under the broadcasts that `terms` end in. Large ones are put in order and named on all processors: NumPy and
    the hashes let go of Python's lock there. `done`: values that were computed before, to which these are added.

    Raises:
        Costly: some take too long, the rest is `done`. CosetError: a term has no value.
    """
    inner = list(dict.fromkeys(base for term in terms if (base := _base(term)).op.name not in KNOWN))
    values, costly = {} if done is None else done, set[Term]()
    with np.errstate(all="ignore"):
        for term in inner:
            if term in values:
                continue
            try:
                with Budget(sys.maxsize, OPERATIONS).counting():
                    (values[term],) = evaluate([term], {}, fallback=fallback)
            except TooMuch:
                costly.add(term)
            except RequestLost as error:
                if not lost_among(topological([term])):  # it lies inside a function
                    LOST[term] = error.message
                raise
    if costly:
        raise Costly(costly)
    arrays = [values[term] for term in inner]
    dtypes = [term.tensor.dtype for term in inner]
    if sum(array.nbytes for array in arrays) < LARGE:
        constants = [*map(constant_of, arrays, dtypes)]
    else:
        with ThreadPoolExecutor(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None) as pool:
            constants = [*pool.map(constant_of, arrays, dtypes)]
    found: dict[Term, Term] = {}
    for term, value in zip(inner, constants, strict=True):
        found[term] = constant(value)
        if found[term].type != term.type:
            raise CosetError(f"`{describe(term)}` gives {found[term].type} where {term.type} is said to be its type")
    return found


def _without_value(terms: Sequence[Term], fallback: Fallback) -> set[Term]:
    """Which terms under `terms`, all of constants, have no value here: those that cannot be evaluated, and what is computed from them."""
    missing: set[Term] = set()
    known: dict[Term, Term] = {}
    for term in topological(terms):
        if any(operand in missing for operand in term.operands):
            missing.add(term)
            continue
        own = rebuild(term, [known[operand] for operand in term.operands])
        try:
            known[term] = own if term.op.name in KNOWN or not isinstance(own.type, TensorType) else computed(own, fallback)
        except CosetError:
            missing.add(term)
    return missing


def _base(term: Term) -> Term:
    while term.op.name == "stablehlo.broadcast_in_dim":
        term = term.operands[0]
    return term


def _spread(term: Term, known: Mapping[Term, Term]) -> Term:
    """`term` over the value that is known of what it spreads."""
    if term.op.name == "stablehlo.broadcast_in_dim":
        return rebuild(term, [_spread(term.operands[0], known)])
    return term if term.op.name in KNOWN else known[term]
