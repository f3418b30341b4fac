"""Inputs that refute a rule, and how they are written: in the words of the rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from coset.ir.constants import Constant
from coset.ir.op import Array
from coset.ir.term import exact_key
from coset.ir.types import dtype_of
from coset.rules.instance import Instance
from coset.rules.pattern import applications
from coset.rules.rule import Rule

SPREADS = ("builtin.constant", "stablehlo.broadcast_in_dim")  # which numbers are written with


@dataclass(frozen=True)
class Counterexample:
    """Inputs on which the sides of a rule differ more than the rule promises, of the `kind` that was drawn; `instance` is what they are
    inputs of, None where the sides have no values."""

    rule: str
    attributes: str
    inputs: Mapping[str, Array]
    left: Array
    right: Array
    index: tuple[int, ...]
    why: str
    kind: str = ""
    instance: Instance | None = None

    def __str__(self) -> str:
        lines = [f"{self.rule}: {self.why}"]
        lines += [f"  {self.attributes}"] if self.attributes else []
        for name, array in self.inputs.items():
            text = np.array2string(array, threshold=24, separator=", ", prefix="    ")
            lines.append(f"  {name}: {dtype_of(array.dtype)}{list(array.shape)} = {text}")
        at = f" at {list(self.index)}" if self.index else ""
        if self.left.shape == self.right.shape:
            lines.append(f"  left{at} = {self.left[self.index]}, right{at} = {self.right[self.index]}")
        return "\n".join(lines)


def named_in(rule: Rule, instance: Instance) -> str:
    """What the names of the rule mean in the instance; then the attributes that no name says."""
    values = {name: value for name, value in instance.values.items() if name in rule.compiled.kinds}
    words = [f"{name} = {_written(value)}" for name, value in values.items()]
    said = {exact_key(value) for value in values.values()}
    others = [
        f"{name}: {_written(value)}"
        for node, items in zip(applications(rule.left), instance.attributes, strict=True) for name, value in items
        if node.op.name not in SPREADS and exact_key(value) not in said
    ]  # fmt: skip
    return "; ".join([*([f"with {', '.join(words)}"] if words else []), *([f"attributes {', '.join(others)}"] if others else [])])


def _written(value: Any) -> str:
    """A value as a rule file has it."""
    if isinstance(value, Constant):
        array = value.array()
        return _written(array.item()) if array.ndim == 0 else str(array.tolist())
    if isinstance(value, tuple):
        return f"[{', '.join(map(_written, value))}]"
    return f"{value:.9g}" if isinstance(value, float) else f'"{value}"' if isinstance(value, str) else str(value)
