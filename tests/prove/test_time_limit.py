"""No rule is looked at for longer than its time limit, whatever it does with it; what is not done by then is unknown, and no grade."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import z3

from coset.cli import run
from coset.commands.rules import check as check_command
from coset.ir.errors import CosetError
from coset.ir.judging import Ended, judged
from coset.prove import check as prover
from coset.prove import obligations
from coset.prove.check import Effort, check_rules, verify
from coset.prove.deadline import CallLimit, Late, Time, TooManyCalls, left, look, until
from coset.prove.entry_tests import entry_tests
from coset.prove.shown import shown_of
from coset.prove.verdict import weaker, write_lock
from coset.rules.library import load
from coset.rules.lock import NAME, Locked, read_lock, save_lock, text_hash
from coset.rules.rule import Rule

ODD = "rule tanh_odd for x: F[S..] tanh(-x) => -tanh(x) numerics exact\n"
SLOW = """rule broadcast_without_some_ones
  for x: T[S..], d: ints
  bcast(x, A, axes: d) => bcast(reshape(x, drop(S, ones)), A, axes: drop(d, ones))
  with ones = [i for i in range(rank(x)) if (if static(S[i]) then S[i] == 1 else false)]
  where len(ones) > 0
  numerics exact
"""
LOOPS = """rule loop_entered_once
  for x: i32[]
  hlo.while(x, condition: lambda s: compare(s, scalar(10, i32), "LT"), body: lambda s: s + scalar(1, i32)) => scalar(10, i32)
  numerics exact
rule loop_to_ten
  for x: i32[]
  hlo.while(x, condition: lambda s: compare(s, scalar(10, i32), "LT"), body: lambda s: s + scalar(1, i32)) => maximum(x, scalar(10, i32))
  numerics exact
