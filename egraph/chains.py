"""Chains of an associative op, ordered at once: the schedule's answer to associativity, which blind rewriting would explode.

A chain of n matrix products has Catalan(n - 1) orders and about n^4 / 24 applications of the associativity rule. Where that
rule is among the active ones, each order is a consequence of it, so the cheapest under the target's cost is found by dynamic
programming over intervals (Godbole 1973) and entered as one equality; the other rules go on from there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeGuard

import numpy as np

from coset.egraph.barring import reached
from coset.ir import dims
from coset.ir.dims import Dim
from coset.ir.op import Array
from coset.ir.term import Term, make, topological
from coset.ir.types import DType
from coset.rules.arithmetic import Undecided, less
from coset.rules.pattern import Application, Pattern, Variable
from coset.rules.ranges import NEVER, class_of, verdict_of
from coset.rules.rule import Rule

PRODUCT = {"stablehlo.dot_general/2"}
LONG = 8  # leaves, above which a chain is left to the ordering alone
# seconds of products of [batch, m, k] and [batch, k, n] matrices, for many k at once
ProductCost = Callable[[DType, int, int, Array, int], Array]


def is_associativity(rule: Rule) -> bool:
    """True for a rule that says `(a . b) . c = a . (b . c)` of matrix products, in either direction; told by its shape."""
    if rule.reads != PRODUCT or rule.makes != PRODUCT:
        return False
    return _associates(rule.left, rule.right) or _associates(rule.right, rule.left)


def _associates(left: Pattern, right: Pattern) -> bool:
    if not (_is_product(left) and _is_product(right)):
        return False
    inner, last = left.operands
    first, tail = right.operands
    if not (_is_product(inner) and _is_product(tail)):
        return False
    spelled = [*inner.operands, last, first, *tail.operands]
    return all(isinstance(v, Variable) for v in spelled) and spelled[:3] == spelled[3:]


def _is_product(pattern: Pattern) -> TypeGuard[Application]:
    return isinstance(pattern, Application) and pattern.op.name == "stablehlo.dot_general"


@dataclass(frozen=True)
class ProductChain:
    """A maximal product `leaf0 @ leaf1 @ ...`: the term that it is, its leaves, and whether all leaves carry the same batch dims."""

    root: Term
    leaves: tuple[Term, ...]
    batched: bool


def kind(term: Term) -> str:
    """`plain` for [.., M, K] @ [K, N], `batched` for equal leading batch dims, `` for anything else."""
    if term.op.name != "stablehlo.dot_general":
        return ""
    left, right = (operand.tensor for operand in term.operands)
    attributes = dict(term.attributes)
    lists = tuple(tuple(attributes[name]) for name in ("lhs_batch", "rhs_batch", "lhs_contract", "rhs_contract"))
    if right.rank == 2 and left.rank >= 2 and lists == ((), (), (left.rank - 1,), (0,)):
        return "plain"
    batch = tuple(range(left.rank - 2))
    if batch and right.rank == left.rank and lists == (batch, batch, (left.rank - 1,), (right.rank - 2,)):
        return "batched"
    return ""


def find_chains(roots: Sequence[Term]) -> list[ProductChain]:
    """The maximal chains of at least three leaves under `roots`. A product with several users, or one whose type is not its
    operands', starts a chain of its own."""
    uses: Counter[Term] = Counter(roots)
    users: dict[Term, Term] = {}
    order = list(topological(roots))
    for term in order:
        uses.update(term.operands)
        for operand in term.operands:
            users[operand] = term
    chains = []
    for term in order:
        own = kind(term)
        if not own or (uses[term] == 1 and term in users and kind(users[term]) == own and _may_join(term, users[term], own)):
            continue
        leaves = _leaves(term, own, uses)
        if len(leaves) >= 3:
            chains.append(ProductChain(term, leaves, own == "batched"))
    return chains


def _may_join(term: Term, user: Term, own: str) -> bool:
    # in a plain chain only the first leaf may have leading dims, so a right operand must be a matrix
    return own == "batched" or user.operands[0] is term or term.tensor.rank == 2


def _leaves(root: Term, own: str, uses: Counter[Term]) -> tuple[Term, ...]:
    leaves: list[Term] = []
    stack = [root]
    while stack:
        term = stack.pop()
        if term is root or (uses[term] == 1 and kind(term) == own):
            stack.extend(reversed(term.operands))
        else:
            leaves.append(term)
    return tuple(leaves)


def inner_products(chain: ProductChain) -> list[Term]:
    """The products of the chain that are operands of another one of it."""
    inner, stack = [], list(chain.root.operands)
    while stack:
        term = stack.pop()
        if term not in chain.leaves:
            inner.append(term)
            stack.extend(term.operands)
    return inner


