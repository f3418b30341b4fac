"""What the programs of `gpu --part models` are predicted to take on a target, beside what was measured there.

    python -m benchmarks.gpu_predicted [--only NAME ..] [--measured FILE.json] [--target nvidia-h200] [--json] [--tiny]

Each is exported by torch, lowered as `coset lower` does, and priced; nothing runs. `--measured`: a result of `benchmarks.gpu --part models`
(the last one that is kept, unless another is named), whose medians of ours and of torch.compile are shown, in milliseconds. It was measured
with the programs as they were lowered then.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).with_name("results")


def main() -> int:
    """Print the table, or one object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[], help="only these programs")
    parser.add_argument("--measured", type=Path)
    parser.add_argument("--target", default="nvidia-h200")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--tiny", action="store_true", help="small sizes: that the commands work, and nothing else")
    given = parser.parse_args()
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    from benchmarks.gpu_blocks import prepare
    from benchmarks.gpu_models import MODELS

    kept = sorted(RESULTS.glob(f"gpu-models-{given.target}-*.json"))
    path = given.measured or (kept[-1] if kept else None)
    measured = {} if path is None else medians(json.loads(path.read_text()))
    rows = []
    for name in given.only or MODELS:
        with tempfile.TemporaryDirectory() as folder:
            made = prepare("models", name, Path(folder), given.target, "cpu", tiny=given.tiny)
        rows.append({"program": name, "predicted_s": made["predicted_s"], "kernels": made["kernels"], **measured.get(name, {})})
        if not given.json:
            print(line(rows[-1]) if len(rows) > 1 else f"{HEAD}\n{line(rows[-1])}", flush=True)
    if given.json:
        print(json.dumps({"target": given.target, "measured": path and path.name, "rows": rows}))
    return 0


HEAD = f"{'program':16}{'predicted ms':>14}{'ours then ms':>14}{'torch.compile ms':>18}  kernels"


def line(row: dict[str, Any]) -> str:
    """One row of the table."""
    times = [row.get(key) for key in ("predicted_s", "ours_s", "compiled_s")]
    shown = ["-" if each is None else f"{each * 1e3:.3f}" for each in times]
    kernels = ", ".join(f"{count} {code}" for code, count in row["kernels"].items())
    return f"{row['program']:16}{shown[0]:>14}{shown[1]:>14}{shown[2]:>18}  {kernels}"


def medians(result: dict[str, Any]) -> dict[str, dict[str, float]]:
    """The medians of a kept result by program, in seconds: ours as it was the fastest, torch.compile's at its most."""
    found = {}
    for row in result["parts"]["models"]["rows"]:
        ways, ours = row.get("median_s", {}), row.get("ours_is", "ours")
        named = {"ours_s": ways.get(ours), "compiled_s": ways.get("compile_max", ways.get("compile_graph"))}
        found[str(row.get("block"))] = {key: value for key, value in named.items() if value is not None}
    return found


if __name__ == "__main__":
    raise SystemExit(main())
