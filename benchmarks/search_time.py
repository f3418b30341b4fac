"""How long a chain of matrix products takes to be put in its best order, beside the optimum from the textbook's algorithm.

    python -m benchmarks.search_time [--length N] [--repeat R] [--json]

Times are of the search alone (ordering, saturation in the child process, extraction); nothing is read, written or checked.
`flop` counts the order that coset chose by FLOP alone; `optimum` is the least possible, from the plain O(n^3) recurrence.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from typing import Any

import numpy as np

import coset.dialects
from coset.egraph.chains import order_chains, product
from coset.egraph.limits import Limits
from coset.egraph.request import Phase
from coset.egraph.saturate import saturate
from coset.extract.products import product_seconds
from coset.extract.select import select
from coset.ir.term import Term, input_term, topological
from coset.ir.types import F32, tensor
from coset.rules.library import load
from coset.targets.target import get_target

assert coset.dialects


def chain(length: int, seed: int) -> tuple[Term, list[int]]:
    """A product of `length` matrices of drawn sizes, from left to right, and the sizes."""
    sizes = [int(n) for n in np.random.default_rng(seed).integers(8, 512, length + 1)]
    leaves = [input_term(f"x{i}", tensor(F32, sizes[i], sizes[i + 1])) for i in range(length)]
    term = leaves[0]
    for leaf in leaves[1:]:
        term = product(term, leaf, batched=False)
    return term, sizes


def flop(root: Term) -> int:
    """FLOP of all products under `root`, by the op's own count."""
    products = [term for term in topological([root]) if term.operands]
    return sum(term.op.flops(term.type, [operand.type for operand in term.operands], dict(term.attributes)) for term in products)


def optimum(sizes: list[int]) -> int:
    """The least FLOP of the chain: cost(i, j) = min over k of cost(i, k) + cost(k, j) + 2 s_i s_k s_j."""
    n = len(sizes)
    least = np.zeros((n, n), np.int64)
    for span in range(2, n):
        for i in range(n - span):
            j = i + span
            ks = np.arange(i + 1, j)
            least[i, j] = np.min(least[i, ks] + least[ks, j] + 2 * sizes[i] * np.array(sizes)[ks] * sizes[j])
    return int(least[0, n - 1])


def by_flop(_: object, batch: int, m: int, k: Any, n: int) -> Any:
    """The cost that the textbook takes."""
    return 2.0 * batch * m * k * n


def main() -> None:
    """Time what was asked for and print a line each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--length", type=int, default=80)
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    target = get_target("cpu-onnxruntime")
    # recognition (a product as a Gemm) runs too, as in `coset optimize`
    phases = [Phase(phase.name, phase.rules) for phase in load().phases]
    rules = [rule for phase in phases for rule in phase.rules]
    seconds, work = [], []
    for seed in range(arguments.repeat):
        root, sizes = chain(arguments.length, seed)
        started = time.perf_counter()
        ordering = order_chains([root], rules, product_seconds(target), {})
        ordered = time.perf_counter()
        kept = [phase.where(ordering.keeps) for phase in phases]
        found = saturate([root], kept, Limits(), equalities=[] if ordering.entered is None else ordering.entered.pairs)
        selection = select(found.graph, target, {})
        ended = time.perf_counter()
        by_flops = order_chains([root], rules, by_flop, {}).entered
        by_work = [] if by_flops is None else by_flops.pairs
        seconds.append((ordered - started, ended - started))
        work.append((flop(root), flop(by_work[0][1]), optimum(sizes), selection.input_cost, selection.cost))
        assert flop(by_work[0][1]) == optimum(sizes)
    row = {
        "length": arguments.length,
        "order_s": statistics.median(s for s, _ in seconds),
        "search_s": statistics.median(s for _, s in seconds),
        "flop_input": [w[0] for w in work],
        "flop_chosen": [w[1] for w in work],
        "flop_optimum": [w[2] for w in work],
        "predicted_input_s": [w[3] for w in work],
        "predicted_s": [w[4] for w in work],
    }
    if arguments.json:
        print(json.dumps({"command": " ".join(sys.argv), **row}))
        return
    times = f"ordered in {row['order_s']:.3f} s, whole search {row['search_s']:.3f} s"
    print(f"chain of {arguments.length}: {times} (medians of {arguments.repeat})")
    for w in work:
        print(f"  FLOP {w[0]:14d} -> {w[1]:14d}  optimum {w[2]:14d}   predicted {w[3] * 1e3:8.3f} -> {w[4] * 1e3:8.3f} ms")


if __name__ == "__main__":
    main()
