"""Bounds of dynamic dims are a part of a module's interface: they are written again."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch_mlir", reason="the extra `mlir` is not installed")

from torch_mlir import ir

import coset
from coset.frontends.stablehlo.module import new_context
from coset.frontends.stablehlo.program import import_stablehlo
from coset.ir.errors import CosetError
from coset.ir.types import TensorType
from coset.lowering.stablehlo.module import print_stablehlo

ROWS = "tensor<?x4xf32, #stablehlo.bounds<8, ?>>"


def interface(text: str) -> str:
    """The type of the function `main`."""
    module = ir.Module.parse(text, context=new_context())
    return str(next(op for op in module.body.operations if op.attributes["sym_name"].value == "main").attributes["function_type"])


def main(parameters: str, results: str, *lines: str, returned: str = "%r") -> str:
    body = "".join(f"  {line}\n" for line in lines)
    return f"func.func @main({parameters}) -> ({results}) {{\n{body}  return {returned} : {results}\n}}\n"


NUMBERS = "dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>"
COLUMNS = "tensor<4x?xf32, #stablehlo.bounds<?, 8>>"
TWICE = "tensor<?x4xf32, #stablehlo.bounds<16, ?>>"
PROGRAMS = [
    main(f"%x: {ROWS}", ROWS, returned="%x"),
    main(f"%x: {ROWS}", ROWS, f"%r = stablehlo.tanh %x : {ROWS}"),
    main("%x: tensor<?x4xf32, #stablehlo.type_extensions<bounds = [8, ?]>>", ROWS, f"%r = stablehlo.tanh %x : {ROWS}"),
    main(f"%x: {ROWS}", COLUMNS, f'%r = "stablehlo.transpose"(%x) <{{permutation = array<i64: 1, 0>}}> : ({ROWS}) -> {COLUMNS}'),
    main(f"%x: {ROWS}", TWICE, f'%r = "stablehlo.concatenate"(%x, %x) <{{dimension = 0 : i64}}> : ({ROWS}, {ROWS}) -> {TWICE}'),
    main(
        f"%x: {ROWS}, %w: tensor<4x3xf32>", "tensor<?x3xf32, #stablehlo.bounds<8, ?>>",
        f'%r = "stablehlo.dot_general"(%x, %w) <{{{NUMBERS}}}> : ({ROWS}, tensor<4x3xf32>) -> tensor<?x3xf32, #stablehlo.bounds<8, ?>>',
    ),
    main(f"%x: {ROWS}, %y: {TWICE}", ROWS, f'%r = "stablehlo.add"(%x, %y) : ({ROWS}, {TWICE}) -> {ROWS}'),
    main(f"%x: {ROWS}, %y: tensor<?x4xf32>", "tensor<?x4xf32>", "%r = stablehlo.tanh %y : tensor<?x4xf32>"),
    main(
        "%x: tensor<8x4xf32>, %n: tensor<i32>", ROWS,
        f'%r = "stablehlo.set_dimension_size"(%x, %n) <{{dimension = 0 : i64}}> : (tensor<8x4xf32>, tensor<i32>) -> {ROWS}',
    ),
    main(
        f"%x: {ROWS}, %p: tensor<i1>", ROWS,
        f'%r = "stablehlo.if"(%p) ({{\n %0 = stablehlo.tanh %x : {ROWS}\n stablehlo.return %0 : {ROWS}'
        f' }}, {{ stablehlo.return %x : {ROWS} }})'
        f" : (tensor<i1>) -> {ROWS}",
    ),
]  # fmt: skip


@pytest.mark.parametrize("text", PROGRAMS)
def test_the_interface_is_what_it_was(text: str) -> None:
    written = print_stablehlo(import_stablehlo(text))
    assert interface(written) == interface(text)
    assert print_stablehlo(import_stablehlo(written)) == written


def test_the_interface_stays_when_it_is_optimized(tmp_path: Path) -> None:
    lines = (f"%0 = stablehlo.negate %x : {ROWS}", f"%1 = stablehlo.negate %0 : {ROWS}", f"%r = stablehlo.add %1, %1 : {ROWS}")
    text = main(f"%x: {ROWS}", ROWS, *lines)
    (tmp_path / "model.mlir").write_text(text)
    coset.optimize(tmp_path / "model.mlir").save(tmp_path / "out.mlir")
    written = (tmp_path / "out.mlir").read_text()
    assert interface(written) == interface(text) and "negate" not in written


def test_a_bound_that_is_not_the_sum_of_those_of_the_operands_is_refused() -> None:
    wide = "tensor<?x4xf32, #stablehlo.bounds<20, ?>>"
    text = main(f"%x: {ROWS}", wide, f'%r = "stablehlo.concatenate"(%x, %x) <{{dimension = 0 : i64}}> : ({ROWS}, {ROWS}) -> {wide}')
    with pytest.raises(CosetError, match="dim 0 of the output `result0` has the bound 20, but 16 in the result"):
        print_stablehlo(import_stablehlo(text))


def test_a_tensor_of_another_encoding_is_no_dense_tensor() -> None:
    sparse = 'tensor<4xf32, "packed">'
    program = import_stablehlo(f"func.func @main(%x: {sparse}) -> {sparse} {{\n  return %x : {sparse}\n}}\n")
    assert not isinstance(program.inputs[0].type, TensorType) and sparse in print_stablehlo(program)
