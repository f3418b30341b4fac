"""Interned tables: types and attribute lists are numbers in the e-graph, so that egglog only ever compares integers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from coset.ir import dims
from coset.ir.op import Op, get_op
from coset.ir.term import AttributeItems, Region, exact_key
from coset.ir.types import ForeignType, TensorType, TokenType, TupleType

Payload = tuple[AttributeItems, tuple[Region, ...]]


@dataclass
class Table:
    """Values numbered in order of arrival; equal keys have one number."""

    values: list[Any] = field(default_factory=list)
    numbers: dict[Any, int] = field(default_factory=dict)

    def number(self, value: Any, key: Any = None) -> int:
        """The number of `value`, new if its key is."""
        key = value if key is None else key
        found = self.numbers.get(key)
        if found is None:
            found = self.numbers[key] = len(self.values)
            self.values.append(value)
        return found


@dataclass
class Tables:
    """The numbers of types and of payloads (attributes with regions), and the constructors in use."""

    types: Table = field(default_factory=Table)
    payloads: Table = field(default_factory=Table)
    constructors: dict[str, tuple[Op, int]] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)  # of constructors, by the spelling of rules

    def payload(self, attributes: AttributeItems, regions: tuple[Region, ...] = ()) -> int:
        """The number of an attribute list; signed zeros and NaNs are told apart."""
        return self.payloads.number((attributes, regions), (exact_key(attributes), regions))

    def constructor(self, op: Op, arity: int) -> str:
        """The egglog name of `op` with `arity` operands."""
        name = f"{op.name.replace('.', '_')}_{arity}"
        self.constructors.setdefault(name, (op, arity))
        return name

    def spelled(self, text: str) -> str:
        """The egglog name of what a rule reads or makes: an op and its number of operands, as in `Rule.reads`."""
        name = self.names.get(text)
        if name is None:
            op, _, arity = text.rpartition("/")
            name = self.names[text] = self.constructor(get_op(op), int(arity))
        return name


def is_static(value: Any) -> bool:
    """True when a type or attribute value holds no dim symbol: needed before its term can be computed at build time."""
    if isinstance(value, dims.Poly):
        return False
    if isinstance(value, TensorType):
        return value.static is not None
    if isinstance(value, TupleType):
        return all(is_static(item) for item in value.items)
    if isinstance(value, TokenType | ForeignType):
        return False
    if isinstance(value, tuple):
        return all(is_static(item) for item in value)
    return True
