"""The process that a search runs in: it is held to its limits, its death costs the search only, and it does not outlive who asked."""

from __future__ import annotations

import gc
import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import IO, Any

import coset.ir.sent
from coset.egraph.door import EngineError, EnginePanic, keep_engines
from coset.egraph.growth import SearchStep
from coset.egraph.search import Search
from coset.egraph.serving import serve
from coset.egraph.snapshot import Snapshot
from coset.ir.errors import CosetError
from coset.ir.forked import DYING, how_it_ended, limit_memory, settle, start
from coset.ir.place import Place

assert coset.ir.sent  # what goes to the other process keeps its identity there

COLLECTED = (100_000, 20, 10)  # objects, and younger collections, between collections: a search of 2,000 e-nodes made 70 without garbage
ASKED_EVERY = 0.1  # s, between looks at the user's interrupt
DECODING = 3e-6  # s for each e-node of a snapshot that is decoded when the search is over (1.2e-6 on the slowest machine that was seen)
UNSET = "error return without exception set"  # CPython's words where it had no memory for the frame of a call
NAMING = 30.0  # s, at least, for looking for the rule that made one value of two types


@dataclass(frozen=True)
class SearchOutcome:
    """The last snapshot, and what ended the child before it was done: "" where nothing did. `warning` says more where it died."""

    snapshot: Snapshot | None
    stop: str = ""
    warning: str = ""


def search_in_child(search: Search, told: Callable[[SearchStep], None], loads: Sequence[str] = ()) -> SearchOutcome:
    """Run `search` in a forked process and end it at its deadline; what it sent last counts. Each iteration is `told`. The modules `loads`
    are loaded meanwhile.

    Raises:
        CosetError: as the search does. EngineError: a command of ours was wrong.
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    sys.stdout.flush()
    sys.stderr.flush()
    with tempfile.TemporaryFile() as words:
        child = context.Process(target=_child, args=(search, sender, search.request.limits.bytes, words, os.getpid()), daemon=True)
        start(child)
        sender.close()
        loading = threading.Thread(target=lambda: [import_module(name) for name in loads], daemon=True)
        loading.start()  # after the fork, which would copy what it holds
        try:
            ended = _listen(search, receiver, told)
            if ended.stop == "died":
                child.join(DYING)  # its pipe closes before it is gone
        finally:
            child.kill()
            child.join()
            receiver.close()
            loading.join()  # before anything forks again
        if ended.stop != "died":
            return ended
        words.seek(0)
        return _death(ended.snapshot, child.exitcode or 0, words.read().decode(errors="replace"))


def _listen(search: Search, receiver: multiprocessing.connection.Connection, told: Callable[[SearchStep], None]) -> SearchOutcome:
    best: Snapshot | None = None
    conflict = ""
    deadline = search.deadline
    with _interrupts() as interrupted:
        while True:
            if interrupted():
                return SearchOutcome(best, "interrupt", "the search was interrupted: what it had found until then is compared and written")
            left = deadline - time.monotonic() - (0.0 if best is None else DECODING * best.enodes)
            if not receiver.poll(min(max(0.0, left), ASKED_EVERY)):
                if left > 0:
                    continue
                if conflict:
                    raise CosetError(
                        f"some rule is unsound: it makes one value of two types, {conflict}",
                        help="which one was not found in time: leave out your rules one after the other",
                    )
                return SearchOutcome(best, "time")
            try:
                kind, value = receiver.recv()
            except (EOFError, OSError):  # OSError: it died in the middle of a message
                return SearchOutcome(best, "died")
            if kind == "step":
                told(value)
                continue
            if kind == "error":
                message, place, help = value
                raise CosetError(message, place=Place(*place) if place else None, help=help)
            if kind == "crash":
                raise EngineError(value)
            if kind == "conflict":
                conflict, deadline = value, max(deadline, time.monotonic() + NAMING)
                continue
            best = value
            if kind == "done":
                return SearchOutcome(best)


def _death(best: Snapshot | None, code: int, words: str) -> SearchOutcome:
    """What the user is told of a child that died: its exit code and its last words say whether of memory."""
    if code in (0, -signal.SIGABRT) and ("memory allocation" in words or "MemoryError" in words):
        return SearchOutcome(best, "memory", "the search ran out of the memory that it may take (--memory-limit)")
    return SearchOutcome(best, "died", f"the process that searched is gone; {how_it_ended(code, words)}")


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


def _child(search: Search, sender: multiprocessing.connection.Connection, limit: int, words: IO[bytes], parent: int) -> None:
    settle(words, parent)
    limit_memory(limit)
    gc.set_threshold(*COLLECTED)
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
        os.write(2, b"MemoryError")
    except EnginePanic as panic:
        os.write(2, str(panic).encode())
    except BrokenPipeError:
        pass  # nobody listens any more
    except BaseException as error:
        if isinstance(error, SystemError) and str(error) == UNSET:
            os.write(2, b"MemoryError")
        else:
            sender.send(("crash", traceback.format_exc()))
