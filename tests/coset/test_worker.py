"""The process that answers requests: what it says, what it is lost with, and that a lost one costs its request only; folding beside it."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

import coset
from coset.backends.onnxruntime import LIBRARIES, NotLoaded, Session, node_values
from coset.cli import run
from coset.comparing import fold, runtime_fold, worker
from coset.comparing.deadline import within
from coset.comparing.worker import WORKER, RequestLost
from coset.frontends.onnx.model import import_model


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """A process that was forked before knows no stand-ins, and one with them must not stay."""
    WORKER.end()
    fold.LOST.clear()
    yield
    WORKER.end()
    fold.LOST.clear()


def added(a: int, b: int) -> tuple[int, int]:
    return a + b, os.getpid()


def dying() -> None:
    os.kill(os.getpid(), signal.SIGFPE)


def leaving() -> None:
    os._exit(0)


def refusing() -> None:
    raise NotLoaded("no kernel", help="none")


def failing() -> None:
    raise ZeroDivisionError("of ours")


def ask(work: Any, *given: Any, seconds: float = 60.0) -> Any:
    return WORKER.ask(work, *given, seconds=seconds, doing="the sum")


def test_one_process_answers_all_requests() -> None:
    (three, first), (seven, second) = ask(added, 1, 2), ask(added, 3, 4)
    assert (three, seven) == (3, 7) and first == second != os.getpid()


def test_errors_come_over_and_the_process_goes_on() -> None:
    _, first = ask(added, 1, 2)
    with pytest.raises(NotLoaded, match="no kernel"):
        ask(refusing)
    with pytest.raises(ZeroDivisionError, match="of ours") as fault:
        ask(failing)
    assert any("test_worker" in note for note in fault.value.__notes__)
    assert ask(added, 1, 2) == (3, first)


@pytest.mark.parametrize(("work", "given", "words"), [
    (dying, (), "the process of the sum is gone; it died of SIGFPE"),
    (leaving, (), "it ended with exit code 0"),
    (time.sleep, (60,), "the sum was not done after 0.2 s"),
])  # fmt: skip
def test_a_request_that_is_lost_costs_itself(work: Any, given: tuple[int, ...], words: str) -> None:
    started = time.monotonic()
    with pytest.raises(RequestLost, match=words):
        ask(work, *given, seconds=0.2 if given else 60.0)
    assert time.monotonic() - started < 30
    assert ask(added, 1, 2)[0] == 3


def test_an_interrupted_request_leaves_no_answer_behind() -> None:
    ask(added, 1, 2)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    try:
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            ask(time.sleep, 5)
    finally:
        signal.signal(signal.SIGINT, before)
    assert ask(added, 3, 4)[0] == 7


def test_an_idle_process_goes_and_the_next_request_has_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "IDLE", 0.05)
    _, first = ask(added, 1, 2)
    assert WORKER._running is not None
    WORKER._running.process.join(30)
    assert ask(added, 1, 2)[1] != first


def test_a_process_that_may_be_lost_forks_no_other() -> None:
    found, outer = within(lambda _: (ask(added, 1, 2), os.getpid()), 60.0)
    assert found == (3, outer) and outer != os.getpid()


def test_a_fork_of_somebody_else_has_its_own() -> None:
    _, first = ask(added, 1, 2)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, str(ask(added, 1, 2)[1]).encode())
        WORKER.end()
        os._exit(0)
    os.waitpid(child, 0)
    assert int(os.read(reading, 100)) not in (first, child)
    assert ask(added, 1, 2) == (3, first)


# ------------------------------------------------------------ folding

TEXT = """<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y)
    <float[2] c = {1., 2.}, float[2] d = {4., 9.}>
    { e = Exp(c)  f = Neg(e)  s = Sqrt(d)  a = Add(x, f)  y = Mul(a, s) }"""
BRANCH = """<ir_version: 8, opset_import: ["" : 17]> g (bool on, float[2] x) => (float[2] y)
    <int64 zero = {0}>
    {
        q = If(on) <
            then_branch = t () => (seq(float[2]) u) <float[2] c = {1., 2.}, float[2] d = {4., 9.}>
                { e = Exp(c)  s = Sqrt(d)  a = Add(x, e)  b = Mul(a, s)  u = SequenceConstruct(b) },
            else_branch = f () => (seq(float[2]) v) { v = SequenceConstruct(x) }
        >
        y = SequenceAt(q, zero)
    }"""


def standing_in(monkeypatch: pytest.MonkeyPatch, act: Any, op: str = "Exp") -> None:
    """A runtime that does something else as soon as it computes a constant with this op: no comparison, which has its own name for it."""

    class Other(Session):
        def __init__(self, model: Any, **options: Any) -> None:
            super().__init__(model, **options)
            self.ops = {node.op_type for node in onnx.load_from_string(model).graph.node}

        def run(self, feed: Any) -> dict[str, Any]:
            if op in self.ops:
                act()
            return super().run(feed)

    monkeypatch.setattr(runtime_fold, "Session", Other)


def saved(text: str, tmp_path: Path) -> Path:
    path = tmp_path / "model.onnx"
    onnx.save(onnx.parser.parse_model(text), path)
    return path


@pytest.mark.parametrize("numerics", ["exact", "reassociates"])
@pytest.mark.parametrize(("act", "words"), [(dying, "SIGFPE"), (lambda: time.sleep(60), "not done after 0.5 s")])
def test_a_constant_that_the_runtime_is_lost_with_stays(
    act: Any, words: str, numerics: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    standing_in(monkeypatch, act)
    monkeypatch.setattr("coset.searching.solving.SECONDS", 0.5)
    said: list[str] = []
    found = coset.optimize(saved(TEXT, tmp_path), numerics=numerics, progress=said.append)
    ops = [node.op_type for node in onnx.load(found._draft.path).graph.node]
    assert "Exp" in ops and "Sqrt" not in ops
    assert found.report["check"]["ok"] and found.report["folded"]
    (reason,) = found.report["not_folded"]
    assert words in reason and f"warning: {reason}" in said


def test_a_branch_that_is_not_taken_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """Without a process of its own the command died of a node that nothing runs."""
    standing_in(monkeypatch, dying)
    out = tmp_path / "out.onnx"
    assert run(["optimize", str(saved(BRANCH, tmp_path)), "-o", str(out)]) == 0
    assert "SIGFPE" in capsys.readouterr().err
    feed = {"on": np.array(True), "x": np.float32([1, 2])}
    assert np.allclose(Session(out).run(feed)["y"], [2 * (1 + np.e), 3 * (2 + np.e**2)])


def test_of_many_constants_those_are_lost_that_the_runtime_dies_of(monkeypatch: pytest.MonkeyPatch) -> None:
    many = "".join(f"e{place} = {'Exp' if place % 7 == 6 else 'Sqrt'}(c{place}) " for place in range(40))
    constants = ", ".join(f"float[2] c{place} = {{{place}., 2.}}" for place in range(40))
    results = ", ".join(f"float[2] e{place}" for place in range(40))
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g () => ({results}) <{constants}> {{ {many} }}')
    standing_in(monkeypatch, dying)
    program = import_model(model)
    terms = [term for _, term in program.outputs]
    values = runtime_fold.runtime_values(terms, program.source)
    lost = [terms.index(term) for term in fold.LOST]
    assert sorted(lost) == [6, 13, 20, 27, 34] and len(values) == 35
    roots, count = fold.fold(terms, frozenset(terms), program.source, runtime=runtime_fold.runtime_values)
    assert count == 35 and [terms.index(root) for root in roots if root in terms] == [6, 13, 20, 27, 34]


def test_late_constants_take_their_seconds_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first late one stays; behind it the evaluator has what is left, and the runtime is asked no more."""
    results = ", ".join(f"float[2] e{place}" for place in range(6))
    nodes = " ".join(f"e{place} = Exp(c{place})" for place in range(6))
    constants = ", ".join(f"float[2] c{place} = {{{place}., 2.}}" for place in range(6))
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g () => ({results}) <{constants}> {{ {nodes} }}')
    standing_in(monkeypatch, lambda: time.sleep(60))
    program = import_model(model)
    terms = [term for _, term in program.outputs]
    roots, count = fold.fold(terms, frozenset(terms), program.source, runtime=runtime_fold.runtime_values, seconds=0.3)
    assert count == 5 and roots[0] is terms[0] and terms[0] in fold.LOST


