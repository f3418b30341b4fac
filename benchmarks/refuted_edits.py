"""Wrong edits of real models and what `coset prove` says of them: `refuted`, with inputs on which ONNX Runtime shows the difference.

    python -m benchmarks.refuted_edits [--count 100] [--seed 0] [--only a,b] [--seconds 10] [--json]

An edit counts when its difference exceeds the error bound on some inputs: on the benchmark's own, drawn for each model as its users feed
it, or on those that `prove` found, which are run again here. The bound is that of `coset.check.difference`: roundings of the largest
element, and the noise that one rounding error on inputs and weights makes in the original, up to a tenth of that element. What exceeds
it nowhere is drawn again.
`near`: the first differing node that was named is the edited one, or reads its value.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from benchmarks import feeds, headroom, models
from benchmarks.edits import Edit, Sites
from coset.backends.onnxruntime import Session
from coset.comparing.difference import difference
from coset.comparing.feeds import Feed
from coset.comparing.noise import largest_step, moved, nudged
from coset.comparing.reference import read_program
from coset.ir.errors import CosetError
from coset.lowering.onnx.model import write
from coset.proving.prove import PROVED, REFUTED, Proving, prove

OWN = 3  # seeds of the inputs that an edit is first looked at with
MOST = 60e6  # B of a model: an edited copy of each is written
KINDS = ("swapped operands", "axis", "scale", "mask", "dropped residual", "transpose", "constant", "operator")


@dataclass
class Bounded:
    """A model with the error bound of its outputs on any inputs."""

    model: models.Model
    folder: Path
    sites: Sites = field(init=False)
    program: Any = field(init=False)

    def __post_init__(self) -> None:
        self.sites, self.program = Sites(self.model.path), read_program(self.model.path)

    @cached_property
    def own(self) -> list[tuple[Feed, Feed, dict[str, float]]]:
        """Inputs as the model's users give them, with the outputs and their noise."""
        feeds_ = (feeds.make(self.sites.model, self.model.path.stem, seed) for seed in range(OWN))
        return [(feed, *found) for feed in feeds_ if (found := self.outputs(feed)) is not None]

    def outputs(self, feed: Feed) -> tuple[Feed, dict[str, float]] | None:
        """What the original gives, and how far one rounding error on inputs, or on weights, moves it; None where it refuses them."""
        noisy = self.folder / "noisy.onnx"
        if not noisy.exists():
            write(nudged(self.program, 1), noisy)
        first, other = Session(self.model.path), Session(noisy)
        try:
            wanted = first.run(feed)
        except CosetError:
            return None
        elsewhere = [first.run(moved(feed)), other.run(feed)]
        return wanted, {name: max(largest_step(each[name], value) for each in elsewhere) for name, value in wanted.items()}


def shows(edited: Session, feed: Feed, wanted: Feed, noise: Mapping[str, float]) -> bool:
    """Whether the edited model differs on `feed` by more than the bound."""
    found = edited.run(feed)
    return not all(difference("drawn", name, value, found[name], noise[name], exact=False, usual=0.0).ok for name, value in wanted.items())


def judged(bounded: Bounded, edit: Edit, model: onnx.ModelProto, seconds: float) -> dict[str, Any]:
    """What `prove` says of one edit, and whether what it says is so."""
    path, inputs = bounded.folder / "edited.onnx", bounded.folder / "inputs.npz"
    onnx.save(model, path)
    row: dict[str, Any] = {"model": bounded.model.name, "kind": edit.kind, "place": edit.place}
    try:
        session = Session(path)
        own = [shows(session, *each) for each in bounded.own]
        started = time.perf_counter()
        found = prove(Proving(bounded.model.path, path, seconds=seconds, counterexample=inputs))
    except CosetError as error:
        return {**row, "answer": "does not run", "reason": error.message}
    row |= {"answer": found["answer"], "seconds": time.perf_counter() - started, "own": any(own), "reason": found.get("reason")}
    if found["answer"] == REFUTED:
        with np.load(inputs) as arrays:
            feed = {name.removeprefix("input "): arrays[name] for name in arrays if name.startswith("input ")}
        expected = bounded.outputs(feed)
        row["shown"] = expected is not None and shows(session, feed, *expected)
        first = found["first_difference"]
        row |= {"difference": found["difference"], "first": first.get("words") or first["unknown"]}
        row["near"] = first.get("name") in bounded.sites.near(edit)
    return row


