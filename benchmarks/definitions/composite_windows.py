"""Drawn terms of our kernels over windows, and of products of ragged groups, with references in torch and NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.definitions.composite import OwnInstance, drawn_float, own
from benchmarks.definitions.hub import hub
from benchmarks.definitions.instance import Draw, Slot
from coset.ir.types import DTYPES

# ---------------------------------------------------------------- windows


def _windows(r: Draw) -> tuple[int, list[int], list[int], list[int]]:
    spatial = r.randint(1, 2)
    return (
        spatial,
        [r.randint(1, 3) for _ in range(spatial)],
        [r.randint(1, 2) for _ in range(spatial)],
        [r.randint(1, 2) for _ in range(spatial)],
    )


def _torch_convolution(x: Any, w: Any, strides: Sequence[int], dilations: Sequence[int], group: int) -> Any:
    import torch

    function = (torch.nn.functional.conv1d, torch.nn.functional.conv2d)[len(strides) - 1]
    return function(x, w, stride=tuple(strides), dilation=tuple(dilations), groups=group)


@hub("kernel.windowed_product", "kernel.windowed_sum", "kernel.transposed_convolution", "kernel.filter_gradient")
def _convolved(r: Draw, op: str) -> OwnInstance:
    """Convolutions as torch has them, and their gradients as it derives them."""
    spatial, kernel, strides, dilations = _windows(r)
    group, inner, outer, batch = r.choice([1, 2]), r.randint(1, 2), r.randint(1, 2), r.randint(1, 2)
    if op == "kernel.windowed_sum":
        group, inner, outer = r.randint(1, 3), 1, 1
    reach = [(size - 1) * gap + 1 for size, gap in zip(kernel, dilations, strict=True)]
    counts = [r.randint(1, 3) for _ in range(spatial)]
    sizes = [(count - 1) * step + size for count, step, size in zip(counts, strides, reach, strict=True)]
    x, w = (batch, group * inner, *sizes), (group * outer, inner, *kernel)
    y = (batch, group * outer, *counts)
    dtype = drawn_float(r)
    given: dict[str, Any] = {"strides": tuple(strides), "dilations": tuple(dilations)}

    def gradient(of: str, first: Any, second: Any) -> Any:
        import torch

        image = torch.tensor(first if of == "w" else np.zeros(x), requires_grad=True)
        filters = torch.tensor(np.zeros(w) if of == "w" else first, requires_grad=True)
        _torch_convolution(image, filters, strides, dilations, group).backward(torch.tensor(second))
        found = filters.grad if of == "w" else image.grad
        assert found is not None
        return found.numpy()

    if op in ("kernel.windowed_product", "kernel.windowed_sum"):
        more = {"group": group} if op == "kernel.windowed_product" else {}

        def convolved(v: Sequence[Any]) -> list[Any]:
            import torch

            return [_torch_convolution(torch.tensor(v[0]), torch.tensor(v[1]), strides, dilations, group).numpy()]

        return own(op, [Slot(dtype, x), Slot(dtype, w)], {**given, **more}, convolved)
    if op == "kernel.filter_gradient":
        slots = [Slot(dtype, x), Slot(dtype, y)]
        return own(op, slots, {**given, "padding": ((0, 0),) * spatial, "group": group}, lambda v: [gradient("w", v[0], v[1])])
    padding = tuple((size - 1, size - 1) for size in reach)
    slots = [Slot(dtype, y), Slot(dtype, w)]
    return own(op, slots, {**given, "padding": padding, "group": group}, lambda v: [gradient("x", v[1], v[0])])


@hub("kernel.windowed_fold")
def _folded(r: Draw, op: str) -> OwnInstance:
    rank = r.randint(1, 3)
    window, strides, dilations = ([r.randint(1, most) for _ in range(rank)] for most in (3, 2, 2))
    shape = tuple((size - 1) * gap + 1 + r.randint(0, 3) for size, gap in zip(window, dilations, strict=True))
    combiner = r.choice(["add", "maximum", "minimum"])
    folds: dict[str, Any] = {"add": np.sum, "maximum": np.max, "minimum": np.min}
    fold = folds[combiner]

    def reference(v: Sequence[Any]) -> list[Any]:
        reach = [(size - 1) * gap + 1 for size, gap in zip(window, dilations, strict=True)]
        views = np.lib.stride_tricks.sliding_window_view(v[0], reach)
        views = views[(*(slice(None, None, step) for step in strides), *(slice(None, None, gap) for gap in dilations))]
        return [fold(views, axis=tuple(range(rank, 2 * rank)))]

    given = {"window": tuple(window), "strides": tuple(strides), "dilations": tuple(dilations), "combiner": combiner}
    return own(op, [Slot(drawn_float(r), shape)], given, reference)


# ---------------------------------------------------------------- products of ragged groups, which XLA does not compile on CPUs


@hub("chlo.ragged_dot")
def _ragged(r: Draw, op: str) -> OwnInstance:
    """Groups of rows or of contracted elements; those of no group give 0."""
    m, k, n, groups = r.randint(1, 6), r.randint(1, 4), r.randint(1, 3), r.randint(1, 3)
    dtype, rows = drawn_float(r), r.maybe()
    whole = m if rows else k
    cuts = sorted(r.randint(0, whole) for _ in range(groups - 1))
    sizes = np.diff([0, *cuts, whole if r.maybe(0.7) else max([*cuts, 0])]).astype(np.int32)
    values = ((), (), (1,), (1,), (0,), (0,)) if rows else ((), (), (1,), (0,), (1,), ())
    given = dict(zip(("lhs_batch", "rhs_batch", "lhs_contract", "rhs_contract", "lhs_ragged", "rhs_group"), values, strict=True))

    def reference(v: Sequence[Any]) -> list[Any]:
        ends = np.cumsum(v[2])
        pieces = [slice(int(end - size), int(end)) for end, size in zip(ends, v[2], strict=True)]
        if not rows:
            return [np.stack([v[0][:, piece] @ v[1][piece] for piece in pieces])]
        result = np.zeros((m, n))
        for group, piece in enumerate(pieces):
            result[piece] = v[0][piece] @ v[1][group]
        return [result]

    slots = [Slot(dtype, (m, k)), Slot(dtype, (groups, k, n) if rows else (k, n)), Slot(DTYPES["i32"], sizes.shape, value=sizes)]
    return own(op, slots, given, reference)
