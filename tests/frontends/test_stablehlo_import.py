"""StableHLO in: functions, dynamic dims, constants, regions, kept operations, and errors that say where and what to do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch_mlir", reason="the `mlir` extra is not installed")

from torch_mlir import ir
from torch_mlir._mlir_libs import _stablehlo as hlo

from coset.dialects.hub.mlir_text import TEXT_OF_DTYPE, dense_text, type_text
from coset.frontends.stablehlo.module import new_context
from coset.frontends.stablehlo.program import import_stablehlo
from coset.ir import dims
from coset.ir.builtin import OPAQUE
from coset.ir.errors import CosetError
from coset.ir.evaluate import evaluate_program
from coset.ir.program import Program
from coset.ir.term import Term
from coset.ir.types import DType, TensorType
from coset.lowering.stablehlo.module import print_stablehlo

Array = np.ndarray[Any, Any]


def module(body: str, parameters: str = "%x: tensor<4xf32>", results: str = "tensor<4xf32>") -> str:
    """A module whose `main` has this body."""
    return f"func.func @main({parameters}) -> ({results}) {{\n{body}\n}}\n"


def run(program: Program, *arrays: Array) -> list[Array]:
    feed = {term.attribute("name"): array for term, array in zip(program.inputs, arrays, strict=True)}
    return evaluate_program(program, feed)[: len(program.outputs)]


def ops(program: Program) -> list[str]:
    return [term.op.name for term in program.terms()]


def find(program: Program, name: str) -> Term:
    return next(term for term in program.terms() if term.op.name == name)


# ---------------------------------------------------------------- forms of the source

ADD = module("%0 = stablehlo.add %x, %x : tensor<4xf32>\nreturn %0 : tensor<4xf32>")


def test_text_bytecode_artifact_and_files_are_one_program(tmp_path: Path) -> None:
    context = new_context()
    parsed = ir.Module.parse(ADD, context=context)
    generic = parsed.operation.get_asm(print_generic_op_form=True)
    artifact = hlo.serialize_portable_artifact_str(ADD, hlo.get_current_version())
    with (tmp_path / "m.mlirbc").open("wb") as file:
        parsed.operation.write_bytecode(file)
    (tmp_path / "m.mlir").write_text(ADD)
    sources = [ADD, generic, ADD.encode(), artifact, tmp_path / "m.mlirbc", str(tmp_path / "m.mlir")]
    programs = [import_stablehlo(source) for source in sources]
    assert all(program.roots == programs[0].roots for program in programs)


def test_names_of_arguments_and_results() -> None:
    text = """#a = loc("weights")
    func.func public @main(%arg0: tensor<2xf32> loc("x"), %arg1: tensor<2xf32> loc(#a), %arg2: tensor<2xf32>)
        -> (tensor<2xf32> {jax.result_info = "result[0]"}, tensor<2xf32>) {
      return %arg0, %arg2 : tensor<2xf32>, tensor<2xf32>
    }"""
    program = import_stablehlo(text)
    assert [term.attribute("name") for term in program.inputs] == ["x", "weights", "arg2"]
    assert [name for name, _ in program.outputs] == ["result[0]", "result1"]


# ---------------------------------------------------------------- functions


def test_private_functions_are_put_in_where_they_are_called() -> None:
    text = """func.func @main(%x: tensor<f32>) -> tensor<f32> {
      %0:2 = call @twice(%x) : (tensor<f32>) -> (tensor<f32>, tensor<f32>)
      %1:2 = call @twice(%0#1) : (tensor<f32>) -> (tensor<f32>, tensor<f32>)
      return %1#1 : tensor<f32>
    }
    func.func private @twice(%x: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
      %0 = stablehlo.add %x, %x : tensor<f32>
      return %x, %0 : tensor<f32>, tensor<f32>
    }"""
    program = import_stablehlo(text)
    assert ops(program) == ["builtin.input", "stablehlo.add", "stablehlo.add"]
    assert run(program, np.float32(3)) == [12]


def test_a_circle_of_calls_is_an_error_that_shows_it() -> None:
    text = """func.func @main(%x: tensor<f32>) -> tensor<f32> {
      %0 = call @f(%x) : (tensor<f32>) -> tensor<f32>
      return %0 : tensor<f32>
    }
    func.func private @f(%x: tensor<f32>) -> tensor<f32> {
      %0 = call @g(%x) : (tensor<f32>) -> tensor<f32>
      return %0 : tensor<f32>
    }
    func.func private @g(%x: tensor<f32>) -> tensor<f32> {
      %0 = call @f(%x) : (tensor<f32>) -> tensor<f32>
      return %0 : tensor<f32>
    }"""
    with pytest.raises(CosetError, match=r"in a circle: f -> g -> f"):
        import_stablehlo(text)


# ---------------------------------------------------------------- dynamic dims


def test_sizes_that_every_run_needs_to_be_equal_are_one_symbol() -> None:
    text = module(
        """%0 = stablehlo.add %x, %y : tensor<?x?xf32>
        %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0] : (tensor<?x?xf32>, tensor<8x?xf32>) -> tensor<?x?xf32>
        return %1 : tensor<?x?xf32>""",
        "%x: tensor<?x?xf32>, %y: tensor<?x?xf32>, %w: tensor<8x?xf32>",
        "tensor<?x?xf32>",
    )
    x, y, w = (term.tensor.dims for term in import_stablehlo(text).inputs)
    assert x == y and x[1] == 8 and x[0] != w[1]


def test_a_declared_size_refines_a_symbol() -> None:
    text = module(
        "%0 = stablehlo.abs %x : (tensor<?xf32>) -> tensor<5xf32>\nreturn %0 : tensor<5xf32>", "%x: tensor<?xf32>", "tensor<5xf32>"
    )
    assert import_stablehlo(text).inputs[0].tensor.dims == (5,)


def test_shape_arithmetic_becomes_dims() -> None:
    text = module(
        """%n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x3xf32>) -> tensor<i32>
        %two = stablehlo.constant dense<2> : tensor<i32>
        %m = stablehlo.multiply %n, %two : tensor<i32>
        %a = stablehlo.reshape %m : (tensor<i32>) -> tensor<1xi32>
        %c = stablehlo.constant dense<[3]> : tensor<1xi32>
        %s = stablehlo.concatenate %a, %c, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
        %z = stablehlo.constant dense<1.0> : tensor<f32>
        %b = stablehlo.dynamic_broadcast_in_dim %z, %s, dims = [] : (tensor<f32>, tensor<2xi32>) -> tensor<?x3xf32>
        return %b, %m : tensor<?x3xf32>, tensor<i32>""",
        "%x: tensor<?x3xf32>",
        "tensor<?x3xf32>, tensor<i32>",
    )
    program = import_stablehlo(text)
    n = program.inputs[0].tensor.dims[0]
    assert program.outputs[0][1].tensor.dims == (dims.multiply(2, n), 3)
    ones, m = run(program, np.zeros((5, 3), np.float32))
    assert ones.shape == (10, 3) and m == 10


def test_a_shape_that_is_data_gives_fresh_symbols() -> None:
    text = module(
        "%0 = stablehlo.dynamic_reshape %x, %s : (tensor<6xf32>, tensor<2xi32>) -> tensor<?x?xf32>\nreturn %0 : tensor<?x?xf32>",
        "%x: tensor<6xf32>, %s: tensor<2xi32>",
        "tensor<?x?xf32>",
    )
    program = import_stablehlo(text)
    assert "stablehlo.dynamic_reshape" in ops(program)
    assert run(program, np.arange(6, dtype=np.float32), np.array([3, 2], np.int32))[0].shape == (3, 2)


# ---------------------------------------------------------------- constants


@pytest.mark.parametrize("dtype", TEXT_OF_DTYPE, ids=str)
@pytest.mark.parametrize("shape", [(), (3,), (0, 2), (40, 5)])
def test_constants_of_every_element_type_keep_every_bit(dtype: DType, shape: tuple[int, ...]) -> None:
    raw = np.random.default_rng(0).integers(0, 256, (*shape, dtype.numpy.itemsize)).astype(np.uint8)
    array = np.zeros(shape, dtype.numpy) if dtype.bits < 8 or dtype.kind == "bool" else raw.view(dtype.numpy)[..., 0]
    if dtype.bits < 8 or dtype.kind == "bool":
        array = np.asarray(raw[..., 0] & 1).astype(dtype.numpy)
    type = type_text(TensorType(dtype, shape))
    program = import_stablehlo(module(f"%0 = stablehlo.constant {dense_text(array, dtype)} : {type}\nreturn %0 : {type}", "", type))
    (value,) = run(program)
    assert value.dtype == dtype.numpy and value.shape == shape and np.ascontiguousarray(value).tobytes() == array.tobytes()


def test_resources_are_read_from_text_and_bytecode(tmp_path: Path) -> None:
    weights = np.arange(8, dtype=np.float32)
    text = module("%0 = stablehlo.constant dense_resource<w> : tensor<8xf32>\nreturn %0 : tensor<8xf32>", "", "tensor<8xf32>")
    text += f'{{-# dialect_resources: {{ builtin: {{ w: "0x04000000{weights.tobytes().hex()}" }} }} #-}}\n'
    with (tmp_path / "m.mlirbc").open("wb") as file:
        ir.Module.parse(text, context=new_context()).operation.write_bytecode(file)
    for source in (text, tmp_path / "m.mlirbc"):
        assert np.array_equal(run(import_stablehlo(source))[0], weights)


def test_a_resource_without_data_is_named() -> None:
    text = module("%0 = stablehlo.constant dense_resource<lost> : tensor<8xf32>\nreturn %0 : tensor<8xf32>", "", "tensor<8xf32>")
    with pytest.raises(CosetError, match="`lost` has no data"):
        import_stablehlo(text)


# ---------------------------------------------------------------- regions


def test_a_reduction_by_one_op_is_a_word() -> None:
    text = module(
        """%i = stablehlo.constant dense<0.0> : tensor<f32>
        %0 = stablehlo.reduce(%x init: %i) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
        return %0 : tensor<f32>""",
        results="tensor<f32>",
    )
    program = import_stablehlo(text)
    assert ops(program) == ["builtin.input", "stablehlo.reduce"] and find(program, "stablehlo.reduce").attribute("combiner") == "add"


def test_another_init_value_is_combined_in() -> None:
    text = module(
        """%i = stablehlo.constant dense<7.0> : tensor<f32>
        %0 = stablehlo.reduce(%x init: %i) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
        return %0 : tensor<f32>""",
        results="tensor<f32>",
    )
    assert run(import_stablehlo(text), np.ones(4, np.float32)) == [11]


@pytest.mark.parametrize("init", [0.0, 2.0])
def test_the_init_value_of_a_window_pads_it(init: float) -> None:
    text = module(
        f"""%i = stablehlo.constant dense<{init}> : tensor<f32>
        %0 = "stablehlo.reduce_window"(%x, %i) <{{window_dimensions = array<i64: 2>, padding = dense<1> : tensor<1x2xi64>}}> ({{
          ^bb0(%a: tensor<f32>, %b: tensor<f32>):
            %s = stablehlo.add %a, %b : tensor<f32>
            stablehlo.return %s : tensor<f32>
        }}) : (tensor<4xf32>, tensor<f32>) -> tensor<5xf32>
        return %0 : tensor<5xf32>""",
        results="tensor<5xf32>",
    )
    padded = np.pad(np.arange(4, dtype=np.float32), 1, constant_values=init)
    assert np.array_equal(run(import_stablehlo(text), np.arange(4, dtype=np.float32))[0], padded[:-1] + padded[1:] + init)


def test_values_that_branches_and_loops_capture_are_operands() -> None:
    text = module(
        """%zero = stablehlo.constant dense<0> : tensor<i32>
        %one = stablehlo.constant dense<1> : tensor<i32>
        %y = stablehlo.negate %x : tensor<4xf32>
        %0 = "stablehlo.if"(%p) ({ stablehlo.return %x : tensor<4xf32> }, {
          stablehlo.return %y : tensor<4xf32> }) : (tensor<i1>) -> tensor<4xf32>
        %1:2 = stablehlo.while(%i = %zero, %a = %0) : tensor<i32>, tensor<4xf32>
          cond { %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
                 stablehlo.return %c : tensor<i1> }
          do { %j = stablehlo.add %i, %one : tensor<i32>
               %b = stablehlo.add %a, %y : tensor<4xf32>
               stablehlo.return %j, %b : tensor<i32>, tensor<4xf32> }
        return %1#1 : tensor<4xf32>""",
        "%x: tensor<4xf32>, %p: tensor<i1>, %n: tensor<i32>",
    )
    program = import_stablehlo(text)
    x = np.arange(4, dtype=np.float32)
    assert len(find(program, "stablehlo.while").operands) == 4  # i, a, and the captured n and y
    assert np.array_equal(run(program, x, np.bool_(True), np.int32(3))[0], x - 3 * x)
    assert np.array_equal(run(import_stablehlo(print_stablehlo(program)), x, np.bool_(False), np.int32(2))[0], -3 * x)


