"""How many one-line faults the tests catch that lie nearest to them: is a faster suite as sharp as the one before?

    python -m benchmarks.planted_faults CHECKOUT [--seed 0] [--count 60] [--workers 2] [--limit 1500] --out FILE

In a copy of CHECKOUT one fault after the other is planted: a sign, swapped operands, a number off by one, a comparison with another border,
a condition that is dropped, a check that raises nothing. Files are drawn layer by layer and places in them by seed, so that two checkouts
with the same sources get the same faults. Each fault runs against the tests whose imports reach the file (`tests/near.py`), those of its
own layer first, until one fails. FILE has a line of JSON for each fault: a run that was interrupted goes on where it stopped.

A fault that no test catches may be none: a comparison that no input tells apart. The survivors are listed, to be looked at.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

LAYERS = ("ir", "targets", "rules", "dialects", "frontends", "lowering", "backends", "prove", "egraph", "extract", "coset", "coset")
LATE = "no end within the limit"  # which counts as caught: a suite that hangs is seen


@dataclass(frozen=True)
class Fault:
    """A line of a file as it is and as it is planted; `kind` says in words what was changed."""

    file: str
    line: int
    kind: str
    before: str
    after: str


def swapped(node: ast.AST) -> ast.AST | None:
    """`a - b` as `b - a`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub | ast.Div | ast.FloorDiv | ast.Mod):
        return ast.BinOp(node.right, node.op, node.left)
    return None


def signed(node: ast.AST) -> ast.AST | None:
    """`a + b` as `a - b`, and the other way round."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub) and not isinstance(node.right, ast.Constant):
        return ast.BinOp(node.left, ast.Sub() if isinstance(node.op, ast.Add) else ast.Add(), node.right)
    return None


def off_by_one(node: ast.AST) -> ast.AST | None:
    """A whole number as the next one."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return ast.Constant(node.value + 1)
    return None


BORDERS: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq}


