"""Assertions about sizes of exported JAX programs: what the result is asked for with sizes that the program refuses, it refuses too."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch_mlir", reason="the extra `mlir` is not installed")

import jax
import jax.numpy as jnp
from jax import export
from torch_mlir._mlir_libs import _stablehlo as hlo

import coset
from coset.frontends.stablehlo.program import import_stablehlo
from coset.lowering.stablehlo.module import print_stablehlo

Sizes = tuple[tuple[int, ...], ...]
PROGRAMS: list[tuple[Callable[..., Any], tuple[str, ...], tuple[str, ...], Sizes, Sizes]] = [
    (lambda x: x.reshape(-1, 2).sum(1), ("2*b",), (), ((4,),), ((3,),)),
    (lambda x: x * 2 + 1, ("b",), ("b <= 4",), ((4,),), ((5,),)),
    (lambda x: x * 2 + 1, ("b,2*c",), ("c <= b",), ((2, 4),), ((1, 4),)),
    (lambda x, y: x + y.T, ("b,c", "c,b"), (), ((2, 3), (3, 2)), ((2, 3), (3, 3))),
]


def exported(function: Callable[..., Any], shapes: tuple[str, ...], constraints: tuple[str, ...]) -> Any:
    scope = export.SymbolicScope(constraints)
    sizes = (export.symbolic_shape(shape, scope=scope) for shape in shapes)
    return export.export(jax.jit(function))(*(jax.ShapeDtypeStruct(each, jnp.float32) for each in sizes))


def refusal(program: Any, shapes: Sizes) -> str:
    """Why JAX refuses to call an exported program with these sizes; "" if it does not."""
    try:
        program.call(*map(jnp.ones, shapes))
    except ValueError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(("function", "shapes", "constraints", "right", "wrong"), PROGRAMS)
def test_jax_refuses_wrong_sizes_of_the_result(
    function: Callable[..., Any], shapes: tuple[str, ...], constraints: tuple[str, ...], right: Sizes, wrong: Sizes, tmp_path: Path
) -> None:
    given = exported(function, shapes, constraints)
    (tmp_path / "model.mlir").write_text(given.mlir_module())
    coset.optimize(tmp_path / "model.mlir").save(tmp_path / "out.mlir")
    text = (tmp_path / "out.mlir").read_text()
    made = dataclasses.replace(given, mlir_module_serialized=hlo.serialize_portable_artifact_str(text, hlo.get_minimum_version()))
    assert not refusal(made, right)
    assert refusal(made, wrong) == refusal(given, wrong) != ""


def test_onnx_says_that_it_does_not_check(tmp_path: Path) -> None:
    (tmp_path / "model.mlir").write_text(exported(*PROGRAMS[1][:3]).mlir_module())
    result = coset.optimize(tmp_path / "model.mlir", target="cpu-onnxruntime")
    assert result.report["warnings"] == ["the result does not say what the module says of it: 2 assertions about sizes"]


ASSERTION = '"stablehlo.custom_call"(%p, %n) <{call_target_name = "shape_assertion", has_side_effect = true}> {error_message = "no"}'
SIZE = '%n = "stablehlo.get_dimension_size"(%x) <{dimension = 0 : i64}> : (tensor<?xf32>) -> tensor<i32>'
COMPARED = "%p = stablehlo.compare LE, %n, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>"
CALLED = f"""
func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {{
  %0 = func.call @checked(%x) : (tensor<?xf32>) -> tensor<?xf32>
  %1 = func.call @checked(%y) : (tensor<?xf32>) -> tensor<?xf32>
  return %0, %1 : tensor<?xf32>, tensor<?xf32>
}}
func.func private @checked(%x: tensor<?xf32>) -> tensor<?xf32> {{
  %c = stablehlo.constant dense<4> : tensor<i32>
  {SIZE}
  {COMPARED}
  {ASSERTION} : (tensor<i1>, tensor<i32>) -> ()
  %0 = stablehlo.negate %x : tensor<?xf32>
  return %0 : tensor<?xf32>
}}
"""


def test_an_assertion_in_a_function_is_one_for_each_call() -> None:
    program = import_stablehlo(CALLED)
    text = print_stablehlo(program)
    measured = [line for line in text.split("\n") if "get_dimension_size" in line]
    assert text.count("shape_assertion") == 2 and ["%arg0" in line for line in measured] == [True, False]
    assert import_stablehlo(text) == program and print_stablehlo(import_stablehlo(text)) == text


BRANCH = f"""
func.func @main(%x: tensor<?xf32>, %q: tensor<i1>) -> tensor<?xf32> {{
  %c = stablehlo.constant dense<4> : tensor<i32>
  %r = "stablehlo.if"(%q) ({{
    %n = stablehlo.constant dense<3> : tensor<i32>
    %p = "stablehlo.if"(%q) ({{
      stablehlo.return %q : tensor<i1>
    }}, {{
      stablehlo.return %q : tensor<i1>
    }}) : (tensor<i1>) -> tensor<i1>
    %k = stablehlo.constant dense<true> : tensor<i1>
    {ASSERTION.replace("%p", "%k")} : (tensor<i1>, tensor<i32>) -> ()
    stablehlo.return %x : tensor<?xf32>
  }}, {{
    stablehlo.return %x : tensor<?xf32>
  }}) : (tensor<i1>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}}
"""


def test_an_assertion_in_a_branch_stands_there() -> None:
    """Only where the branch is taken may it fail."""
    program = import_stablehlo(BRANCH)
    origin: Any = program.source and program.source.origin
    assert origin.lost == ("an assertion about sizes inside of control flow",) and not origin.checks
