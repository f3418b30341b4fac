"""Tasks in processes of their own, beside an event loop: one that is not wanted any more is ended whatever it does, and the editor does not
wait for any.

The processes are forked by a server of `multiprocessing` that has loaded ops and definitions (`warm.py`), so that a task begins at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from importlib import import_module
from multiprocessing.connection import Connection
from typing import Any

import coset.ir.sent

assert coset.ir.sent  # what goes to the other process keeps its identity there
Data = dict[str, Any]
WARM, WORK = "coset.editor.warm", "coset.editor.judging"  # modules: what is loaded before, and whose functions the tasks are
FAULT, GONE = "fault", "gone"


@dataclass
class TaskProcesses:
    """Starts tasks, one after the other: their processes run beside each other."""

    starting: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        self.context = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload([WARM])

    async def answers(self, work: str, *arguments: Any, seconds: float) -> AsyncIterator[Data]:
        """What the function `work` of `judging.py` sends, until it is done or so many seconds are over. Its process is ended when the
        caller leaves the loop or is cancelled. A mistake of ours in it is an answer of the kind `fault`, a process that died or was late
        one of the kind `gone`."""
        receiver, sender = self.context.Pipe()
        process = self.context.Process(target=_child, args=(sender, work, arguments), daemon=True)
        try:
            async with self.starting:
                await asyncio.shield(asyncio.to_thread(process.start))  # waits for the server to be warm
            sender.close()
            deadline = asyncio.get_running_loop().time() + seconds
            while (answer := await _before(deadline, receiver)) is not None:
                yield answer
                if answer["kind"] == GONE:
                    break
        finally:
            if process.pid is not None and process.is_alive():
                process.kill()
            receiver.close()


async def _before(deadline: float, receiver: Connection) -> Data | None:
    """The next answer, or the last one if there is none in time."""
    try:
        async with asyncio.timeout_at(deadline):
            return await _next(receiver)
    except TimeoutError:
        return {"kind": GONE, "message": "it was not done in time"}


async def _next(receiver: Connection) -> Data | None:
    """The next answer; None behind the last one, and one of the kind `gone` if the process ended before that."""
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    loop.add_reader(receiver.fileno(), lambda: None if ready.done() else ready.set_result(None))
    try:
        await ready
    finally:
        loop.remove_reader(receiver.fileno())
    try:
        answer: Data | None = receiver.recv()
    except (EOFError, OSError):
        return {"kind": GONE, "message": "the process of a task died"}
    return answer


def _child(sender: Connection, work: str, arguments: tuple[Any, ...]) -> None:
    """Do the work, and send None behind its last answer; end when nobody listens any more."""
    os.dup2(2, 1)  # stdout belongs to the editor
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_listener, args=(sender,), daemon=True).start()
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        try:
            getattr(import_module(WORK), work)(sender.send, *arguments)
        except Exception:
            sender.send({"kind": FAULT, "message": traceback.format_exc()})
        sender.send(None)


def _end_with_listener(sender: Connection) -> None:
    """The other end sends nothing: what comes is that it was closed."""
    with contextlib.suppress(EOFError, OSError):
        sender.recv()
    os._exit(0)
