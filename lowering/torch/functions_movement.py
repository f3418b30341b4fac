"""Functions of generated torch programs: movement at indices that are known or computed, and contractions of what `einsum` does not take.

Text for the emitter, as `functions.py` says.
"""

from __future__ import annotations

import torch
from torch import Tensor

# ---------------------------------------------------------------- movement


def pad(x: Tensor, value: Tensor, low: tuple[int, ...], high: tuple[int, ...], interior: tuple[int, ...]) -> Tensor:
    """`value` around and between the elements of x; negative amounts crop."""
    spread = [n + max(n - 1, 0) * gap for n, gap in zip(x.shape, interior)]
    sizes = [max(a, 0) + n + max(b, 0) for a, n, b in zip(low, spread, high)]
    result = torch.broadcast_to(value.to(x.dtype), sizes).clone()
    result[(..., *(slice(max(a, 0), max(a, 0) + n, gap + 1) for a, n, gap in zip(low, spread, interior)))] = x
    return result[(..., *(slice(max(-a, 0), n - max(-b, 0)) for a, b, n in zip(low, high, sizes)))]


def broadcast(x: Tensor, shape: list[int], axes: tuple[int, ...]) -> Tensor:
    """x with its dim i along dim `axes[i]` of `shape`."""
    order = sorted(range(len(axes)), key=axes.__getitem__)
    view = [1] * len(shape)
    for axis, n in zip(axes, x.shape):
        view[axis] = n
    return (x.permute(order) if order else x).reshape(view).broadcast_to(shape)


def starts_of(x: Tensor, starts: tuple[Tensor, ...], sizes: tuple[int, ...]) -> list[Tensor]:
    """Along each dim of x the indices of a slice of `sizes` at the clamped start, ready to meet each other."""
    places = []
    for axis, (start, n, size) in enumerate(zip(starts, x.shape, sizes)):
        steps = torch.arange(size, device=x.device) + start.clamp(0, n - size)
        places.append(steps.reshape([-1 if i == axis else 1 for i in range(x.ndim)]))
    return places


def dynamic_slice(x: Tensor, starts: tuple[Tensor, ...], sizes: tuple[int, ...]) -> Tensor:
    """The slice of `sizes` at the starts, clamped so that it lies in x."""
    if any(size > n for size, n in zip(sizes, x.shape)):
        raise ValueError(f"a slice of {sizes} does not fit in {tuple(x.shape)}")
    return x[tuple(starts_of(x, starts, sizes))] if x.ndim else x


def dynamic_update_slice(x: Tensor, update: Tensor, starts: tuple[Tensor, ...]) -> Tensor:
    """x with `update` at the starts, clamped so that it lies in x."""
    if not x.ndim:
        return update
    result = x.clone()
    result[tuple(starts_of(x, starts, tuple(update.shape)))] = update
    return result