TABLE = """<ir_version: 9, opset_import: ["" : 17, "ai.onnx.ml" : 3]> g (int64[2] x) => (int64[2] y)
    <int64[2] c = {1, 2}, int64[2] d = {5, 7}>
    {
        l = ai.onnx.ml.LabelEncoder<keys_int64s = [1, 2], values_int64s = [3, 4]>(c)
        m = Mul(l, d)
        y = Add(x, m)
    }"""


@pytest.mark.parametrize("certified", [False, True])
def test_a_node_that_is_kept_is_computed_there_and_once(certified: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node without a meaning here, whose kernel ends its process: by the first fold, and by nothing that is behind it."""
    path, log = saved(TABLE, tmp_path), tmp_path / "log"

    def stand_in(model: bytes, feed: Any) -> list[Any]:
        with log.open("a") as file:
            file.write("asked\n")
        return dying() or node_values(model, feed)

    plain = coset.optimize(path)
    assert [node.op_type for node in onnx.load(plain._draft.path).graph.node] == ["Add"] and not plain.report["not_folded"]
    WORKER.end()
    monkeypatch.setattr(fold, "node_values", stand_in)
    found = coset.optimize(path, certificate=certified)
    assert "LabelEncoder" in [node.op_type for node in onnx.load(found._draft.path).graph.node]
    (reason,) = found.report["not_folded"]
    assert "LabelEncoder" in reason and "SIGFPE" in reason
    assert log.read_text() == "asked\n"


def test_a_library_that_comes_later_is_known_there() -> None:
    """The process was forked before `use_library`."""
    ask(added, 1, 2)
    LIBRARIES.append("/nowhere/library.so")
    program = import_model(onnx.parser.parse_model(TABLE))
    try:
        term = next(each for each in fold.topological(program.roots) if each.op.has("foreign"))
        with pytest.raises(Exception, match="nowhere"):
            fold.fallback_for(program.source)(term, [np.int64([1, 2])])
    finally:
        LIBRARIES.remove("/nowhere/library.so")
