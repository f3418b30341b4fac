"""A child process that answers requests on its standard streams: what may abort does so there, and not in the process that asks."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from typing import IO, Self


class Child:
    """Python on `arguments`, started on first use and again when it has died. Use it as a context manager, or call `close`.

    `environment`: its variables; None: those of this process.
    """

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        self._arguments = tuple(arguments)
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None

    def streams(self) -> tuple[IO[bytes], IO[bytes]]:
        """Where requests are written and answers are read."""
        if self._process is None or self._process.poll() is not None:
            self.close()
            self._errors = tempfile.TemporaryFile()  # noqa: SIM115  (closed with the child)
            command, pipe = [sys.executable, *self._arguments], subprocess.PIPE
            self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=self._errors, env=self._environment)
        assert self._process.stdin is not None and self._process.stdout is not None
        return self._process.stdin, self._process.stdout

    def last_words(self) -> str:
        """What the child wrote last before it died."""
        assert self._process is not None and self._errors is not None
        code = self._process.wait()
        self._errors.seek(0)
        lines = [line for line in self._errors.read().decode(errors="replace").splitlines() if line.strip()]
        self.close()
        return lines[-1][:300] if lines else f"exit status {code}"

    def stop(self) -> None:
        """End the child's process; who waits for its answer, in another thread, learns that it died."""
        process = self._process
        if process is not None:
            process.kill()

    def close(self) -> None:
        """End the child."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for stream in (self._process.stdin, self._process.stdout):
                if stream is not None:
                    stream.close()
            self._process = None
        if self._errors is not None:
            self._errors.close()
            self._errors = None

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