def gather(
    x: Tensor, indices: Tensor, sizes: tuple[int, ...], *, offset_dims: tuple[int, ...] = (), collapsed_slice_dims: tuple[int, ...] = (),
    operand_batching_dims: tuple[int, ...] = (), start_indices_batching_dims: tuple[int, ...] = (), start_index_map: tuple[int, ...] = (),
    index_vector_dim: int,
) -> Tensor:  # fmt: skip
    """The slices of `sizes` at the clamped index vectors, one indexed read (StableHLO's gather)."""
    if any(size > n for size, n in zip(sizes, x.shape)):
        raise ValueError(f"slices of {sizes} do not fit in {tuple(x.shape)}")
    vectors = (indices if index_vector_dim < indices.ndim else indices[..., None]).movedim(index_vector_dim, -1)
    batch = vectors.shape[:-1]
    columns = {axis: vectors[..., i].clamp(0, x.shape[axis] - sizes[axis]) for i, axis in enumerate(start_index_map)}
    for axis in collapsed_slice_dims:  # of size 1, as the slices are
        columns.setdefault(axis, torch.zeros(batch, dtype=torch.int64, device=x.device))
    for axis, other in zip(operand_batching_dims, start_indices_batching_dims):
        place = other - (index_vector_dim < other)
        columns[axis] = torch.arange(batch[place], device=x.device).reshape([-1 if i == place else 1 for i in range(len(batch))])
    gone = (*collapsed_slice_dims, *operand_batching_dims)
    kept = [axis for axis in range(x.ndim) if axis not in gone]
    moved = sorted(columns)
    whole = [axis for axis in kept if axis not in columns]
    spread = [axis for axis in moved if axis in kept]  # moved dims that the slices keep
    rank = len(batch) + len(kept)
    places = [rest for rest in range(rank) if rest not in offset_dims]
    shape = [0] * rank
    for place, n in zip((*places, *offset_dims), (*batch, *(sizes[axis] for axis in kept))):
        shape[place] = n
    if 0 in shape:
        return x.new_empty(shape)
    view = (x.permute(*moved, *whole) if x.ndim else x)[(slice(None),) * len(moved) + tuple(slice(sizes[axis]) for axis in whole)]
    if moved:
        index = []
        for axis in moved:
            column = columns[axis].reshape((*columns[axis].shape, *[1] * len(spread)))
            if axis in spread:
                steps = torch.arange(sizes[axis], device=x.device)
                column = column + steps.reshape([-1 if other == axis else 1 for other in spread])
            index.append(column.broadcast_to((*batch, *(sizes[other] for other in spread))))
        view = view[tuple(index)]
    else:
        view = view.broadcast_to((*batch, *view.shape))
    order = [*range(len(batch)), *(len(batch) + (spread + whole).index(axis) for axis in kept)]
    full = view.permute(order) if rank else view
    source = [0] * rank
    for i, place in enumerate((*places, *offset_dims)):
        source[place] = i
    return full.permute(source) if rank else full


# ---------------------------------------------------------------- contractions


def einsum(equation: str, a: Tensor, b: Tensor) -> Tensor:
    """torch's einsum."""
    return torch.einsum(equation, a, b)


def einsum_of_integers(equation: str, a: Tensor, b: Tensor, bits: int) -> Tensor:
    """The product modulo 2^64 of integers of so many bits, in f64 over parts of 16 bits, which is exact up to 2^21 summands; of
    booleans (1 bit) or of ands."""
    if bits == 1:
        return torch.einsum(equation, a.float(), b.float()) != 0
    if a.device.type == "cpu":
        return torch.einsum(equation, a, b)
    if bits <= 16:
        return torch.einsum(equation, a.double(), b.double()).long().to(a.dtype)
    parts = bits // 16
    left, right = ([(x.long() >> 16 * i & 0xFFFF).double() for i in range(parts)] for x in (a, b))
    total = sum(torch.einsum(equation, left[i], right[j]).long() << 16 * (i + j) for i in range(parts) for j in range(parts - i))
    return total.to(a.dtype)


def convolution(
    x: Tensor, w: Tensor, *, strides: tuple[int, ...], padding: tuple[tuple[int, int], ...], lhs_dilation: tuple[int, ...],
    rhs_dilation: tuple[int, ...], groups: int, batch_groups: int, bits: int,
) -> Tensor:  # fmt: skip
    """Windows of x [N, C, ..] times filters w [O, C / groups, ..], for any padding and dilation; integers have `bits`."""
    x = pad(x, x.new_zeros(()), (0, 0, *(low for low, _ in padding)), (0, 0, *(high for _, high in padding)),
            (0, 0, *(step - 1 for step in lhs_dilation)))  # fmt: skip
    if batch_groups > 1:
        pairs = zip(
            x.chunk(batch_groups) if x.shape[0] else [x] * batch_groups, w.chunk(batch_groups) if w.shape[0] else [w] * batch_groups
        )
        return torch.cat([convolved(part, kernel, strides, rhs_dilation, 1, bits) for part, kernel in pairs], dim=1)
    return convolved(x, w, strides, rhs_dilation, groups, bits)