"""
FALSE = "rule tanh_even for x: F[S..] tanh(-x) => tanh(x) numerics exact\n"


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str], Path]:
    """Writes a file of rules."""

    def write(text: str) -> Path:
        path = tmp_path / "mine.rules"
        path.write_text(f"use stablehlo as hlo, chlo\n{text}")
        return path

    return write


def rules_of(path: Path) -> list[Rule]:
    return [rule for rule in load([path]).rules if rule.place.file == str(path)]


def test_a_loop_over_a_drawn_number_ends(written: Callable[[str], Path]) -> None:
    """From the least number of 32 bits to ten it has 2^31 turns: such a draw is passed over, and conditions that are tried out end, too."""
    false, true = check_rules(rules_of(written(LOOPS)), effort=Effort(seconds=8.0))
    assert false.assurance == "refuted" and true.assurance in ("tested", "unknown")
    calls = CallLimit(2)
    calls(None, ())
    with until(Time.of(-1.0)), pytest.raises(Late):
        calls(None, ())
    calls(None, ())
    with pytest.raises(TooManyCalls):
        calls(None, ())


def test_what_is_not_proved_in_time_is_unknown_with_exit_code_3(written: Callable[[str], Path], capsys: pytest.CaptureFixture[str]) -> None:
    """Its instances, which all agree, are more than there is time for: drawn by half a second, and proved by none."""
    path = written(SLOW + ODD)
    assert run(["check", str(path), "--time-limit", "1.5", "--json"]) == 3
    said = capsys.readouterr()
    found = {rule["name"]: rule for rule in json.loads(said.out)["rules"]}
    slow = found["broadcast_without_some_ones"]
    assert slow["assurance"] == "unknown" and "the time limit of 1.5 s was over while it was" in slow["method"]
    assert found["tanh_odd"]["assurance"] == "proved"
    assert json.loads(said.out)["ratios"]["unknown"] == 0.5
    assert "unknown: `broadcast_without_some_ones`" in said.err and "--time-limit" in said.err
    assert set(read_lock(path.parent / NAME)) == {"tanh_odd"}


def test_a_table_says_unknown(written: Callable[[str], Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", str(written(ODD)), "--time-limit", "0.000001"]) == 3
    assert "100% unknown" in capsys.readouterr().out


def test_refuted_wins_over_unknown(written: Callable[[str], Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", str(written(SLOW + FALSE)), "--time-limit", "1.5", "--json"]) == 1
    words = [rule["assurance"] for rule in json.loads(capsys.readouterr().out)["rules"]]
    assert words == ["unknown", "refuted"]


def test_the_command_and_the_function_have_one_limit() -> None:
    """The command does not load the prover to say it."""
    (option,) = (each for each in check_command.params if each.name == "seconds")
    assert option.default == prover.LIMIT


def test_a_limit_is_more_than_nothing(written: Callable[[str], Path]) -> None:
    assert run(["check", str(written(ODD)), "--time-limit", "0"]) == 2


def test_unknown_takes_nothing_from_the_lock_file(written: Callable[[str], Path]) -> None:
    """What was shown before of the same text stays; it is not called weaker, for nothing was found."""
    path = written(ODD)
    (rule,) = rules_of(path)
    line = Locked(text_hash(rule.text), "bounded", "before")
    save_lock(path.parent / NAME, {"tanh_odd": line})
    verdicts, errors = verify([path], anew=True, seconds=1e-6)
    assert [verdict.assurance for verdict in verdicts] == ["unknown"] and not errors
    assert weaker(verdicts) == []
    write_lock(verdicts)
    assert read_lock(path.parent / NAME) == {"tanh_odd": line}


def test_a_judge_that_does_not_end_is_ended(written: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """One that never looks at its clock: the others are judged all the same."""
    path = written(ODD + SLOW)
    honest = entry_tests

    def endless(rules: list[Rule], seed: int) -> object:
        while rules[0].family == "broadcast_without_some_ones":
            pass
        return honest(rules, seed)

    monkeypatch.setattr(prover, "entry_tests", endless)
    monkeypatch.setattr("coset.ir.judging.SLACK", 0)
    verdicts = {verdict.name: verdict for verdict in verify([path], seconds=1.0)[0]}
    assert verdicts["broadcast_without_some_ones"].assurance == "unknown" and verdicts["broadcast_without_some_ones"].method.endswith(
        "it was ended"
    )
    assert verdicts["tanh_odd"].assurance != "unknown"


def test_a_judge_that_dies_leaves_an_unknown(written: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prover, "entry_tests", lambda *_: signal.raise_signal(signal.SIGTERM))
    (verdict,) = verify([written(ODD)])[0]
    assert (verdict.assurance, verdict.method) == ("unknown", "its process ended with SIGTERM")


def test_what_a_judge_raises_is_raised_here() -> None:
    def refuse(name: str) -> str:
        if name == "a mistake":
            raise CosetError("it is wrong", help="mend it")
        raise ValueError("a bug")

    def never(name: str, error: Ended) -> str:
        raise AssertionError(name)

    with pytest.raises(CosetError, match="it is wrong") as caught:
        judged(["a mistake"], refuse, never, seconds=None, workers=1)
    assert caught.value.help == "mend it"
    with pytest.raises(RuntimeError, match="ValueError: a bug"):
        judged(["a bug"], refuse, never, seconds=5.0, workers=2)
    assert judged([str(number) for number in range(9)], lambda name: name * 2, never, seconds=5.0, workers=3)["7"] == "77"


def test_a_time_inside_of_another_does_not_outlast_it() -> None:
    assert left() is None
    with until(Time.of(-1.0)), until(Time.of(60.0)):
        assert left() == 0.0
        with pytest.raises(Late):
            look()
    with until(Time.of(60.0)), until(Time.of(30.0)):
        rest = left()
        assert rest is not None and rest <= 30.0
    look()


def test_what_a_clock_ended_is_no_bound(written: Callable[[str], Path]) -> None:
    """It was `bounded` once, for as many instances as the machine was fast."""
    rules = rules_of(written(SLOW))
    shown, how = shown_of(rules, seconds=0.5)
    assert shown == "" and "more instances than there was time for" in how


def test_an_answer_that_z3_has_no_time_for_ends_the_proof() -> None:
    """Neither sat nor unsat: `Late` where the time around it is over, and no more than not shown where only its steps are."""
    x, y, z = z3.FPs("x y z", z3.Float64())
    nearest = z3.RNE()
    hard = z3.fpAdd(nearest, x, z3.fpMul(nearest, y, z)) != z3.fpAdd(nearest, z3.fpMul(nearest, z, y), z3.fpDiv(nearest, x, y))
    solver = z3.Solver()
    solver.add(hard)
    assert not obligations.unsatisfiable(solver, "hard", steps=1000)
    solver = z3.Solver()
    solver.add(hard, z3.fpMul(nearest, x, y) == z3.fpDiv(nearest, z, x), z3.fpGT(x, y))
    with until(Time.of(0.2)), pytest.raises(Late):
        obligations.unsatisfiable(solver, "hard", steps=1 << 30)


def test_what_else_the_machine_does_shortens_no_question(monkeypatch: pytest.MonkeyPatch) -> None:
    """A processor that is another's all the time: the clock goes on, the time that is left does not."""
    monkeypatch.setattr("coset.prove.deadline.process_time", lambda: 0.0)
    x, y, z = (z3.FP(name, z3.Float32()) for name in "xyz")
    nearest = z3.RNE()
    solver = z3.Solver()
    solver.add(z3.fpGT(z3.fpMul(nearest, x, y), z), z3.fpLT(z3.fpMul(nearest, y, x), z))
    begun = time.perf_counter()
    with until(Time.of(0.001)):
        assert obligations.unsatisfiable(solver, "products in another order differ", steps=1 << 30)
    assert time.perf_counter() - begun > 0.001, "it takes more than that of the clock"


