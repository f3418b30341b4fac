"""Chains of products: found whole, ordered optimally, never changed in value."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coset.dialects
from coset.egraph.chains import ProductChain, best_order, find_chains, is_associativity, order_chains, product
from coset.ir.dims import Dim, symbol
from coset.ir.evaluate import evaluate
from coset.ir.op import Array
from coset.ir.term import Term, constant, input_term, topological
from coset.ir.types import F64, DType, tensor
from coset.rules.library import load

assert coset.dialects


def flops(_: DType, batch: int, m: int, k: Array, n: int) -> Array:
    return 2.0 * batch * m * k * n


def chain_of(sizes: list[int], lead: tuple[int, ...] = (), batched: bool = False) -> tuple[Term, list[Term]]:
    leaves = []
    for i, (rows, columns) in enumerate(pairwise(sizes)):
        shape = (*lead, rows, columns) if i == 0 or batched else (rows, columns)
        leaves.append(input_term(f"x{i}", tensor(F64, *shape)))
    term = leaves[0]
    for leaf in leaves[1:]:
        term = product(term, leaf, batched=batched)
    return term, leaves


def work(root: Term) -> int:
    """FLOP of all products under `root`, by the op's own count."""
    products = [term for term in topological([root]) if term.operands]
    return sum(term.op.flops(term.type, [operand.type for operand in term.operands], dict(term.attributes)) for term in products)


def least_work(sizes: list[int], lead: int) -> int:
    @cache
    def least(i: int, j: int) -> int:
        if i == j:
            return 0
        outer = (sizes[0] * lead if i == 0 else sizes[i]) * sizes[j + 1]
        return min(least(i, k) + least(k + 1, j) + 2 * outer * sizes[k + 1] for k in range(i, j))

    return least(0, len(sizes) - 2)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 9), min_size=4, max_size=8), st.sampled_from([(), (2,), (3, 2)]))
def test_the_best_order_has_the_least_work_and_the_same_value(sizes: list[int], lead: tuple[int, ...]) -> None:
    term, leaves = chain_of(sizes, lead)
    (chain,) = find_chains([term])
    assert chain.leaves == tuple(leaves)
    best = best_order(chain, flops, {}, lambda _: False)
    assert work(best) == least_work(sizes, int(np.prod(lead, dtype=np.int64)))
    rng = np.random.default_rng(0)
    feed = {f"x{i}": rng.integers(-3, 4, leaf.tensor.static or ()).astype(np.float64) for i, leaf in enumerate(leaves)}
    before, after = evaluate([term, best], feed)
    np.testing.assert_array_equal(before, after)  # small integers: exact in f64 in every order


def test_batched_chains_keep_their_batch() -> None:
    term, leaves = chain_of([5, 1, 6, 2], (4,), batched=True)
    (chain,) = find_chains([term])
    assert chain == ProductChain(term, tuple(leaves), True)
    assert best_order(chain, flops, {}, lambda _: False).type == term.type


def test_a_shared_product_starts_a_chain_of_its_own() -> None:
    term, leaves = chain_of([2, 3, 4])
    wider = product(product(term, input_term("y", tensor(F64, 4, 5)), batched=False), input_term("z", tensor(F64, 5, 2)), batched=False)
    (chain,) = find_chains([wider, term])
    assert chain.leaves[0] is term
    (whole,) = find_chains([wider])
    assert whole.leaves[:2] == tuple(leaves)


def test_products_of_constants_are_free() -> None:
    x = input_term("x", tensor(F64, 100, 100))
    weights = [constant(np.ones((100, 100))) for _ in range(1)] + [constant(np.full((100, 100), 2.0))]
    term = product(product(x, weights[0], batched=False), weights[1], batched=False)
    (chain,) = find_chains([term])
    best = best_order(chain, flops, {}, lambda t: t.op.name == "builtin.constant")
    assert best.operands[0] is x


@pytest.mark.parametrize("length", [80])
def test_a_long_chain_is_ordered(length: int) -> None:
    sizes = [int(n) for n in np.random.default_rng(1).integers(1, 200, length + 1)]
    term, _ = chain_of(sizes)
    (chain,) = find_chains([term])
    assert work(best_order(chain, flops, {}, lambda _: False)) == least_work(sizes, 1)


@pytest.mark.parametrize(("inner", "ordered"), [(64, True), (symbol("L"), False), (0, False)])
def test_a_chain_over_what_may_be_nothing_keeps_its_order(inner: Dim, ordered: bool) -> None:
    """q (k v) multiplies an infinity of q by a sum of nothing where there are no keys, (q k) v does not: so the rule asks, which the order
    follows."""
    sizes = [64, 4, inner, 4]
    leaves = [input_term(f"x{i}", tensor(F64, rows, columns)) for i, (rows, columns) in enumerate(pairwise(sizes))]
    term = product(product(leaves[0], leaves[1], batched=False), leaves[2], batched=False)
    rule = next(rule for rule in load().rules if is_associativity(rule))
    found = order_chains([term], [rule], flops, {"L": 512}).entered
    assert (found is not None) == ordered
