"""The user's own rules, checked before they fire: a refuted one is refused, one of which nothing is shown needs the user's word.

What was shown is taken from the lock file beside a file, or from the user's cache folder, else it is shown now, in little time. Nothing is
written beside the user's files: `coset check` does that. Rules of the library and of the dialects are not looked at here.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coset.dialects.onnx.own import domain_and_name
from coset.ir.errors import CosetError
from coset.ir.forked import error_of, error_parts
from coset.ir.op import get_op
from coset.rules import cache
from coset.rules.defining import named_in
from coset.rules.elaborated import ROOT, comes_with_coset, sources
from coset.rules.library import DEFAULT, load, read_text, rule_files
from coset.rules.lock import PROVER, entry_of, text_hash
from coset.rules.rule import Rule
from coset.rules.written import WrittenRule

if TYPE_CHECKING:
    from coset.prove.check import Effort
    from coset.prove.verdict import RuleVerdict

Source = str | Path | WrittenRule
LEAST, MOST = 5.0, 60.0  # s of the processor for a rule, whatever its share of the job's seconds is
PROVING = 5.0  # s of these for its proof: `coset check` takes more
MOST_LINES = 24  # of a counterexample that an error shows
SHOWN = ("proved", "bounded", "tested")
ALLOW = "--allow-assumed (allow_assumed=True in Python) lets them fire, and the report says so"


class RefutedRule(CosetError):
    """A rule of the user's is false: `verdicts` has those that are."""

    def __reduce__(self) -> tuple[Any, ...]:
        return error_of, (error_parts(self),)

    def __init__(self, verdicts: Sequence[RuleVerdict], rules: Mapping[str, Rule]) -> None:
        first = verdicts[0]
        self.verdicts = tuple(verdicts)
        more = f" (and {len(verdicts) - 1} more: {_named(verdicts[1:])})" if len(verdicts) > 1 else ""
        lines = first.counterexample.splitlines()
        lines = (
            [*lines[:MOST_LINES], f"  .. ({len(lines) - MOST_LINES} more lines: run `coset check`)"] if len(lines) > MOST_LINES else lines
        )
        mended = f"it is true with: {'; or with: '.join(first.repairs)}" if first.repairs else "mend it, or take it out of the file"
        super().__init__(
            "\n".join([f"rule `{first.name}` is refuted{more}; nothing was done with it", *lines]), place=rules[first.name].place,
            help=f"{mended}; --disable-rule {first.name} goes on without it where a command has that option",
        )  # fmt: skip


class UnshownRule(CosetError):
    """Nothing is shown of a rule of the user's, and nobody allowed that: `verdicts` has those of which that is so."""

    def __reduce__(self) -> tuple[Any, ...]:
        return error_of, (error_parts(self),)

    def __init__(self, verdicts: Sequence[RuleVerdict], rules: Mapping[str, Rule]) -> None:
        first = verdicts[0]
        self.verdicts = tuple(verdicts)
        more = f", nor of {len(verdicts) - 1} more ({_named(verdicts[1:])})" if len(verdicts) > 1 else ""
        file = first.file if Path(first.file).exists() else "its file"
        help = f"`coset check {file}` takes more time and keeps what it shows; {ALLOW}" if first.assurance == "unknown" else ALLOW
        super().__init__(f"nothing is shown of rule `{first.name}`{more}: {_reason(first)}", place=rules[first.name].place, help=help)


@dataclass(frozen=True)
class OwnRules:
    """Further rules of the user's that were checked, as `own_rules` gives them: where they come from, the verdict on each entry, and the
    `ops` that they define and that can be ONNX nodes."""

    sources: tuple[Path | WrittenRule, ...] = ()
    verdicts: Mapping[str, RuleVerdict] = field(default_factory=dict, compare=False)
    ops: frozenset[str] = frozenset()

    @property
    def not_shown(self) -> tuple[RuleVerdict, ...]:
        """The verdicts on the rules that may fire although nothing is shown of them."""
        return tuple(verdict for verdict in self.verdicts.values() if verdict.assurance not in SHOWN)

    def assured(self, rule: Rule) -> Rule:
        """`rule` with the assurance that was found here, if it is one of these."""
        verdict = self.verdicts.get(entry_of(rule))
        if verdict is None or verdict.hash != text_hash(rule.text):
            return rule
        assurance = verdict.assurance if verdict.assurance in SHOWN else "assumed"
        return rule if rule.assurance == assurance else rule.changed(assurance=assurance)

    def told(self) -> list[dict[str, Any]]:
        """What a report says of the rules of which nothing is shown."""
        return [
            {"rule": each.name, "file": each.file, "line": each.line, "assurance": each.assurance, "reason": each.method}
            for each in self.not_shown
        ]


NO_RULES = OwnRules()


def own_rules(
    given: Sequence[Source], *, allow_assumed: bool = False, seconds: float = 30.0, admits: Callable[[Rule], bool] = lambda _: True,
    progress: Callable[[str], None] = lambda _: None,
) -> OwnRules:  # fmt: skip
    """The rules of files and those written in Python, checked: those that a job `admits`. Together they have about `seconds`.

    Raises:
        RefutedRule: one is false.
        UnshownRule: nothing is shown of one, and assumed rules are not allowed.
        CosetError: a file cannot be read, or has a mistake.
    """
    if not given:
        return NO_RULES
    written = [source for source in given if isinstance(source, WrittenRule)]
    files = tuple(rule_files(Path(source) for source in given if not isinstance(source, WrittenRule)))
    entries: dict[str, list[Rule]] = {}
    loaded = load([*DEFAULT, *files], written=written).rules
    theirs = {place for place in {rule.place.file for rule in loaded} if _is_own(Path(place), files, written)}
    for rule in loaded:
        if rule.place.file in theirs and admits(rule):
            entries.setdefault(entry_of(rule), []).append(rule)
    context = "\n".join([*map(read_text, files), *(each.text for each in written)])
    verdicts = _verdicts(entries, _digest(context), seconds, progress)
    own = OwnRules((*files, *written), verdicts, node_ops([context]))
    first = {name: rules[0] for name, rules in entries.items()}
    refuted = [verdict for verdict in verdicts.values() if not verdict.ok]
    if refuted:
        raise RefutedRule(refuted, first)
    if own.not_shown and not allow_assumed:
        raise UnshownRule(own.not_shown, first)
    return own


