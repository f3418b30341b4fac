"""Other programs of an e-graph that may be faster than the one chosen: those that are cheapest where kernels are faster or slower than a
target says. What a cost model does not know differs by kernel, so its mistakes are looked for there."""

from __future__ import annotations

import random
from dataclasses import replace

from coset.targets.target import Kernel, Target

SPREAD = 1.0  # standard deviation of the logarithm of the factors on kernels: two of three lie between a third and three


def strayed(target: Target, seed: int) -> Target:
    """`target` with the time of each kernel multiplied by a drawn factor; the same one for one seed."""
    generator = random.Random(seed)
    kernels = {name: slower(kernel, generator.lognormvariate(0.0, SPREAD)) for name, kernel in sorted(target.kernels.items())}
    return replace(target, kernels=kernels)


def slower(kernel: Kernel, factor: float) -> Kernel:
    """The kernel that takes `factor` times as long, whatever it works on."""
    rates = {dtype: replace(rate, value=rate.value / factor) for dtype, rate in kernel.rates.items()}
    curve = kernel.bandwidth
    bandwidth = curve and replace(curve, points=tuple((x, y / factor) for x, y in curve.points))
    launch = replace(kernel.launch, value=kernel.launch.value * factor)
    piece = kernel.piece and replace(kernel.piece, value=kernel.piece.value * factor)
    return replace(kernel, launch=launch, piece=piece, rates=rates, bandwidth=bandwidth)