def counts(row: Mapping[str, Any]) -> bool:
    """Whether the edit changes the function beyond the error bound, as far as anybody saw."""
    return bool(row.get("own") or row.get("shown"))


def drawn(bounded: list[Bounded], count: int, seed: int, seconds: float) -> Iterator[dict[str, Any]]:
    """Rows of edits until `count` of them count: models in turn, of each the kind of which the fewest were drawn."""
    draw = random.Random(seed)
    tried: Counter[str] = Counter()
    good = place = 0
    while good < count and any(each.sites.by_kind for each in bounded):
        one = bounded[place % len(bounded)]
        place += 1
        kinds = [kind for kind in KINDS if one.sites.by_kind.get(kind)]
        for kind in sorted(kinds, key=lambda kind: (tried[kind], draw.random())):
            found = one.sites.draw(kind, draw)
            if found is not None:
                row = judged(one, *found, seconds)
                good += counts(row)
                tried[kind] += counts(row)
                yield row
                break


def line(row: Mapping[str, Any]) -> str:
    """One line of the table."""
    text = f"{row['model'][:32]:32s} {row['kind']:16s} {row['place'][:60]:60s} {row['answer']:12s}"
    if row["answer"] == REFUTED:
        where = "near" if row["near"] else f"named: {row['first']};"
        return f"{text} {row['seconds']:5.1f} s  {'' if row['shown'] else 'NOT SHOWN '}{where} {row['difference']}"
    return f"{text} {'VISIBLE ' if counts(row) else ''}{row['reason'] or ''}"


def summary(rows: list[dict[str, Any]]) -> list[str]:
    """What all rows say."""
    good = [row for row in rows if counts(row)]
    rest = Counter(row["answer"] for row in rows if not counts(row))
    refuted = [row for row in good if row["answer"] == REFUTED]
    kinds = Counter(row["kind"] for row in good)
    proved = sum(row["answer"] == PROVED for row in good)
    shown, near = (sum(row[key] for row in refuted) for key in ("shown", "near"))
    again = ", ".join(f"{number} {answer}" for answer, number in sorted(rest.items()))
    return [
        f"{len(good)} edits of {len({row['model'] for row in good})} models, whose difference exceeds the bound: {len(refuted)} refuted, "
        f"{shown} of them with inputs that show it; {proved} proved, {len(good) - len(refuted) - proved} unknown",
        f"kinds: {', '.join(f'{kind} {number}' for kind, number in sorted(kinds.items()))}",
        f"the first differing node that is named is the edited one, or reads its value: {near} of {len(refuted)}",
        f"drawn again, for no input was found that shows a difference: {sum(rest.values())} ({again})",
        f"median {np.median([row['seconds'] for row in refuted] or [0]):.2f} s an edit",
    ]


def main() -> None:
    """Draw the edits, print the table; 1 where one that counts was not refuted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="models, separated by commas")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each search of `prove`")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    wanted = {name for name in given.only.split(",") if name}
    out = sys.stderr if given.json else sys.stdout
    machine = headroom.machine()
    print(
        f"{machine['cpu']}, {machine['cores']} cores, load {machine['load']:.2f}; {time.strftime('%Y-%m-%d')}; {' '.join(sys.argv)}",
        file=out,
    )
    rows = []
    with tempfile.TemporaryDirectory(prefix="coset-") as folder:
        bounded = []
        for place, model in enumerate(models.available()):
            real = model.path.stat().st_size <= MOST and not model.name.startswith("light_")  # those have one number for all weights
            if model.name in wanted or (real and not wanted):
                own = Path(folder) / str(place)
                own.mkdir()
                bounded.append(Bounded(model, own))
        random.Random(given.seed).shuffle(bounded)
        for row in drawn(bounded, given.count, given.seed, given.seconds):
            rows.append(row)
            print(line(row), file=out, flush=True)
    print("\n".join(summary(rows)), file=out)
    if given.json:
        print(json.dumps({"machine": machine, "command": " ".join(sys.argv), "date": time.strftime("%Y-%m-%dT%H:%M:%S%z"), "rows": rows}))
    sys.exit(any(counts(row) and not row.get("shown") for row in rows))


if __name__ == "__main__":
    main()
