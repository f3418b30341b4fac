"""A rule does not fire where the range of a float type leaves no room for what it stores."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import coset.dialects
from coset.dialects.hub.stablehlo import splat
from coset.egraph import ranges
from coset.egraph.chains import product
from coset.egraph.limits import Limits
from coset.egraph.ranges import in_range
from coset.egraph.request import Phase
from coset.egraph.saturate import saturate
from coset.ir.errors import CosetError
from coset.ir.op import get_op
from coset.ir.term import Term, input_term, make
from coset.ir.types import DTYPES, F16, F32, DType, tensor
from coset.prove.check import check, check_rules
from coset.prove.grades import as_words, entry_grades
from coset.prove.verdict import write_lock
from coset.rules import payloads
from coset.rules.applied import matched
from coset.rules.definition import definition_of
from coset.rules.equation import Numerics
from coset.rules.library import load
from coset.rules.lock import NAME, arrow, assure, read_lock
from coset.rules.ranges import SOME
from coset.rules.rule import Rule, decided

assert coset.dialects

RULES = """use stablehlo as hlo
rule products
  "Products of three matrices in the other order."
  for a: F[M, K], b: F[K, N], c: F[N, P]
  (a @ b) @ c => a @ (b @ c)
  where K > 0 and N > 0
  numerics reassociates except nonfinite

rule scale
  "A number moves behind a sum."
  for x, y: F[S..], c: float
  x * splat(c) + y * splat(c) <=> (x + y) * splat(c)
  numerics reassociates
