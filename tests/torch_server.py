"""A process with torch that forks one for each package that a test runs. Importing torch takes a second, for some hundred packages.

`python torch_server.py SOCKET` listens there. A request is one line of JSON, the arguments of Python and its environment, with the three
standard streams as file descriptors. The answers are the id of the process and, when it has ended, its exit code.
"""

from __future__ import annotations

import contextlib
import json
import os
import runpy
import select
import signal
import socket
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

LONGEST = 1 << 20  # bytes of a request


def serve(path: str) -> None:
    """Answer until the standard input ends, which its parent holds."""
    import numpy  # noqa: F401  (each package needs both)
    import torch  # noqa: F401

    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    print("ready", flush=True)
    ended, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    asking: dict[int, socket.socket] = {}
    while True:
        ready, _, _ = select.select([0, listener, ended], [], [])
        if 0 in ready:
            return
        if listener in ready:
            connection, _ = listener.accept()
            process = _start(connection, [listener, *asking.values()])
            asking[process] = connection
        if ended in ready:
            os.read(ended, 4096)
            _tell(asking)


def _tell(asking: dict[int, socket.socket]) -> None:
    """Send the exit codes of the processes that have ended."""
    for process in list(asking):
        found, status = os.waitpid(process, os.WNOHANG)
        if found:
            with contextlib.suppress(OSError), asking.pop(process) as connection:  # nobody may wait for it any more
                connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())


def _start(connection: socket.socket, others: Sequence[socket.socket]) -> int:
    """The id of a new process that runs what `connection` asks for."""
    text, streams, _, _ = socket.recv_fds(connection, LONGEST, 3)
    process = os.fork()
    if not process:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for each in (connection, *others):
            each.close()
        os._exit(_run(json.loads(text), streams))
    for stream in streams:
        os.close(stream)
    connection.sendall(f"{process}\n".encode())
    return process


def _run(request: dict[str, Any], streams: Sequence[int]) -> int:
    """The exit code of the script, run as `python SCRIPT ARGUMENT ..` runs it."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    opened = sys.__stdin__, sys.__stdout__, sys.__stderr__ = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w", buffering=1)
    sys.stdin, sys.stdout, sys.stderr = opened
    os.environ.clear()
    os.environ.update(request["environment"])
    script, *_ = sys.argv = request["arguments"]
    sys.path[0] = str(Path(script).parent)
    try:
        runpy.run_path(script, run_name="__main__")
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    return code


if __name__ == "__main__":
    serve(sys.argv[1])
