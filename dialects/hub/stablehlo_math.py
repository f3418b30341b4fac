"""The hub, third part: linear algebra, Fourier transforms, batch normalization, random bits, the barrier, quantization.

Source of every meaning: the StableHLO specification (https://openxla.org/stablehlo/spec). Each family has a file
(`hub_linalg`, `hub_normalization`, `hub_random`, `hub_quantized`) with its type rules and meanings; this one registers the ops.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from coset.dialects.hub import linalg, normalization, quantized, random
from coset.dialects.hub.checks import tensor_of
from coset.dialects.hub.stablehlo import SPECIFICATION, Rule
from coset.ir import dims
from coset.ir.dims import Dim
from coset.ir.op import Array, Attribute, Attributes, Meaning, Op, register
from coset.ir.types import TensorType, TokenType, TupleType, Type

if TYPE_CHECKING:
    from coset.ir.term import Term


def _op(name: str, infer: Rule, meaning: Meaning | None, document: str, *attributes: Attribute, traits: str = "", **more: Any) -> Op:
    full = f"stablehlo.{name}"
    return register(Op(full, partial(infer, full), meaning, attributes, traits=frozenset(traits.split()),
                       source=SPECIFICATION + name, document=document, **more))  # fmt: skip


def _elements(operand: Type) -> Dim:
    assert isinstance(operand, TensorType)
    return operand.elements


# ---------------------------------------------------------------- linear algebra


def _cholesky_flops(_: Type, operands: Sequence[Type], __: Attributes) -> Dim:
    """n^3 / 3 for each matrix (Golub and Van Loan 2013, section 4.2.5)."""
    assert isinstance(operands[0], TensorType)
    return dims.floordiv(dims.multiply(_elements(operands[0]), operands[0].dims[-1]), 3)


def _triangular_flops(_: Type, operands: Sequence[Type], __: Attributes) -> Dim:
    """n for each element of b (Golub and Van Loan 2013, section 3.1)."""
    assert isinstance(operands[0], TensorType)
    return dims.multiply(_elements(operands[1]), operands[0].dims[-1])


def _fft_flops(result: Type, operands: Sequence[Type], attributes: Attributes) -> Dim:
    """5 n log2 n for each complex transform of n elements, half of it for a real one (Frigo and Johnson, FFTW's benchmark); log2 of a
    length that is not a number is taken as 10."""
    kind, length = attributes["fft_type"], attributes["fft_length"]
    whole = _elements(operands[0] if kind == "RFFT" else result)
    known = [dim for dim in length if isinstance(dim, int)]
    depth = sum(max(dim - 1, 0).bit_length() for dim in known) + 10 * (len(length) - len(known))
    return dims.multiply(whole, 5 * depth if kind in ("FFT", "IFFT") else -(-5 * depth // 2))


CHOLESKY = _op("cholesky", linalg.cholesky_type, linalg.cholesky, "The triangular L with L L^H = a, or U with U^H U = a; one triangle of a "
               "is read.", Attribute("lower", "bool"), operands=("a",), flops=_cholesky_flops)  # fmt: skip
TRIANGULAR_SOLVE = _op(
    "triangular_solve", linalg.triangular_solve_type, linalg.triangular_solve,
    "The x of op(a) x = b, or of x op(a) = b, for a triangular a; op is what `transpose_a` says.", Attribute("left_side", "bool"),
    Attribute("lower", "bool"), Attribute("unit_diagonal", "bool"), Attribute("transpose_a", "string"), operands=("a", "b"),
    flops=_triangular_flops)  # fmt: skip
FFT = _op("fft", linalg.fft_type, linalg.fft, "The discrete Fourier transform over the last dims, forward or inverse, complex or real.",
          Attribute("fft_type", "string"), Attribute("fft_length", "dims"), operands=("operand",), flops=_fft_flops)  # fmt: skip

# ---------------------------------------------------------------- batch normalization


def _times(count: int) -> Any:
    def flops(_: Type, operands: Sequence[Type], __: Attributes) -> Dim:
        return dims.multiply(count, _elements(operands[0]))

    return flops


_NORMALIZED = (Attribute("epsilon", "float"), Attribute("feature_index", "int"))
BATCH_NORM_INFERENCE = _op(
    "batch_norm_inference", normalization.inference_type, normalization.inference,
    "scale * (operand - mean) / sqrt(variance + epsilon) + offset, one number of each for a feature.", *_NORMALIZED,
    operands=("operand", "scale", "offset", "mean", "variance"), flops=_times(4))  # fmt: skip
BATCH_NORM_TRAINING = _op(
    "batch_norm_training", normalization.training_type, normalization.training,
    "`batch_norm_inference` with the mean and variance of the operand; then these two.", *_NORMALIZED,
    operands=("operand", "scale", "offset"), flops=_times(8))  # fmt: skip
BATCH_NORM_GRAD = _op(
    "batch_norm_grad", normalization.gradient_type, normalization.gradient,
    "The gradients of `batch_norm_training` with respect to its operand, scale and offset.", *_NORMALIZED,
    operands=("operand", "scale", "mean", "variance", "grad_output"), flops=_times(12))  # fmt: skip

# ---------------------------------------------------------------- random bits


def _generated_flops(result: Type, _: Sequence[Type], __: Attributes) -> Dim:
    """About 20 integer operations for each element: 10 rounds of 6 and 2 key words for four of 32 bits."""
    assert isinstance(result, TupleType)
    return dims.multiply(20, _elements(result.items[1]))


RNG_BIT_GENERATOR = _op(
    "rng_bit_generator", random.bit_generator_type, random.bit_generator,
    "The generator's state after, and `shape` random bits of `dtype`, the same on every machine.", Attribute("rng_algorithm", "string"),
    Attribute("dtype", "dtype"), Attribute("shape", "dims"), operands=("initial_state",), flops=_generated_flops)  # fmt: skip
RNG = _op("rng", random.draw_type, None, "Random numbers drawn anew: UNIFORM between a and b, or NORMAL of mean a and deviation b.",
          Attribute("rng_distribution", "string"), Attribute("shape", "dims"), operands=("a", "b", "shape"),
          traits="effect", flops=lambda _, __, attributes: dims.multiply(20, dims.product(attributes["shape"])))  # fmt: skip

# ---------------------------------------------------------------- the barrier


def _barrier_type(name: str, operands: Sequence[Type], _: Attributes) -> Type:
    """The operands' types; each is a tensor or a token."""
    for i, operand in enumerate(operands):
        if not isinstance(operand, TokenType):
            tensor_of(operand, f"operand {i} of `{name}`")
    return TupleType(tuple(operands))


def _barrier(_: Term, arrays: Sequence[Array], __: Any) -> tuple[Array, ...]:
    """The operands as they are."""
    return tuple(arrays)


OPTIMIZATION_BARRIER = _op("optimization_barrier", _barrier_type, _barrier, "The operands; what needs one waits for all.",
                           operands=("operands",), variadic=True, flops=lambda _, __, ___: 0)  # fmt: skip

# ---------------------------------------------------------------- quantized tensors

UNIFORM_QUANTIZE = _op("uniform_quantize", quantized.quantize_type, quantized.uniform_quantize, "The operand as integers of the quantized "
                       "`dtype`: round(clamp(operand / scale + zero_point)), ties to even.", Attribute("dtype", "dtype"),
                       operands=("operand",), traits="elementwise", flops=_times(4))  # fmt: skip
UNIFORM_DEQUANTIZE = _op("uniform_dequantize", quantized.dequantize_type, quantized.uniform_dequantize, "The numbers that a quantized "
                         "operand stands for: (operand - zero_point) * scale.", operands=("operand",), traits="elementwise",
                         flops=_times(2))  # fmt: skip
