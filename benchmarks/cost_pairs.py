"""Does the cost model rank equal programs as this machine does? Pairs of equal programs of real models, predicted and timed.

    python -m benchmarks.cost_pairs [--target cpu] [--nodes 40-400] [--only a,b*] [--skip c] [--variants N] [--budget-seconds S] [--json]
        [--out FILE]

Each model is optimized for the target and for copies of it in which the speed of every kernel is drawn away from what it is (log-normal,
seeded): what is cheapest there is another program of the same e-graph. Each was compared with the original before it counts. Then all of a
model are timed in blocks in turn, under the session options of the first, and priced by the target as it is; the copies' prices take no
part. A pair counts when its times differ by more than 5 % and the 95 % interval of their ratio lies on one side of 1; it is right when
the predicted order is the measured one. `right_as_shipped` says the same of the numbers that coset comes with, where the target is what
`coset calibrate` made. With --out a run goes on where one before it ended.
"""

from __future__ import annotations

import argparse
import fnmatch
import itertools
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import onnx

import coset
from benchmarks import headroom
from benchmarks.beside import as_stored
from benchmarks.cpu_models import commit, finished, free_dims, run_of, wanted
from benchmarks.measure import Oracle, load
from benchmarks.rivals import Options, Run, open_ort
from benchmarks.verdict import Row
from coset.backends.onnxruntime import LEVELS
from coset.comparing import timing
from coset.extract.candidates import strayed
from coset.extract.select import reprice
from coset.job.machine import HERE, find_target
from coset.optimizing.running import stored
from coset.searching.task import usual_dims
from coset.targets.target import get_target

APART = 0.05
"""Times that differ by less are no test of a model."""
SHIPPED = "cpu-onnxruntime"


@dataclass(frozen=True)
class Made:
    """A program in a file, with its nodes, and its predicted seconds under the target and under the numbers that coset comes with."""

    path: Path
    nodes: int
    predicted: float
    shipped: float


def programs(task: headroom.Task, name: str, variants: int, folder: Path) -> list[Made]:
    """Distinct programs that equal the task's; the first is the one that is handed out for the target `name`."""
    target = find_target(name)
    given = free_dims(task)
    found: dict[bytes, Made] = {}
    for seed in range(variants + 1):
        made = coset.optimize(task["path"], target=strayed(target, seed) if seed else target, dims=given)
        path = folder / f"{seed}.onnx"
        made.save(path)
        dims = usual_dims(made.program, given)
        costs = [reprice(made.program.roots, each, dims) for each in (target, get_target(SHIPPED))]
        found.setdefault(path.read_bytes(), Made(path, made.report["nodes"]["after"], *costs))
    return list(found.values())


def timed(task: headroom.Task, files: Sequence[Path], rounds: int, budget: float) -> dict[str, timing.Timing]:
    """Each file's times, all under the options that the first one carries."""
    model, _ = load(task)
    oracle = Oracle(model, task["stem"])
    runs = {str(place): _under(file, files[0]) for place, file in enumerate(files)}
    return timing.measure({name: oracle.program(run) for name, run in runs.items()}, timing.Protocol(rounds, budget))


def _under(file: Path, first: Path) -> Run:
    own = stored(first)
    if own is None:
        return as_stored(file)
    threads = Options().threads if own.threads is None else own.threads
    return open_ort(file, Options(LEVELS[own.level].name, own.disabled, threads, entries=own.entries))


def row_of(task: headroom.Task, name: str, variants: int, rounds: int, budget: float) -> Row:
    """One model: its programs with predicted and measured ms, and all pairs of them."""
    row: Row = {"name": task["name"], "commit": commit(), "load": os.getloadavg()[0]}
    with tempfile.TemporaryDirectory() as folder:
        try:
            made = programs(task, name, variants, Path(folder))
        except coset.CosetError as error:
            return {**row, "error": str(error).splitlines()[0]}
        found = timed(task, [each.path for each in made], rounds, budget)
    row["programs"] = [
        {"nodes": each.nodes, "predicted_ms": each.predicted * 1e3, "shipped_ms": each.shipped * 1e3, "ms": found[str(place)].median * 1e3}
        for place, each in enumerate(made)
    ]
    row["ms"] = row["programs"][0]["ms"]
    row["pairs"] = list(_pairs(made, found))
    return row


def _pairs(made: Sequence[Made], found: dict[str, timing.Timing]) -> Iterator[Row]:
    for first, second in itertools.combinations(range(len(made)), 2):
        measured = timing.ratio(found[str(first)], found[str(second)])
        predicted, shipped = made[first].predicted / made[second].predicted, made[first].shipped / made[second].shipped
        yield {"programs": [first, second], "predicted": predicted, "shipped": shipped, "measured": vars(measured)}


