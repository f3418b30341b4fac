"""coset on every model and workload: does it go through, in what time and memory, and what is the result worth beside what users have.

    python -m benchmarks.cpu_models [--only a,b*] [--rounds N] [--budget-seconds S] [--threads N] [--no-timing] [--json] [--out FILE]

Each program is optimized in a process of its own (`coset optimize`), which checks the result against the original. Then it is timed in
another, in blocks in turn: the original at ONNX Runtime's levels off, basic and all, onnxsim and onnxscript before the full level, the
best form that `headroom` made by hand, and coset's result under the session options that it carries. A rival that fails or is wrong is a
note in the row. With --out a run goes on where one before it ended: rows of the file are kept, only those with an error are made again.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import onnx

from benchmarks import feeds, headroom, rivals
from benchmarks.verdict import Row, summary, why

BUDGET_SECONDS = 12.0
"""Seconds of timing for each program: no round begins after them, but for the least that an interval needs."""
HAND = Path(__file__).parent / "results" / "headroom-2cpu-2026-11-21.json"
"""Where the best forms by hand are named: a run of `headroom`, which searched for them."""
SHOWN = ("off", "basic", "all", "onnxsim", "onnxscript", "hand", "coset")
HEAD = (
    f"{'program':40s} {'nodes':>11s} {'e-nodes':>8s} {'stop':>10s} {'s':>6s} {'check':>6s} {'MiB':>5s} {'predicted ms':>17s}  "
    + " ".join(f"{name:>10s}" for name in SHOWN)
    + f"  {'over best rival (95 %)':>24s} {'vs all':>7s} {'by hand':>8s} {'share':>6s}"
)


def wanted(patterns: list[str]) -> Iterator[headroom.Task]:
    """The tasks of `headroom` whose name fits one of `patterns` (all without any)."""
    for task in headroom.tasks(set(), 0.0, 0):
        if not patterns or any(fnmatch.fnmatch(task["name"], pattern) for pattern in patterns):
            yield task


def optimized(task: headroom.Task, output: Path) -> Row:
    """The report of `coset optimize` run in its own process, with its peak memory in MiB; or `error`, the first line that it said."""
    dims = [f"--dim={name}={number}" for name, number in free_dims(task).items()]
    command = [sys.executable, "-m", "coset.cli", "optimize", task["path"], "-o", str(output), "--json", *dims]
    code = f"import resource, subprocess, sys; r = subprocess.run({command!r}); u = resource.getrusage(resource.RUSAGE_CHILDREN); "
    code += "print(u.ru_maxrss // 1024, file=sys.stderr); sys.exit(r.returncode)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    said = done.stderr.strip().splitlines()
    if done.returncode:
        errors = [line for line in said if line.startswith("error") or "Error" in line]
        return {"error": errors[0] if errors else " ".join(said[-2:-1])}
    return {**json.loads(done.stdout), "peak_mib": int(said[-1])}


def free_dims(task: headroom.Task) -> dict[str, int]:
    """Numbers for the named dims of the inputs, from the shapes of what they are fed."""
    found: dict[str, int] = {}
    model = onnx.load(task["path"], load_external_data=False)
    feed = feeds.make(model, task["stem"], 0)
    for value in model.graph.input:
        if value.name in feed:
            for dim, number in zip(value.type.tensor_type.shape.dim, feed[value.name].shape, strict=False):
                if dim.dim_param and dim.dim_param.isidentifier():
                    found[dim.dim_param] = int(number)
    return found


def forms() -> dict[str, Row]:
    """The best form by hand of each program for which `headroom` found one."""
    return {row["name"]: row["hand"] for row in json.loads(HAND.read_text())["rows"] if "hand" in row}


def row_of(task: headroom.Task, made: Row | None, *, rounds: int, budget: float, timing: bool) -> Row:
    """One program optimized and timed; `made` is its best form by hand."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "optimized.onnx"
        row: Row = {"name": task["name"], "commit": commit(), "load": os.getloadavg()[0], "report": optimized(task, output)}
        if "error" in row["report"]:
            return {**row, "error": row["report"]["error"]}
        if not timing:
            return row
        return row | headroom.run({**task, "rounds": rounds, "budget": budget, "hand": made, "coset": str(output)}, "benchmarks.beside")


