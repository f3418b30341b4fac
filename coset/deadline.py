"""Work in a process of its own, to a deadline: what hangs there is killed, and a runtime that dies there does not take us along."""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import IO, Any, TypeVar

import coset.ir.sent
from coset.egraph.child import DYING, how_it_ended, settle
from coset.ir.errors import CosetError

assert coset.ir.sent  # what goes to the other process keeps its identity there

T = TypeVar("T")
USUAL = 600.0  # s, for a comparison
ASKED_EVERY = 0.5  # s, between looks at the user's interrupt
LONGER = "nothing was written; does a loop of the model end? More time: --check-time-limit S; smaller numbers for free dims: --dim NAME=N"
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


def within(
    work: Callable[[Talk], T],
    seconds: float,
    *,
    say: Callable[[str], None] = lambda _: None,
    doing: str = "the comparison",
    each: bool = False,
) -> T:
    """The result of `work`, done in a forked process within `seconds`, or `each` stage that it tells within so many. It tells them `say`.

    Raises:
        CosetError: as the work does. Unknown: it did not end in time, or its process died.
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    sys.stdout.flush()
    sys.stderr.flush()
    with tempfile.TemporaryFile() as words:
        child = context.Process(target=_child, args=(work, sender, words, os.getpid()))
        child.start()
        sender.close()
        try:
            found = _answer(receiver, seconds, say, doing, each)
            if not isinstance(found, _Died):
                result: T = found.value
                return result
            child.join(DYING)  # its pipe closes before it is gone
        finally:
            child.kill()
            child.join()
            receiver.close()
        words.seek(0)
        raise found.otherwise or Unknown(
            f"the process of {doing} is gone; {how_it_ended(child.exitcode or 0, words.read().decode(errors='replace'))}", help=SMALLER
        )


@dataclass(frozen=True)
class _Done:
    value: Any


@dataclass(frozen=True)
class _Died:
    otherwise: CosetError | None


def _answer(receiver: Connection, seconds: float, say: Callable[[str], None], doing: str, each: bool) -> _Done | _Died:
    deadline, stage = time.monotonic() + seconds, ""
    otherwise: CosetError | None = None
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
            return _Died(otherwise)
        if kind == "say":
            if not value.startswith("warning:"):
                stage, deadline = value, time.monotonic() + seconds if each else deadline
            say(value)
        elif kind == "more":
            more, parts = value
            deadline, otherwise = time.monotonic() + more, error_of(parts)
        elif kind == "mistake":
            raise error_of(value)
        elif kind == "fault":
            error, trace = value
            error.add_note(trace)
            raise error
        else:
            return _Done(value)


def _child(work: Callable[[Talk], Any], sender: Connection, words: IO[bytes], parent: int) -> None:
    settle(words, parent)
    try:
        try:
            message = ("done", work(Talk(sender)))
        except CosetError as error:
            message = ("mistake", error_parts(error))
        except BaseException as error:
            message = ("fault", (sendable(error), traceback.format_exc()))
        sender.send(message)
    except BrokenPipeError:
        pass  # nobody listens any more


def error_parts(error: CosetError) -> tuple[type[CosetError], tuple[Any, ...], dict[str, Any]]:
    """The class of an error and what it holds: its constructor may ask for more than a copy can give it."""
    return type(error), error.args, dict(error.__dict__)


def error_of(parts: tuple[type[CosetError], tuple[Any, ...], dict[str, Any]]) -> CosetError:
    kind, args, own = parts
    error = kind.__new__(kind, *args)
    error.__dict__.update(own)
    return error


def sendable(error: BaseException) -> BaseException:
    """What the other process can make again: exceptions of libraries may ask for more than a copy gives them."""
    return error if type(error).__module__ == "builtins" else RuntimeError(f"{type(error).__name__}: {error}")
