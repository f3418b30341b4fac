"""NumPy meanings of the hub's ops that call payload functions: general reductions, map, control flow, composites."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from coset.dialects.hub.payloads import Payload
from coset.ir.evaluate import Fallback, region_function
from coset.ir.op import Array
from coset.rules.definition import evaluate_defined

if TYPE_CHECKING:
    from coset.ir.term import Term

Binding = Mapping[str, int]
IN_ORDER = 4096  # so many elements are folded one after the other; more of them in pairs, in order


def _result(values: Sequence[Any]) -> Any:
    return values[0] if len(values) == 1 else tuple(values)


def reduce_region(term: Term, arrays: Sequence[Array], binding: Binding, fallback: Fallback | None = None) -> Any:
    """The body over the reduced elements in row-major order from the init values, all results at once. More than 4096 of them are
    folded in neighbouring pairs: equal for an associative body, and no other has a defined result."""
    count, axes = len(arrays) // 2, term.attribute("dimensions")
    body = Payload(term.regions[0], binding, fallback)
    rank = arrays[0].ndim
    kept = [axis for axis in range(rank) if axis not in axes]
    shape = tuple(arrays[0].shape[axis] for axis in kept)
    depth = prod(arrays[0].shape[axis] for axis in axes)
    lines = [np.ascontiguousarray(x.transpose(*axes, *kept).reshape(depth, *shape)) for x in arrays[:count]]
    while depth > IN_ORDER:
        even, last = depth // 2 * 2, [line[depth // 2 * 2 :] for line in lines]
        paired = body(*(line[0:even:2] for line in lines), *(line[1:even:2] for line in lines))
        lines = [np.concatenate([pair, rest]) for pair, rest in zip(paired, last, strict=True)]
        depth = len(lines[0])
    totals: list[Array] = [np.broadcast_to(init, shape) for init in arrays[count:]]
    for k in range(depth):
        totals = body(*totals, *(line[k] for line in lines))
    return _result([np.array(total) for total in totals])


def map_(term: Term, arrays: Sequence[Array], binding: Binding, fallback: Fallback | None = None) -> Array:
    """The body of the operands' elements at each position."""
    (result,) = Payload(term.regions[0], binding, fallback)(*arrays)
    return np.array(result)


def if_(term: Term, arrays: Sequence[Any], binding: Binding, fallback: Fallback | None = None) -> Any:
    """The first region where the predicate is true, else the second one."""
    return _branch(term, 0 if arrays[0] else 1, arrays[1:], binding, fallback)


def case(term: Term, arrays: Sequence[Any], binding: Binding, fallback: Fallback | None = None) -> Any:
    """The region of the index, the last one for an index out of range."""
    last, index = len(term.regions) - 1, int(arrays[0])
    return _branch(term, index if 0 <= index <= last else last, arrays[1:], binding, fallback)


def _branch(term: Term, number: int, captured: Sequence[Any], binding: Binding, fallback: Fallback | None) -> Any:
    return _result(region_function(term.regions[number], binding, fallback or evaluate_defined)(*captured))


def while_(term: Term, arrays: Sequence[Any], binding: Binding, fallback: Fallback | None = None) -> Any:
    """The state, sent through the second region as long as the first one is true of it."""
    condition, body = (region_function(region, binding, fallback or evaluate_defined) for region in term.regions)
    state = list(arrays)
    while condition(*state)[0]:
        state = body(*state)
    return _result(state)


def composite(term: Term, arrays: Sequence[Any], binding: Binding, fallback: Fallback | None = None) -> Any:
    """The decomposition of the operands."""
    return _branch(term, 0, arrays, binding, fallback)
