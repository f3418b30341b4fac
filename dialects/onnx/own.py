"""A user's own ops as ONNX nodes: the op `com.acme.Fused` of a rule file is the node `Fused` of the domain `com.acme`.

A node's operands are the definition's in their order. Its attributes have the names of the definition's, and the kinds that `KINDS` says. A
number of a FLOAT attribute is an f32.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coset.dialects.onnx.dtypes import CODE_OF_DTYPE, DTYPE_OF_CODE
from coset.dialects.onnx.sugar import expanded
from coset.ir.op import Attribute, Attributes, Op
from coset.ir.term import Term, make
from coset.ir.types import DType
from coset.rules.definition import definition_of, is_defined
from coset.rules.elaborated import in_dialects

OURS = frozenset({"builtin", "stablehlo", "chlo", "onnx", "ort", "kernel", "aten", "part"})
"""Dialects that are no domains of ONNX."""


def domain_and_name(op: Op) -> tuple[str, str] | None:
    """The domain and the name of the node that a user's op is; None for an op of coset's dialects, and for one without a definition."""
    domain, _, name = op.name.rpartition(".")
    if op.dialect in OURS or not is_defined(op) or in_dialects(definition_of(op).directory):
        return None
    return domain, name


def where_defined(op: Op) -> str:
    """The file and the line of the definition of a user's op."""
    place = definition_of(op).entry.place
    return f"{place.file}:{place.line}"


def term_of(op: Op, operands: Sequence[Term], attributes: Attributes, *, meant: bool) -> Term:
    """A user's op as a term; what it means if that is `meant`, or its definition is `sugar`.

    Raises:
        TypeRuleError: no clause of the definition fits.
    """
    return expanded(op, operands, attributes) if meant or definition_of(op).is_sugar else make(op, operands, attributes)


@dataclass(frozen=True)
class AttributeForm:
    """How an attribute of one kind stands in a node: ONNX's `word` for it, a node's value as the definition's (`read`) and back (`write`).
    Both give None for a value that the other side has not."""

    word: str
    read: Callable[[Any], Any]
    write: Callable[[Any], Any]


def _same(value: Any) -> Any:
    return value


def _single(value: float) -> float | None:
    """A number that an f32 has."""
    with np.errstate(over="ignore"):
        return float(value) if float(np.float32(value)) == float(value) or value != value else None


def _singles(values: tuple[float, ...]) -> tuple[float, ...] | None:
    return tuple(map(float, values)) if all(_single(value) is not None for value in values) else None


def _whole(values: tuple[Any, ...]) -> tuple[int, ...] | None:
    return tuple(values) if all(isinstance(value, int) for value in values) else None


def _pairs(values: tuple[int, ...]) -> tuple[tuple[int, int], ...] | None:
    """Pads of each dim: ONNX has all at the begin, then all at the end."""
    half = len(values) // 2
    return None if len(values) % 2 else tuple(zip(values[:half], values[half:], strict=True))


def _flat(pairs: tuple[tuple[Any, Any], ...]) -> tuple[int, ...] | None:
    return _whole(tuple(pair[side] for side in (0, 1) for pair in pairs))


def _code(dtype: DType) -> int | None:
    return CODE_OF_DTYPE.get(dtype)


_TEXT = AttributeForm("string", _same, _same)
_NUMBERS = AttributeForm("ints", _same, _whole)
KINDS: Mapping[str, AttributeForm] = {
    "int": AttributeForm("int", _same, lambda value: value if isinstance(value, int) else None),
    "float": AttributeForm("float", _same, _single),
    "bool": AttributeForm("int", {0: False, 1: True}.get, int),
    "string": _TEXT, "combiner": _TEXT, "direction": _TEXT,
    "ints": _NUMBERS, "dims": _NUMBERS, "permutation": _NUMBERS, "axes": _NUMBERS,
    "floats": AttributeForm("floats", _same, _singles),
    "padding": AttributeForm("ints", _pairs, _flat),
    "dtype": AttributeForm("int", DTYPE_OF_CODE.get, _code),
    "constant": AttributeForm("tensor", _same, _same),
}  # fmt: skip


def written(attribute: Attribute, value: Any) -> Any:
    """The value of an attribute as a node has it; None where no node has it."""
    form = KINDS.get(attribute.kind)
    return None if form is None else form.write(value)
