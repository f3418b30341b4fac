"""Memory for one kernel alone: what its buffers hold when its alternatives are compared and timed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from coset.dialects.hub.scalars import cast
from coset.ir.dims import evaluate
from coset.ir.types import BOOL, DType
from coset.lowering.kernels.addresses import span
from coset.lowering.kernels.kernel import Buffer, Computed, Load, Scalar, reads, scalars, writes
from coset.lowering.package.safetensors import stored_array
from coset.tuning.tunable import Tunable

Array = np.ndarray[Any, Any]
_FIRST = 3  # integers that are no place are small


def drawn(tunable: Tunable) -> dict[str, Array]:
    """Each buffer that the kernel touches, flat, by name: floats are normal, places lie inside of what they are places of, keys that the
    planner promises to ascend do. Values are the same for one kernel in every run."""
    kernel, plan, sizes = tunable.kernel, tunable.plan, tunable.sizes
    generator = np.random.default_rng(int(tunable.key, 16))
    counts = _places(kernel, sizes)
    ascending = _ascending(kernel)
    found: dict[str, Array] = {}
    for name in dict.fromkeys((*reads(kernel), *writes(kernel))):
        buffer = plan.buffers[name]
        count = elements(buffer, sizes)
        if buffer.packed is not None:
            found[name] = generator.integers(0, 256, count, np.uint8)
        elif name not in reads(kernel):
            found[name] = np.zeros(count, buffer.dtype.numpy)
        elif name in counts:
            places = generator.integers(0, max(1, counts[name]), count)
            found[name] = cast(np.sort(places) if name in ascending else places, buffer.dtype)
        else:
            found[name] = _values(generator, buffer.dtype, count)
    return {name: stored_array(array, plan.buffers[name].held) for name, array in found.items()}


def elements(buffer: Buffer, sizes: Mapping[str, int]) -> int:
    """How many elements the memory of a buffer has, gaps between them too."""
    return 0 if any(evaluate(dim, sizes) == 0 for dim in buffer.shape) else evaluate(span(buffer), sizes)


def _values(generator: np.random.Generator, dtype: DType, count: int) -> Array:
    if dtype is BOOL:
        return generator.integers(0, 2, count).astype(bool)
    if dtype.kind == "float":
        return cast(generator.standard_normal(count, np.float32), dtype)
    return cast(generator.integers(0 if dtype.kind == "uint" else -_FIRST, _FIRST + 1, count), dtype)


def _places(kernel: Computed, sizes: Mapping[str, int]) -> dict[str, int]:
    """How many values what is read as a place may have: the least of all things that it is a place of."""
    found: dict[str, int] = {}

    def enter(value: Scalar, count: int) -> None:
        for each in scalars(value):
            if isinstance(each, Load) and each.dtype.kind in ("int", "uint"):
                found[each.buffer] = min(count, found.get(each.buffer, count))

    for pick in kernel.picks:
        enter(pick.value, evaluate(pick.count, sizes))
    if kernel.place_key is not None:
        count = 1
        for loop in kernel.place_key.loops:
            count *= evaluate(loop.extent, sizes)
        enter(kernel.place_key.value, count)
    return found


def _ascending(kernel: Computed) -> set[str]:
    """The buffers of keys that ascend."""
    key = kernel.place_key
    return {each.buffer for each in scalars(key.value) if isinstance(each, Load)} if key is not None and key.ascends else set()
