"""One process after the other on the GPU, where several work side by side for one run of `gpu`."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TURN = "COSET_GPU_TURN"  # the variable that names the file which processes lock
_depth = 0


@contextmanager
def turn() -> Iterator[None]:
    """Meanwhile no other process of the same run uses the GPU; at once where this one has it already, or where it runs alone."""
    global _depth
    place = os.environ.get(TURN)
    if place is None or _depth:
        yield
        return
    with Path(place).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        _depth += 1
        try:
            yield
        finally:
            _depth -= 1
