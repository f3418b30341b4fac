"""Products have what lies side by side in memory as their columns, whichever operand a program has on the left."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

import coset.dialects  # noqa: F401  (fills the registry)
from coset.backends.triton_runtime import Compiler, Runner
from coset.dialects.hub.terms import broadcast, splat, transpose
from coset.ir.evaluate import evaluate_program
from coset.ir.program import Program
from coset.ir.term import Term, input_term
from coset.ir.types import F16, F32, TensorType
from coset.lowering.arranging.layouts import laid_out
from coset.lowering.kernels.kernel import Load, Plan, Product, extents_of
from coset.lowering.planning.facing import faced
from coset.lowering.planning.plan import plan
from coset.lowering.triton.source import emit, kernel_source
from coset.pricing.kernel_options import options_for
from coset.targets.target import get_target
from tests.lowering import plan_numpy
from tests.lowering.test_triton_windows import EACH, op
from tests.lowering.triton_cases import assert_near, run


def x_(name: str, *shape: int) -> Term:
    return input_term(name, TensorType(F32, shape))


def dot(a: Term, b: Term, left: int, right: int) -> Term:
    return op("dot_general", a, b, lhs_batch=(), rhs_batch=(), lhs_contract=(left,), rhs_contract=(right,))


def product_of(made: Plan) -> Product:
    (found,) = [kernel for kernel in made.kernels if isinstance(kernel, Product)]
    return found


def inner(made: Plan) -> str:
    """The side whose index is the last of what is stored."""
    kernel = product_of(made)
    (store,) = kernel.stores
    order = made.buffers[store.buffer].order or range(len(store.index))
    name = str(store.index[list(order)[-1]])
    return "columns" if any(loop.name == name for loop in kernel.n) else "rows"


@pytest.mark.parametrize("order", permutations(range(3)))
@pytest.mark.parametrize("filters_first", [False, True])
def test_columns_lie_side_by_side(order: tuple[int, int, int], filters_first: bool, interpreter: Runner) -> None:
    """For every order of the dims of what is stored, and for both operands on the left."""
    x, w = x_("x", 3, 70, 24), x_("w", 80, 24)
    y = transpose(dot(w, x, 1, 2), (1, 2, 0)) if filters_first else dot(x, w, 2, 1)
    program = Program((x, w), (("y", transpose(y, order)),))
    made = plan(program)
    assert inner(made) == "columns"
    draw = np.random.default_rng(0)
    values = {"x": draw.normal(size=(3, 70, 24)).astype(np.float32), "w": draw.normal(size=(80, 24)).astype(np.float32)}
    found, expected = run(product_of(made), made, values, {}, interpreter, EACH)["y"]
    assert_near(found, expected, F32, 2e-5, absolute=1e-4)
    assert_near(plan_numpy.run(made, values)["y"], evaluate_program(program, values)[0], F32, 2e-5, absolute=1e-4)


def test_few_rows_stay_columns() -> None:
    """A matrix unit's instruction has 64 rows, and as few columns as eight: a product with 8 of one side has these as columns."""
    x, w = x_("x", 8, 24), x_("w", 80, 24)
    made = plan(Program((x, w), (("y", transpose(dot(w, x, 1, 1), (1, 0))),)))
    assert inner(made) == "rows" and extents_of(product_of(made))[product_of(made).n[0].name] == 8


def test_stores_that_differ_leave_it_as_it_is() -> None:
    x, w = x_("x", 70, 24), x_("w", 80, 24)
    y = dot(w, x, 1, 1)
    made = plan(Program((x, w), (("y", y), ("z", transpose(y, (1, 0))))))
    kernel = product_of(made)
    assert [loop.extent for loop in kernel.m] == [80] and faced(kernel, made.buffers) == kernel


def pointwise_behind_activation(dtype: TensorType, features: int) -> Program:
    """A convolution with filters of one place behind a bias and an activation, with a residual, as the search leaves it."""
    x, w = input_term("x", dtype), input_term("w", TensorType(dtype.dtype, (features, dtype.dims[1])))
    b = input_term("b", TensorType(dtype.dtype, (dtype.dims[1],)))
    active = op("maximum", op("add", x, broadcast(b, x.tensor.dims, (1,))), splat(0, dtype.dtype, x.tensor.dims))
    y = transpose(dot(w, active, 1, 1), (1, 0, 2, 3))
    r = input_term("r", y.tensor)
    return Program((x, w, b, r), (("y", op("add", y, r)),))


def test_with_features_last_activations_are_on_the_left(compiler: Compiler) -> None:
    """Then what is done to them stays in registers: the only things in shared memory are copies from memory, and what turns the result."""
    made = plan(pointwise_behind_activation(TensorType(F16, (64, 256, 14, 14)), 1024))
    assert [loop.extent for loop in product_of(made).m] == [1024] and isinstance(product_of(made).lhs, Load)
    last = laid_out(made, dict.fromkeys(("x", "r", "y"), (0, 2, 3, 1)))
    kernel = product_of(last)
    assert [loop.extent for loop in kernel.n] == [1024] and isinstance(kernel.rhs, Load) and not isinstance(kernel.lhs, Load)
    assert kernel.terms == product_of(made).terms and kernel.stores == product_of(made).stores
    options = options_for("reassociates", get_target("nvidia-h200"))
    (compiled,) = compiler.run(kernel_source(kernel, last, options=options), emit(kernel, last, options=options).launches, "sm_90", {})
    assert compiled.spilled == 0 and "wgmma" in compiled.text
    body = compiled.text[: compiled.text.index("wgmma.mma_async")]
    assert "st.shared.v4" not in body  # the activation does not go back
