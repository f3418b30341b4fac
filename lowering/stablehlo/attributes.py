"""Attributes of hub ops as StableHLO writes them, by the table of spellings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from coset.dialects.hub.mlir_ops import FIELDS, Field
from coset.dialects.hub.mlir_text import decimal_text
from coset.ir.dims import Dim, Poly
from coset.ir.errors import require
from coset.ir.term import Term


def attribute_texts(term: Term) -> list[str]:
    """The attributes of a term as the table spells them."""
    return [f"{field.theirs} = {attribute_text(field, term.attribute(field.ours))}" for field in FIELDS.get(term.op.name, ())]


def attribute_text(field: Field, value: Any) -> str:
    """One attribute's value.

    Raises:
        TypeRuleError: it has symbolic sizes.
    """
    kind, _, word = field.kind.partition(" ")
    if kind == "enum":
        return f"#stablehlo<{word} {value}>"
    if kind == "i64s":
        require(not any(isinstance(item, Poly) for item in value), f"`{field.theirs}` has symbolic sizes, for which StableHLO has no form")
        return ints(value)
    if kind == "pairs":
        return pairs(value)
    if kind == "f32":
        return f"{decimal_text(float(np.float32(value)))} : f32"
    if kind == "bool":
        return truth(value)
    assert kind in ("i64", "i32"), field
    return f"{value} : {kind}"


def ints(values: Sequence[Dim]) -> str:
    """An array of i64."""
    return f"array<i64: {', '.join(map(str, values))}>" if values else "array<i64>"


def pairs(values: Sequence[tuple[int, int]]) -> str:
    """A matrix of two columns."""
    inside = f"[{', '.join(f'[{low}, {high}]' for low, high in values)}]" if values else ""
    return f"dense<{inside}> : tensor<{len(values)}x2xi64>"


def truth(value: object) -> str:
    """A boolean."""
    return "true" if value else "false"


def quoted(text: str) -> str:
    """`text` as an MLIR string."""
    escaped = "".join(c if c.isprintable() and c not in '"\\' and ord(c) < 128 else "".join(f"\\{b:02X}" for b in c.encode()) for c in text)
    return f'"{escaped}"'


def name_text(name: str) -> str:
    """The name of an attribute or a resource: bare, or a string where MLIR needs that."""
    return name if re.fullmatch(r"[A-Za-z_][\w$.]*", name, re.ASCII) else quoted(name)


def symbol(name: str) -> str:
    """The name of a function or module as a symbol."""
    return f"@{name}" if re.fullmatch(r"[A-Za-z_][\w$.]*", name, re.ASCII) else f"@{quoted(name)}"
