"""TENSAT's seven graphs at their original sizes, and a modern set in the same form: seconds of search, e-graph, predicted saving, bound.

    python -m benchmarks.tensat_table [--target nvidia-a100] [--only a,b] [--modern] [--models FOLDER] [--build] [--repeat N] [--json]
                                      [--rules FILE] [--merges ROWS] [--measure [--variants N] [--budget-seconds S]]

Search is the saturation, from the terms of the program to the e-graph of its equals, with the whole library of rules under coset's own
limits. Of the kinds of TASO's and TENSAT's rules (120 with one output, 15 with two) the library has less than half; with `--rules
benchmarks/taso.rules` all but those about identity and averaging kernels are covered (`benchmarks.taso_rules` counts them). TENSAT's
column is what its paper prints (Yang et al., MLSys 2021): 50,000 nodes, 15 iterations, another machine; its speed-ups were measured on a
GPU. The saving here is a PREDICTION under the cost model whose files the hash names, no speed-up. `gap` says how far the choice may be
above the best of the e-graph under that model. `--merges` offers products of one operand as one, up to so many rows: what TENSAT's
multi-pattern rules do; without it a GPU's target does not, since no GPU was measured (decision 13).

`--measure` asks instead how the predictions rank latencies, those of ONNX Runtime on this CPU: no GPU is at hand. That a GPU's cost model
ranks a CPU's latencies is a weak statement. Across graphs it says little more than that both know which graph is larger; within a graph
the two machines may rightly disagree. It is given because nothing else was measured, beside what the CPU's own model reaches.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, TextIO

from benchmarks import headroom, latency_ranks, models, modern_models
from coset.comparing.reference import read_program
from coset.comparing.sizes import bindings
from coset.egraph.limits import Limits
from coset.job.job import Job
from coset.job.phases import phases_for
from coset.lowering.planning.primitive import primitive
from coset.packaging.searched import EVERY_OPSET
from coset.searching.solving import solve_task
from coset.searching.task import Task
from coset.targets import document
from coset.targets.target import Rate, Target, get_target

ROOT = Path(__file__).resolve().parent.parent
PRICES = ("extract/cost.py", "extract/work.py", "coset/pricing/*.py")
TENSAT = {  # graph: TASO's search s, TENSAT's search s, TASO's and TENSAT's speed-up %, from the paper
    "taso_bert": (13.6, 1.4, 8.5, 9.2),
    "taso_resnext50": (25.3, 0.7, 5.5, 8.8),
    "taso_nasneta": (1226.0, 10.6, 1.9, 7.3),
    "taso_nasrnn": (177.3, 0.5, 45.4, 68.9),
    "taso_inceptionv3": (68.6, 5.1, 6.3, 10.0),
    "squeezenet1_1": (16.4, 0.3, 6.7, 24.5),
    "vgg19": (8.9, 0.4, 8.9, 8.9),
}
SIZES = {
    "taso_bert": "8 layers, width 1024, 16 heads, 64 tokens, no softmax",
    "taso_resnext50": "224 x 224, 32 groups, no classifier",
    "taso_nasneta": "224 x 224, 128 to 512 channels, 5 normal cells a stage",
    "taso_nasrnn": "5 steps, hidden 512, 80 matrices",
    "taso_inceptionv3": "299 x 299, full width",
    "squeezenet1_1": "224 x 224, full width",
    "vgg19": "224 x 224, full width",
    "bert_base": "12 layers, width 768, 12 heads, 128 tokens",
    "vit_b16": "12 layers, width 768, 12 heads, 224 x 224 in patches of 16",
    "resnet50": "224 x 224, full width",
    **{name: model.sizes for name, model in modern_models.MODELS.items()},
}
MODERN = ("bert_base", "llama2_7b", "mixtral_block", "vit_b16", "resnet50", "unet_block", "whisper_base", "mamba_block")
LIMITS = Limits(seconds=30.0, nodes=200_000)


@dataclass(frozen=True)
class Row:
    """One graph: medians of seconds; predicted seconds of the program that was read, of the one chosen, and the bound."""

    name: str
    terms: int
    rules: int
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
    """A hash over the files that the target's numbers and forms are read from, and over the code that makes seconds of them."""
    paths = [*(file.path for file in document.own_document(target).files), *(path for name in PRICES for path in sorted(ROOT.glob(name)))]
    return sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()[:16]


def measure(path: Path, target: Target, rules: Sequence[Path], repeat: int) -> Row:
    """Search and extract `repeat` times, with further `rules`; the first time of a process, when rules are read, is not counted."""
    original = read_program(path)
    program = original.with_roots(primitive(original))
    job = Job(path, target, "reassociates", LIMITS, rules, {}, lambda _: None)
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
        path.stem, sum(1 for _ in program.terms()), sum(len(phase.rules) for phase in task.phases), statistics.median(searches),
        statistics.median(extractions), found.enodes, found.eclasses, found.iterations, found.stop, len(solved.parts), solved.input_cost,
        solved.cost, solved.lower_bound,
    )  # fmt: skip


