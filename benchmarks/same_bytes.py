"""What two checkouts write, byte by byte: for changes that must change nothing (a move of files, other names).

    python -m benchmarks.same_bytes OLD NEW [--only bert_2l,train_*] [--targets nvidia-h200,amd-mi300x] [--out FILE]

For each built model and workload both checkouts write the optimized model, its certificate, and packages for GPUs (texts of kernels,
weights, manifest) as `coset lower --check none` writes them; the lines of lock files, wherever these lie, and the page of targets are
compared too. Where texts differ the first line that does is printed.
OLD and NEW are folders (`git worktree add FOLDER COMMIT` makes one). Exit code 1 where something differs.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks import headroom
from benchmarks.checkouts import environment_of

TARGETS = "nvidia-h200,amd-mi300x"


def run(checkout: Path, arguments: Sequence[str]) -> str:
    """The command of a checkout; what it said where it failed, else nothing."""
    command = [sys.executable, "-m", "coset.cli", *arguments]
    done = subprocess.run(command, cwd=checkout, env=environment_of(checkout), capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else f"exit {done.returncode}: {(done.stderr.strip().splitlines() or [''])[0]}"


def written(checkout: Path, model: str, targets: Sequence[str], folder: Path) -> dict[str, bytes]:
    """All files that a checkout makes of a model, by name; what a command said that failed stands in the place of its files."""
    jobs = {"optimize": ["optimize", model, "-o", str(folder / "optimized.onnx"), "--certificate", str(folder / "certificate")]}
    jobs |= {
        target: ["lower", model, "--target", target, "-o", str(folder / target), "--check", "none"] for target in targets
    }  # fmt: skip
    said = {name: run(checkout, arguments).encode() for name, arguments in jobs.items()}
    files = {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
    return {**said, **files}


def kept(checkout: Path) -> dict[str, bytes]:
    """What a checkout holds that it has written itself."""
    locks = [path for folder in ("rules/library", "dialects") for path in sorted((checkout / folder).rglob("rules.lock"))]
    lines = {name: json.dumps(line) for path in locks for name, line in json.loads(path.read_text())["rules"].items()}
    said = {f"lock line of {name}": line.encode() for name, line in lines.items()}
    return {**said, "docs/targets.md": (checkout / "docs" / "targets.md").read_bytes()}


def differences(old: dict[str, bytes], new: dict[str, bytes]) -> Iterator[str]:
    """A line for each file that only one has, or that differs."""
    for name in sorted({*old, *new}):
        if name not in old or name not in new:
            yield f"{name}: only {'new' if name in new else 'old'}"
        elif old[name] != new[name]:
            pairs = zip(old[name].splitlines(), new[name].splitlines(), strict=False)
            line = next((f"{a[:120]!r} is {b[:120]!r}" for a, b in pairs if a != b), "another length")
            yield f"{name}: {line}"


def main() -> int:
    """Compare, and print what differs."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("old", type=Path)
    options.add_argument("new", type=Path)
    options.add_argument("--only", default="*", help="names or patterns, separated by commas")
    options.add_argument("--targets", default=TARGETS, help="of packages, separated by commas; none where it is empty")
    options.add_argument("--out", type=Path)
    given = options.parse_args()
    checkouts = (given.old.resolve(), given.new.resolve())
    targets = [target for target in given.targets.split(",") if target]
    lines = list(differences(*map(kept, checkouts)))
    same = 0
    for task in headroom.tasks(set(), 0.0, 0):
        if not any(fnmatch.fnmatch(task["name"], pattern) for pattern in given.only.split(",")):
            continue
        with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
            both = [written(checkout, task["path"], targets, Path(to)) for checkout, to in zip(checkouts, (first, second), strict=True)]
        found = list(differences(*both))
        same += not found
        print(f"{task['name']}: {len(both[0])} files, {'same' if not found else '; '.join(found)}", flush=True)
        lines += [f"{task['name']}: {each}" for each in found]
    print(f"{same} programs the same, {len(lines)} differences")
    if given.out:
        given.out.write_text("\n".join([f"{given.old} {given.new}: {same} programs the same", *lines]) + "\n")
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main())
