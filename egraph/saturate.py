"""Saturate: run a search in a child process under its limits and hand back the e-graph, whatever ended it."""

from __future__ import annotations

import faulthandler
import gc
import multiprocessing
import multiprocessing.connection
import os
import resource
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from coset.egraph.door import EngineError, keep_engines
from coset.egraph.growth import SILENT, Step, Watch
from coset.egraph.limits import Limits
from coset.egraph.log import Decoder
from coset.egraph.saturated import ENode, Saturated
from coset.egraph.search import Phase, Request, Search, serve
from coset.egraph.snapshot import Snapshot
from coset.ir.errors import CosetError, Place
from coset.ir.op import get_op
from coset.ir.term import Term, topological
from coset.rules.rule import Rule

ASKED_EVERY = 0.1  # s, between looks at the user's interrupt
GRACE_SECONDS = 2.0  # how long the child may overrun its own deadline before it is ended from outside


@dataclass(frozen=True)
class Saturation:
    """A searched e-graph with its history: why it `stop`ped (saturated, iterations, nodes, time, memory, interrupt), how
    often each rule was applied, which rules made which new e-nodes, and where rules made values one without a new node.
    `source` says where the terms of the input are: the class, and the index of the e-node there."""

    graph: Saturated
    rules: tuple[Rule, ...]
    stop: str
    iterations: int
    enodes: int
    eclasses: int
    seconds: float
    fired: dict[int, int]
    origins: dict[tuple[int, int], list[int]]
    collapses: dict[int, list[int]]
    source: Mapping[Term, tuple[int, int]]
    decoder: Decoder | None = None
    growth: tuple[Step, ...] = ()


def saturate(
    roots: Sequence[Term], phases: Sequence[Phase], limits: Limits, *,
    equalities: Sequence[tuple[Term, Term]] = (), logged: bool = False, watch: Watch = SILENT,
) -> Saturation:  # fmt: skip
    """Search the programs that equal `roots` under the rules of `phases`.

    Raises:
        CosetError: a rule is unsound in a way that types show; the rule is named.
    """
    started = time.monotonic()
    search = Search(Request(tuple(roots), tuple(equalities), tuple(phases), limits, logged, watch.counted))
    steps: list[Step] = []

    watch.named(tuple(encoded.rule.name for encoded in search.rules))

    def told(step: Step) -> None:
        steps.append(step)
        watch.step(step)

    snapshot, stop = _in_child(search, limits, told) if hasattr(os, "fork") else _in_process(search, told)
    rules = tuple(encoded.rule for encoded in search.rules)
    if snapshot is None:
        return _untouched(search, rules, stop, time.monotonic() - started)
    found = _decode(search, snapshot, rules, stop or snapshot.stop, time.monotonic() - started)
    return replace(found, growth=tuple(steps))


def _in_process(search: Search, told: Callable[[Step], None]) -> tuple[Snapshot | None, str]:
    """Where processes cannot fork: the same search, without a memory limit."""
    messages: list[tuple[str, Any]] = []
    serve(search, lambda message: told(message[1]) if message[0] == "step" else messages.append(message))
    kind, value = messages[-1]
    if kind == "error":
        raise value
    return value, ""


def _in_child(search: Search, limits: Limits, told: Callable[[Step], None]) -> tuple[Snapshot | None, str]:
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    sys.stdout.flush()
    sys.stderr.flush()
    child = context.Process(target=_child, args=(search, sender, limits.bytes), daemon=True)
    child.start()
    sender.close()
    deadline = time.monotonic() + limits.seconds + GRACE_SECONDS
    best: Snapshot | None = None
    with _interrupts() as interrupted:
        try:
            while True:
                if interrupted():
                    return best, "interrupt"
                left = deadline - time.monotonic()
                if not receiver.poll(min(max(0.0, left), ASKED_EVERY)):
                    if left <= 0:
                        return best, "time"
                    continue
                try:
                    kind, value = receiver.recv()
                except EOFError:
                    return best, "memory"  # the child died: the memory limit, or the system's own
                if kind == "step":
                    told(value)
                    continue
                if kind == "error":
                    message, place, help = value
                    raise CosetError(message, place=Place(*place) if place else None, help=help)
                if kind == "crash":
                    raise EngineError(value)
                best = value
                if kind == "done":
                    return best, ""
        finally:
            child.kill()
            child.join()
            receiver.close()


