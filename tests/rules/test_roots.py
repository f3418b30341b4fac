"""Rules with several roots: read, shown root by root, found together, and each root made equal to its own term."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rule_texts import HEADER, read_rules

from coset.egraph.limits import Limits
from coset.egraph.request import Phase
from coset.egraph.saturate import Saturation, saturate
from coset.extract.select import select
from coset.ir.evaluate import evaluate
from coset.ir.term import Term, constant, input_term, make, topological
from coset.ir.types import F32, F64, DType, tensor
from coset.prove.check import check_rules, verify
from coset.rules import elaborated, syntax
from coset.rules.format import format_text
from coset.rules.library import load
from coset.rules.parser import parse
from coset.rules.rule import Rule
from coset.targets.target import get_target

MERGE = """rule merge
  "Products of one operand are columns of one product."
  for x: F[M, K], w: const F[K, N], v: const F[K, P]
  {}
  with p = x @ concatenate(w, v, dimension: 1)
  numerics reassociates
  test x = [[1, 2]]: f32, w = [[1], [1]], v = [[2, 3], [4, 5]] => [[3]], [[10, 13]]

phase algebra {{ merge once }}
"""
FIRST, SECOND = "slice(p, [0, 0], [M, N], [1, 1])", "slice(p, [0, N], [M, N + P], [1, 1])"
SPELLINGS = {
    "by place": f"x @ w, x @ v => {FIRST}, {SECOND}",
    "by name": f"a = x @ w, b = x @ v => b = {SECOND}, a = {FIRST}",
    "named on the left": f"a = x @ w, b = x @ v => {FIRST}, {SECOND}",
}
NEGATED = """rule negated
  "Two roots, of which one is a variable then."
  for x: F[S..]
  a = tanh(-(-x)), b = -(-x) => a = tanh(x), b = x
  numerics exact
phase algebra { negated once }
"""


def merging(folder: Path, spelling: str = "by name") -> tuple[Rule, ...]:
    rules, errors = read_rules(folder, MERGE.format(SPELLINGS[spelling]))
    assert errors == []
    return rules.family("merge")


def weight(columns: int, dtype: DType = F32) -> Term:
    return constant(np.random.default_rng(columns).normal(size=(8, columns)).astype(dtype.numpy))


def product(a: Term, b: Term) -> Term:
    return make("stablehlo.dot_general", (a, b), {"lhs_contract": (1,), "rhs_contract": (0,)})


X = input_term("x", tensor(F32, 4, 8))


def searched(rules: tuple[Rule, ...], *roots: Term) -> Saturation:
    return saturate(roots, [Phase("algebra", rules)], Limits(seconds=20))


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_all_spellings_are_one_rule_that_is_proved(spelling: str, tmp_path: Path) -> None:
    (rule,) = merging(tmp_path, spelling)
    assert (rule.roots, len(rule.pairs), rule.limit) == (2, 2, 1)
    assert [(str(left), str(right)[:16]) for left, right in rule.pairs] == [
        ("stablehlo.dot_general(x, w)", "stablehlo.slice("), ("stablehlo.dot_general(x, v)", "stablehlo.slice("),
    ]  # fmt: skip
    (verdict,) = check_rules([rule])
    assert verdict.assurance == "proved", verdict.method
    assert verify([tmp_path / "given.rules"])[1] == []


@pytest.mark.parametrize(
    "wrong", [f"x @ w, x @ v => {SECOND}, {FIRST}", f"x @ w, x @ v => {FIRST}, slice(p, [0, N - 1], [M, N + P - 1], [1, 1])"]
)
def test_one_wrong_root_refutes_the_rule(wrong: str, tmp_path: Path) -> None:
    rules, errors = read_rules(tmp_path, MERGE.format(wrong).replace("F[K, P]", "F[K, N]").replace("P]", "N]").replace("+ P", "+ N"))
    (verdict,) = check_rules(rules.family("merge"))
    assert [error.message[:25] for error in errors] == [] and verdict.assurance == "refuted"


def test_a_test_line_compares_each_root(tmp_path: Path) -> None:
    path = tmp_path / "given.rules"
    path.write_text(HEADER + MERGE.format(SPELLINGS["by place"]).replace("[[10, 13]]", "[[10, 14]]"))
    (error,) = verify([path])[1]
    assert error.message == "`merge` gives [[10., 13.]], its test says [[10., 14.]]"


@pytest.mark.parametrize(("count", "pairs"), [(1, 0), (2, 2), (3, 6), (4, 12)])
def test_different_values_are_found_in_pairs_both_ways_round(count: int, pairs: int, tmp_path: Path) -> None:
    found = searched(merging(tmp_path), *(product(X, weight(n)) for n in range(1, count + 1)))
    assert sum(found.fired.values()) == pairs
    assert found.stop == "saturated"


def test_what_is_not_shared_does_not_match(tmp_path: Path) -> None:
    other = input_term("y", tensor(F32, 4, 8))
    assert not searched(merging(tmp_path), product(X, weight(2)), product(other, weight(3))).fired
    wide = input_term("z", tensor(F64, 4, 8))
    assert not searched(merging(tmp_path), product(wide, weight(2, F64)), product(X, weight(3))).fired
    unknown = input_term("w", tensor(F32, 8, 2))
    assert not searched(merging(tmp_path), product(X, weight(2)), product(X, unknown)).fired


def test_each_root_is_equal_to_its_own_term(tmp_path: Path) -> None:
    roots = [product(X, weight(2)), product(X, weight(3))]
    found = searched(merging(tmp_path), *roots)
    chosen = select(found.graph, get_target("recognition"), {}).terms  # where kernels are counted and slices are nearly free
    assert [term.op.name for term in topological(chosen)].count("stablehlo.dot_general") == 1
    inputs = {"x": np.random.default_rng(0).normal(size=(4, 8)).astype(np.float32)}
    for before, after in zip(evaluate(roots, inputs), evaluate(chosen, inputs), strict=True):
        np.testing.assert_allclose(before, after, rtol=1e-5)
    assert {number for numbers in found.origins.values() for number in numbers} == {0}, "the new e-nodes are this rule's"


def test_a_root_may_become_a_variable(tmp_path: Path) -> None:
    rules, errors = read_rules(tmp_path, NEGATED)
    assert errors == []
    (verdict,) = check_rules(rules.family("negated"))
    assert verdict.assurance == "proved", verdict.method
    twice = make("stablehlo.negate", (make("stablehlo.negate", (X,)),))
    found = searched(rules.family("negated"), twice, make("stablehlo.tanh", (twice,)))
    chosen = select(found.graph, get_target("recognition"), {}).terms
    assert chosen == (X, make("stablehlo.tanh", (X,)))
    assert list(found.collapses) == [0]


def test_both_directions(tmp_path: Path) -> None:
    text = """rule halves
  "Sums and differences of halves."
  for x, y: F[S..]
  a = tanh(x) + tanh(y), b = tanh(x) - tanh(y) <=> b = tanh(x) + -tanh(y), a = tanh(y) + tanh(x)
  numerics exact
