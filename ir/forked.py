"""Processes that this one forks and that may be lost: what they are held to, how they ended, and what they answer."""

from __future__ import annotations

import faulthandler
import gc
import multiprocessing
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import IO, Any

import coset.ir.sent
from coset.ir.errors import CosetError
from coset.ir.orphan import end_with

assert coset.ir.sent  # what goes to other processes keeps its identity there

LONGEST = 300  # letters of last words
DYING = 5.0  # s, for a process whose memory is large


def how_it_ended(code: int, words: str) -> str:
    """How a process ended, by its exit code and its last words."""
    last = next((line.strip()[:LONGEST] for line in reversed(words.splitlines()) if line.strip()), "")
    if code == -signal.SIGKILL:
        return "it was killed (SIGKILL): by the system, when memory ran out, or by somebody"
    if code < 0:
        return f"it died of {signal.Signals(-code).name}" + (f": {last}" if last else "")
    return last or f"it ended with exit code {code}"


def start(process: BaseProcess) -> None:
    """Start a process of ours, also within a worker of a pool. Such a worker may have no children by default, because they would stay when
    it is ended; ours end with it (`end_with`)."""
    own: dict[str, Any] = getattr(multiprocessing.current_process(), "_config", {})  # no public name says it
    held = own.pop("daemon", None)
    try:
        process.start()
    finally:
        if held is not None:
            own["daemon"] = held


_settled: list[int] = []  # the id of this process, where it is one that may be lost


def is_settled() -> bool:
    """Whether this process is one of ours (`settle`), whose death or delay its parent waits for."""
    return os.getpid() in _settled


def settle(words: IO[bytes], parent: int) -> None:
    """Make this process, which `parent` forked, one that ends with it, whose interrupts are the parent's, and that says `words` alone."""
    _settled.append(os.getpid())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what an interrupt means
    end_with(parent)
    faulthandler.disable()
    os.dup2(words.fileno(), 2)  # a library's last words are no message to the user, but say what happened
    gc.freeze()  # what the parent made is not looked through here, nor its pages copied


def limit_memory(limit: int) -> None:
    """Let this process grow by `limit` bytes of address space; where the system does not say how large it is, it stays unlimited."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        with Path("/proc/self/statm").open() as file:
            pages = int(file.read().split()[0])
    except OSError:
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = sys.maxsize if hard == resource.RLIM_INFINITY else hard
    resource.setrlimit(resource.RLIMIT_AS, (min(pages * os.sysconf("SC_PAGE_SIZE") + limit, most), hard))


# ---------------------------------------------------------------- what they answer


def answer_of(work: Callable[[], Any]) -> tuple[str, Any]:
    """What work gave or raised, as a message that the parent takes apart (`result_of`)."""
    try:
        return "done", work()
    except CosetError as error:
        return "mistake", error_parts(error)
    except BaseException as error:
        return "fault", (_sendable(error), traceback.format_exc())


def result_of(kind: str, value: Any) -> Any:
    """What the work of another process gave.

    Raises:
        CosetError: as the work did; so any other error, with where it came from.
    """
    if kind == "mistake":
        raise error_of(value)
    if kind == "fault":
        error, trace = value
        error.add_note(trace)
        raise error
    return value


def error_parts(error: CosetError) -> tuple[type[CosetError], tuple[Any, ...], dict[str, Any]]:
    """The class of an error and what it holds: its constructor may ask for more than a copy can give it."""
    return type(error), error.args, dict(error.__dict__)


def error_of(parts: tuple[type[CosetError], tuple[Any, ...], dict[str, Any]]) -> CosetError:
    kind, args, own = parts
    error = kind.__new__(kind, *args)
    error.__dict__.update(own)
    return error


def _sendable(error: BaseException) -> BaseException:
    """What the other process can make again: exceptions of libraries may ask for more than a copy gives them."""
    if isinstance(error, MemoryError):
        return MemoryError(str(error))
    return error if type(error).__module__ == "builtins" else RuntimeError(f"{type(error).__name__}: {error}")
