"""What is said of the text in an editor, in a process that may be ended at any time: its mistakes as `coset check` tells them, the
verdict on one rule, the one layout. Answers are plain data."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import coset.dialects
from coset.editor.buffer import RuleBuffer
from coset.editor.catalogue import catalogue, op_data
from coset.ir.errors import CosetError
from coset.ir.op import get_op
from coset.ir.registry import all_dialects
from coset.job.kernels import errors_of_kernels
from coset.prove.check import Effort, check_rules, failed_tests
from coset.prove.verdict import RuleVerdict, locked
from coset.rules.defining import forget, load_definitions, named_in
from coset.rules.definition import DEFINED
from coset.rules.elaborated import LIBRARY, comes_with_coset, in_dialects
from coset.rules.format import format_text
from coset.rules.library import RuleSet, RuleText, read_unsaved
from coset.rules.lock import NAME, entry_of, read_lock
from coset.rules.parsed import parse
from coset.rules.rule import Rule
from coset.rules.syntax import RuleError
from coset.rules.typecheck import type_errors

assert coset.dialects
Data = dict[str, Any]
Send = Callable[[Data], None]
ERROR, WARNING = "error", "warning"


def load(send: Send) -> None:
    """Send what a rule may name."""
    send({"kind": "catalogue", "catalogue": catalogue()})


def diagnose(send: Send, path: str, text: str, known: Collection[str], modules: Iterable[str]) -> None:
    """Send the mistakes of a text: first those of reading it, then entry by entry those of types and test lines. Rules whose keys
    (`RuleBuffer.key`) are `known` are not looked at again."""
    buffer = RuleBuffer(text)
    _prepare(Path(path), buffer, modules)
    rules, errors, waiting = _read(Path(path), buffer, known)
    errors += errors_of_kernels({path})
    own = _by_entry(rule for rule in rules.rules if rule.place.file == path)
    send({
        "kind": "read",
        "errors": _of_file(errors, path),
        "locked": _locked(own, buffer),
        "ops": {name: op_data(get_op(name), buffer) for name in named_in(text) if name in DEFINED},
    })  # fmt: skip
    groups = _by_entry(rule for rule in waiting if rule.place.file == path)
    for name, group in {**own, **groups}.items():
        entry = buffer.entry_named(name)
        if entry is not None and buffer.key(entry) not in known:
            found = (type_errors(group) or _failing(own.get(name, group))) if name in groups else []
            alone = all(rule.roots == 1 for rule in group)  # phases have a say in rules of several roots
            said = [*_of_file(found, path), *_taken(group[0])]
            send({"kind": "entry", "name": name, "key": buffer.key(entry), "errors": said, "alone": alone})
    send({"kind": "done"})


def _read(path: Path, buffer: RuleBuffer, known: Collection[str]) -> tuple[RuleSet, list[RuleError], list[Rule]]:
    """What is in a text beside rules that are known; where that is no rule file the mistake is told as the whole text has it."""
    rest = buffer.without(known)
    try:
        if rest != buffer.text:
            parse(rest, str(path))
    except RuleError:
        rest = buffer.text
    return read_unsaved(RuleText(path, rest))


def prove(send: Send, path: str, text: str, name: str, seconds: float, modules: Iterable[str]) -> None:
    """Send the verdict on one entry of a text, or the mistake in it for which there is none."""
    _prepare(Path(path), RuleBuffer(text), modules)
    rules, errors, waiting = read_unsaved(RuleText(Path(path), text))
    own = [rule for rule in rules.rules if rule.place.file == path and entry_of(rule) == name]
    if own:
        errors = type_errors([rule for rule in waiting if entry_of(rule) == name]) or failed_tests(own)
    if errors or not own:
        first = errors[0].message if errors else f"there is no rule `{name}`"
        send(
            {"kind": "verdict", "name": name, "assurance": "mistake", "method": first, "counterexample": "", "repairs": [], "seconds": 0.0}
        )
        return
    (verdict,) = check_rules(own, effort=Effort(seconds=seconds, apart=True))
    send({"kind": "verdict", **_verdict(verdict)})


def layout(send: Send, path: str, text: str) -> None:
    """Send the text in the one layout, or None if it is no rule file."""
    formatted: str | None = None
    with suppress(RuleError):
        formatted = format_text(text, path)
    send({"kind": "formatted", "text": formatted})


def _verdict(verdict: RuleVerdict) -> Data:
    keys = ("name", "assurance", "method", "counterexample", "seconds")
    return {**{key: getattr(verdict, key) for key in keys}, "repairs": list(verdict.repairs)}


def _prepare(place: Path, buffer: RuleBuffer, modules: Iterable[str]) -> None:
    """Make ready what a text needs: native functions, ops of files beside it, and no older meaning of its own ops."""
    for module in modules:
        with suppress(Exception):  # the command that started the server has imported it before
            import_module(module)
    if in_dialects(place):
        _forget_changed(place, buffer.text)
    used = {name.partition(".")[0] for name in buffer.dialects.values()}
    missing = used - all_dialects() - {name.partition(".")[0] for name in named_in(buffer.text)}
    for other in sorted(place.parent.glob("*.rules")) if missing else ():
        if other != place and missing & _dialects_of(other):
            with suppress(CosetError):  # its mistakes are told in its own window
                load_definitions(other)


def _dialects_of(path: Path) -> set[str]:
    try:
        return {name.partition(".")[0] for name in named_in(path.read_text(encoding="utf-8"))}
    except (OSError, UnicodeDecodeError):
        return set()


def _forget_changed(place: Path, text: str) -> None:
    """A file of the dialects was read when this process began: what the text says otherwise is read anew."""
    try:
        file, errors = parse(text, str(place))
    except RuleError:
        return
    new = {entry.name: entry.text for entry in file.ops}
    for name, definition in [*DEFINED.items()]:
        if Path(definition.entry.place.file).resolve() == place.resolve() and not errors and new.get(name) != definition.entry.text:
            forget(definition.op)


def _by_entry(rules: Iterable[Rule]) -> dict[str, list[Rule]]:
    found: dict[str, list[Rule]] = {}
    for rule in rules:
        found.setdefault(entry_of(rule), []).append(rule)
    return found


def _failing(rules: list[Rule]) -> list[RuleError]:
    """The test lines that fail; a mistake in computing one is told as such."""
    try:
        return failed_tests(rules)
    except RuleError as error:
        return [error]


def _locked(entries: Mapping[str, list[Rule]], buffer: RuleBuffer) -> Mapping[str, Data]:
    """What the lock file beside a text says of its entries, with their keys."""
    found: dict[str, Data] = {}
    for name, rules in entries.items():
        entry = buffer.entry_named(name)
        with suppress(CosetError):  # a damaged lock file is told of by `coset check`
            line = locked(rules[0]) if entry is not None else None
            if entry is not None and line is not None:
                found[name] = {
                    "key": buffer.key(entry),
                    "assurance": line.assurance,
                    "method": f"{line.method}, from the lock file".lstrip(", "),
                }
    return found


def _taken(rule: Rule) -> list[Data]:
    """A warning if a rule has the name of one of the library."""
    if rule.definition is not None or comes_with_coset(Path(rule.place.file).parent) or rule.family not in read_lock(LIBRARY / NAME):
        return []
    said = f"the library has a rule `{rule.family}`; `--rules` takes no second one of the name"
    return [_data(RuleError(said, place=rule.place, help="give yours another name"), WARNING)]


def _of_file(errors: Iterable[RuleError], path: str) -> list[Data]:
    """The mistakes of one file as data; one without a place is told at its beginning."""
    return [_data(error, ERROR) for error in errors if error.place is None or error.place.file == path]


def _data(error: RuleError, severity: str) -> Data:
    place = error.place
    line, column, width = (place.line or 1, place.column or 1, place.width) if place else (1, 1, 1)
    message = re.sub(r"\s+$", "", error.message)
    return {"line": line, "column": column, "width": width, "message": message, "help": error.help, "severity": severity}
