"""The hub's batch normalizations: inference, training and gradient.

Sums are kept in f64 and every result is rounded once. Each op's type rule stands before its meaning; the formulas are those
of the StableHLO specification.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from coset.dialects.hub.checks import get_axis, get_float, require_class, tensors
from coset.dialects.hub.scalars import narrow, widen
from coset.dialects.hub.tensors import Binding
from coset.ir.errors import require
from coset.ir.op import Array, Attributes
from coset.ir.types import DType, TensorType, TupleType, Type, dtype_of

if TYPE_CHECKING:
    from coset.ir.term import Term


def _normalized_type(name: str, operand: TensorType, features: Sequence[tuple[str, TensorType]], attributes: Attributes) -> TensorType:
    """The type of one number for each feature, after the checks that the three ops share."""
    require_class(name, "`operand`", operand.dtype, "float")
    get_float(name, attributes, "epsilon")
    axis = get_axis(name, attributes, "feature_index", operand.rank)
    expected = TensorType(operand.dtype, (operand.dims[axis],))
    for what, type in features:
        require(type == expected, f"`{what}` of `{name}` must be {expected}, one for each feature of {operand}, not {type}")
    return expected


def inference_type(name: str, operands: Sequence[Type], attributes: Attributes) -> Type:
    """The operand's type."""
    names = ("operand", "scale", "offset", "mean", "variance")
    operand, *features = tensors(name, operands, *names)
    _normalized_type(name, operand, list(zip(names[1:], features, strict=True)), attributes)
    return operand


def training_type(name: str, operands: Sequence[Type], attributes: Attributes) -> Type:
    """The output, the batch's mean and its variance."""
    operand, scale, offset = tensors(name, operands, "operand", "scale", "offset")
    feature = _normalized_type(name, operand, [("scale", scale), ("offset", offset)], attributes)
    return TupleType((operand, feature, feature))


def gradient_type(name: str, operands: Sequence[Type], attributes: Attributes) -> Type:
    """The gradients of the operand, the scale and the offset."""
    operand, scale, mean, variance, output = tensors(name, operands, "operand", "scale", "mean", "variance", "grad_output")
    feature = _normalized_type(name, operand, [("scale", scale), ("mean", mean), ("variance", variance)], attributes)
    require(output == operand, f"`grad_output` of `{name}` must have the operand's type {operand}, not {output}")
    return TupleType((operand, feature, feature))


class _Batch:
    """The arrays in f64, with one number for each feature spread along the other dims."""

    def __init__(self, term: Term, operand: Array) -> None:
        self.axis = term.attribute("feature_index")
        self.rest = tuple(axis for axis in range(operand.ndim) if axis != self.axis)
        self.view = [-1 if axis == self.axis else 1 for axis in range(operand.ndim)]
        self.count = np.float64(np.prod([operand.shape[axis] for axis in self.rest]))
        self.dtype: DType = dtype_of(operand.dtype)

    def spread(self, x: Array) -> Array:
        """One number for each feature, ready to meet the operand."""
        return np.asarray(widen(x).astype(np.float64).reshape(self.view))

    def sum(self, x: Array) -> Array:
        """Sums over everything but the features."""
        return np.asarray(np.sum(x, axis=self.rest, dtype=np.float64))

    def rounded(self, *results: Array) -> tuple[Array, ...]:
        """The results in the operand's dtype."""
        return tuple(narrow(x, self.dtype) for x in results)


def inference(term: Term, arrays: Sequence[Array], _: Binding) -> Array:
    """scale * (operand - mean) / sqrt(variance + epsilon) + offset."""
    batch = _Batch(term, arrays[0])
    x = widen(arrays[0]).astype(np.float64)
    scale, offset, mean, variance = map(batch.spread, arrays[1:])
    with np.errstate(all="ignore"):
        return batch.rounded(scale * ((x - mean) / np.sqrt(variance + term.attribute("epsilon"))) + offset)[0]


def training(term: Term, arrays: Sequence[Array], _: Binding) -> tuple[Array, ...]:
    """The inference form with the mean and the (biased) variance of the operand itself, and these two."""
    batch = _Batch(term, arrays[0])
    x = widen(arrays[0]).astype(np.float64)
    scale, offset = map(batch.spread, arrays[1:])
    with np.errstate(all="ignore"):
        mean = batch.sum(x) / batch.count
        centered = x - mean.reshape(batch.view)
        variance = batch.sum(centered * centered) / batch.count
        deviation = np.sqrt(variance.reshape(batch.view) + term.attribute("epsilon"))
        return batch.rounded(scale * (centered / deviation) + offset, mean, variance)


def gradient(term: Term, arrays: Sequence[Array], _: Binding) -> tuple[Array, ...]:
    """scale / (deviation * count) * (count * g - sum(g) - sum(g * centered) * centered / (variance + epsilon)), and the sums."""
    batch = _Batch(term, arrays[0])
    x, output = (widen(array).astype(np.float64) for array in (arrays[0], arrays[4]))
    scale, mean, variance = map(batch.spread, arrays[1:4])
    with np.errstate(all="ignore"):
        centered, spread = x - mean, variance + term.attribute("epsilon")
        deviation = np.sqrt(spread)
        offset_gradient, slope = batch.sum(output), batch.sum(output * centered)
        inner = output * batch.count - offset_gradient.reshape(batch.view) - slope.reshape(batch.view) * centered / spread
        scale_gradient = batch.sum(output * (centered / deviation))
        return batch.rounded(scale / deviation / batch.count * inner, scale_gradient, offset_gradient)
