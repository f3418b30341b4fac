"""Which entries of the rule files the models use: what `coset check` weighs its shares by.

    python -m benchmarks.rule_usage [NAME ..] [--out benchmarks/results/rule_usage.json] [--time-limit 30]

Every model at hand (`python -m benchmarks.models` builds them) is optimized for ONNX Runtime as `coset optimize` does it, comparison
included. `rules` counts for each entry the e-nodes and equalities of the chosen programs that it made (`coset/searching/usage.py`); a
model that a NAME names takes its new counts and leaves those of the others as they are.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import coset
import coset.dialects
from benchmarks import models
from coset.egraph.limits import Limits
from coset.ir.errors import CosetError
from coset.rules.library import load
from coset.rules.lock import entry_of

assert coset.dialects
OUT = Path(__file__).parent / "results" / "rule_usage.json"


def counted(path: Path, limits: Limits) -> dict[str, Any]:
    """The counts of one model by entry, or why it has none."""
    try:
        report = coset.optimize(path, limits=limits).report
    except CosetError as error:
        return {"failed": error.message.splitlines()[0]}
    entries = {rule.name: entry_of(rule) for rule in load().rules}
    counts: Counter[str] = Counter()
    for used in report["rules"]:
        counts[entries.get(used["name"], used["name"])] += used["count"]
    return {"nodes": report["nodes"], "stop": report["egraph"]["stop"], "rules": dict(sorted(counts.items()))}


def save(path: Path, rows: dict[str, Any]) -> None:
    """Write the rows by name, with where and how they were made."""
    heading = {
        "command": "python -m benchmarks.rule_usage",
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "machine": platform.processor() or platform.machine(),
    }
    beside = path.with_name(path.name + ".part")
    beside.write_text(json.dumps({**heading, "models": dict(sorted(rows.items()))}, indent=1) + "\n")
    beside.replace(path)


def main() -> None:
    """Count the models that are asked for, and write after each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--time-limit", type=float, default=30.0)
    arguments = parser.parse_args()
    rows: dict[str, Any] = json.loads(arguments.out.read_text())["models"] if arguments.names and arguments.out.exists() else {}
    for model in models.available():
        if arguments.names and model.name not in arguments.names:
            continue
        rows[model.name] = counted(model.path, Limits(seconds=arguments.time_limit))
        save(arguments.out, rows)
        print(f"{model.name}: {rows[model.name].get('failed') or len(rows[model.name]['rules'])}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
