"""Pairs of programs that differ in one place, and what `coset prove` says of them: none that differ are proved.

    python -m benchmarks.different_pairs [--count 2000] [--seed 0] [--seconds 8] [--record FILE] [--op NAME] [--kind WORDS] [--modules N]
    python -m benchmarks.different_pairs --record FILE --report

Seeds are small models over all ops of the standard (`pair_seeds`), and modules of StableHLO; the differences are those of `pair_edits`.
Both programs of a pair run by ONNX Runtime, or where that has no kernel by ONNX's evaluator (modules: by ours), on inputs
of several kinds that are drawn here, not as `coset prove` draws its own. They are

    finite     some finite inputs give outputs of which a finite element, or one that is no float, differs by more than rounding
    nonfinite  the only differences are between infinities, NaN and numbers, or for inputs that are none
    rounding   the bits differ, by no more than rounding errors on inputs and constants move the outputs; it is also asked with `exact`
    none       no drawn input shows a difference

Of the last two kinds `prove` is asked for one pair in twenty.

A refutation counts as shown where the inputs that it names give outputs that differ when both programs are run here. Pairs are drawn op by
op, of each the kind of difference that was drawn least, until `--count` of the kind `finite` are there.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks import headroom
from benchmarks.pair_edits import Edit, edits
from benchmarks.pair_judging import Row, judged, judged_modules
from benchmarks.pair_modules import text_edits
from benchmarks.pair_seeds import Seed, modules, onnx_seeds, variants

GOAL = 0.95
RARELY = 5  # how much seldomer than others differences are drawn that no tolerance shows
TRIES = 12  # pairs in a row of one op of which none counts, until it is drawn no more


@dataclass
class Bucket:
    """All pairs of one op that are not drawn yet, by kind, those whose name has the words `kind`. `used`: how many of each kind were
    drawn; `idle`: since one counted."""

    op: str
    seeds: list[Seed]
    draw: random.Random
    kind: str = ""
    left: dict[str, list[tuple[Seed, Edit]]] | None = None
    used: Counter[str] = field(default_factory=Counter)
    idle: int = 0

    def _listed(self) -> dict[str, list[tuple[Seed, Edit]]]:
        """The differences of all seeds by kind."""
        if self.left is None:
            self.left = defaultdict(list)
            for seed in (variant for each in self.seeds for variant in variants(each)):
                for edit in edits(seed.model):
                    if self.kind in edit.kind:
                        self.left[edit.kind].append((seed, edit))
        return self.left

    def next(self) -> tuple[Seed, Edit] | None:
        """The next pair."""
        left = self._listed()
        kinds = [kind for kind, pairs in left.items() if pairs]
        if not kinds or self.idle >= TRIES:
            return None
        kind = min(sorted(kinds), key=lambda kind: (self.used[kind] * (RARELY if "ulp" in kind else 1), self.draw.random()))
        self.used[kind] += 1
        pairs = left[kind]
        return pairs.pop(self.draw.randrange(len(pairs)))


def buckets(seed: int, only: str = "", kind: str = "") -> list[Bucket]:
    """The pairs of ONNX models by op."""
    found: dict[str, list[Seed]] = defaultdict(list)
    for each in onnx_seeds():
        if not only or each.op == only:
            found[each.op].append(each)
    result = [Bucket(op, seeds, random.Random(f"{seed} {op}"), kind) for op, seeds in sorted(found.items())]
    random.Random(seed).shuffle(result)
    return result


def drawn(seed: int, only: str = "", kind: str = "") -> Iterator[tuple[Bucket, Seed, Edit]]:
    """Pairs of all ops in turn; who takes them counts in the bucket."""
    turn = buckets(seed, only, kind)
    while turn:
        for bucket in list(turn):
            found = bucket.next()
            if found is None:
                turn.remove(bucket)
                continue
            yield bucket, *found


@dataclass
class Record:
    """Rows by pair that were judged before, in a file to which new ones are added; a pair that was begun and has no row ended the
    process."""

    path: Path | None
    rows: dict[str, Row] = field(default_factory=dict)

    def read(self) -> None:
        """Read what there is."""
        begun: set[str] = set()
        for line in self.path.read_text().splitlines() if self.path is not None and self.path.exists() else ():
            found = json.loads(line)
            if "begun" in found:
                begun.add(found["begun"])
            else:
                self.rows[found["pair"]] = Row(**found)
        for pair in begun - self.rows.keys():
            self.rows[pair] = Row(pair, "", "", "not run", reason="the runtime ended the process")

    def add(self, line: object) -> None:
        """One line more."""
        if self.path is not None:
            with self.path.open("a") as file:
                print(json.dumps(line), file=file)


def run(count: int, seed: int, seconds: float, record: Record, only: str = "", kind: str = "") -> list[Row]:
    """Rows of pairs of ONNX models until `count` of them differ on finite inputs."""
    rows: list[Row] = []
    good = 0
    for bucket, start, edit in drawn(seed, only, kind):
        if good >= count:
            break
        pair = f"{start.name}: {edit.kind}: {edit.place}"
        row = record.rows.get(pair)
        if row is None:
            record.add({"begun": pair})
            row = judged(pair, start, edit, seconds)
            record.add(asdict(row))
            print(line(row), file=sys.stderr, flush=True)
        rows.append(row)
        good += row.differs == "finite"
        bucket.idle = 0 if row.differs == "finite" else bucket.idle + 1
    return rows


def run_modules(count: int, seed: int, seconds: float, record: Record) -> list[Row]:
    """Rows of `count` pairs of StableHLO modules that differ on finite inputs."""
    draw = random.Random(seed)
    every = [(name, op, text, list(text_edits(text))) for name, op, text in modules()]
    rows: list[Row] = []
    good = 0
    while good < count and any(left for *_, left in every):
        for name, op, text, left in every:
            if not left or good >= count:
                continue
            kind, place, changed = left.pop(draw.randrange(len(left)))
            pair = f"{name}: {kind}: {place}"
            row = record.rows.get(pair)
            if row is None:
                record.add({"begun": pair})
                row = judged_modules(pair, kind, op, (text, changed), seconds)
                record.add(asdict(row))
                print(line(row), file=sys.stderr, flush=True)
            rows.append(row)
            good += row.differs == "finite"
    return rows


# ---------------------------------------------------------------- the report


def line(row: Row) -> str:
    """One line of the table."""
    shown = "" if row.answer != "refuted" or row.shown else "NOT SHOWN "
    return f"{row.differs:10s} {row.answer:8s} {row.seconds:5.1f} s  {row.pair}  {shown}{row.reason[:160]}"


def report(rows: Sequence[Row]) -> list[str]:
    """The table by kinds and ops, the shares, and all that differ and were not refuted."""
    ran = [row for row in rows if row.differs != "not run"]
    lines = [f"{len(rows)} pairs drawn, {len(ran)} run; of them"]
    for differs in ("finite", "nonfinite", "rounding", "none"):
        own = [row for row in ran if row.differs == differs]
        lines.append(f"  {differs:10s} {len(own):5d}: {_counts(row.answer for row in own)}")
    for title, key in (("kind", "kind"), ("op", "op")):
        lines += ["", f"finite by {title}:"]
        for name, own in sorted(_by(key, [row for row in ran if row.differs == "finite"]).items()):
            lines.append(f"  {name:28s} {len(own):5d}: {_counts(row.answer for row in own)}")
    finite = [row for row in ran if row.differs == "finite"]
    refuted = sum(row.answer == "refuted" for row in finite)
    proved = sum(row.answer == "proved" for row in finite)
    lines += ["", f"that differ on finite inputs: {len(finite)}; refuted {refuted} ({refuted / max(1, len(finite)):.2%}), proved {proved}"]
    lines.append(f"by rounding, asked with exact: {_counts(row.exact for row in ran if row.differs == 'rounding')}")
    unseen = [row for row in ran if row.answer == "refuted" and not row.shown]
    lines.append(f"refutations that their own inputs do not show here: {len(unseen)}")
    lines += ["", "differ on finite inputs and are not refuted:", *(f"  {line(row)}" for row in finite if row.answer != "refuted")]
    odd = [row for row in ran if row.differs == "nonfinite" and row.answer != "refuted"]
    lines += ["", "differ by infinities and NaN alone and are not refuted:", *(f"  {line(row)}" for row in odd)]
    lines += ["", "refuted by inputs that show no difference here:", *(f"  {line(row)}" for row in unseen)]
    return lines


def _by(key: str, rows: Sequence[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[getattr(row, key)].append(row)
    return found


def _counts(words: Iterator[str]) -> str:
    return ", ".join(f"{word or 'not asked'} {number}" for word, number in sorted(Counter(words).items()))


def recorded(record: Record) -> list[Row]:
    """The rows of a record."""
    record.read()
    return list(record.rows.values())


def judged_rows(given: argparse.Namespace, record: Record) -> list[Row]:
    """All rows that are asked for, those on record as they are. Where there is a record a process of its own judges: the runtime may end
    it over a wrong model, and the next one goes on."""
    if given.record is not None and not given.child:
        while subprocess.run([sys.executable, "-m", "benchmarks.different_pairs", *sys.argv[1:], "--child"], check=False).returncode < 0:
            print("the runtime ended the process; going on", file=sys.stderr)
    record.read()
    rows = run_modules(given.modules, given.seed, given.seconds, record)
    return rows + run(given.count - given.modules, given.seed, given.seconds, record, given.op, given.kind)


def main() -> None:
    """Draw the pairs, print the report; 1 where one that differs is proved, or too few are refuted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000, help="pairs that differ on finite inputs")
    parser.add_argument("--modules", type=int, default=0, help="so many of them are StableHLO modules")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=8.0, help="of each search of `prove`")
    parser.add_argument("--record", type=Path, help="a file of rows, to which each is added, and from which a run goes on")
    parser.add_argument("--report", action="store_true", help="judge nothing, print what the record holds")
    parser.add_argument("--op", default="", help="only pairs of this op")
    parser.add_argument("--kind", default="", help="only kinds with these words")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    record = Record(given.record)
    started = time.time()
    rows = recorded(record) if given.report else judged_rows(given, record)
    if given.child:
        return
    machine = headroom.machine()
    print(f"{machine['cpu']}, {machine['cores']} cores, load {machine['load']:.2f}; {time.strftime('%Y-%m-%d')}; {' '.join(sys.argv)}")
    print(f"{sum(row.seconds for row in rows):.0f} s of proving, {time.time() - started:.0f} s since the last start")
    print("\n".join(report(rows)))
    finite = [row for row in rows if row.differs == "finite"]
    bad = any(row.answer == "proved" for row in finite) or sum(row.answer == "refuted" for row in finite) < GOAL * len(finite)
    sys.exit(bad)


if __name__ == "__main__":
    main()
