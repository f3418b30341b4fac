"""False rules over ops of the user's whose definitions tell ranks, element types, numbers or forms of sizes apart: none is proved."""

from __future__ import annotations

from pathlib import Path

import pytest

import coset.dialects
from coset.ir.op import get_op
from coset.prove.check import check_rules
from coset.prove.opened import ranks_told, tells, types_told
from coset.prove.verdict import RuleVerdict, locked
from coset.rules.library import check_files
from coset.rules.lock import Locked, save_lock, text_hash
from coset.rules.meant import OWN
from coset.rules.rule import Rule

assert coset.dialects

OPS = """use stablehlo, told

op told.Between(x: F[S..], epsilon: float) -> F[S..]
  "x where a number is between two others, else x and the number."
  means x * 1
  where epsilon > 20.0 and epsilon < 30.0
  numerics exact
  means x + splat(epsilon)
  where epsilon <= 20.0 or epsilon >= 30.0
  numerics exact

op told.Plus(x: F[S..], epsilon: float) -> F[S..]
  "x and a number."
  means x + splat(epsilon)
  numerics exact

op told.Scaled(c: bool[S..], x: F[S..], epsilon: float) -> F[S..]
  "x or 0, times a number."
  means select(c, x, 0) * splat(epsilon)
  numerics exact

op told.Deep(x: F[S..]) -> F[S..]
  "x, but for nine axes."
  means x + 1
  where len(S) == 9
  numerics exact
  means x * 1
  where len(S) != 9
  numerics exact

op told.Turned(x: F[S..]) -> F[S..]
  "x turned round along the axes behind the seventh."
  means reverse(x, [i for i in range(len(S)) if i > 7])
  numerics exact

op told.Sevens(x: F[S..]) -> F[S..]
  "x turned round if there are seven axes."
  means reverse(x, [i for i in range(len(S)) if len(S) == 2 * 2 * 2 - 1])
  numerics exact

op told.Wide(x: I[S..]) -> I[S..]
  "x, but twice of one type."
  means x + x
  where I == u64
  numerics exact
  means x * 1
  where I != u64
  numerics exact

op told.Large(x: F[N]) -> F[N]
  "x, but for many elements."
  means x + 1
  where static(N) and N > 70000
  numerics exact
  means x * 1
  where static(N) and N <= 70000
  numerics exact
  means x * 1
  where not static(N)
  numerics exact

op told.Size(x: F[N]) -> F[N]
  "x times a number that is 1 of few elements."
  means x * splat(1 + N // 70000)
  where static(N)
  numerics exact
  means x * 1
  where not static(N)
  numerics exact

op told.Around(x: F[N]) -> F[N]
  "The same by another name."
  means told.Size(x)
  numerics exact

op told.Mean(x: F[N]) -> F[N]
  "x divided by how many there are, in two forms of one meaning."
  means x / splat(N)
  where static(N)
  numerics reassociates
  means x / splat(convert(host(N), F))
  where not static(N)
  numerics reassociates

op told.Counted(x: F[N]) -> F[N]
  "x times a number that its length gives."
  means x * splat(1 + N // 70000)
  numerics exact
"""

FALSE = """use stablehlo, told

rule between for x: F[S..]  told.Between(x, epsilon: e) => x + splat(e)  numerics exact
rule below_one
  for x: F[S..]
  told.Plus(x, epsilon: e) => select(compare(full(e, S, F), full(1, S, F), "LT"), x + splat(e), x)
  where e < 1.0
  numerics exact
rule positive_number
  for c: bool[S..], x: F[S..]
  told.Scaled(c, x, epsilon: e) => select(c, x * splat(e), splat(0))
  where e > 0 and e < inf
  numerics exact
rule deep for x: F[S..]  told.Deep(x) => x  numerics exact
rule turned for x: F[S..]  told.Turned(x) => x  numerics exact
rule sevens for x: F[S..]  told.Sevens(x) => x  numerics exact
rule wide for x: I[S..]  told.Wide(x) => x  numerics exact
rule large for x: F[N]  told.Large(x) => x  numerics exact
rule size for x: F[N]  told.Size(x) => x  numerics exact
rule around for x: F[N]  told.Around(x) => x  numerics exact
rule counted
  for x: F[N], y: F[M]
  concatenate(told.Counted(x), told.Counted(y), dimension: 0) => told.Counted(concatenate(x, y, dimension: 0))
  numerics exact
"""

