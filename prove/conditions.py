"""A rule without the conditions that only restrict it: what is shown of it holds of the rule."""

from __future__ import annotations

from typing import Any

from coset.rules.algebra import Call, Ref
from coset.rules.parts import parts
from coset.rules.rule import Rule, with_parts


def unconditional(rule: Rule) -> Rule | None:
    """`rule` without its conditions but for those that say what a name stands for; None where it has no others."""
    compiled = rule.compiled
    kept = tuple(condition for condition in compiled.conditions if _defines(rule, condition))
    return rule.changed(compiled=with_parts(compiled, conditions=kept)) if len(kept) < len(compiled.conditions) else None


def _defines(rule: Rule, condition: Any) -> bool:
    """Whether the condition is an equation for a name that the left side and the types of the variables do not have."""
    if not isinstance(condition, Call) or condition.function != "==":
        return False
    compiled = rule.compiled
    written = [value for attributes in compiled.left for _, value in attributes.items]
    typed = [expression for pattern in compiled.types for expression in (pattern.dtype, pattern.dims)]
    there = {part.name for whole in (*written, *typed) for part in parts(whole) if isinstance(part, Ref)}
    return any(isinstance(part, Ref) and part.name not in there for part in parts(condition))
