"""What is said while a program is optimized: the same lines as ever into a file, one moving line on a terminal, rule by rule on request."""

from __future__ import annotations

import io
import math
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx
import pytest
from click.testing import CliRunner
from rich.console import Console

from benchmarks.stacks import bert
from coset.cli import cli
from coset.console.telling import Telling
from coset.egraph.growth import SILENT, SearchStep, Watch
from coset.egraph.limits import Limits
from coset.egraph.saturate import Saturation
from coset.job.job import Job
from coset.job.machine import find_target
from coset.optimizing.pipeline import flow_for
from coset.optimizing.report import growth_of
from coset.rules.equation import RuleTypeError
from coset.rules.rule import Rule
from coset.searching.solving import search_roots
from coset.searching.task import wanted_roots


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("telling") / "m.onnx"
    onnx.save(bert(1), path)
    return path


def searched(model: Path, watch: Watch, limits: Limits | None = None) -> Saturation:
    job = Job(str(model), find_target("cpu-onnxruntime"), "reassociates", limits or Limits(), (), {}, lambda _: None)
    task = flow_for(job, Path("out.onnx")).read()
    return search_roots(wanted_roots(task), task.phases, replace(task, job=replace(job, watch=watch)))[0]


def test_steps_tell_what_the_search_did(model: Path) -> None:
    """Their counts are those of the finished e-graph, and what the rules applied in all is what the history says."""
    told: list[SearchStep] = []
    names: list[str] = []
    found = searched(model, Watch(told.append, names.extend, counted=True))
    assert tuple(told) == found.growth
    assert len(told) == found.iterations
    assert (told[-1].enodes, told[-1].eclasses) == (found.enodes, found.eclasses)
    assert [step.seconds for step in told] == sorted(step.seconds for step in told)
    assert names == [rule.name for rule in found.rules]
    applied = sum((Counter(step.applied) for step in told), Counter())
    assert set(applied) == {number for number, count in found.fired.items() if count}
    assert all(applied[number] >= count for number, count in found.fired.items())  # matches may become one later
    assert applied.total() < 1.1 * sum(found.fired.values())
    assert sum(sum(step.refused.values()) for step in told) > 0
    assert all(step.matched.get(number, 0) >= count for step in told for number, count in step.applied.items())


def test_to_watch_changes_nothing(model: Path) -> None:
    quiet, watched = searched(model, Watch()), searched(model, Watch(counted=True))
    assert quiet.graph == watched.graph
    assert [(step.phase, step.iteration, step.enodes) for step in quiet.growth] == [
        (step.phase, step.iteration, step.enodes) for step in watched.growth
    ]
    assert not any(step.applied or step.matched for step in quiet.growth)


def test_the_report_has_the_growth(model: Path) -> None:
    found = searched(model, Watch(counted=True))
    growth = growth_of(found)
    assert [step["enodes"] for step in growth] == [step.enodes for step in found.growth]
    assert {name for step in growth for name in step["rules"]} <= {rule.name for rule in found.rules}
    assert any(step["rules"] for step in growth)


def run(model: Path, folder: Path, *options: str) -> Any:
    return CliRunner().invoke(cli, ["optimize", str(model), "-o", str(folder / "o.onnx"), *options], standalone_mode=False)


def test_into_a_file_there_is_a_line_for_each_stage(model: Path, tmp_path: Path) -> None:
    said = run(model, tmp_path).stderr.splitlines()
    assert [re.sub(r"\d+", "N", line) for line in said] == [
        "reading the model", "searching equal programs", "extracting from N e-nodes in N classes", "comparing with the original",
        "comparing as it will be run",
    ]  # fmt: skip


def test_verbose_says_what_each_rule_did(model: Path, tmp_path: Path) -> None:
    given = run(model, tmp_path, "--verbose", "--json")
    lines = given.stderr.splitlines()
    head = next(place for place, line in enumerate(lines) if line.split() == ["rule", "matches", "applied", "refused"])
    rows = [line.rsplit(None, 3) for line in lines[head + 1 : -1]]
    assert all(int(matches) >= int(applied) > -1 for _, matches, applied, _ in rows)
    found = searched(model, Watch(counted=True))
    applied = sum((Counter(step.applied) for step in found.growth), Counter())
    assert {name: int(count) for name, _, count, _ in rows if int(count)} == {
        found.rules[number].name: count for number, count in applied.items()
    }
    assert sum("e-nodes (" in line for line in lines) == found.iterations
    assert given.stdout.startswith("{")


def test_on_a_terminal_one_line_moves() -> None:
    file = io.StringIO()
    with Telling(30.0, console=Console(file=file, force_terminal=True, width=100, color_system=None)) as telling:
        telling.say("searching equal programs")
        telling.step(SearchStep("algebra", 2, 1234, 567, 4.4))
        assert telling.line() == "searching · algebra 3 · 1,234 e-nodes · 567 classes · 26 s left"
        telling.say("extracting")
        telling.chosen(1e-3, 2e-3)
        telling.chosen(1e-3, 2e-3)
        assert telling.line() == "extracting · best 2.000 of 4.000 ms in 2 pieces"
        telling.chosen(1e-3, math.inf)
        assert "best" not in telling.line()  # the target cannot run the input as it is
    assert "algebra 3" in file.getvalue()


def test_time_that_has_run_out_is_not_below_nothing() -> None:
    telling = Telling(1.0, console=Console(file=io.StringIO()))
    telling.step(SearchStep("algebra", 0, 1, 1, 2.5))
    assert "0 s left" in telling.line()


def test_situations_in_which_a_rule_has_no_types_are_dropped_and_named(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of them is no reason to end: the search goes on with all others."""
    decide = Rule.decide

    def failing(self: Rule, *arguments: Any) -> Any:
        if self.family == "commute":
            raise RuleTypeError("`commute`: no type")
        return decide(self, *arguments)

    usual = searched(model, SILENT)
    monkeypatch.setattr(Rule, "decide", failing)
    told: list[SearchStep] = []
    names: list[str] = []
    found = searched(model, Watch(told.append, names.extend))
    dropped = [names[number] for step in told for number, _ in step.untyped]
    assert dropped and all(name.startswith("commute") for name in dropped)
    assert found.enodes < usual.enodes

    stream = io.StringIO()
    telling = Telling(10.0, verbose=True, console=Console(file=stream, width=200, force_terminal=True))
    telling.named(tuple(names))
    for step in told:
        telling.step(step)
    telling.finish()
    assert f"{len([name for name in dropped if name == dropped[0]])} situations dropped" in stream.getvalue()
