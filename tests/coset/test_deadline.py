"""What runs in a process of its own: its result, its errors, its limit and its death; and what a command says of them."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

import coset
from coset.backends.onnxruntime import Session
from coset.cli import run
from coset.comparing.check import CheckReport
from coset.comparing.deadline import MOST_LOST, Talk, Unknown, spared, within
from coset.comparing.difference import Difference
from coset.comparing.refused import Refused
from coset.ir.errors import CosetError, UnboundDim


def test_the_result_and_what_is_said_come_over() -> None:
    said: list[str] = []

    def work(talk: Talk) -> dict[str, int]:
        talk.say("one")
        talk.say("warning: two")
        return {"process": os.getpid()}

    found = within(work, 60.0, say=said.append)
    assert found["process"] != os.getpid()
    assert said == ["one", "warning: two"]


def raising(error: Exception) -> Any:
    def work(_: Talk) -> None:
        raise error

    return work


def test_errors_come_over_whole() -> None:
    check = CheckReport({"N": 3}, [Difference("normal", "y", 1.0, 1.0, 0.0)], ["normal"])
    with pytest.raises(Refused) as refused:
        within(raising(Refused("it differs", rule="r", check=check, help="leave it out")), 60.0)
    assert (refused.value.message, refused.value.rule, refused.value.help, refused.value.check) == (
        "it differs",
        "r",
        "leave it out",
        check,
    )
    with pytest.raises(UnboundDim) as unbound:
        within(raising(UnboundDim("no number", ("N",))), 60.0)
    assert (str(unbound.value), unbound.value.names) == ("error: no number", ("N",))
    with pytest.raises(ZeroDivisionError) as fault:
        within(raising(ZeroDivisionError("of ours")), 60.0)
    assert "in raising" not in str(fault.value) and any("test_deadline" in note for note in fault.value.__notes__)


def test_what_does_not_end_is_killed() -> None:
    def work(talk: Talk) -> None:
        talk.say("the long stage")
        time.sleep(60)

    started = time.monotonic()
    with pytest.raises(Unknown, match=r"the comparison was not done after 0.2 s, in `the long stage`"):
        within(work, 0.2)
    assert time.monotonic() - started < 30


def test_each_stage_may_have_its_own_seconds() -> None:
    def work(talk: Talk) -> str:
        for stage in range(4):
            time.sleep(0.4)
            talk.say(f"stage {stage}")
        return "done"

    assert within(work, 20.0, each=True) == "done"
    with pytest.raises(Unknown):
        within(work, 0.1, each=True)


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL])
def test_a_death_is_told_in_one_line(number: signal.Signals) -> None:
    def work(_: Talk) -> None:
        os.write(2, b"first\n  the last words\n")
        os.kill(os.getpid(), number)

    with pytest.raises(Unknown, match=number.name) as died:
        within(work, 60.0)
    assert "\n" not in died.value.message
    assert ("the last words" in died.value.message) == (number != signal.SIGKILL)


def test_what_was_found_before_is_told_where_the_rest_does_not_end() -> None:
    def work(talk: Talk) -> None:
        talk.more(0.1, CosetError("it differs"))
        time.sleep(60)

    def death(talk: Talk) -> None:
        talk.more(60.0, CosetError("it differs"))
        os.abort()

    for each in (work, death):
        with pytest.raises(CosetError, match="it differs") as found:
            within(each, 60.0)
        assert not isinstance(found.value, Unknown)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    proto = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]> g (float[2, 3] x, int64 n) => (float[2, 3] y) { a = Add(x, x) y = Relu(a) }"""
    )
    path = tmp_path / "model.onnx"
    onnx.save(proto, path)
    return path


def sleeps(*_: object, **__: object) -> Any:
    time.sleep(60)


def dies(*_: object, **__: object) -> Any:
    os.abort()


@pytest.mark.parametrize(("runs", "said"), [(sleeps, "not done after 0.5 s"), (dies, "died of SIGABRT")])
def test_what_was_not_compared_is_not_handed_out(
    runs: Any, said: str, model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Session, "run", runs)
    output = model.with_name("out.onnx")
    limit = "0.5" if runs is sleeps else "60"
    assert run(["optimize", str(model), "-o", str(output), "--check-time-limit", limit]) == 3
    error = capsys.readouterr().err.partition("error: ")[2]
    assert said in error.splitlines()[0] and "help:" in error
    assert sorted(model.parent.iterdir()) == [model]
    assert run(["diff", str(model), str(model), "--check-time-limit", limit, "--time-limit", "0"]) == 3
    with pytest.raises(Unknown):
        coset.optimize(model, check_seconds=float(limit))


