"""Simplified indices are the indices: checked at every value of the loops, for drawn shapes, and with symbols for dims."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np
import pytest

from coset.ir.dims import Dim, add, evaluate, floordiv, mod, multiply, substitute, symbol
from coset.lowering.kernels.index_arithmetic import complexity, divided, is_natural, is_within, joined, range_of
from coset.lowering.kernels.indexing import offset, reshaped, strides_of

P, J, K = (symbol(f"loop:{name}") for name in "ijk")


def factored(draw: np.random.Generator, count: int) -> tuple[int, ...]:
    """A shape of `count` elements."""
    shape: list[int] = []
    while count > 1:
        part = int(draw.choice([f for f in range(1, count + 1) if count % f == 0]))
        shape.append(part)
        count //= part
    return tuple(shape)


@pytest.mark.parametrize("seed", range(60))
def test_an_element_of_a_reshape_is_the_one_at_its_place_in_memory(seed: int) -> None:
    draw = np.random.default_rng(seed)
    count = int(draw.choice([12, 24, 36, 60, 64, 96]))
    shape, other = factored(draw, count), factored(draw, count)
    extents: dict[str, Dim] = {f"loop:i{axis}": dim for axis, dim in enumerate(shape)}
    index = tuple(0 if dim == 1 else symbol(name) for name, dim in extents.items())  # a loop that is run once is none
    moved = reshaped(index, shape, other, extents)
    back = reshaped(moved, other, shape, extents)
    for values in product(*map(range, shape)):
        binding = dict(zip(extents, values, strict=True))
        place = np.ravel_multi_index(values, shape) if shape else 0
        assert tuple(evaluate(dim, binding) for dim in moved) == tuple(np.unravel_index(place, other) if other else ())
        assert tuple(evaluate(dim, binding) for dim in back) == values
    assert offset(moved, other, extents) == offset(index, shape), "the place in memory is the same expression"


@pytest.mark.parametrize("seed", range(80))
def test_quotients_and_remainders_keep_their_values(seed: int) -> None:
    draw = np.random.default_rng(seed)
    extents: dict[str, Dim] = {"loop:i": int(draw.integers(1, 7)), "loop:j": int(draw.integers(1, 9))}
    dim: Dim = 0
    for atom in (P, J, 1, mod(P, 3), floordiv(J, 2), mod(floordiv(J, 2), 3)):
        dim = add(dim, multiply(int(draw.integers(-6, 13)), atom))
    divisor = int(draw.choice([1, 2, 3, 4, 6, 12]))
    quotient, remainder = divided(dim, divisor, extents)
    whole = joined(add(multiply(divisor, quotient), remainder))
    seen = range_of(dim, extents)
    for i, j in product(range(int(str(extents["loop:i"]))), range(int(str(extents["loop:j"])))):
        binding = {"loop:i": i, "loop:j": j}
        value = evaluate(dim, binding)
        assert (evaluate(quotient, binding), evaluate(remainder, binding)) == divmod(value, divisor)
        assert evaluate(whole, binding) == value
        assert seen is None or evaluate(seen[0], {}) <= value <= evaluate(seen[1], {})


def test_symbolic_dims_divide_and_come_together() -> None:
    n, s = symbol("n"), symbol("s")
    extents: dict[str, Dim] = {"loop:i": n, "loop:j": s, "loop:k": multiply(4, s)}
    assert divided(add(multiply(s, P), J), s, extents) == (P, J)
    quotient, remainder = divided(K, s, extents)
    assert joined(add(multiply(s, quotient), remainder)) == K
    assert divided(add(multiply(multiply(8, s), P), multiply(2, J)), multiply(4, s), extents)[0] == multiply(2, P)
    flat = reshaped((P, J), (n, s), (multiply(n, s),), extents)
    assert flat == (add(multiply(s, P), J),)
    assert reshaped(flat, (multiply(n, s),), (n, s), extents) == (P, J)
    assert is_within(J, 0, s, extents) and not is_within(J, 0, n, extents)
    assert not is_within(add(J, -1), 0, s, extents)


def test_the_steps_through_memory_are_row_major() -> None:
    assert strides_of((2, 3, 5)) == (15, 5, 1)
    assert prod(int(str(dim)) for dim in strides_of((7,))) == 1
    assert substitute(offset((P, J, 0), (2, 3, 5)), {"loop:i": 1, "loop:j": 2}) == 25
    assert complexity(mod(floordiv(P, 3), 4)) == 3


def test_a_quotient_of_something_negative_is_not_natural() -> None:
    n = symbol("n")
    assert not is_natural(floordiv(multiply(-1, n), 160)) and is_natural(floordiv(add(n, 159), 160))
    assert not is_within(multiply(P, floordiv(multiply(-1, n), 160)), 0, 100, {"loop:i": 5})
