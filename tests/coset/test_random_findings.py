"""What random programs found, one test for each bug (tests/coset/random_programs.py)."""

from __future__ import annotations

import multiprocessing
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch_mlir", reason="the extra `mlir` is not installed")

from coset.comparing.difference import difference
from coset.dialects.hub.region_terms import if_term, region
from coset.dialects.hub.scalars import power
from coset.dialects.hub.tensors import matmul
from coset.dialects.hub.terms import broadcast, literal, reshape, splat
from coset.ir.constants import constant_of
from coset.ir.dims import symbol
from coset.ir.program import Program
from coset.ir.quantized import quantized
from coset.ir.term import Term, constant, get, input_term, make
from coset.ir.types import BOOL, DTYPES, F32, F64, I8, I32, DType, TensorType
from coset.job.job import Job
from coset.job.phases import phases_for, with_witnesses
from coset.prove.certificate import decode_function
from coset.prove.error_bound import evaluate_bounded, roundoff
from coset.prove.values import has_pattern
from coset.prove.writing import encode_function
from coset.proving.join import join
from coset.rules.rule import Rule
from coset.targets.target import get_target
from tests.coset.drawn_hub import bank, drawn_ops
from tests.coset.random_programs import LIMITS, Account, Means, examine
from tests.coset.smaller_programs import text_of

EXACT = Means("exact", None)
X = input_term("x", TensorType(F32, (2, 3)))
SCALE = DTYPES["f8e8m0fnu"]


def through(*roots: Term, inputs: tuple[Term, ...] = (X,)) -> Account:
    """The program through the whole optimizer, in memory and as files; any failure raises."""
    account = Account()
    examine(Program(inputs, tuple((f"y{place}", root) for place, root in enumerate(roots))), EXACT, account, files=True)
    assert account.files == account.certified == 1
    return account


# ---------------------------------------------------------------- rules and their language


@pytest.mark.parametrize("made", [
    lambda x: make("stablehlo.negate", (make("stablehlo.negate", (x,)),)),
    lambda x: make("stablehlo.subtract", (x, x)),
    lambda x: make("stablehlo.add", (x, splat(-0.0, SCALE, (2, 3)))),
    lambda x: make("stablehlo.subtract", (x, literal(np.array([[1, 2, 4]] * 2, SCALE.numpy)))),
])  # fmt: skip
def test_a_type_without_zeros_and_signs_has_no_laws_of_arithmetic(made: Any) -> None:
    """-(-x) is NaN there."""
    x = input_term("x", TensorType(SCALE, (2, 3)))
    account = Account()
    examine(Program((x,), (("y0", made(x)),)), EXACT, account)
    assert not {name for name in account.fired if "negat" in name or "subtract" in name}


def test_the_type_of_scales_has_no_false() -> None:
    x = input_term("x", TensorType(BOOL, (4,)))
    there = make("stablehlo.convert", (x,), {"dtype": SCALE})
    examine(Program((x,), (("y0", make("stablehlo.convert", (there,), {"dtype": BOOL})),)), EXACT, Account())


def test_a_reshape_without_elements_does_not_move_past_a_fold() -> None:
    """The search crashed: [2, 0] has as many elements as [0], but there are two folds of its rows."""
    x = input_term("x", TensorType(F32, (2, 0)))
    folded = make("stablehlo.reduce", (reshape(x, (0,)),), {"dimensions": (0,), "combiner": "maximum"})
    examine(Program((x,), (("y0", folded),)), Means("reassociates", None), Account())


def test_what_scales_along_a_dim_is_not_moved() -> None:
    """The search crashed: a broadcast moved past an op whose scales differ along a dim."""
    dtype = quantized(I8, F32, (0.25, 3.0, 0.7), (1, -128, 127), axis=1)
    number = input_term("s", TensorType(F32, ()))
    made = [make("stablehlo.uniform_quantize", (wide,), {"dtype": dtype}) for wide in (
        broadcast(number, (2, 3), ()), make("stablehlo.reverse", (X,), {"dimensions": (1,)}))]  # fmt: skip
    account = Account()
    examine(Program((number, X), tuple((f"y{i}", make("stablehlo.uniform_dequantize", (q,))) for i, q in enumerate(made))), EXACT, account)
    assert account.certified == 1