@pytest.mark.parametrize(("runs", "said"), [(sleeps, "not done after 2 s"), (dies, "died of SIGABRT")])
def test_a_package_that_was_not_compared_is_not_written(
    runs: Any, said: str, model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch", reason="the extra `torch` is not installed")
    monkeypatch.setattr("coset.packaging.compared.against_reference", runs)
    asked = ["lower", str(model), "-o", str(model.with_name("package")), "--target", "nvidia-h200", "--code", "torch"]
    assert run([*asked, "--check-time-limit", "2" if runs is sleeps else "60"]) == 3
    error = capsys.readouterr().err.partition("error: ")[2]
    assert said in error.splitlines()[0] and "help:" in error
    assert sorted(model.parent.iterdir()) == [model]


def test_a_proof_that_hangs_is_unknown(model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(Session, "run", sleeps)
    assert run(["prove", str(model), str(model), "--check-time-limit", "0.5", "--time-limit", "0.1"]) == 3
    assert "was not done after" in capsys.readouterr().out


# ------------------------------------------------------------ parts that may be left out


def guarded(parts: list[Any]) -> Any:
    """Work that does each part, and lists what came of them."""

    def work(_: Talk) -> list[str]:
        found = []
        for number, part in enumerate(parts):
            try:
                found.append(spared(part, f"part {number}"))
            except CosetError as error:
                found.append(error.message)
        return found

    return work


def test_a_part_that_ends_the_process_is_left_out() -> None:
    said: list[str] = []
    found = within(guarded([lambda: "one", os.abort, lambda: "three", lambda: os._exit(7), lambda: "five"]), 60.0, say=said.append)
    assert found == ["one", "the process is gone; it died of SIGABRT", "three", "the process is gone; it ended with exit code 7", "five"]
    assert said == [
        "warning: part 1 ended the process, and is left out; it died of SIGABRT",
        "warning: part 3 ended the process, and is left out; it ended with exit code 7",
    ]


def test_errors_of_a_part_are_its_own_and_few_are_left_out() -> None:
    def refused() -> str:
        raise CosetError("it is refused")

    assert within(guarded([refused, lambda: "two"]), 60.0) == ["it is refused", "two"]
    with pytest.raises(Unknown, match="SIGABRT"):
        within(guarded([os.abort] * (MOST_LOST + 1)), 60.0)
    assert spared(lambda: 3, "elsewhere") == 3


def test_a_death_behind_a_part_is_none_of_it() -> None:
    def work(_: Talk) -> None:
        spared(lambda: 1, "a part")
        os.abort()

    with pytest.raises(Unknown, match="SIGABRT"):
        within(work, 60.0)


def test_beginning_again_takes_no_more_seconds() -> None:
    def late() -> None:
        time.sleep(0.4)
        os.abort()

    started = time.monotonic()
    with pytest.raises(Unknown, match=r"not done after 0\.5 s"):
        within(guarded([late, lambda: time.sleep(60)]), 0.5)
    assert time.monotonic() - started < 30


def test_the_process_grows_by_no_more_than_it_may() -> None:
    def work(_: Talk) -> int:
        return np.zeros(1 << 30, np.uint8).size

    with pytest.raises(MemoryError):
        within(work, 60.0, memory=1 << 28)
    assert within(work, 60.0, memory=1 << 32) == 1 << 30


@pytest.mark.parametrize("case", ["huge", "normal"])
def test_inputs_that_end_the_original_are_left_out(
    case: str, model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A runtime that dies of large numbers, say of a division that overflows: the other cases are compared. Of what
    dies of usual numbers nothing is known."""
    plain = Session.run

    def run_or_die(self: Session, feed: Any) -> Any:
        if (case == "huge") == bool(1e6 < np.abs(feed["x"]).max() < np.inf):
            os.abort()
        return plain(self, feed)

    monkeypatch.setattr(Session, "run", run_or_die)
    output = model.with_name("out.onnx")
    assert run(["optimize", str(model), "-o", str(output), "--json"]) == (0 if case == "huge" else 3)
    found = capsys.readouterr()
    if case == "huge":
        check = json.loads(found.out)["check"]
        assert check["ok"] and check["skipped"] == ["huge"] and "normal" in check["inputs"]
        assert "warning: the original on huge inputs ended the process" in found.err
        assert run(["diff", str(model), str(output), "--time-limit", "0"]) == 0


def test_a_result_that_ends_the_process_is_not_handed_out(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where the original does not: that is a difference."""
    plain = Session.told.__func__  # type: ignore[attr-defined]

    def told(kind: Any, given: Any, *rest: Any, **more: Any) -> Session:
        session: Session = plain(kind, given, *rest, **more)
        if str(given) != str(model):
            monkeypatch.setattr(session, "_results", dies)
        return session

    monkeypatch.setattr(Session, "told", classmethod(told))
    output = model.with_name("out.onnx")
    assert run(["optimize", str(model), "-o", str(output)]) == 3
    assert "SIGABRT" in capsys.readouterr().err and not output.exists()
