"""Kills of `coset optimize` at drawn moments over an existing result: `python -m benchmarks.chaos 200`.

Each run writes one of two programs, in one file or with weights beside, over what the runs before left. It gets SIGKILL or SIGINT at a
moment drawn over its usual time, alone or with its whole group. Afterwards the result must be a whole one, old or new, no process of the
run may go on, and what lies about must be gone after the next run that comes to its end.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from coset.lowering.onnx.write import weights_beside

SIGNALS = (signal.SIGKILL, signal.SIGINT)
LATE = 0.4  # the share of runs that are killed in the last fifth of their time, where files are written
PATIENCE = 60.0  # s, for a run to end by itself after SIGINT
DONE = "was done before"  # no kill, and does not count as one
GONE = 5.0  # s, for the processes of a run to be gone after it


@dataclass(frozen=True)
class Whole:
    """A result: a digest of the model's file, and of its weights' where it has one."""

    model: str
    weights: str


class Mishap(Exception):
    """Something that no kill may cause."""


def model(folder: Path, *, beside: bool) -> Path:
    """Sums and products of 40 layers: enough to search that kills fall into every stage."""
    rng = np.random.default_rng(0)
    nodes, weights, last = [], [], "x"
    for i in range(40):
        weights += [numpy_helper.from_array(rng.standard_normal((64, 64)).astype(np.float32) / 8, f"w{i}")]
        nodes += [helper.make_node("MatMul", [last, f"w{i}"], [f"m{i}"]), helper.make_node("Add", [f"m{i}", last], [f"s{i}"])]
        nodes += [helper.make_node("Tanh", [f"s{i}"], [f"t{i}"])]
        last = f"t{i}"
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [8, 64]) for name in ("x", last)]
    made = helper.make_model(
        helper.make_graph(nodes, "chaos", values[:1], values[1:], weights), opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )
    path = folder / ("beside.onnx" if beside else "inside.onnx")
    onnx.save(made, path, save_as_external_data=beside, location="beside.weights", size_threshold=0)
    return path


def whole(path: Path) -> Whole:
    """The result at `path`.

    Raises:
        Mishap: it is no whole one.
    """
    data = path.read_bytes()
    try:
        named = onnx.load_model_from_string(data)
    except Exception as error:
        raise Mishap(f"the model cannot be read: {error}") from error
    wanted = {entry.value for tensor in named.graph.initializer for entry in tensor.external_data if entry.key == "location"}
    weights = ""
    for name in wanted:
        place = path.parent / name
        if not place.exists():
            raise Mishap(f"the model wants `{name}`, which is not there")
        weights = blake2b(place.read_bytes(), digest_size=6).hexdigest()
        if weights not in name:
            raise Mishap(f"`{name}` holds something else than it says")
    return Whole(blake2b(data).hexdigest(), weights)


def start(source: Path, output: Path, numerics: str, temporary: Path) -> subprocess.Popen[bytes]:
    """A run in a session of its own."""
    command = [sys.executable, "-m", "coset.cli", "optimize", str(source), "-o", str(output), "--numerics", numerics]
    return subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True, env={**os.environ, "TMPDIR": str(temporary)},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background jobs start with it ignored
    )  # fmt: skip


def session_of(number: int) -> Iterator[int]:
    """The processes of a session that are alive."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == number and fields[0] != "Z":
            yield int(path.parent.name)


def orphans(number: int) -> list[int]:
    """The processes of a session that do not end by themselves soon."""
    until = time.monotonic() + GONE
    while (left := list(session_of(number))) and time.monotonic() < until:
        time.sleep(0.02)
    return left