def convolved(x: Tensor, w: Tensor, strides: tuple[int, ...], dilation: tuple[int, ...], groups: int, bits: int) -> Tensor:
    """The convolution of an x that is padded already."""
    spatial = x.ndim - 2
    reach = [(n - 1) * d + 1 if n else 0 for n, d in zip(w.shape[2:], dilation)]
    counts = [(n - k) // s + 1 if n >= k else 0 for n, k, s in zip(x.shape[2:], reach, strides)]
    shape = (x.shape[0], w.shape[0], *counts)
    if 0 in shape or not x.numel() or not w.numel():
        return x.new_zeros(shape)
    if bits == 0 and 1 <= spatial <= 3:
        run = (torch.nn.functional.conv1d, torch.nn.functional.conv2d, torch.nn.functional.conv3d)[spatial - 1]
        return run(x, w, stride=strides, dilation=dilation, groups=groups)
    windows = windows_of(x, (1, 1, *w.shape[2:]), (1, 1, *strides), (1, 1, *dilation))[(..., 0, 0, *[slice(None)] * spatial)]
    windows = windows.reshape(x.shape[0], groups, -1, *windows.shape[2:])
    kernel = w.reshape(groups, -1, *w.shape[1:])
    place, inner = "uvwxyz"[:spatial], "klmpqr"[:spatial]
    equation = f"ngc{place}{inner},goc{inner}->ngo{place}"
    product = einsum_of_integers(equation, windows, kernel, bits) if bits else torch.einsum(equation, windows, kernel)
    return product.reshape(shape)


def transposed_convolution(
    x: Tensor, w: Tensor, padding: tuple[tuple[int, int], ...], *, stride: tuple[int, ...] = (), dilation: tuple[int, ...] = (),
    groups: int = 1,
) -> Tensor:  # fmt: skip
    """Each element of x [N, C, ..] spread by filters w [C, M / groups, ..], cut or filled to what `padding` of the spread x says."""
    spatial = x.ndim - 2
    stride, dilation = stride or (1,) * spatial, dilation or (1,) * spatial
    run = (torch.nn.functional.conv_transpose1d, torch.nn.functional.conv_transpose2d, torch.nn.functional.conv_transpose3d)[spatial - 1]
    reach = [(n - 1) * d for n, d in zip(w.shape[2:], dilation)]
    cuts = [(low - own, high - own) for (low, high), own in zip(padding, reach)]
    if 0 in x.shape[2:]:
        sizes = [(n and (n - 1) * s + 1) + low + high - own for n, s, (low, high), own in zip(x.shape[2:], stride, padding, reach)]
        return x.new_zeros((x.shape[0], w.shape[1] * groups, *sizes))
    whole = run(x, w, stride=stride, dilation=dilation, groups=groups)
    return torch.nn.functional.pad(whole, [amount for pair in reversed(cuts) for amount in pair])


def filter_gradient(
    x: Tensor, g: Tensor, size: tuple[int, ...], *, strides: tuple[int, ...], padding: tuple[tuple[int, int], ...],
    dilations: tuple[int, ...], groups: int,
) -> Tensor:  # fmt: skip
    """What moves filters of this size, by what moves the convolution of x with them, g."""
    if not x.numel() or not g.numel():
        return x.new_zeros(size)
    rests = [(n + low + high - (m - 1) * s - 1) % d
             for n, m, s, d, (low, high) in zip(x.shape[2:], g.shape[2:], strides, dilations, padding)]  # fmt: skip
    if not all(low >= 0 and 0 <= low - high + rest < s for rest, s, (low, high) in zip(rests, strides, padding)):
        around = [(low, high - rest) for (low, high), rest in zip(padding, rests)]
        x = torch.nn.functional.pad(x, [amount for pair in reversed(around) for amount in pair])
        padding = tuple((0, 0) for _ in padding)
    lows, nothing = [low for low, _ in padding], [0] * len(padding)
    return torch.ops.aten.convolution_backward(
        g, x, x.new_empty(size), None, strides, lows, dilations, False, nothing, groups, [False, True, False]
    )[1]


def windows_of(x: Tensor, window: tuple[int, ...], strides: tuple[int, ...], dilation: tuple[int, ...]) -> Tensor:
    """The view [positions.., window..] of x."""
    reach = [(n - 1) * d + 1 if n else 0 for n, d in zip(window, dilation)]
    counts = [(n - k) // s + 1 if n >= k else 0 for n, k, s in zip(x.shape, reach, strides)]
    steps = x.stride()
    moves = (*(a * s for a, s in zip(steps, strides)), *(a * d for a, d in zip(steps, dilation)))
    return x.as_strided((*counts, *window), moves)
