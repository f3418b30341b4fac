"""The search: what it finds, how its limits end it, what history it keeps, and that it says the same twice."""

from __future__ import annotations

import faulthandler
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import coset.dialects
from coset.dialects.hub.stablehlo import splat
from coset.egraph import door, log
from coset.egraph.chains import product
from coset.egraph.limits import Limits
from coset.egraph.request import Phase
from coset.egraph.saturate import Saturation, saturate
from coset.egraph.search import Search
from coset.ir.errors import CosetError
from coset.ir.op import get_op
from coset.ir.term import Term, constant, input_term, make
from coset.ir.types import F32, tensor
from coset.rules.applied import matched, right_sides
from coset.rules.definition import definition_of
from coset.rules.elaborate import rules_of
from coset.rules.equation import Decision
from coset.rules.parser import parse
from coset.rules.rule import Rule, decided

assert coset.dialects

RULES = """
rule transpose_transpose
  "Two transposes are one."
  for x: F[S..], F: any, p, q: permutation(S)
  transpose(transpose(x, p), q) => transpose(x, compose(p, q))
  numerics exact

rule transpose_identity
  "A transpose that moves nothing is nothing."
  for x: F[S..], F: any, p: permutation(S)
  transpose(x, p) => x
  where p == range(rank(x))
  numerics exact

rule matmul_assoc
  "A product of three matrices may be taken in either order."
  for a: F[A.., M, K], b: F[K, N], c: F[N, P], F: float
  (a @ b) @ c <=> a @ (b @ c)
  numerics reassociates

rule matmul_distributes
  "Two products of one matrix are a product of the sum."
  for a: F[A.., M, K], b: F[K, N], c: F[K, N], F: float
  a @ b + a @ c <=> a @ (b + c)
  numerics reassociates
"""


def rules(text: str = RULES) -> tuple[Rule, ...]:
    file, errors = parse(text, "test.rules")
    assert not errors
    found: list[Rule] = []
    for entry in file.rules:
        made, problems = rules_of(entry, {"stablehlo": "stablehlo"})
        assert not problems, problems
        found += made
    return tuple(found)


def search(root: Term, limits: Limits | None = None, text: str = RULES) -> Saturation:
    return saturate([root], [Phase("all", rules(text))], limits or Limits())


def x(*shape: int, name: str = "x") -> Term:
    return input_term(name, tensor(F32, *shape))


def transposed(term: Term, *permutation: int) -> Term:
    return make("stablehlo.transpose", (term,), {"permutation": permutation})


def test_transposes_cancel_and_the_rules_are_in_the_history() -> None:
    found = search(transposed(transposed(x(2, 3, 4), 1, 2, 0), 2, 0, 1))
    root = found.graph.nodes[found.graph.roots[0]]
    assert any(node.op.name == "builtin.input" for node in root)
    assert found.stop == "saturated"
    fired = {found.rules[number].name for number in found.fired}
    assert {"transpose_transpose", "transpose_identity"} <= fired
    collapsed = {found.rules[number].name for number in found.collapses}
    assert collapsed == {"transpose_identity"}


def test_lora_merges_and_what_is_constant_is_known() -> None:
    w, a, b = (constant(np.full(shape, value, np.float32)) for shape, value in (((8, 8), 1), ((8, 2), 2), ((2, 8), 3)))
    root = make("stablehlo.add", (product(x(5, 8), w, batched=False), product(product(x(5, 8), a, batched=False), b, batched=False)))
    found = search(root)
    merged = [
        node for node in found.graph.nodes[found.graph.roots[0]]
        if node.op.name == "stablehlo.dot_general" and node.children[1] in found.graph.constant
    ]  # fmt: skip
    assert len(merged) == 1 and not merged[0].original
    position = found.graph.nodes[found.graph.roots[0]].index(merged[0])
    assert [found.rules[n].family for n in found.origins[found.graph.roots[0], position]] == ["matmul_distributes"]


def test_symbolic_terms_are_not_known() -> None:
    from coset.ir.dims import symbol

    grown = make("stablehlo.broadcast_in_dim", (constant(np.float32(1)),), {"shape": (symbol("B"), 4), "broadcast_dimensions": ()})
    assert search(grown).graph.roots[0] not in search(grown).graph.constant
    assert search(splat(1.0, F32, (2, 4))).graph.roots[0] in search(splat(1.0, F32, (2, 4))).graph.constant


def explosive(matrices: int = 15) -> Term:
    term = x(4, 4)
    for i in range(matrices - 1):
        term = product(term, x(4, 4, name=f"w{i}"), batched=False)
    return term


def test_the_node_limit_ends_the_search_with_what_is_there() -> None:
    found = search(explosive(), Limits(nodes=150))
    assert found.stop == "nodes" and found.enodes <= 150
    assert found.graph.source


def test_the_iteration_limit_is_told() -> None:
    found = search(explosive(), Limits(iterations=1))
    assert (found.stop, found.iterations) == ("iterations", 1)