def test_a_pattern_is_looked_for_in_constants_without_elements() -> None:
    assert has_pattern(np.zeros((0, 4, 4)), "sparse") and has_pattern(np.zeros((0, 4), np.int32), "unique_indices")
    x = input_term("x", TensorType(F32, (0, 4)))
    through(make("stablehlo.add", (x, literal(np.zeros((0, 4), np.float32)))), inputs=(x,))


# ---------------------------------------------------------------- values


def _same(dtypes: list[DType]) -> bool:
    return all(dtype is DTYPES[dtype.name] for dtype in dtypes if dtype.name in DTYPES)


def test_an_element_type_is_one_object_in_every_process() -> None:
    """It is compared with `is`; what a search sends back has types, too."""
    receiver, sender = multiprocessing.Pipe(duplex=False)
    sent = [*DTYPES.values(), quantized(I8, F32, (0.5,), (3,))]
    sender.send(sent)
    found = receiver.recv()
    assert _same(found) and found == sent and type(found[-1]) is type(sent[-1])


@pytest.mark.parametrize("exponent", [-1.0, 0.0, 0.5, 1.0, 2.0, 3.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_power_is_the_same_whatever_the_strides(exponent: float, dtype: Any) -> None:
    """NumPy takes one exponent of stride 0 for a square root, which is NaN of -inf."""
    bases = np.array([-np.inf, -0.0, 0.1992400735616684, 3.3, np.inf, np.nan], dtype)
    one = np.asarray(exponent, dtype)
    whole = np.asarray(power(bases, np.full(bases.shape, one)))
    spread = np.asarray(power(bases, np.broadcast_to(one, bases.shape)))
    single = np.array([power(np.asarray(base), one) for base in bases])
    assert whole.tobytes() == spread.tobytes() == single.tobytes()


def test_a_product_of_matrices_is_the_same_whatever_the_strides() -> None:
    draw = np.random.default_rng(0)
    for size in range(2, 40):
        a, b = np.broadcast_to(draw.normal(), (1, size)), draw.normal(size=(size, 1))
        assert matmul(a, b, F64).tobytes() == matmul(np.array(a), b, F64).tobytes()


def test_complex_numbers_and_8_bit_floats_are_compared() -> None:
    """The comparison of a result with its original crashed."""
    for dtype in (DTYPES["c64"], DTYPES["f8e5m2"], DTYPES["f8e4m3fn"]):
        one, other = np.array([1.0, -0.0], dtype.numpy), np.array([1.0, 0.0], dtype.numpy)
        for exact in (False, True):
            assert difference("normal", "y", one, one, 0.0, exact=exact).ok
        assert difference("normal", "y", one, other, 0.0, exact=False).ok
        assert not difference("normal", "y", one, other, 0.0, exact=True).ok
    assert roundoff(np.complex64) == np.finfo(np.float32).eps


def test_error_bounds_of_what_has_several_results_and_of_uncertain_integers() -> None:
    x = input_term("x", TensorType(F32, (3,)))
    rounded = make("stablehlo.convert", (make("stablehlo.exponential", (x,)),), {"dtype": I32})
    inputs = {"x": np.array([np.log(2.0), 1.0, 0.0], np.float32)}
    assert evaluate_bounded(make("stablehlo.add", (rounded, rounded)), inputs)[1].max() == np.inf
    pair = make("stablehlo.sort", (x, x), {"dimension": 0, "direction": "LT", "is_stable": True, "total": False})
    assert evaluate_bounded(get(pair, 0), inputs)[1].shape == (3,)


def test_integers_of_what_has_no_value_have_no_bound() -> None:
    """The root of a negative number is NaN, and as an integer 0, where 1 / x has another: only for a NaN that is given that is exact."""
    x = input_term("x", TensorType(F32, (3,)))
    inputs = {"x": np.array([-4.0, 4.0, np.nan], np.float32)}
    root = make("stablehlo.rsqrt", (x,))
    whole = make("stablehlo.convert", (make("stablehlo.multiply", (root, root)),), {"dtype": I8})
    assert list(np.isfinite(evaluate_bounded(whole, inputs)[1])) == [False, True, False]
    given = make("stablehlo.convert", (x,), {"dtype": I8})
    assert not evaluate_bounded(given, inputs)[1].any()


# ---------------------------------------------------------------- files and certificates


def test_a_choice_that_captures_constants_is_certified() -> None:
    """What was computed at build time is inside the branch when the text is read again."""
    pred = input_term("p", TensorType(BOOL, ()))
    ramp = literal(np.arange(3, dtype=np.float32))
    sums = broadcast(make("stablehlo.add", (ramp, ramp)), (2, 3), (1,))
    through(if_term(pred, [X, sums], lambda x, c: [make("stablehlo.add", (x, c))], lambda x, c: [c]), inputs=(X, pred))


def test_a_choice_that_captures_one_value_twice_is_certified() -> None:
    pred = input_term("p", TensorType(BOOL, ()))
    twice = make("stablehlo.negate", (make("stablehlo.negate", (X,)),))
    through(if_term(pred, [X, twice], lambda x, c: [make("stablehlo.multiply", (x, c))], lambda x, c: [c]), inputs=(X, pred))


def test_an_input_that_loses_its_user_is_certified() -> None:
    """Its dim was that of the other input because of an op that is gone."""
    x, y = (input_term(name, TensorType(I32, (symbol("A"),))) for name in "xy")
    through(make("stablehlo.add", (x, make("stablehlo.subtract", (y, y)))), inputs=(x, y))


def test_numbers_of_shapes_are_read_as_they_are_written() -> None:
    """A small constant of one number was written as a splat, and read as a constant inside a function."""
    pred = input_term("p", TensorType(BOOL, (1,)))
    several = constant(constant_of(np.array([False]), BOOL))
    both = make("stablehlo.concatenate", (make("stablehlo.not", (pred,)), several), {"dimension": 0})
    through(both, inputs=(pred,))


def test_a_splat_without_elements_is_read_as_a_constant() -> None:
    start = input_term("s", TensorType(F32, ()))
    body = region([start.type] * 2, lambda a, b: make("stablehlo.subtract", (b, a)))
    wide = broadcast(literal(np.float32(2)), (2, 3), ())
    nothing = make("stablehlo.slice", (wide,), {"start": (0, 1), "limit": (2, 1), "strides": (1, 1)})
    through(make("stablehlo.reduce_region", (nothing, start), {"dimensions": (0, 1)}, (body,)), inputs=(start,))


def test_a_broadcast_that_adds_dims_of_one_is_read_as_a_reshape() -> None:
    x = input_term("x", TensorType(F32, (1, 1)))
    spread = make("stablehlo.broadcast_in_dim", (reshape(x, (1,)),), {"shape": (1, 1, 1), "broadcast_dimensions": (2,)})
    job = Job(None, get_target("stablehlo"), "exact", LIMITS, (), {}, lambda _: None, certified=True)
    steps = join([(spread, reshape(x, (1, 1, 1)))], with_witnesses(phases_for(job, 1)))
    assert "broadcast_adds_ones" in {step.reason.name for step in steps if isinstance(step.reason, Rule)}


@pytest.mark.slow
@pytest.mark.parametrize("op", [op for op in drawn_ops() if op.signatures is not None], ids=str)
def test_certificates_say_every_function(op: Any) -> None:
    for case in bank(op):
        for function in case.term.regions:
            again = decode_function(encode_function(function))
            assert again == function, text_of(Program((), tuple((f"y{i}", term) for i, term in enumerate(function.results))))


def test_the_first_power_is_the_number_itself() -> None:
    """NumPy's vectorized kernels round the first power of some large numbers."""
    x = (np.random.default_rng(0).normal(size=4096) * 10.0 ** np.random.default_rng(1).integers(-30, 30, 4096)).astype(np.float32)
    assert np.array_equal(np.asarray(power(x, np.ones_like(x))), x)
