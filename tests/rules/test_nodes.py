"""Calls of ONNX's ops in rules: each is the term that a node with these attributes is."""

from __future__ import annotations

import pytest

import coset.dialects
from coset.rules.elaborate import rules_of
from coset.rules.library import DEFAULT, rule_files
from coset.rules.nodes import NODE
from coset.rules.parsed import parse
from coset.rules.rule import Rule
from coset.rules.syntax import RuleError
from coset.rules.typecheck import type_errors

assert coset.dialects
RULE = "use onnx, stablehlo as hlo\nrule r\n  for {variables}\n  {left} => {right}\n  numerics exact\n"
CONV = "x: F[N, C, H, W], w: F[O, I, K, L]"


def read(left: str, right: str, variables: str) -> tuple[list[Rule], list[RuleError]]:
    file, errors = parse(RULE.format(left=left, right=right, variables=variables), "given.rules")
    assert not errors
    return rules_of(file.rules[0], {name: dialect for name, dialect, _ in file.dialects})


def left_of(term: str, variables: str) -> list[tuple[object, ...]]:
    """What the left side `abs(term)` is, form by form."""
    rules, errors = read(f"hlo.abs({term})", f"hlo.abs(hlo.abs({term}))", variables)
    assert not errors, [*map(str, errors)]
    return [(str(rule.left), rule.compiled.left) for rule in rules]


ALIKE = [
    ("onnx.Transpose(x, perm: [1, 0])", "hlo.transpose(x, [1, 0])", "x: T[M, N]"),
    ("onnx.Transpose(x, perm: p)", "hlo.transpose(x, p)", "x: T[S..], p: permutation(S)"),
    ("onnx.ReduceSum(x, axes: A, keepdims: 0)", "sum(x, A)", "x: F[S..], A: ints"),
    ("onnx.ReduceMean(x, axes: A, keepdims: 0)", "onnx.ReduceMean(x, A)", "x: F[S..], A: ints"),
    ("onnx.Relu(onnx.Sub(x, y))", "onnx.Relu(x - y)", "x, y: F[S..]"),
    ("onnx.Mul(x, s)", "x * bcast(s, [M, N])", "x: F[M, N], s: F[N]"),
    ("onnx.Mul(x, s)", "x * bcast(hlo.reshape(s, [M]), [M, N], axes: [0])", "x: F[M, N], s: F[M, 1]"),
    ("onnx.Add(x, 2)", "x + 2", "x: F[M, N]"),
    ("onnx.Conv(x, w, strides: s, pads: [1, 2, 3, 4], dilations: d)",
     "onnx.Conv(x, w, strides: s, padding: [[1, 3], [2, 4]], dilations: d, group: 1)", CONV),
    ("onnx.Conv(x, w, ..attrs)", "onnx.Conv(x, w, ..attrs)", CONV),
    ("onnx.Softmax(x, axis: a)", "onnx.Softmax(x, axis: a)", "x: F[M, N], a: int"),
]  # fmt: skip


@pytest.mark.parametrize(("node", "own", "variables"), ALIKE, ids=[each[0] for each in ALIKE])
def test_a_call_is_the_term_that_it_stands_for(node: str, own: str, variables: str) -> None:
    found, expected = left_of(node, variables), left_of(own, variables)
    assert [pattern for pattern, _ in found] == [pattern for pattern, _ in expected]


@pytest.mark.parametrize(("written", "axis"), [("onnx.Softmax(x)", -1), ("onnx.Softmax(x, axis: -1)", -1), ("onnx.Softmax(x, axis: 0)", 0)])
def test_an_axis_counts_as_in_the_standard(written: str, axis: int) -> None:
    """A program holds axes from the front: what the rule asks for is computed from the rank."""
    ((_, attributes),) = left_of(written, "x: F[M, N]")
    (asked,) = [str(value) for own in attributes for name, value in own.items if name == "axis"]  # type: ignore[attr-defined]
    assert str(abs(axis)) in asked and "%" in asked


def test_what_is_left_out_has_its_default_and_the_rest_has_any() -> None:
    ((_, plain),) = left_of("onnx.Conv(x, w)", CONV)
    ((_, rest),) = left_of("onnx.Conv(x, w, ..attrs)", CONV)
    names = [{name for own in side for name, _ in own.items} for side in (plain, rest)]  # type: ignore[attr-defined]
    assert names == [{"strides", "padding", "dilations", "group"}, set()]


def test_an_operand_that_may_be_absent_has_the_shape_that_it_declares() -> None:
    """Without it the number that stands for it is one for each output channel, and no scalar."""
    variables = f"{CONV}, b?: const F[O] = 0, c: const F[]"
    left, right = "onnx.Mul(onnx.Conv(x, w, b, ..attrs), c)", "onnx.Conv(x, onnx.Mul(w, c), onnx.Mul(b, c), ..attrs)"
    rules, errors = read(left, right, variables)
    assert not errors and len(rules) == 2 and not type_errors(rules)


def test_no_rule_of_a_program_holds_a_node_entry() -> None:
    """A rule has no `node.NAME` in it, and no op of ONNX that no program holds."""
    rules, errors = read(
        "onnx.Relu(onnx.Add(onnx.ReduceMean(x), y))", "onnx.Relu(onnx.Add(y, onnx.ReduceMean(x)))", "x: F[M, N], y: F[M, N]"
    )
    assert rules and not errors
    for rule in rules:
        assert not any(name.startswith(NODE) or name == "onnx.Add" for name in (*rule.reads, *rule.makes))


def test_the_library_writes_the_ops_that_programs_hold() -> None:
    """So its text, certificates and lock file do not rest on how nodes are read."""
    assert all("use node" not in path.read_text() and ", node" not in path.read_text() for path in rule_files(DEFAULT))
