"""TENSAT's seven graphs at their original sizes, and a modern set in the same form: seconds of search, e-graph, predicted saving, bound.

    python -m benchmarks.tensat_table [--target nvidia-a100] [--only a,b] [--modern] [--models FOLDER] [--build] [--repeat N] [--json]

Search is the saturation, from the terms of the program to the e-graph of its equals, with the whole library of rules (it has the kinds of
TENSAT's 120 single-pattern and 15 multi-pattern rules: associativity, commutativity, distribution, movement, concatenation, merges of
products and convolutions of one operand) under coset's own limits. TENSAT's column is what its paper prints (Yang et al., MLSys 2021):
50,000 nodes, 15 iterations, another machine; its speed-ups were measured on a GPU. The saving here is a PREDICTION under the cost model
whose files the hash names, no speed-up. `gap` says how far the choice may be above the best of the e-graph under that model.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

from benchmarks import headroom, models
from coset.egraph.limits import Limits
from coset.feeds import bindings
from coset.lower import EVERY_OPSET
from coset.lowering.primitive import primitive
from coset.reference import read_program
from coset.targets import document
from coset.targets.target import get_target
from coset.task import Job, Task, phases_for, solve_task

TENSAT = {  # graph: TASO's search s, TENSAT's search s, TASO's and TENSAT's speed-up %, from the paper
    "taso_bert": (13.6, 1.4, 8.5, 9.2),
    "taso_resnext50": (25.3, 0.7, 5.5, 8.8),
    "taso_nasneta": (1226.0, 10.6, 1.9, 7.3),
    "taso_nasrnn": (177.3, 0.5, 45.4, 68.9),
    "taso_inceptionv3": (68.6, 5.1, 6.3, 10.0),
    "squeezenet1_1": (16.4, 0.3, 6.7, 24.5),
    "vgg19": (8.9, 0.4, 8.9, 8.9),
}
MODERN = ("bert_base", "vit_b16", "resnet50", "unet_gn", "mamba_like")
LIMITS = Limits(seconds=30.0, nodes=200_000)


@dataclass(frozen=True)
class Row:
    """One graph: medians of seconds; predicted seconds of the program that was read, of the one chosen, and the bound."""

    name: str
    terms: int
    search: float
    extract: float
    enodes: int
    eclasses: int
    iterations: int
    stop: str
    regions: int
    before: float
    after: float
    bound: float

    @property
    def saving(self) -> float:
        """Predicted time of the input over that of the result, less 1, as TENSAT counts its speed-ups."""
        return self.before / self.after - 1


def frozen(target: str) -> str:
    """A hash over the files that the target's numbers and forms are read from."""
    return sha256(b"".join(file.path.read_bytes() for file in document.own_document(target).files)).hexdigest()[:16]


def measure(path: Path, target: str, repeat: int) -> Row:
    """Search and extract `repeat` times; the first time of a process, when rules are read, is not counted."""
    original = read_program(path)
    program = original.with_roots(primitive(original))
    job = Job(path, get_target(target), "reassociates", LIMITS, (), {}, lambda _: None)
    task = Task(job, program, dict(next(bindings(program, {}))), phases_for(job, EVERY_OPSET))
    searches, extractions = [], []
    for turn in range(repeat + 1):
        started = time.perf_counter()
        solved, searched = solve_task(task, task.phases)
        if turn:
            searches.append(searched)
            extractions.append(time.perf_counter() - started - searched)
    found = solved.saturation
    return Row(
        path.stem, sum(1 for _ in program.terms()), statistics.median(searches), statistics.median(extractions), found.enodes,
        found.eclasses, found.iterations, found.stop, len(solved.parts), solved.input_cost, solved.cost, solved.lower_bound,
    )  # fmt: skip


def build(folder: Path, names: list[str]) -> None:
    """Make what is missing with the model generator (needs torch)."""
    wanted = [name for name in names if not (folder / f"{name}.onnx").exists()]
    if wanted:
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, str(models.script()), "--full", "--out", str(folder), "--only", ",".join(wanted)], check=True)


HEAD = (
    f"{'graph':18s} {'terms':>6s} {'search s':>9s} {'TENSAT s':>9s} {'TASO s':>8s} {'extract s':>9s} {'e-nodes':>8s} {'classes':>8s} "
    f"{'stop':>10s} {'predicted ms':>19s} {'saving':>7s} {'gap':>6s}  TENSAT's measured"
)


def line(row: Row) -> str:
    """One line of the table."""
    taso, tensat, _, gain = TENSAT.get(row.name, (None, None, None, None))
    theirs = f"{tensat:9.1f} {taso:8.1f}" if tensat is not None else f"{'-':>9s} {'-':>8s}"
    predicted = f"{row.before * 1e3:8.3f} ->{row.after * 1e3:8.3f}"
    text = f"{row.name:18s} {row.terms:6d} {row.search:9.2f} {theirs} {row.extract:9.2f} {row.enodes:8d} {row.eclasses:8d} {row.stop:>10s}"
    gap = (row.after - row.bound) / row.after
    return f"{text} {predicted:>19s} {row.saving:7.1%} {gap:6.1%}" + (f"  {gain} %" if gain is not None else "")


def main() -> None:
    """Run what was asked for and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="nvidia-a100")
    parser.add_argument("--only", default="", help="names, separated by commas")
    parser.add_argument("--modern", action="store_true", help="the modern set instead")
    parser.add_argument("--models", type=Path, default=models.cache().parent / "full", help="a folder of full-size models")
    parser.add_argument("--build", action="store_true", help="make the models that are missing")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    names = [name for name in arguments.only.split(",") if name] or list(MODERN if arguments.modern else TENSAT)
    if arguments.build:
        build(arguments.models, names)
    out = sys.stderr if arguments.json else sys.stdout
    machine = headroom.machine()
    print(
        f"{machine['cpu']}, {machine['cores']} cores, load {machine['load']:.2f}; target {arguments.target}, {frozen(arguments.target)}",
        file=out,
    )
    print(HEAD, file=out, flush=True)
    rows = []
    for name in names:
        path = next((each for each in (arguments.models / f"{name}.onnx", models.cache() / f"{name}.onnx") if each.exists()), None)
        if path is None:
            print(f"{name:18s} is not there: --build makes it", file=out)
            continue
        rows.append(measure(path, arguments.target, arguments.repeat))
        print(line(rows[-1]), file=out, flush=True)
    if arguments.json:
        document_ = {"machine": machine, "command": " ".join(sys.argv), "date": time.strftime("%Y-%m-%dT%H:%M:%S%z")}
        model = {"target": arguments.target, "hash": frozen(arguments.target), "limits": asdict(LIMITS)}
        print(json.dumps({**document_, "cost_model": model, "rows": [{**asdict(row), "saving": row.saving} for row in rows]}))


if __name__ == "__main__":
    main()
