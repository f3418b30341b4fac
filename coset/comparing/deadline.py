"""Work in a process of its own, to a deadline: what hangs there is killed, and a runtime that dies there does not take us along."""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.connection import Connection
from typing import IO, Any, TypeVar

import coset.ir.sent
from coset.ir.errors import CosetError
from coset.ir.forked import DYING, answer_of, error_of, error_parts, how_it_ended, limit_memory, result_of, settle, start

assert coset.ir.sent  # what goes to the other process keeps its identity there

T = TypeVar("T")
USUAL = 600.0  # s, for a comparison
ASKED_EVERY = 0.5  # s, between looks at the user's interrupt
LONGER = "nothing was written; does a loop of the model end? More time: --check-time-limit S; smaller numbers for free dims: --dim NAME=N"
MOST_LOST = 4  # parts of the work that may end its process, each of which is left out when it begins again
SMALLER = "nothing was written; does the model run by itself, in the memory that there is? --dim NAME=N gives smaller numbers to free dims"


class Unknown(CosetError):
    """What was asked was not found out, neither that it holds nor that it does not. The CLI exits with 3."""


@dataclass(frozen=True)
class Talk:
    """What the work tells who waits for it."""

    _sender: Connection

    def say(self, text: str) -> None:
        """The next stage; or a warning."""
        self._sender.send(("say", text))

    def more(self, seconds: float, otherwise: CosetError) -> None:
        """Something else begins that may take so long; where it does not end, or dies, `otherwise` is what was found out."""
        self._sender.send(("more", (seconds, error_parts(otherwise))))


@dataclass
class _Perils:
    """What may end this process, in its order, and of which it has ended before."""

    sender: Connection
    lost: Mapping[int, str]
    count: int = 0


_perils: list[_Perils] = []  # of this process, where it is one that `within` began


def spared(part: Callable[[], T], what: str) -> T:
    """The result of a `part` of the work that may end its process, and may be left out: then the work begins again, and comes here once
    more. Elsewhere than in the work it is done as any.

    Raises:
        CosetError: as the part does, or the process ended here before.
    """
    if not _perils:
        return part()
    perils = _perils[-1]
    number, perils.count = perils.count, perils.count + 1
    if number in perils.lost:
        raise CosetError(f"the process is gone; {perils.lost[number]}")
    perils.sender.send(("at", (number, what)))
    try:
        return part()
    finally:
        perils.sender.send(("past", None))


def within(
    work: Callable[[Talk], T],
    seconds: float,
    *,
    say: Callable[[str], None] = lambda _: None,
    doing: str = "the comparison",
    each: bool = False,
    memory: int | None = None,
) -> T:
    """The result of `work`, done in a forked process within `seconds`, or `each` stage that it tells within so many. It tells them `say`.
    The process may grow by `memory` bytes. Where a part of the work that is `spared` ends it, the work begins again without that part, a
    few times, in the seconds that are left.

    Raises:
        CosetError: as the work does. Unknown: it did not end in time, or its process died.
    """
    deadline = time.monotonic() + seconds
    lost: dict[int, str] = {}
    while True:
        left = seconds if each else max(0.0, deadline - time.monotonic())
        found = _tried(work, _Limits(seconds, left, each, memory), lost, say, doing)
        if not isinstance(found, _Died):
            result: T = found.value
            return result
        if found.otherwise is not None:
            raise found.otherwise
        if found.at is None or len(lost) == MOST_LOST:
            raise Unknown(f"the process of {doing} is gone; {found.how}", help=SMALLER)
        number, what = found.at
        lost[number] = found.how
        say(f"warning: {what} ended the process, and is left out; {found.how}")


@dataclass(frozen=True)
class _Limits:
    """Seconds as they are told, those that are left, and the bytes by which a process may grow."""

    seconds: float
    left: float
    each: bool
    memory: int | None


def _tried(
    work: Callable[[Talk], Any], limits: _Limits, lost: Mapping[int, str], say: Callable[[str], None], doing: str
) -> _Done | _Died:  # fmt: skip
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    sys.stdout.flush()
    sys.stderr.flush()
    with tempfile.TemporaryFile() as words:
        child = context.Process(target=_child, args=(work, sender, words, os.getpid(), lost, limits.memory))
        start(child)
        sender.close()
        try:
            found = _answer(receiver, limits, say, doing)
            if isinstance(found, _Died):
                child.join(DYING)  # its pipe closes before it is gone
        finally:
            child.kill()
            child.join()
            receiver.close()
        if isinstance(found, _Died):
            words.seek(0)
            return replace(found, how=how_it_ended(child.exitcode or 0, words.read().decode(errors="replace")))
        return found


@dataclass(frozen=True)
class _Done:
    value: Any


@dataclass(frozen=True)
class _Died:
    """What was found out before, the part that the process was in, which may be left out, and how it ended."""

    otherwise: CosetError | None
    at: tuple[int, str] | None
    how: str = ""


def _answer(receiver: Connection, limits: _Limits, say: Callable[[str], None], doing: str) -> _Done | _Died:
    seconds, deadline, stage = limits.seconds, time.monotonic() + limits.left, ""
    otherwise: CosetError | None = None
    at: tuple[int, str] | None = None
    while True:
        left = deadline - time.monotonic()
        if not receiver.poll(min(max(0.0, left), ASKED_EVERY)):
            if left > 0:
                continue
            where = f", in `{stage}`" if stage else ""
            raise otherwise or Unknown(f"{doing} was not done after {seconds:g} s{where}", help=LONGER)
        try:
            kind, value = receiver.recv()
        except (EOFError, OSError):  # OSError: it died in the middle of a message
            return _Died(otherwise, at)
        if kind == "say":
            if not value.startswith("warning:"):
                stage, deadline = value, time.monotonic() + seconds if limits.each else deadline
            say(value)
        elif kind in ("at", "past"):
            at = value
        elif kind == "more":
            more, parts = value
            deadline, otherwise = time.monotonic() + more, error_of(parts)
        else:
            return _Done(result_of(kind, value))


def _child(
    work: Callable[[Talk], Any], sender: Connection, words: IO[bytes], parent: int, lost: Mapping[int, str], memory: int | None
) -> None:  # fmt: skip
    settle(words, parent)
    _perils.append(_Perils(sender, lost))
    if memory is not None:
        limit_memory(memory)
    with suppress(BrokenPipeError):  # nobody listens any more
        sender.send(answer_of(partial(work, Talk(sender))))
