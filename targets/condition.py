"""The words that a form's `conditions` are made of: predicates over an op's attributes and operand types."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from coset.ir.op import Attributes
from coset.ir.types import TensorType, Type

Condition = Callable[[Attributes, Sequence[Type]], bool]


def _rank(type: Type) -> int:
    return len(type.shape) if isinstance(type, TensorType) and type.shape is not None else -1


def _matmul(attributes: Attributes, operands: Sequence[Type]) -> bool:
    """The dot is NumPy's matmul as it stands: leading batch dims, one contracted dim, no operand to put in order."""
    batch = tuple(range(len(attributes["lhs_batch"])))
    left, right = _rank(operands[0]), _rank(operands[1])
    ordered = attributes["lhs_batch"] == batch and attributes["rhs_batch"] == batch
    contracted = attributes["lhs_contract"] == (left - 1,) and attributes["rhs_contract"] == (len(batch),)
    one_free = right == len(batch) + 2 and (not batch or left == len(batch) + 2)
    return ordered and contracted and one_free


def _swapped(attributes: Attributes, operands: Sequence[Type]) -> bool:
    """The dot is a matmul once the last two dims of an operand are swapped: the runtime fuses that transpose."""
    batch = tuple(range(len(attributes["lhs_batch"])))
    ranks = (_rank(operands[0]), _rank(operands[1]))
    ordered = attributes["lhs_batch"] == batch and attributes["rhs_batch"] == batch
    single = len(attributes["lhs_contract"]) == 1 and len(attributes["rhs_contract"]) == 1
    return ordered and single and ranks == (len(batch) + 2, len(batch) + 2)


def _batched(attributes: Attributes, _: Sequence[Type]) -> bool:
    return bool(attributes["lhs_batch"])


def _ones(name: str) -> Condition:
    return lambda attributes, _: all(value == 1 for value in attributes[name])


def _one(name: str) -> Condition:
    return lambda attributes, _: attributes[name] == 1


def _no_summand(_: Attributes, operands: Sequence[Type]) -> bool:
    """A Gemm that is a product and nothing more."""
    return not isinstance(operands[2], TensorType)


def _left_as_it_is(attributes: Attributes, _: Sequence[Type]) -> bool:
    """A Gemm that reads its left operand as it stands."""
    return not attributes["transA"]


def _last_dim_stays(attributes: Attributes, _: Sequence[Type]) -> bool:
    permutation = attributes["permutation"]
    return not permutation or permutation[-1] == len(permutation) - 1


def _last_dim(attributes: Attributes, operands: Sequence[Type]) -> bool:
    """The reduced dims are the last ones, so that rows are read in order."""
    rank, dimensions = _rank(operands[0]), attributes["dimensions"]
    return tuple(dimensions) == tuple(range(rank - len(dimensions), rank))


def _channels(attributes: Attributes, operands: Sequence[Type]) -> tuple[int, int, int]:
    """Groups, input and output channels a group; zeros where they are symbolic."""
    groups: int = attributes["group"] if "group" in attributes else attributes["feature_group_count"]
    weight = operands[1]
    if not isinstance(weight, TensorType) or weight.shape is None:
        return groups, 0, 0
    out, inputs = weight.shape[:2]
    return (groups, inputs, out // groups) if isinstance(out, int) and isinstance(inputs, int) else (groups, 0, 0)


def _depthwise(attributes: Attributes, operands: Sequence[Type]) -> bool:
    groups, inputs, outputs = _channels(attributes, operands)
    return groups > 1 and inputs == 1 and outputs == 1


def _filled(attributes: Attributes, operands: Sequence[Type]) -> bool:
    """The groups fill the quarters of ONNX Runtime's 16-wide blocks, which it pads to whole ones."""
    return _channels(attributes, operands)[0] % 4 == 0


def _ungrouped(attributes: Attributes, operands: Sequence[Type]) -> bool:
    return _channels(attributes, operands)[0] == 1


def _blocked(attributes: Attributes, operands: Sequence[Type]) -> bool:
    """Channels fill the 16-wide blocks of ONNX Runtime's own layout, or are the few of a picture."""
    groups, inputs, outputs = _channels(attributes, operands)
    return outputs > 0 and outputs % 16 == 0 and (inputs % 16 == 0 or (groups == 1 and inputs < 4))


def _combines(*names: str) -> Condition:
    return lambda attributes, _: attributes["combiner"] in names


CONDITIONS: dict[str, Condition] = {
    "matmul": _matmul,
    "batched": _batched,
    "matmul_swapped": _swapped,
    "lhs_dilation=1": _ones("lhs_dilation"),
    "batch_group_count=1": _one("batch_group_count"),
    "no_summand": _no_summand,
    "left_as_it_is": _left_as_it_is,
    "last_dim_stays": _last_dim_stays,
    "last_dim": _last_dim,
    "depthwise": _depthwise,
    "blocked": _blocked,
    "filled": _filled,
    "ungrouped": _ungrouped,
    "interior=0": lambda attributes, _: not any(attributes["interior"]),
    "sum": _combines("add"),
    "numeric_combiner": _combines("add", "multiply", "maximum", "minimum"),
    "extreme_combiner": _combines("maximum", "minimum"),
    "bool_combiner": _combines("and", "or", "maximum", "minimum"),
}
