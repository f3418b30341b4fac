"""`coset diff`: outputs as ever, nodes paired by equal terms, by classes of a search, by values; what a pair rests on is said."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from onnx import TensorProto, helper, numpy_helper

from benchmarks.stacks import bert
from coset.cli import cli
from coset.comparing.feeds import cases
from coset.comparing.fold import fallback_for
from coset.comparing.reference import read_program
from coset.ir.evaluate import evaluate_program
from coset.ir.types import TensorType
from coset.optimizing.pipeline import optimize
from coset.reporting.compare import STRUCTURE, compared
from tests.coset.test_report_page import browser as chromium
from tests.coset.test_report_page import data_of, shown

browser = chromium
CHECKED = {"inputs", "skipped", "dims", "max_abs", "max_rel", "tolerance", "method", "problem", "ok"}  # what was always said
Node = tuple[str, list[str], str]


def written(path: Path, nodes: list[Node], weight: float = 2.0, *, inputs: tuple[str, ...] = ("x",)) -> Path:
    """A model of 4 floats with the weights `w` (4) and `two`."""
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (4,)) for name in (*inputs, nodes[-1][2])]
    weights = [numpy_helper.from_array(np.arange(4, dtype=np.float32) * weight, "w"), numpy_helper.from_array(np.float32(2), "two")]
    made = [helper.make_node(op, read, [name]) for op, read, name in nodes]
    graph = helper.make_graph(made, "m", ends[:-1], ends[-1:], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
    return path


DOUBLED: list[Node] = [("Sin", ["x"], "a"), ("Mul", ["a", "two"], "b"), ("Add", ["b", "w"], "c"), ("Exp", ["c"], "y")]
ADDED: list[Node] = [("Sin", ["x"], "a"), ("Add", ["a", "a"], "b"), ("Add", ["b", "w"], "c"), ("Exp", ["c"], "y")]


def diff(*arguments: object) -> tuple[int, Any]:
    found = CliRunner().invoke(cli, ["diff", *map(str, arguments), "--json"], standalone_mode=False)
    assert found.exception is None, found.output
    return found.return_value, json.loads(found.stdout)


def test_a_program_is_itself(tmp_path: Path) -> None:
    model = written(tmp_path / "m.onnx", DOUBLED)
    code, said = diff(model, model)
    assert code == 0
    assert said["nodes"] == {"first": 5, "second": 5, "only_first": 0, "only_second": 0, "both": [5, 5]}
    assert said["matched_by"] == STRUCTURE
    assert said["first_difference"] is said["first_unmatched"] is None
    assert said.keys() >= CHECKED


def test_what_rules_show_equal_is_in_both_and_computed_otherwise(tmp_path: Path) -> None:
    one, other = written(tmp_path / "a.onnx", DOUBLED), written(tmp_path / "b.onnx", ADDED)
    code, said = diff(one, other, "--html", tmp_path / "d.html")
    assert code == 0
    assert said["nodes"]["both"] == [5, 5]
    assert "e-classes" in said["matched_by"]
    assert "drawn input" not in said["matched_by"]
    graphs = data_of((tmp_path / "d.html").read_text())["graphs"]
    for side in ("before", "after"):
        assert graphs[side]["nodes"]["state"] == ["kept", "kept", "changed", "kept", "kept"]
    assert graphs["before"]["nodes"]["class"] == graphs["after"]["nodes"]["class"]


def test_without_rules_it_says_that_only_equal_terms_were_paired(tmp_path: Path) -> None:
    one, other = written(tmp_path / "a.onnx", DOUBLED), written(tmp_path / "b.onnx", ADDED)
    _, said = diff(one, other, "--time-limit", 0)
    assert said["matched_by"] == f"{STRUCTURE} only: no rules were run"
    assert said["nodes"]["both"] == [2, 2]
    assert said["first_unmatched"] == "`stablehlo.multiply` f32[4] (`b`)"


def test_pieces_of_an_optimized_program_are_joined_by_rules(tmp_path: Path) -> None:
    model = tmp_path / "m.onnx"
    onnx.save(bert(2), model)
    optimize(model).save(tmp_path / "o.onnx")
    code, said = diff(model, tmp_path / "o.onnx")
    assert code == 0
    assert re.search(r"\d+ pairs by rules over the pairs below them", said["matched_by"])
    assert said["nodes"]["both"][0] > 20


def test_values_that_no_rule_joins_are_said_to_be_so(tmp_path: Path) -> None:
    """sin(2 a) is 2 sin(a) cos(a), which no rule says: the values of both are paired, and nothing else vouches for that."""
    one = written(tmp_path / "a.onnx", [("Mul", ["x", "two"], "b"), ("Sin", ["b"], "c"), ("Exp", ["c"], "y")])
    other = written(
        tmp_path / "b.onnx",
        [("Sin", ["x"], "s"), ("Cos", ["x"], "k"), ("Mul", ["s", "k"], "m"), ("Mul", ["m", "two"], "c"), ("Exp", ["c"], "y")],
    )
    code, said = diff(one, other)
    assert code == 0
    assert "1 by their values on one drawn input only, 1 that are made of such in one way" in said["matched_by"]
    assert said["nodes"] == {"first": 4, "second": 6, "only_first": 1, "only_second": 3, "both": [3, 3]}


def test_the_first_value_that_differs_is_named(tmp_path: Path) -> None:
    one, other = written(tmp_path / "a.onnx", DOUBLED), written(tmp_path / "b.onnx", DOUBLED, 3.0)
    code, said = diff(one, other, "--html", tmp_path / "d.html")
    assert code == 1
    assert not said["ok"]
    assert said["first_difference"]["op"] == "stablehlo.add"
    assert said["first_difference"]["name"] == "c"
    assert said["nodes"] == {"first": 5, "second": 5, "only_first": 2, "only_second": 2, "both": [3, 3]}
    report = data_of((tmp_path / "d.html").read_text())["report"]
    assert "stablehlo.add" in report["first_unmatched"]
    assert report["check"]["ok"] is False


def test_paired_nodes_have_equal_values(tmp_path: Path) -> None:
    model = tmp_path / "m.onnx"
    onnx.save(bert(3), model)
    optimize(model).save(tmp_path / "o.onnx")
    found = compared(read_program(model), read_program(tmp_path / "o.onnx"), {})
    feed = next(iter(cases(found.programs[0], {}, 7))).feed  # another one than they were paired on
    values: list[dict[int, list[Any]]] = []
    for program, classes in zip(found.programs, (found.match.before, found.match.after), strict=True):
        terms = [term for term in program.terms() if isinstance(term.type, TensorType)]
        outputs = tuple((str(place), term) for place, term in enumerate(terms))
        with np.errstate(all="ignore"):
            computed = evaluate_program(replace(program, outputs=outputs), feed, fallback=fallback_for(program.source))
        side: dict[int, list[Any]] = {}
        for term, value in zip(terms, computed, strict=True):
            side.setdefault(classes[term], []).append(value)
        values.append(side)
    shared = set(values[0]) & set(values[1])
    assert len(shared) > 30
    for eclass in shared:
        first, *others = [*values[0][eclass], *values[1][eclass]]
        for other in others:
            np.testing.assert_allclose(other, first, rtol=2e-4, atol=2e-4)


def test_programs_whose_inputs_do_not_correspond_are_paired_by_equal_terms(tmp_path: Path) -> None:
    one = written(tmp_path / "a.onnx", DOUBLED)
    other = written(tmp_path / "b.onnx", [*DOUBLED[:-1], ("Add", ["c", "z"], "y")], inputs=("x", "z"))
    found = compared(read_program(one), read_program(other), {})
    assert found.interface is None
    assert "do not correspond: the first program has 1 inputs, the second 2" in found.match.by
    assert sum(state == "kept" for state in found.match.states[0].values()) >= 4


def test_outputs_by_other_names_are_paired_in_order(tmp_path: Path) -> None:
    one = written(tmp_path / "a.onnx", DOUBLED)
    other = written(tmp_path / "b.onnx", [*DOUBLED[:-1], ("Exp", ["c"], "z")])
    code, said = diff(one, other)
    assert code == 1  # the runtime's outputs have other names, as ever
    assert said["nodes"]["both"] == [5, 5]
    assert said["first_difference"] is None


def test_a_page_goes_into_a_folder_that_is_there(tmp_path: Path) -> None:
    model = written(tmp_path / "m.onnx", DOUBLED)
    found = CliRunner().invoke(cli, ["diff", str(model), str(model), "--html", str(tmp_path / "no" / "d.html")], standalone_mode=False)
    assert "there is no folder" in str(found.exception)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_browser_shows_both_programs(browser: Any, tmp_path: Path, scheme: str) -> None:
    one, other = written(tmp_path / "a.onnx", DOUBLED), written(tmp_path / "b.onnx", DOUBLED, 3.0)
    diff(one, other, "--html", tmp_path / "d.html")
    tab, wrong = shown(browser, tmp_path / "d.html", color_scheme=scheme)
    assert [tab.locator(f"#graph-{side}").get_attribute("data-nodes") for side in ("before", "after")] == ["5", "5"]
    assert "different" in tab.locator("header").inner_text()
    tab.locator("button[data-state=removed]").click()
    tab.wait_for_timeout(100)
    assert tab.locator("#graph-before").get_attribute("data-lit") == "2"
    assert tab.locator("#graph-after").get_attribute("data-lit") == "0"
    assert wrong == []


def test_a_dim_that_another_file_calls_otherwise_is_the_same(tmp_path: Path) -> None:
    paths = []
    for name in ("batch", "n"):
        ends = [helper.make_tensor_value_info(end, TensorProto.FLOAT, (name, 4)) for end in ("x", "y")]
        graph = helper.make_graph([helper.make_node("Exp", ["x"], ["a"]), helper.make_node("Neg", ["a"], ["y"])], "m", ends[:1], ends[1:])
        paths.append(tmp_path / f"{name}.onnx")
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), paths[-1])
    _, said = diff(*paths)
    assert said["nodes"]["both"] == [3, 3]
    assert said["matched_by"] == STRUCTURE