def end(run: subprocess.Popen[bytes], after: float, what: signal.Signals, *, group: bool) -> tuple[str, str]:
    """Signal a run after so many seconds; how it ended, and its messages."""
    try:
        run.wait(after)
        return DONE, run.communicate()[1].decode()
    except subprocess.TimeoutExpired:
        (os.killpg if group else os.kill)(run.pid, what)
    try:
        said = run.communicate(timeout=PATIENCE)[1].decode()
    except subprocess.TimeoutExpired:
        run.kill()
        raise Mishap(f"it goes on {PATIENCE:g} s after {what.name}") from None
    if "init_import_site" in said:
        return "interrupted while Python itself was starting", said
    codes = {0: "went on to its end", 2: "interrupted", -what: f"ended by {what.name}"}
    return codes.get(run.returncode, f"exit code {run.returncode}"), said


def strewn(folder: Path, output: Path) -> int:
    """Entries of a folder besides the result."""
    return sum(each != output and each not in weights_beside(output) for each in folder.iterdir()) + max(0, len(weights_beside(output)) - 1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kills", nargs="?", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="one JSON object at the end")
    given = parser.parse_args()
    draw = random.Random(given.seed)
    ends: Counter[str] = Counter()
    results: Counter[str] = Counter()
    mishaps: list[str] = []
    most = tracebacks = 0
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        folder, temporary = Path(place) / "out", Path(place) / "temporary"
        folder.mkdir()
        temporary.mkdir()
        kinds = [(model(Path(place), beside=beside), numerics) for beside in (False, True) for numerics in ("exact", "reassociates")]
        output = folder / "out.onnx"
        known: set[Whole] = set()
        usual = 0.0
        for source, numerics in [*kinds, *kinds]:
            started = time.monotonic()
            if start(source, output, numerics, temporary).wait():
                raise SystemExit(f"{source.name} is not optimized even when nobody disturbs")
            usual = time.monotonic() - started
            known.add(whole(output))
        number = 0
        while number < given.kills:
            (source, numerics), what, group = draw.choice(kinds), draw.choice(SIGNALS), draw.random() < 0.5
            moment = usual * (draw.uniform(0.8, 1.0) if draw.random() < LATE else draw.random())
            before = whole(output)
            run = start(source, output, numerics, temporary)
            try:
                how, said = end(run, moment, what, group=group)
                ends[f"{what.name} to {'its group' if group else 'it alone'}: {how}"] += 1
                tracebacks += "Traceback" in said
                if how.startswith("exit code"):
                    raise Mishap(f"{how}: {said}")
                if left := orphans(run.pid):
                    for each in left:
                        os.kill(each, signal.SIGKILL)
                    raise Mishap(f"processes {left} go on")
                after = whole(output)
                if after not in known:
                    raise Mishap("the result is neither an old nor a whole new one")
                number += how != DONE
                results["old" if after == before else "new"] += 1
            except Mishap as mishap:
                number += 1
                mishaps.append(f"kill {number}, {what.name} after {moment:.3f} s: {mishap}")
            most = max(most, strewn(folder, output) + sum(1 for _ in temporary.iterdir()))
        source, numerics = kinds[0]
        start(source, output, numerics, temporary).wait()
        left_over = strewn(folder, output) + sum(1 for _ in temporary.iterdir())
    print(f"{given.kills} kills, seed {given.seed}, runs of {usual:.1f} s, {time.monotonic() - begun:.0f} s in all")
    for name, count in sorted(ends.items()):
        print(f"  {count:4d} {name}")
    print(f"results afterwards: {results['old']} as before, {results['new']} whole new ones (a new one may equal the old)")
    print(f"left lying about: {most} at most at any time, {left_over} after one more run; messages with a traceback: {tracebacks}")
    print(f"{len(mishaps)} mishaps")
    print("\n".join(mishaps))
    if given.json:
        print(json.dumps({"kills": given.kills, "ends": ends, "results": results, "most": most, "left": left_over, "tracebacks": tracebacks,
                          "mishaps": mishaps}))  # fmt: skip
    return int(bool(mishaps or left_over))


if __name__ == "__main__":
    sys.exit(main())