# ---------------------------------------------------------------- what we do not know


UNKNOWN = {
    "unregistered op": '%0 = "foo.bar"(%x) {a = [1, 2], s = "%x {\\22"} : (tensor<4xf32>) -> tensor<4xf32>',
    "custom call": "%0 = stablehlo.custom_call @f(%x) {backend_config = \"{}\"} : (tensor<4xf32>) -> tensor<4xf32>",
    "captured values": """%1 = stablehlo.negate %x : tensor<4xf32>
      %0 = "foo.region"(%x) ({ ^bb0(%a: tensor<f32>):
        %2 = stablehlo.add %1, %x : tensor<4xf32>
        "foo.yield"(%2, %a) : (tensor<4xf32>, tensor<f32>) -> ()
      }) : (tensor<4xf32>) -> tensor<4xf32>""",
    "element type": """%1 = stablehlo.convert %x : (tensor<4xf32>) -> tensor<4xf8E3M4>
      %0 = stablehlo.convert %1 : (tensor<4xf8E3M4>) -> tensor<4xf32>""",
}  # fmt: skip


@pytest.mark.parametrize("body", UNKNOWN.values(), ids=UNKNOWN)
def test_what_we_do_not_know_is_kept_exactly(body: str) -> None:
    program = import_stablehlo(module(f"{body}\nreturn %0 : tensor<4xf32>"))
    assert any(term.op is OPAQUE for term in program.terms())
    text = print_stablehlo(program)
    again = import_stablehlo(text)
    assert [r.type for r in again.roots] == [r.type for r in program.roots] and print_stablehlo(again) == text
    kept = [term for term in program.terms() if term.op is OPAQUE]
    for one, other in zip(kept, [term for term in again.terms() if term.op is OPAQUE], strict=True):
        assert (one.attribute("name"), one.attribute("domain")) == (other.attribute("name"), other.attribute("domain"))


