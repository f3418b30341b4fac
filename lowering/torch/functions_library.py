"""More functions that generated torch programs call: linear algebra, sorting, scattering, normalization, random bits, payloads.

This file is text for the emitter, as `functions.py` is, and may call what stands there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

import torch
from torch import Tensor

Body = Callable[..., tuple[Tensor, ...]]


# ---------------------------------------------------------------- bits


def bitcast(x: Tensor, old: str, bits_old: int, new: str, bits_new: int) -> Tensor:
    """The bits of x, elements of `old`, read as `new`; a last dim holds the parts, low bits first, where the widths differ."""
    if new[0] == "c":
        whole = torch.view_as_real(x.contiguous())
        if bits_old > bits_new:  # two c64 from one c128: its parts' bits
            parts = whole.view(torch.float32).reshape(*x.shape, 2, 2)
            return torch.view_as_complex(parts.contiguous())
        if bits_old < bits_new:
            return torch.view_as_complex(whole.reshape(*x.shape[:-1], 4).contiguous().view(torch.float64).contiguous())
        return x
    pattern = patterns(x, old)
    if bits_old == bits_new:
        return from_patterns(pattern, new)
    if bits_old > bits_new:
        places = torch.arange(0, bits_old, bits_new, device=x.device)
        step = (pattern[..., None] >> places) & ((1 << bits_new) - 1 if bits_new < 64 else -1)
        return from_patterns(step, new)
    places = torch.arange(0, bits_new, bits_old, device=x.device)
    return from_patterns((pattern << places).sum(dim=-1), new)


def patterns(x: Tensor, name: str) -> Tensor:
    """The bits of held elements as i64, zeros above the width."""
    if name == "bool":
        return x.long()
    if name in ("f64", "f32", "f16", "bf16"):
        x = x.contiguous().view({"f64": torch.int64, "f32": torch.int32}.get(name, torch.int16))
    elif name.startswith("f8"):
        kind = getattr(torch, {"f8e4m3fn": "float8_e4m3fn", "f8e5m2": "float8_e5m2", "f8e4m3fnuz": "float8_e4m3fnuz",
                               "f8e5m2fnuz": "float8_e5m2fnuz", "f8e8m0fnu": "float8_e8m0fnu"}[name])  # fmt: skip
        x = x.to(kind).view(torch.uint8)
    elif name == "f4e2m1fn":
        code = (x.abs()[..., None] > torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0], device=x.device)).sum(dim=-1)
        return code | torch.where(x.signbit(), 8, 0)
    bits = {"f64": 64, "f32": 32, "f16": 16, "bf16": 16}.get(name) or (int(name[1:]) if name[0] in "iu" else 8)
    return x.long() & ((1 << bits) - 1) if bits < 64 else x.long()


def from_patterns(bits: Tensor, name: str) -> Tensor:
    """The held elements with these bits: the inverse of `patterns`."""
    if name == "bool":
        return bits != 0
    if name in ("f64", "f32", "f16", "bf16"):
        number, kind = {"f64": (torch.int64, torch.float64), "f32": (torch.int32, torch.float32), "f16": (torch.int16, torch.float16),
                        "bf16": (torch.int16, torch.bfloat16)}[name]  # fmt: skip
        return bits.to(number).contiguous().view(kind)
    if name.startswith("f8"):
        kind = getattr(torch, {"f8e4m3fn": "float8_e4m3fn", "f8e5m2": "float8_e5m2", "f8e4m3fnuz": "float8_e4m3fnuz",
                               "f8e5m2fnuz": "float8_e5m2fnuz", "f8e8m0fnu": "float8_e8m0fnu"}[name])  # fmt: skip
        return bits.to(torch.uint8).contiguous().view(kind).float()
    if name == "f4e2m1fn":
        table = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0], device=bits.device)
        return torch.where(bits & 8 != 0, -table[bits & 7], table[bits & 7])
    width = int(name[1:])
    if name[0] == "i" and width < 64:
        bits = bits << 64 - width >> 64 - width
    held = {"i64": torch.int64, "u64": torch.int64, "u32": torch.int64, "i32": torch.int32, "u16": torch.int32, "i16": torch.int16}
    return bits.to(held.get(name, torch.int8 if name[0] == "i" else torch.uint8))


# ---------------------------------------------------------------- linear algebra


def cholesky(a: Tensor, *, lower: bool) -> Tensor:
    """The factor of the triangle that is given; NaN in it where the matrix is not positive definite."""
    given = a if lower else a.mH
    factor, failed = torch.linalg.cholesky_ex(given)
    factor = torch.where(failed[..., None, None] != 0, torch.full_like(factor, math.nan), factor).tril()
    return factor if lower else factor.mH


def solve_triangular(a: Tensor, b: Tensor, *, upper: bool, left: bool, unitriangular: bool) -> Tensor:
    """x with a x = b, or x a = b."""
    if not b.numel():
        return b
    return torch.linalg.solve_triangular(a, b, upper=upper, left=left, unitriangular=unitriangular)


def fourier(x: Tensor, kind: str, length: tuple[int, ...], shape: tuple[int, ...]) -> Tensor:
    """The transform over the last dims, of any size."""
    if 0 in shape:
        other = {torch.complex64: torch.float32, torch.complex128: torch.float64, torch.float32: torch.complex64}
        part = {**other, torch.float64: torch.complex128}
        return torch.zeros(shape, dtype=part[x.dtype] if kind in ("RFFT", "IRFFT") else x.dtype, device=x.device)
    run = {"FFT": torch.fft.fftn, "IFFT": torch.fft.ifftn, "RFFT": torch.fft.rfftn, "IRFFT": torch.fft.irfftn}[kind]
    return run(x, s=length, dim=tuple(range(-len(length), 0)))


# ---------------------------------------------------------------- sorting


def total_order(x: Tensor, *, one_nan: bool) -> Tensor:
    """Integers in the total order of floats: -NaN, -inf .. -0.0, 0.0 .. inf, NaN."""
    x = torch.where(x.isnan(), x.abs(), x) if one_nan else x
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    bits = wide.contiguous().view(torch.int64 if wide.dtype == torch.float64 else torch.int32)
    return torch.where(bits < 0, bits ^ torch.iinfo(bits.dtype).max, bits)


def sort(operands: tuple[Tensor, ...], keys: Tensor, dim: int, direction: str) -> tuple[Tensor, ...]:
    """The operands in the stable order of `keys`; LE and GE turn equal ones round."""
    if not keys.ndim:
        return operands
    if direction in ("LE", "GE"):
        order = keys.flip(dim).argsort(dim=dim, descending=direction == "GE", stable=True)
        order = keys.shape[dim] - 1 - order
    else:
        order = keys.argsort(dim=dim, descending=direction == "GT", stable=True)
    return tuple(x.gather(dim, order) for x in operands)


def sort_by(before: Body, operands: tuple[Tensor, ...], dim: int) -> tuple[Tensor, ...]:
    """The operands in the order of the comparator `before`, by merging runs, all rows and pairs of runs at once. In a merge an element
    of the right run goes before one of the left run when the comparator says so; how many do is found by bisection."""
    moved = [x.movedim(dim, -1) for x in operands]
    size, shape = moved[0].shape[-1], moved[0].shape
    lines = [x.reshape(-1) for x in moved]
    place = torch.arange(lines[0].numel(), device=lines[0].device)
    row = place - place % max(size, 1)
    width = 1
    while width < size:
        start = row + (place - row) // (2 * width) * (2 * width)
        middle, end = torch.minimum(start + width, row + size), torch.minimum(start + 2 * width, row + size)
        left = torch.nonzero(place < middle)[:, 0]
        low, high = middle[left], end[left]
        own = [line[left] for line in lines]
        while bool((low < high).any()):
            probe = (low + high) // 2
            other = [line[torch.minimum(probe, end[left] - 1)] for line in lines]
            goes = before(*(part for pair in zip(other, own) for part in pair))[0]
            open_ = low < high
            low, high = torch.where(open_ & goes, probe + 1, low), torch.where(open_ & ~goes, probe, high)
        lift = 2 * start[left]  # so that one running maximum serves every run: a comparator without an order still gives a permutation
        gone = torch.cummax(low - middle[left] + lift, dim=0).values - lift
        target = torch.empty_like(place)
        target[left] = left + gone
        free = torch.ones_like(place, dtype=torch.bool)
        free[target[left]] = False
        target[place >= middle] = torch.nonzero(free)[:, 0]
        fresh = [torch.empty_like(line) for line in lines]
        for line, old in zip(fresh, lines):
            line[target] = old
        lines = fresh
        width *= 2
    return tuple(line.reshape(shape).movedim(-1, dim) for line in lines)


# ---------------------------------------------------------------- scattering


def scatter_positions(
    shape: tuple[int, ...], indices: Tensor, updates: tuple[int, ...], update_window_dims: tuple[int, ...],
    inserted_window_dims: tuple[int, ...], input_batching_dims: tuple[int, ...], scatter_indices_batching_dims: tuple[int, ...],
    scatter_dims_to_operand_dims: tuple[int, ...], index_vector_dim: int,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """For each element of the updates its flat position in the operand, and whether it lies inside."""
    scattered = [axis for axis in range(len(updates)) if axis not in update_window_dims]
    starts = (indices if index_vector_dim < indices.ndim else indices[..., None]).movedim(index_vector_dim, -1)
    rank = len(updates)

    def along(values: Tensor, axes: list[int]) -> Tensor:
        return values.reshape([values.shape[axes.index(axis)] if axis in axes else 1 for axis in range(rank)])

    def count(n: int) -> Tensor:
        return torch.arange(n, device=indices.device)

    zero = torch.zeros([1] * rank, dtype=torch.int64, device=indices.device)
    coordinates = [zero for _ in shape]
    for k, axis in enumerate(scatter_dims_to_operand_dims):
        coordinates[axis] = coordinates[axis] + along(starts[..., k], scattered)
    for axis, where in zip(input_batching_dims, scatter_indices_batching_dims):
        at = scattered[where - (where > index_vector_dim)]
        coordinates[axis] = coordinates[axis] + along(count(updates[at]), [at])
    moved = [axis for axis in range(len(shape)) if axis not in input_batching_dims and axis not in inserted_window_dims]
    for axis, window in zip(moved, update_window_dims):
        coordinates[axis] = coordinates[axis] + along(count(updates[window]), [window])
    flat, inside = zero, zero == 0
    for n, coordinate in zip(shape, coordinates):
        valid = (coordinate >= 0) & (coordinate < n)
        inside = inside & valid
        flat = flat * n + torch.where(valid, coordinate, 0)
    return torch.broadcast_to(flat, updates).reshape(-1), torch.broadcast_to(inside, updates).reshape(-1)


def scatter(
    x: Tensor, indices: Tensor, update: Tensor, combiner: str, *, update_window_dims: tuple[int, ...] = (),
    inserted_window_dims: tuple[int, ...] = (), input_batching_dims: tuple[int, ...] = (),
    scatter_indices_batching_dims: tuple[int, ...] = (), scatter_dims_to_operand_dims: tuple[int, ...] = (), index_vector_dim: int,
) -> Tensor:  # fmt: skip
    """x with the elements of `update` combined in at the positions that `indices` name; what falls outside is left out."""
    flat, inside = scatter_positions(tuple(x.shape), indices, tuple(update.shape), update_window_dims, inserted_window_dims,
                                     input_batching_dims, scatter_indices_batching_dims, scatter_dims_to_operand_dims,
                                     index_vector_dim)  # fmt: skip
    return combined(x, flat, inside, update.reshape(-1), combiner)


def combined(x: Tensor, flat: Tensor, inside: Tensor, update: Tensor, combiner: str) -> Tensor:
    """x with `update` combined in at the flat positions that are inside, in any order but for `second`, where the last one stays."""
    if not x.numel() or not update.numel():
        return x
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) and combiner in ("add", "multiply") else x
    row = torch.cat((wide.reshape(-1), wide.new_zeros(1)))  # one place more, for what falls outside
    at = torch.where(inside, flat, row.numel() - 1)
    update = update.to(row.dtype)
    if combiner in ("multiply", "add") and x.dtype == torch.bool:
        combiner = "and" if combiner == "multiply" else "or"
    if combiner == "second":
        turn = torch.arange(at.numel(), device=x.device)
        last = torch.full_like(row, -1, dtype=torch.int64).scatter_reduce(0, at, turn, "amax")
        row = torch.where(last >= 0, update[last.clamp(min=0)], row)
    elif combiner == "add":
        row = row.index_add(0, at, update)
    elif x.dtype == torch.bool:
        extreme = "amax" if combiner in ("or", "maximum") else "amin"
        row = row.byte().scatter_reduce(0, at, update.byte(), extreme).bool()
    elif combiner in ("and", "or"):
        row = scattered_bits(row, at, update, combiner)
    else:
        row = row.scatter_reduce(0, at, update, {"multiply": "prod", "maximum": "amax", "minimum": "amin"}[combiner])
    return row[:-1].reshape(x.shape).to(x.dtype)


def scattered(base: Tensor, key: Tensor, update: Tensor, combiner: str) -> Tensor:
    """The rows of `base` with the rows of `update` combined in whose key is their number; other keys are those of no row."""
    width = base.shape[1]
    flat = key.long()[:, None] * width + torch.arange(width, device=base.device)
    inside = (flat >= 0) & (flat < base.numel())
    return combined(base, flat.reshape(-1), inside.reshape(-1), update.reshape(-1), combiner)


def scattered_bits(row: Tensor, at: Tensor, update: Tensor, combiner: str) -> Tensor:
    """`and` or `or` of integers, one bit after the other."""
    result = torch.zeros_like(row)
    for place in range(row.dtype.itemsize * 8):
        bits = (row >> place & 1).scatter_reduce(0, at, update >> place & 1, "amin" if combiner == "and" else "amax")
        result = result | bits << place
    return result


def scatter_by(
    body: Body, operands: tuple[Tensor, ...], indices: Tensor, updates: tuple[Tensor, ...], *, update_window_dims: tuple[int, ...] = (),
    inserted_window_dims: tuple[int, ...] = (), input_batching_dims: tuple[int, ...] = (),
    scatter_indices_batching_dims: tuple[int, ...] = (), scatter_dims_to_operand_dims: tuple[int, ...] = (), index_vector_dim: int,
) -> tuple[Tensor, ...]:  # fmt: skip
    """`scatter` with the update function `body`, one update after the other where a position repeats."""
    flat, inside = scatter_positions(tuple(operands[0].shape), indices, tuple(updates[0].shape), update_window_dims,
                                     inserted_window_dims, input_batching_dims, scatter_indices_batching_dims,
                                     scatter_dims_to_operand_dims, index_vector_dim)  # fmt: skip
    return combined_by(body, operands, flat[inside], tuple(update.reshape(-1)[inside] for update in updates))


def combined_by(body: Body, operands: tuple[Tensor, ...], flat: Tensor, updates: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """The operands with updates at flat positions, in rounds: the first of each position, then the second ones, and so on."""
    rows = [x.reshape(-1).clone() for x in operands]
    order = flat.argsort(stable=True)
    places = flat[order]
    start = torch.searchsorted(places, places)
    turn = torch.arange(flat.numel(), device=flat.device) - start
    for number in range(int(turn.max()) + 1 if flat.numel() else 0):
        part = order[turn == number]
        at = flat[part]
        for row, value in zip(rows, body(*(row[at] for row in rows), *(update[part] for update in updates))):
            row[at] = torch.broadcast_to(value, at.shape)
    return tuple(row.reshape(x.shape) for row, x in zip(rows, operands))


def selected(
    keeps: Callable[[Tensor, Tensor], Tensor], x: Tensor, counts: tuple[int, ...], window: tuple[int, ...], strides: tuple[int, ...],
    padding: tuple[tuple[int, int], ...],
) -> Tensor:  # fmt: skip
    """The flat position in x that each window keeps, -1 where it holds none."""
    values = x.reshape(-1)
    chosen = torch.full(counts, -1, dtype=torch.int64, device=x.device)
    for offset in product(*map(range, window)):
        inside, position = torch.ones_like(chosen, dtype=torch.bool), torch.zeros_like(chosen)
        for axis, (n, k) in enumerate(zip(x.shape, offset)):
            at = torch.arange(counts[axis], device=x.device) * strides[axis] + k - padding[axis][0]
            at = at.reshape([-1 if i == axis else 1 for i in range(len(counts))])
            inside, position = inside & (at >= 0) & (at < n), position * n + at
        if not values.numel():
            return chosen
        fresh, rival = inside & (chosen < 0), inside & (chosen >= 0)
        kept = keeps(values[chosen.clamp(min=0)], values[position.clamp(0, values.numel() - 1)])
        chosen = torch.where(fresh | rival & ~kept, position, chosen)
    return chosen


def select_and_scatter(
    keys: Tensor, source: Tensor, start: Tensor, select: str, combiner: str, window: tuple[int, ...], strides: tuple[int, ...],
    padding: tuple[tuple[int, int], ...],
) -> Tensor:  # fmt: skip
    """Each element of `source` combined in where its window keeps the element that `select` says; `start` elsewhere."""
    keeps = {"GE": torch.ge, "GT": torch.gt, "LE": torch.le, "LT": torch.lt, "EQ": torch.eq, "NE": torch.ne}[select]
    chosen = selected(keeps, keys, tuple(source.shape), window, strides, padding).reshape(-1)
    whole = torch.broadcast_to(start.to(source.dtype), keys.shape)
    return combined(whole, chosen.clamp(min=0), chosen >= 0, source.reshape(-1), combiner)
