"""The words that a form's `conditions` are made of: predicates over an op's attributes and operand types, each with what it says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from coset.ir.op import Attributes, Op
from coset.ir.types import TensorType, Type

Holds = Callable[[Attributes, Sequence[Type]], bool]


@dataclass(frozen=True)
class Condition:
    """A word: whether it `holds` of a term, what it `says`, the attributes that it looks at (`a|b`: at the one that the op has) and how
    many operands it looks at; of an op without them it cannot be said."""

    holds: Holds
    says: str
    attributes: tuple[str, ...] = ()
    operands: int = 0

    def speaks_of(self, op: Op) -> bool:
        """Whether it can be said of `op`."""
        names = {attribute.name for attribute in op.attributes}
        return all(names & set(either.split("|")) for either in self.attributes) and (self.operands <= len(op.operands) or op.variadic)


def _rank(type: Type) -> int:
    return len(type.shape) if isinstance(type, TensorType) and type.shape is not None else -1


def _matmul(attributes: Attributes, operands: Sequence[Type]) -> bool:
    batch = tuple(range(len(attributes["lhs_batch"])))
    left, right = _rank(operands[0]), _rank(operands[1])
    ordered = attributes["lhs_batch"] == batch and attributes["rhs_batch"] == batch
    contracted = attributes["lhs_contract"] == (left - 1,) and attributes["rhs_contract"] == (len(batch),)
    one_free = right == len(batch) + 2 and (not batch or left == len(batch) + 2)
    return ordered and contracted and one_free


def _swapped(attributes: Attributes, operands: Sequence[Type]) -> bool:
    batch = tuple(range(len(attributes["lhs_batch"])))
    ranks = (_rank(operands[0]), _rank(operands[1]))
    ordered = attributes["lhs_batch"] == batch and attributes["rhs_batch"] == batch
    single = len(attributes["lhs_contract"]) == 1 and len(attributes["rhs_contract"]) == 1
    return ordered and single and ranks == (len(batch) + 2, len(batch) + 2)


def _no_summand(_: Attributes, operands: Sequence[Type]) -> bool:
    return not isinstance(operands[2], TensorType)


def _last_dim_stays(attributes: Attributes, _: Sequence[Type]) -> bool:
    permutation = attributes["permutation"]
    return not permutation or permutation[-1] == len(permutation) - 1


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
    return _channels(attributes, operands)[0] % 4 == 0


def _ungrouped(attributes: Attributes, operands: Sequence[Type]) -> bool:
    return _channels(attributes, operands)[0] == 1


def _blocked(attributes: Attributes, operands: Sequence[Type]) -> bool:
    groups, inputs, outputs = _channels(attributes, operands)
    return outputs > 0 and outputs % 16 == 0 and (inputs % 16 == 0 or (groups == 1 and inputs < 4))


def _static(_: Attributes, operands: Sequence[Type]) -> bool:
    return all(
        isinstance(dim, int)
        for type in operands
        if isinstance(type, TensorType)
        for dim in (type.shape if type.shape is not None else ("",))
    )


def _rows_in_order(attributes: Attributes, operands: Sequence[Type]) -> bool:
    rank, dimensions = _rank(operands[0]), attributes["dimensions"]
    return tuple(dimensions) == tuple(range(rank - len(dimensions), rank))


def _ones(name: str) -> Holds:
    return lambda attributes, _: all(value == 1 for value in attributes[name])


def _combines(*names: str) -> Condition:
    return Condition(lambda attributes, _: attributes["combiner"] in names, f"it combines by {' or '.join(names)}", ("combiner",))


DOT = ("lhs_batch", "rhs_batch", "lhs_contract", "rhs_contract")
GROUPS = ("group|feature_group_count",)

CONDITIONS: dict[str, Condition] = {
    "static": Condition(_static, "every dim is a number, not a symbol"),
    "matmul": Condition(
        _matmul, "the dot is NumPy's matmul as it stands: leading batch dims, one contracted dim, no operand to put in order", DOT, 2
    ),
    "matmul_swapped": Condition(
        _swapped, "the dot is a matmul once the last two dims of an operand are swapped, a transpose that the runtime fuses", DOT, 2
    ),
    "left_in_order": Condition(
        lambda attributes, _: attributes["lhs_contract"] != (len(attributes["lhs_batch"]),),
        "the dot's left operand is contracted over its last dim",
        DOT,
    ),
    "batched": Condition(lambda attributes, _: bool(attributes["lhs_batch"]), "the dot has batch dims", DOT, 2),
    "lhs_dilation=1": Condition(_ones("lhs_dilation"), "no transposed convolution", ("lhs_dilation",)),
    "batch_group_count=1": Condition(
        lambda attributes, _: bool(attributes["batch_group_count"] == 1), "no groups of the batch", ("batch_group_count",)
    ),
    "no_summand": Condition(_no_summand, "a Gemm that is a product and nothing more", (), 3),
    "left_as_it_is": Condition(
        lambda attributes, _: not attributes["transA"], "a Gemm that reads its left operand as it stands", ("transA",)
    ),
    "last_dim_stays": Condition(_last_dim_stays, "the last dim of the transposed stays the last", ("permutation",)),
    "last_dim": Condition(_rows_in_order, "the reduced dims are the last ones, so that rows are read in order", ("dimensions",), 1),
    "last_reduced": Condition(
        lambda attributes, operands: _rank(operands[0]) - 1 in attributes["dimensions"],
        "the last dim is among the reduced, so that elements that are combined lie side by side",
        ("dimensions",),
        1,
    ),
    "depthwise": Condition(_depthwise, "groups of one channel in and one out", GROUPS, 2),
    "filled": Condition(_filled, "the groups fill the quarters of ONNX Runtime's 16-wide blocks, which it pads to whole ones", GROUPS, 2),
    "ungrouped": Condition(_ungrouped, "one group", GROUPS, 2),
    "blocked": Condition(_blocked, "channels fill the 16-wide blocks of ONNX Runtime's own layout, or are the few of a picture", GROUPS, 2),
    "interior=0": Condition(lambda attributes, _: not any(attributes["interior"]), "nothing is padded between elements", ("interior",)),
    "unequal": Condition(lambda attributes, _: attributes["direction"] == "NE", "the comparison is for what differs", ("direction",)),
    "sum": _combines("add"),
    "numeric_combiner": _combines("add", "multiply", "maximum", "minimum"),
    "largest": _combines("maximum"),
    "extreme_combiner": _combines("maximum", "minimum"),
    "bool_combiner": _combines("and", "or", "maximum", "minimum"),
}


def _rank_up_to(bound: int) -> Condition:
    return Condition(lambda _, operands: all(_rank(type) <= bound for type in operands), f"no operand has more than {bound} dims")


def _dims_up_to(bound: int) -> Condition:
    def holds(_: Attributes, operands: Sequence[Type]) -> bool:
        return all(
            not isinstance(dim, int) or dim <= bound for type in operands if isinstance(type, TensorType) for dim in type.shape or ()
        )

    return Condition(holds, f"no dim is larger than {bound}")


def _strides_up_to(bound: int) -> Condition:
    def holds(attributes: Attributes, _: Sequence[Type]) -> bool:
        strides = attributes["strides"] if "strides" in attributes else attributes["window_strides"]
        return all(stride <= bound for stride in strides)

    return Condition(holds, f"strides up to {bound}", ("strides|window_strides",))


def _window_up_to(bound: int) -> Condition:
    def holds(_: Attributes, operands: Sequence[Type]) -> bool:
        size = 1
        for dim in operands[1].shape[2:] if isinstance(operands[1], TensorType) and operands[1].shape is not None else ():
            size *= dim if isinstance(dim, int) else bound + 1
        return size <= bound

    return Condition(holds, f"a filter covers at most {bound} positions", (), 2)


BOUNDED: dict[str, Callable[[int], Condition]] = {
    "rank<=": _rank_up_to,
    "dims<=": _dims_up_to,
    "strides<=": _strides_up_to,
    "window<=": _window_up_to,
}
"""Words that end in a whole number."""


@cache
def find_condition(word: str) -> Condition | None:
    """What `word` says, or None where it says nothing."""
    head, sign, number = word.partition("<=")
    if sign and head + sign in BOUNDED and number.isdecimal() and len(number) < 10:
        return BOUNDED[head + sign](int(number))
    return CONDITIONS.get(word)


def holds(word: str, attributes: Attributes, operands: Sequence[Type]) -> bool:
    """Whether the condition `word`, which there is, holds of a term."""
    condition = find_condition(word)
    assert condition is not None, word
    return condition.holds(attributes, operands)


def says(word: str) -> str:
    """The condition `word`, which there is, in plain words."""
    condition = find_condition(word)
    assert condition is not None, word
    return condition.says


def known_words() -> list[str]:
    """Every word, with N for a number."""
    return [*CONDITIONS, *(f"{head}N" for head in BOUNDED)]