phase algebra { halves once }
"""
    rules, errors = read_rules(tmp_path, text)
    assert errors == []
    assert [(rule.name, rule.roots) for rule in rules.family("halves")] == [("halves", 2), ("halves.reverse", 2)]
    (verdict,) = check_rules(rules.family("halves"))
    assert verdict.assurance == "proved", verdict.method


def test_several_results_of_one_term(tmp_path: Path) -> None:
    text = """use stablehlo, roots
op roots.Both(x: F[S..]) -> (F[S..], F[S..])
  "The exponential and the hyperbolic tangent."
  means (exponential(x), tanh(x))
  numerics exact
rule both
  "Both at once."
  for x: F[S..]
  e = exponential(x), t = tanh(x) => e, t = roots.Both(x)
  numerics exact
phase algebra { both once }
"""
    path = tmp_path / "given.rules"
    path.write_text(text)
    rules = load([path])
    (rule,) = rules.family("both")
    (verdict,) = check_rules([rule])
    assert [str(right) for _, right in rule.pairs] == ["builtin.get(roots.Both(x))"] * 2
    found = searched((rule,), make("stablehlo.exponential", (X,)), make("stablehlo.tanh", (X,)))
    target = get_target("recognition")
    free = replace(target, forms={**target.forms, "roots.Both": target.forms["stablehlo.convert"]})
    chosen = select(found.graph, free, {}).terms
    assert verdict.assurance == "proved", verdict.method
    assert [(term.op.name, term.attribute("index"), term.operands[0].op.name) for term in chosen] == [
        ("builtin.get", 0, "roots.Both"), ("builtin.get", 1, "roots.Both"),
    ]  # fmt: skip


def test_a_tuple_in_brackets_is_one_root() -> None:
    file, errors = parse("rule r for x: F[S..] (abs(-x), -x) => (abs(x), -x) numerics exact", "t.rules")
    assert errors == []
    assert file.rules[0].roots == 1
    assert isinstance(file.rules[0].left, syntax.Operation)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_roots_are_formatted(spelling: str) -> None:
    once = format_text(MERGE.format(SPELLINGS[spelling]))
    assert format_text(once) == once and "\n  " + SPELLINGS[spelling] + "\n" in once


def test_roots_are_kept_from_run_to_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elaborated, "LIBRARY", tmp_path)
    (fresh,) = merging(tmp_path)
    path = tmp_path / "given.rules"
    kept = elaborated.kept(path.read_text(), path)
    assert kept is not None
    (again,) = kept.rules
    assert (again.roots, again.typed, again.pairs) == (fresh.roots, fresh.typed, fresh.pairs)
    assert again.tests == fresh.tests and len(again.tests) == 1
