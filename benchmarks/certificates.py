"""Certificates of the whole model set: what they weigh, how long they take to make, and to check in a process without a search engine.

    python -m benchmarks.certificates [--only a,b] [--target cpu-onnxruntime] [--json]

`optimize` is the whole job without the certificate (one run); `with` the job that makes it; `check` is `coset verify` in a fresh process in
which egglog cannot be imported, start of Python and reading of both models included.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import headroom, models

BLOCKED = "import sys; sys.modules['egglog'] = None; sys.modules['egglog.bindings'] = None; from coset.cli import main; main()"
PLAIN = "from coset.cli import main; main()"


def _run(code: str, *arguments: str) -> tuple[float, int, dict[str, Any]]:
    started = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code, *arguments, "--json"], capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - started
    return seconds, done.returncode, json.loads(done.stdout) if done.stdout.strip() else {"error": done.stderr.strip()[-300:]}


def measure(path: Path, target: str) -> dict[str, Any]:
    """One model: seconds of the jobs, and what its certificate is."""
    with tempfile.TemporaryDirectory(prefix="coset-") as folder:
        out, proof = str(Path(folder) / "out.onnx"), str(Path(folder) / "proof")
        plain, code, report = _run(PLAIN, "optimize", str(path), "-o", out, "--target", target)
        if code:
            return {"error": report.get("error", f"exit code {code}")}
        made, code, report = _run(PLAIN, "optimize", str(path), "-o", out, "--target", target, "--certificate", proof)
        said = report.get("certificate") or {"ok": False, "reason": report.get("error", f"exit code {code}")}
        row = {"nodes": report.get("nodes"), "optimize": plain, "with": made, **said}
        if said["ok"]:
            row["check"], code, verdict = _run(BLOCKED, "verify", proof, str(path), out)
            row["holds"] = code == 0 and verdict["ok"]
        return row


HEAD = f"{'model':40s} {'nodes':>12s} {'optimize s':>10s} {'with s':>7s} {'check s':>8s} {'steps':>6s} {'bytes':>8s}  rests on"


def line(name: str, row: dict[str, Any]) -> str:
    """One line of the table."""
    if "error" in row:
        return f"{name:40s} failed: {row['error']}"
    nodes = f"{row['nodes']['before']} -> {row['nodes']['after']}" if row["nodes"] else ""
    text = f"{name:40s} {nodes:>12s} {row['optimize']:10.2f} {row['with']:7.2f}"
    if not row["ok"]:
        return f"{text}  none: {row['reason']}"
    return f"{text} {row['check']:8.2f} {row['steps']:6d} {row['bytes']:8d}  {row['assurance']}, {row['numerics']}" + (
        "" if row["holds"] else "  REJECTED"
    )


def main() -> None:
    """Run what was asked for and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="names, separated by commas")
    parser.add_argument("--target", default="cpu-onnxruntime")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    wanted = {name for name in given.only.split(",") if name}
    out = sys.stderr if given.json else sys.stdout
    machine = headroom.machine()
    print(f"{machine['cpu']}, {machine['cores']} cores, load {machine['load']:.2f}; target {given.target}", file=out)
    print(HEAD, file=out, flush=True)
    rows: dict[str, dict[str, Any]] = {}
    for model in models.available():
        if not wanted or model.name in wanted:
            rows[model.name] = measure(model.path, given.target)
            print(line(model.name, rows[model.name]), file=out, flush=True)
    good = [row for row in rows.values() if row.get("ok") and row["holds"]]
    slower = sum(row["check"] > row["optimize"] for row in good)
    print(f"{len(good)} of {len(rows)} certified and checked; checking took longer than optimizing for {slower}", file=out)
    if given.json:
        print(json.dumps({"machine": machine, "command": " ".join(sys.argv), "date": time.strftime("%Y-%m-%dT%H:%M:%S%z"), "rows": rows}))


if __name__ == "__main__":
    main()
