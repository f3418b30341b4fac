"""Are limits kept while a rule explodes? Models under a limit of seconds, e-nodes, bytes and all: `python -m benchmarks.limits`.

Each run is a process of its own, whose search process is watched from outside: its growth is the most memory of its own (RssAnon, looked
at every 5 ms) beyond what it had when it was forked. A limit holds when what was measured is at most a tenth above it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from coset.egraph.limits import Limits
from coset.job.job import Job
from coset.job.machine import find_target
from coset.optimizing.pipeline import DEFAULT_TARGET, optimize_file

RULES = Path(__file__).with_name("exploding.rules")
FOLDER = Path.home() / ".cache" / "coset" / "models"
MODELS = ("train_mlp", "train_cnn", "bert_2l_d128_dyn", "gpt2_4l_d256", "llama_2l_dyn", "unet_gn", "mobilenetv2")
SECONDS, NODES, BYTES = 2.0, 10_000, 500 << 20
AMPLE = Limits(seconds=60.0, nodes=10**9, bytes=16 << 30)
LIMITS = {
    "seconds": Limits(SECONDS, AMPLE.nodes, AMPLE.bytes),
    "e-nodes": Limits(AMPLE.seconds, NODES, AMPLE.bytes),
    "bytes": Limits(AMPLE.seconds, AMPLE.nodes, BYTES),
    "all": Limits(SECONDS, NODES, BYTES),
}
SLACK = 1.1
EVERY = 0.005  # s, between looks at the search process


@dataclass(frozen=True)
class Row:
    """One run: what was limited and what was measured, s, e-nodes and MiB; `parent` is what the asking process grew by meanwhile."""

    model: str
    limit: str
    stop: str
    seconds: float
    enodes: int
    child: float
    parent: float
    input: int
    cost: float
    equal: bool
    kept: bool


class Watch(threading.Thread):
    """The growth of this process and of its search processes while `watching`, bytes."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.parent, self.child, self.watching = 0, 0, False
        self._first: dict[int, int] = {}
        self._start = _resident("self", "RssAnon")

    def run(self) -> None:
        while True:
            time.sleep(EVERY)
            for number in _children():
                try:
                    now = _resident(str(number), "RssAnon")
                    self.child = max(self.child, now - self._first.setdefault(number, now))
                except (OSError, StopIteration):  # it ended meanwhile
                    continue
            if self.watching:
                self.parent = max(self.parent, _resident("self", "RssAnon") - self._start)

    def progress(self, text: str) -> None:
        """Watch the asking process from the start of the search to that of extraction."""
        if text.startswith("searching") and not self.watching:
            self._start = _resident("self", "RssAnon")
        self.watching = text.startswith("searching")


def _resident(process: str, field: str) -> int:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(field))


def _children() -> Iterator[int]:
    for path in Path("/proc/self/task").glob("*/children"):
        yield from map(int, path.read_text().split())


def measured(model: Path, limit: str) -> Row:
    """One run in this process."""
    limits = LIMITS[limit]
    watch = Watch()
    watch.start()
    with tempfile.TemporaryDirectory() as folder:
        job = Job(str(model), find_target(DEFAULT_TARGET), "real", limits, (RULES,), {}, watch.progress)
        report: dict[str, Any] = optimize_file(job, Path(folder) / "out.onnx")
    egraph, cost = report["egraph"], report["cost"]
    seconds, enodes, child = report["seconds"]["saturate"], egraph["enodes"], watch.child
    within = (
        seconds <= limits.seconds * SLACK,
        enodes <= max(limits.nodes * SLACK, report["nodes"]["before"] * 3),
        child <= limits.bytes * SLACK,
    )
    kept = all(within) and report["check"]["ok"] and cost["output"] <= cost["input"] * (1 + 1e-9)
    return Row(
        model.stem, limit, egraph["stop"], seconds, enodes, child / (1 << 20), watch.parent / (1 << 20), report["nodes"]["before"],
        cost["output"] / cost["input"], report["check"]["ok"], kept,
    )  # fmt: skip


def in_a_process(model: Path, limit: str) -> Row:
    """One run in a fresh process."""
    command = [sys.executable, "-m", "benchmarks.limits", "--one", str(model), limit]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{model.name} under a limit of {limit}:\n{done.stderr}")
    return Row(**json.loads(done.stdout.splitlines()[-1]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", help="paths, or names of models in the cache")
    parser.add_argument("--json", action="store_true", help="one JSON object at the end")
    parser.add_argument("--one", nargs=2, metavar=("MODEL", "LIMIT"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(asdict(measured(Path(given.one[0]), given.one[1]))))
        return 0
    rows = []
    print(f"{SECONDS:g} s of search, {NODES} e-nodes, {BYTES >> 20} MiB, each to be kept within {SLACK - 1:.0%}; rules of {RULES.name}")
    print(
        f"{'model':18s} {'limit':8s} {'stop':10s} {'s':>7s} {'e-nodes':>8s} {'MiB':>6s} {'parent':>7s} {'cost/input':>10s}  answer  limits"
    )
    for name in given.models or MODELS:
        for limit in LIMITS:
            path = Path(name) if name.endswith(".onnx") else FOLDER / f"{name}.onnx"
            row = in_a_process(path, limit)
            rows.append(row)
            print(
                f"{row.model:18s} {row.limit:8s} {row.stop:10s} {row.seconds:7.2f} {row.enodes:8d} {row.child:6.0f} {row.parent:7.0f} "
                f"{row.cost:10.4f}  {'equal' if row.equal else 'OTHER':6s}  {'kept' if row.kept else 'MISSED'}", flush=True,
            )  # fmt: skip
    missed = sum(not row.kept for row in rows)
    print(f"{len(rows)} runs, {len(rows) - missed} kept, {missed} missed")
    if given.json:
        print(json.dumps({"runs": [asdict(row) for row in rows], "missed": missed}))
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
