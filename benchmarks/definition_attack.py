"""What ops mean, attacked as rules are: each definition beside the runtimes that compute its op, on adversarial inputs.

    nice -n 10 python -m benchmarks.definition_attack [OP ..] [--budget 900] [--seed 1] [--instances 40] [--entries] [--kept]

Nodes of every ONNX op that is defined in the rule language, and those of com.microsoft, are drawn (forms of all versions, types, ranks,
empty dims, attributes of every sign, operands given or not), computed by the definitions, by ONNX Runtime without optimization and by
ONNX's reference, and compared as docs/numerics.md has it; so are terms of CHLO and the hub's elementwise ops with XLA, and our own
kernels with NumPy and torch. A runtime lives in a process that is started again when it dies. What is found is kept at once, a line an op,
in `benchmarks/results/definition_attack.jsonl`, under a hash of the definitions and of these sources: another run goes on where this one
was; `--kept` says what is there.
Exit code 1 if there is a difference of which docs/undefined.md does not speak.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

import coset.dialects
from benchmarks.definitions.attack import RUNTIMES, Attack, Shown, attack, ops
from benchmarks.definitions.runtimes import workers

assert coset.dialects  # imported so that every op and definition is registered
ROOT = Path(__file__).resolve().parents[1]
MOST_OPS = 6  # that a line on an entry names
RESULTS = ROOT / "benchmarks" / "results" / "definition_attack.jsonl"


def key_of(seed: int, instances: int) -> str:
    """What results belong to: the definitions, the sources that draw and judge, and how much is drawn."""
    files = [*sorted((ROOT / "dialects").glob("*/*.rules")), *sorted((ROOT / "dialects").rglob("*.py"))]
    files += [path for path in sorted((ROOT / "benchmarks" / "definitions").glob("*.py")) if path.name != "known.py"]
    text = b"".join(path.read_bytes() for path in files)
    return blake2b(text + f"{seed} {instances}".encode(), digest_size=12).hexdigest()


def kept(file: Path) -> dict[str, Attack]:
    """The last results of each op."""
    rows = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    return {row["op"]: _read(row) for row in rows}


def _read(row: dict[str, Any]) -> Attack:
    counters = {name: Counter(row[name]) for name in ("comparisons", "entries", "silent", "rows", "unknown")}
    shown = [Shown(**{**each, "index": tuple(each["index"])}) for each in row["shown"]]
    return Attack(**{**row, **counters, "shown": shown})


def attacks(names: Iterable[str], file: Path, budget: float, seed: int, instances: int) -> Iterator[tuple[Attack, bool]]:
    """The attack on each op, and whether it is a new one, as long as there is time."""
    key, before, end = key_of(seed, instances), kept(file), time.monotonic() + budget
    file.parent.mkdir(parents=True, exist_ok=True)
    with workers(RUNTIMES) as runtimes:
        for name in names:
            last = before.get(name)
            if last is not None and last.key == key:
                yield last, False
                continue
            if time.monotonic() > end:
                continue
            found = attack(name, runtimes, seed=seed, instances=instances)
            found.key = key
            with file.open("a") as stream:
                stream.write(json.dumps({**vars(found), "shown": [vars(each) for each in found.shown]}) + "\n")
            yield found, True


def said(found: Attack) -> str:
    """One line on an op."""
    runs = ", ".join(f"{name} {count}" for name, count in sorted(found.comparisons.items())) or "nothing compared"
    rows = f"; on the page: {', '.join(f'{row} {count}' for row, count in sorted(found.rows.items()))}" if found.rows else ""
    unknown = f"; UNKNOWN: {', '.join(f'{what} {count}' for what, count in sorted(found.unknown.items()))}" if found.unknown else ""
    return f"{found.op}: {found.instances} nodes, {runs}{rows}{unknown}"


def by_entry(found: Iterable[Attack]) -> Iterator[str]:
    """A line on each entry: the ops whose nodes opened it, what computed them besides us, and why some did not."""
    attacks: dict[str, list[Attack]] = {}
    for each in found:
        for entry in each.entries:
            attacks.setdefault(entry, []).append(each)
    for entry, those in sorted(attacks.items()):
        runs, rows, unknown, silent = (
            sum((getattr(each, name) for each in those), Counter[str]()) for name in ("comparisons", "rows", "unknown", "silent")
        )
        ours = sum(count for reason, count in silent.items() if reason.startswith("ours"))
        why = ", ".join(f"{name} gave nothing {_of(silent, name)} times" for name in RUNTIMES if _of(silent, name))
        shown = ", ".join(each.op for each in those[:MOST_OPS]) + (" .." if len(those) > MOST_OPS else "")
        yield (
            f"{entry}: {shown}: {', '.join(f'{name} {count}' for name, count in sorted(runs.items())) or 'nothing compared'}; "
            f"{sum(rows.values())} differences on the page, {sum(unknown.values())} others"
            + (f"; {why}" if why else "") + (f"; {ours} refused by us" if ours else "")
        )  # fmt: skip


def _of(silent: Counter[str], runtime: str) -> int:
    return sum(count for reason, count in silent.items() if reason.startswith(f"{runtime}:"))


def main() -> int:
    """Attack the ops that are named, or all."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("ops", nargs="*", help="by default all (those of com.microsoft are called ms.NAME)")
    options.add_argument("--budget", type=float, default=float("inf"), help="seconds of the clock; another run goes on")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--instances", type=int, default=40, help="nodes of each op")
    options.add_argument("--results", type=Path, default=RESULTS)
    options.add_argument("--kept", action="store_true", help="say what earlier runs found, draw nothing")
    options.add_argument("--entries", action="store_true", help="a line on each entry of the definitions as well")
    options.add_argument("--silent", action="store_true", help="say why runtimes gave no result")
    given = options.parse_args()
    every = ops()
    for name in given.ops:
        if name not in every:
            options.error(f"no nodes of `{name}` are drawn")
    found = []
    names = given.ops or every
    last = [(each, False) for name, each in sorted(kept(given.results).items()) if name in names]
    for each, _ in last if given.kept else attacks(names, given.results, given.budget, given.seed, given.instances):
        found.append(each)
        print(said(each), flush=True)
        for shown in each.shown:
            if not shown.row:
                print(f"    {shown.runtime} ({shown.kind}, {shown.inputs}) {shown.instance} at {list(shown.index)}: "
                      f"ours {shown.ours}, theirs {shown.theirs}\n        {shown.numbers[:300]}")  # fmt: skip
        for reason, count in each.silent.most_common() if given.silent else ():
            print(f"    {count} without a result: {reason}")
    for line in by_entry(found) if given.entries else ():
        print(line)
    entries = {entry for each in found for entry in each.entries}
    compared = sum(sum(each.comparisons.values()) for each in found)
    unknown = sum(sum(each.unknown.values()) for each in found)
    print(f"{len(found)} ops, {sum(each.instances for each in found)} nodes, {compared} comparisons, {len(entries)} entries opened, "
          f"{sum(sum(each.rows.values()) for each in found)} differences that the page speaks of, {unknown} others")  # fmt: skip
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
