"""The lock file beside the rules: what each entry was shown to be, by which prover, the hash of its text, and a seal over all of that.

A seal is no signature: it tells a line that `coset check` wrote from one that was edited or damaged, not from one that was forged with
care. Against that there are proofs made anew (`coset check --all`, `coset verify --prove`) and the comparison on numbers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from coset.ir.errors import CosetError
from coset.ir.held import replacing
from coset.rules.rule import Rule

NAME = "rules.lock"
PROVER = "promise-4"  # changes when a verdict of the prover may change
ASSURANCES = ("proved", "bounded", "tested", "assumed")


@dataclass(frozen=True)
class Locked:
    """One line of a lock file."""

    hash: str
    assurance: str
    method: str = ""
    range: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # by direction the grades that are not `always`, by class


@lru_cache(maxsize=4096)
def text_hash(text: str) -> str:
    """The hash of an entry's canonical text under the present prover."""
    return hashlib.blake2b(f"{PROVER}\n{text}".encode(), digest_size=12).hexdigest()


def seal(name: str, line: Locked) -> str:
    """The hash of all that a line says, and of the prover that said it."""
    graded = [line.range] if line.range else []
    told = json.dumps([PROVER, name, line.hash, line.assurance, line.method, *graded], sort_keys=True)
    return hashlib.blake2b(told.encode(), digest_size=8).hexdigest()


def read_lock(path: Path) -> dict[str, Locked]:
    """The sealed lines of the lock file at `path`, by entry; none where there is no file.

    Raises:
        CosetError: the file is no lock file, or a line is not what was sealed.
    """
    if not path.exists():
        return {}
    stamp = path.stat()
    return dict(_read(path, stamp.st_mtime_ns, stamp.st_size))


@lru_cache(maxsize=16)
def _read(path: Path, _: int, __: int) -> dict[str, Locked]:
    """The lines of a file that has not changed since."""
    try:
        file = json.loads(path.read_text())
        if file["prover"] != PROVER:
            return {}  # what another prover said
        lines = {
            name: Locked(line["hash"], line["assurance"], line.get("method", ""), line.get("range", {}))
            for name, line in file["rules"].items()
        }
        seals = {name: line.get("seal") for name, line in file["rules"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CosetError(f"{path} is no lock file: {error}", help="remove it and run `coset check`") from None
    for name, line in lines.items():
        if seals[name] is not None and seals[name] != seal(name, line):
            raise CosetError(
                f"{path}: the line of `{name}` is not what `coset check` wrote: its seal does not fit",
                help="take the line out, or the whole file, and run `coset check`: what is missing is shown anew",
            )
    return {name: line for name, line in lines.items() if seals[name] is not None}


def save_lock(path: Path, lines: Mapping[str, Locked]) -> None:
    """Write a lock file, sorted, so that it reads well as a diff."""
    rules = {}
    for name, line in sorted(lines.items()):
        rules[name] = {**{key: value for key, value in vars(line).items() if value}, "seal": seal(name, line)}
    with replacing(path) as file:
        file.write((json.dumps({"prover": PROVER, "rules": rules}, indent=1) + "\n").encode())


def entry_of(rule: Rule) -> str:
    """The name of the entry that `rule` comes from."""
    return rule.definition or rule.family


def arrow(rule: Rule) -> str:
    """`=>` of a rule that reads its entry from left to right, `<=` of one that reads it from right to left."""
    return "<=" if rule.recognises or rule.name.startswith(f"{rule.family}.reverse") else "=>"


def assure(rules: Iterable[Rule], directory: Path) -> list[Rule]:
    """`rules` with the assurance and the grades that the lock file of `directory` gives them; without a line of the same text they are
    `assumed` and not graded."""
    lines = read_lock(directory / NAME)
    result = []
    for rule in rules:
        line = lines.get(entry_of(rule))
        known = line is not None and line.hash == text_hash(rule.text) and line.assurance in ASSURANCES
        assurance = line.assurance if known and line is not None else "assumed"
        grades = tuple(sorted(line.range.get(arrow(rule), {}).items())) if known and line is not None else ()
        same = (rule.assurance, rule.grades) == (assurance, grades)
        result.append(rule if same else rule.changed(assurance=assurance, grades=grades))
    return result
