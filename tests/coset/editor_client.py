"""An editor for tests: it starts `coset language-server` and speaks JSON-RPC with it over stdin and stdout."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
MOST = 240.0  # s that an answer may take on a machine that does other things too
Data = dict[str, Any]


class Editor:
    """A client of one server. Diagnostics are kept by URI and version; what the server asks is answered with null."""

    def __init__(self, *options: str, capabilities: Data | None = None, environment: Data | None = None) -> None:
        command = [sys.executable, "-m", "coset.cli", "language-server", *options]
        environ = {**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})}
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environ)
        self.messages: queue.Queue[Data | None] = queue.Queue()
        self.errors: list[bytes] = []
        self.diagnostics: dict[str, tuple[int, list[Data]]] = {}
        self.answers: dict[int, Data] = {}
        self.asked: list[str] = []
        self.number = 0
        threading.Thread(target=self._read, daemon=True).start()
        threading.Thread(target=self._listen, daemon=True).start()
        usual = {"workspace": {"inlayHint": {"refreshSupport": True}}}
        self.told = self.ask("initialize", processId=os.getpid(), rootUri=None, capabilities=capabilities or usual)["result"]
        self.tell("initialized")

    def _read(self) -> None:
        stream = self.process.stdout
        assert stream is not None
        while header := stream.readline():
            length = 0
            while header.strip():
                name, _, value = header.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
                header = stream.readline()
            self.messages.put(json.loads(stream.read(length)))
        self.messages.put(None)

    def _listen(self) -> None:
        assert self.process.stderr is not None
        self.errors += iter(self.process.stderr.readline, b"")

    def _send(self, message: Data) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.process.stdin.flush()

    def tell(self, method: str, **params: Any) -> None:
        """A notification."""
        self._send({"method": method, "params": params})

    def begin(self, method: str, **params: Any) -> int:
        """A request whose answer is taken later (`answer`)."""
        self.number += 1
        self._send({"id": self.number, "method": method, "params": params})
        return self.number

    def answer(self, number: int) -> Data:
        """The answer to a request, with `result` or `error`."""
        self.until(lambda: number in self.answers)
        return self.answers.pop(number)

    def ask(self, method: str, **params: Any) -> Data:
        """A request, answered."""
        return self.answer(self.begin(method, **params))

    def until(self, holds: Callable[[], bool]) -> None:
        """Read what the server sends until something holds."""
        end = monotonic() + MOST
        while not holds():
            message = self.messages.get(timeout=max(0.1, end - monotonic()))
            assert message is not None, b"".join(self.errors).decode()
            self._take(message)

    def eventually(self, holds: Callable[[], bool]) -> None:
        """Ask the server until something holds, which no message may say."""
        end = monotonic() + MOST
        while not holds():
            assert monotonic() < end, b"".join(self.errors).decode()
            sleep(0.05)

    def _take(self, message: Data) -> None:
        if "method" not in message:
            self.answers[message["id"]] = message
        elif message["method"] == "textDocument/publishDiagnostics":
            params = message["params"]
            self.diagnostics[params["uri"]] = params.get("version", 0), params["diagnostics"]
        if "method" in message:
            self.asked.append(message["method"])
            if "id" in message:
                self._send({"id": message["id"], "result": None})

    # ------------------------------------------------------------ documents

    def open(self, uri: str, text: str) -> None:
        """Open a text that no file needs to have."""
        self.tell("textDocument/didOpen", textDocument={"uri": uri, "languageId": "coset-rules", "version": 1, "text": text})

    def edit(self, uri: str, version: int, text: str) -> None:
        """Replace the whole text."""
        self.tell("textDocument/didChange", textDocument={"uri": uri, "version": version}, contentChanges=[{"text": text}])

    def wrong(self, uri: str, version: int, holds: Callable[[list[Data]], bool] = bool) -> list[Data]:
        """The diagnostics of a version of a text, once something holds of them: there are some, unless another thing is asked for."""
        self.until(lambda: self.diagnostics.get(uri, (0, []))[0] == version and holds(self.diagnostics[uri][1]))
        return self.diagnostics[uri][1]

    def at(self, method: str, uri: str, line: int, character: int) -> Any:
        """The result of a request about a place."""
        place = {"line": line, "character": character}
        return self.ask(f"textDocument/{method}", textDocument={"uri": uri}, position=place)["result"]

    def labels(self, uri: str, line: int, character: int) -> list[str]:
        """The completions at a place, in their order."""
        found = self.at("completion", uri, line, character)["items"]
        return [each["label"] for each in sorted(found, key=lambda each: each["sortText"])]

    def hints(self, uri: str) -> Sequence[Data]:
        """The verdicts that stand in a text."""
        everywhere = {"start": {"line": 0, "character": 0}, "end": {"line": 100_000, "character": 0}}
        found: list[Data] = self.ask("textDocument/inlayHint", textDocument={"uri": uri}, range=everywhere)["result"]
        return found

    def close(self) -> int:
        """Shut the server down; its exit code."""
        with suppress(BrokenPipeError):
            if self.process.poll() is None:
                self.ask("shutdown")
                self.tell("exit")
        try:
            return self.process.wait(MOST)
        finally:
            self.process.kill()
