"""Classes of float types by their range, and the grades that rules have for them."""

from __future__ import annotations

from coset.ir.types import DType
from coset.rules.rule import Rule

ALWAYS, COUNTED, SOME, NEVER = "always", "by count", "by instance", "never"  # by count: where ops fold no more than `FEW` elements
FEW = {"f8": 1, "f16": 1, "bf16": 1 << 16, "f32": 1 << 16, "f64": 1 << 20}  # elements that ops may fold, all together


def class_of(dtype: DType) -> str:
    """The class of a float type."""
    return "f8" if dtype.bits <= 8 else dtype.name


def verdict_of(rule: Rule, name: str) -> str:
    """What is known of the range of a rule for a class of floats; of what is not graded `always`."""
    return next((words.split(" (")[0] for own, words in rule.grades if own == name), ALWAYS)
