"""The lock file beside the rules: what each entry was shown to be, by which prover, and the hash of its text."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from coset.ir.errors import CosetError
from coset.rules.rule import Rule

NAME = "rules.lock"
PROVER = "test-1"  # changes when a verdict of the prover may change
ASSURANCES = ("proved", "bounded", "tested", "assumed")


@dataclass(frozen=True)
class Locked:
    """One line of a lock file."""

    hash: str
    assurance: str
    method: str = ""


@lru_cache(maxsize=4096)
def text_hash(text: str) -> str:
    """The hash of an entry's canonical text under the present prover."""
    return hashlib.blake2b(f"{PROVER}\n{text}".encode(), digest_size=12).hexdigest()


def read_lock(path: Path) -> dict[str, Locked]:
    """The lines of the lock file at `path`, by entry; none where there is no file.

    Raises:
        CosetError: the file is no lock file.
    """
    if not path.exists():
        return {}
    stamp = path.stat()
    return dict(_read(path, stamp.st_mtime_ns, stamp.st_size))


@lru_cache(maxsize=16)
def _read(path: Path, _: int, __: int) -> dict[str, Locked]:
    """The lines of a file that has not changed since."""
    try:
        lines = json.loads(path.read_text())["rules"]
        return {name: Locked(line["hash"], line["assurance"], line.get("method", "")) for name, line in lines.items()}
    except (ValueError, KeyError, TypeError) as error:
        raise CosetError(f"{path} is no lock file: {error}", help="remove it and run `coset check`") from None


def save_lock(path: Path, lines: Mapping[str, Locked]) -> None:
    """Write a lock file, sorted, so that it reads well as a diff."""
    rules = {name: {key: value for key, value in vars(lines[name]).items() if value} for name in sorted(lines)}
    path.write_text(json.dumps({"prover": PROVER, "rules": rules}, indent=1) + "\n")


def entry_of(rule: Rule) -> str:
    """The name of the entry that `rule` comes from."""
    return rule.definition or rule.family


def assure(rules: Iterable[Rule], directory: Path) -> list[Rule]:
    """`rules` with the assurance that the lock file of `directory` gives them; without a line of the same text, `assumed`."""
    lines = read_lock(directory / NAME)
    result = []
    for rule in rules:
        line = lines.get(entry_of(rule))
        known = line is not None and line.hash == text_hash(rule.text) and line.assurance in ASSURANCES
        assurance = line.assurance if known and line is not None else "assumed"
        result.append(rule if rule.assurance == assurance else rule.changed(assurance=assurance))
    return result
