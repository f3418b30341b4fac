"""Operations that compute on quantized tensors: dequantize, compute, quantize, as the StableHLO specification defines them.

So are elementwise operations, contractions and convolutions, with scales for all elements or along a dim, on one side or on both
(https://openxla.org/stablehlo/spec#quantization-computations). Operations that fold quantized elements with a payload function
quantize after each step: they are kept as they are.
"""

from __future__ import annotations

from collections.abc import Sequence

from coset.frontends.stablehlo.node import Built, MlirOperation
from coset.ir.op import Op
from coset.ir.quantized import QuantizedType
from coset.ir.term import Term, make
from coset.ir.types import DType, TensorType

_CONTRACTIONS = ("stablehlo.dot_general", "stablehlo.dot", "stablehlo.convolution", "stablehlo.dynamic_conv")

_CASTS = ("stablehlo.uniform_quantize", "stablehlo.uniform_dequantize")


def is_computed_between(node: MlirOperation, op: Op | None) -> bool:
    """True for an operation on quantized operands that means: dequantize, compute, quantize."""
    computes = node.name in _CONTRACTIONS or (op is not None and op.has("elementwise") and node.name not in _CASTS)
    return computes and any(isinstance(x.tensor.dtype, QuantizedType) for x in node.operands)


class Floats(MlirOperation):
    """The operation over the floats that its quantized operands and results stand for."""

    def result(self, index: int = 0) -> tuple[DType, tuple[int | None, ...]]:
        """As `Node.result`, with the expressed type of quantized elements."""
        dtype, sizes = super().result(index)
        return dtype.expressed if isinstance(dtype, QuantizedType) else dtype, sizes


def dequantized(operands: Sequence[Term]) -> tuple[Term, ...]:
    """The floats that quantized operands stand for; the others as they are."""
    return tuple(
        make("stablehlo.uniform_dequantize", (x,)) if isinstance(x.type, TensorType) and isinstance(x.type.dtype, QuantizedType) else x
        for x in operands
    )


def requantized(node: MlirOperation, built: Built | None) -> Built | None:
    """The results in the element types that the operation states."""
    if built is None:
        return None
    results = [built] if isinstance(built, Term) else list(built)
    types = [node.result(index)[0] for index in range(len(results))]
    back = [
        make("stablehlo.uniform_quantize", (term,), {"dtype": dtype}) if isinstance(dtype, QuantizedType) else term
        for term, dtype in zip(results, types, strict=True)
    ]
    return back[0] if isinstance(built, Term) else back


def uniform_quantize(node: MlirOperation) -> Built:
    """Of floats, or of integers that another quantized type stands for."""
    (x,) = dequantized(node.operands)
    return make(node.name, (x,), {"dtype": node.result()[0]})
