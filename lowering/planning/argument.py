"""Reductions whose payload picks the place of the largest or smallest element, as two reductions that kernels fold.

Exporters of StableHLO write argmax as one reduction of values and places with a payload of comparisons and selects. Such a payload
depends on nothing but the order of its arguments, so that trying every order of two values (NaN, infinities and zeros of both signs among
them) and two places decides whether it is the one that is meant: that is a proof, not a test.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from coset.dialects.hub.tensors import identity
from coset.dialects.hub.terms import broadcast, is_splat, splat
from coset.ir.evaluate import region_function
from coset.ir.term import PARAMETER, TUPLE, Term, make, topological
from coset.ir.types import DType

_ORDERED = frozenset({"stablehlo.compare", "stablehlo.select", "stablehlo.and", "stablehlo.or", "stablehlo.not", "stablehlo.xor",
                      "chlo.is_nan"})  # fmt: skip
_COMBINERS = {"maximum": np.greater, "minimum": np.less}


def argument(term: Term) -> Term | None:
    """A reduction of (values, places along the reduced dim) to an extreme value and its first place as `maximum` (or `minimum`) and then
    the least of the places where it is; None for any other."""
    axes = term.attribute("dimensions")
    if len(term.operands) != 4 or len(axes) != 1:
        return None
    x, places, value, first = term.operands
    dtype, counted = x.tensor.dtype, places.tensor.dtype
    if places.op.name != "stablehlo.iota" or places.attribute("dimension") != axes[0] or dtype.kind not in ("float", "int", "uint"):
        return None
    combiner = next((word for word in _COMBINERS if _is_start(value, dtype, word) and _is_number(first, 0) and _picks(term, word)), None)
    if combiner is None:
        return None
    kept = tuple(axis for axis in range(x.tensor.rank) if axis not in axes)

    def spread(row: Term) -> Term:
        return broadcast(row, x.tensor.dims, kept)

    top = make("stablehlo.reduce", (x,), {"dimensions": axes, "combiner": combiner})
    hit = make("stablehlo.compare", (x, spread(top)), {"direction": "EQ"})
    if dtype.kind == "float":
        hit = make("stablehlo.or", (hit, make("stablehlo.compare", (x, x), {"direction": "NE"})))
    last = splat(_largest(counted), counted, x.tensor.dims)
    where = make("stablehlo.reduce", (make("stablehlo.select", (hit, places, last)),), {"dimensions": axes, "combiner": "minimum"})
    if not _has_elements(x, axes[0]):  # a row without elements has the place that it began with
        none = make("stablehlo.compare", (where, splat(_largest(counted), counted, where.tensor.dims)), {"direction": "EQ"})
        where = make("stablehlo.select", (none, splat(0, counted, where.tensor.dims), where))
    return make(TUPLE, [top, where])


def _has_elements(x: Term, axis: int) -> bool:
    dim = x.tensor.dims[axis]
    return isinstance(dim, int) and dim > 0


def _largest(dtype: DType) -> int:
    return int(np.iinfo(dtype.numpy).max)


def _is_number(term: Term, value: float) -> bool:
    found = is_splat(term)
    return found is not None and bool(found.array() == value)


def _is_start(term: Term, dtype: DType, combiner: str) -> bool:
    """True for the value that every other one takes the place of."""
    return _is_number(term, identity(combiner, dtype).item())


def _picks(term: Term, combiner: str) -> bool:
    """True where the payload gives the better of two values, NaN being the best, and of equal ones the left one's place."""
    (region,) = term.regions
    order = [inner for inner in topological(region.results) if inner.op is not PARAMETER]
    if len(region.parameters) != 4 or any(inner.op.name not in _ORDERED for inner in order):
        return False
    dtype, counted = (parameter.tensor.dtype for parameter in region.parameters[:2])
    some = {"float": [np.nan, -np.inf, -1.0, -0.0, 0.0, 1.0, np.inf], "int": [-2, 0, 1], "uint": [0, 1, 5]}[dtype.kind]
    values = np.array(some).astype(dtype.numpy)
    pairs = [(a, b, i, j) for a, b in product(values, values) for i, j in ((0, 0), (0, 1), (1, 2))]
    left, right, first, second = (np.array(column) for column in zip(*pairs, strict=True))
    payload = region_function(region, {})
    for a, b, i, j in zip(left, right, first.astype(counted.numpy), second.astype(counted.numpy), strict=True):
        value, place = payload(a, i, b, j)
        is_left = np.isnan(a) or (not np.isnan(b) and (_COMBINERS[combiner](a, b) or a == b))
        if place != (i if is_left else j) or not np.array_equal(value, a if is_left else b, equal_nan=True):
            return False
    return True
