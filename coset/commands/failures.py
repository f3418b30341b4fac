"""How a command ends that has no answer: words on stderr, one JSON object on stdout with --json, and the exit code."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from coset.commands.options import print_json, say
from coset.ir.errors import CosetError
from coset.ir.place import Place
from coset.ir.problems import WrongFile


def failed(arguments: Sequence[str], error: CosetError, code: int, *, kind: str = "") -> int:
    """Say `error`, also as an object if the `arguments` ask for one; `code`. `kind`: what it is called there, else its class."""
    say(str(error))
    answer(arguments, error, code, kind=kind)
    return code


def answer(arguments: Sequence[str], error: CosetError, code: int, *, kind: str = "") -> None:
    """The object alone, where what is said was said."""
    if asks_for_json(arguments):
        told = error.summary() if hasattr(error, "summary") else {}
        with suppress(OSError):  # stdout may be what failed; the words on stderr were said
            print_json({**told, "error": error_object(error, code, kind=kind)})


def asks_for_json(arguments: Sequence[str]) -> bool:
    """Whether the command line has --json."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in options


def error_object(error: CosetError, code: int, *, kind: str = "") -> dict[str, Any]:
    """What `error` says, as data: `more` are further mistakes of the same file."""
    others = error.others if isinstance(error, WrongFile) else ()
    return {
        "kind": kind or type(error).__name__, "exit_code": code, **_told(error.message, error.place, error.help),
        "more": [_told(each.message, each.place, each.help) for each in others],
    }  # fmt: skip


def _told(message: str, place: Place | None, help: str) -> dict[str, Any]:
    where = None if place is None else {"file": place.file, "line": place.line or None, "column": place.column or None}
    return {"message": message, "place": where, "help": help}
