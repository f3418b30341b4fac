"""Rule files as one `RuleSet`: independent of the order of files and entries, with phases, limits and assurance."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from heapq import heapify, heappop, heappush
from itertools import pairwise
from pathlib import Path

from coset.ir.collector import no_collection
from coset.ir.errors import CosetError
from coset.ir.place import Place
from coset.ir.registry import all_dialects, all_ops
from coset.ir.suggestions import like
from coset.rules import cache, loaded, syntax
from coset.rules.defining import define_all
from coset.rules.definition import definition_texts, definitions, ready_definitions, trials
from coset.rules.elaborate import rules_of
from coset.rules.elaborated import DIALECTS, FileRules, keep, kept, sources
from coset.rules.lock import NAME, assure, entry_of, read_lock, text_hash
from coset.rules.names import ranged_over
from coset.rules.parsed import parse
from coset.rules.rule import Rule
from coset.rules.syntax import RuleError
from coset.rules.typecheck import type_errors
from coset.rules.written import WrittenRule

DEFAULT = (Path(__file__).resolve().parent / "library",)
FIRST_PHASE = "algebra"
Stamps = tuple[tuple[Path, int, int], ...]  # files, when they were changed, and their bytes
FORWARD, REVERSE = "forward", "reverse"


@dataclass(frozen=True)
class LibraryPhase:
    """One phase of the search: its rules by name."""

    name: str
    rules: tuple[Rule, ...]


@dataclass(frozen=True)
class RuleText:
    """The text of a rule file, which need not be what is stored at its path."""

    path: Path
    text: str


@dataclass(frozen=True)
class RuleSet:
    """The phases in the order in which they run. A rule that no phase names runs in the first one, as definitions do."""

    phases: tuple[LibraryPhase, ...] = ()

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Every rule, by name."""
        return tuple(sorted((rule for phase in self.phases for rule in phase.rules), key=lambda rule: rule.name))

    def family(self, name: str) -> tuple[Rule, ...]:
        """The rules of one entry: its directions and variants."""
        return tuple(rule for rule in self.rules if rule.family == name)


