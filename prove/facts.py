"""What a rule asks of the numbers of its variables (`x: positive F[S..]`), for proofs: as truths for Z3, and over the reals as a form."""

from __future__ import annotations

from collections.abc import Sequence

from coset.dialects.hub.terms import splat
from coset.ir.term import Term, make, rebuild, topological
from coset.ir.types import TensorType
from coset.rules.facts import NUMBERS
from coset.rules.rule import Rule


def truths(rule: Rule, inputs: Sequence[Term]) -> tuple[Term, ...]:
    """What holds of each element of these inputs of both sides; a NaN may stand where `finite` is not asked."""
    facts = {name: fact for fact, name in rule.facts if fact in NUMBERS}
    return tuple(_truth(term, facts[str(term.attribute("name"))]) for term in inputs if term.attribute("name") in facts)


def _truth(term: Term, fact: str) -> Term:
    if fact == "finite":
        return make("stablehlo.is_finite", (term,))
    excluded = "LT" if fact == "nonnegative" else "LE"
    return make(
        "stablehlo.not", (make("stablehlo.compare", (term, splat(0, term.tensor.dtype, term.tensor.dims)), {"direction": excluded}),)
    )


def over_the_reals(rule: Rule, pair: tuple[Term, Term]) -> tuple[Term, Term]:
    """Both sides with a form of the numbers in the place of an input: every real that is not negative is |y|, every positive one e^y."""
    forms = {
        name: {"nonnegative": "abs", "positive": "exponential"}[fact] for fact, name in rule.facts if fact in ("nonnegative", "positive")
    }
    if not forms:
        return pair
    done: dict[Term, Term] = {}
    for term in topological(pair):
        name = term.attribute("name") if term.op.name == "builtin.input" else None
        if name in forms and isinstance(term.type, TensorType):
            done[term] = make(f"stablehlo.{forms[name]}", (term,))
        else:
            done[term] = rebuild(term, [done[operand] for operand in term.operands])
    return done[pair[0]], done[pair[1]]
