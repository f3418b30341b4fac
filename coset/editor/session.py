"""The open rule files: their text, what was found of it so far, and the tasks that look at it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from coset.editor.buffer import PROVABLE, BufferEntry, RuleBuffer
from coset.editor.meaning import Known
from coset.editor.tasks import FAULT, GONE, TaskProcesses

Data = dict[str, Any]
LOG = logging.getLogger("coset.editor")
SETTLED = 0.25  # s without an edit, before a text is looked at
EVERY = 0.3  # s between what is shown of one look
LONGEST = 600.0  # s for a look at a text
FORMATTING = 30.0  # s
LOADING = 120.0  # s
BESIDE = 30.0  # s that a proof may take beside its seconds of the processor, times two for a machine that does other things too
PROVING = {"assurance": "proving", "method": "the proof is running", "counterexample": "", "repairs": []}


@dataclass
class OpenFile:
    """A file in the editor. `mistakes` are those of reading the text, `found` those of entries by `RuleBuffer.key`, with lines that
    count from the entry. A verdict holds as long as the key of its entry is the one beside it."""

    uri: str
    path: str
    version: int
    buffer: RuleBuffer
    mistakes: list[Data] = field(default_factory=list)
    found: dict[str, list[Data]] = field(default_factory=dict)
    anew: set[str] = field(default_factory=set)  # keys of rules that are read each time
    verdicts: dict[str, tuple[str, Data]] = field(default_factory=dict)
    own: Data = field(default_factory=dict)
    looking: asyncio.Task[None] | None = None
    proving: dict[str, asyncio.Task[Data]] = field(default_factory=dict)

    def stop(self) -> None:
        """End the tasks that look at an older text."""
        for task in (self.looking, *self.proving.values()):
            if task is not None:
                task.cancel()
        self.proving.clear()

    def verdict(self, entry: BufferEntry) -> Data | None:
        """The verdict on an entry as it is now."""
        nothing: tuple[str, Data] = "", {}
        key, verdict = self.verdicts.get(entry.name, nothing)
        return verdict if key and key == self.buffer.key(entry) else None

    @property
    def diagnostics(self) -> list[Data]:
        """Every mistake of the text, with lines from 1: of reading, of types and test lines, and rules that are refuted."""
        found = list(self.mistakes)
        for entry in self.provable:
            line = self.buffer.lines.spot(entry.start).line
            for each in self.found.get(self.buffer.key(entry), ()):
                found.append({**each, "line": each["line"] + line})
            verdict = self.verdict(entry)
            if verdict is not None and verdict["assurance"] in ("refuted", "unknown"):
                found.append(_refutation(self.buffer, entry, verdict))
        return found

    @property
    def provable(self) -> list[BufferEntry]:
        """The entries that have a name and can be proved."""
        return [entry for entry in self.buffer.entries if entry.kind in PROVABLE and entry.name]


def _refutation(buffer: RuleBuffer, entry: BufferEntry, verdict: Data) -> Data:
    spot = buffer.lines.spot(entry.name_start)
    column = entry.name_start - buffer.lines.starts[spot.line] + 1
    refuted = verdict["assurance"] == "refuted"
    said = f"refuted: {verdict['counterexample'] or verdict['method']}" if refuted else f"unknown: {verdict['method']}"
    mended = "; or with: ".join(verdict["repairs"])
    return {
        "line": spot.line + 1, "column": column, "width": len(entry.name), "message": said,
        "help": f"it is true with: {mended}" if mended else "", "severity": "error" if refuted else "warning",
    }  # fmt: skip


@dataclass
class EditorSession:
    """All open files. `show` is told of a file whose diagnostics changed, `refresh` that verdicts changed. A proof has so many `seconds` of
    the processor; `modules` register native functions."""

    show: Callable[[OpenFile], None]
    refresh: Callable[[], None]
    seconds: float
    modules: Sequence[str] = ()
    files: dict[str, OpenFile] = field(default_factory=dict)
    processes: TaskProcesses = field(default_factory=TaskProcesses)
    catalogue: Data = field(default_factory=dict)
    background: set[asyncio.Task[Any]] = field(default_factory=set)
    loading: asyncio.Task[None] | None = None

    def known(self, file: OpenFile) -> Known:
        """What the rules of a file may name, as far as it is known yet."""
        return Known(self.catalogue, file.own)

    def begin(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run something beside the editor's requests."""
        task = asyncio.get_running_loop().create_task(work)
        self.background.add(task)
        task.add_done_callback(self.background.discard)
        return task

    async def load(self) -> None:
        """Read the catalogue, once."""
        async for answer in self.processes.answers("load", seconds=LOADING):
            if answer["kind"] == "catalogue":
                self.catalogue = answer["catalogue"]
            elif answer["kind"] in (FAULT, GONE):
                LOG.error("%s", answer["message"])

    async def loaded(self) -> None:
        """Wait until the catalogue is there."""
        self.loading = self.loading or self.begin(self.load())
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.shield(self.loading)

    def changed(self, uri: str, path: str, version: int, text: str, encoding: str) -> None:
        """Look at a text that was opened or edited; what looked at an older one ends."""
        file = self.files.get(uri)
        buffer = RuleBuffer(text, encoding)
        if file is None:
            file = self.files[uri] = OpenFile(uri, path, version, buffer)
            pause = 0.0
        else:
            file.stop()
            file.version, file.buffer, pause = version, buffer, SETTLED
        file.looking = self.begin(self.look(file, pause))

    def closed(self, uri: str) -> None:
        """Forget a file."""
        file = self.files.pop(uri, None)
        if file is not None:
            file.stop()
            file.mistakes, file.found, file.verdicts = [], {}, {}
            self.show(file)

    async def look(self, file: OpenFile, pause: float) -> None:
        """Find what is wrong with a text, and show it as it is found."""
        await asyncio.sleep(pause)
        buffer, shown = file.buffer, monotonic()
        keys = {buffer.key(entry) for entry in file.provable}
        file.found = {key: found for key, found in file.found.items() if key in keys}
        arguments = (file.path, buffer.text, file.found.keys() - file.anew, tuple(self.modules))
        async for answer in self.processes.answers("diagnose", *arguments, seconds=LONGEST):
            if answer["kind"] == "read":
                self._read(file, answer)
            elif answer["kind"] == "entry":
                entry = buffer.entry_named(answer["name"])
                line = buffer.lines.spot(entry.start).line if entry is not None else 0
                file.found[answer["key"]] = [{**each, "line": each["line"] - line} for each in answer["errors"]]
                (file.anew.discard if answer["alone"] else file.anew.add)(answer["key"])
            elif answer["kind"] in (FAULT, GONE):
                LOG.error("%s", answer["message"])
            if answer["kind"] != "entry" or monotonic() - shown > EVERY:
                shown = monotonic()
                self.show(file)

    def _read(self, file: OpenFile, answer: Data) -> None:
        file.mistakes, file.own = answer["errors"], answer["ops"] or file.own
        for name, line in answer["locked"].items():
            there = file.verdicts.get(name)
            if there is None or there[0] != line["key"]:
                file.verdicts[name] = line["key"], {**line, "counterexample": "", "repairs": []}
        self.refresh()

    async def prove(self, uri: str, name: str) -> Data:
        """The verdict on an entry of a file, which is shown when it is there; a later edit of the file ends the proof."""
        file = self.files.get(uri)
        entry = file.buffer.entry_named(name) if file is not None else None
        if file is None or entry is None:
            return {"assurance": "mistake", "method": f"there is no rule `{name}`"}
        if name in file.proving:
            file.proving[name].cancel()
        task = file.proving[name] = self.begin(self._prove(file, entry))
        try:
            verdict: Data = await task
            return verdict
        except asyncio.CancelledError:
            task.cancel()
            return {"assurance": "cancelled", "method": "the file was edited"}
        finally:
            if file.proving.get(name) is task:
                del file.proving[name]

    async def _prove(self, file: OpenFile, entry: BufferEntry) -> Data:
        key, text, verdict = file.buffer.key(entry), file.buffer.text, PROVING
        before = file.verdicts.get(entry.name)
        file.verdicts[entry.name] = key, PROVING
        self.refresh()
        seconds = 2 * self.seconds + BESIDE
        arguments = (file.path, text, entry.name, self.seconds, tuple(self.modules))
        try:
            async for answer in self.processes.answers("prove", *arguments, seconds=seconds):
                gone = answer["kind"] in (FAULT, GONE)
                if gone:
                    LOG.error("%s", answer["message"])
                said = answer["message"].rstrip().splitlines()[-1] if gone else ""
                verdict = {**PROVING, "assurance": "unknown", "method": said} if gone else answer
        finally:
            if verdict is not PROVING:
                file.verdicts[entry.name] = key, verdict
                self.show(file)
            elif file.verdicts.get(entry.name) == (key, PROVING):
                file.verdicts.pop(entry.name)
                if before is not None:
                    file.verdicts[entry.name] = before
            self.refresh()
        return verdict

    async def formatted(self, file: OpenFile) -> str | None:
        """The text of a file in the one layout; None if it is no rule file yet."""
        text: str | None = None
        async for answer in self.processes.answers("layout", file.path, file.buffer.text, seconds=FORMATTING):
            text = answer.get("text", text)
        return text

    def stop(self) -> None:
        """End all tasks."""
        for file in self.files.values():
            file.stop()
        for task in [*self.background]:
            task.cancel()
