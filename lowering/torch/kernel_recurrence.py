"""Kernels that go through rounds as torch."""

from __future__ import annotations

from coset.lowering.kernels.kernel import (
    ColumnFold,
    Dot,
    Loop,
    Recurrence,
    Scalar,
    State,
    Store,
    dims_in,
    scalars,
)
from coset.lowering.planning.kinds import wide
from coset.lowering.torch.contractions import identity_text
from coset.lowering.torch.dims import tuple_text
from coset.lowering.torch.dtypes import narrowed
from coset.lowering.torch.elementwise import converted
from coset.lowering.torch.kernel_writer import KernelWriter, names_in


def write_recurrence(writer: KernelWriter, kernel: Recurrence) -> None:
    """Round after round, each over all rows."""
    turning = {kernel.round.name}
    later = []
    for pick in kernel.picks:
        if turning & {name for value in scalars(pick.value) for dim in dims_in(value) for name in names_in(dim)}:
            turning.add(pick.name)
            later.append(pick)
    writer.begin((*kernel.rows, *kernel.columns, *kernel.depth), later=later)
    for state in kernel.states:
        writer.lines.append(f"{state.name} = {_state(writer, kernel, state, state.start)}")
        writer.results[state.name] = state.name
    for dot in kernel.dots:
        writer.matrix(f"{dot.name}_matrix", dot.rhs, (), kernel.depth, kernel.columns, wide(dot.dtype))
    outside, writer.lines = writer.lines, []
    writer.names[kernel.round.name] = "step"
    for pick in later:
        writer.names[pick.name] = writer.value(pick.value)
    for step in kernel.steps:
        _step(writer, kernel, step)
    for store in kernel.round_stores:
        writer.store(store, _own(kernel, store))
    news = [_state(writer, kernel, state, state.next) for state in kernel.states]
    names = ", ".join(state.name for state in kernel.states)
    writer.lines += [f"{names} = {', '.join(news)}"] * bool(news)
    inside, writer.lines = writer.lines, outside
    writer.lines.append(f"for step in range({writer.dim(kernel.round.extent)}):")
    writer.lines += [f"    {line}" for line in inside or ["pass"]]
    writer.values.clear()
    for store in kernel.last_stores:
        writer.store(store, _own(kernel, store))


def _own(kernel: Recurrence, store: Store) -> tuple[Loop, ...]:
    names = {name for dim in store.index for name in names_in(dim)}
    return (*kernel.rows, *kernel.columns) if names & {loop.name for loop in kernel.columns} else kernel.rows


def _state(writer: KernelWriter, kernel: Recurrence, state: State, value: Scalar) -> str:
    """A state over its loops, rounded to its dtype."""
    own = (*kernel.rows, *kernel.columns) if state.wide else kernel.rows
    return f"torch.broadcast_to({narrowed(writer.value(value), state.dtype)}, {writer.ends(own)})"


def _step(writer: KernelWriter, kernel: Recurrence, step: ColumnFold | Dot) -> None:
    both = (*kernel.rows, *kernel.columns)
    if isinstance(step, ColumnFold):
        value = f"torch.broadcast_to({converted(writer.value(step.value), step.value.dtype, step.dtype)}, {writer.ends(both)})"
        axes = tuple_text(range(len(kernel.rows), len(both)))
        text = f"fold({value}, {axes}, {step.combiner!r}, {identity_text(step.combiner, step.dtype)})"
        writer.lines.append(f"{step.name} = {narrowed(f'{text}.reshape({writer.ends(kernel.rows)})', step.dtype)}")
    else:
        left = writer.matrix(f"{step.name}_left", step.lhs, (), kernel.rows, kernel.columns, wide(step.dtype))
        text = converted(f"({left} @ {step.name}_matrix)", wide(step.dtype), step.dtype)
        writer.lines.append(f"{step.name} = {text}.reshape({writer.ends(both)})")
    writer.results[step.name] = step.name
