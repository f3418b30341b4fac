"""Numbers that a rule takes as they are, such as a factor or an epsilon: what is shown of any number holds for all.

Such a number is given a mark, a value that nothing else has, and where the mark comes to stand as a constant an input is put instead.
That speaks for all numbers where the rule itself neither computes with it nor looks at it together with something else.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from coset.dialects.expansion import expanded
from coset.ir.term import CONSTANT, Term, input_term, rebuild, topological
from coset.ir.types import TensorType
from coset.rules.algebra import Call, Literal, Ref, Scalar, parts
from coset.rules.rule import Rule

NONE: Mapping[str, float] = MappingProxyType({})
_TAKEN = frozenset({"epsilon"})  # attributes that definitions take as they are; others may be told apart (`if scale == 1`)
_MARKS = (0.87109375, 1.31640625, 2.70703125, 0.41796875)  # exact in f32, rounded apart in every smaller float


def marks(rule: Rule) -> Mapping[str, float]:
    """The names of `rule` that stand for any float, with their marks."""
    names = [name for name, kind in rule.compiled.kinds.items() if kind.word == "float"]
    used = [name for name in names if _as_it_is(rule, name, frozenset(names))]
    return dict(zip(used, _MARKS, strict=False))


def any_number(pair: tuple[Term, Term], marks: Mapping[str, float]) -> tuple[Term, Term]:
    """Both sides with definitions opened and an input in the place of each constant that is a mark."""
    left, right = expanded(pair, keep=lambda _: False)
    changed: dict[Term, Term] = {}
    for term in topological((left, right)):
        name = _marked(term, marks)
        operands = [changed[operand] for operand in term.operands]
        changed[term] = rebuild(term, operands) if name is None else input_term(f"number {name} {term.tensor.dtype}", term.tensor)
    return changed[left], changed[right]


def _marked(term: Term, marks: Mapping[str, float]) -> str | None:
    if term.op is not CONSTANT or not isinstance(term.type, TensorType) or term.type.dims or term.type.dtype.kind != "float":
        return None
    value = term.attribute("value").array()
    return next((name for name, mark in marks.items() if np.asarray(mark).astype(value.dtype) == value), None)


def _as_it_is(rule: Rule, name: str, names: frozenset[str]) -> bool:
    """Whether each attribute has the name alone or as a scalar, and each condition that has it speaks of numbers only."""
    compiled = rule.compiled
    written = [item for side in (compiled.left, compiled.right) for attributes in side for item in attributes.items]
    if any(_has(value, name) and not _bare(attribute, value, name) for attribute, value in written):
        return False
    conditions = [*compiled.conditions, *(guard for guards in compiled.guards for guard in guards)]
    return all(_of_numbers(condition, names) for condition in conditions if _has(condition, name))


def _has(expression: Any, name: str) -> bool:
    return any(isinstance(part, Ref) and part.name == name for part in parts(expression))


def _bare(attribute: str, expression: Any, name: str) -> bool:
    value = expression.value if isinstance(expression, Scalar) else expression if attribute in _TAKEN else None
    return isinstance(value, Ref) and value.name == name


def _of_numbers(condition: Any, names: frozenset[str]) -> bool:
    """True for a condition made of numbers only: which of them it takes does not depend on shapes."""
    return all(isinstance(part, Call | Literal) or (isinstance(part, Ref) and part.name in names) for part in parts(condition))