def commit() -> str:
    """The commit of the working tree, short; empty outside of git."""
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=headroom.ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def line(row: Row) -> str:
    """One line of the table, and one for each thing that was wrong or failed."""
    report = row["report"]
    if "error" in report:
        return f"{row['name']:40s} {report['error'][:150]}"
    nodes, cost = report["nodes"], report["cost"]
    text = f"{row['name']:40s} {nodes['before']:5d} ->{nodes['after']:4d} {report['egraph']['enodes']:8d} {report['egraph']['stop']:>10s} "
    text += f"{report['seconds']['total'] - report['seconds']['check']:6.2f} {report['seconds']['check']:6.2f} {report['peak_mib']:5d} "
    text += f"{cost['input'] * 1e3:7.3f} ->{cost['output'] * 1e3:7.3f}"
    if "ms" in row:
        text += "  " + " ".join(f"{row['ms'][name]:10.3f}" if name in row["ms"] else f"{_absent(row, name):>10s}" for name in SHOWN)
    if "slowdown" in row:
        slowdown, share = row["slowdown"], row.get("share")
        text += f"  {slowdown['value']:6.2f} ({slowdown['low']:5.2f} to {slowdown['high']:5.2f})"
        text += f" {row['gain']['value']:7.2f}" if "gain" in row else f" {'':7s}"
        text += f" {row['headroom']['value']:8.2f}" if "headroom" in row else ""
        text += f" {share:6.0%}" if share is not None else ""
    return "\n".join([text, *problems(row)])


def _absent(row: Row, name: str) -> str:
    return "!" if name in row["wrong"] else "-"


def problems(row: Row) -> list[str]:
    """What was refused, wrong or failed, a line each."""
    refused = (row["report"].get("session") or {}).get("refused", [])
    said = [f"    not run at level {refusal['level']}: {refusal['problem']}" for refusal in refused]
    said += [f"    not timed: {why(row)}"] if "error" in row else []
    said += [f"    wrong: {name}, error {size:.1e} over {row['tolerance']:.0e}" for name, size in row.get("wrong", {}).items()]
    return said + [f"    failed: {name}: {reason[:120]}" for name, reason in row.get("failed", {}).items()]


def run_of() -> Row:
    """What a file of rows says of the run that made them; the rows are to come."""
    return {
        "machine": headroom.machine(), "date": time.strftime("%Y-%m-%dT%H:%M:%S%z"), "command": " ".join(sys.argv),
        "versions": rivals.versions(), "threads": rivals.THREADS, "rows": [],
    }  # fmt: skip


def main() -> None:
    """Run what was asked for and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="names or patterns, separated by commas")
    parser.add_argument("--rounds", type=int, default=12, help="rounds of timing, at most")
    parser.add_argument("--budget-seconds", type=float, default=BUDGET_SECONDS, help="seconds of timing for each program")
    parser.add_argument("--threads", type=int, default=rivals.THREADS, help="of each session")
    parser.add_argument("--no-timing", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--out", type=Path, help="write the rows to this file after each, and keep those that are there")
    arguments = parser.parse_args()
    out = sys.stderr if arguments.json else sys.stdout
    os.environ["BENCHMARK_THREADS"] = str(arguments.threads)  # for the processes that time
    document = {**run_of(), "threads": arguments.threads}
    kept = finished(arguments.out, timing=not arguments.no_timing)
    print(HEAD, file=out, flush=True)
    rows: list[Row] = []
    made = forms()
    settings = {"rounds": arguments.rounds, "budget": arguments.budget_seconds, "timing": not arguments.no_timing}
    for task in wanted([pattern for pattern in arguments.only.split(",") if pattern]):
        rows.append(kept.pop(task["name"], None) or row_of(task, made.get(task["name"]), **settings))
        print(line(rows[-1]), file=out, flush=True)
        if arguments.out:
            arguments.out.write_text(json.dumps({**document, "rows": [*rows, *kept.values()]}, indent=1) + "\n")
    if not arguments.no_timing:
        print(summary(rows), file=out)
    if arguments.json:
        print(json.dumps({**document, "rows": rows}))


def finished(path: Path | None, *, timing: bool) -> dict[str, Row]:
    """The rows of an earlier run that need not be made again, by name."""
    if path is None or not path.exists():
        return {}
    try:
        rows = json.loads(path.read_text())["rows"]
    except (ValueError, KeyError, TypeError):
        raise SystemExit(f"{path} holds no rows of an earlier run: take another name, or remove it") from None
    return {row["name"]: row for row in rows if "error" not in row and ("ms" in row or not timing)}


if __name__ == "__main__":
    main()
