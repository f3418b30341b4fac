"""Definitions whose clauses sizes tell apart: which one holds is never taken for granted of a symbol, and clauses that overlap agree."""

from __future__ import annotations

from pathlib import Path

import pytest

import coset.dialects
from coset.ir.dims import symbol
from coset.ir.errors import TypeRuleError
from coset.ir.op import get_op
from coset.ir.types import DTYPES, TensorType
from coset.prove.check import check_rules
from coset.prove.verdict import RuleVerdict
from coset.rules.definition import expansion
from coset.rules.library import check_files
from coset.rules.watched import asking

assert coset.dialects

OVERLAPPING = """use stablehlo, clause

op clause.{name}(x: F[S..]) -> F[S..]
  "One more where there are more than {bound} elements, else x."
  means x + 1
  where product(S) > {bound}
  numerics exact
  means x
  numerics exact

rule opened
  "What {name} is of few elements."
  for x: F[A]
  clause.{name}(x) => x * 1
  numerics exact
"""

APART = """use stablehlo, clause

op clause.Apart(x: F[A], way: int) -> F[A]
  "One more where there are more than 7 elements, else x, in two ways."
  means x + 1
  where way == 3 and A > 7
  numerics exact
  means x * 1
  where way == 3 and A <= 7
  numerics exact
  means x * 1
  where way == 5
  numerics exact

rule way_of_one_name
  "An attribute whose values the definition tells is any of them."
  for x: F[A, B]
  clause.Apart(reshape(x, [A * B]), way: 5) => reshape(x, [A * B])
  numerics exact

rule any_way_of_transposed
  "Each way of one row."
  for x: F[A, 1]
  clause.Turned(x, way: w) => transpose(clause.Turned(transpose(x, [1, 0]), way: w), [1, 0])
  numerics exact

op clause.Turned(x: F[A, B], way: int) -> F[A, B]
  "x and one more, or two."
  means x + 1
  where way == 3
  numerics exact
  means x + 2
  where way == 11
  numerics exact
"""


def _verdicts(path: Path, text: str) -> dict[str, RuleVerdict]:
    path.write_text(text)
    rules, _ = check_files([path])
    return {verdict.name: verdict for verdict in check_rules(rules.rules, lambda rule: rule.place.file == str(path))}


def test_a_clause_that_no_drawn_size_reaches_proves_nothing(tmp_path: Path) -> None:
    found = _verdicts(tmp_path / "late.rules", OVERLAPPING.format(name="Late", bound=70_000))
    assert found["opened"].assurance != "proved", found["opened"].method


@pytest.mark.parametrize(("name", "bound"), [("Few", 7), ("Some", 300), ("Many", 1500)])
def test_sizes_that_a_definition_asks_for_are_drawn_and_clauses_that_overlap_agree(tmp_path: Path, name: str, bound: int) -> None:
    found = _verdicts(tmp_path / "sizes.rules", OVERLAPPING.format(name=name, bound=bound))
    assert {verdict.assurance for verdict in found.values()} == {"refuted"}, [verdict.method for verdict in found.values()]


def test_what_no_symbol_decides_is_no_clause(tmp_path: Path) -> None:
    _verdicts(tmp_path / "apart.rules", APART)
    op, free = get_op("clause.Apart"), TensorType(DTYPES["f32"], (symbol("A"),))
    with pytest.raises(TypeRuleError, match="which of its meanings holds depends on a comparison"):
        op.infer([free], {"way": 3})
    assert op.infer([free], {"way": 5}) == free  # no clause before speaks of this way

    for clause in (0, 1, 0):  # each case of a proof has its own answers: nothing is remembered of the case before
        with asking(lambda question, _, more=clause == 0: more if question == "<" else False):
            assert expansion("clause.Apart", [free], {"way": 3}).clause == clause
    with pytest.raises(TypeRuleError, match="which of its meanings"):
        op.infer([free], {"way": 3})


def test_values_that_a_definition_tells_are_all_that_there_are(tmp_path: Path) -> None:
    found = _verdicts(tmp_path / "ways.rules", APART)
    shown = found["any_way_of_transposed"]
    assert shown.assurance == "proved" and "not all" not in shown.method, shown.method
    assert found["way_of_one_name"].assurance in ("proved", "bounded"), found["way_of_one_name"].method


FORMS = """use stablehlo, onnx, clause

op clause.{name}(x: F[A]) -> F[]
  "The mean, by the number of elements as it is known."
  means sum(x, [0]) / A
  where static(A)
  numerics reassociates
  means sum(x, [0]) / convert(host({count}), F)
  where not static(A)
  numerics reassociates

rule mean_of_negated
  "A sign goes out of a mean."
  for x: F[A]
  clause.{name}(-x) => -clause.{name}(x)
  numerics reassociates
"""


@pytest.mark.parametrize(("name", "count", "assurance"), [("Mean", "A", "proved"), ("Other", "A + A - A", "bounded")])
def test_a_clause_for_sizes_with_numbers_is_the_other_one_or_a_gap(tmp_path: Path, name: str, count: str, assurance: str) -> None:
    """Clauses that differ in how a number is spelled are one; of others a proof with symbols has looked at one of two."""
    found = _verdicts(tmp_path / "forms.rules", FORMS.format(name=name, count=count))["mean_of_negated"]
    assert found.assurance == assurance and ("`static`" in found.method) == (assurance == "bounded"), found.method
