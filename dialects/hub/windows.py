"""NumPy meanings of the hub's ops over windows: reduce_window, and the scatter of what a window selects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from coset.dialects.hub.payloads import WORDS, Payload, accumulator
from coset.dialects.hub.scalars import COMPARISONS, narrow, widen
from coset.dialects.hub.scattering import combined
from coset.dialects.hub.tensors import identity, padded
from coset.ir.evaluate import Fallback
from coset.ir.op import Array
from coset.ir.types import dtype_of

if TYPE_CHECKING:
    from coset.ir.term import Term

Binding = Mapping[str, int]


def _prepared(term: Term, x: Array, value: object) -> Array:
    """`x` with `value` between its elements and around them."""
    low, high = ([pair[side] for pair in term.attribute("padding")] for side in (0, 1))
    return padded(x, value, low, high, [gap - 1 for gap in term.attribute("base_dilations")])


def _count(size: int, window: int, stride: int, dilation: int) -> int:
    reach = (window - 1) * dilation + 1
    return (size - reach) // stride + 1 if size >= reach else 0


def _counts(term: Term, shape: Sequence[int]) -> list[int]:
    rows = (term.attribute(key) for key in ("window_dimensions", "window_strides", "window_dilations"))
    return [_count(*row) for row in zip(shape, *rows, strict=True)]


def reduce_window(term: Term, arrays: Sequence[Array], _: Binding) -> Array:
    """One dim after the other, which the combiner allows: sums of f32 and narrower floats are kept in f64 and rounded once."""
    combiner, dtype = term.attribute("combiner"), dtype_of(arrays[0].dtype)
    start = identity(combiner, dtype)
    x = _prepared(term, arrays[0], start)
    combine = WORDS[combiner]
    neutral = accumulator(start, combiner)
    with np.errstate(all="ignore"):
        folded = np.asarray(combine(neutral, accumulator(x, combiner)))  # from the identity: -0.0 + 0.0 is 0.0
        for axis, (window, stride, dilation) in enumerate(
            zip(*(term.attribute(key) for key in ("window_dimensions", "window_strides", "window_dilations")), strict=True)
        ):
            if (window, stride) != (1, 1):
                folded = _folded(folded, axis, window, stride, dilation, combine)
        return narrow(folded, dtype)


def _folded(x: Array, axis: int, window: int, stride: int, dilation: int, combine: Callable[[Array, Array], object]) -> Array:
    """The windows of one dim folded: one element after the other, or for long windows by doubling, which combines log2(window) times."""
    count = _count(x.shape[axis], window, stride, dilation)

    def part(y: Array, first: int, number: int, step: int) -> Array:
        last = first + max(number - 1, 0) * step + min(number, 1)
        return np.asarray(y[(*(slice(None),) * axis, slice(first, last, step))])

    if window * count <= 2 * window.bit_length() * x.shape[axis]:
        near = part(x, 0, count, stride)
        for k in range(1, window):
            near = np.asarray(combine(near, part(x, k * dilation, count, stride)))
        return near
    total: Array | None = None
    done, width, run = 0, 1, x  # run[i] is the fold of `width` elements from i on
    while True:
        if window & width:
            piece = part(run, done * dilation, count, stride)
            total = piece if total is None else np.asarray(combine(total, piece))
            done += width
        if done == window:
            assert total is not None
            return total
        left = run.shape[axis] - width * dilation
        run = np.asarray(combine(part(run, 0, left, 1), part(run, width * dilation, left, 1)))
        width *= 2


def reduce_window_region(
    term: Term, arrays: Sequence[Array], binding: Binding, fallback: Fallback | None = None
) -> Array | tuple[Array, ...]:
    """The body over each window in row-major order from the init values, which are the padding too; all windows at once."""
    count = len(arrays) // 2
    inits = arrays[count:]
    inputs = [_prepared(term, x, init) for x, init in zip(arrays[:count], inits, strict=True)]
    shape = _counts(term, inputs[0].shape)
    body = Payload(term.regions[0], binding, fallback)
    totals = [np.broadcast_to(init, shape) for init in inits]
    for offset in _offsets(term.attribute("window_dimensions")):
        window = _steps(offset, shape, term.attribute("window_strides"), term.attribute("window_dilations"))
        totals = body(*totals, *(x[window] for x in inputs))
    results = tuple(np.array(total) for total in totals)
    return results[0] if count == 1 else results


def _offsets(window: Sequence[int]) -> Iterator[tuple[int, ...]]:
    return product(*map(range, window))


def _steps(offset: Sequence[int], counts: Sequence[int], strides: Sequence[int], dilations: Sequence[int]) -> tuple[Any, ...]:
    """The element at `offset` of every window."""
    rows = zip(offset, counts, strides, dilations, strict=True)
    return (*(slice(k * d, k * d + max(n - 1, 0) * s + min(n, 1), s) for k, n, s, d in rows), ...)


def select_and_scatter(term: Term, arrays: Sequence[Array], binding: Binding, fallback: Fallback | None = None) -> Array:
    """Each source element is combined into the operand position that `select` keeps of its window (the first one to begin with);
    a window that lies in the padding altogether scatters nothing. The result starts as the init value everywhere."""
    operand, source, init = arrays
    chosen = _selected(term, operand, source.shape, binding, fallback)
    whole = np.full(operand.shape, init, operand.dtype)
    hit = chosen >= 0
    region = term.regions[-1] if term.attribute("combiner") == "region" else None
    combine = None if region is None else Payload(region, binding, fallback)
    (result,) = combined([whole], chosen[hit], [source[hit]], term.attribute("combiner"), combine)
    return result


def _selected(term: Term, operand: Array, shape: Sequence[int], binding: Binding, fallback: Fallback | None) -> Array:
    """The flat operand position that each window keeps, -1 where it holds none."""
    window, strides = term.attribute("window_dimensions"), term.attribute("window_strides")
    keeps = _keeps(term, binding, fallback)
    values = widen(operand).reshape(-1) if term.attribute("select") != "region" else operand.reshape(-1)
    chosen = np.full(shape, -1, np.int64)
    steps = np.cumprod([1, *operand.shape[:0:-1]])[::-1] if operand.ndim else ()
    for offset in _offsets(window):
        inside: Array = np.ones((), np.bool_)
        position: Array = np.zeros((), np.int64)
        for axis, (size, step, k) in enumerate(zip(operand.shape, steps, offset, strict=True)):
            at = np.arange(shape[axis]) * strides[axis] + k - term.attribute("padding")[axis][0]
            at = at.reshape([-1 if i == axis else 1 for i in range(len(shape))])
            inside, position = inside & (at >= 0) & (at < size), position + at * step
        inside, position = (np.broadcast_to(a, shape) for a in (inside, position))
        fresh = inside & (chosen < 0)
        rival = inside & (chosen >= 0)
        replaced = np.zeros(shape, np.bool_)
        replaced[rival] = ~keeps(values[chosen[rival]], values[position[rival]])
        chosen = np.where(fresh | replaced, position, chosen)
    return chosen


def _keeps(term: Term, binding: Binding, fallback: Fallback | None) -> Callable[[Array, Array], Array]:
    """Whether the first of two values stays selected."""
    select = term.attribute("select")
    if select == "region":
        payload = Payload(term.regions[0], binding, fallback)
        return lambda a, b: payload(a, b)[0]
    return lambda a, b: np.asarray(COMPARISONS[select](a, b))
