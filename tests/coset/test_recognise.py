"""`recognise`: every composite op is found in its own expansion, beside what else there is; what is not there is not found."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from coset.dialects.expansion import expanded
from coset.egraph.saturate import Saturation
from coset.ir.errors import CosetError
from coset.ir.program import Program
from coset.ir.term import Term, input_term, make, topological
from coset.ir.types import F32, tensor
from coset.searching.recognise import recognise

X = input_term("x", tensor(F32, 2, 8, 6))
CASES: dict[str, tuple[tuple[tuple[int, ...], ...], dict[str, Any]]] = {
    "onnx.Gelu": ((), {"approximate": "tanh"}),
    "onnx.Softmax": ((), {"axis": 1}),
    "onnx.LayerNormalization": (((6,), (6,)), {"axis": -1}),
    "onnx.RMSNormalization": (((6,),), {"axis": -1}),
    "onnx.GroupNormalization": (((8,), (8,)), {"num_groups": 2}),
}


def program(*roots: Term) -> Program:
    inputs = tuple(term for term in topological(roots) if term.op.name == "builtin.input")
    return Program(inputs, tuple((f"y{i}", root) for i, root in enumerate(roots)))


@pytest.mark.parametrize("name", CASES)
def test_an_op_is_found_in_its_expansion_whatever_version_of_onnx_has_it(name: str) -> None:
    shapes, attributes = CASES[name]
    weights = [input_term(f"w{i}", tensor(F32, *shape)) for i, shape in enumerate(shapes)]
    result = recognise(program(expanded([make(name, [X, *weights], attributes)], keep=lambda _: False)[0]), [name])
    assert [term.op.name for term in result.found] == [name]
    assert result.found[0].operands == (X, *weights)
    assert result.rest == ()
    assert {node.op.name for node in result.at_roots(name)} == {name}  # softmax twice: of x, and of what its maximum leaves of x
    assert result.difference.ok


def test_what_is_not_there_is_not_found_and_the_rest_is_named() -> None:
    result = recognise(program(make("stablehlo.tanh", [make("stablehlo.multiply", [X, X])])), ["onnx.Softmax", "onnx.Gelu"])
    assert result.found == ()
    assert result.rest == ("stablehlo.multiply", "stablehlo.tanh")
    assert not result.at_roots("onnx.Softmax")


def test_an_op_inside_the_program_is_no_output() -> None:
    inner = expanded([make("onnx.Softmax", [X], {"axis": -1})], keep=lambda _: False)[0]
    result = recognise(program(make("stablehlo.tanh", [inner])), ["onnx.Softmax"])
    assert [term.op.name for term in result.found] == ["onnx.Softmax"]
    assert result.rest == ("stablehlo.tanh",)
    assert not result.at_roots("onnx.Softmax")


def test_an_op_without_a_definition_cannot_be_recognised() -> None:
    with pytest.raises(CosetError, match=r"`stablehlo.add` has no definition"):
        recognise(program(X), ["stablehlo.add"])


def test_an_unsound_rule_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that hands back another program is found out by its values."""
    from coset.searching import recognise as module

    whole = module.saturate

    def swapped(roots: Any, phases: Any, limits: Any) -> Saturation:
        return whole([make("stablehlo.negate", [X])], phases, limits)

    monkeypatch.setattr(module, "saturate", swapped)
    with pytest.raises(CosetError, match="another program"):
        recognise(program(make("stablehlo.tanh", [X])), ["onnx.Gelu"])


def test_what_a_target_runs_is_recognised_though_no_program_has_asked_for_it() -> None:
    """Definitions are read when an op is looked up: those that the target runs are, kernels of other targets are not read for it."""
    code = (
        "import coset; from coset.ir.op import DEFERRED; from coset.job.machine import find_target; "
        "from coset.job.job import Job; from coset.job.phases import phases_for; "
        "job = Job('none', find_target('cpu-onnxruntime'), 'reassociates', coset.Limits(), (), {}, print); put_off = {*DEFERRED}; "
        "found = {rule.definition for phase in phases_for(job, 99) for rule in phase.rules if rule.recognises}; "
        "print('onnx.ReduceL2' in put_off & found, 'kernel.attention' in put_off & {*DEFERRED})"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.stdout == "True True\n", found.stderr
