"""ONNX ops that have a form for training: Dropout and BatchNormalization."""

from __future__ import annotations

from pathlib import Path

from coset.dialects.hub.terms import convert, reshape, splat
from coset.dialects.onnx import ops as onnx_ops
from coset.dialects.onnx.node import Built, Node, constant_elements, definition
from coset.ir.term import Term, get, make
from coset.ir.types import BOOL, F32
from coset.rules.defining import defer_definitions

RULES = defer_definitions(Path(__file__).with_name("training_mode.rules"))
DEFINED_FIRST = onnx_ops  # and what it imports: the definitions mention those ops
_MASKED_SINCE = 12  # before, the mask of inference is not said
_TRAINING_SINCE = 14  # before, the number of results said so
_WORDS = ("epsilon", "momentum")


@definition("Dropout")
def _dropout(node: Node) -> Built:
    """Nothing is dropped in inference or at the ratio 0: the operand, and a mask of true. What is drawn has no definition."""
    if node.since < _MASKED_SINCE:
        return None  # as it is built on import
    x, ratio, training = node.operands[0], node.operand(1), node.operand(2)
    if training is None or _is_zero(training) or (ratio is not None and _is_zero(ratio)):
        return x, splat(True, BOOL, x.tensor.dims)
    return None


def _is_zero(term: Term) -> bool:
    known = constant_elements(term, 1)
    return known is not None and not known.astype(bool).any()


@definition("BatchNormalization")
def _batch_normalization(node: Node) -> Built:
    """In inference by the given mean and variance, in training by those of each channel; computed in the widest type of all operands,
    f32 at least. One dim is one channel."""
    x = node.operands[0]
    training = bool(node.attributes.get("training_mode", 0))
    if node.since < _TRAINING_SINCE:
        return None  # as it is built on import
    if x.tensor.rank == 1:
        x = reshape(x, (*x.tensor.dims, 1))
    wide = max((F32, *(operand.tensor.dtype for operand in node.operands)), key=lambda dtype: dtype.bits)
    same = not training and len({operand.tensor.dtype for operand in node.operands}) == 1
    operands = [operand if same else convert(operand, wide) for operand in (x, *node.operands[1:])]
    attributes = {name: node.attributes[name] for name in _WORDS[: 1 + training] if name in node.attributes}
    built = make("onnx.BatchNormalizationTraining" if training else "onnx.BatchNormalization", operands, attributes)
    results = tuple(get(built, index) for index in range(3)) if training else (built,)
    dtypes = (x.tensor.dtype, *(node.operands[3].tensor.dtype for _ in results[1:]))
    given = [convert(result, dtype) for result, dtype in zip(results, dtypes, strict=True)]
    return (reshape(given[0], node.operands[0].tensor.dims), *given[1:])
