"""Values that a rule proposes for its names: from right ones the checker decides what the search does, from others nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

import coset.dialects
from coset.ir import dims
from coset.ir.constants import Constant
from coset.ir.dims import Poly
from coset.ir.errors import CosetError
from coset.ir.term import Region, Term
from coset.ir.types import BF16, DTYPES, F32, DType
from coset.prove.sample import drawn
from coset.rules.algebra import Call, Listing, Literal, Ref, Scalar, Scope, Splice, Wild
from coset.rules.applied import _fits, arguments, matched, right_sides, said
from coset.rules.library import load
from coset.rules.rule import Rule, decided, with_parts
from tests.sampled import sampled

assert coset.dialects  # ops are registered
RULES = [rule for rule in load().rules if rule.definition is None]
SHARES = 24


def applications_of(rule: Rule) -> Iterator[tuple[dict[int, Term], dict[str, Term], tuple[Term, ...]]]:
    """Left sides of the rule at terms, with what was drawn to equal them."""
    for left, right in drawn(rule, 0, 2):
        roots, equal = ((left,), (right,)) if rule.roots == 1 else (left.operands, right.operands)
        found = matched(rule, roots)
        assert found is not None, rule.name
        yield *found, equal


@pytest.mark.parametrize("share", sampled(range(SHARES), 8))
def test_the_checker_decides_what_the_search_does(share: int) -> None:
    for rule in RULES[share::SHARES]:
        for left, given, right in applications_of(rule):
            decision = said(rule, left, given)
            assert decision is not None and decision == decided(rule, left, given), rule.name
            assert right_sides(rule, decision, given) == right, rule.name


def others(value: Any) -> list[Any]:
    """Values beside this one, of its kind and of another."""
    if isinstance(value, bool):
        return [not value, 7]
    if isinstance(value, int | Poly):
        return [dims.add(value, 1), dims.multiply(-1, dims.add(value, 1)), (value,)]
    if isinstance(value, float):
        return [value + 1 if value == value else 1.0, -value if value and value == value else 2.0]
    if isinstance(value, DType):
        return [F32 if value is not F32 else BF16, DTYPES["i8"] if value is not DTYPES["i8"] else F32]
    if isinstance(value, tuple):
        return [(*value, value[-1] if value else 1), value[:-1] if value else (1, 1), *([value[::-1]] if value != value[::-1] else [])]
    return ["another", None] if not isinstance(value, Constant | Region) else [None]


@pytest.mark.parametrize("share", sampled(range(SHARES), 8))
def test_another_value_of_a_name_shows_nothing_else(share: int) -> None:
    """Of every name in turn: a wrong value is refused, or makes no difference (n + k as well as n modulo k)."""
    tried = refused = 0
    for rule in RULES[share::SHARES]:
        for left, given, right in applications_of(rule):
            found = arguments(rule, left, given)
            values = None if found is None else rule.proposed(*found)
            assert values is not None
            for name, value in values.items():
                for other in others(value):
                    liar = rule.changed(proposed=lambda *_, lie={**values, name: other}: lie)
                    tried += 1
                    try:
                        decision = said(liar, left, given)
                    except Exception:  # which the checker takes for a refusal
                        decision = None
                    refused += decision is None
                    assert decision is None or right_sides(rule, decision, given) == right, f"{rule.name}: {name} = {other} for {value}"
    assert refused > 0.95 * tried > 0


def test_conditions_and_classes_are_asked_of_what_is_proposed() -> None:
    """Terms of a rule without its conditions, or of any element type: the values that it proposes there are none of the rule's."""
    refused = {"conditions": 0, "kinds": 0}
    for rule in RULES[::6]:
        every = {name: replace(kind, classes=frozenset(DTYPES.values())) for name, kind in rule.compiled.kinds.items()}
        for part, value in (("conditions", ()), ("kinds", every)):
            lenient = rule.changed(compiled=with_parts(rule.compiled, **{part: value}))
            try:
                found = list(applications_of(lenient))
            except CosetError:  # a condition gave a name its value, or both sides their type
                continue
            for left, given, _ in found:
                if decided(rule, left, given) is None:
                    refused[part] += 1
                    assert said(rule.changed(proposed=lenient.proposed), left, given) is None, rule.name
    assert all(count > 3 for count in refused.values())


def test_a_name_without_a_value_and_no_values_are_refused() -> None:
    rule = next(rule for rule in RULES if rule.name == "transpose_transpose")
    left, given, _ = next(applications_of(rule))
    found = arguments(rule, left, given)
    assert found is not None
    values: Mapping[str, Any] = rule.proposed(*found) or {}
    assert values
    for name in values:
        less = {key: value for key, value in values.items() if key != name}
        assert said(rule.changed(proposed=lambda *_, less=less: less), left, given) is None
    assert said(rule.changed(proposed=lambda *_: None), left, given) is None


A, B = Ref("a"), Ref("b")


@pytest.mark.parametrize(
    ("pattern", "value", "fits"),
    [
        (Wild(), (1, 2), True),
        (A, 3, True),
        (A, 4, False),
        (Listing((A, Wild())), (3, 9), True),
        (Listing((A, Wild())), (3,), False),
        (Listing((A, Wild())), (3, 9, 9), False),
        (Listing((Splice(None), A)), (8, 9, 3), True),
        (Listing((Splice(None), A)), (3,), True),
        (Listing((Splice(None), A)), (3, 9), False),
        (Listing((Splice(None), A)), (), False),
        (Listing((Splice(B), A)), (1, 2, 3), True),
        (Listing((Splice(B), A)), (1, 2, 2, 3), False),
        (Listing((A, Splice(None), Splice(B))), (3, 7, 7, 1, 2), True),
        (Listing((A, Splice(None), Splice(B))), (3, 2), False),
        (Call("+", (A, Literal(1))), 4, True),
        (Call("+", (A, Literal(1))), 3, False),
        (Scalar(A, Literal(F32)), 3, False),
    ],
    ids=str,
)
def test_an_expression_fits_a_value(pattern: Any, value: Any, fits: bool) -> None:
    assert _fits(pattern, value, Scope({"a": 3, "b": (1, 2)})) is fits