TRUE = """use stablehlo, told

rule plus for x: F[S..]  told.Plus(x, epsilon: e) => splat(e) + x  numerics exact
rule wide_twice for x: I[S..]  told.Wide(x) + told.Wide(x) => splat(2) * told.Wide(x)  numerics exact
rule mean_of_negative for x: F[N]  told.Mean(-x) => -told.Mean(x)  numerics reassociates
"""

TIMES = """use stablehlo, rest

op rest.Inner(x: F[S..]) -> F[S..]
  means x + x
  numerics exact

op rest.Times(x: F[S..]) -> F[S..]
  means rest.Inner(x)
  numerics exact
"""

RESTING = """use stablehlo, rest

rule twice for x: F[S..]  rest.Times(x) => x + x  numerics exact
rule negated_twice for x: F[S..]  -(-x) => x * 1  numerics exact
"""


def _rules(folder: Path, **files: str) -> tuple[Rule, ...]:
    for name, text in files.items():
        (folder / f"{name}.rules").write_text(text)
    rules, errors = check_files([folder])
    assert [str(error) for error in errors] == []
    return tuple(rule for rule in rules.rules if Path(rule.place.file).parent == folder and rule.definition is None)


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> tuple[Rule, ...]:
    return _rules(tmp_path_factory.mktemp("told"), ops=OPS, false=FALSE, true=TRUE)


@pytest.fixture(scope="module")
def verdicts(own: tuple[Rule, ...]) -> dict[str, RuleVerdict]:
    return {verdict.name: verdict for verdict in check_rules(own)}


@pytest.mark.parametrize("name", [line.split()[1] for line in FALSE.splitlines() if line.startswith("rule ")])
def test_what_a_definition_tells_apart_is_not_proved(verdicts: dict[str, RuleVerdict], name: str) -> None:
    assert verdicts[name].assurance != "proved", verdicts[name].method


@pytest.mark.parametrize("name", ["between", "wide"])
def test_what_a_definition_names_is_drawn(verdicts: dict[str, RuleVerdict], name: str) -> None:
    assert verdicts[name].assurance == "refuted", verdicts[name].method


@pytest.mark.parametrize("name", [line.split()[1] for line in TRUE.splitlines() if line.startswith("rule ")])
def test_what_is_true_beside_them_is_proved(verdicts: dict[str, RuleVerdict], name: str) -> None:
    assert verdicts[name].assurance == "proved", verdicts[name].method + verdicts[name].counterexample


def test_what_definitions_tell_apart_is_seen(own: tuple[Rule, ...]) -> None:
    rules = {rule.name: rule for rule in own}
    assert ranks_told(rules["deep"], 2) == {"ranks that told.Deep tells apart"} and ranks_told(rules["wide"], 2) == set()
    assert types_told(rules["wide"], ("i32", "u8")) == ("u64",) and types_told(rules["deep"], ()) == ()
    assert tells(get_op("told.Between"), "epsilon") and not tells(get_op("told.Plus"), "epsilon")
    assert not get_op("told.Deep").has("elementwise") and get_op("told.Plus").has("elementwise")


def test_a_verdict_rests_on_the_definitions_that_a_rule_uses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = _rules(tmp_path, ops=TIMES, resting=RESTING)
    save_lock(tmp_path / "rules.lock", {rule.family: Locked(text_hash(rule.text), "proved") for rule in before})
    assert {rule.family for rule in before if locked(rule)} == {"twice", "negated_twice"}

    text, named = OWN["rest.Inner"]
    monkeypatch.setitem(OWN, "rest.Inner", (text.replace("x + x", "x + x + x"), named))
    after, _ = check_files([tmp_path])
    again = [rule for rule in after.rules if rule.family in ("twice", "negated_twice")]
    assert {rule.family for rule in again if locked(rule)} == {"negated_twice"}
