"""A process of its own that answers one request after the other: what hangs or dies there costs that request, not the command."""

from __future__ import annotations

import atexit
import multiprocessing
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import IO, Any, TypeVar

import coset.ir.sent
from coset.ir.errors import CosetError
from coset.ir.forked import DYING, answer_of, how_it_ended, is_settled, result_of, settle, start

assert coset.ir.sent  # what goes to the other process keeps its identity there

T = TypeVar("T")
ASKED_EVERY = 0.5  # s, between looks at the user's interrupt
IDLE = 2.0  # s without a request, after which the process ends: it keeps copies of the memory that its parent writes over


class RequestLost(CosetError):
    """A request without an answer: the process died of it, or was late and was killed."""


@dataclass
class Worker:
    """The process. It is forked by the first request, and again behind one that was lost or a while without any."""

    _lock: threading.Lock = field(default_factory=threading.Lock)
    _running: _Running | None = None

    def ask(self, work: Callable[..., T], *given: Any, seconds: float, doing: str) -> T:
        """`work(*given)` of a function of a module, done there. Within a process of ours that may be lost itself it is done at once.

        Raises:
            CosetError: as the work does. Lost: it did not end in `seconds`, or its process died.
        """
        if is_settled():
            return work(*given)
        with self._lock:
            answer = self._asked(work, given, seconds)
            if isinstance(answer, _Gone) and answer.code == 0:  # it had waited long enough just then
                answer = self._asked(work, given, seconds)
        if answer is None:
            raise RequestLost(f"{doing} was not done after {seconds:.3g} s")
        if isinstance(answer, _Gone):
            raise RequestLost(f"the process of {doing} is gone; {how_it_ended(answer.code, answer.words)}")
        result: T = result_of(*answer)
        return result

    def end(self) -> None:
        """End the process, if there is one."""
        running, self._running = self._running, None
        if running is not None:
            running.end()

    def _asked(self, work: Callable[..., Any], given: tuple[Any, ...], seconds: float) -> tuple[str, Any] | _Gone | None:
        """The answer; what became of the process where it is gone; None where it was late."""
        if self._running is not None and self._running.thread != threading.get_ident():
            self.end()  # it ends with the thread that forked it, which may be at any time
        if self._running is None or self._running.owner != os.getpid():  # of a process that forked this one
            self._running = _Running.begun()
        running, answer = self._running, None
        try:
            answer = running.answer(work, given, seconds)
        finally:
            if not isinstance(answer, tuple):  # a later answer to an interrupted request would be taken for the next one's
                self.end()
        return answer


@dataclass(frozen=True)
class _Gone:
    """How the process ended."""

    code: int
    words: str


@dataclass(frozen=True)
class _Running:
    owner: int
    thread: int
    process: BaseProcess
    connection: Connection
    words: IO[bytes]

    @staticmethod
    def begun() -> _Running:
        context = multiprocessing.get_context("fork")
        ours, theirs = context.Pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        words = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the process
        process = context.Process(target=_serve, args=(theirs, words, os.getpid()), daemon=True)
        start(process)
        theirs.close()
        return _Running(os.getpid(), threading.get_ident(), process, ours, words)

    def answer(self, work: Callable[..., Any], given: tuple[Any, ...], seconds: float) -> tuple[str, Any] | _Gone | None:
        deadline = time.monotonic() + seconds
        try:
            self.connection.send((work, given))
            while not self.connection.poll(min(max(0.0, deadline - time.monotonic()), ASKED_EVERY)):
                if time.monotonic() >= deadline:
                    return None
            kind, value = self.connection.recv()
        except (EOFError, OSError):  # OSError: it died in the middle of a message
            self.process.join(DYING)  # its pipe closes before it is gone
            self.words.seek(0)
            return _Gone(self.process.exitcode or 0, self.words.read().decode(errors="replace"))
        return kind, value

    def end(self) -> None:
        if self.owner == os.getpid():
            self.process.kill()
            self.process.join()
        self.connection.close()
        self.words.close()


def _serve(connection: Connection, words: IO[bytes], parent: int) -> None:
    settle(words, parent)
    while connection.poll(IDLE):
        try:
            work, given = connection.recv()
        except EOFError:
            return
        try:
            connection.send(answer_of(partial(work, *given)))
        except BrokenPipeError:
            return


WORKER = Worker()  # for all of this process
atexit.register(WORKER.end)
