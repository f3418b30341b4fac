"""What a search costs that keeps a log for certificates: seconds and memory with it over those without.

    python -m benchmarks.proof_log [--only NAMES] [--blocks N] [--json]

Each search runs in a process of its own, with and without the log in turn, block by block; ratios are medians over the blocks. Seconds are
of the search of the whole program alone (`coset.searching.solving.search_roots`), memory is the largest resident size of the process with
all that it imports and the model.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks import headroom, models

MODELS = ("bert_2l", "bert_12l_d192", "llama_2l_static", "vit_ti16_2l_sdpa", "unet_gn", "mobilenetv2", "mamba_like", "train_mlp")


def search(path: str, logged: bool) -> dict[str, float]:
    """Seconds and B of one search, in this process."""
    from coset.egraph.limits import Limits
    from coset.frontends.onnx.model import import_model
    from coset.job.job import Job
    from coset.job.phases import phases_for
    from coset.lowering.onnx.model import highest_opset
    from coset.searching.solving import search_roots
    from coset.searching.task import Task, usual_dims, wanted_roots
    from coset.targets.target import get_target

    program = import_model(Path(path))
    job = Job(Path(path), get_target("cpu-onnxruntime"), "reassociates", Limits(), (), {}, lambda _: None, certified=logged)
    task = Task(job, program, usual_dims(program, {}), phases_for(job, highest_opset(program)))
    started = time.perf_counter()
    search_roots(wanted_roots(task), task.phases, task)
    seconds = time.perf_counter() - started
    peak = sum(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return {"seconds": seconds, "bytes": peak * 1024}


def measure(path: Path, blocks: int) -> dict[str, Any]:
    """The medians of one model, and of the ratios in each block."""
    rows: dict[bool, list[dict[str, float]]] = {False: [], True: []}
    for _ in range(blocks):
        for logged in rows:
            command = [sys.executable, "-m", "benchmarks.proof_log", "--one", str(path), *(["--logged"] if logged else [])]
            rows[logged].append(json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
    row: dict[str, Any] = {}
    for key in ("seconds", "bytes"):
        row[key] = {
            "without": statistics.median(each[key] for each in rows[False]),
            "with": statistics.median(each[key] for each in rows[True]),
        }
        row[key]["ratio"] = statistics.median(b[key] / a[key] for a, b in zip(rows[False], rows[True], strict=True))
    return row


def main() -> None:
    """Print a line a model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(MODELS), help="names of models, separated by commas")
    parser.add_argument("--blocks", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--logged", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(search(arguments.one, arguments.logged)))
        return
    wanted = arguments.only.split(",")
    out = sys.stderr if arguments.json else sys.stdout
    machine = headroom.machine()
    print(f"{machine['cpu']}, {machine['cores']} cores, load {machine['load']:.2f}", file=out)
    print(f"{'model':24s} {'s':>8s} {'logged':>8s} {'ratio':>6s} {'MiB':>8s} {'logged':>8s} {'ratio':>6s}", file=out)
    rows = {}
    for model in models.available():
        if model.name in wanted:
            row = rows[model.name] = measure(model.path, arguments.blocks)
            cells = [f"{row[key]['without'] / unit:8.2f} {row[key]['with'] / unit:8.2f} {row[key]['ratio']:6.2f}" for key, unit in
                     (("seconds", 1), ("bytes", 1 << 20))]  # fmt: skip
            print(f"{model.name:24s} {' '.join(cells)}", file=out, flush=True)
    if arguments.json:
        print(json.dumps({"machine": machine, "command": " ".join(sys.argv), "date": time.strftime("%Y-%m-%dT%H:%M:%S%z"), "rows": rows}))


if __name__ == "__main__":
    main()
