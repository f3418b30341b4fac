"""What is shown of payload functions, and false rules about them: refuted by small tensors, and nothing is proved of them."""

from __future__ import annotations

from pathlib import Path

import pytest

import coset.dialects
from coset.dialects.hub.region_terms import region
from coset.ir.term import Region, Term, make
from coset.ir.types import DTYPES, tensor
from coset.prove.check import check
from coset.prove.combiners import associative, commutative, neutral

assert coset.dialects


def combiner(name: str, dtype: str = "f32") -> Region:
    return region([tensor(DTYPES[dtype])] * 2, lambda a, b: make(f"stablehlo.{name}", (a, b)))


def both(a: Term, b: Term, c: Term, d: Term) -> list[Term]:
    """The larger key, and the value that goes with it (the first of equal ones)."""
    first = make("stablehlo.compare", (a, c), {"direction": "GE"})
    return [make("stablehlo.select", (first, a, c)), make("stablehlo.select", (first, b, d))]


@pytest.mark.parametrize(
    ("function", "promise", "grouped", "turned"),
    [
        (combiner("add"), "reassociates", True, True),
        (combiner("add"), "exact", None, True),  # rounding
        (combiner("add", "i32"), "exact", True, True),
        (combiner("multiply", "u8"), "exact", True, True),
        (combiner("maximum"), "exact", True, True),
        (combiner("subtract"), "reassociates", None, None),
        (combiner("subtract", "i32"), "exact", None, None),
        (combiner("xor", "bool"), "exact", True, True),
        (combiner("and", "i8"), "exact", True, True),
        (combiner("divide"), "real", None, None),
        (region([tensor(DTYPES["i32"])] * 2, lambda a, _: a), "exact", True, None),
        (region([tensor(DTYPES["i32"])] * 4, both), "exact", True, None),  # of equal keys the first one wins
        (region([tensor(DTYPES["f32"])], lambda a: a), "exact", None, None),  # it combines nothing
    ],
)
def test_what_is_shown_of_a_combiner(function: Region, promise: str, grouped: bool | None, turned: bool | None) -> None:
    assert (associative(function, promise), commutative(function, promise)) == (grouped, turned)


def test_a_neutral_element_is_shown_on_both_sides() -> None:
    assert neutral(combiner("add"), 0, "reassociates") is True
    assert neutral(combiner("add"), 0, "exact") is None  # 0 + -0 is 0
    assert neutral(combiner("add", "i32"), 0, "exact") is True
    assert neutral(combiner("add", "i32"), 1, "exact") is None
    assert neutral(combiner("subtract", "i32"), 0, "exact") is None
    assert neutral(combiner("multiply", "i8"), 1000, "exact") is None  # no number of the type


FALSE = """
use stablehlo as hlo

rule sum_from_one
  for x: F[S..]
  hlo.reduce_region(x, scalar(1, F), dimensions: A, body: lambda a, b: a + b) => sum(x, A)
  numerics reassociates

rule sum_of_totals
  for x: F[S..]
  hlo.reduce_region(x, scalar(0, F), dimensions: A, body: lambda a, b: a + a) => sum(x, A)
  numerics reassociates

rule sum_in_any_order
  for x: F[S..]
  hlo.reduce_region(x, scalar(0, F), dimensions: A, body: lambda a, b: a + b) => sum(x, A)
  numerics exact

rule other_branch
  for p: bool[], x: T[S..]
  hlo.if(p, x, results: r, true_branch: f, false_branch: g) => hlo.if(p, x, results: r, true_branch: g, false_branch: f)
  numerics exact

rule no_map
  for x: F[S..]
  hlo.map(x, dimensions: _, body: _) => x
  numerics exact

rule composed_the_wrong_way
  for x: F[S..]
  hlo.map(hlo.map(x, dimensions: _, body: f), dimensions: d, body: g) => hlo.map(x, dimensions: d, body: lambda a: f(g(a)))
  numerics exact

rule regrouped
  for x: I[S..], v: float
  hlo.reduce_region(hlo.reduce_region(x, scalar(v, I), dimensions: A, body: f), scalar(v, I), dimensions: B, body: f)
      => hlo.reduce_region(x, scalar(v, I), dimensions: join(A, B), body: f)
  numerics exact
"""


def test_false_rules_about_functions_are_refuted(tmp_path: Path) -> None:
    path = tmp_path / "false.rules"
    path.write_text(FALSE)
    verdicts = check([path])
    assert {verdict.name: verdict.assurance for verdict in verdicts} == dict.fromkeys((v.name for v in verdicts), "refuted")
    assert len(verdicts) == FALSE.count("\nrule ")
