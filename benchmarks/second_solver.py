"""What another solver says of the questions that the prover puts to Z3: cvc5, on the files of `coset check --smt DIR`, beside Z3's answers.

    coset check --smt questions rules/library/elementwise.rules
    python benchmarks/second_solver.py questions --seconds 10 --sample 500

Needs cvc5 and nothing else, not even coset. Where both answer they must say the same (exit code 1); where one does not, that is counted.
Questions whose text is the same but for comments are asked once. What was asked before is not asked again: answers lie in the folder,
in `second_solver.jsonl`. Each question is asked in a process of its own, which is ended after the time and a second.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

KEPT = "second_solver.jsonl"
ANSWERS = ("sat", "unsat")
GRACE = 5.0  # s of the clock for the process itself
STATUS = "(set-info :status "


@dataclass(frozen=True)
class Question:
    """One file: the text without comments and Z3's answer, and that answer."""

    file: Path
    text: str
    first: str

    @property
    def key(self) -> str:
        """What is the same for the same question."""
        return blake2b(self.text.encode(), digest_size=16).hexdigest()


def question(file: Path) -> Question:
    """The question in a file.

    Raises:
        ValueError: Z3's answer is not in it.
    """
    lines = [line for line in file.read_text(encoding="utf-8").splitlines() if not line.startswith(";")]
    told = [line for line in lines if line.startswith(STATUS)]
    if len(told) != 1:
        raise ValueError(f"{file} is no file of `coset check --smt`")
    return Question(file, "\n".join(line for line in lines if line not in told), told[0].removeprefix(STATUS).rstrip(")"))


def asked(text: str, seconds: float) -> str:
    """What cvc5 says: sat, unsat, unknown, or why it says nothing."""
    given = [sys.executable, str(Path(__file__).resolve()), "--one", str(seconds)]
    try:
        found = subprocess.run(given, input=text, capture_output=True, text=True, timeout=seconds + GRACE, check=False)
    except subprocess.TimeoutExpired:
        return "unknown: timeout"
    said = found.stdout.strip().splitlines()
    return said[-1] if found.returncode == 0 and said else f"error: {' '.join((found.stderr or found.stdout).split())[-200:]}"


def one(text: str, seconds: float) -> str:
    """The same, in this process."""
    import cvc5  # type: ignore[import-not-found, unused-ignore]

    terms = cvc5.TermManager()
    solver = cvc5.Solver(terms)
    solver.setOption("tlimit-per", str(round(seconds * 1000)))
    solver.setOption("fp-exp", "true")  # else it takes f32 and f64 only
    symbols = cvc5.SymbolManager(terms)
    parser = cvc5.InputParser(solver, symbols)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, text, "question")
    said = ""
    while True:
        command = parser.nextCommand()
        if command.isNull():
            return said
        said = str(command.invoke(solver, symbols)).strip() or said
        if said.startswith("(error"):
            return f"error: {said}"


def questions(folder: Path, sample: int | None, seed: int) -> list[Question]:
    """The different questions of a folder, or so many of them."""
    files = sorted(folder.glob("*.smt2"))
    if sample is not None and sample < len(files):
        files = sorted(random.Random(seed).sample(files, sample))
    return list({each.key: each for each in map(question, files)}.values())


def known(folder: Path) -> dict[str, dict[str, object]]:
    """What was answered before, by question and seconds."""
    file = folder / KEPT
    rows = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    return {f"{row['key']} {row['seconds']:g}": row for row in rows}


def answers(folder: Path, wanted: list[Question], seconds: float, until: float) -> Iterator[tuple[Question, str]]:
    """The second answer to each question, as long as there is time."""
    before = known(folder)
    with (folder / KEPT).open("a") as file:
        for each in wanted:
            row = before.get(f"{each.key} {seconds:g}")
            if row is None:
                if time.monotonic() > until:
                    return
                row = {
                    "key": each.key,
                    "file": each.file.name,
                    "seconds": seconds,
                    "first": each.first,
                    "second": asked(each.text, seconds),
                }
                file.write(json.dumps(row) + "\n")
                file.flush()
            yield each, str(row["second"])


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folder", type=Path, nargs="?")
    options.add_argument("--seconds", type=float, default=10.0, help="for a question")
    options.add_argument("--sample", type=int, help="at most so many files, drawn with a seed")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--budget", type=float, default=float("inf"), help="seconds for all; another run goes on")
    options.add_argument("--one", type=float, help=argparse.SUPPRESS)
    given = options.parse_args()
    try:
        if given.one is not None:
            print(one(sys.stdin.read(), given.one))
            return 0
        import cvc5  # type: ignore[import-not-found, unused-ignore]
    except ModuleNotFoundError:
        print("cvc5 is not installed: pip install cvc5, in an environment of its own", file=sys.stderr)
        return 2
    if given.folder is None or not given.folder.is_dir():
        options.error("name the folder of `coset check --smt`")
    wanted = questions(given.folder, given.sample, given.seed)
    counts: Counter[tuple[str, str]] = Counter()
    against, errors = [], []
    for each, second in answers(given.folder, wanted, given.seconds, time.monotonic() + given.budget):
        counts[each.first, re.split("[: ]", second)[0]] += 1
        if second.startswith("error"):
            errors.append(f"{each.file.name}: {second}")
        if each.first in ANSWERS and second in ANSWERS and each.first != second:
            against.append(f"{each.file.name}: Z3 says {each.first}, cvc5 {second}")
    total, both = sum(counts.values()), sum(n for (a, b), n in counts.items() if a in ANSWERS and b in ANSWERS)
    print(f"cvc5 {cvc5.__version__}, {given.seconds:g} s a question; {total} different questions of {len(wanted)} asked")
    for (first, second), number in sorted(counts.items()):
        print(f"  Z3 {first:8s} cvc5 {second:8s} {number:6d}")
    print(f"both answer {both}, and differ on {len(against)}")
    for line in (*against, *errors[:20]):
        print(line)
    return 1 if against else 0


if __name__ == "__main__":
    sys.exit(main())
