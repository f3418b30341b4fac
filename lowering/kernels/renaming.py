"""Kernels with other names for buffers, scalars with others in place of results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from coset.lowering.kernels.kernel import (
    Choose,
    Computed,
    Kernel,
    Library,
    Load,
    Plan,
    Result,
    Scalar,
    ScalarOp,
    Store,
    scalars,
    values_of,
    with_step_values,
    with_stores,
)

K = TypeVar("K", bound=Computed)


def replaced(value: Scalar, results: Mapping[str, Scalar]) -> Scalar:
    """`value` with scalars in place of the results of these names."""
    done: dict[int, Scalar] = {}
    for each in scalars(value):
        done[id(each)] = results.get(each.name, each) if isinstance(each, Result) else over(each, done)
    return done[id(value)]


def over(value: Scalar, done: Mapping[int, Scalar]) -> Scalar:
    """A scalar over what its operands have become."""
    if isinstance(value, ScalarOp):
        return replace(value, operands=tuple(done[id(operand)] for operand in value.operands))
    if isinstance(value, Choose):
        return replace(value, inside=done[id(value.inside)], outside=done[id(value.outside)])
    return value


def renamed_kernel(kernel: Kernel, names: Mapping[str, str]) -> Kernel:
    """`kernel` with other names for the buffers of `names`."""

    def of(name: str) -> str:
        return names.get(name, name)

    if isinstance(kernel, Library):
        operands = tuple(None if name is None else of(name) for name in kernel.operands)
        return replace(kernel, operands=operands, results=tuple(map(of, kernel.results)))
    return mapped_kernel(kernel, lambda load: replace(load, buffer=of(load.buffer)), lambda store: replace(store, buffer=of(store.buffer)))


def mapped_kernel(kernel: K, load: Callable[[Load], Load], store: Callable[[Store], Store]) -> K:
    """`kernel` with other loads, and stores in other places. A choice between one element and itself is that element."""
    done: dict[int, Scalar] = {}
    for value in scalars(*values_of(kernel)):
        now = load(value) if isinstance(value, Load) else over(value, done)
        done[id(value)] = now.inside if isinstance(now, Choose) and isinstance(now.inside, Load) and now.inside == now.outside else now

    def stored(stores: tuple[Store, ...]) -> tuple[Store, ...]:
        return tuple(replace(store(each), value=done[id(each.value)]) for each in stores)

    picks = tuple(replace(pick, value=done[id(pick.value)]) for pick in kernel.picks)
    return with_stores(with_step_values(replace(kernel, picks=picks), lambda value: done[id(value)]), stored)


def renamed(plan: Plan, names: Mapping[str, str]) -> Plan:
    """`plan` with other names for the buffers of `names`."""

    def of(name: str) -> str:
        return names.get(name, name)

    return replace(
        plan,
        buffers={of(name): replace(buffer, name=of(name)) for name, buffer in plan.buffers.items()},
        kernels=tuple(renamed_kernel(kernel, names) for kernel in plan.kernels),
        inputs=tuple((name, of(buffer)) for name, buffer in plan.inputs),
        outputs=tuple((name, of(buffer)) for name, buffer in plan.outputs),
        symbols={name: (of(buffer), axis) for name, (buffer, axis) in plan.symbols.items()},
        offsets={of(name): offset for name, offset in plan.offsets.items()},
        over={of(name): of(taken) for name, taken in plan.over.items()},
        held=tuple(replace(each, buffer=of(each.buffer)) for each in plan.held),
    )
