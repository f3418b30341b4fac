"""The smart constructors keep the normal form, and mean what NumPy means."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from coset.dialects.hub import stablehlo as hlo
from coset.ir.dims import Shape, symbol
from coset.ir.evaluate import evaluate
from coset.ir.term import Term, constant, input_term, topological
from coset.ir.types import BF16, F32, I32, tensor

B, S = symbol("B"), symbol("S")
SMALL = st.lists(st.sampled_from([1, 1, 2, 3]), max_size=4).map(tuple)


def x(*shape: Any) -> Term:
    return input_term("x", tensor(F32, *shape))


def ops(term: Term) -> list[str]:
    return [t.op.name.split(".")[1] for t in topological([term])]


def test_identities_give_the_term_back() -> None:
    a = x(B, 3)
    assert hlo.reshape(a, (B, 3)) is a
    assert hlo.transpose(a, (0, 1)) is a
    assert hlo.convert(a, F32) is a
    assert hlo.broadcast(a, (B, 3), (0, 1)) is a
    assert hlo.numpy_broadcast(a, (B, 3)) is a
    assert hlo.reshape(hlo.reshape(x(6), (2, 3)), (6,)) is x(6)


def test_dims_of_size_1_are_reshaped_away_before_they_are_expanded() -> None:
    expanded = hlo.numpy_broadcast(x(B, 1, 3), (B, 5, 3))
    assert ops(expanded) == ["input", "reshape", "broadcast_in_dim"]
    assert expanded.attribute("broadcast_dimensions") == (0, 2) and expanded.operands[0].tensor.dims == (B, 3)
    assert ops(hlo.numpy_broadcast(x(3), (1, 1, 3))) == ["input", "reshape"]
    assert ops(hlo.numpy_broadcast(x(1), (S,))) == ["input", "reshape", "broadcast_in_dim"]
    assert ops(hlo.numpy_broadcast(x(3), (1, 4, 3))) == ["input", "broadcast_in_dim"]


def test_splats_stay_splats() -> None:
    one = hlo.splat(1.5, BF16, (2, 3))
    value = hlo.is_splat(one)
    assert value is not None and float(value.array()) == 1.5 and value.type == tensor(BF16)
    assert hlo.reshape(one, (6,)) is hlo.splat(1.5, BF16, (6,))
    assert hlo.reshape(one, (3, 2)) is hlo.transpose(one, (1, 0)) is hlo.splat(1.5, BF16, (3, 2))
    assert hlo.numpy_broadcast(one, (4, 2, 3)) is hlo.splat(1.5, BF16, (4, 2, 3))
    assert hlo.reshape(constant(np.float32(2)), (1, 1)) is hlo.splat(2, F32, (1, 1)) is hlo.literal(np.full((1, 1), 2, np.float32))
    assert hlo.is_splat(x(2)) is None and hlo.is_splat(constant(np.zeros(2))) is None
    assert hlo.splat(-0.0, F32, (2,)) is not hlo.splat(0.0, F32, (2,))


def test_literal_finds_splats_bit_by_bit() -> None:
    assert hlo.literal(np.zeros((2, 3), np.float32)) is hlo.splat(0.0, F32, (2, 3))
    assert hlo.is_splat(hlo.literal(np.full(4, np.nan, np.float32))) is not None
    for array in (np.array([0.0, -0.0]), np.array([1, 2]), np.zeros((0, 3))):
        assert hlo.is_splat(hlo.literal(array)) is None
    assert hlo.literal(7, I32) is constant(np.int32(7))
    assert hlo.is_splat(hlo.literal(np.zeros((1 << 20) + 1, np.int8))) is None


@settings(max_examples=100, deadline=None, derandomize=True)
@given(target=SMALL, data=st.data())
def test_broadcast_means_what_numpy_means(target: Shape, data: Any) -> None:
    keep = data.draw(st.integers(0, len(target)))
    shape = tuple(data.draw(st.sampled_from([1, dim])) for dim in target[keep:])
    value = np.random.default_rng(0).normal(size=shape).astype(np.float32)  # type: ignore[arg-type]
    term = hlo.numpy_broadcast(input_term("x", tensor(F32, *shape)), target)
    (result,) = evaluate([term], {"x": value})
    np.testing.assert_array_equal(result, np.broadcast_to(value, target))  # type: ignore[arg-type]
    for node in topological([term]):
        if node.op.name == "stablehlo.broadcast_in_dim":
            axes = node.attribute("broadcast_dimensions")
            assert node.operands[0].tensor.dims == tuple(node.tensor.dims[axis] for axis in axes), "a dim of size 1 is expanded"


def test_numpy_view() -> None:
    assert hlo.numpy_view((2, 3, 4), (1,), (3,)) == (3, 1)
    assert hlo.numpy_view((2, 3, 4), (2,), (4,)) == (4,)
    assert hlo.numpy_view((2, 3, 4), (0, 2), (2, 4)) == (2, 1, 4)
    assert hlo.numpy_view((2, 3), (1, 0), (3, 2)) is None
    assert hlo.numpy_view((B, 3), (), ()) == ()
    assert hlo.numpy_view((B, S, 3), (0,), (B,)) == (B, 1, 1)
