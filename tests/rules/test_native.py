"""Native functions: registered in code, called by rules, not looked into by proofs, and counted."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from rule_texts import HEADER, fires_at, read_rules

from coset.cli import run
from coset.ir.dims import symbol
from coset.ir.errors import CosetError
from coset.ir.op import Array
from coset.ir.types import F32, DType
from coset.prove.check import check_rules, verify
from coset.prove.verdict import write_lock
from coset.prove.verify import prove
from coset.rules import native as natives
from coset.rules.lock import NAME, read_lock
from coset.rules.native import all_natives, find_native, native
from coset.rules.scalar import Undefined


def power_of_two(n: int) -> bool:
    """True when n is a power of two."""
    return n > 0 and n & (n - 1) == 0


def rotated(p: tuple[int, ...], n: int) -> list[int]:
    """The list p turned by n places."""
    return [*p[n:], *p[:n]]


def halved(n: int) -> int:
    """Half of an even number."""
    if n % 2:
        raise Undefined
    return n // 2


def wide(t: DType) -> bool:
    """True for types of 32 bits and more."""
    return t.bits >= 32


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    """The functions above, and none else, behind the test."""
    before = {each.name for each in all_natives()}
    native("int", gives="bool")(power_of_two)
    native("ints", "int", gives="ints")(rotated)
    native("int", gives="int")(halved)
    native("dtype", gives="bool")(wide)
    yield
    for each in all_natives():
        if each.name not in before:
            natives.withdraw(each.name)


GUARDED = "rule r for x: F[N] -(-x) => x where native.power_of_two(N) numerics exact\n"
TURNED = "rule r for x: T[S..], p: permutation(S) transpose(x, p) => transpose(x, native.rotated(p, {})) numerics exact\n"


def test_a_condition_is_asked_and_a_symbol_is_unknown(tmp_path: Path) -> None:
    rules, errors = read_rules(tmp_path, GUARDED)
    assert errors == []
    (rule,) = rules.family("r")

    assert fires_at(rule, 16) and not fires_at(rule, 12) and not fires_at(rule, symbol("S"))


def test_such_a_rule_is_tested_at_most_and_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = GUARDED + "rule s for x: F[N] -(-x) => x numerics exact\n"
    rules, errors = read_rules(tmp_path, text)
    guarded, plain = check_rules(rules.family("r"))[0], check_rules(rules.family("s"))[0]
    assert errors == []
    assert (guarded.assurance, guarded.native, plain.assurance, plain.native) == ("tested", True, "proved", False)
    assert guarded.method.endswith("no proof: nothing is known of native.power_of_two")
    assert not prove(rules.family("r")[0]).assurance
    assert run(["check", str(tmp_path / "given.rules")]) == 0
    assert "2 rules: 50% proved, 50% tested; 50% with native functions; 0 mistakes" in capsys.readouterr().out
    assert run(["check", "--json", str(tmp_path / "given.rules")]) == 0  # from the lock file this time
    answer = json.loads(capsys.readouterr().out)
    assert answer["ratios"]["native"] == 0.5 and [rule["native"] for rule in answer["rules"]] == [True, False]


def test_values_of_the_right_side_are_computed_and_false_ones_refuted(tmp_path: Path) -> None:
    rules, errors = read_rules(tmp_path, TURNED.format("len(p)"))
    (verdict,) = check_rules(rules.family("r"))
    assert errors == [] and verdict.assurance == "tested"
    rules, errors = read_rules(tmp_path, TURNED.replace("permutation(S)", "permutation(S), n: int").replace("T[S..]", "T[N, N]")
                               .replace("permutation(S), n: int", "ints").format(1))  # fmt: skip
    (verdict,) = check_rules(rules.family("r"))
    assert errors == [] and verdict.assurance == "refuted"


def test_no_value_does_not_fire(tmp_path: Path) -> None:
    text = "rule r for x: T[N] reshape(x, [N]) => reshape(x, [native.halved(N) * 2]) numerics exact\n"
    _, errors = read_rules(tmp_path, text + "test x = [1, 2]: f32\ntest not x = [1, 2, 3]: f32\n")
    assert errors == []
    assert verify([tmp_path / "given.rules"])[1] == []


def test_the_lock_rests_on_the_source_of_the_function(tmp_path: Path) -> None:
    rules, _ = read_rules(tmp_path, GUARDED)
    write_lock(check_rules(rules.family("r")))
    before = read_lock(tmp_path / NAME)["r"].hash
    assert read_rules(tmp_path, GUARDED)[0].family("r")[0].assurance == "tested"
    natives.withdraw("native.power_of_two")

    def another(n: int) -> bool:
        """True for 1 only."""
        return n == 1

    another.__name__ = "power_of_two"
    native("int", gives="bool")(another)
    rules, _ = read_rules(tmp_path, GUARDED)
    assert rules.family("r")[0].assurance == "assumed"
    write_lock(check_rules(rules.family("r")))
    assert read_lock(tmp_path / NAME)["r"].hash != before


MISTAKES = {
    "unknown": ("rule r for x: F[N] -(-x) => x where native.prime(N) numerics exact", "2:37", "there is no native function `native.prime`"),
    "arguments": (
        "rule r for x: F[N] -(-x) => x where native.power_of_two(N, 2) numerics exact",
        "2:37", "`native.power_of_two` is written native.power_of_two(int)",
    ),
    "kind": (
        "rule r for x: F[S..] -(-x) => x where native.power_of_two(S) numerics exact",
        "2:59", "`native.power_of_two` takes int here, and this is of kind pack",
    ),
    "term": (
        "rule r for x: F[S..] -(-x) => x where native.power_of_two(x) numerics exact",
        "2:59", "`native.power_of_two` takes int here, and this is a term",
    ),
    "definition": (
        "op onnx.Mine(x: F[N]) means if native.power_of_two(N) then -x else x + x numerics exact",
        "2:32", "a definition calls `native.power_of_two`",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_told_where_the_rule_calls(name: str, tmp_path: Path) -> None:
    text, place, message = MISTAKES[name]
    _, errors = read_rules(tmp_path, text + "\n")
    assert errors and errors[0].message.startswith(message), str(errors)
    assert errors[0].place and f"{errors[0].place.line}:{errors[0].place.column}" == place, str(errors[0])


def test_a_function_that_fails_is_named_with_what_it_was_given(tmp_path: Path) -> None:
    @native("int", gives="int")
    def third(n: int) -> int:
        """A third."""
        return 1 // (n - n)

    @native("int", gives="int")
    def root(n: int) -> float:
        """The square root."""
        return n**0.5

    for name, message in (("third", "`native.third` failed on "), ("root", "`native.root` is said to give int, but gave ")):
        _, errors = read_rules(tmp_path, f"rule r for x: F[N] -(-x) => x where native.{name}(N) == 1 numerics exact\n")
        assert errors[0].message.startswith(message) and errors[0].place and errors[0].place.line == 2


def test_what_is_registered_is_typed_and_documented() -> None:
    def silent(n: int) -> int:
        return n

    with pytest.raises(CosetError, match="does not say what it is"):
        native("int", gives="int")(silent)
    with pytest.raises(CosetError, match="`tensor` is no kind"):
        native("tensor", gives="int")
    with pytest.raises(CosetError, match="has 1 parameters and takes 2 kinds"):
        native("int", "int", gives="bool")(power_of_two)
    with pytest.raises(CosetError, match="there is another native function"):
        native("int", gives="int")(power_of_two)
    native("int", gives="bool")(power_of_two)  # the same again, as when a module is reloaded


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("int", 3, True),
        ("float", 2.5, "2"),
        ("bool", True, 1),
        ("string", "a", 1),
        ("ints", (1, 2), (1, symbol("S"))),
        ("dtype", F32, "f32"),
    ],
)
def test_arguments_of_another_kind_have_no_value(kind: str, good: object, bad: object) -> None:
    @native(kind, gives="bool")
    def known(value: object) -> bool:
        """True."""
        return True

    function = find_native("native.known")
    assert function is not None and function.compute(good) is True
    with pytest.raises(Undefined):
        function.compute(bad)


def test_a_constant_is_an_array(tmp_path: Path) -> None:
    @native("constant", gives="bool")
    def rising(values: Array) -> bool:
        """True when the numbers rise."""
        return all(a < b for a, b in pairwise(values.ravel().tolist()))

    text = "rule r builtin.constant(value: c) => reshape(builtin.constant(value: c), dims(c)) where native.rising(c) numerics exact\n"
    lines = "test c = [1, 2]: f32\ntest not c = [2, 1]: f32\n"
    rules, errors = read_rules(tmp_path, "use builtin\n" + text + lines)
    assert errors == [], str(errors[0])
    assert verify([tmp_path / "given.rules"])[1] == []
    assert rules.family("r")[0].natives == ("native.rising",)


def test_the_command_line_imports_the_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    head = "from coset.rules.native import native\n"
    source = head + '@native("int", gives="bool")\ndef odd(n):\n    """True when n is odd."""\n    return n % 2 == 1\n'
    (tmp_path / "natives_of_a_test.py").write_text(source)
    path = tmp_path / "given.rules"
    path.write_text(HEADER + "rule r for x: F[N] -(-x) => x where native.odd(N) numerics exact\n")
    assert run(["check", str(path)]) == 2
    assert "there is no native function `native.odd`" in capsys.readouterr().err
    monkeypatch.syspath_prepend(tmp_path)
    assert run(["check", "--native", "natives_of_a_test", str(path)]) == 0
    sys.modules.pop("natives_of_a_test")
    assert run(["check", "--native", "no_such_module", str(path)]) == 2
    assert "there is no module `no_such_module`" in capsys.readouterr().err


def test_a_module_that_cannot_be_imported_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "breaks.py").write_text("def f(:\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert run(["check", "--native", "breaks"]) == 2
    assert "the module `breaks` cannot be imported: SyntaxError" in capsys.readouterr().err
