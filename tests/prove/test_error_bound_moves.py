"""Error bounds through ops that move elements by computed indices, and through ops that mix many elements."""

from __future__ import annotations

import numpy as np

import coset.dialects  # noqa: F401  (registers the ops)
from coset.ir.term import Term, input_term, make
from coset.ir.types import F32, I32, tensor
from coset.prove.error_bound import evaluate_bounded

X = np.array([1.0, 2.0, 3.0], np.float32)
GATHER = {"offset_dims": (), "collapsed_slice_dims": (0,), "start_index_map": (0,), "index_vector_dim": 1, "slice_sizes": (1,)}


def rounded() -> Term:
    """A value with an error in each element: exp of the input."""
    return make("stablehlo.exponential", (input_term("x", tensor(F32, 3)),))


def test_gather_takes_the_errors_of_the_elements_that_it_takes() -> None:
    indices = input_term("i", tensor(I32, 2))
    given = {"x": X, "i": np.array([2, 0], np.int32)}
    _, before = evaluate_bounded(rounded(), given)
    value, after = evaluate_bounded(make("stablehlo.gather", (rounded(), indices), GATHER), given)
    np.testing.assert_array_equal(value, np.exp(X)[[2, 0]])
    np.testing.assert_array_equal(after, before[[2, 0]])


def test_indices_that_move_are_exact() -> None:
    numbers, indices = input_term("n", tensor(I32, 3)), input_term("i", tensor(I32, 2))
    given = {"n": np.array([7, 8, 9], np.int32), "i": np.array([1, 1], np.int32)}
    value, error = evaluate_bounded(make("stablehlo.gather", (numbers, indices), GATHER), given)
    assert value.tolist() == [8, 8] and error.tolist() == [0, 0]


def test_an_op_without_a_rule_of_its_own_has_no_bound() -> None:
    term = make("stablehlo.fft", (rounded(),), {"fft_type": "RFFT", "fft_length": (3,)})
    real = make("stablehlo.real", (term,))
    _, error = evaluate_bounded(real, {"x": X})
    assert np.isinf(error).all()
