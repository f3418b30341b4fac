"""The language server: requests of an editor, answered by a `EditorSession`. pygls speaks the protocol."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote, urlsplit

from coset.editor.completion import ATTRIBUTE, DIALECT, FUNCTION, NAME, OP, RULE, WORD, suggestions
from coset.editor.meaning import WordMeaning, meaning_at
from coset.editor.positions import UTF16, Lines, Spot
from coset.editor.session import EditorSession, OpenFile
from coset.ir.extras import MissingExtra, install

try:
    from lsprotocol import types
    from pygls.lsp.server import LanguageServer
except ImportError as error:
    raise MissingExtra("the language server needs pygls, which is not installed", help=install("editor")) from error

PROVE = "coset.proveRule"  # a command: the URI of a file, and the name of an entry
SHOWN = 60  # letters of a method beside a verdict
KINDS = {
    OP: types.CompletionItemKind.Function, FUNCTION: types.CompletionItemKind.Method, ATTRIBUTE: types.CompletionItemKind.Property,
    NAME: types.CompletionItemKind.Variable, RULE: types.CompletionItemKind.Reference, DIALECT: types.CompletionItemKind.Module,
    WORD: types.CompletionItemKind.Keyword,
}  # fmt: skip
ORDER = (ATTRIBUTE, NAME, WORD, RULE, DIALECT, FUNCTION, OP)  # of what is offered
SEVERITIES = {"error": types.DiagnosticSeverity.Error, "warning": types.DiagnosticSeverity.Warning}


class RuleServer:
    """A server of one editor. `seconds` of the processor are those of a proof; `modules` register native functions."""

    def __init__(self, seconds: float, modules: Sequence[str] = ()) -> None:
        self.server = LanguageServer("coset", version("coset"), text_document_sync_kind=types.TextDocumentSyncKind.Full)
        self.session = EditorSession(self.show, self.refresh, seconds, modules)
        completion = types.CompletionOptions(trigger_characters=[".", "(", ",", ":"])
        actions = types.CodeActionOptions(code_action_kinds=["prove"])
        features: list[tuple[str, Callable[..., Any], Any]] = [
            (types.INITIALIZED, self.begin, None),
            (types.TEXT_DOCUMENT_DID_OPEN, self.opened, None),
            (types.TEXT_DOCUMENT_DID_CHANGE, self.changed, None),
            (types.TEXT_DOCUMENT_DID_SAVE, self.saved, None),
            (types.TEXT_DOCUMENT_DID_CLOSE, self.closed, None),
            (types.TEXT_DOCUMENT_COMPLETION, self.complete, completion),
            (types.TEXT_DOCUMENT_HOVER, self.hover, None),
            (types.TEXT_DOCUMENT_DEFINITION, self.definition, None),
            (types.TEXT_DOCUMENT_FORMATTING, self.format, None),
            (types.TEXT_DOCUMENT_CODE_ACTION, self.actions, actions),
            (types.TEXT_DOCUMENT_INLAY_HINT, self.hints, None),
            (types.SHUTDOWN, self.shut_down, None),
        ]
        for name, answer, options in features:
            self.server.feature(name, options)(partial(answer))
        self.server.command(PROVE)(partial(self.prove))

    # ------------------------------------------------------------ what the editor tells

    def begin(self, _: Any) -> None:
        """Load the names of ops while the user reads."""
        self.session.loading = self.session.begin(self.session.load())

    def opened(self, params: Any) -> None:
        """A file was opened."""
        document = params.text_document
        self._look(document.uri, document.version, document.text)

    def changed(self, params: Any) -> None:
        """A file was edited: the whole text comes each time."""
        document = params.text_document
        self._look(document.uri, document.version, params.content_changes[-1].text)

    def saved(self, params: Any) -> None:
        """A file was saved: a lock file beside it may have changed."""
        file = self.session.files.get(params.text_document.uri)
        if file is not None and not file.proving:
            self._look(file.uri, file.version, file.buffer.text)

    def closed(self, params: Any) -> None:
        """A file was closed."""
        self.session.closed(params.text_document.uri)

    def shut_down(self, *_: Any) -> None:
        """The editor goes."""
        self.session.stop()

    def _look(self, uri: str, number: int, text: str) -> None:
        agreed = self.server.workspace.position_encoding or UTF16
        encoding = str(getattr(agreed, "value", agreed))
        self.session.changed(uri, path_of(uri), number, text, encoding)

    # ------------------------------------------------------------ what the editor is told

    def show(self, file: OpenFile) -> None:
        """Show the diagnostics of a file."""
        found = [_diagnostic(file.buffer.lines, each) for each in file.diagnostics]
        params = types.PublishDiagnosticsParams(uri=file.uri, diagnostics=found, version=file.version)
        self.server.text_document_publish_diagnostics(params)

    def refresh(self) -> None:
        """Have the editor ask for verdicts again, if it can."""
        workspace = self.server.client_capabilities.workspace
        hint = workspace.inlay_hint if workspace is not None else None
        if hint is not None and hint.refresh_support:
            self.server.workspace_inlay_hint_refresh(None)

    # ------------------------------------------------------------ what the editor asks

    async def complete(self, params: Any) -> Any:
        """What may be written at a place."""
        file, offset = self._at(params)
        if file is None:
            return None
        await self.session.loaded()
        found = suggestions(file.buffer, offset, self.session.known(file))
        return types.CompletionList(is_incomplete=False, items=[_item(each) for each in found])

    async def hover(self, params: Any) -> Any:
        """What the word at a place means."""
        file, offset = self._at(params)
        found = await self._meaning(file, offset)
        token = file.buffer.token_at(offset) if file is not None else None
        if file is None or found is None or token is None:
            return None
        content = types.MarkupContent(kind=types.MarkupKind.Markdown, value=found.markdown)
        return types.Hover(contents=content, range=_range(file.buffer.lines, token.start, token.end))

    async def definition(self, params: Any) -> Any:
        """Where the meaning of the word at a place is written."""
        file, offset = self._at(params)
        found = await self._meaning(file, offset)
        if file is None or found is None:
            return None
        if found.offset is not None:
            token = file.buffer.token_at(found.offset)
            end = token.end if token is not None else found.offset
            return types.Location(uri=file.uri, range=_range(file.buffer.lines, found.offset, end))
        if not found.line:
            return None
        start = types.Position(line=found.line - 1, character=0)
        return types.Location(uri=Path(found.file).resolve().as_uri(), range=types.Range(start=start, end=start))

    async def _meaning(self, file: OpenFile | None, offset: int) -> WordMeaning | None:
        if file is None:
            return None
        await self.session.loaded()
        return meaning_at(file.buffer, offset, self.session.known(file))

    async def format(self, params: Any) -> Any:
        """The edit that brings a file into the one layout; None if it is no rule file yet, or was edited meanwhile."""
        file = self.session.files.get(params.text_document.uri)
        if file is None:
            return None
        buffer = file.buffer
        text = await self.session.formatted(file)
        if text is None or text == buffer.text or file.buffer is not buffer:
            return None
        return [types.TextEdit(range=_range(buffer.lines, 0, len(buffer.text)), new_text=text)]

    def actions(self, params: Any) -> Any:
        """A proof of each entry that the selection touches."""
        file = self.session.files.get(params.text_document.uri)
        if file is None or (params.context.only and not any("prove".startswith(str(kind)) for kind in params.context.only)):
            return []
        start, end = (file.buffer.lines.offset(_spot(place)) for place in (params.range.start, params.range.end))
        touched = [entry for entry in file.provable if entry.start <= end and start <= entry.end]
        return [
            types.CodeAction(
                title=f"Prove `{entry.name}`", kind="prove",
                command=types.Command(title="Prove", command=PROVE, arguments=[file.uri, entry.name]),
            )
            for entry in touched
        ]  # fmt: skip

    async def prove(self, uri: str, name: str) -> Any:
        """The verdict on an entry, when it is there."""
        return await self.session.prove(uri, name)

    def hints(self, params: Any) -> Any:
        """The verdicts on the entries of a range, each behind the name of its entry."""
        file = self.session.files.get(params.text_document.uri)
        if file is None:
            return []
        lines = file.buffer.lines
        found = []
        for entry in file.provable:
            verdict = file.verdict(entry)
            line = lines.spot(entry.name_start).line
            if verdict is not None and params.range.start.line <= line <= params.range.end.line:
                method = verdict["method"].splitlines()[0] if verdict["method"] else ""
                said = f"{verdict['assurance']}: {method}" if 0 < len(method) <= SHOWN else verdict["assurance"]
                place = _position(lines.spot(entry.name_start + len(entry.name)))
                found.append(types.InlayHint(position=place, label=said, tooltip=_tooltip(verdict), padding_left=True))
        return found

    def _at(self, params: Any) -> tuple[OpenFile | None, int]:
        """The file and the offset that a request speaks of."""
        file = self.session.files.get(params.text_document.uri)
        return file, 0 if file is None else file.buffer.lines.offset(_spot(params.position))

    def run(self) -> None:
        """Serve the editor on stdin and stdout until it goes."""
        with _channel() as stdout:
            self.server.start_io(None, stdout)


def path_of(uri: str) -> str:
    """The path that a URI names; of an untitled text its name."""
    parts = urlsplit(uri)
    return unquote(parts.path) if parts.scheme == "file" else unquote(parts.path or uri)


def _tooltip(verdict: dict[str, Any]) -> str:
    return "\n".join(part for part in (verdict["method"], verdict["counterexample"]) if part)


@contextlib.contextmanager
def _channel() -> Any:
    """The stdout of this process for the editor alone: what a library prints goes to stderr."""
    sys.stdout.flush()
    channel: BinaryIO = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        yield channel
    finally:
        with contextlib.suppress(OSError, ValueError):
            channel.close()


def _spot(position: Any) -> Spot:
    return Spot(position.line, position.character)


def _position(spot: Spot) -> Any:
    return types.Position(line=spot.line, character=spot.column)


def _range(lines: Lines, start: int, end: int) -> Any:
    return types.Range(start=_position(lines.spot(start)), end=_position(lines.spot(end)))


def _diagnostic(lines: Lines, mistake: dict[str, Any]) -> Any:
    line = max(0, min(mistake["line"] - 1, len(lines.starts) - 1))
    ends = (mistake["column"] - 1, mistake["column"] - 1 + max(1, mistake["width"]))
    start, end = (_position(lines.spot_in_line(line, column)) for column in ends)
    help = f"\nhelp: {mistake['help']}" if mistake["help"] else ""
    return types.Diagnostic(
        range=types.Range(start=start, end=end), message=mistake["message"] + help, severity=SEVERITIES[mistake["severity"]], source="coset"
    )


def _item(each: Any) -> Any:
    document = types.MarkupContent(kind=types.MarkupKind.Markdown, value=each.document) if each.document else None
    order = f"{ORDER.index(each.kind)}{each.label}"
    return types.CompletionItem(
        label=each.label, kind=KINDS[each.kind], detail=each.detail or None, documentation=document, insert_text=each.insert or None,
        sort_text=order,
    )  # fmt: skip


def serve(seconds: float, modules: Sequence[str] = ()) -> None:
    """Serve one editor on stdin and stdout until it goes."""
    with contextlib.suppress(asyncio.CancelledError):
        RuleServer(seconds, modules).run()
