"""Torch functions for the emitter to copy: reductions, windows, and what kernels of a plan read and store (see `functions.py`)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from coset.lowering.torch.functions import complex_less
from coset.lowering.torch.functions_movement import pad

# ---------------------------------------------------------------- reductions and windows


def extreme_of(x: Tensor, axes: tuple[int, ...], combiner: str, start: float) -> Tensor:
    """The largest or smallest element along `axes`; `start` where there is none."""
    if any(x.shape[axis] == 0 for axis in axes):
        return x.new_full([n for axis, n in enumerate(x.shape) if axis not in axes], start)
    return x.amax(dim=axes) if combiner == "maximum" else x.amin(dim=axes)


def combine(a: Tensor, b: Tensor, combiner: str) -> Tensor:
    """One step of a fold."""
    if combiner in ("maximum", "minimum"):
        if a.is_complex():
            return torch.where(complex_less(a, b) == (combiner == "maximum"), b, a)
        return (torch.maximum if combiner == "maximum" else torch.minimum)(a, b)
    if a.dtype == torch.bool:
        combiner = {"add": "or", "multiply": "and"}.get(combiner, combiner)
    return {"add": torch.add, "multiply": torch.mul, "and": torch.bitwise_and, "or": torch.bitwise_or}[combiner](a, b)


def fold(x: Tensor, axes: tuple[int, ...], combiner: str, start: complex) -> Tensor:
    """The elements along `axes` folded by halves; `start` changes nothing. Floats below 32 bits are folded in f32."""
    dtype = x.dtype
    if dtype in (torch.float16, torch.bfloat16):
        x = x.float()
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    rows = x.permute(*kept, *axes).reshape(*(x.shape[axis] for axis in kept), -1) if x.numel() else x.new_empty(
        *(x.shape[axis] for axis in kept), 0
    )  # fmt: skip
    if x.numel() == 0 and all(x.shape[axis] for axis in axes):
        return x.new_empty([x.shape[axis] for axis in kept]).to(dtype)
    while rows.shape[-1] > 1:
        half = rows.shape[-1] // 2
        both = combine(rows[..., :half], rows[..., half : 2 * half], combiner)
        rows = torch.cat((both, rows[..., 2 * half :]), dim=-1)
    result = rows[..., 0] if rows.shape[-1] else x.new_full(rows.shape[:-1], start)
    return result.to(dtype)


def reduce_window(
    x: Tensor, combiner: str, start: complex, window: tuple[int, ...], strides: tuple[int, ...], spread: tuple[int, ...],
    dilation: tuple[int, ...], padding: tuple[tuple[int, int], ...],
) -> Tensor:  # fmt: skip
    """The elements of each window folded; `start` changes nothing and pads."""
    dtype = x.dtype
    x = x.float() if dtype in (torch.float16, torch.bfloat16) and combiner in ("add", "multiply") else x
    value = torch.full((), start, dtype=x.dtype, device=x.device)
    x = pad(x, value, tuple(low for low, _ in padding), tuple(high for _, high in padding), tuple(step - 1 for step in spread))
    for axis, (size, stride, gap) in enumerate(zip(window, strides, dilation)):  # one dim after the other: the combiners allow it
        if (size, stride) == (1, 1):
            continue
        count = max((x.shape[axis] - (size - 1) * gap - 1) // stride + 1, 0)
        last = max(count - 1, 0) * stride + min(count, 1)
        front = (slice(None),) * axis
        total = x[(*front, slice(0, last, stride))]
        for k in range(1, size):
            total = combine(total, x[(*front, slice(k * gap, k * gap + last, stride))], combiner)
        x = total
    return x.to(dtype)


# ---------------------------------------------------------------- kernels of a plan


def scanned(x: Tensor, axis: int, combiner: str) -> Tensor:
    """The elements up to each along an axis folded; NaN wins."""
    if x.numel() == 0:
        return x
    if combiner in ("add", "multiply"):
        wide = x.int() if x.dtype == torch.bool else x
        total = (torch.cumsum if combiner == "add" else torch.cumprod)(wide, axis, dtype=wide.dtype)
        return total != 0 if x.dtype == torch.bool else total
    if x.dtype == torch.bool:
        x, least = x.int(), combiner in ("and", "minimum")
        return (torch.cummin if least else torch.cummax)(x, axis).values != 0
    if combiner in ("and", "or"):
        parts = [x.select(axis, 0)]
        for place in range(1, x.shape[axis]):
            parts.append(combine(parts[-1], x.select(axis, place), combiner))
        return torch.stack(parts, axis)
    return (torch.cummax if combiner == "maximum" else torch.cummin)(x, axis).values


def grouped(x: Tensor, w: Tensor, key: Tensor) -> Tensor:
    """Each row of x times the matrix of w that its key, which ascend, says."""
    found = x.new_zeros(x.shape[0], w.shape[2])
    starts = torch.searchsorted(key, torch.arange(w.shape[0] + 1, device=key.device, dtype=key.dtype)).tolist()
    for place, start in enumerate(starts[:-1]):
        end = starts[place + 1]
        found[start:end] = x[start:end] @ w[place]
    return found


def larger(a: Any, b: Any) -> Any:
    """The larger of two indices."""
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b)
    return a.clamp(min=b) if isinstance(b, int) else b.clamp(min=a)


def smaller(a: Any, b: Any) -> Any:
    """The smaller of two indices."""
    if isinstance(a, int) and isinstance(b, int):
        return min(a, b)
    return a.clamp(max=b) if isinstance(b, int) else b.clamp(max=a)


def as_index(x: Tensor | int, device: torch.device) -> Tensor:
    """An index as a tensor."""
    return x if isinstance(x, Tensor) else torch.full((), x, device=device)


def as_condition(x: Tensor | bool, device: torch.device) -> Tensor:
    """A condition as a tensor."""
    return x if isinstance(x, Tensor) else torch.full((), x, device=device)


def taken(x: Tensor, *index: Tensor | int) -> Tensor:
    """The elements of x at the indices; where they fall outside, any element, which is not used."""
    if not x.ndim:
        return x
    places = torch.broadcast_tensors(*(as_index(one, x.device) for one in index))
    if not x.numel():
        return x.new_zeros(places[0].shape)
    return x[tuple(place.clamp(0, n - 1) for place, n in zip(places, x.shape))]


def put(x: Tensor, value: Tensor, *index: Tensor | int) -> None:
    """Store `value` at the indices of x."""
    places = torch.broadcast_tensors(*(as_index(one, x.device) for one in index), value)[:-1]
    x[places] = torch.broadcast_to(value, places[0].shape)


def weights_of(scores: Tensor, safe: bool) -> Tensor:
    """The softmax of the last axis; where every score is -inf it is 0 if `safe`, else NaN."""
    weights = torch.softmax(scores, -1)
    return weights.masked_fill((scores == -torch.inf).all(-1, keepdim=True), 0.0) if safe else weights


def statistics_of(scores: Tensor, safe: bool) -> tuple[Tensor, Tensor]:
    """The largest of each row, and one over the sum of exp(x - largest); 0 and 1 of rows of -inf if they are `safe`."""
    top = scores.amax(-1, keepdim=True) if scores.shape[-1] else scores.new_full((*scores.shape[:-1], 1), -torch.inf)
    if safe:
        top = top.masked_fill(top == -torch.inf, 0.0)
    total = (scores - top).exp().sum(-1, keepdim=True)
    return top, 1.0 / (total.masked_fill(total == 0, 1.0) if safe else total)
