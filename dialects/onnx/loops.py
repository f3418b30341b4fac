"""Loops over the leading dim of tensors, as ONNX's recurrences and control flow mean them, as a `stablehlo.while`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from coset.dialects.hub.region_terms import while_term
from coset.dialects.hub.terms import reshape, splat
from coset.dialects.onnx import arithmetic as a
from coset.ir.dims import Dim
from coset.ir.term import PARAMETER, Term, get, make
from coset.ir.types import I32, TensorType, Type

Terms = Sequence[Term]
# (index, carried, elements of this step, captured) -> (carried, outputs of this step)
Step = Callable[[Term, Terms, Terms, Terms], tuple[Terms, Terms]]


def scan(
    step: Step,
    carried: Terms,
    consumed: Terms,
    captured: Terms,
    length: Dim,
    *,
    backward: Sequence[bool] = (),
    stacked: Sequence[bool] = (),
) -> tuple[list[Term], list[Term]]:  # fmt: skip
    """The carried values after `length` steps, and the outputs of each step stacked along a new leading dim.

    Step t gets element t of the leading dim of each of `consumed` (the last one first where `backward` says so); output i of step t
    becomes element t of its stack (element length - 1 - t where `stacked` says so). The loop's state is: t, the number of steps, the
    carried values, the stacks, `consumed` and `captured`.
    """
    backward = tuple(backward) or (False,) * len(consumed)
    outputs = _outputs(step, carried, consumed, captured)
    stacked = tuple(stacked) or (False,) * len(outputs)
    stacks = [splat(0, output.tensor.dtype, (length, *output.tensor.dims)) for output in outputs]
    if length == 0:
        return list(carried), stacks
    ends = (2, 2 + len(carried), 2 + len(carried) + len(stacks), 2 + len(carried) + len(stacks) + len(consumed))

    def body(*state: Term) -> list[Term]:
        index, count = state[:2]
        last = a.subtract(a.subtract(count, 1), index)
        values, piles, sources, constants = (list(state[low:high]) for low, high in zip(ends, (*ends[1:], len(state)), strict=True))
        elements = [element(x, last if turned else index) for x, turned in zip(sources, backward, strict=True)]
        new, results = step(index, values, elements, constants)
        grown = [placed(pile, x, last if turned else index) for pile, x, turned in zip(piles, results, stacked, strict=True)]
        return [a.add(index, 1), count, *new, *grown, *sources, *constants]

    state = [splat(0, I32, ()), a.counted(length, I32), *carried, *stacks, *consumed, *captured]
    loop = while_term(state, lambda *inner: a.compare(inner[0], "LT", inner[1]), body)
    results = [get(loop, index) for index in range(ends[2])]
    return results[2 : ends[1]], results[ends[1] :]


def _outputs(step: Step, carried: Terms, consumed: Terms, captured: Terms) -> Terms:
    """The outputs of one step over parameters: only their types count."""
    elements = [TensorType(x.tensor.dtype, x.tensor.dims[1:]) for x in consumed]
    types: list[Type] = [TensorType(I32, ()), *(x.type for x in carried), *elements, *(x.type for x in captured)]
    index, *rest = (make(PARAMETER, (), {"index": i, "type": type}) for i, type in enumerate(types))
    first, second = len(carried), len(carried) + len(consumed)
    return step(index, rest[:first], rest[first:second], rest[second:])[1]


def element(x: Term, index: Term) -> Term:
    """Element `index` (an i32 or i64 of rank 0) of the leading dim of `x`."""
    rest = x.tensor.dims[1:]
    starts = [index, *[splat(0, index.tensor.dtype, ())] * len(rest)]
    return reshape(make("stablehlo.dynamic_slice", (x, *starts), {"slice_sizes": (1, *rest)}), rest)


def placed(stack: Term, x: Term, index: Term) -> Term:
    """`stack` with `x` as element `index` of its leading dim."""
    starts = [index, *[splat(0, index.tensor.dtype, ())] * x.tensor.rank]
    return make("stablehlo.dynamic_update_slice", (stack, reshape(x, (1, *x.tensor.dims)), *starts))