def build(folder: Path, names: list[str]) -> None:
    """Make what is missing, what is not of `modern_models` with the model generator (needs torch)."""
    missing = [name for name in names if not (folder / f"{name}.onnx").exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for name in modern_models.MODELS.keys() & set(missing):
        modern_models.build(name, folder)
    wanted = [name for name in missing if name not in modern_models.MODELS]
    if wanted:
        subprocess.run([sys.executable, str(models.script()), "--full", "--out", str(folder), "--only", ",".join(wanted)], check=True)


HEAD = (
    f"{'graph':18s} {'terms':>6s} {'search s':>9s} {'TENSAT s':>9s} {'TASO s':>8s} {'extract s':>9s} {'e-nodes':>8s} {'classes':>8s} "
    f"{'stop':>10s} {'predicted ms':>19s} {'saving':>7s} {'gap':>6s} {'measured':>8s}  sizes"
)


def line(row: Row) -> str:
    """One line of the table."""
    taso, tensat, _, gain = TENSAT.get(row.name, (None, None, None, None))
    theirs = f"{tensat:9.1f} {taso:8.1f}" if tensat is not None else f"{'-':>9s} {'-':>8s}"
    predicted = f"{row.before * 1e3:8.3f} ->{row.after * 1e3:8.3f}"
    text = f"{row.name:18s} {row.terms:6d} {row.search:9.2f} {theirs} {row.extract:9.2f} {row.enodes:8d} {row.eclasses:8d} {row.stop:>10s}"
    gap = (row.after - row.bound) / row.after
    measured = f"{gain} %" if gain is not None else "-"
    return f"{text} {predicted:>19s} {row.saving:7.1%} {gap:6.1%} {measured:>8s}  {SIZES.get(row.name, '')}"


def wanted_target(name: str, merges: float | None) -> Target:
    """The target called `name`; with `merges`, one that has products of one operand merged up to so many rows."""
    target = get_target(name)
    return target if merges is None else replace(target, merges=Rate(merges, "rows", "asked for"))


def parser() -> argparse.ArgumentParser:
    """The options."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--target", default="nvidia-a100")
    options.add_argument("--only", default="", help="names, separated by commas")
    options.add_argument("--modern", action="store_true", help="the modern set instead")
    options.add_argument("--models", type=Path, default=models.cache().parent / "full", help="a folder of full-size models")
    options.add_argument("--build", action="store_true", help="make the models that are missing")
    options.add_argument("--repeat", type=int, default=3, help="how often each is searched, at least once")
    options.add_argument("--rules", type=Path, action="append", default=[], help="a file of rules to search with beside the library")
    options.add_argument("--merges", type=float, help="merge products of one operand up to so many rows")
    options.add_argument("--measure", action="store_true", help="instead of the table: predictions beside latencies on this CPU")
    options.add_argument("--variants", type=int, default=2, help="with --measure: copies of each target, whose choices are timed too")
    options.add_argument("--budget-seconds", type=float, default=6.0, help="with --measure: seconds of timing for each graph")
    options.add_argument("--json", action="store_true")
    return options


def table(paths: list[Path], arguments: argparse.Namespace, target: Target, out: TextIO) -> list[dict[str, Any]]:
    """The rows of the table, printed as they are made."""
    print(HEAD, file=out, flush=True)
    rows = []
    for path in paths:
        rows.append(measure(path, target, arguments.rules, arguments.repeat))
        print(line(rows[-1]), file=out, flush=True)
    for count in sorted({row.rules for row in rows}):
        print(f"searched with {count} rules, each form and each definition that is read from right to left counted as one", file=out)
    return [{**asdict(row), "saving": row.saving} for row in rows]


def ranks(paths: list[Path], arguments: argparse.Namespace, target: Target, out: TextIO) -> list[dict[str, Any]]:
    """The predictions of each graph's programs beside their latencies, printed as they are made, and how well they rank."""
    print(latency_ranks.HEAD, file=out, flush=True)
    rows = []
    for path in paths:
        if path.stem in modern_models.MODELS and modern_models.MODELS[path.stem].windows:
            print(f"{path.stem:18s} is not run: its weights take more memory than there is", file=out, flush=True)
            continue
        rows.append(latency_ranks.measure(path, target, LIMITS, arguments.variants, arguments.budget_seconds))
        print(latency_ranks.line(rows[-1]), file=out, flush=True)
    print(latency_ranks.text(latency_ranks.summary(rows), target.name), file=out)
    return rows


def main() -> None:
    """Run what was asked for and print the table."""
    arguments = parser().parse_args()
    names = [name for name in arguments.only.split(",") if name] or list(MODERN if arguments.modern else TENSAT)
    if arguments.build:
        build(arguments.models, names)
    out = sys.stderr if arguments.json else sys.stdout
    machine, target = headroom.machine(), wanted_target(arguments.target, arguments.merges)
    merged = "" if arguments.merges is None else f", products of one operand merged up to {arguments.merges:g} rows"
    said = f"target {arguments.target}, {frozen(arguments.target)}{merged}; at most {LIMITS.nodes} e-nodes, {LIMITS.seconds:g} s"
    said += "".join(f"; with {path}" for path in arguments.rules)
    print(f"{machine['cpu']}, {machine['cores']} cores, load {machine['load']:.2f}; {said}", file=out)
    found = {name: place for name in names if (place := next((p for p in places(arguments.models, name) if p.exists()), None))}
    for name in names:
        if name not in found:
            print(f"{name:18s} is not there: --build makes it", file=out)
    paths = list(found.values())
    rows = ranks(paths, arguments, target, out) if arguments.measure else table(paths, arguments, target, out)
    if arguments.json:
        document_ = {"machine": machine, "command": " ".join(sys.argv), "date": time.strftime("%Y-%m-%dT%H:%M:%S%z")}
        model = {
            "target": arguments.target,
            "hash": frozen(arguments.target),
            "merges": arguments.merges,
            "rules": list(map(str, arguments.rules)),
            "limits": asdict(LIMITS),
        }
        print(json.dumps({**document_, "cost_model": model, "rows": rows}))


def places(folder: Path, name: str) -> tuple[Path, ...]:
    """Where a model may be: among those of full size, or among the others."""
    return (folder / f"{name}.onnx", models.cache() / f"{name}.onnx")


if __name__ == "__main__":
    main()