def test_the_iteration_limit_of_an_earlier_phase_is_told() -> None:
    again = tuple(replace(rule, name=f"{rule.name} again") for rule in rules() if rule.family == "transpose_transpose")
    assert again
    found = saturate([explosive()], [Phase("first", rules()), Phase("last", again)], Limits(iterations=1))
    assert found.stop == "iterations"


def test_a_phase_that_seeks_is_left_out_where_it_can_find_nothing() -> None:
    """Its movement alone would only make more of what is there."""
    trained = [rule for rule in definition_of(get_op("kernel.swiglu")).rules[1] if rule.recognises]
    seeking = Phase("kernel", (*rules(), *trained), frozenset({"kernel.swiglu"}))
    gate, up = x(4, 4, name="gate"), x(4, 4, name="up")
    plain = transposed(transposed(gate, 1, 0), 1, 0)
    gated = make("stablehlo.multiply", (make("stablehlo.multiply", (gate, make("stablehlo.logistic", (gate,)))), up))
    assert saturate([plain], [seeking], Limits()).iterations == 0
    assert saturate([plain], [replace(seeking, seeks=None)], Limits()).iterations > 0
    found = saturate([gated], [seeking], Limits())
    assert any(node.op.name == "kernel.swiglu" for nodes in found.graph.nodes for node in nodes)
    wider = replace(seeking, seeks=frozenset({"kernel.attention"}))
    assert saturate([gated], [wider], Limits()).iterations == 0, "what can be found is at most a part"


def test_the_time_limit_ends_the_search_with_what_is_there() -> None:
    started = time.monotonic()
    found = search(explosive(), Limits(seconds=0.001))
    assert found.stop == "time" and found.graph.roots
    assert time.monotonic() - started < 20


def test_running_out_of_memory_ends_the_search_with_what_is_there() -> None:
    found = search(explosive(150), Limits(seconds=60, nodes=10**8, iterations=10**6, bytes=40 << 20))
    assert found.stop == "memory" and found.graph.source


def test_an_interrupt_ends_the_search_with_what_is_there() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs start with it ignored
    timer = threading.Timer(3.0, os.kill, (os.getpid(), signal.SIGINT))  # late enough for a busy machine to have the child running
    timer.start()
    try:
        found = search(explosive(150), Limits(seconds=60, nodes=10**8, iterations=10**6, bytes=8 << 30))
    finally:
        timer.cancel()
        signal.signal(signal.SIGINT, before)
    assert found.stop == "interrupt" and found.graph.source


def test_deferred_matches_are_not_lost() -> None:
    whole = search(explosive(), Limits(iterations=50))
    assert whole.stop == "saturated"
    n = 15  # matrices: every interval is a class, every split an e-node
    products = sum(node.op.name == "stablehlo.dot_general" for nodes in whole.graph.nodes for node in nodes)
    assert products == (n - 1) * n * (n + 1) // 6


def test_an_unsound_rule_is_named() -> None:
    text = """
rule wrong
  "Not true."
  for x: F[S..], y: F[S..], F: float
  x + y => x * y
  numerics exact
"""
    (rule,) = rules(text)
    real = rule.decide

    def lie(attributes: object, left: object, variables: object) -> object:
        decision = real(attributes, left, variables)  # type: ignore[arg-type]
        assert decision is not None
        return replace(decision, types=(tensor(F32, 9),))

    object.__setattr__(rule, "decide", lie)
    with pytest.raises(CosetError, match=r"rule `wrong` is unsound.*f32\[3\] and f32\[9\]|rule `wrong` is unsound.*f32\[9\] and f32\[3\]"):
        saturate([make("stablehlo.add", (x(3), x(3, name="y")))], [Phase("all", (rule,))], Limits())


def test_two_searches_say_the_same() -> None:
    first, second = (search(explosive(), Limits(nodes=400)) for _ in range(2))
    assert first.graph == second.graph
    assert (first.fired, first.origins, first.collapses) == (second.fired, second.origins, second.collapses)


def test_a_log_decides_each_situation_once(monkeypatch: pytest.MonkeyPatch) -> None:
    turned = [transposed(transposed(transposed(each, 1, 2, 0), 2, 0, 1), 0, 2, 1) for each in (x(2, 3, 4), x(5, 2, 3, name="y"))]
    found = saturate([explosive(6), *turned], [Phase("all", rules())], Limits(), logged=True)
    assert found.decoder is not None
    asked: list[tuple[object, ...]] = []

    def counted(rule: Rule, left: Mapping[int, Term], given: Mapping[str, Term]) -> Decision | None:
        asked.append((rule.name, *((term.op, term.attributes, term.type) for _, term in sorted(left.items()))))
        return decided(rule, left, given)

    monkeypatch.setattr(log, "decided", counted)
    instances = list(found.decoder.instances())
    assert len(asked) == len(set(asked)) < len(instances)
    for each in instances:  # what was decided for another match of the situation is what this one's terms say
        matching = matched(each.rule, [left for left, _ in each.pairs])
        assert matching is not None
        decision = decided(each.rule, *matching)
        assert decision is not None and right_sides(each.rule, decision, matching[1]) == tuple(right for _, right in each.pairs)


