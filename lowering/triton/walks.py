"""Walks through the scalars of a kernel: loads that are made for every element, and the dims that index arithmetic is about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from coset.ir.dims import Dim
from coset.lowering.kernels.addresses import address, places_of
from coset.lowering.kernels.kernel import Choose, Load, Plan, Scalar, Store, dims_in, operands_of


def moves(scalar: Scalar) -> bool:
    """True when `scalar` is an element of memory, chosen but not computed."""
    while isinstance(scalar, Choose):
        if not moves(scalar.inside):
            return False
        scalar = scalar.outside
    return isinstance(scalar, Load)


def scalars_under(scalar: Scalar) -> Iterator[Scalar]:
    """The scalars under `scalar`, operands before users; choices are leaves, as their sides have conditions of their own."""
    return _walk(scalar, choices=False)


def plain_loads(scalar: Scalar) -> list[Load]:
    """The loads under `scalar` that are made for every element: none that a choice may leave out."""
    return [item for item in scalars_under(scalar) if isinstance(item, Load)]


def _all_under(scalar: Scalar) -> Iterator[Scalar]:
    return _walk(scalar, choices=True)


def _walk(scalar: Scalar, *, choices: bool) -> Iterator[Scalar]:
    done: set[int] = set()
    stack: list[tuple[Scalar, bool]] = [(scalar, False)]
    while stack:
        item, ready = stack.pop()
        if id(item) in done:
            continue
        if ready:
            done.add(id(item))
            yield item
            continue
        stack.append((item, True))
        if choices or not isinstance(item, Choose):
            stack += [(operand, False) for operand in reversed(operands_of(item)) if id(operand) not in done]


def dims_of(scalars: Sequence[Scalar], stores: Sequence[Store], plan: Plan) -> list[Dim]:
    """Every dim that index arithmetic of these scalars and stores is about: addresses, bounds and index values."""
    found = [address(plan.buffers[store.buffer], store.index) for store in stores]
    for scalar in (*scalars, *(store.value for store in stores)):
        for item in _all_under(scalar):
            found += places_of(plan.buffers[item.buffer], item.index) if isinstance(item, Load) else dims_in(item)
    return found
