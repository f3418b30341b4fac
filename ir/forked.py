"""Processes that this one forks and that may be lost: what they are held to, and how they ended."""

from __future__ import annotations

import faulthandler
import gc
import os
import resource
import signal
import sys
from pathlib import Path
from typing import IO

from coset.ir.orphan import end_with

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
