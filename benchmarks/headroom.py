"""How much can be won on this CPU over what ONNX Runtime already does, and where.

    python -m benchmarks.headroom [--only a,b] [--rounds N] [--budget-seconds S] [--quick] [--json] [--out FILE]

For each model and workload: ONNX Runtime with its optimizer off and all on, onnxsim and onnxscript in front of it, OpenVINO in f32, and
forms made by hand. Nothing here uses coset. A form whose outputs differ from the unoptimized program's is excluded and reported as wrong.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import onnx

from benchmarks import models, rivals
from benchmarks.table import heading, lines, summary
from benchmarks.workloads import WORKLOADS

ROOT = Path(__file__).resolve().parents[1]
BUDGET_SECONDS = 16.0
ROUNDS = 12
LEAST_BUDGET_SECONDS = 6.0
TOTAL_SECONDS = 1150.0
"""What a run may take unless --budget-seconds says otherwise: where rows before took long, those after get less."""
QUICK_BUDGET_SECONDS = 5.0
QUICK_ROUNDS = 3
GRACE_SECONDS = 120.0
"""A child that needs this much more than its budget is ended: loading, checking and a slow program may exceed a budget, a hang may not."""
CRASHES = 3

Task = dict[str, Any]
Row = dict[str, Any]


def tasks(only: set[str], budget: float, rounds: int) -> list[Task]:
    """Return what is to be measured, workloads first; `only` holds names, which may end in *, and is empty for everything."""
    common = {"budget": budget, "rounds": rounds, "skip": [], "failed": {}, "rivals": {}}
    common["openvino"] = rivals.versions()["openvino"] is not None
    found: list[Task] = []
    folder = models.cache().parent / "workloads"
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in WORKLOADS.items():
        if _wanted(name, only):
            path = folder / f"{name}.onnx"
            onnx.save(make().naive, path)
            found.append({**common, "kind": "workload", "name": name, "origin": "workload", "stem": name, "path": str(path)})
    for model in models.available():
        if _wanted(model.name, only):
            place = {"stem": model.path.stem, "path": str(model.path)}
            found.append({**common, "kind": "model", "name": model.name, "origin": model.origin, **place})
    return found


def _wanted(name: str, only: set[str]) -> bool:
    return not only or name in only or any(part.endswith("*") and name.startswith(part[:-1]) for part in only)


def share(budget: float, spent: float, rows_left: int) -> float:
    """Return the seconds of the next row: `budget`, or less where the total would not last; rows differ, so one may take twice its part."""
    return min(budget, max(LEAST_BUDGET_SECONDS, 2 * (TOTAL_SECONDS - spent) / rows_left))


def convert(task: Task) -> Task:
    """Return the task with the files that the converters made, and why one made none."""
    made = {kind: rivals.converted(kind, Path(task["path"])) for kind in rivals.CONVERTERS if rivals.versions()[kind] is not None}
    return {
        **task,
        "rivals": {kind: str(path) for kind, (path, _) in made.items() if path is not None},
        "failed": {kind: reason for kind, (path, reason) in made.items() if path is None},
    }


def run(task: Task, module: str = "benchmarks.measure") -> Row:
    """Measure a task by `module` in a child process; what crashes the child is named, skipped, and the rest is measured again."""
    task = convert(task)
    for _ in range(CRASHES):
        with tempfile.TemporaryDirectory() as folder:
            order, report = Path(folder) / "task.json", Path(folder) / "report.jsonl"
            order.write_text(json.dumps(task))
            command = [sys.executable, "-m", module, str(order), str(report)]
            try:
                limit = task["budget"] + GRACE_SECONDS
                done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=limit, check=False)
                reason = f"status {done.returncode}: {(done.stderr.strip().splitlines() or ['no message'])[-1][:200]}"
            except subprocess.TimeoutExpired:
                reason = f"no end after {limit:.0f} s"
            said = [json.loads(line) for line in report.read_text().splitlines()] if report.exists() else []
        if said and "row" in said[-1]:
            row: Row = said[-1]["row"]
            return row
        culprit = said[-1]["begin"] if said else "start"
        failure: Row = {"name": task["name"], "origin": task["origin"], "error": f"{culprit}: {reason}"}
        if culprit in ("start", "oracle", "timing") or culprit in task["skip"]:
            return failure
        task = {**task, "skip": [*task["skip"], culprit], "failed": {**task["failed"], culprit: reason}}
    return failure


def machine() -> dict[str, Any]:
    """Return what ran this: processor, cores, system, load."""
    cpu = next((line.split(":", 1)[1].strip() for line in _read("/proc/cpuinfo") if line.startswith("model name")), platform.processor())
    system = {"system": platform.platform(), "python": platform.python_version()}
    return {"cpu": cpu, "cores": os.cpu_count(), **system, "load": os.getloadavg()[0]}


def _read(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if Path(path).exists() else []


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.headroom", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", default="", help="names, separated by commas; a name may end in *")
    parser.add_argument("--rounds", type=int, help=f"rounds of the final timing, at most (default {ROUNDS})")
    parser.add_argument("--budget-seconds", type=float, help=f"seconds for each row (default {BUDGET_SECONDS:g}, less late in a long run)")
    smoke = f"a smoke run: {QUICK_ROUNDS} rounds, {QUICK_BUDGET_SECONDS:g} s for each model"
    parser.add_argument("--quick", action="store_true", help=smoke)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the table")
    parser.add_argument("--out", type=Path, help="also write the JSON object to this file, after every row")
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; return 1 when nothing could be measured."""
    options = parse(arguments)
    budget = options.budget_seconds or (QUICK_BUDGET_SECONDS if options.quick else BUDGET_SECONDS)
    rounds = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
    chosen = tasks({name for name in options.only.split(",") if name}, budget, rounds)
    if options.list:
        print("\n".join(task["name"] for task in chosen))
        return 0
    for line in notices(chosen, options.only):
        print(line, file=sys.stderr)
    if not chosen:
        return 1
    rows: list[Row] = []
    document = {
        "machine": machine(),
        "date": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "command": " ".join(["python -m benchmarks.headroom", *(arguments or sys.argv[1:])]),
        "versions": rivals.versions(),
        "threads": rivals.THREADS,
        "budget_seconds": budget,
        "rounds": rounds,
        "rows": rows,
    }
    text = io.StringIO() if options.json else sys.stdout
    print(heading(document), file=text)
    start = time.monotonic()
    for task in chosen:
        if options.budget_seconds is None:
            task["budget"] = share(budget, time.monotonic() - start, len(chosen) - len(rows))
        rows.append(run(task))
        print(*lines(rows[-1]), sep="\n", file=text, flush=True)
        if options.out is not None:
            options.out.write_text(json.dumps(document, indent=1) + "\n")
    print(summary(rows), file=text)
    if options.json:
        print(json.dumps(document))
    return 0 if any("error" not in row for row in rows) else 1


def notices(chosen: list[Task], only: str) -> list[str]:
    """Return one line for each thing that is missing, with what to install or run."""
    absent = [package for package, release in rivals.versions().items() if release is None]
    found = [f"note: {package} is not installed, its column is empty: pip install {package}" for package in absent]
    found += [f"note: no models from {package}: pip install {package}" for package in models.missing_packages()]
    if not models.built():
        found.append(f"note: no built models in {models.cache()}: python -m benchmarks.models (needs torch)")
    if not chosen:
        found.append(f"error: nothing is named {only}; --list prints the names")
    return found


if __name__ == "__main__":
    sys.exit(main())
