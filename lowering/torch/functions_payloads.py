"""Torch functions for the emitter to copy: batch normalization, random bits, payload functions (see `functions.py`)."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

import torch
from torch import Tensor

from coset.lowering.torch.functions import ORDER
from coset.lowering.torch.functions_library import combined_by, from_patterns, selected
from coset.lowering.torch.functions_movement import pad

Body = Callable[..., tuple[Tensor, ...]]


# ---------------------------------------------------------------- payload functions


def loop(condition: Body, body: Body, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """The state sent through `body` as long as `condition` holds."""
    while bool(condition(*state)[0]):
        state = body(*state)
    return state


def chosen(branches: tuple[Body, ...], index: Tensor) -> Body:
    """The branch of the index, the last one for an index out of range."""
    number = int(index)
    return branches[number if 0 <= number < len(branches) else -1]


def reduce_by(body: Body, inputs: tuple[Tensor, ...], starts: tuple[Tensor, ...], axes: tuple[int, ...]) -> tuple[Tensor, ...]:
    """The elements along `axes` folded by `body` in row-major order; more than 4096 of them in neighbouring pairs."""
    kept = [axis for axis in range(inputs[0].ndim) if axis not in axes]
    shape = [inputs[0].shape[axis] for axis in kept]
    depth = math.prod(inputs[0].shape[axis] for axis in axes)
    lines = [(x.permute(*axes, *kept) if x.ndim else x).reshape(depth, *shape) for x in inputs]
    while depth > 4096:
        even = depth // 2 * 2
        both = body(*(line[0:even:2] for line in lines), *(line[1:even:2] for line in lines))
        lines = [torch.cat((pair, line[even:])) for pair, line in zip(both, lines)]
        depth = lines[0].shape[0]
    totals = tuple(torch.broadcast_to(start, shape) for start in starts)
    for k in range(depth):
        totals = tuple(torch.broadcast_to(total, shape) for total in body(*totals, *(line[k] for line in lines)))
    return totals


def reduce_window_by(
    body: Body, inputs: tuple[Tensor, ...], starts: tuple[Tensor, ...], window: tuple[int, ...], strides: tuple[int, ...],
    spread: tuple[int, ...], dilation: tuple[int, ...], padding: tuple[tuple[int, int], ...],
) -> tuple[Tensor, ...]:  # fmt: skip
    """The elements of each window folded by `body` in row-major order from `starts`, which are the padding too."""
    low, high = tuple(pair[0] for pair in padding), tuple(pair[1] for pair in padding)
    wide = [pad(x, start, low, high, tuple(step - 1 for step in spread)) for x, start in zip(inputs, starts)]
    rows = zip(wide[0].shape, window, strides, dilation)
    shape = [max((n - (k - 1) * gap - 1) // step + 1, 0) for n, k, step, gap in rows]
    totals = tuple(torch.broadcast_to(start, shape) for start in starts)
    for offset in product(*map(range, window)):
        steps = zip(offset, shape, strides, dilation)
        part = (..., *(slice(k * gap, k * gap + max(n - 1, 0) * step + min(n, 1), step) for k, n, step, gap in steps))
        totals = tuple(torch.broadcast_to(total, shape) for total in body(*totals, *(x[part] for x in wide)))
    return totals


def select_and_scatter_by(
    select: Body, body: Body, x: Tensor, source: Tensor, start: Tensor, window: tuple[int, ...], strides: tuple[int, ...],
    padding: tuple[tuple[int, int], ...],
) -> Tensor:  # fmt: skip
    """`select_and_scatter` with functions of its own."""
    chosen = selected(lambda a, b: select(a, b)[0], x, tuple(source.shape), window, strides, padding).reshape(-1)
    inside = chosen >= 0
    return combined_by(body, (torch.broadcast_to(start, x.shape),), chosen[inside], (source.reshape(-1)[inside],))[0]


# ---------------------------------------------------------------- batch normalization


def batch_norm_inference(x: Tensor, scale: Tensor, offset: Tensor, mean: Tensor, variance: Tensor, *, epsilon: float, axis: int) -> Tensor:
    """scale * (x - mean) / sqrt(variance + epsilon) + offset, in f64 rounded once."""
    view = [-1 if i == axis else 1 for i in range(x.ndim)]
    a, b, c, d = (part.double().reshape(view) for part in (scale, offset, mean, variance))
    return (a * ((x.double() - c) / torch.sqrt(d + epsilon)) + b).to(x.dtype)


def batch_norm_training(x: Tensor, scale: Tensor, offset: Tensor, *, epsilon: float, axis: int) -> tuple[Tensor, Tensor, Tensor]:
    """The normalized x, the mean and the (biased) variance of each feature."""
    rest = [i for i in range(x.ndim) if i != axis]
    view = [-1 if i == axis else 1 for i in range(x.ndim)]
    count = math.prod(x.shape[i] for i in rest)
    wide = x.double()
    mean = (wide.sum(dim=rest) if rest else wide) / count
    centered = wide - mean.reshape(view)
    squares = centered * centered
    variance = (squares.sum(dim=rest) if rest else squares) / count
    unit = centered / torch.sqrt(variance.reshape(view) + epsilon)
    result = scale.double().reshape(view) * unit + offset.double().reshape(view)
    return result.to(x.dtype), mean.to(x.dtype), variance.to(x.dtype)


def batch_norm_grad(
    x: Tensor, scale: Tensor, mean: Tensor, variance: Tensor, output: Tensor, *, epsilon: float, axis: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of `batch_norm_training` with respect to its operand, scale and offset."""
    rest = [i for i in range(x.ndim) if i != axis]
    view = [-1 if i == axis else 1 for i in range(x.ndim)]
    count = math.prod(x.shape[i] for i in rest)

    def total(one: Tensor) -> Tensor:
        return one.sum(dim=rest) if rest else one

    a, b, c = (part.double().reshape(view) for part in (scale, mean, variance))
    grad, centered, spread = output.double(), x.double() - b, c + epsilon
    deviation = torch.sqrt(spread)
    offset, slope = total(grad), total(grad * centered)
    inner = grad * count - offset.reshape(view) - slope.reshape(view) * centered / spread
    first = a / deviation / count * inner
    return first.to(x.dtype), total(grad * (centered / deviation)).to(x.dtype), offset.to(x.dtype)


