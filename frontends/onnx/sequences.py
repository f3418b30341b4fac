"""Sequences of tensors whose elements are known: what `SequenceAt` takes out of one that was split or put together in the graph."""

from __future__ import annotations

import onnx

from coset.dialects.hub.terms import reshape
from coset.dialects.onnx.arithmetic import take
from coset.frontends.onnx.values import Host, host_value
from coset.ir.builtin import OPAQUE
from coset.ir.term import Term
from coset.ir.types import TensorType


def element(sequence: Term, position: Host | None) -> Term | None:
    """The tensor at `position` of a sequence; None where it is not known which that is."""
    if sequence.op is not OPAQUE or sequence.attribute("domain") or position is None or position.size != 1:
        return None
    number = position.item()
    if not isinstance(number, int):
        return None
    name, operands = sequence.attribute("name"), sequence.operands
    if name == "SequenceConstruct":
        return operands[number] if -len(operands) <= number < len(operands) else None
    return _part(sequence, number) if name == "SplitToSequence" else None


def _part(sequence: Term, number: int) -> Term | None:
    node = onnx.NodeProto()
    node.ParseFromString(sequence.attribute("payload"))
    given = {attribute.name: attribute.i for attribute in node.attribute}
    x = sequence.operands[0]
    if not isinstance(x.type, TensorType) or x.type.shape is None or not -x.tensor.rank <= given.get("axis", 0) < x.tensor.rank:
        return None
    axis = given.get("axis", 0) % x.tensor.rank
    length = x.tensor.dims[axis]
    split = host_value(sequence.operands[1]) if len(sequence.operands) > 1 else None
    if not isinstance(length, int) or (split is None and len(sequence.operands) > 1):
        return None
    ends = _ends(length, split)
    if ends is None or not -len(ends) <= number < len(ends):
        return None
    number %= len(ends)
    part = take(x, axis, ends[number - 1] if number else 0, ends[number])
    squeezed = split is None and not given.get("keepdims", 1)
    return reshape(part, x.tensor.dims[:axis] + x.tensor.dims[axis + 1 :]) if squeezed else part


def _ends(length: int, split: Host | None) -> list[int] | None:
    """Where the parts of an axis end: of one element each, of the length that a number says (but for the last), or of those of a list."""
    if split is not None and split.ndim == 1:
        lengths = split.tolist()
        ends = [sum(lengths[: place + 1]) for place in range(len(lengths))]
        return ends if all(isinstance(each, int) and each >= 0 for each in lengths) and ends and ends[-1] == length else None
    each = 1 if split is None else split.item()
    if not isinstance(each, int) or each < 1:
        return None
    return [*range(each, length, each), length] if length else None