def test_a_deep_chain_does_not_recurse() -> None:
    term = x(4)
    for _ in range(6000):
        term = make("stablehlo.tanh", (term,))
    assert search(term).eclasses == 6001


@pytest.mark.parametrize("wrong", [{"seconds": 0}, {"nodes": -1}, {"bytes": 0}, {"iterations": 0}])
def test_limits_are_positive(wrong: dict[str, int]) -> None:
    with pytest.raises(CosetError, match="must be more than 0"):
        Limits(**wrong)


UNROLLING = """
use stablehlo as hlo, chlo
rule distribute for x: F[S..], b, s: const F[S..]  (x + b) * s => x * s + b * s  numerics reassociates
rule merge for x: F[S..], b, c: const F[S..]  (x + b) + c => x + (b + c)  numerics reassociates
rule nothing for x: F[S..]  x + 0 => x  numerics exact except signed_zero
"""


def test_a_class_that_holds_itself_is_not_gone_through_twice() -> None:
    """(x + 0) * s is x * s + 0 * s and x * s: a class with itself as an operand. Adding constants to it must not add them for ever."""
    scale, bias, more = (constant(np.arange(1, 5, dtype=np.float32) * value) for value in (3, 5, 7))
    scaled = make("stablehlo.multiply", (make("stablehlo.add", (x(4), splat(0, F32, (4,)))), scale))
    root = make("stablehlo.add", (make("stablehlo.add", (scaled, bias)), more))
    found = search(root, Limits(iterations=30), UNROLLING)
    assert found.stop == "saturated" and found.enodes < 40


def forked_search_that(do: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> Saturation:
    """A search whose process does something in its second iteration, when a snapshot was sent."""
    real = Search._iterate

    def iterate(self: Search, phase: int, iteration: int) -> str:
        if iteration == 1:
            do()
        return real(self, phase, iteration)

    monkeypatch.setattr(Search, "_iterate", iterate)
    monkeypatch.setattr("coset.egraph.serving.CHECKPOINT_SECONDS", 0.0)
    return search(explosive(), Limits(seconds=60))


def test_a_search_that_is_killed_costs_the_search_only(monkeypatch: pytest.MonkeyPatch) -> None:
    found = forked_search_that(lambda: os.kill(os.getpid(), signal.SIGKILL), monkeypatch)
    assert (found.stop, found.iterations) == ("died", 1) and "SIGKILL" in found.warning
    assert found.enodes > 29 and found.graph.source


def test_a_search_that_panics_costs_the_search_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def panic() -> None:
        raise door.EnginePanic("egglog: index out of bounds")

    found = forked_search_that(panic, monkeypatch)
    assert (found.stop, found.iterations) == ("died", 1) and "index out of bounds" in found.warning


def test_a_search_that_crashes_tells_where(monkeypatch: pytest.MonkeyPatch) -> None:
    found = forked_search_that(faulthandler._sigsegv, monkeypatch)
    assert found.stop == "died" and "SIGSEGV" in found.warning


def test_a_mistake_of_ours_in_the_search_is_none_of_its_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    def mistake() -> None:
        raise door.EngineError("egglog: no table `x`")

    with pytest.raises(door.EngineError, match="no table `x`"):
        forked_search_that(mistake, monkeypatch)


def test_an_iteration_without_end_is_ended_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Search._iterate

    def iterate(self: Search, phase: int, iteration: int) -> str:
        if iteration == 1:
            signal.pause()
        return real(self, phase, iteration)

    monkeypatch.setattr(Search, "_iterate", iterate)
    monkeypatch.setattr("coset.egraph.serving.CHECKPOINT_SECONDS", 0.0)
    found = search(explosive(), Limits(seconds=2))
    assert (found.stop, found.iterations) == ("time", 1) and not found.warning


@pytest.mark.skipif(sys.platform != "linux", reason="children are listed in /proc")
def test_a_search_does_not_outlive_who_asked() -> None:
    """The one who asks is killed while the search goes on: the pipe that only the search still holds is closed soon."""
    reader, writer = os.pipe()
    asking = os.fork()
    if not asking:
        os.close(reader)
        search(explosive(150), Limits(seconds=60, nodes=10**8, iterations=10**6, bytes=8 << 30))
        os._exit(0)
    os.close(writer)
    while not (children := Path(f"/proc/{asking}/task/{asking}/children").read_text().split()):
        time.sleep(0.01)
    os.kill(asking, signal.SIGKILL)
    os.waitpid(asking, 0)
    ended, _, _ = select.select([reader], [], [], 30)
    os.close(reader)
    assert ended, f"{children} goes on"


def test_limits_beyond_what_the_system_counts_are_no_limits() -> None:
    assert search(explosive(4), Limits(bytes=1 << 80)).stop == "saturated"
