"""Parsed rule files, kept from run to run in the user's cache: JSON of the surface syntax by the hash of the text, so that a start needs
neither the grammar's tables nor the parser.

A cache and nothing more. What cannot be read, was cut off or was written by another version of the parser is parsed anew; a folder
that cannot be written to is left alone. Files take their name when they are complete, so that processes may write at the same
time. Places are kept as numbers: the source lines are those of the text at hand.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import fields
from decimal import Decimal
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from coset.ir.errors import Place
from coset.rules import syntax
from coset.rules.syntax import RuleError

FOLDER = "COSET_CACHE"  # the variable that names another folder, or none where it is empty
MOST = 2000  # files, above which the oldest half goes
_KINDS: tuple[type[Any], ...] = (
    syntax.Number, syntax.Text, syntax.Name, syntax.Spread, syntax.Brackets, syntax.Invocation, syntax.Comprehension, syntax.Operation,
    syntax.TensorKind, syntax.ValueKind, syntax.Declaration, syntax.OpVariable, syntax.Local, syntax.Promise, syntax.RuleEntry,
    syntax.Clause, syntax.OpEntry, syntax.PhaseEntry, syntax.RuleFile,
)  # fmt: skip
_TUPLE, _DECIMAL, _PLACE, _FIRST = range(4)  # what the first item of a list says; kinds are numbered from _FIRST
_NUMBER = {kind: number + _FIRST for number, kind in enumerate(_KINDS)}
_FIELDS = {kind: tuple(field.name for field in fields(kind)) for kind in _KINDS}


def parse(text: str, path: str) -> tuple[syntax.RuleFile, list[RuleError]]:
    """As `coset.rules.parser.parse`, which is asked only for texts that were not parsed before, or had mistakes.

    Raises:
        RuleError: the text is no rule file.
    """
    folder = cache_folder()
    file = None if folder is None else folder / f"{blake2b((version() + text).encode(), digest_size=20).hexdigest()}.json"
    found = None if file is None else _read(file, text, path)
    if found is not None:
        return found, []
    from coset.rules import parser  # its grammar takes longer to load than all of the rest here

    parsed, errors = parser.parse(text, path)
    if file is not None and not errors:
        _write(file, parsed)
    return parsed, errors


def cache_folder() -> Path | None:
    """Where parsed texts are kept; None where the user wants none."""
    given = os.environ.get(FOLDER)
    if given is not None:
        return Path(given) / "parsed" if given else None
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not base.is_absolute():
        try:
            base = Path.home() / ".cache"
        except RuntimeError:  # a user without a home
            return None
    return base / "coset" / "parsed"


@lru_cache(maxsize=1)
def version() -> str:
    """The hash of what decides how a text is parsed and kept: the grammar, the parser, the syntax and this file."""
    here = Path(__file__).parent
    names = ("grammar.lark", "parser.py", "syntax.py", "parsed.py")
    return blake2b(b"\0".join((here / name).read_bytes() for name in names), digest_size=20).hexdigest()


def _read(file: Path, text: str, path: str) -> syntax.RuleFile | None:
    try:
        digest, _, body = file.read_bytes().partition(b"\n")
        if digest != _digest(body):
            return None
        found = decoder(text, path)(json.loads(body))
    except (OSError, ValueError, ArithmeticError, TypeError, LookupError):
        return None  # not there, or not what was written here
    return found if isinstance(found, syntax.RuleFile) else None


def _digest(body: bytes) -> bytes:
    return blake2b(body, digest_size=20).hexdigest().encode()


def _write(file: Path, parsed: syntax.RuleFile) -> None:
    body = json.dumps(encode(parsed), separators=(",", ":")).encode()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=file.parent, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(_digest(body) + b"\n" + body)
            Path(name).replace(file)
        finally:
            Path(name).unlink(missing_ok=True)
        _prune(file.parent)
    except OSError:
        return  # a full or read-only disk costs time, not the result


def _prune(folder: Path) -> None:
    files = list(folder.iterdir())
    if len(files) > MOST:
        for old in sorted(files, key=lambda file: file.stat().st_mtime_ns)[: MOST // 2]:
            old.unlink(missing_ok=True)


def encode(value: Any) -> Any:
    """Surface syntax as plain lists: `[kind, field, ...]`; of places only the numbers, of the file's own path nothing."""
    if isinstance(value, tuple):
        return [_TUPLE, *map(encode, value)]
    if isinstance(value, Decimal):
        return [_DECIMAL, str(value)]
    if isinstance(value, Place):
        return [_PLACE, value.line, value.column, value.width] if value.line else [_PLACE]
    if isinstance(value, syntax.RuleFile):
        return [_NUMBER[syntax.RuleFile], *(encode(getattr(value, name)) for name in _FIELDS[syntax.RuleFile] if name != "path")]
    if value is None or isinstance(value, str | bool | int):
        return value
    return [_NUMBER[type(value)], *(encode(getattr(value, name)) for name in _FIELDS[type(value)])]


def decoder(text: str, path: str) -> Callable[[Any], Any]:
    """What turns `encode`'s lists back into the syntax of `text`, which stands in the file `path`."""
    lines = text.splitlines()

    def decode(value: Any) -> Any:
        if not isinstance(value, list):
            return value
        number = value[0]
        if number == _PLACE:
            if len(value) == 1:
                return Place(path)
            _, line, column, width = value
            return Place(path, line, column, lines[line - 1], width)
        if number == _TUPLE:
            return tuple([decode(item) for item in value[1:]])
        if number == _DECIMAL:
            return Decimal(value[1])
        kind = _KINDS[number - _FIRST]
        given = [decode(item) for item in value[1:]]
        return syntax.RuleFile(path, *given) if kind is syntax.RuleFile else kind(*given)

    return decode
