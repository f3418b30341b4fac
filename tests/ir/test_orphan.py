"""No process of ours outlives who started it."""

from __future__ import annotations

import os
import select
import signal
import sys

import pytest

from coset.ir.orphan import end_with


@pytest.mark.parametrize("system", ["linux", "another"])
def test_a_process_ends_with_its_parent(system: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pipe that only the youngest process holds is closed soon after its parent was killed."""
    if sys.platform != "linux" and system == "linux":
        pytest.skip("prctl is Linux's")
    reader, writer = os.pipe()
    said, told = os.pipe()
    parent = os.fork()
    if not parent:
        own = os.getpid()
        if not os.fork():
            monkeypatch.setattr(sys, "platform", system)
            end_with(own)
            os.write(told, b"!")
            while True:
                signal.pause()
        os.close(writer)
        signal.pause()
    os.close(writer)
    os.read(said, 1)
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    ended, _, _ = select.select([reader], [], [], 30)
    for descriptor in (reader, said, told):
        os.close(descriptor)
    assert ended