def told_apart(pair: Row) -> bool:
    """Whether the machine says which of the two is faster."""
    ratio = pair["measured"]
    return (ratio["value"] > 1 + APART and ratio["low"] > 1) or (ratio["value"] < 1 / (1 + APART) and ratio["high"] < 1)


def right(pair: Row, by: str = "predicted") -> bool:
    """Whether the prediction says the same; equal predictions do not."""
    return bool((pair[by] - 1) * (pair["measured"]["value"] - 1) > 0)


def line(row: Row) -> str:
    """One line of the table."""
    if "error" in row:
        return f"{row['name']:40s} {row['error'][:120]}"
    pairs = [pair for pair in row["pairs"] if told_apart(pair)]
    said = "  ".join(f"{each['nodes']}: {each['predicted_ms']:.3f}/{each['ms']:.3f}" for each in row["programs"])
    return f"{row['name']:40s} {sum(map(right, pairs)):4d} of {len(pairs):3d}   {said}"


def summary(rows: Sequence[Row]) -> Row:
    """Over all models: pairs that the machine tells apart, those predicted right, and the same with each model counted once; how well
    predictions rank programs of different models (Spearman's rho) and how far they are off."""
    from scipy.stats import spearmanr

    good = [row for row in rows if "pairs" in row]
    pairs = [[pair for pair in row["pairs"] if told_apart(pair)] for row in good]
    every = [pair for found in pairs for pair in found]
    shares = [sum(map(right, found)) / len(found) for found in pairs if found]
    predicted = [each["predicted_ms"] for row in good for each in row["programs"]]
    measured = [each["ms"] for row in good for each in row["programs"]]
    off = sorted(abs(p - m) / m for p, m in zip(predicted, measured, strict=True))
    return {
        "models": len(good), "programs": len(measured), "pairs": sum(len(row["pairs"]) for row in good), "told_apart": len(every),
        "right": sum(map(right, every)), "right_as_shipped": sum(right(pair, "shipped") for pair in every),
        "share": sum(map(right, every)) / len(every) if every else None,
        "share_by_model": sum(shares) / len(shares) if shares else None,
        "spearman": float(spearmanr(predicted, measured).statistic) if len(measured) > 2 else None,
        "median_relative_error": off[len(off) // 2] if off else None,
    }  # fmt: skip


def chosen(given: argparse.Namespace) -> Iterator[headroom.Task]:
    """The models that are asked for."""
    for task in wanted([pattern for pattern in given.only.split(",") if pattern]):
        skipped = any(fnmatch.fnmatch(task["name"], pattern) for pattern in filter(None, given.skip.split(",")))
        if not skipped and (given.nodes is None or given.nodes[0] <= nodes_of(task) <= given.nodes[1]):
            yield task


def nodes_of(task: headroom.Task) -> int:
    """How many nodes the model's own graph has, without those of branches."""
    return len(onnx.load(task["path"], load_external_data=False).graph.node)


def span(text: str) -> tuple[int, int]:
    """`40-400` as two numbers."""
    least, _, most = text.partition("-")
    return int(least), int(most)


def main() -> None:
    """Run what was asked for and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default=HERE, help="whose predictions; `cpu` is what was calibrated here, if it was")
    parser.add_argument("--nodes", type=span, help="only models whose graphs have from so many nodes to so many, as 40-400")
    parser.add_argument("--only", default="", help="names or patterns, separated by commas")
    parser.add_argument("--skip", default="", help="the same, of models to leave out")
    parser.add_argument("--variants", type=int, default=4, help="copies of the target for each model")
    parser.add_argument("--rounds", type=int, default=15, help="rounds of timing, at most")
    parser.add_argument("--budget-seconds", type=float, default=6.0, help="seconds of timing for each model")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--out", type=Path, help="write the rows to this file after each, and keep those that are there")
    arguments = parser.parse_args()
    out = sys.stderr if arguments.json else sys.stdout
    document = run_of()
    kept = finished(arguments.out, timing=True)
    print(f"{'program':40s} {'right of told apart':>11s}   nodes: predicted/measured ms of each program", file=out, flush=True)
    rows: list[Row] = []
    for task in chosen(arguments):
        settings = (arguments.target, arguments.variants, arguments.rounds, arguments.budget_seconds)
        rows.append(kept.pop(task["name"], None) or row_of(task, *settings))
        print(line(rows[-1]), file=out, flush=True)
        if arguments.out:
            arguments.out.write_text(json.dumps({**document, "rows": [*rows, *kept.values()]}, indent=1) + "\n")
    document |= {"rows": rows, "summary": summary(rows)}
    print("\n" + "\n".join(f"{name}: {value}" for name, value in document["summary"].items()), file=out)
    if arguments.json:
        print(json.dumps(document))


if __name__ == "__main__":
    main()
