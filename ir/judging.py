"""Entries judged in processes of their own: one that goes on after its time is ended, whatever it is doing, and the others are not.

A judge keeps to its time by itself, as provers do (`prove/deadline.py`); the system ends the process of one that does not, by the
processor's clock.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import traceback
from collections.abc import Callable, Sequence
from math import ceil
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from time import process_time
from typing import Generic, TypeVar, cast

import coset.ir.sent
from coset.ir.errors import CosetError
from coset.ir.forked import start
from coset.ir.orphan import end_with

assert coset.ir.sent  # what goes to the other process keeps its identity there

T = TypeVar("T")
SLACK = 3  # s of the processor, after which a judge that should have ended is ended: Z3 looks at its clock now and then only


class Ended(Exception):
    """The process of a judge ended before it said anything: `late` where that was for its time."""

    def __init__(self, why: str, *, late: bool) -> None:
        super().__init__(why)
        self.late = late


def judged(
    names: Sequence[str], judge: Callable[[str], T], ended: Callable[[str, Ended], T], *, seconds: float | None, workers: int
) -> dict[str, T]:
    """What `judge` says of each name, asked in so many processes at a time, or what `ended` says where its process did not live to tell.

    `seconds` of the processor are what a judge is to keep to; None: it may take as long as it likes. Where the system cannot fork, all
    are asked in this process.

    Raises:
        CosetError: a judge raised it, or another error that is told in its words.
    """
    if not hasattr(os, "fork") or not names:
        return {name: judge(name) for name in names}
    found: dict[str, T] = {}
    waiting = list(reversed(names))
    busy: dict[Connection, tuple[_Worker[T], str]] = {}
    try:
        while waiting or busy:
            while waiting and len(busy) < workers:
                worker = _Worker(judge, waiting[-1], seconds)
                busy[worker.pipe] = worker, waiting.pop()
            for pipe in wait(list(busy)):
                worker, name = busy.pop(cast(Connection, pipe))
                try:
                    found[name] = worker.said()
                except Ended as error:
                    found[name] = ended(name, error)
                finally:
                    worker.end()
    finally:
        for worker, _ in busy.values():
            worker.end()
    return found


class _Worker(Generic[T]):
    """A process that judges one name: what it says does not depend on what others were asked before."""

    def __init__(self, judge: Callable[[str], T], name: str, seconds: float | None) -> None:
        context = multiprocessing.get_context("fork")  # rules are taken along, not sent
        self.pipe, other = context.Pipe()
        self.process: BaseProcess = context.Process(target=_work, args=(other, judge, name, seconds, os.getpid()), daemon=True)
        start(self.process)
        other.close()

    def said(self) -> T:
        """The answer.

        Raises:
            Ended: there is none, for the process is no more.
            CosetError: the judge made a mistake.
        """
        try:
            answer, error = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join()
            code = self.process.exitcode or 0
            how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            raise Ended(f"its process ended with {how}", late=code == -signal.SIGXCPU) from None
        if error is not None:
            raise error if isinstance(error, CosetError) else RuntimeError(error)
        said: T = answer
        return said

    def end(self) -> None:
        """End the process, if it is there."""
        self.pipe.close()
        self.process.join(1.0)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


def _work(pipe: Connection, judge: Callable[[str], T], name: str, seconds: float | None, parent: int) -> None:
    end_with(parent)
    gc.freeze()  # what it shares with its parent is not looked through, which would copy it
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its workers
    if seconds is not None:
        _limit(seconds)
    try:
        pipe.send((judge(name), None))
    except CosetError as error:
        pipe.send((None, CosetError(error.message, place=error.place, help=error.help)))
    except Exception:
        pipe.send((None, traceback.format_exc()))


def _limit(seconds: float) -> None:
    """Have the system end this process so many seconds of the processor from now on."""
    import resource

    most = resource.getrlimit(resource.RLIMIT_CPU)[1]
    ends = ceil(process_time() + seconds) + SLACK
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    resource.setrlimit(resource.RLIMIT_CPU, (ends if most == resource.RLIM_INFINITY else min(ends, most), most))
