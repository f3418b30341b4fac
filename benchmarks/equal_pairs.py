"""Pairs of equal programs in other spellings, and how many `coset prove` proves.

    python -m benchmarks.equal_pairs [--form NAME] [--seconds 20] [--sample N] [--seed 0] [--record FILE] [--report]

The spellings are functions in `equal_elementwise`, `equal_movement`, `equal_linear` and `equal_networks`, each with several sizes, ranks,
element types and versions of the opset, some with names for dims. Both programs of each pair are run first, on drawn inputs: a pair that
differs by more than rounding is an error of this file and counts as none.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import onnx

from benchmarks import equal_elementwise, equal_linear, equal_movement, equal_networks, headroom
from benchmarks.pair_judging import compared, drawn, runners
from benchmarks.spelled_net import Spelled, spelled
from coset.ir.errors import CosetError
from coset.proving.prove import PROVED, Proving, prove

assert equal_elementwise and equal_linear and equal_movement  # they register their forms
GOAL = 0.9
SAME = ("none", "rounding")


@dataclass(frozen=True)
class Judged:
    """A pair with how its outputs differ when both are run, and what `prove` says."""

    name: str
    form: str
    differs: str
    answer: str
    said: str
    seconds: float


def pairs() -> list[Spelled]:
    """All pairs, those of torch's exporter where it is there."""
    return [*spelled(), *equal_networks.exported()]


def judged(pair: Spelled, seconds: float) -> Judged:
    """What is said of a pair."""
    runs = runners(pair.models)
    differs, reason = compared(runs, partial(drawn, pair.models[0], {}), None)
    if differs not in SAME:
        return Judged(pair.name, pair.form, differs, "not asked", reason, 0.0)
    with tempfile.TemporaryDirectory(prefix="coset-") as folder:
        paths = Path(folder) / "one.onnx", Path(folder) / "other.onnx"
        for path, model in zip(paths, pair.models, strict=True):
            onnx.save(model, path)
        started = time.perf_counter()
        try:
            found = prove(Proving(*paths, seconds=seconds))
        except CosetError as error:
            return Judged(pair.name, pair.form, differs, "error", error.message, time.perf_counter() - started)
    said = found.get("difference") or found.get("reason") or f"{found.get('steps', 0)} steps, {found.get('assurance') or 'no rule'}"
    return Judged(pair.name, pair.form, differs, found["answer"], str(said), time.perf_counter() - started)


def report(rows: Sequence[Judged]) -> list[str]:
    """The table by forms, the share, and all that are not proved."""
    forms = dict.fromkeys(row.form for row in rows)
    lines = []
    for name in forms:
        own = [row for row in rows if row.form == name]
        lines.append(
            f"{name:40s} {len(own):3d}: "
            + ", ".join(f"{word} {number}" for word, number in sorted(Counter(row.answer for row in own).items()))
        )
    asked = [row for row in rows if row.answer != "not asked"]
    proved = sum(row.answer == PROVED for row in asked)
    lines += ["", f"{len(forms)} spellings, {len(asked)} equal pairs: {proved} proved ({proved / max(1, len(asked)):.1%})"]
    lines += [line(row) for row in rows if row.answer != PROVED]
    return lines


def line(row: Judged) -> str:
    """One line of the table."""
    return (
        f"{row.answer:9s} {row.seconds:5.1f} s  {row.name}: {row.said[:200]}{'' if row.differs in SAME else f' (differs: {row.differs})'}"
    )


def judged_rows(given: argparse.Namespace, known: Mapping[str, Judged]) -> list[Judged]:
    """All rows that are asked for, those that are known as they are."""
    chosen = [pair for pair in pairs() if given.form in ("", pair.form)]
    chosen = chosen if given.sample is None else random.Random(given.seed).sample(chosen, min(given.sample, len(chosen)))
    rows = []
    for pair in chosen:
        row = known.get(pair.name)
        if row is None:
            row = judged(pair, given.seconds)
            print(line(row), file=sys.stderr, flush=True)
            if given.record is not None:
                with given.record.open("a") as file:
                    print(json.dumps(asdict(row)), file=file)
        rows.append(row)
    return rows


def main() -> None:
    """Prove the pairs and print the report; 1 where one is refuted or no pair, or too few are proved."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--form", default="", help="only this spelling")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each search of `prove`")
    parser.add_argument("--sample", type=int, help="so many pairs, drawn by --seed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--record", type=Path, help="a file of rows, to which each is added, and from which a run goes on")
    parser.add_argument("--report", action="store_true", help="judge nothing, print what the record holds")
    given = parser.parse_args()
    machine = headroom.machine()
    print(f"{machine['cpu']}, {machine['cores']} cores, load {machine['load']:.2f}; {time.strftime('%Y-%m-%d')}; {' '.join(sys.argv)}")
    if importlib.util.find_spec("torch") is None:
        print("torch is not installed: its exports are left out")
    known = {}
    if given.record is not None and given.record.exists():
        known = {row.name: row for row in (Judged(**json.loads(text)) for text in given.record.read_text().splitlines())}
    rows = list(known.values()) if given.report else judged_rows(given, known)
    print("\n".join(report(rows)))
    proved = sum(row.answer == PROVED for row in rows)
    sys.exit(any(row.answer in ("refuted", "not asked") for row in rows) or proved < GOAL * len(rows))


if __name__ == "__main__":
    main()