def node_ops(texts: Iterable[str]) -> frozenset[str]:
    """The ops that rule files with these texts define and that can be nodes of ONNX; the files are loaded."""
    return frozenset(name for text in texts for name in named_in(text) if domain_and_name(get_op(name)) is not None)


def warn(own: OwnRules, progress: Callable[[str], None]) -> None:
    """Say which rules may fire although nothing is shown of them."""
    for verdict in own.not_shown:
        progress(f"warning: nothing is shown of rule `{verdict.name}` ({verdict.file}:{verdict.line}), which may fire: {_reason(verdict)}")


def not_shown_lines(report: Mapping[str, Any]) -> list[str]:
    """What a `report` says of the rules of the user's that may have fired although nothing is shown of them: a line each."""
    return [f"rule {each['rule']} ({each['file']}:{each['line']}), {each['assurance']}: {each['reason']}" for each in report["not_shown"]]


def _is_own(place: Path, files: Sequence[Path], written: Sequence[WrittenRule]) -> bool:
    if any(place == each.path for each in written):
        return True
    resolved = place.resolve()
    return not comes_with_coset(place) and any(resolved == file.resolve() for file in files)


def _verdicts(entries: Mapping[str, list[Rule]], context: str, seconds: float, progress: Callable[[str], None]) -> dict[str, RuleVerdict]:
    """The verdict on each entry: as it is locked or was found before with as much time, else as it is found now."""
    from coset.prove.check import Effort, check_rules, failed_tests  # the prover, which few searches need
    from coset.prove.verdict import locked, locked_verdict  # the prover, which few searches need

    effort = Effort(min(MOST, max(LEAST, seconds / max(1, len(entries)))), proving=PROVING, apart="torch" not in sys.modules)
    found: dict[str, RuleVerdict] = {}
    for name, rules in entries.items():
        line = locked(rules[0])
        kept = locked_verdict(rules, line) if line is not None else _recall(rules, context, effort)
        if kept is not None:
            found[name] = kept
    waiting = [rule for name, rules in entries.items() if name not in found for rule in rules]
    if waiting:
        many = len(entries) - len(found)
        progress(f"checking {many} {'rule' if many == 1 else 'rules'} of yours")
        for error in failed_tests(waiting):
            raise error
        for verdict in check_rules(waiting, effort=effort):
            found[verdict.name] = verdict
            _remember(verdict, entries[verdict.name], context, effort)
    return dict(sorted(found.items()))


# ---------------------------------------------------------------- what was found before

_FOUND: dict[tuple[str, ...], dict[str, Any]] = {}
_KEPT = ("assurance", "seconds", "method", "counterexample")  # of a verdict, beside its repairs; the rest stands with the rule


def _key(rules: Sequence[Rule], context: str) -> tuple[str, ...]:
    """What a verdict depends on: the rule, all that is beside it, the prover and what ops mean."""
    first = rules[0]
    forms = " ".join(sorted(rule.name for rule in rules))  # an op variable ranges over the ops that there are
    return PROVER, _prover(), sources(), context, entry_of(first), text_hash(first.text), forms


def _prover() -> str:
    """The sources of the prover, by size and time of change."""
    stamps = ((file.name, file.stat()) for file in sorted((ROOT / "prove").glob("*.py")))
    return "\n".join(f"{name} {status.st_size} {status.st_mtime_ns}" for name, status in stamps)


def _recall(rules: Sequence[Rule], context: str, effort: Effort) -> RuleVerdict | None:
    """What was found before of an entry; None where nothing was, or where there is more time now than was too little then."""
    from coset.prove.verdict import said_of

    key = _key(rules, context)
    body = None if _native(rules) or key in _FOUND else cache.read(cache.cache_file("verdicts", *key))
    said = _FOUND.get(key) or (json.loads(body) if body is not None else None)
    if said is None or (said["assurance"] == "unknown" and said["given"] < (effort.seconds or 0.0)):
        return None
    _FOUND[key] = said
    return said_of(rules, **{name: said[name] for name in _KEPT}, repairs=tuple(said["repairs"]))


def _remember(verdict: RuleVerdict, rules: Sequence[Rule], context: str, effort: Effort) -> None:
    key = _key(rules, context)
    said = {**{name: getattr(verdict, name) for name in _KEPT}, "repairs": verdict.repairs, "given": effort.seconds}
    _FOUND[key] = said
    if not _native(rules):
        cache.write(cache.cache_file("verdicts", *key), json.dumps(said).encode())


def _native(rules: Sequence[Rule]) -> bool:
    """Whether rules call native functions, whose meaning stands in no file that is looked at: of those this process alone remembers."""
    return any(rule.natives for rule in rules)


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=16).hexdigest()


def _named(verdicts: Sequence[RuleVerdict]) -> str:
    return ", ".join(f"`{verdict.name}`" for verdict in verdicts)


def _reason(verdict: RuleVerdict) -> str:
    """Why nothing is shown."""
    return f"it uses native functions; {verdict.method}" if verdict.native else verdict.method
