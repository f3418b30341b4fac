"""Products of one operand with several constant matrices, merged at once: `x @ w` and `x @ v` are columns of `x @ [w v]`.

As a rule this has two roots, and a search would merge n products in 2^n ways. Where a rule says that columns of a product are a
product with these columns, each way is a consequence of it; the one of all products that share an operand is entered.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf

from coset.egraph.chains import Entered, kind, known_terms, product
from coset.ir import dims
from coset.ir.term import Term, make, topological
from coset.rules.pattern import Application, Variable
from coset.rules.rule import Rule

SLICE, PRODUCT, CONCATENATE = "stablehlo.slice", "stablehlo.dot_general", "stablehlo.concatenate"


def takes_columns(rule: Rule) -> bool:
    """True for a rule that says `slice(a . b) = a . slice(b)` of products with a matrix; told by its shape."""
    if f"{SLICE}/1" not in rule.reads:
        return False
    left, right = rule.left, rule.right
    if not (isinstance(left, Application) and isinstance(right, Application)):
        return False
    if (left.op.name, right.op.name) != (SLICE, PRODUCT):
        return False
    inner, (first, columns) = left.operands[0], right.operands
    if not (isinstance(inner, Application) and inner.op.name == PRODUCT and isinstance(columns, Application) and columns.op.name == SLICE):
        return False
    return isinstance(first, Variable) and inner.operands == (first, columns.operands[0])


def merge_products(roots: Sequence[Term], rules: Iterable[Rule], rows: float) -> Entered | None:
    """The products under `roots` of at most `rows` rows (a number, no symbol) that share their left operand, as columns of one; None where
    there are none or no rule of `rules` says that columns can be taken."""
    rule = next((rule for rule in rules if takes_columns(rule)), None)
    if rule is None:
        return None
    groups: dict[Term, list[Term]] = {}
    known = known_terms(roots)
    for term in topological(roots):
        if kind(term) == "plain" and term.operands[1] in known and term.operands[0] not in known and _rows(term) <= rows:
            groups.setdefault(term.operands[0], []).append(term)
    pairs = [pair for operand, products in groups.items() if len(products) > 1 for pair in _merged(operand, products)]
    return Entered(rule, tuple(pairs)) if pairs else None


def _rows(term: Term) -> float:
    rows = dims.product(term.tensor.dims[:-1])
    return rows if isinstance(rows, int) else inf


def _merged(operand: Term, products: Sequence[Term]) -> list[tuple[Term, Term]]:
    """Each product with the columns that it is of the merged one."""
    weights = make(CONCATENATE, [term.operands[1] for term in products], {"dimension": 1})
    whole = product(operand, weights, batched=False)
    *leading, _ = whole.tensor.dims
    pairs, start = [], 0
    for term in products:
        end = start + _columns(term)
        given = {"start": (*[0] * len(leading), start), "limit": (*leading, end), "strides": (1,) * whole.tensor.rank}
        pairs.append((term, make(SLICE, (whole,), given)))
        start = end
    return pairs


def _columns(term: Term) -> int:
    columns = term.tensor.dims[-1]
    assert isinstance(columns, int), "a known matrix has known sizes"
    return columns
