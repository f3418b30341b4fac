"""Is `coset prove` as strong as `coset check`? Both sides of true rules as two programs, and what each says of them.

    python -m benchmarks.rules_as_pairs [--only NAME ..] [--instances 2] [--seconds 20] [--json FILE]

The rules are the true ones of `benchmarks/attacks`, none of which is in the library. Rules that ask for facts (positive, finite, ..) are
left out: a program does not say them. A pair is a small instance of a rule with the promise of the rule; a pair that `prove` does not prove
is listed with what was said.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import coset
import coset.dialects
from coset.ir.errors import CosetError
from coset.ir.program import Program
from coset.ir.term import INPUT, Term, topological
from coset.lowering.stablehlo.module import write_stablehlo
from coset.prove.check import Effort, check_rules
from coset.prove.sample import drawn
from coset.rules.library import check_files
from coset.rules.lock import entry_of
from coset.rules.rule import Rule

TRUE = sorted((Path(__file__).parent / "attacks").glob("true_*.rules"))


def entries() -> dict[str, list[Rule]]:
    """The true rules without facts, by entry."""
    rules, errors = check_files(TRUE)
    assert not errors, errors
    files, found = {str(path) for path in TRUE}, dict[str, list[Rule]]()
    for rule in rules.rules:
        if rule.place.file in files and not rule.facts:
            found.setdefault(entry_of(rule), []).append(rule)
    return found


def programs(pair: tuple[Term, Term]) -> Iterator[Program]:
    """Both sides with the inputs of both, in one order."""
    inputs = sorted({term for term in topological(pair) if term.op is INPUT}, key=lambda term: str(term.attribute("name")))
    for side in pair:
        roots = side.operands if side.op.name == "builtin.tuple" else (side,)
        yield Program(tuple(inputs), tuple((f"y{number}", root) for number, root in enumerate(roots)))


def answer(pair: tuple[Term, Term], numerics: str, seconds: float, folder: Path) -> tuple[str, str]:
    """What `prove` says of two sides, and why."""
    files = [folder / "left.mlir", folder / "right.mlir"]
    try:
        for program, path in zip(programs(pair), files, strict=True):
            write_stablehlo(program, path)
        said = coset.prove(*files, numerics=numerics, time_limit=seconds)
    except CosetError as error:
        return "error", error.message
    return str(said["answer"]), str(said.get("reason") or said.get("problem") or "")


def asked(rule: Rule) -> str:
    """The word to ask for: `exact` has no exceptions between programs."""
    word = rule.numerics.word
    return "reassociates" if word == "exact" and rule.numerics.exceptions else word


def rows(only: list[str], instances: int, seconds: float) -> Iterator[dict[str, Any]]:
    """A row for each pair."""
    for name, rules in entries().items():
        if only and name not in only:
            continue
        (verdict,) = check_rules(rules, effort=Effort(repaired=False))
        for pair in drawn(rules[0], 0, instances):
            started = time.perf_counter()
            with tempfile.TemporaryDirectory() as folder:
                said, why = answer(pair, asked(rules[0]), seconds, Path(folder))
            yield {
                "rule": name, "numerics": str(rules[0].numerics), "check": verdict.assurance, "prove": said, "why": why,
                "seconds": time.perf_counter() - started,
            }  # fmt: skip


def main() -> None:
    """Print a line for each pair that is not proved, and the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--instances", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    found: list[dict[str, Any]] = []
    for row in rows(arguments.only, arguments.instances, arguments.seconds):
        found.append(row)
        if row["prove"] != "proved":
            print(f"{row['rule']:40s} check {row['check']:8s} prove {row['prove']:8s} {row['numerics']}: {row['why'][:200]}", flush=True)
        if arguments.json:
            arguments.json.write_text(json.dumps(found, indent=1) + "\n")
    table = Counter((row["check"], row["prove"]) for row in found)
    for (checked, proved), count in sorted(table.items()):
        print(f"check {checked:8s} prove {proved:8s} {count:4d}")
    weaker = [row for row in found if row["check"] == "proved" and row["prove"] != "proved"]
    print(f"{len(found)} pairs of {len({row['rule'] for row in found})} rules; prove is weaker on {len(weaker)}")


if __name__ == "__main__":
    main()