def test_effects_stay_in_order_and_are_never_doubled_or_dropped() -> None:
    call = "stablehlo.custom_call @log(%x) {has_side_effect = true} : (tensor<4xf32>) -> ()"
    program = import_stablehlo(module(f"{call}\n{call}\nreturn %x : tensor<4xf32>"))
    assert program.effects is not None and ops(program).count("builtin.opaque") == 2
    assert print_stablehlo(program).count('"stablehlo.custom_call"') == 2


def test_two_draws_are_two_draws() -> None:
    draw = "stablehlo.rng %a, %a, %s, distribution = NORMAL : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<4xf32>"
    body = f"""%a = stablehlo.constant dense<1.0> : tensor<f32>
      %s = stablehlo.constant dense<4> : tensor<1xi64>
      %0 = {draw}
      %1 = {draw}
      %2 = stablehlo.subtract %0, %1 : tensor<4xf32>
      return %2 : tensor<4xf32>"""
    program = import_stablehlo(module(body, ""))
    assert program.effects is not None and print_stablehlo(program).count('"stablehlo.rng"') == 2


# ---------------------------------------------------------------- errors


def test_a_mistake_in_the_text_has_its_place() -> None:
    with pytest.raises(CosetError) as caught:
        import_stablehlo("func.func @main(%x: tensor<2xf32>) -> tensor<3xf32> {\n  return %x : tensor<2xf32>\n}")
    assert caught.value.place is not None and (caught.value.place.line, caught.value.place.column) == (2, 3)
    assert "doesn't match" in caught.value.message


@pytest.mark.parametrize(
    ("source", "what"),
    [("no/such/file.mlir", "cannot read"), (b"\xff\xfe", "neither MLIR text nor"), ("module {\n}", "no function `main`"),
     ("func.func @a() { return }\nfunc.func @b() { return }", "public functions are: a, b"), (b"ML\xefR garbage", "MLIR refuses")],
)  # fmt: skip
def test_what_is_no_module_is_refused(source: str | bytes, what: str) -> None:
    with pytest.raises(CosetError, match=what):
        import_stablehlo(source)


def test_a_missing_wheel_is_one_line_that_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['torch_mlir'] = None\n"
        "from coset.ir.extras import MissingExtra\nfrom coset.frontends.stablehlo.program import import_stablehlo\n"
        "try:\n    import_stablehlo('func.func @main() {\\n return }')\nexcept MissingExtra as error:\n    print(error.message, error.help)"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert answer.count("\n") == 1 and "pip install torch-mlir==" in answer
