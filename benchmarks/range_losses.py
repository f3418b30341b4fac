"""How many uses of rules the promise of range costs: each model is searched twice, with the range of every instance asked for and with
every range admitted, and what the chosen programs rest on is counted.

    python -m benchmarks.range_losses [NAME ..] [--type f32|f16] [--time-limit S] [--out FILE]

`--type f16` searches the models with all f32 inputs and weights in f16. A use is lost where an entry that is not admitted at every range
made more of the program that was free to use it than of the other. What else differs (another rule made the same node first, or a rule
had nothing to do after a lost one) is counted apart. Nothing is compared or written: programs that overflow are what is given up here.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import coset.dialects
from benchmarks import models
from coset.egraph.limits import Limits
from coset.ir.errors import CosetError
from coset.ir.types import F16, F32
from coset.job.job import Job
from coset.job.phases import phases_for
from coset.optimizing import pipeline
from coset.prove.retyped import retyped
from coset.rules.library import load
from coset.rules.lock import entry_of
from coset.rules.ranges import ALWAYS, verdict_of
from coset.rules.rule import Rule
from coset.searching import usage
from coset.searching.solving import solve_task
from coset.searching.task import Task, usual_dims
from coset.targets.target import get_target

assert coset.dialects
TARGET = "cpu-onnxruntime"


def read(path: Path, limits: Limits, narrow: bool) -> Task:
    """The model as it is searched, in f16 where it shall be `narrow`.

    Raises:
        CosetError: the model cannot be read, or an op of it is not for f16.
    """
    job = Job(path, get_target(TARGET), "reassociates", limits, (), {}, lambda _: None)
    program = pipeline._read(job).program
    if narrow:
        program = program.with_roots(tuple(retyped(program.roots, {F32: F16})))
    return Task(job, program, usual_dims(program, {}), phases_for(job, pipeline._newest(program, job.target)))


def used(task: Task) -> Counter[str]:
    """What the chosen program rests on, by the names of rules."""
    solved, _ = solve_task(task, task.phases, pipeline._printable(task))
    return Counter({each.rule.name: each.count for each in usage.used_rules(solved)})


def _nothing(*_: object) -> frozenset[int]:
    return frozenset()


def main() -> None:
    """Search the models, and print what is lost by entry."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--type", choices=("f32", "f16"), default="f32")
    parser.add_argument("--time-limit", type=float, default=30.0)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    rules = {rule.name: rule for rule in load().rules}
    free, lost, other = Counter[str](), Counter[str](), Counter[str]()
    lines = []
    for model in models.available():
        if arguments.names and model.name not in arguments.names:
            continue
        try:
            task = read(model.path, Limits(seconds=arguments.time_limit), arguments.type == "f16")
            kept = used(task)
            with mock.patch("coset.egraph.search.in_range", lambda *_: True), mock.patch("coset.egraph.search.too_heavy", _nothing):
                every = used(task)
        except CosetError as error:
            lines.append(f"{model.name}: {error.message.splitlines()[0]}")
            print(lines[-1], file=sys.stderr, flush=True)
            continue
        fewer = every - kept
        asked = {name for name in fewer if name in rules and verdict_of(rules[name], arguments.type) != ALWAYS}
        guarded = Counter({name: count for name, count in fewer.items() if name in asked})
        rest = fewer - guarded
        free, lost, other = free + every, lost + guarded, other + rest
        lines.append(f"{model.name}: {every.total()} uses where all is admitted, {guarded.total()} lost, {rest.total()} follow")
        print(lines[-1], file=sys.stderr, flush=True)
    text = "\n".join((*lines, "", *summary(arguments.type, rules, free, lost, other))) + "\n"
    print(text, end="")
    if arguments.out is not None:
        arguments.out.write_text(text)


def summary(name: str, rules: dict[str, Rule], free: Counter[str], lost: Counter[str], other: Counter[str]) -> Iterator[str]:
    """The losses by entry, each with the grade that forbids it."""
    share = 100 * lost.total() / max(1, free.total())
    yield f"{free.total()} uses where every range is admitted; lost at {name}: {lost.total()} ({share:.1f} %)"
    for rule, count in lost.most_common():
        yield f"  {count:5d} of {free[rule]:5d} {rule} ({entry_of(rules[rule])}): {dict(rules[rule].grades).get(name)}"
    yield f"{other.total()} uses of entries that are always admitted follow"
    yield from (f"  {count:5d} of {free[rule]:5d} {rule}" for rule, count in other.most_common())


if __name__ == "__main__":
    main()
