"""Recurrences without products: as many rounds as a kernel holds are one kernel, which stores what each round gives."""

from __future__ import annotations

import numpy as np
import pytest

from coset.ir.program import Program
from coset.ir.term import Term, input_term, make
from coset.ir.types import F32, TensorType
from coset.lowering.kernels.kernel import Library, Pointwise, stores_of
from tests.lowering.test_plan import check

WIDTH = 5


def placed(term: Term) -> Term:
    return make("stablehlo.reshape", (term,), {"shape": (1, *term.tensor.dims)})


def row(x: Term, at: int) -> Term:
    width = x.tensor.dims[1]
    found = make("stablehlo.slice", (x,), {"start": (at, 0), "limit": (at + 1, width), "strides": (1, 1)})
    return make("stablehlo.reshape", (found,), {"shape": (width,)})


def binary(op: str, x: Term, y: Term) -> Term:
    return make(f"stablehlo.{op}", (x, y))


def feeds(rounds: int) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(rounds)
    shapes = {"x": (rounds, WIDTH), "a": (WIDTH,), "h": (WIDTH,)}
    return {name: (draw.standard_normal(shape) * 0.5).astype(np.float32) for name, shape in shapes.items()}


@pytest.mark.parametrize("rounds", [2, 5, 16, 40])
def test_rounds_of_an_elementwise_state_share_a_kernel(rounds: int) -> None:
    x, a, h = (input_term(name, TensorType(F32, value.shape)) for name, value in feeds(rounds).items())
    state, given = h, []
    for at in range(rounds):
        state = binary("add", binary("multiply", a, state), row(x, at))
        given.append(state)
    joined = make("stablehlo.concatenate", [placed(each) for each in given], {"dimension": 0})
    found = check(Program((x, a, h), (("last", state), ("all", joined))), feeds(rounds))
    assert not any(isinstance(kernel, Library) for kernel in found.kernels)
    assert len(found.kernels) <= 2 + rounds // 8
    if rounds > 2:
        assert max(len(stores_of(kernel)) for kernel in found.kernels if isinstance(kernel, Pointwise)) >= min(rounds, 8) - 1


def test_rounds_whose_results_are_summed() -> None:
    """A state space: of a state of two dims each round gives a sum along one, so that states are stored once in many rounds."""
    rounds, width, states = 24, 32, 16
    shapes = {"x": (rounds, width), "d": (rounds, width), "a": (width, states), "b": (rounds, states), "c": (rounds, states)}
    x, d, a, b, c = (input_term(name, TensorType(F32, shape)) for name, shape in shapes.items())

    def over(term: Term, axis: int) -> Term:
        return make("stablehlo.broadcast_in_dim", (term,), {"shape": (width, states), "broadcast_dimensions": (axis,)})

    state, given = binary("subtract", a, a), []
    for at in range(rounds):
        first, second, entry, read = (row(each, at) for each in (x, d, b, c))
        kept = make("stablehlo.exponential", (binary("multiply", over(second, 0), a),))
        new = binary("multiply", over(binary("multiply", first, second), 0), over(entry, 1))
        state = binary("add", binary("multiply", kept, state), new)
        given.append(make("stablehlo.reduce", (binary("multiply", state, over(read, 1)),), {"dimensions": (1,), "combiner": "add"}))
    joined = make("stablehlo.concatenate", [placed(each) for each in given], {"dimension": 0})
    draw = np.random.default_rng(0)
    found = check(
        Program((x, d, a, b, c), (("y", joined),)),
        {name: (draw.standard_normal(shape) * 0.5).astype(np.float32) for name, shape in shapes.items()},
    )
    assert len(found.kernels) <= 10
