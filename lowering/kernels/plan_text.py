"""A plan as text: buffers, then each kernel with its loops, loads, steps and stores, then why neighbours are apart."""

from __future__ import annotations

from coset.lowering.kernels.kernel import Buffer, Kernel, Library, Plan, values_of
from coset.lowering.kernels.kernel_text import KernelText, dim_words, dims_words


def show(plan: Plan) -> str:
    """The plan as text for people; equal plans give equal text."""
    lines = [_buffer(buffer, plan.offsets.get(buffer.name)) for buffer in plan.buffers.values()]
    lines += [f"arena {plan.arena} bytes"] if plan.arena else []
    lines += [f"output {name} = {buffer}" for name, buffer in plan.outputs if name != buffer]
    for place, kernel in enumerate(plan.kernels):
        lines += ["", *show_kernel(kernel), *_beside(plan, place)]
    lines += ["", *(f"apart {a} | {b}: {why}" for a, b, why in plan.apart)] if plan.apart else []
    lines += ["", *(f"note {note}" for note in plan.notes)] if plan.notes else []
    return "\n".join(lines) + "\n"


def _beside(plan: Plan, place: int) -> list[str]:
    if plan.streams is None:
        return []
    waits = ", ".join(plan.kernels[other].name for other in plan.streams.waits[place])
    return [f"  on stream {plan.streams.of[place]}{f' after {waits}' if waits else ''}"]


def _buffer(buffer: Buffer, offset: int | None) -> str:
    place = "" if offset is None else f" at {offset}"
    steps = "" if buffer.strides is None else f" strides ({dims_words(buffer.strides)})"
    steps += "" if buffer.order is None else f" in the order ({', '.join(map(str, buffer.order))})"
    shared = "" if buffer.packed is None else f" packed along {buffer.packed}"
    return f"{buffer.role} {buffer.name}: {buffer.dtype}[{dims_words(buffer.shape)}]{steps}{shared}{place}"


def show_kernel(kernel: Kernel) -> list[str]:
    """The lines of one kernel. A value that is used twice is given a name first."""
    if isinstance(kernel, Library):
        attributes = ", ".join(f"{key}={value}" for key, value in kernel.term.attributes if key not in ("payload", "given"))
        operands = ", ".join("-" if name is None else name for name in kernel.operands)
        return [f"library {kernel.name}:", f"  {', '.join(kernel.results)} = {kernel.term.op.name}({operands}){{{attributes}}}"]
    text = KernelText(values_of(kernel))
    picks: list[str] = []
    for pick in kernel.picks:
        value = text.named(pick.value)
        picks += [*text.flush(), f"  {pick.name} < {dim_words(pick.count)} = {value}"]
    return [f"{kernel.kind} {kernel.name} {kernel.heading()}:", *picks, *kernel.lines(text)]
