"""What payload functions take and give, for the `signatures` of ops: of which types, in which roles."""

from __future__ import annotations

from collections.abc import Sequence

from coset.dialects.hub.checks import tensor_of
from coset.ir.errors import require
from coset.ir.op import Attributes, Signature
from coset.ir.types import BOOL, TensorType, TupleType, Type

REGION = "region"  # the word that says that a payload is no word
FLAG = (TensorType(BOOL, ()),)


def results_type(types: Sequence[Type]) -> Type:
    """The type of an op with these results: one is itself, several are a tuple."""
    return types[0] if len(types) == 1 else TupleType(tuple(types))


def scalars(types: Sequence[Type]) -> tuple[Type, ...]:
    """One element of each of the tensors."""
    return tuple(TensorType(tensor_of(type, "an operand").dtype, ()) for type in types)


def folding(_: str, operands: Sequence[Type], __: Attributes, ___: int) -> list[Signature]:
    """The body of a reduction: totals and elements of every input give totals."""
    elements = scalars(operands[: len(operands) // 2])
    return [Signature("body", (*elements, *elements), elements)]


def comparator(_: str, operands: Sequence[Type], attributes: Attributes, __: int) -> list[Signature]:
    """The comparator of a sort takes two elements of each operand, one after the other."""
    pairs = tuple(element for element in scalars(operands) for _ in range(2))
    return [Signature("comparator", pairs, FLAG)] if attributes["direction"] == REGION else []


def update_function(_: str, operands: Sequence[Type], attributes: Attributes, __: int) -> list[Signature]:
    """The update function of a scatter takes the elements and the updates."""
    elements = scalars(operands[: attributes["count"]])
    return [Signature("update", (*elements, *elements), elements)] if attributes["combiner"] == REGION else []


def selection(_: str, operands: Sequence[Type], attributes: Attributes, __: int) -> list[Signature]:
    """The functions of select_and_scatter, those of the two that are no words."""
    element = scalars(operands[:1])
    both = Signature("selector", element * 2, FLAG), Signature("update", element * 2, element)
    return [each for each, key in zip(both, ("select", "combiner"), strict=True) if attributes[key] == REGION]


def mapping(_: str, operands: Sequence[Type], attributes: Attributes, __: int) -> list[Signature]:
    """The body of a map takes one element of each operand."""
    elements = scalars(operands)
    given = elements[0] if attributes["dtype"] is None else TensorType(attributes["dtype"], ())
    return [Signature("body", elements, (given,))]


def branches(name: str, operands: Sequence[Type], attributes: Attributes, count: int) -> list[Signature]:
    """Every branch takes the captured values and gives the results."""
    roles = ("true_branch", "false_branch") if name.endswith(".if") else tuple(f"branch_{i}" for i in range(count))
    require(len(roles) >= 1, f"`{name}` takes one branch or more")
    return [Signature(role, tuple(operands[1:]), tuple(attributes["results"])) for role in roles]


def loop(_: str, operands: Sequence[Type], __: Attributes, ___: int) -> list[Signature]:
    """The condition gives a boolean, the body the next state."""
    return [Signature("condition", tuple(operands), FLAG), Signature("body", tuple(operands), tuple(operands))]


def decomposition(_: str, operands: Sequence[Type], attributes: Attributes, __: int) -> list[Signature]:
    """The decomposition takes the operands and gives the results."""
    return [Signature("decomposition", tuple(operands), tuple(attributes["results"]))]
