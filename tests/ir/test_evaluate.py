"""The evaluator over symbolic dims: where their numbers come from, and in which order."""

from __future__ import annotations

import numpy as np
import pytest

from coset.dialects.hub.terms import broadcast
from coset.ir.builtin import DIMS
from coset.ir.dims import symbol
from coset.ir.errors import CosetError
from coset.ir.evaluate import evaluate, evaluate_program
from coset.ir.program import Program
from coset.ir.term import Term, constant, input_term, make
from coset.ir.types import F32, I64, tensor

N = symbol("n")


def numbers(*dims: object) -> Term:
    return make(DIMS, (), {"dims": dims, "type": tensor(I64, len(dims))})


def test_a_dim_of_an_input_that_no_root_needs_has_its_number() -> None:
    x = input_term("x", tensor(F32, N, 4))
    program = Program((x,), (("shape", numbers(N, 4)),))
    assert evaluate_program(program, {"x": np.zeros((3, 4), np.float32)})[0].tolist() == [3, 4]
    with pytest.raises(CosetError, match="needs a value for n"):
        evaluate(program.roots, {"x": np.zeros((3, 4), np.float32)})


def test_a_number_waits_for_the_value_whose_dim_it_is() -> None:
    """The broadcast stands before the slice in the order, but only the slice's value says what `m` is."""
    m = symbol("m")
    x, count = input_term("x", tensor(F32, N)), input_term("count", tensor(I64, 1))
    zero, one = constant(np.zeros(1, np.int64)), constant(np.ones(1, np.int64))
    front = make("stablehlo.real_dynamic_slice", (x, zero, count, one), {"shape": (m,)})
    ones = broadcast(constant(np.float32(1)), (m,), ())
    program = Program((x, count), (("ones", make("stablehlo.negate", (ones,))), ("front", front)))
    found = evaluate_program(program, {"x": np.arange(5, dtype=np.float32), "count": np.array([2])})
    assert [value.tolist() for value in found] == [[-1, -1], [0, 1]]
    alone = Program((x, count), program.outputs[:1], introduces={"m": front})
    assert evaluate_program(alone, {"x": np.arange(5, dtype=np.float32), "count": np.array([4])})[0].tolist() == [-1] * 4
    with pytest.raises(CosetError, match="needs a value for m"):
        evaluate_program(Program((x, count), program.outputs[:1]), {"x": np.arange(5, dtype=np.float32), "count": np.array([4])})
