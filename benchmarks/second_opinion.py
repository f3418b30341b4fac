"""A second opinion on every entry that the lock file calls proved: at least 2,000 comparisons each on drawn and adversarial instances.

    nice -n 10 python -m benchmarks.second_opinion --budget 900

The tester draws instances of each form of an entry with one seed after the other, none of which `coset check` takes, and compares both
sides as the promise says. What it finds is kept at once, a line an entry, in `benchmarks/results/second_opinion.jsonl`, under the hash
of the entry's text and of the sources of the tester: another run goes on where this one was, and draws anew what has changed. Exit code 1
where an instance speaks against an entry.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path

import coset.dialects
from coset.prove.deadline import Late, Time, until
from coset.prove.sample import test_rule
from coset.rules.library import load
from coset.rules.lock import ASSURANCES, entry_of
from coset.rules.rule import Rule

assert coset.dialects  # imported so that every op and definition is registered
ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "second_opinion.jsonl"
TESTER = ("sample.py", "values.py", "error_bound.py")  # of `prove/`: what decides what is drawn and compared
FIRST_SEED = 1_000  # `coset check` draws with 0
CASES = 200  # that are asked for of each form with one seed
MOST_SEEDS = 64  # rules that seldom fire come to an end too
WANTED, SECONDS = 2_000, 120.0  # comparisons for an entry, and s of the processor


@dataclass(frozen=True)
class Opinion:
    """What drawing said of one entry: how many comparisons with how many seeds, and the first that failed. `short` says why there are
    fewer than were wanted."""

    entry: str
    hash: str
    comparisons: int
    seeds: int
    seconds: float
    counterexample: str = ""
    short: str = ""


def opinion(name: str, rules: Sequence[Rule], key: str, *, wanted: int = WANTED, seconds: float = SECONDS) -> Opinion:
    """The opinion on an entry, from so many comparisons or as many as there is time for."""
    started, limit = time.process_time(), Time.of(seconds)
    done = seeds = 0
    found = short = ""
    speaking = list(rules)
    try:
        with until(limit):
            while done < wanted and seeds < MOST_SEEDS and speaking and not found:
                for rule in list(speaking):
                    outcome = test_rule(rule, FIRST_SEED + seeds, max(1, CASES // len(speaking)))
                    done += outcome.cases
                    if not outcome.cases and seeds:
                        speaking.remove(rule)  # no element type of the rule fits its ops
                    if outcome.counterexample is not None:
                        found = str(outcome.counterexample)
                        break
                seeds += 1
    except Late:
        short = f"{seconds:g} s are over"
    if done < wanted and not found:
        short = short or ("no form has an instance" if not done else f"{seeds} seeds give no more")
    return Opinion(name, key, done, seeds, round(time.process_time() - started, 2), found, short)


def library(assurances: Container[str] = ("proved",)) -> dict[str, list[Rule]]:
    """The rules of the library by entry, of those entries that are locked as one of these."""
    entries: dict[str, list[Rule]] = {}
    for rule in load(with_definitions=False).rules:
        if rule.assurance in assurances and not rule.name.endswith(f" in {rule.phase}"):  # each once, whatever phases it runs in
            entries.setdefault(entry_of(rule), []).append(rule)
    return entries


def key_of(rules: Sequence[Rule]) -> str:
    """What an opinion belongs to: the text of the entry and the sources of the tester."""
    tester = b"".join((ROOT / "prove" / name).read_bytes() for name in TESTER)
    return blake2b(rules[0].text.encode() + tester, digest_size=12).hexdigest()


def kept(file: Path) -> dict[str, Opinion]:
    """The last opinion on each entry."""
    rows = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    return {row["entry"]: Opinion(**row) for row in rows}


def opinions(names: Iterable[str], file: Path, budget: float, seconds: float) -> Iterator[tuple[Opinion, bool]]:
    """The opinion on each entry, and whether it is a new one, as long as there is time."""
    entries, before, end = library(ASSURANCES), kept(file), time.monotonic() + budget
    file.parent.mkdir(parents=True, exist_ok=True)
    for name in names:
        rules = entries[name]
        key, last = key_of(rules), before.get(name)
        if last is not None and last.hash == key:
            yield last, False
            continue
        if time.monotonic() > end:
            continue
        found = opinion(name, rules, key, seconds=seconds)
        with file.open("a") as stream:
            stream.write(json.dumps(asdict(found)) + "\n")
        yield found, True


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("entries", nargs="*", help="by default all that are proved")
    options.add_argument("--first", type=int, help="the first so many alone")
    options.add_argument("--budget", type=float, default=float("inf"), help="seconds of the clock; another run goes on")
    options.add_argument("--seconds", type=float, default=SECONDS, help="of the processor for an entry")
    options.add_argument("--results", type=Path, default=RESULTS)
    given = options.parse_args()
    every = library(ASSURANCES)
    for name in given.entries:
        if name not in every:
            options.error(f"`{name}` is no entry of the library")
    names = (given.entries or sorted(library()))[: given.first]
    found = []
    for each, new in opinions(names, given.results, given.budget, given.seconds):
        found.append(each)
        if new:
            said = "REFUTED" if each.counterexample else each.short or "nothing against it"
            print(f"{each.entry}: {each.comparisons} comparisons, {each.seeds} seeds, {each.seconds:.1f} s: {said}", flush=True)
    against, short = ([each for each in found if getattr(each, what)] for what in ("counterexample", "short"))
    print(f"{len(found)} of {len(names)} entries, {sum(each.comparisons for each in found)} comparisons, "
          f"{sum(each.seconds for each in found):.0f} s; {len(short)} with fewer than {WANTED}; {len(against)} refuted")  # fmt: skip
    for each in against:
        print(f"\n{each.entry}\n{each.counterexample}")
    return 1 if against else 0


if __name__ == "__main__":
    sys.exit(main())
