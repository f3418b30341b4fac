"""What else may be chosen of a kernel than its default: for each family tables of tiles, warps and stages, cut to the kernel's sizes.

Every alternative computes the same: tiles are powers of two, sides of a matrix unit's tiles 16 or more, rows that are held whole stay
whole, and k and keys are split only where `Options.splits` allows. Sums may be added in another order, as the default's tiles have one
order of many.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from coset.lowering.kernels.kernel import Computed
from coset.lowering.triton.choice import KernelChoice
from coset.lowering.triton.families import MOST
from coset.lowering.triton.kinds import TRITON_KINDS
from coset.lowering.triton.launch import EmitOptions


def alternatives(kernel: Computed, default: KernelChoice, options: EmitOptions, sizes: Mapping[str, int]) -> tuple[KernelChoice, ...]:
    """The choices that there are, the `default` of this kernel first; `sizes` of free dims only say which are of use."""
    found = TRITON_KINDS[type(kernel)].choices(kernel, default, options, sizes)
    return tuple(islice(dict.fromkeys((default, *found)), MOST))