def read_text(path: Path) -> str:
    """The text of a rule file.

    Raises:
        CosetError: it cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CosetError(f"cannot read the rule file {path}: {error}") from None


def rule_files(paths: Iterable[Path]) -> list[Path]:
    """The `*.rules` files among `paths` and anywhere in its folders, sorted, each once.

    Raises:
        CosetError: a path does not exist.
    """
    found: set[Path] = set()
    for path in map(Path, paths):
        if not path.exists():
            raise CosetError(f"there is no rule file {path}")
        found |= set(path.rglob("*.rules")) if path.is_dir() else {path}
    return sorted(found, key=lambda path: (path.name, str(path)))


def load(paths: Sequence[Path] = DEFAULT, *, written: Sequence[WrittenRule] = (), with_definitions: bool = True) -> RuleSet:
    """The rules of `paths` and those `written` in Python, by name, and the definitions of every op that is registered. Import
    `coset.dialects` first.

    A rule whose text is in the lock file was type-checked when it was locked; others are type-checked now.

    Raises:
        RuleError: the first mistake; `check_files` reports all.
    """
    files = rule_files(paths)
    locks = sorted({path.parent / NAME for path in files})
    rule_set, errors = _load_cached(_stamps(files), _stamps(locks), tuple(written), with_definitions, definition_texts())
    if errors:
        first = errors[0]
        more = f" (and {len(errors) - 1} more mistakes: run `coset check`)" if len(errors) > 1 else ""
        raise RuleError(first.message + more, place=first.place, help=first.help)
    return rule_set


def _stamps(paths: Iterable[Path]) -> Stamps:
    return tuple((path, path.stat().st_mtime_ns, path.stat().st_size) for path in paths if path.exists())


def read_unsaved(source: RuleText) -> tuple[RuleSet, list[RuleError], list[Rule]]:
    """As `check_files` of a text that no file has yet, before types are looked at: the rules, the mistakes, and the rules whose types
    `type_errors` is to look at, because the lock file does not have their text."""
    all_ops()
    waiting: list[Rule] = []

    def later(rules: Sequence[Rule]) -> list[RuleError]:
        waiting.extend(rules)
        return []

    rule_set, errors = _load([source], with_definitions=True, trust_lock=True, trials_too=True, types=later)
    return rule_set, errors, waiting


def check_files(paths: Sequence[Path], *, anew: bool = True) -> tuple[RuleSet, list[RuleError]]:
    """The rules that are well formed, with those that expand ops, and every mistake in all the files.

    All are type-checked `anew`, or only those whose text is not in the lock file. Rules over all ops speak of every one.
    """
    all_ops()
    return _load(rule_files(paths), with_definitions=True, trust_lock=not anew, trials_too=True)


@lru_cache(maxsize=8)
def _load_cached(
    stamps: Stamps, locks: Stamps, written: tuple[WrittenRule, ...], with_definitions: bool, __: frozenset[str]
) -> tuple[RuleSet, list[RuleError]]:
    """Keyed by the files and lock files as they are, and by the ops that are defined when they are read."""
    paths = [path for path, _, _ in stamps]
    with no_collection():
        if written or not with_definitions or paths != rule_files(DEFAULT):
            return _load([*paths, *written], with_definitions=with_definitions, trust_lock=True)
        base = ready_definitions()
        belongs = (repr(stamps), repr(locks), repr(_stamps(sorted(DIALECTS.glob(f"*/{NAME}")))), " ".join(sorted(base)))
        file = cache.cache_file("loaded", sources(), ranged_over(), *belongs)
        found = loaded.read(file)
        if found is not None:
            return RuleSet(tuple(_with_further(found))), []
        rule_set, errors = _load(paths, with_definitions=True, trust_lock=True)
        if not errors:
            loaded.keep(file, [(phase.name, phase.rules) for phase in rule_set.phases], base)
        return rule_set, errors


def _with_further(found: loaded.Loaded) -> Iterator[LibraryPhase]:
    """The phases that were kept, with the rules of definitions that the program has brought along."""
    further = definitions(found.definitions)
    for name, rules in found.phases:
        if further and name == FIRST_PHASE:
            rules = tuple(sorted([*rules, *further], key=lambda rule: rule.own_name))
        yield LibraryPhase(name, rules)


def _load(
    sources: Sequence[Path | WrittenRule | RuleText],
    *,
    with_definitions: bool,
    trust_lock: bool,
    trials_too: bool = False,
    types: Callable[[Sequence[Rule]], list[RuleError]] = type_errors,
) -> tuple[RuleSet, list[RuleError]]:
    read, errors = _read(sources, trust_lock=trust_lock)
    rules: list[Rule] = []
    contents: list[FileRules] = []
    untyped: list[Rule] = []  # of which no types were checked when they were locked
    for path, text, each in read:
        if isinstance(each, syntax.RuleFile):
            each, found = _elaborated(text, each)
            errors += found
        contents.append(each)
        own = assure(each.rules, path.parent)
        lines = _lines(path.parent) if trust_lock else {}
        untyped += [rule for rule in own if not _locked(rule, lines)]
        rules += own
    errors += _duplicates([entry for each in contents for entry in each.entries])
    if with_definitions:
        rules += definitions()
        if trials_too:
            defined = {entry.name for _, _, file in read if isinstance(file, syntax.RuleFile) for entry in file.ops}
            tried = [rule for name in sorted(defined) for rule in trials(name)]
            rules += tried
            suspects = [*tried, *(rule for rule in definitions() if rule.definition in defined)]
            untyped += [rule for rule in suspects if not (trust_lock and _locked(rule, _lines(Path(rule.place.file).parent)))]
    errors += types(untyped)
    rules.sort(key=lambda rule: rule.name)
    names, wrong = _order([each.phases for each in contents])
    phases, found = _staged(rules, names, [phase for each in contents for phase in each.phases])
    errors += [*wrong, *found]
    errors.sort(key=lambda e: (e.place.file, e.place.line, e.place.column) if e.place else ("", 0, 0))
    return RuleSet(phases), errors


def _read(
    sources: Sequence[Path | WrittenRule | RuleText], *, trust_lock: bool
) -> tuple[list[tuple[Path, str, syntax.RuleFile | FileRules]], list[RuleError]]:
    """Each source with its text and what it says, of which the ops are registered; files that are kept are not parsed."""
    errors: list[RuleError] = []
    read: list[tuple[Path, str, syntax.RuleFile | FileRules]] = []
    for source in sources:
        path = source if isinstance(source, Path) else source.path
        try:
            text = read_text(path) if isinstance(source, Path) else source.text
            known = kept(text, path) if trust_lock else None
            if known is not None:
                read.append((path, text, known))
                continue
            file, found = parse(text, str(path))
        except CosetError as error:
            errors.append(error if isinstance(error, RuleError) else RuleError(error.message, place=Place(str(path))))
            continue
        errors += found
        read.append((path, text, file))
        errors += define_all(file.ops, _dialects(file), path.parent)
    return read, errors


def _elaborated(text: str, file: syntax.RuleFile) -> tuple[FileRules, list[RuleError]]:
    """The rules of a file that was parsed; what is without a mistake is kept for the next time."""
    errors = _unknown_dialects(text, file)
    rules: list[list[Rule]] = []
    for entry in () if errors else file.rules:  # what follows from them would be said of each
        own, found = rules_of(entry, _dialects(file))
        rules.append(own if not found else [])
        errors += found
    if not errors:
        keep(text, file, rules)
    entries = tuple((entry.name, entry.place) for entry in file.rules)
    return FileRules(entries, file.phases, tuple(rule for own in rules for rule in own)), errors


def _unknown_dialects(text: str, file: syntax.RuleFile) -> list[RuleError]:
    """The dialects in use that have no ops."""
    own = re.findall(r"^(?:op|kernel)\s+(\w+)\.", text, re.MULTILINE)  # which may have mistakes
    known = {*all_dialects(), *own}
    return [
        RuleError(
            f"there is no dialect `{dialect}`", place=replace(place, width=len(dialect)),
            help=like(dialect, known) or f"one of: {', '.join(sorted(known))}; or a file before this one defines its ops",
        )
        for _, dialect, place in file.dialects if dialect.partition(".")[0] not in known
    ]  # fmt: skip


def _dialects(file: syntax.RuleFile) -> dict[str, str]:
    return {name: dialect for name, dialect, _ in file.dialects}


def _locked(rule: Rule, lines: Mapping[str, str]) -> bool:
    line = lines.get(entry_of(rule))
    return line is not None and line == text_hash(rule.text)


def _lines(directory: Path) -> dict[str, str]:
    """The hashes in the lock file of a folder, by entry."""
    path = directory / NAME
    return _lines_at(path, path.stat().st_mtime_ns if path.exists() else 0)


@lru_cache(maxsize=8)
def _lines_at(path: Path, _: int) -> dict[str, str]:
    return {name: line.hash for name, line in read_lock(path).items()}


def _duplicates(entries: Sequence[tuple[str, Place]]) -> list[RuleError]:
    first: dict[str, Place] = {}
    errors = []
    for name, place in entries:
        if name in first:
            where = first[name]
            errors.append(
                RuleError(
                    f"`{name}` is the name of two rules",
                    place=place,
                    help=f"give it another name; the other one is in {where.file}:{where.line}",
                )
            )
        first.setdefault(name, place)
    return errors


def _order(files: Sequence[Sequence[syntax.PhaseEntry]]) -> tuple[list[str], list[RuleError]]:
    """The phases in an order that has those of each file in the order in which they stand there; what no file orders goes by name."""
    graph: TopologicalSorter[str] = TopologicalSorter({FIRST_PHASE: (), **{phase.name: () for phases in files for phase in phases}})
    for before, after in (pair for phases in files for pair in pairwise(phases)):
        if before.name != after.name:
            graph.add(after.name, before.name)
    try:
        graph.prepare()
    except CycleError as error:
        circle = set(error.args[1])
        place = max(
            (phase.place for phases in files for phase in phases if phase.name in circle), key=lambda place: (place.file, place.line)
        )
        names = " and ".join(f"`{name}`" for name in sorted(circle))
        every = sorted({FIRST_PHASE, *(phase.name for phases in files for phase in phases)})
        return every, [RuleError(f"the phases {names} come before each other", place=place, help="name them in one order in all files")]
    ready, order = list(graph.get_ready()), []
    heapify(ready)
    while ready:
        order.append(heappop(ready))
        graph.done(order[-1])
        for name in graph.get_ready():
            heappush(ready, name)
    return order, []


def _staged(
    rules: list[Rule], names: Sequence[str], phases: Sequence[syntax.PhaseEntry]
) -> tuple[tuple[LibraryPhase, ...], list[RuleError]]:
    """The rules with phase (of `names`, in this order) and limit; what no phase names runs in `FIRST_PHASE`."""
    errors: list[RuleError] = []
    placed: dict[tuple[str, str], dict[str, int | None]] = {}
    directions: dict[str, set[str]] = {}
    joined: dict[str, Rule] = {}
    for rule in rules:
        directions.setdefault(rule.family, set()).add(_direction(rule))
        if rule.roots > 1:
            joined[rule.family] = rule
    for phase in phases:
        for name, limit, place in phase.entries:
            try:
                named = _named(name, directions, place)
            except RuleError as error:
                errors.append(error)
                continue
            if limit is None and named[0][0] in joined:
                errors.append(_unlimited(named[0][0], place))
            if any(phase.name in placed.get(each, {}) for each in named):
                errors.append(RuleError(f"`{name}` is twice in one phase", place=place, help="keep one of them"))
            elif limit == 0:
                errors.append(RuleError(f"`{name}` has the limit 0", place=place, help="leave the rule out instead"))
            for each in named:
                placed.setdefault(each, {})[phase.name] = limit
    errors += [_unlimited(name, rule.place) for name, rule in joined.items() if any((name, d) not in placed for d in directions[name])]
    staged: dict[str, list[Rule]] = {name: [] for name in names}
    for rule in rules:
        own = placed.get((rule.family, _direction(rule)), {FIRST_PHASE: None})
        for count, name in enumerate(name for name in names if name in own):
            again = rule.name if not count else f"{rule.name} in {name}"  # each phase has a rule of its own
            same = (rule.name, rule.phase, rule.limit) == (again, name, own[name])
            staged[name].append(rule if same else rule.changed(name=again, phase=name, limit=own[name]))
    return tuple(LibraryPhase(name, tuple(own)) for name, own in staged.items()), errors


def _unlimited(name: str, place: Place) -> RuleError:
    """The mistake of a rule that takes each match of a root together with those of the others, in every iteration those that it made."""
    help = f"say in which iterations it runs: phase {FIRST_PHASE} {{ {name} once }}"
    return RuleError(f"`{name}` has several roots and no limit", place=place, help=help)


def _direction(rule: Rule) -> str:
    """`reverse` of what the second reading of a `<=>` gave, `forward` of all else."""
    return REVERSE if rule.name.startswith(f"{rule.family}.{REVERSE}") else FORWARD


def _named(name: str, directions: Mapping[str, set[str]], place: Place) -> list[tuple[str, str]]:
    """The entry and the directions that a phase names: `name` is both, `name.forward` and `name.reverse` are one.

    Raises:
        RuleError: there is no such entry, or none with this direction beside another one.
    """
    if name in directions:
        return [(name, direction) for direction in sorted(directions[name])]
    family, _, direction = name.rpartition(".")
    if family not in directions:
        raise RuleError(f"there is no rule `{name}`", place=place, help="phases name rules by entry")
    if len(directions[family]) == 1:
        raise RuleError(f"`{family}` has one direction", place=place, help=f"write `{family}`")
    if direction not in directions[family]:
        help = f"write `{family}.{FORWARD}`, `{family}.{REVERSE}`, or `{family}` for both"
        raise RuleError(f"`{family}` has no direction `{direction}`", place=place, help=help)
    return [(family, direction)]
