"""Recognise the whole corpus again and write down what is missed: `python tests/corpus/update.py [--report FILE] [NAME ..]`.

Entries that are recognised now leave `known_misses.txt`; new misses enter it with what was found (write the true reason there).
With NAMEs (parts of entries' names) only those are tried, and printed, and nothing is written.
"""

from __future__ import annotations

import sys
from pathlib import Path

from spellings import MISSES, Entry, entries, forbidden, known_misses, missing, near_misses, unknown

from coset.ir.errors import CosetError

HEAD = """# Entries of the corpus that are not recognised, each with the reason. `update.py` keeps the list; the test fails when an entry
# that is listed is recognised, or one that is not listed is missed.
"""


def main() -> None:
    """Try, write, report."""
    arguments = sys.argv[1:]
    report = Path(arguments.pop(arguments.index("--report") + 1)) if "--report" in arguments else None
    names = [name for name in arguments if name != "--report"]
    chosen = [entry for entry in entries() if not names or any(name in entry.name for name in names)]
    problems = {entry.name: problem for entry in chosen if (problem := _tried(entry))}
    near = [entry for entry in near_misses() if not names or any(name in entry.name for name in names)]
    taken = {entry.name: problem for entry in near if (problem := _near(entry))}
    for name, problem in (problems | taken).items():
        print(f"{name}: {problem}")
    shares: dict[str, list[bool]] = {}
    for entry in chosen:
        shares.setdefault(entry.folder, []).append(entry.name not in problems)
    lines = [f"{op}: {sum(found)} of {len(found)}" for op, found in sorted(shares.items())]
    total = f"{len(chosen) - len(problems)} of {len(chosen)} recognised; {len(taken)} of {len(near)} near-misses wrongly taken"
    print("\n".join([*lines, total]))
    if not names:
        reasons = known_misses()
        MISSES.write_text(HEAD + "".join(f"{name}: {_reason(reasons.get(name, ''), found)}\n" for name, found in problems.items()))
    if report is not None:
        causes: dict[str, list[str]] = {}
        for name, problem in (problems | taken).items():
            causes.setdefault(problem, []).append(f"`{name}`")
        body = "".join(f"- {problem}: {', '.join(found)}\n" for problem, found in causes.items())
        report.write_text("# Misses of the spelling corpus\n\n" + "\n".join([*lines, "", total, "", body]))


def _reason(old: str, found: str) -> str:
    """A reason that somebody wrote stays; what was found by the last run is replaced."""
    return old if old and not old.startswith(("no ", "found", "there is no", "error")) else found


def _tried(entry: Entry) -> str:
    try:
        return missing(entry)
    except CosetError as error:
        return f"error: {error.message}"


def _near(entry: Entry) -> str:
    if unknown(entry):
        return ""
    try:
        return forbidden(entry)
    except CosetError as error:
        return f"error: {error.message}"


if __name__ == "__main__":
    main()
