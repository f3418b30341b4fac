"""What an op keeps inside is seen by rules, and is not stored where the range of its type leaves no room."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import onnx
import pytest

import coset.dialects
from coset.dialects.hub.stablehlo import splat
from coset.egraph.limits import Limits
from coset.egraph.request import Phase
from coset.egraph.saturate import Saturation, saturate
from coset.egraph.saturated import Saturated
from coset.extract.select import select
from coset.frontends.onnx.model import import_model
from coset.ir.op import get_op
from coset.ir.term import Term, input_term, make, topological
from coset.ir.types import BF16, F16, F32, DType, tensor
from coset.job.own_rules import NO_RULES
from coset.job.phases import permitted_phases
from coset.prove.grades import as_words, entry_grades
from coset.rules.definition import definition_of
from coset.rules.library import load
from coset.rules.rule import Rule
from coset.targets.target import Target, get_target

assert coset.dialects
CPU = get_target("cpu-onnxruntime")
SHARED = """use stablehlo as hlo, onnx
rule squares_of_doubles
  "x x + x x is another product."
  for x: F[S..]
  x * x + x * x => (x + x) * x
  numerics reassociates
rule tanh_form
  "The inner sum of Gelu as a product with another one in it."
  for x: F[S..]
  1 + 0.044715 * (x * x) => 0.044715 * (22.363860002236387 + x * x)
  numerics real
