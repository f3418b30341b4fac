"""What definitions say of terms, one step, with what they promise and how far that is shown: what the checker is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import coset.dialects
from coset.dialects.hub.region_terms import as_selection, plain_choice
from coset.dialects.hub.turns import unrolled
from coset.dialects.onnx.kept import KEPT, opened
from coset.ir.op import Op, find_op
from coset.ir.term import GET, TUPLE, Term
from coset.prove.kernel import ASSURANCES, Meaning, weakest
from coset.rules.definition import definition_of, evaluate_defined, expand, expansion, is_defined
from coset.rules.elaborate import numerics_of
from coset.rules.equation import Numerics
from coset.rules.rule import permitted

assert coset.dialects  # imported so that every op and definition is registered

IN_PYTHON = Numerics("reassociates")  # what a node's definition promises that is written in Python: sums of a runtime have their own order


def meaning(term: Term) -> Meaning | None:
    """What the definition of a term's op gives for it; None where there is none. An item of a tuple means that item, a choice the one that
    captures what it uses, and that a selection from its sides, a loop whose number of turns is known what they make."""
    if term.op is GET and term.operands[0].op is TUPLE:
        return Meaning(term.operands[0].operands[term.attribute("index")])
    if term.op is KEPT:
        found = opened(term)
        return None if found is None else Meaning(found, *_of_node(term))
    plain = plain_choice(term) or unrolled(term) or as_selection(term)
    if plain is not None:
        return Meaning(plain)
    if not is_defined(term.op):
        return None
    clause = expansion(term.op.name, [operand.type for operand in term.operands], dict(term.attributes)).clause
    return Meaning(expand(term), term.op.name, _promises(term.op)[clause], definition_of(term.op).assurance)


def meaning_of(term: Term) -> Term | None:
    """The term that `meaning` gives."""
    found = meaning(term)
    return None if found is None else found.term


def meaning_within(term: Term, numerics: str) -> Term | None:
    """The term that `meaning` gives, where a claim down to `numerics` may use it."""
    found = meaning(term)
    return None if found is None or not permitted(found.numerics, numerics) else found.term


@lru_cache(maxsize=1024)
def _promises(op: Op) -> Sequence[Numerics]:
    """What each clause of a definition promises."""
    return [numerics_of(clause.promise) for clause in definition_of(op).entry.clauses]


def _of_node(term: Term) -> tuple[str, Numerics, str]:
    """The entry that says what a kept node means, the weakest promise of its clauses and its assurance."""
    domain = term.attribute("domain")
    name = f"onnx.{domain + '.' if domain else ''}{term.attribute('name')}"
    op = find_op(name)
    if op is None or not is_defined(op):
        return name, IN_PYTHON, ASSURANCES[2]
    return name, weakest(_promises(op)), definition_of(op).assurance


Fallback = Callable[[Term, Sequence[Any]], Any]
DEFINED: Fallback = evaluate_defined
"""Values of defined ops inside functions, for the checker: nothing foreign is run."""
