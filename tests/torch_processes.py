"""Processes that run packages, forked by `torch_server.py`: what `subprocess.Popen` is to `coset.backends.child`."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from coset.backends.torch_package import CHILD, _without_ours

SERVER = Path(__file__).with_name("torch_server.py")


class TorchServer:
    """The server, once it was started; where torch is not installed there is none."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="torch_server")
        self.socket = str(Path(self._folder.name) / "socket")

    @property
    def runs(self) -> bool:
        return self._process is not None

    def start(self) -> None:
        """Start it, if it is not there; it ends with this process."""
        if not self.runs and importlib.util.find_spec("torch") is not None:
            environment = {**os.environ, "PYTHONPATH": _without_ours()}
            command, pipe = [sys.executable, str(SERVER), self.socket], subprocess.PIPE
            self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment)
            assert self._process.stdout is not None and self._process.stdout.readline() == b"ready\n", "the server did not start"

    def close(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
        self._folder.cleanup()


class ForkedProcess:
    """A process that the server has forked, with the part of `subprocess.Popen` that `Child` uses."""

    def __init__(self, server: str, arguments: Sequence[str], errors: IO[bytes], environment: Mapping[str, str]) -> None:
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.connect(server)
        theirs_in, ours_in = os.pipe()
        ours_out, theirs_out = os.pipe()
        request = json.dumps({"arguments": list(arguments), "environment": dict(environment)})
        socket.send_fds(self._connection, [request.encode()], [theirs_in, theirs_out, errors.fileno()])
        os.close(theirs_in)
        os.close(theirs_out)
        self.stdin, self.stdout = os.fdopen(ours_in, "wb"), os.fdopen(ours_out, "rb")
        self._answers = self._connection.makefile("rb")
        self.pid = int(self._answers.readline())
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit code, if it has ended."""
        if self.returncode is None and _is_readable(self._connection):
            self.wait()
        return self.returncode

    def wait(self) -> int:
        """The exit code, when it has ended."""
        if self.returncode is None:
            self.returncode = int(self._answers.readline() or -signal.SIGKILL)
            self._answers.close()
            self._connection.close()
        return self.returncode

    def kill(self) -> None:
        """End it at once."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


def _is_readable(connection: socket.socket) -> bool:
    try:
        connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    return True  # an answer, or the end


def started_by(server: TorchServer) -> Any:
    """What `coset.backends.child` may have for `subprocess`: packages are run by the server, all else as usual."""

    class Processes:
        PIPE = subprocess.PIPE

        @staticmethod
        def Popen(command: Sequence[str], *, stdin: int, stdout: int, stderr: IO[bytes], env: Mapping[str, str] | None) -> Any:
            if not server.runs or str(CHILD) not in command or env is None:
                return subprocess.Popen(command, stdin=stdin, stdout=stdout, stderr=stderr, env=env)
            return ForkedProcess(server.socket, command[command.index(str(CHILD)) :], stderr, env)

    return Processes
