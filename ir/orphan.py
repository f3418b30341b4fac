"""Processes of ours end with who started them, however that ends: nobody else would end them."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

EVERY = 0.5  # s, between looks at whether the parent is there, on systems that do not tell
PR_SET_PDEATHSIG = 1  # prctl(2)


def end_with(parent: int) -> None:
    """End this process with `parent`, the process that forked it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    else:
        signal.signal(signal.SIGALRM, lambda *_: _leave_orphaned(parent))
        signal.setitimer(signal.ITIMER_REAL, EVERY, EVERY)
    _leave_orphaned(parent)  # it may have ended before


def _leave_orphaned(parent: int) -> None:
    if os.getppid() != parent:
        os._exit(1)