# ---------------------------------------------------------------- random bits


def random_bits(state: Tensor, generator: str, name: str, bits: int, shape: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """The state after, and the elements with random bits: the same on every machine (J. Salmon et al., SC 2011)."""
    run = threefry if generator == "threefry" else philox
    after, words = run(state, max(bits, 32), shape)
    words = words.reshape(shape)
    return after, from_patterns(words & ((1 << bits) - 1) if bits < 64 else words, name)


def halves(x: Tensor) -> tuple[Tensor, Tensor]:
    """The low and the high 32 bits."""
    return x & 0xFFFFFFFF, x >> 32 & 0xFFFFFFFF


def threefry_block(counter: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
    """Threefry-2x32-20 of counters of two words."""
    low, high = halves(key)
    keys = (low, high, low ^ high ^ 0x1BD11BDA)
    x, y = (part + one & 0xFFFFFFFF for part, one in zip(halves(counter), keys))
    for group in range(5):
        for turn in ((13, 15, 26, 6), (17, 29, 16, 24))[group % 2]:
            x = x + y & 0xFFFFFFFF
            y = (y << turn & 0xFFFFFFFF | y >> 32 - turn) ^ x
        x = x + keys[(group + 1) % 3] & 0xFFFFFFFF
        y = y + keys[(group + 2) % 3] + group + 1 & 0xFFFFFFFF
    return x, y


def threefry(state: Tensor, bits: int, shape: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """A block for each element of 64 bits; of 32 bits two neighbours along the first dim of even size, else along the largest."""
    whole = shape or (1,)
    axis = next((i for i, n in enumerate(whole) if n % 2 == 0), max(range(len(whole)), key=lambda i: whole[i]))
    half = shape if bits == 64 else (*whole[:axis], -(-whole[axis] // 2), *whole[axis + 1 :])
    count = math.prod(half)
    low, high = threefry_block(state[1] + torch.arange(count, device=state.device), state[0])
    after = torch.stack((state[0], state[1] + count))
    if bits == 64:
        return after, low | high << 32
    both = torch.stack((low.reshape(half), high.reshape(half)), dim=axis + 1).reshape(*half[:axis], 2 * half[axis], *half[axis + 1 :])
    return after, both.narrow(axis, 0, whole[axis]).reshape(shape)


def philox(state: Tensor, bits: int, shape: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Philox-4x32-10: blocks of 128 bits in row-major order, cut into elements from the low bits on."""
    size = math.prod(shape)
    count = -(-size * bits // 128)
    low = state[1] + torch.arange(count, device=state.device)
    high = state[2 if len(state) == 3 else 0] + ((low ^ ORDER) < (state[1] ^ ORDER)).long()
    (a, b), (c, d) = halves(low), halves(high)
    first, second = halves(state[0])
    for _ in range(10):
        (low_a, high_a), (low_c, high_c) = halves(a * 0xD2511F53), halves(c * 0xCD9E8D57)
        a, b, c, d = high_c ^ b ^ first, low_c, high_a ^ d ^ second, low_a
        first, second = first + 0x9E3779B9 & 0xFFFFFFFF, second + 0xBB67AE85 & 0xFFFFFFFF
    words = (a, b, c, d) if bits == 32 else (a | b << 32, c | d << 32)
    ends = [state[0], state[1] + count]
    if len(state) == 3:
        ends.append(state[2] + ((ends[1] ^ ORDER) < (state[1] ^ ORDER)).long())
    return torch.stack(ends), torch.stack(words, dim=-1).reshape(-1)[:size].reshape(shape)