def best_order(chain: ProductChain, cost: ProductCost, binding: Mapping[str, int], known: Callable[[Term], bool]) -> Term:
    """The product of the chain's leaves in the order of least predicted time; products of `known` leaves cost nothing.

    Ties go to the leftmost split. O(n^3) in the leaves, with n^2 / 2 calls of `cost`.
    """
    leaves, n = chain.leaves, len(chain.leaves)
    size = [_number(_rows(leaves[0], chain.batched), binding), *(_number((leaf.tensor.dims[-1],), binding) for leaf in leaves)]
    batch = _number(leaves[0].tensor.dims[:-2], binding) if chain.batched else 1
    dtype = chain.root.tensor.dtype
    total = np.zeros((n, n))
    split = np.zeros((n, n), np.int64)
    unknown = np.cumsum([0, *(not known(leaf) for leaf in leaves)])
    edges = np.array(size)
    for span in range(1, n):
        for i in range(n - span):
            j = i + span
            if unknown[j + 1] == unknown[i]:
                split[i, j] = i
                continue
            here = total[i, i:j] + total[i + 1 : j + 1, j] + cost(dtype, batch, size[i], edges[i + 1 : j + 1], size[j + 1])
            split[i, j] = i + int(np.argmin(here))
            total[i, j] = here[split[i, j] - i]
    return _build(chain, split)


def _rows(leaf: Term, batched: bool) -> Sequence[Dim]:
    return leaf.tensor.dims[-2:-1] if batched else leaf.tensor.dims[:-1]


def _number(shape: Sequence[Dim], binding: Mapping[str, int]) -> int:
    return dims.evaluate(dims.product(shape), binding)


def _build(chain: ProductChain, split: Array) -> Term:
    built: dict[tuple[int, int], Term] = {(i, i): leaf for i, leaf in enumerate(chain.leaves)}
    stack = [(0, len(chain.leaves) - 1)]
    while stack:
        i, j = stack[-1]
        middle = int(split[i, j]) if i != j else i
        missing = [part for part in ((i, middle), (middle + 1, j)) if i != j and part not in built]
        if missing:
            stack.extend(missing)
            continue
        stack.pop()
        if (i, j) not in built:
            built[i, j] = product(built[i, middle], built[middle + 1, j], batched=chain.batched)
    return built[0, len(chain.leaves) - 1]


def product(left: Term, right: Term, *, batched: bool) -> Term:
    """`left @ right` as a dot_general in the chain's own form."""
    rank = left.tensor.rank
    batch = tuple(range(rank - 2)) if batched else ()
    contract = (rank - 2,) if batched else (0,)
    attributes = {"lhs_batch": batch, "rhs_batch": batch, "lhs_contract": (rank - 1,), "rhs_contract": contract}
    return make("stablehlo.dot_general", (left, right), attributes)


@dataclass(frozen=True)
class Entered:
    """Equalities (a term of the program, what it equals) that follow from `rule`, or if it is None from computing constants, and are
    entered without a search for them."""

    rule: Rule | None
    pairs: tuple[tuple[Term, Term], ...]


@dataclass(frozen=True)
class Ordering:
    """What ordering the chains of a program gave: the chains that change, and the number of leaves of the longest chain."""

    entered: Entered | None = None
    longest: int = 0

    def keeps(self, rule: Rule) -> bool:
        """False for associativity where a chain is so long that rewriting it would explode; its order is the best one already."""
        return self.longest <= LONG or not is_associativity(rule)


def order_chains(roots: Sequence[Term], rules: Iterable[Rule], cost: ProductCost, binding: Mapping[str, int]) -> Ordering:
    """Order the chains of the program, if one of `rules` says that products are associative."""
    rule = next((rule for rule in rules if is_associativity(rule)), None)
    if rule is None:
        return Ordering()
    known = known_terms(roots)
    barred = reached(roots) if "nonfinite" in rule.numerics.exceptions else set()
    chains = [chain for chain in find_chains(roots) if not barred.intersection(chain.leaves) and _allows(rule, chain)]
    pairs = [(chain.root, best_order(chain, cost, binding, known.__contains__)) for chain in chains]
    changed = tuple((old, new) for old, new in pairs if old is not new)
    return Ordering(Entered(rule, changed) if changed else None, max((len(chain.leaves) for chain in chains), default=0))


def _allows(rule: Rule, chain: ProductChain) -> bool:
    """Whether the rule holds of the chain's sizes and range: no product is over nothing, or over a free dim that may be, where an infinity
    times a sum of nothing would be a NaN; and its element type has room."""
    filled = all(dim != 0 for leaf in chain.leaves for dim in leaf.tensor.dims)
    filled = filled and all(_is_positive(leaf.tensor.dims[-2]) for leaf in chain.leaves[1:])
    return filled and verdict_of(rule, class_of(chain.root.tensor.dtype)) != NEVER


def _is_positive(dim: Dim) -> bool:
    try:
        return less(0, dim)
    except Undecided:
        return False


def known_terms(roots: Sequence[Term]) -> set[Term]:
    """The terms that constants alone make."""
    known: set[Term] = set()
    for term in topological(roots):
        if term.op.name == "builtin.constant" or (term.operands and term.op.meaning and all(o in known for o in term.operands)):
            known.add(term)
    return known
