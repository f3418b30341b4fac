"""The hub's random bits: counter-based generators, which give the same bits on every machine, and draws, which do not.

Source: J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011): Threefry-2x32 with 20 rounds and Philox-4x32
with 10. How counters meet the elements of a tensor, which the StableHLO specification leaves open, is as XLA has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from coset.dialects.hub.bits import from_patterns
from coset.dialects.hub.checks import get_dims, get_dtype, get_word, require_class, require_same, tensors
from coset.dialects.hub.tensors import Binding, numbers
from coset.ir.errors import require
from coset.ir.op import Array, Attributes
from coset.ir.types import DTYPES, DType, TensorType, TokenType, TupleType, Type

if TYPE_CHECKING:
    from coset.ir.term import Term

ALGORITHMS = ("DEFAULT", "THREE_FRY", "PHILOX")
DISTRIBUTIONS = ("UNIFORM", "NORMAL")
_STATE = {"THREE_FRY": (2,), "PHILOX": (2, 3), "DEFAULT": (2, 3)}
_U64 = DTYPES["u64"]
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
Words = tuple[Array, ...]  # of uint32, one array for each word of a counter


def bit_generator_type(name: str, operands: Sequence[Type], attributes: Attributes) -> Type:
    """The state after, and a tensor of `shape` full of random bits."""
    (state,) = tensors(name, operands, "initial_state")
    algorithm = get_word(name, attributes, "rng_algorithm", ALGORITHMS)
    sizes = _STATE[algorithm]
    fits = state.dtype == _U64 and state.rank == 1 and state.dims[0] in sizes
    require(fits, f"`initial_state` of `{name}` {algorithm} must be {' or '.join(map(str, sizes))} numbers of u64, not {state}")
    dtype = get_dtype(name, attributes)
    require_class(name, "the result", dtype, "int float")
    require(dtype.bits >= 8, f"`{name}` gives elements of 8 bits or more, not {dtype}")
    return TupleType((state, TensorType(dtype, get_dims(name, attributes, "shape"))))


def bit_generator(term: Term, arrays: Sequence[Array], binding: Binding) -> tuple[Array, Array]:
    """Blocks of the generator at the counters from the state's on; DEFAULT is PHILOX, as XLA has it on CPU and GPU."""
    dtype, shape = term.attribute("dtype"), numbers(term.attribute("shape"), binding)
    return generated(arrays[0], dtype, shape, term.attribute("rng_algorithm"))


def generated(state: Array, dtype: DType, shape: tuple[int, ...], algorithm: str) -> tuple[Array, Array]:
    """The state after and the elements; see `bit_generator`."""
    with np.errstate(over="ignore"):
        after, bits = (_threefry if algorithm == "THREE_FRY" else _philox)(state, max(dtype.bits, 32), shape)
    return after, from_patterns(bits.astype(f"u{dtype.numpy.itemsize}").reshape(shape), dtype)


def _words(x: Array) -> Words:
    return (x & _LOW).astype(np.uint32), (x >> _HALF).astype(np.uint32)


def _joined(low: Array, high: Array) -> Array:
    return low.astype(np.uint64) | (high.astype(np.uint64) << _HALF)


# ---------------------------------------------------------------- Threefry

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = np.uint32(0x1BD11BDA)


def threefry_2x32(counter: Words, key: Words) -> Words:
    """Threefry-2x32-20 of a counter of two words under a key of two words."""
    keys = (*key, key[0] ^ key[1] ^ _PARITY)
    x, y = counter[0] + keys[0], counter[1] + keys[1]
    for group in range(5):
        for rotation in _ROTATIONS[group % 2]:
            x = x + y
            y = ((y << np.uint32(rotation)) | (y >> np.uint32(32 - rotation))) ^ x
        x, y = x + keys[(group + 1) % 3], y + keys[(group + 2) % 3] + np.uint32(group + 1)
    return x, y


def _threefry(state: Array, bits: int, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """A block for each element of 64 bits. Of 32 bits, a block gives two elements, which are neighbours along the first dim of even
    size, else along the largest."""
    key = _words(state[:1])
    if bits == 64:
        count = prod(shape)
        low, high = threefry_2x32(_words(state[1] + np.arange(count, dtype=np.uint64)), key)
        return _advanced(state, count), _joined(low, high)
    whole = shape or (1,)
    axis = next((i for i, n in enumerate(whole) if n % 2 == 0), int(np.argmax(whole)))
    half = (*whole[:axis], -(-whole[axis] // 2), *whole[axis + 1 :])
    count = prod(half)
    pair = threefry_2x32(_words(state[1] + np.arange(count, dtype=np.uint64)), key)
    both = np.stack([part.reshape(half) for part in pair], axis=axis + 1).reshape((*half[:axis], 2 * half[axis], *half[axis + 1 :]))
    return _advanced(state, count), np.take(both, np.arange(whole[axis]), axis=axis)


def _advanced(state: Array, count: int) -> Array:
    result = state.copy()
    result[1] += np.uint64(count)
    return result


# ---------------------------------------------------------------- Philox

_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_WEYL = (np.uint32(0x9E3779B9), np.uint32(0xBB67AE85))


def philox_4x32(counter: Words, key: Words) -> Words:
    """Philox-4x32-10 of a counter of four words under a key of two words."""
    a, b, c, d = counter
    first, second = key
    for _ in range(10):
        low_a, high_a = _words(a.astype(np.uint64) * _MULTIPLIERS[0])
        low_c, high_c = _words(c.astype(np.uint64) * _MULTIPLIERS[1])
        a, b, c, d = high_c ^ b ^ first, low_c, high_a ^ d ^ second, low_a
        first, second = first + _WEYL[0], second + _WEYL[1]
    return a, b, c, d


def _philox(state: Array, bits: int, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Blocks of 128 bits in row-major order, cut into elements from the low bits on. The state is the key, then the
    counter's low and high half; where there is no high half the key stands in for it."""
    count = -(-prod(shape) * bits // 128)
    low = state[1] + np.arange(count, dtype=np.uint64)
    high = state[2 if len(state) == 3 else 0] + (low < state[1])
    words = philox_4x32((*_words(low), *_words(high)), _words(state[:1]))
    elements = words if bits == 32 else (_joined(words[0], words[1]), _joined(words[2], words[3]))
    after = state.copy()
    after[1] += np.uint64(count)
    if len(state) == 3:
        after[2] += np.uint64(after[1] < state[1])
    return after, np.stack(elements, axis=-1).reshape(-1)[: prod(shape)]


# ---------------------------------------------------------------- draws


def draw_type(name: str, operands: Sequence[Type], attributes: Attributes) -> Type:
    """A tensor of `shape`. With a token before the operands, one follows the result: draws in an order, none of which is another."""
    ordered = len(operands) > 0 and isinstance(operands[0], TokenType)
    low, high, shape_operand = tensors(name, operands[ordered:], "a", "b", "shape")
    distribution = get_word(name, attributes, "rng_distribution", DISTRIBUTIONS)
    require_class(name, "`a`", low.dtype, "float" if distribution == "NORMAL" else "int bool float")
    require_same(name, (low, high), ("`a`", "`b`"))
    require(low.rank == 0, f"`a` and `b` of `{name}` must have rank 0, not {low}")
    shape = get_dims(name, attributes, "shape")
    fits = shape_operand.dtype.kind in ("int", "uint") and shape_operand.shape == (len(shape),)
    require(fits, f"`shape` of `{name}` must be {len(shape)} integers, not {shape_operand}")
    result = TensorType(low.dtype, shape)
    return TupleType((result, TokenType())) if ordered else result
