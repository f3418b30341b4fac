"""What is written as extraction-gym's JSON is read again as it was, and what is malformed is refused with its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from problems import problems

from coset.extract.greedy import tree_order
from coset.extract.gym import Named, parse_problem, read_problem, render_problem, side_by_side
from coset.extract.problem import Problem, choice
from coset.extract.solve import SolveEffort, solve
from coset.ir.errors import CosetError

NODE = {"op": "add", "children": [], "eclass": "c", "cost": 1.0}


def named(problem: Problem) -> Named:
    return Named(problem, [["op"] * len(choices) for choices in problem.classes])


def text(**changes: Any) -> str:
    return json.dumps({"nodes": {"n": {**NODE, **changes}}, "root_eclasses": ["c"]})


@given(problems())
def test_a_problem_comes_back_as_it_was(problem: Problem) -> None:
    again = parse_problem(render_problem(named(problem)), "file.json")
    _, finite, _ = tree_order(problem, [1] * len(problem.classes))
    if len(finite) == len(problem.classes) and all(e for e in problem.classes):
        kept = [tuple(e for e in choices if all(child in finite for child in e.children)) for choices in problem.classes]
        assert list(again.classes) == kept and again.roots == problem.roots
    if all(root in finite for root in problem.roots):
        one, other = solve(problem, SolveEffort()), solve(again, SolveEffort())
        assert one is not None and other is not None and one.cost == pytest.approx(other.cost)
    assert render_problem(named(again)) == render_problem(named(parse_problem(render_problem(named(again)), "file.json")))


@given(problems(), problems())
def test_side_by_side_costs_are_added(first: Problem, second: Problem) -> None:
    one, other = solve(first, SolveEffort()), solve(second, SolveEffort())
    both = solve(side_by_side([named(first), named(second)]).problem, SolveEffort())
    assert (both is None) == (one is None or other is None)
    if both is not None and one is not None and other is not None:
        assert both.cost == pytest.approx(one.cost + other.cost)


def test_costs_have_a_default_children_name_any_node_of_a_class_and_subsumed_nodes_are_no_choices() -> None:
    nodes = {
        "a": {"op": "a", "children": [], "eclass": "x"},
        "b": {"op": "b", "children": [], "eclass": "x", "cost": 0.25, "subsumed": True},
        "c": {"op": "c", "children": ["b", "a"], "eclass": "y", "cost": 2},
    }
    found = parse_problem(json.dumps({"nodes": nodes, "root_eclasses": ["y"], "class_data": {}}), "f.json")
    assert found == Problem([(choice(1.0),), (choice(2.0, [0]),)], (1,))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ('{"nodes": {},\n "root_eclasses": [}', r"no JSON: Expecting value\n  --> f.json:2:20"),
        ("[" * 100_000, "nested too deep"),
        ("[]", "the file is not an object"),
        ("{}", "the file has no `nodes`"),
        ('{"nodes": {}}', "the file has no `root_eclasses`"),
        ('{"nodes": [], "root_eclasses": []}', "`nodes` is not an object"),
        ('{"nodes": {}, "root_eclasses": ["r"]}', "the root `r` is the class of no node"),
        ('{"nodes": {"n": 3}, "root_eclasses": []}', "node `n` is not an object"),
        ('{"nodes": {"n": {"children": []}}, "root_eclasses": []}', "node `n` has no `eclass`"),
        ('{"nodes": {"n": {"eclass": "c"}}, "root_eclasses": []}', "node `n` has no `children`"),
        (text(cost=-1), "`cost` of node `n` is not a number that is finite and not negative: -1"),
        (text(cost="1"), "`cost` of node `n`"),
        (text(cost=float("nan")), "`cost` of node `n`"),
        (text(children=["m"]), "the child `m` of node `n` is no node"),
        (text(children="n"), "`children` of node `n` is not a list"),
        (text(eclass=1), "`eclass` of node `n` is not a string"),
        (text(subsumed=1), "`subsumed` of node `n` is not true or false"),
    ],
)
def test_what_is_malformed_is_refused_with_its_place(given: str, message: str) -> None:
    with pytest.raises(CosetError, match=message) as caught:
        parse_problem(given, "f.json")
    assert "--> f.json" in str(caught.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(CosetError, match="cannot be read: No such file"):
        read_problem(tmp_path / "none.json")
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe")
    with pytest.raises(CosetError, match="is no text"):
        read_problem(tmp_path / "bytes.json")
