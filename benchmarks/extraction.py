"""How good extraction is, and how long it takes: greedy, exact program and bound on random and structured problems.

    python -m benchmarks.extraction [--planted NODES ..] [--seeds N] [--gym FOLDER] [--limit N] [--seconds 60] [--json]

`--planted` solves problems of `benchmarks.shared_merges`, whose optimum is known. Seconds are processor seconds; `--seconds` are of the
clock, and after them the best so far is taken. `--gym` reads extraction-gym's JSON e-graphs (github.com/egraphs-good/extraction-gym,
`data/`): the suite's published sums are greedy-DAG 77,029 in 3.1 s and ILP 76,100 in 1,039 s.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.shared_merges import shared_merges
from coset.extract.greedy import greedy
from coset.extract.gym import read_problem
from coset.extract.problem import Choice, Problem, choice, cost_of
from coset.extract.prune import prune
from coset.extract.solve import SolveEffort, solve
from coset.ir.collector import no_collection


def tangle(classes: int, seed: int) -> Problem:
    """A random DAG of classes, with some choices that point up, so that there are cycles."""
    generator = random.Random(seed)
    made: list[tuple[Choice, ...]] = [(choice(1.0),)]
    for number in range(1, classes):
        options = []
        for place in range(generator.choice((1, 1, 2, 3, 5))):
            above = place > 0 and generator.random() < 0.05
            near = range(max(0, number - 12), min(classes, number + 12) if above else number)
            cost = generator.choice((0.0, 1.0, 2.0, 5.0, 20.0)) + generator.random()
            options.append(choice(cost, generator.choices(near, k=generator.randint(1, 3))))
        made.append(tuple(options))
    return Problem(made, (classes - 1,))


def layers(count: int, width: int, seed: int) -> Problem:
    """Layers like a network's: `width` products of one value, each alone or all merged into one and cut apart, each operand
    as it is or transposed (two classes that need each other), joined by one class that the next layer reads."""
    generator = random.Random(seed)
    made: list[tuple[Choice, ...]] = [(choice(0.0),)]

    def add(*options: Choice) -> int:
        made.append(options)
        return len(made) - 1

    value = 0
    for _ in range(count):
        transposed = add(choice(3.0, [value]))
        both = add(choice(generator.uniform(8, 12) * width**0.9, [value]), choice(9.0 * width**0.9, [transposed]))
        parts = []
        for _ in range(width):
            alone = generator.uniform(8, 12)
            turned = len(made) + 1
            part = add(choice(alone, [value]), choice(1.0, [both]), choice(2.0, [turned]))
            add(choice(alone - 1.5, [transposed]), choice(2.0, [part]))
            parts += [part, turned]
        mixed = add(*(choice(generator.uniform(1, 4), generator.sample(parts, min(len(parts), 4))) for _ in range(4)))
        value = add(choice(1.0, [mixed, parts[0]]), choice(0.5, [mixed, parts[1]]))
    return Problem(made, (value,))


def problems(folder: str | None, limit: int) -> Iterator[tuple[str, Problem]]:
    """The named problems to solve."""
    if folder is not None:
        for path in sorted(Path(folder).rglob("*.json"))[:limit]:
            yield str(path.relative_to(folder)), read_problem(path)
        return
    for classes in (100, 1_000, 5_000, 50_000):
        yield f"tangle of {classes} classes", tangle(classes, classes)
    for count, width in ((12, 3), (48, 3), (12, 8), (200, 4), (2_000, 4)):
        yield f"{count} layers of {width}", layers(count, width, count)


def measure_planted(nodes: int, seed: int, seconds: float) -> dict[str, Any]:
    """How far greedy, the ladder and its bound are from the planted optimum."""
    planted = shared_merges(nodes, seed)
    row = measure(planted.problem, seconds)
    assert row is not None
    assert row["bound"] <= planted.cost * (1 + 1e-9) <= row["cost"] * (1 + 2e-9) and row["cost"] <= row["greedy"] * (1 + 1e-9)
    return {"nodes": nodes, "seed": seed, "planted": planted.cost, **row}


def print_planted(rows: Iterable[dict[str, Any]]) -> None:
    """The table of problems with a planted optimum."""
    print(f"{'e-nodes':>8} {'seed':>4} {'part':>7} {'greedy':>8} {'s':>6} {'ladder':>8} {'bound':>8} {'method':>7} {'s':>7} {'wall s':>7}")
    for row in rows:
        greedy_off, off, bound_off = (f"{100 * (row[key] / row['planted'] - 1):+.2f}%" for key in ("greedy", "cost", "bound"))
        print(f"{row['choices']:8} {row['seed']:4} {row['part']:7} {greedy_off:>8} {row['greedy_s']:6.2f} {off:>8} {bound_off:>8} "
              f"{row['method']:>7} {row['seconds']:7.2f} {row['wall']:7.2f}", flush=True)  # fmt: skip


def measure(problem: Problem, seconds: float) -> dict[str, Any] | None:
    """Costs, bound and times of one problem; None when it has no solution."""
    with no_collection():  # as the pipeline does
        start = time.process_time()
        first = greedy(problem)
        greedy_seconds = time.process_time() - start
        if first is None:
            return None
        wall, start = time.perf_counter(), time.process_time()
        solution = solve(problem, SolveEffort(seconds=seconds))
        solve_seconds, wall = time.process_time() - start, time.perf_counter() - wall
    assert solution is not None
    pruned = prune(problem)
    assert pruned is not None
    largest = max((sum(map(len, part.problem.classes)) for part in pruned.parts if _has_choice(part.problem)), default=0)
    return {
        "choices": sum(map(len, problem.classes)), "part": largest, "greedy": cost_of(problem, first), "greedy_s": greedy_seconds,
        "cost": solution.cost, "bound": solution.lower_bound, "gap": solution.gap, "method": solution.method, "seconds": solve_seconds,
        "wall": wall,
    }  # fmt: skip


def _has_choice(problem: Problem) -> bool:
    return any(len(choices) > 1 for choices in problem.classes)


def main() -> None:
    """Print the table, or with `--json` one object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gym", help="a folder of extraction-gym JSON files")
    parser.add_argument("--limit", type=int, default=10_000, help="files of the folder")
    parser.add_argument("--seconds", type=float, default=60.0, help="safety limit for each problem")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--planted", type=int, nargs="+", metavar="NODES", help="sizes of problems with a planted optimum")
    parser.add_argument("--seeds", type=int, default=5, help="problems of each size")
    options = parser.parse_args()
    if options.planted is not None:
        found = (measure_planted(nodes, seed, options.seconds) for nodes in options.planted for seed in range(1, options.seeds + 1))
        if options.json:
            print(json.dumps({"rows": list(found)}))
        else:
            print_planted(found)
        return
    if not options.json:
        heads = ("choices", 8), ("part", 7), ("greedy", 12), ("s", 7), ("cost", 12), ("bound", 12), ("gap %", 6), ("method", 7), ("s", 7)
        print(f"{'problem':40} " + " ".join(f"{head:>{width}}" for head, width in heads))
    rows = []
    for name, problem in problems(options.gym, options.limit):
        row = measure(problem, options.seconds)
        if row is None:
            print(f"{name:40} has no solution")
            continue
        rows.append({"problem": name, **row})
        if not options.json:
            print(f"{name[-40:]:40} {row['choices']:8} {row['part']:7} {row['greedy']:12.2f} {row['greedy_s']:7.3f} {row['cost']:12.2f} "
                  f"{row['bound']:12.2f} {100 * row['gap']:6.2f} {row['method']:>7} {row['seconds']:7.3f}", flush=True)  # fmt: skip
    total = {key: sum(row[key] for row in rows) for key in ("greedy", "greedy_s", "cost", "bound", "seconds")}
    if options.json:
        print(json.dumps({"rows": rows, "total": total}))
    else:
        sums = {key: f"{value:.2f}" for key, value in total.items()}
        print(f"sums: greedy {sums['greedy']} in {sums['greedy_s']} s, ladder {sums['cost']} in {sums['seconds']} s, bound {sums['bound']}")


if __name__ == "__main__":
    main()
