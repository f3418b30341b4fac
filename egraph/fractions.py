"""What a fraction keeps from firing.

A number less its own rounding (x - floor(x), or x - y * floor(x / y), what a division leaves) is exact as it stands, however large x
is: the two are near each other, and their difference has no error. Distributed or re-associated, (x - floor(x)) * w as
x * w - floor(x) * w, it has the rounding errors of x: a coordinate far outside a picture gave 50 from pixels up to 16. So a rule that is
not exact does not look into a fraction: it fires on no match that has a sum or difference in the class of one. Programs that round
nothing pay nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from coset.egraph.tables import Tables
from coset.ir.op import Op
from coset.ir.term import Term
from coset.prove.laws import MOVING
from coset.rules.pattern import Application
from coset.rules.rule import Rule

FRACTIONS = "fractions"
PRELUDE = f"""
(relation fraction (T))
(relation near (T T))
(relation quotient (T T T))
(relation opposite (T T))
(ruleset {FRACTIONS})
"""
_ROUNDING = frozenset(("floor", "ceil", "round", "round_nearest_even", "round_nearest_afz"))
_SUMS = frozenset(("stablehlo.add", "stablehlo.subtract"))


def rounds(terms: Iterable[Term]) -> bool:
    """True where something is rounded among `terms`, so that there may be a fraction."""
    return any(_is_rounding(term.op) for term in terms)


def _is_rounding(op: Op) -> bool:
    return op.name.rpartition(".")[2].lower() in _ROUNDING


def derivations(name: str, tables: Tables, ruleset: str) -> Iterator[str]:
    """The rules that say which nodes of the constructor `name` are fractions: `near` a number are its roundings, and those with a constant
    added; `quotient` are roundings of one number over another; `opposite` is the negative of what is near."""
    op, arity = tables.constructors[name]
    kind = op.name.rpartition(".")[2].lower()
    number = 0

    def rule(conditions: str, action: str) -> str:
        nonlocal number
        number += 1
        return f'(rule ({conditions}) ({action}) :ruleset {ruleset} :name "fraction_{name}_{number}")'

    if _is_rounding(op) and arity == 1:
        yield rule(f"(= e ({name} x p))", "(near e x)")
    if arity == 2 and kind in ("subtract", "sub"):
        yield rule(f"(= e ({name} x r p)) (near r x)", "(fraction e)")
        yield rule(f"(= e ({name} r x p)) (near r x)", "(fraction e)")
        yield rule(f"(= e ({name} r c p)) (near r x) (known c)", "(near e x)")
    if arity == 1 and kind in ("negate", "neg"):
        yield rule(f"(= e ({name} r p)) (near r x)", "(opposite e x)")
        yield rule(f"(= e ({name} x p)) (near r x)", "(opposite e r)")
    if arity == 2 and kind == "add":
        yield rule(f"(= e ({name} x r p)) (opposite r x)", "(fraction e)")
        yield rule(f"(= e ({name} r x p)) (opposite r x)", "(fraction e)")
        yield rule(f"(= e ({name} r c p)) (near r x) (known c)", "(near e x)")
        yield rule(f"(= e ({name} c r p)) (near r x) (known c)", "(near e x)")
    if arity == 2 and kind in ("divide", "div"):
        yield rule(f"(= e ({name} x y p)) (near q e)", "(quotient q x y)")
    if arity == 2 and kind in ("multiply", "mul"):
        yield rule(f"(= e ({name} q y p)) (quotient q x y)", "(near e x)")
        yield rule(f"(= e ({name} y q p)) (quotient q x y)", "(near e x)")
    if op.name in MOVING and arity:
        operands = " ".join(f"x{i}" for i in range(arity))
        yield rule(f"(= e ({name} {operands} p)) (fraction x0)", "(fraction e)")


def looked_into(rule: Rule, nodes: Sequence[Application]) -> list[int]:
    """The sums and differences on the left side of a rule that rounds otherwise."""
    if rule.numerics.word == "exact":
        return []
    return [node.index for node in nodes if node.op.name in _SUMS]