"""


def _opening(*names: str) -> list[Rule]:
    """The rules that open these ops, with the grades that the lock file has."""
    return [rule for name in names for rule in definition_of(get_op(name)).rules[0]]


def _opened(root: Term, more: Sequence[Rule] = (), *others: Term) -> Saturation:
    names = {term.op.name for term in topological([root]) if term.op.dialect == "onnx"}
    return saturate([root, *others], [Phase("all", (*_opening(*sorted(names)), *more))], Limits(iterations=4))


def _heavy(graph: Saturated) -> set[str]:
    return {node.op.name for number in graph.heavy for node in graph.nodes[number]}


def _chosen(graph: Saturated, target: Target) -> set[str]:
    """The ops of the chosen program that read an input."""
    live: set[Term] = set()
    for term in topological(select(graph, target, {}).terms):
        if term.op.name == "builtin.input" or not live.isdisjoint(term.operands):
            live.add(term)
    return {term.op.name for term in live} - {"builtin.input"}


def _dear(name: str) -> Target:
    """A target on which the op takes far longer than its parts."""
    return replace(CPU, forms={**CPU.forms, name: tuple(replace(form, nodes=100_000) for form in CPU.forms[name])})


def _without(name: str) -> Target:
    return replace(CPU, forms={**CPU.forms, name: ()})


def _gelu(dtype: DType) -> Term:
    return make("onnx.Gelu", (input_term("x", tensor(dtype, 8, 64)),), {"approximate": "tanh"})


def _of(op: str, *shapes: tuple[int, ...], **attributes: object) -> Callable[[DType], Term]:
    """An op over inputs of these shapes, by element type."""
    return lambda dtype: make(op, [input_term(f"x{place}", tensor(dtype, *shape)) for place, shape in enumerate(shapes)], attributes)


OPS = {
    "gelu": (_gelu, {"stablehlo.add", "stablehlo.multiply"}),  # x^3 inside
    "elu": (_of("onnx.Elu", (8,)), {"stablehlo.exponential", "stablehlo.subtract"}),
    "sums": (_of("onnx.ReduceSumSquare", (8,), dimensions=(0,)), {"stablehlo.multiply"}),
    "dense": (_of("onnx.Gemm", (4, 4), (4, 4), (4,)), set[str]()),
    "mean": (_of("onnx.ReduceMean", (8, 600), dimensions=(1,)), set[str]()),
}


@pytest.mark.parametrize("name", OPS)
def test_parts_that_weigh_more_than_the_op_are_heavy_in_f16(name: str) -> None:
    root, heavy = OPS[name]
    found = _opened(root(F16))
    assert found.fired  # rules see what is inside
    assert _heavy(found.graph) >= heavy if heavy else not found.graph.heavy


@pytest.mark.parametrize("dtype", [F32, BF16])
def test_where_there_is_room_nothing_is_heavy(dtype: DType) -> None:
    for name in ("gelu", "sums", "dense", "mean"):
        root, _ = OPS[name]
        assert not _opened(root(dtype)).graph.heavy, name


def test_what_is_heavy_is_not_chosen_however_cheap() -> None:
    dear = _dear("onnx.Gelu")
    assert _chosen(_opened(_gelu(F16)).graph, dear) == {"onnx.Gelu"}
    assert "onnx.Gelu" not in _chosen(_opened(_gelu(F32)).graph, dear)


def test_where_nothing_runs_the_op_its_parts_are_stored() -> None:
    graph = _opened(_gelu(F16)).graph
    assert graph.heavy and _chosen(graph, _without("onnx.Gelu")) >= {"stablehlo.multiply", "stablehlo.tanh"}


def test_only_what_the_missing_op_needs_is_stored() -> None:
    x = input_term("x", tensor(F16, 8, 64))
    root = make("stablehlo.add", (_gelu(F16), make("onnx.Elu", (x,))))
    graph = _opened(root).graph
    both = replace(CPU, forms={**_dear("onnx.Elu").forms, "onnx.Gelu": ()})
    assert "onnx.Elu" in _chosen(graph, both) and "onnx.Gelu" not in _chosen(graph, both)


def test_what_the_program_stores_anyway_is_not_heavy() -> None:
    x = input_term("x", tensor(F16, 8))
    root = make("onnx.ReduceSumSquare", (x,), {"dimensions": (0,)})
    square = make("stablehlo.multiply", (x, x))
    assert _opened(root).graph.heavy and not _opened(root, (), square).graph.heavy


def test_what_rules_make_of_heavy_values_is_heavy(tmp_path_factory: pytest.TempPathFactory) -> None:
    """1 + c (x x) is inside Gelu alone; of 1 / c + x x nothing else says that it may be stored."""
    file = tmp_path_factory.mktemp("rules") / "shared.rules"
    file.write_text(SHARED)
    own = [rule for rule in load([file], with_definitions=False).rules if rule.family == "tanh_form"]
    found = _opened(_gelu(F16), own)
    assert any(found.rules[number].family == "tanh_form" for number in found.fired)
    adds = [number for number, nodes in enumerate(found.graph.nodes) if any(node.op.name == "stablehlo.add" for node in nodes)]
    constants = found.graph.constant
    light = {number for number in adds if number not in found.graph.heavy}
    assert len(adds) == 3 and len(light) == 1 and not light & constants  # 1 + tanh(..) alone


def test_a_normalization_is_folded_into_a_convolution() -> None:
    """What is inside the normalization may weigh too much to be stored: it goes into the weights, and one convolution stores the result."""
    text = """<ir_version: 9, opset_import: ["" : 17]> g (float[1,3,8,8] x) => (float[1,4,6,6] y)
      { c = Conv(x, w) y = BatchNormalization(c, s, b, m, v) }"""
    model = onnx.parser.parse_model(text)
    draw = np.random.default_rng(0)
    for name, shape in (("w", (4, 3, 3, 3)), *((each, (4,)) for each in "sbmv")):
        value = draw.uniform(0.5, 1, shape).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(value, name))
    roots = import_model(model).roots
    found = saturate(roots, permitted_phases(NO_RULES, "reassociates", lambda _: True), Limits(seconds=20))
    assert _heavy(found.graph) >= {"stablehlo.multiply"}
    assert _chosen(found.graph, CPU) == {"onnx.Conv"}


def test_grades_of_definitions_speak_of_opening_alone() -> None:
    rules = [rule for both in definition_of(get_op("onnx.Gelu")).rules for rule in both]
    words = as_words(entry_grades(rules))
    assert words.keys() == {"=>"} and words["=>"]["f16"].startswith("by instance (k = 3") and "f32" not in words["=>"]
    assert all(dict(rule.grades) == ({} if rule.recognises else words["=>"]) for rule in rules)  # and the lock file has them


def test_numbers_decide_where_an_instance_is_looked_at() -> None:
    """alpha a b + c: the product weighs as much more as alpha is small."""

    def root(alpha: float) -> Term:
        a, b, c = (input_term(name, tensor(F16, *shape)) for name, shape in (("a", (4, 4)), ("b", (4, 4)), ("c", (4,))))
        return make("onnx.Gemm", (a, b, c), {"alpha": alpha})

    assert not _opened(root(1.0)).graph.heavy
    assert _heavy(_opened(root(0.125)).graph) == {"stablehlo.dot_general"}


def test_a_splat_is_no_part_of_it() -> None:
    x = input_term("x", tensor(F16, 8))
    assert not _opened(make("stablehlo.add", (x, splat(2.0, F16, (8,))))).graph.heavy
