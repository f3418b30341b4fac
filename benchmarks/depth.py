"""What depth costs: seconds to optimize stacks of 16, 32 and 64 layers, and the ratio of the deepest to the shallowest.

    python -m benchmarks.depth [--only bert,vit] [--layers 16,64] [--repeat N] [--whole] [--json]

`search` and `extract` are what grows with the number of different regions; `read` and `write` (import, folding, printing) handle
every node. The comparison with the original, which runs the model, is left out. Seconds are of the processor, of this
process and its children, the least of `--repeat`: other work on the machine does not change them much. `--whole` also solves the program
in one piece: `cost` is the predicted time of the result, whole over regions.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import onnx

from benchmarks.stacks import STACKS
from coset.egraph.limits import Limits
from coset.ir.collector import no_collection
from coset.job.job import Job
from coset.lowering.onnx.model import write
from coset.optimizing import pipeline
from coset.searching import regionwise
from coset.searching.solving import finish, solve_task
from coset.searching.usage import used_rules
from coset.targets.target import get_target


@dataclass(frozen=True)
class Measured:
    """Processor seconds of one run, and what it found."""

    read: float
    solve: float
    write: float
    nodes: int
    enodes: int
    regions: int
    places: int
    cost: float
    stop: str

    @property
    def total(self) -> float:
        """All of it."""
        return self.read + self.solve + self.write


def processor() -> float:
    """Processor seconds of this process and of its children that have ended."""
    return sum(u.ru_utime + u.ru_stime for u in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


def measure(path: Path, output: Path) -> Measured:
    """Optimize the model at `path` without the final comparison."""
    job = Job(path, get_target("cpu-onnxruntime"), "reassociates", Limits(), (), {}, lambda _: None)
    marks = [processor()]
    with no_collection():  # as `run_flow` does
        task = pipeline._read(job)
    marks.append(processor())
    with no_collection():
        solved, _ = solve_task(task, task.phases, pipeline._printable(task))
        marks.append(processor())
        program, _ = finish(task, solved)
        used_rules(solved)
        write(program, output)
    marks.append(processor())
    read, solve, written = (later - earlier for earlier, later in pairwise(marks))
    nodes = sum(1 for _ in task.program.terms())
    found = solved.saturation
    return Measured(read, solve, written, nodes, found.enodes, len(solved.parts), solved.places, solved.cost, found.stop)


HEAD = (
    f"{'stack':10s} {'layers':>6s} {'terms':>6s} {'e-nodes':>8s} {'stop':>10s} {'places':>6s} "
    f"{'read':>6s} {'solve':>6s} {'write':>6s} {'s':>6s}  ratio (solve)"
)


def line(name: str, layers: int, found: Measured, first: Measured) -> str:
    """One line of the table; ratios are to `first`."""
    counts = f"{name:10s} {layers:6d} {found.nodes:6d} {found.enodes:8d} {found.stop:>10s} {found.places:6d}"
    seconds = f"{found.read:6.2f} {found.solve:6.2f} {found.write:6.2f} {found.total:6.2f}"
    return f"{counts} {seconds}  {found.total / first.total:5.2f} ({found.solve / first.solve:.2f})"


def main() -> None:
    """Measure what was asked for and print a line each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(STACKS))
    parser.add_argument("--layers", default="16,32,64")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    depths = sorted(int(layers) for layers in arguments.layers.split(","))
    out = sys.stderr if arguments.json else sys.stdout
    print(HEAD, file=out)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "optimized.onnx"
        warm = Path(folder) / "warm.onnx"
        onnx.save(STACKS["bert"](1), warm)
        measure(warm, output)  # rules are read once a process
        for name in arguments.only.split(","):
            first: Measured | None = None
            for layers in depths:
                path = Path(folder) / f"{name}.onnx"
                onnx.save(STACKS[name](layers), path)
                best = min((measure(path, output) for _ in range(arguments.repeat)), key=lambda m: m.total)
                first = first or best
                row = {"stack": name, "layers": layers, **asdict(best), "total": best.total, "ratio": best.total / first.total}
                text = line(name, layers, best, first)
                if arguments.whole:
                    other = whole(path, output)
                    row["whole"] = asdict(other)
                    text += f"  whole: {other.solve:.2f} s, {other.enodes} e-nodes, cost {other.cost / best.cost:.9f}"
                rows.append(row)
                print(text, file=out, flush=True)
    if arguments.json:
        print(json.dumps({"command": " ".join(sys.argv), "rows": rows}))


def whole(path: Path, output: Path) -> Measured:
    """The same without regions."""
    cut = regionwise.cut
    try:
        regionwise.cut = lambda *_, **__: None  # type: ignore[assignment]
        return measure(path, output)
    finally:
        regionwise.cut = cut


if __name__ == "__main__":
    main()
