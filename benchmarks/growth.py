"""Which entries of the rules lose a float type by the range of what they store, and how much of the rules' use that is.

    python -m benchmarks.growth [NAME ..] [--used] [--out benchmarks/results/growth-2cpu-2026-11-27.txt] [--lock]

Every entry of rules/library and every definition is graded by `prove.grades`, each direction for itself: `always`, `by count` (while ops
fold few elements), `by instance` (some numbers or sizes), `never`, with the growth of the worst instance: 2^h or a degree k. `drawn`:
measured, not shown. `--used` grades the entries that models use, and no others. The uses are those of results/rule_usage.json, counted by
entry: one is lost where no direction of its entry is ever admitted. What is `exact` cannot lose range; `real` and weaker words promise
none, and are told apart. `--lock` enters the grades into the lock files, beside what else is locked of the same texts (`coset check --all`
grades too, and proves everything anew).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import coset.dialects
from coset.ir.registry import all_ops
from coset.prove.grades import CLASSES, Grade, as_words, entry_grades
from coset.rules.library import load
from coset.rules.lock import NAME, Locked, entry_of, read_lock, save_lock, text_hash
from coset.rules.ranges import ALWAYS, NEVER
from coset.rules.rule import Rule

assert coset.dialects
USAGE = Path(__file__).parent / "results" / "rule_usage.json"
BINDING = ("reassociates", "approx", "within")  # words that promise a range
SLOW = 5.0  # s, after which an entry is named
Graded = Mapping[str, Mapping[str, Grade]]


def main() -> None:
    """Grade the entries that are asked for, and write what is lost."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--used", action="store_true")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--lock", action="store_true")
    arguments = parser.parse_args()
    start = time.perf_counter()
    entries = _entries(sorted(_uses()) if arguments.used else arguments.names)
    graded: dict[str, Graded] = {}
    for name, rules in entries.items():
        begun = time.perf_counter()
        graded[name] = entry_grades(rules)
        if time.perf_counter() - begun > SLOW:
            print(f"{name}: {time.perf_counter() - begun:.0f} s", file=sys.stderr, flush=True)
    if arguments.lock:
        _lock(entries, graded)
    lines = list(_report(entries, graded))
    lines.append(f"{len(entries)} entries in {time.perf_counter() - start:.0f} s")
    text = "\n".join(lines) + "\n"
    print(text, end="")
    if arguments.out is not None:
        arguments.out.write_text(text)


def _uses() -> Counter[str]:
    """How often the models use each entry."""
    uses: Counter[str] = Counter()
    for model in json.loads(USAGE.read_text())["models"].values():
        uses.update(model.get("rules", {}))
    return uses


def _entries(names: Sequence[str]) -> dict[str, list[Rule]]:
    """The rules by entry."""
    all_ops()
    found: dict[str, list[Rule]] = {}
    for rule in load().rules:
        if not names or entry_of(rule) in names:
            found.setdefault(entry_of(rule), []).append(rule)
    return dict(sorted(found.items()))


def _lock(entries: Mapping[str, Sequence[Rule]], graded: Mapping[str, Graded]) -> None:
    """Enter the grades into the lock files, where a line is of the same text."""
    folders: dict[Path, dict[str, Locked]] = {}
    for name, rules in entries.items():
        path = Path(rules[0].place.file).resolve().parent / NAME
        lines = folders.setdefault(path, read_lock(path))
        if name in lines and lines[name].hash == text_hash(rules[0].text):
            lines[name] = replace(lines[name], range=as_words(graded[name]))
    for path, lines in folders.items():
        save_lock(path, lines)


def _report(entries: Mapping[str, Sequence[Rule]], graded: Mapping[str, Graded]) -> Iterator[str]:
    for name in CLASSES:
        own = [grades[name] for each in graded.values() for grades in each.values() if name in grades]
        counts = Counter(grade.verdict for grade in own)
        drawn = sum(grade.drawn for grade in own)
        words = ", ".join(f"{count} {word}" for word, count in sorted(counts.items()))
        yield f"{name}: {words} ({drawn} drawn) of {len(own)} directions"
    yield ""
    yield "directions that are not always admitted (of words that promise a range, then of the others):"
    for binding in (True, False):
        for name, each in graded.items():
            promise = str(entries[name][0].numerics)
            if (promise.split()[0] in BINDING) == binding:
                for direction, grades in each.items():
                    if any(grade.verdict != ALWAYS for grade in grades.values()):
                        yield f"  {name} {direction} [{promise}] " + "; ".join(f"{key} {grade}" for key, grade in grades.items())
        yield ""
    yield from _usage(entries, graded)


def _usage(entries: Mapping[str, Sequence[Rule]], graded: Mapping[str, Graded]) -> Iterator[str]:
    uses = _uses()
    total = sum(uses.values())
    for name in ("f16", "f32"):
        lost: list[tuple[int, str, str]] = []
        open_: list[tuple[int, str, str]] = []
        for entry, count in uses.items():
            own = [grades[name] for grades in graded.get(entry, {}).values() if name in grades]
            if not own or str(entries[entry][0].numerics).split()[0] not in BINDING:
                continue
            text = "; ".join(f"{direction} {grades[name]}" for direction, grades in graded[entry].items() if name in grades)
            if all(grade.verdict == NEVER for grade in own):
                lost.append((count, entry, text))
            elif any(grade.verdict != ALWAYS for grade in own):
                open_.append((count, entry, text))
        for what, rows in (("lost", lost), ("lost for some instances or in one direction, at most", open_)):
            count = sum(row[0] for row in rows)
            yield f"uses {what} if all were {name}: {count} of {total} ({100 * count / max(1, total):.1f} %)"
            yield from (f"  {count:5d} {entry}: {text}" for count, entry, text in sorted(rows, reverse=True))
    yield ""


if __name__ == "__main__":
    main()
