"""How alternatives of one kernel are ranked before anything is compiled: by whole waves of programs, what each of them does, and reads.

A machine has so many slots for programs; they run in waves, and a wave takes as long when it is not full. A program's work is that of
its whole tile, also where that reaches over an edge, at its share of the machine:

    seconds = launch + waves * slots * seconds of one program, if it had the whole machine

Of products a program takes the longer of its multiplications at the peak rate and its reads of both operands, which other programs have
read too, at `CACHE` times the bandwidth of memory; of all other kernels, bytes at that bandwidth. It says nothing of latencies, banks and
schedules, nor of how operands are read and whether programs stay: only what is several times worse than the best is left out by it, and
the clock decides among the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

from coset.lowering.kernels.kernel import Computed, Plan
from coset.lowering.triton.choice import KernelChoice
from coset.lowering.triton.kinds import TRITON_KINDS
from coset.lowering.triton.launch import EmitOptions
from coset.targets.target import Target


def predicted(kernel: Computed, plan: Plan, choice: KernelChoice, options: EmitOptions, target: Target, sizes: Mapping[str, int]) -> float:
    """Seconds of a kernel with these numbers on a target; only beside those of its other alternatives do they mean something."""
    found = target.numbers.get("launch")
    launch = found.value if found else 0.0
    share = TRITON_KINDS[type(kernel)].share(kernel, plan, choice, options, target, sizes)
    slots = options.processors * share.resident
    joined = share.joining + launch if choice.get("SPLITS") not in (None, 1) else 0.0
    return launch + joined + ceil(share.programs / slots) * slots * share.seconds