def bordering(node: ast.AST) -> ast.AST | None:
    """`a < b` as `a <= b`."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in BORDERS:
        return ast.Compare(node.left, [BORDERS[type(node.ops[0])]()], node.comparators)
    return None


def unconditional(node: ast.AST) -> ast.AST | None:
    """`a and b` as `a`, `a or b` as `a`."""
    return node.values[0] if isinstance(node, ast.BoolOp) else None


def negated(node: ast.AST) -> ast.AST | None:
    """`not a` as `a`."""
    return node.operand if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) else None


KINDS: dict[str, Callable[[ast.AST], ast.AST | None]] = {
    "operands swapped": swapped, "sign changed": signed, "off by one": off_by_one, "border moved": bordering,
    "condition dropped": unconditional, "not dropped": negated,
}  # fmt: skip
UNCHECKED = "check skipped"  # a `raise` that passes


def faults(root: Path, file: str) -> Iterator[Fault]:
    """All faults of a file that is read, in the order of its lines."""
    text = (root / file).read_text()
    lines = text.splitlines()
    inside = [body for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef) for body in node.body]
    for node in (each for statement in inside for each in ast.walk(statement)):
        line = getattr(node, "lineno", 0)
        if not line or node.end_lineno != line or lines[line - 1].lstrip().startswith(("assert", "@")):  # type: ignore[attr-defined]
            continue
        old = lines[line - 1]
        start, end = (len(old.encode()[:offset].decode()) for offset in (node.col_offset, node.end_col_offset))  # type: ignore[attr-defined]
        if isinstance(node, ast.Raise):
            yield Fault(file, line, UNCHECKED, old, f"{old[:start]}pass{old[end:]}")
        for kind, change in KINDS.items():
            new = change(node)
            if new is not None:
                yield Fault(file, line, kind, old, f"{old[:start]}({ast.unparse(new)}){old[end:]}")


def drawn(root: Path, seed: int, count: int) -> list[Fault]:
    """So many faults, layer after layer, no two in one file."""
    draw = random.Random(seed)
    found: list[Fault] = []
    used: set[str] = set()
    for number in range(count):
        layer = LAYERS[number % len(LAYERS)]
        files = sorted(
            str(path.relative_to(root))
            for path in (root / layer).rglob("*.py")
            if not any((root / layer / part).is_symlink() for part in path.relative_to(root / layer).parts[:1])
        )
        while True:
            file = draw.choice(files)
            options = [] if file in used else list(dict.fromkeys(faults(root, file)))
            kinds = sorted({each.kind for each in options})
            if kinds:
                kind = draw.choice(kinds)  # each kind as often as the others: numbers are everywhere
                found.append(draw.choice([each for each in options if each.kind == kind]))
                used.add(file)
                break
    return found


def near(root: Path, file: str) -> list[str]:
    """The test files that reach a file, those of its own layer first."""
    run = [sys.executable, "-c", f"from tests.near import reached; print('\\n'.join(reached([{file!r}])))"]
    found = subprocess.run(run, cwd=root, capture_output=True, text=True, check=True).stdout.split()
    layer = file.split("/")[0]
    return sorted(found, key=lambda test: (test.split("/")[1] != layer, test))


def caught(root: Path, fault: Fault, workers: int, limit: float) -> tuple[str, int]:
    """The first test that fails with the fault in its place ("": none), and how many files were asked for."""
    path = root / fault.file
    text = path.read_text()
    lines = text.splitlines(keepends=True)
    assert lines[fault.line - 1].rstrip("\n") == fault.before, fault
    tests = near(root, fault.file)
    lines[fault.line - 1] = fault.after + "\n"
    path.write_text("".join(lines))
    environment = {**os.environ, "PYTHONPATH": str(root), "ORT_DISABLE_TELEMETRY": "1"}
    own = [test for test in tests if test.split("/")[1] == fault.file.split("/")[0]]
    try:
        for some in (own, [test for test in tests if test not in own]):
            command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-n", str(workers), "-m", "not slow", *some]
            try:
                done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=limit) if some else None
            except subprocess.TimeoutExpired:
                return LATE, len(tests)
            if done is not None and done.returncode not in (0, 5):
                failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
                return (failed[0].split(" - ")[0] if failed else done.stdout.strip().splitlines()[-1]), len(tests)
    finally:
        path.write_text(text)
    return "", len(tests)


def main() -> int:
    """Plant, run, and say what survived."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--limit", type=float, default=1500.0, help="seconds of the tests of one fault")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    known = [json.loads(line) for line in given.out.read_text().splitlines()] if given.out.exists() else []
    done = {(each["file"], each["line"], each["after"]): each for each in known}
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "planted"
        links = shutil.ignore_patterns(".git", ".venv", "*cache*", "build")
        shutil.copytree(given.checkout, root, symlinks=True, ignore=links)
        for number, fault in enumerate(drawn(root, given.seed, given.count), 1):
            key = (fault.file, fault.line, fault.after)
            if key not in done:
                begun = time.perf_counter()
                test, asked = caught(root, fault, given.workers, given.limit)
                done[key] = {**asdict(fault), "caught": test, "files": asked, "seconds": round(time.perf_counter() - begun, 1)}
                with given.out.open("a") as out:
                    out.write(json.dumps(done[key]) + "\n")
            row = done[key]
            said = f"{row['caught'] or 'SURVIVED'} ({row['seconds']:.0f} s, {row['files']} files)"
            print(f"{number:3d} {fault.file}:{fault.line} {fault.kind}: {said}", flush=True)
    survivors = [row for row in done.values() if not row["caught"]]
    print(f"{len(done) - len(survivors)} of {len(done)} caught")
    for row in survivors:
        print(f"  {row['file']}:{row['line']} {row['kind']}\n    {row['before'].strip()}\n    {row['after'].strip()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