@contextmanager
def _interrupts() -> Iterator[Callable[[], bool]]:
    """Whether the user has interrupted since. A KeyboardInterrupt could be lost in a callback (of the garbage collector, of a weak
    reference) while a large snapshot is read; and in other threads than the main one Python tells nobody."""
    seen: list[bool] = []
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield lambda: False
        return
    signal.signal(signal.SIGINT, lambda *_: seen.append(True))
    try:
        yield lambda: bool(seen)
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _child(search: Search, sender: multiprocessing.connection.Connection, limit: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what an interrupt means
    faulthandler.disable()
    with Path(os.devnull).open("w") as silence:  # the allocator's last words are no message to the user
        os.dup2(silence.fileno(), 2)
    _limit_memory(limit)
    gc.freeze()  # what the parent made is not looked through here, nor its pages copied
    gc.enable()
    keep_engines()

    def send(message: tuple[str, Any]) -> None:
        kind, value = message
        if kind == "error":
            place = value.place
            value = (value.message, place and (place.file, place.line, place.column, place.source, place.width), value.help)
        sender.send((kind, value))

    try:
        serve(search, send)
    except MemoryError:
        return
    except BaseException:
        sender.send(("crash", traceback.format_exc()))


def _limit_memory(limit: int) -> None:
    """Let this process grow by `limit` bytes of address space; where the system does not say how large it is, it stays unlimited."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        with Path("/proc/self/statm").open() as file:
            pages = int(file.read().split()[0])
    except OSError:
        return
    resource.setrlimit(resource.RLIMIT_AS, (pages * os.sysconf("SC_PAGE_SIZE") + limit, resource.RLIM_INFINITY))


def _decode(search: Search, snapshot: Snapshot, rules: tuple[Rule, ...], stop: str, seconds: float) -> Saturation:
    shared_types, shared_payloads = search.shared
    types = search.tables.types.values[:shared_types] + snapshot.new_types
    payloads = search.tables.payloads.values[:shared_payloads] + snapshot.new_payloads
    ops = {name: get_op(op) for name, (op, _) in snapshot.constructors.items()}
    given = {term: number for term in topological(search.request.roots) if (number := search.numbers[term]) in snapshot.source}
    original = {snapshot.source[number] for number in given.values()}  # not the equal terms that were entered
    classes = []
    for number, nodes in enumerate(snapshot.nodes):
        entries = []
        for position, (name, operands, payload) in enumerate(nodes):
            attributes, regions = payloads[payload]
            entries.append(ENode(ops[name], operands, attributes, regions, (number, position) in original))
        classes.append(tuple(entries))
    for number, found in enumerate(snapshot.types):
        assert len(found) == 1, f"class {number} has {len(found)} types"
    graph = Saturated(
        [types[found[0]] for found in snapshot.types], classes, tuple(snapshot.roots), frozenset(snapshot.known),
        tuple(snapshot.source[number] for number in given.values()),
    )  # fmt: skip
    source = {term: snapshot.source[number] for term, number in given.items()}
    constructors = {name: (ops[name], arity) for name, (_, arity) in snapshot.constructors.items()}
    decoder = None if snapshot.log is None else Decoder(snapshot.log, rules, payloads, constructors)
    return Saturation(
        graph, rules, stop, snapshot.iterations, snapshot.enodes, snapshot.eclasses, seconds,
        snapshot.fired, snapshot.origins, snapshot.collapses, source, decoder,
    )  # fmt: skip


def _untouched(search: Search, rules: tuple[Rule, ...], stop: str, seconds: float) -> Saturation:
    """The input as an e-graph of its own: what is left when a limit came before the first checkpoint."""
    order = list(topological(search.request.roots))
    number = {term: i for i, term in enumerate(order)}
    nodes: list[tuple[ENode, ...]] = [
        (ENode(t.op, tuple(number[o] for o in t.operands), t.attributes, t.regions, original=True),) for t in order
    ]
    graph = Saturated(
        [term.type for term in order],
        nodes,
        tuple(number[r] for r in search.request.roots),
        frozenset(),
        tuple((i, 0) for i in range(len(order))),
    )
    source = {term: (i, 0) for i, term in enumerate(order)}
    return Saturation(graph, rules, stop, 0, len(order), len(order), seconds, {}, {}, {}, source)
