"""Kernels with other names for buffers, scalars with others in place of results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from coset.lowering.kernels.kernel import (
    Attention,
    Chain,
    Choose,
    ColumnFold,
    Computed,
    Grouped,
    Kernel,
    Library,
    Load,
    Plan,
    Product,
    Recurrence,
    Result,
    Rows,
    Scalar,
    ScalarOp,
    Scan,
    Scatter,
    Sort,
    Statistics,
    Store,
    scalars,
    values_of,
)


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


Stored = Callable[[tuple[Store, ...]], tuple[Store, ...]]


def mapped_kernel(kernel: Computed, load: Callable[[Load], Load], store: Callable[[Store], Store]) -> Computed:
    """`kernel` with other loads, and stores in other places. A choice between one element and itself is that element."""
    done: dict[int, Scalar] = {}
    for value in scalars(*values_of(kernel)):
        now = load(value) if isinstance(value, Load) else over(value, done)
        done[id(value)] = now.inside if isinstance(now, Choose) and isinstance(now.inside, Load) and now.inside == now.outside else now

    def stored(stores: tuple[Store, ...]) -> tuple[Store, ...]:
        return tuple(replace(store(each), value=done[id(each.value)]) for each in stores)

    kernel = replace(kernel, picks=tuple(replace(pick, value=done[id(pick.value)]) for pick in kernel.picks))
    if isinstance(kernel, Rows):
        folds = tuple(replace(fold, value=done[id(fold.value)]) for fold in kernel.folds)
        return replace(kernel, folds=folds, row_stores=stored(kernel.row_stores), element_stores=stored(kernel.element_stores))
    if isinstance(kernel, Recurrence):
        return _mapped_recurrence(kernel, done, stored)
    if isinstance(kernel, Scan):
        return replace(kernel, value=done[id(kernel.value)], stores=stored(kernel.stores))
    if isinstance(kernel, Sort):
        values = tuple(done[id(value)] for value in kernel.values)
        return replace(kernel, key=done[id(kernel.key)], values=values, stores=stored(kernel.stores))
    if isinstance(kernel, Scatter):
        base, key, value = (done[id(side)] for side in (kernel.base, kernel.key, kernel.value))
        return replace(kernel, base=base, key=key, value=value, stores=stored(kernel.stores))
    if isinstance(kernel, Grouped):
        key, lhs, rhs = (done[id(side)] for side in (kernel.key, kernel.lhs, kernel.rhs))
        return replace(kernel, key=key, lhs=lhs, rhs=rhs, stores=stored(kernel.stores))
    if isinstance(kernel, Product):
        return replace(kernel, lhs=done[id(kernel.lhs)], rhs=done[id(kernel.rhs)], stores=stored(kernel.stores))
    if isinstance(kernel, Attention):
        query, key, score, value = (done[id(side)] for side in (kernel.query, kernel.key, kernel.score, kernel.value))
        return replace(kernel, query=query, key=key, score=score, value=value, stores=stored(kernel.stores))
    if isinstance(kernel, Statistics | Chain):
        return _mapped_chain(kernel, done, stored)
    return replace(kernel, stores=stored(kernel.stores))


def _mapped_recurrence(kernel: Recurrence, done: Mapping[int, Scalar], stored: Stored) -> Recurrence:
    steps = tuple(
        replace(step, value=done[id(step.value)])
        if isinstance(step, ColumnFold)
        else replace(step, lhs=done[id(step.lhs)], rhs=done[id(step.rhs)])
        for step in kernel.steps
    )
    states = tuple(replace(state, start=done[id(state.start)], next=done[id(state.next)]) for state in kernel.states)
    rounds, last = stored(kernel.round_stores), stored(kernel.last_stores)
    return replace(kernel, steps=steps, states=states, round_stores=rounds, last_stores=last)


def _mapped_chain(kernel: Statistics | Chain, done: Mapping[int, Scalar], stored: Stored) -> Statistics | Chain:
    dots = tuple(replace(dot, lhs=done[id(dot.lhs)], rhs=done[id(dot.rhs)]) for dot in kernel.dots)
    if isinstance(kernel, Statistics):
        slopes = tuple(replace(slope, value=done[id(slope.value)]) for slope in kernel.slopes)
        return replace(kernel, dots=dots, score=done[id(kernel.score)], slopes=slopes, stores=stored(kernel.stores))
    sums = tuple(replace(each, weight=done[id(each.weight)], value=done[id(each.value)]) for each in kernel.sums)
    return replace(kernel, dots=dots, sums=sums, stores=stored(kernel.stores))


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