def test_what_was_asked_before_changes_no_answer() -> None:
    """Z3 took twenty times the steps for the same question after others in its context, which a forked process has from its parent."""

    def shown() -> bool:
        x, y = z3.FPs("x y", z3.Float64())
        solver, nearest = z3.Solver(), z3.RNE()
        left, right = z3.fpAbs(z3.fpMul(nearest, x, y)), z3.fpMul(nearest, z3.fpAbs(x), z3.fpAbs(y))
        solver.add(z3.Not(z3.fpToIEEEBV(left) == z3.fpToIEEEBV(right)), z3.Not(z3.fpIsNaN(left)))
        return obligations.unsatisfiable(solver, "the absolute value of a product", steps=1_500_000)

    answers = [shown()]
    for number in range(12):
        x, y = z3.FPs(f"x{number} y{number}", z3.Float16())
        solver = z3.Solver()
        solver.add(z3.fpMul(z3.RNE(), x, y) != z3.fpAdd(z3.RNE(), x, y))
        solver.set("rlimit", 300_000)
        solver.check()
        answers.append(shown())
    assert answers == [True] * 13


def test_without_a_limit_nothing_is_unknown(written: Callable[[str], Path]) -> None:
    (verdict,) = check_rules(rules_of(written(ODD)), effort=Effort(proofs=False))
    assert verdict.assurance == "tested" and verdict.seconds < time.process_time() + 60


# ---------------------------------------------------------------- questions as SMT-LIB


def test_each_question_is_a_file_with_its_rule_and_its_answer(written: Callable[[str], Path], tmp_path: Path) -> None:
    path = written(
        "rule product_of_abs for x: F[S..], y: F[S..], F: float abs(x * y) => abs(x) * abs(y) numerics exact\n"
        "rule square_not_negative for x: F[S..], F: float abs(x * x) => x * x numerics reassociates\n"
    )
    for folder in ("one", "other"):
        assert run(["check", str(path), "--smt", str(tmp_path / folder)]) == 0  # the second time although all is locked
    files = sorted((tmp_path / "one").iterdir())
    names = [file.name for file in files]
    assert {name.rpartition("-")[0] for name in names} == {"product_of_abs", "square_not_negative"}
    assert "product_of_abs-0000.smt2" in names and all(name.endswith(".smt2") for name in names)
    assert names == sorted(file.name for file in (tmp_path / "other").iterdir())
    for file in files:
        text = file.read_text()
        assert text == (tmp_path / "other" / file.name).read_text()
        lines = text.splitlines()
        assert lines[0].startswith(f"; rule {file.name.rpartition('-')[0]}") and "\n; instance: %" in text and "\n; asserted: " in text
        assert "(set-logic ALL)" in lines and lines[-1] == "(check-sat)"
        (status,) = (line for line in lines if line.startswith("(set-info :status "))
        solver = z3.Solver()
        solver.from_string(text)
        assert str(solver.check()) == status.removeprefix("(set-info :status ").rstrip(")") == "unsat"


def test_nothing_is_written_where_nobody_asked(tmp_path: Path) -> None:
    def asked() -> bool:
        solver = z3.Solver()
        solver.add(z3.Real("x") > 0)
        return obligations.unsatisfiable(solver, "x is\n positive", steps=1000)

    with obligations.recording(tmp_path / "smt"):
        obligations.entry("a/b c")
        assert not asked()
        assert not asked()  # which is no other question
    assert not asked()
    (file,) = (tmp_path / "smt").iterdir()
    assert file.name == "a_b_c-0000.smt2" and "; asserted: x is positive\n" in file.read_text() and "status sat" in file.read_text()


@pytest.mark.parametrize(("entries", "processors", "expected"), [(3, 2, 2), (1, 2, 1), (2, 8, 2), (9, 8, 8)])
def test_few_entries_are_judged_in_as_many_processes(entries: int, processors: int, expected: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries that have processes of their own use all processors; others do where that is worth the start of one."""
    monkeypatch.setattr("coset.prove.check.os.sched_getaffinity", lambda _: range(processors))
    assert prover._workers(entries, Effort(apart=True)) == expected
    assert prover._workers(entries, Effort(apart=False)) == 0
