"""One op attacked: nodes of it are drawn, computed by our definition and by each runtime, and compared."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import coset.rules.definition as definition
from benchmarks.definitions import composite_attention, composite_windows, contrib, moves, quantized, windows
from benchmarks.definitions.composite import OwnInstance
from benchmarks.definitions.elementwise import DRAWS
from benchmarks.definitions.hub import HUB, TermInstance
from benchmarks.definitions.instance import Draw, Instance, kinds_of
from benchmarks.definitions.judging import Difference, Results
from benchmarks.definitions.known import known
from benchmarks.definitions.runtimes import NUMPY, ONNX_RUNTIME, REFERENCE, XLA, Answer, Worker
from coset.dialects.onnx import sugar as onnx_sugar
from coset.frontends.onnx.model import import_model
from coset.ir.errors import CosetError
from coset.ir.op import Array
from coset.ir.term import Term
from coset.prove.values import GRID, KINDS, LARGE, NONFINITE, RANGE

assert composite_attention and composite_windows and contrib and moves and quantized and windows  # each enters its ops
ALL_KINDS = (KINDS[0], KINDS[1], NONFINITE, KINDS[2], LARGE, RANGE, GRID)
MOST_SHOWN = 12  # differences of one op that are kept with their inputs
MOST_NUMBERS = 24  # elements of an operand that a difference shows


@dataclass(frozen=True)
class Shown:
    """A difference with what it takes to see it again. `row`: where docs/undefined.md speaks of it, or nothing."""

    runtime: str
    kind: str
    instance: str
    inputs: str
    numbers: str
    index: tuple[int, ...]
    ours: str
    theirs: str
    row: str


@dataclass
class Attack:
    """What attacking an op gave."""

    op: str
    key: str = ""
    seed: int = 0
    instances: int = 0
    comparisons: Counter[str] = field(default_factory=Counter)  # by runtime
    entries: Counter[str] = field(default_factory=Counter)  # instances that opened each entry of the definitions
    silent: Counter[str] = field(default_factory=Counter)  # why a runtime, or we, gave no result
    rows: Counter[str] = field(default_factory=Counter)  # differences that a page speaks of
    unknown: Counter[str] = field(default_factory=Counter)  # those of which none does
    shown: list[Shown] = field(default_factory=list)
    seconds: float = 0.0


def ops() -> list[str]:
    """The ops that are drawn."""
    return sorted([*DRAWS, *HUB])


def attack(op: str, runtimes: Mapping[str, Worker], *, seed: int = 1, instances: int = 40) -> Attack:
    """The comparison of so many drawn nodes of an op, on inputs of every kind."""
    started = time.process_time()
    found = Attack(op, seed=seed)
    own = f"{seed}:{op}"
    draw, generator = Draw(own), np.random.default_rng(list(hashlib.blake2b(own.encode(), digest_size=16).digest()))
    drawer = DRAWS.get(op) or HUB[op]
    for _ in range(instances):
        instance = drawer(draw, op)
        found.instances += 1
        kinds = kinds_of(instance, ALL_KINDS)
        arrays = [instance.arrays(kind, generator) for kind in kinds]
        roots, data = _prepared(found, instance, arrays[0])
        if not roots:
            continue
        feeds = [instance.feed(each) for each in arrays]
        answers = _answers(instance, data, feeds, runtimes)
        for place, kind in enumerate(kinds):
            _compare(found, instance, kind, roots, feeds[place], {name: _at(answer, place) for name, answer in answers.items()})
    found.seconds = round(time.process_time() - started, 2)
    return found


def _answers(instance: Instance, data: bytes, feeds: Sequence[Mapping[str, Array]], runtimes: Mapping[str, Worker]) -> dict[str, Answer]:
    """What computes the instance besides us: a reference of its own, XLA, or what runs ONNX."""
    if isinstance(instance, OwnInstance):
        return {NUMPY: [instance.own(feed) for feed in feeds]}
    names = (XLA,) if isinstance(instance, TermInstance) else (ONNX_RUNTIME, REFERENCE)
    if instance.domain == "com.microsoft":
        names = (ONNX_RUNTIME,)
    return {name: runtimes[name].ask(data, feeds) for name in names if name in runtimes}


def _at(answer: Answer, place: int) -> Answer:
    return answer if isinstance(answer, str) else answer[place]


def _prepared(found: Attack, instance: Instance, arrays: Sequence[Any]) -> tuple[Sequence[Term], bytes]:
    """What we evaluate, and the program for the runtimes; no term where we refuse the instance."""
    try:
        with traced(found.entries):
            if isinstance(instance, TermInstance):
                return instance.roots(), b"" if isinstance(instance, OwnInstance) else instance.text().encode()
            model = instance.model(arrays)
            program = import_model(model)
    except CosetError as error:
        found.silent[f"ours: {error.message[:160]}"] += 1
        return (), b""
    if any(term.op.name == "builtin.opaque" for term in program.terms()):
        found.silent["ours: the node stays opaque"] += 1
        return (), b""
    return program.roots, model.SerializeToString()


def _compare(
    found: Attack, instance: Instance, kind: str, roots: Sequence[Term], feed: Mapping[str, Array], answers: Mapping[str, Answer]
) -> None:
    try:
        with traced(found.entries if not found.comparisons or kind == KINDS[0] else Counter()):
            ours = Results.of(roots, feed)
    except CosetError as error:
        found.silent[f"ours: {error.message[:160]}"] += 1
        return
    judged = {}
    for name, answer in answers.items():
        if isinstance(answer, str):
            found.silent[f"{name}: {answer.removeprefix('CosetError: error: ')[:160]}"] += 1
            continue
        found.comparisons[name] += 1
        judged[name] = ours.differences(answer, instance.most_ulps)
    for name, differences in judged.items():
        agrees = any(not others for other, others in judged.items() if other != name)
        for difference in differences:
            _enter(found, instance, kind, name, difference, feed, agrees=agrees)


def _enter(
    found: Attack, instance: Instance, kind: str, runtime: str, difference: Difference, feed: Mapping[str, Array], *, agrees: bool
) -> None:
    row = known(found.op, instance, kind, runtime, difference, agrees=agrees)
    counted = found.rows if row else found.unknown
    counted[row or f"{runtime}: {difference.kind} ({kind}{'' if agrees else ', no other agrees'})"] += 1
    if (row and sum(each.row == row for each in found.shown) >= 1) or len(found.shown) >= MOST_SHOWN:
        return
    with np.printoptions(threshold=MOST_NUMBERS, precision=9):
        inputs = "; ".join(f"{name} = {np.array2string(array, separator=', ')}" for name, array in feed.items())
    found.shown.append(
        Shown(
            runtime,
            difference.kind,
            str(instance),
            kind,
            " ".join(inputs.split())[:600],
            difference.index,
            difference.ours,
            difference.theirs,
            row,
        )
    )


@contextmanager
def traced(entries: Counter[str]) -> Iterator[None]:
    """Counts the entries of definitions that are opened inside."""
    before = definition.expansion

    def counting(name: str, operands: Sequence[Any], attributes: Any) -> Any:
        entries[name] += 1
        return before(name, operands, attributes)

    definition.expansion = onnx_sugar.expansion = counting  # type: ignore[attr-defined]
    try:
        yield
    finally:
        definition.expansion = onnx_sugar.expansion = before  # type: ignore[attr-defined]


RUNTIMES = (ONNX_RUNTIME, REFERENCE, XLA)
