"""A plan's kernels as Triton source: readable text, made without a device and without Triton.

`emit` gives a kernel's functions with the launches that start them; `kernel_source` and `module_source` give text that can be
imported. Which elementwise ops have a Triton form is `can_emit`.
"""

from __future__ import annotations

from dataclasses import replace

from coset.ir.errors import CosetError
from coset.lowering.kernels.kernel import (
    Kernel,
    Library,
    Plan,
    ScalarOp,
    scalars,
    values_of,
)
from coset.lowering.triton.alternatives import alternatives
from coset.lowering.triton.helpers import helper_text, helpers_of
from coset.lowering.triton.key import key_of
from coset.lowering.triton.kinds import TRITON_KINDS
from coset.lowering.triton.launch import EmitOptions, EmittedKernel, Launch, Rounding
from coset.lowering.triton.scalars import can_emit, kind_of

__all__ = ["EmitOptions", "EmittedKernel", "Launch", "Rounding", "can_emit", "emit", "kernel_source", "module_source", "refusal"]

HEAD = "import triton\nimport triton.language as tl\n\n\n"
_WIDTH = 110


def emit(kernel: Kernel, plan: Plan, *, options: EmitOptions | None = None) -> EmittedKernel:
    """The Triton functions of a kernel and their launches; a library's kernel has none. They have the numbers of `options.choice`, or those
    that `options.choices` have for this kernel, where these are of its alternatives; else the default's. (Of kernels of
    attention's gradients nothing is chosen.)

    Raises:
        CosetError: the kernel has an op or an element type without a Triton form (`refusal`).
    """
    options = options or EmitOptions()
    refused = refusal(kernel)
    if refused:
        raise CosetError(f"{kernel.name}: {refused}", help="this is for a library: the planner asks `can_emit`")
    if isinstance(kernel, Library):
        return EmittedKernel("", ())
    comment = describe(kernel.terms)
    written = TRITON_KINDS[type(kernel)].emit
    emission = written(kernel, plan, options, comment)
    if options.choices is None or options.choice is not None or emission.choice is None:
        return emission
    sizes = options.choices.sizes
    chosen = options.choices.kernels.get(key_of(emission, plan, sizes))
    if chosen is None or chosen.choice not in alternatives(kernel, emission.choice, options, sizes):
        return emission
    return replace(written(kernel, plan, replace(options, choice=chosen.choice), comment), chosen=chosen)


def refusal(kernel: Kernel) -> str:
    """What in a kernel has no Triton form; empty where everything has one."""
    if isinstance(kernel, Library):
        return ""
    for value in scalars(*values_of(kernel)):
        if not kind_of(value.dtype):
            return f"no kernel holds elements of {value.dtype}"
        if isinstance(value, ScalarOp):
            dtypes = [*(operand.dtype for operand in value.operands), value.dtype]
            if not can_emit(value.op.name, dtypes):
                return f"`{value.op.name}` of {', '.join(map(str, dtypes[:-1]))} has no exact form"
    return next((f"no kernel folds {fold.dtype}" for fold in kernel.column_folds if not kind_of(fold.dtype)), "")


def describe(terms: tuple[str, ...]) -> list[str]:
    """The ops of a kernel as lines of a comment."""
    lines: list[str] = []
    for term in terms:
        if lines and len(lines[-1]) + len(term) + 2 <= _WIDTH:
            lines[-1] += f", {term}"
        else:
            lines.append(term)
    return lines


def kernel_source(kernel: Kernel, plan: Plan, *, options: EmitOptions | None = None) -> str:
    """One kernel as a module of its own."""
    return module_of([emit(kernel, plan, options=options)])


def module_source(plan: Plan, *, options: EmitOptions | None = None) -> str:
    """All kernels of a plan as one module."""
    return module_of([emit(kernel, plan, options=options) for kernel in plan.kernels])


def module_of(emissions: list[EmittedKernel]) -> str:
    text = "\n\n".join(emission.source for emission in emissions if emission.source)
    return HEAD + helper_text(helpers_of(text)) + text