"""


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> list[Rule]:
    """The rules with their grades, as a lock file would give them."""
    file = tmp_path_factory.mktemp("rules") / "ranges.rules"
    file.write_text(RULES)
    own = load([file], with_definitions=False).rules
    words = {family: as_words(entry_grades([rule for rule in own if rule.family == family])) for family in ("products", "scale")}
    return [rule.changed(grades=tuple(words[rule.family].get(arrow(rule), {}).items())) for rule in own]


def _fires(rules: list[Rule], root: Term) -> bool:
    found = saturate([root], [Phase("all", tuple(rules))], Limits(iterations=1))
    return bool(found.fired)


def _input(name: str, dtype: DType, *shape: int) -> Term:
    return input_term(name, tensor(dtype, *shape))


def _three(dtype: DType, inner: int = 8) -> Term:
    pair = product(_input("a", dtype, 4, 8), _input("b", dtype, 8, inner), batched=False)
    return product(pair, _input("c", dtype, inner, 4), batched=False)


@pytest.mark.parametrize(("dtype", "fires"), [("f8e5m2", False), ("f16", False), ("bf16", True), ("f32", True), ("f64", True)])
def test_products_are_reordered_where_there_is_room(graded: list[Rule], dtype: str, fires: bool) -> None:
    products = [rule for rule in graded if rule.family == "products"]
    assert _fires(products, _three(DTYPES[dtype])) is fires
    assert _fires([rule.changed(grades=()) for rule in products], _three(DTYPES[dtype]))  # a rule that is not graded is admitted


def test_many_elements_that_are_folded_count(graded: list[Rule]) -> None:
    products = [rule for rule in graded if rule.family == "products"]
    assert _fires(products, _three(F32, 1 << 16))
    assert not _fires(products, _three(F32, 1 << 17))


@pytest.mark.parametrize(("value", "dtype", "fires"), [(2.0, F16, True), (4.0, F16, False), (4.0, F32, True), (2.0**20, F32, False)])
def test_a_number_that_is_known_decides(graded: list[Rule], value: float, dtype: DType, fires: bool) -> None:
    """(x + y) c => x c + y c makes the products as heavy as c says."""
    back = [rule for rule in graded if rule.family == "scale" and arrow(rule) == "<="]
    x, y = (_input(name, dtype, 4) for name in "xy")
    root = make("stablehlo.multiply", (make("stablehlo.add", (x, y)), splat(value, dtype, (4,))))
    assert _fires(back, root) is fires


def test_the_lock_file_keeps_the_grades_under_its_seal(tmp_path: Path) -> None:
    file = tmp_path / "ranges.rules"
    file.write_text(RULES)
    own = load([file], with_definitions=False).rules
    write_lock(check_rules(own, seed=1))
    line = read_lock(tmp_path / NAME)["products"]
    assert line.range["=>"]["f16"].startswith("never (k = 2") and "f64" not in line.range["=>"]
    (rule,) = (rule for rule in load([file], with_definitions=False).rules if rule.name == "products")
    assert dict(rule.grades) == line.range["=>"]
    changed = json.loads((tmp_path / NAME).read_text())
    changed["rules"]["products"]["range"]["=>"].pop("f16")
    (tmp_path / NAME).write_text(json.dumps(changed))
    with pytest.raises(CosetError, match="seal"):
        read_lock(tmp_path / NAME)


def test_what_opens_a_definition_and_what_promises_no_range_are_admitted(graded: list[Rule]) -> None:
    rule = next(rule for rule in graded if rule.family == "products")
    found = matched(rule, [_three(F16)])
    assert found is not None
    left, given = found
    decision = decided(rule, left, given)
    assert decision is not None
    attributes = [payloads.described(left[place].op, left[place].attributes, left[place].regions) or () for place in sorted(left)]
    types = [given[name].type for name in rule.variables]
    assert not in_range(rule, attributes, types, decision)
    assert in_range(rule.changed(definition="onnx.Gemm"), attributes, types, decision)
    assert in_range(rule.changed(numerics=Numerics("real")), attributes, types, decision)


def test_what_is_known_of_an_instance_is_not_said_of_another(graded: list[Rule], monkeypatch: pytest.MonkeyPatch) -> None:
    """Of rules that fold nothing answers are kept for all sizes: other numbers and other types are asked for themselves."""
    asked: list[Term] = []
    monkeypatch.setattr(ranges, "_outweighing", lambda rule, given, variables, decision: asked.append(variables) or frozenset())  # type: ignore[func-returns-value]
    rule = next(rule for rule in graded if rule.family == "scale" and not rule.name.endswith(".reverse"))
    rule = rule.changed(grades=(("f16", SOME), ("f32", SOME)))
    for count, (dtype, number, size) in (
        (1, (F32, 0.5, 3)),
        (1, (F32, 0.5, 5)),
        (2, (F32, 0.25, 5)),
        (3, (F16, 0.5, 3)),
        (3, (F16, 0.5, 4)),
    ):
        x, y, c = _input("x", dtype, size), _input("y", dtype, size), splat(number, dtype, (size,))
        found = matched(rule, [make("stablehlo.add", (make("stablehlo.multiply", (x, c)), make("stablehlo.multiply", (y, c))))])
        assert found is not None
        left, given = found
        decision = decided(rule, left, given)
        assert decision is not None
        attributes = [payloads.described(left[place].op, left[place].attributes, left[place].regions) or () for place in sorted(left)]
        assert in_range(rule, attributes, [given[name].type for name in rule.variables], decision)
        assert len(asked) == count, (dtype, number, size)


DEFINED = """use stablehlo as hlo
op graded.Bounded(x: F[S..]) -> F[S..]
  "The hyperbolic tangent of the cube."
  means tanh(x * x * x)
  numerics reassociates
"""


def test_a_definition_is_graded_for_opening_it(tmp_path: Path) -> None:
    """Whoever defines an op has its grades from `coset check`; nothing refutes a definition."""
    file = tmp_path / "graded.rules"
    file.write_text(DEFINED)
    (verdict,) = check([file])
    assert verdict.assurance != "refuted" and verdict.range["=>"]["f16"] == "never (k = 3)" and "f32" not in verdict.range["=>"]
    write_lock([verdict])
    opening, finding = definition_of(get_op("graded.Bounded")).rules
    locked = assure([*opening, *finding], tmp_path)
    assert all(dict(rule.grades) == ({} if rule.recognises else verdict.range["=>"]) for rule in locked)
    root = make("graded.Bounded", (_input("x", F16, 8),))
    graph = saturate([root], [Phase("all", tuple(locked[: len(opening)]))], Limits(iterations=1)).graph
    assert {node.op.name for number in graph.heavy for node in graph.nodes[number]} == {"stablehlo.multiply"}
