"""StableHLO out: dims, constants, payloads, defined ops, and what is refused; MLIR reads it again where it is there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coset.dialects
from coset.dialects.hub.region_terms import while_term
from coset.dialects.hub.terms import broadcast, literal, numpy_broadcast, reshape, splat
from coset.ir import dims
from coset.ir.builtin import DIMS, OPAQUE
from coset.ir.dims import Dim
from coset.ir.errors import CosetError
from coset.ir.evaluate import evaluate_program
from coset.ir.program import Program
from coset.ir.term import Term, input_term, make
from coset.ir.types import DTYPES, F32, I32, TensorType
from coset.lowering.stablehlo.module import print_stablehlo, write_stablehlo
from coset.rules.definition import evaluate_defined

assert coset.dialects
B, C = dims.symbol("B"), dims.symbol("C")


def floats(name: str, *shape: Dim) -> Term:
    return input_term(name, TensorType(F32, shape))


def program(*roots: Term, inputs: tuple[Term, ...]) -> Program:
    return Program(inputs, tuple((f"out{index}", root) for index, root in enumerate(roots)))


def printed_again(made: Program) -> Program:
    """The printed text, read by MLIR."""
    pytest.importorskip("torch_mlir", reason="the `mlir` extra is not installed")
    from coset.frontends.stablehlo.program import import_stablehlo

    return import_stablehlo(print_stablehlo(made))


def test_a_small_program_reads_well() -> None:
    x, w = floats("x", 2, 3), floats("w", 3, 4)
    y = make("stablehlo.tanh", (make("stablehlo.dot_general", (x, w), {"lhs_contract": (1,), "rhs_contract": (0,)}),))
    total = make("stablehlo.reduce", (y,), {"dimensions": (0,), "combiner": "add"})
    assert print_stablehlo(program(total, inputs=(x, w))) == GOLDEN


GOLDEN = """module {
  func.func public @main(%x: tensor<2x3xf32> loc("x"), %w: tensor<3x4xf32> loc("w")) -> (tensor<4xf32> {jax.result_info = "out0"}) {
    %v2 = "stablehlo.dot_general"(%x, %w) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
    %v3 = stablehlo.tanh %v2 : tensor<2x4xf32>
    %v4 = stablehlo.constant dense<0.0> : tensor<f32>
    %v8 = "stablehlo.reduce"(%v3, %v4) <{dimensions = array<i64: 0>}> ({
      ^bb0(%v5: tensor<f32>, %v6: tensor<f32>):
      %v7 = stablehlo.add %v5, %v6 : tensor<f32>
      "stablehlo.return"(%v7) : (tensor<f32>) -> ()
    }) : (tensor<2x4xf32>, tensor<f32>) -> tensor<4xf32>
    return %v8 : tensor<4xf32>
  }
}
"""  # noqa: E501

DIM_EXPRESSIONS: list[Dim] = [
    B, dims.multiply(2, B), dims.add(dims.multiply(B, C), -1), dims.floordiv(dims.add(B, 1), 2), dims.mod(B, 3),
    dims.maximum(B, C), dims.minimum(B, dims.add(C, 2)), dims.floordiv(dims.subtract(B, C), 2), dims.mod(dims.subtract(B, C), 3),
]  # fmt: skip


@pytest.mark.parametrize("dim", DIM_EXPRESSIONS, ids=str)
def test_dims_are_computed_from_the_sizes_of_values(dim: Dim) -> None:
    x = floats("x", B, C)
    made = program(make(DIMS, (), {"dims": (dim,), "type": TensorType(I32, (1,))}), inputs=(x,))
    again = printed_again(made)
    for shape in ((5, 2), (2, 7), (4, 4)):
        wanted = dims.evaluate(dim, dict(zip("BC", shape, strict=True)))
        assert evaluate_program(again, {"x": np.zeros(shape, np.float32)})[0] == wanted


def test_symbolic_shapes_take_the_dynamic_forms() -> None:
    x = floats("x", B, 3)
    text = print_stablehlo(program(
        reshape(x, (dims.multiply(3, B),)), numpy_broadcast(floats("y", 3), (B, 3)), splat(1.0, F32, (B,)),
        make("stablehlo.iota", (), {"shape": (B, 2), "dtype": I32, "dimension": 0}),
        make("stablehlo.slice", (x,), {"start": (1, 0), "limit": (B, 2), "strides": (1, 1)}),
        inputs=(x, floats("y", 3)),
    ))  # fmt: skip
    for name in ("dynamic_reshape", "dynamic_broadcast_in_dim", "dynamic_iota", "real_dynamic_slice"):
        assert f'"stablehlo.{name}"' in text


def test_numbers_for_the_dims_give_static_text() -> None:
    x = floats("x", B, 3)
    made = program(reshape(make("stablehlo.abs", (x,)), (dims.multiply(3, B),)), inputs=(x,))
    text = print_stablehlo(made, binding={"B": 4})
    assert "?" not in text and "dynamic" not in text and "tensor<12xf32>" in text


def test_a_symbol_that_no_value_introduces_is_named() -> None:
    x = floats("x", dims.multiply(2, B))
    with pytest.raises(CosetError, match="needs the number of the dim `B`"):
        print_stablehlo(program(splat(1.0, F32, (B,)), inputs=(x,)))


def test_what_has_no_form_is_named() -> None:
    x = floats("x", 3)
    kept = make(OPAQUE, (x,), {"domain": "com.foo", "name": "Bar", "payload": b"", "results": (x.type,)})
    with pytest.raises(CosetError, match=r"`com\.foo\.Bar` is known to its own format only"):
        print_stablehlo(program(kept, inputs=(x,)))
    state = input_term("s", TensorType(DTYPES["u64"], (2,)))
    drawn = make("stablehlo.rng_bit_generator", (state,), {"rng_algorithm": "THREE_FRY", "dtype": DTYPES["u32"], "shape": (B,)})
    with pytest.raises(CosetError, match=r"`stablehlo\.rng_bit_generator`: its result has symbolic sizes"):
        print_stablehlo(program(make("builtin.get", (drawn,), {"index": 1}), inputs=(state, floats("x", B))))


def test_ops_of_onnx_are_printed_by_their_definitions() -> None:
    x, scale = floats("x", B, 8), floats("scale", 8)
    made = program(
        make("onnx.LayerNormalization", (x, scale, make("builtin.absent"))), make("onnx.Gelu", (x,)), make("onnx.Softmax", (x,)),
        inputs=(x, scale),
    )  # fmt: skip
    text = print_stablehlo(made)
    assert "onnx" not in text
    feed = {"x": np.random.default_rng(0).normal(size=(3, 8)).astype(np.float32), "scale": np.ones(8, np.float32)}
    for mine, other in zip(
        evaluate_program(printed_again(made), feed, fallback=evaluate_defined),
        evaluate_program(made, feed, fallback=evaluate_defined),
        strict=True,
    ):
        np.testing.assert_array_equal(mine, other)


def test_names_that_are_no_identifiers_are_kept_beside() -> None:
    x, y = floats("a b/c:0", 2), floats("v1", 2)
    text = print_stablehlo(program(make("stablehlo.add", (x, make("stablehlo.negate", (y,)))), inputs=(x, y)))
    assert 'loc("a b/c:0")' in text and text.count("%v1 =") == 0


def test_large_constants_are_bytes_and_splats_are_one_number() -> None:
    x = floats("x", 40)
    ramp = literal(np.arange(40, dtype=np.float32))
    text = print_stablehlo(program(make("stablehlo.add", (x, ramp)), broadcast(literal(np.float32(2)), (40,), ()), inputs=(x,)))
    assert 'dense<"0x00000000' in text and "dense<2.0> : tensor<40xf32>" in text


def test_loops_print_and_read_again() -> None:
    x, n = floats("x", B), input_term("n", TensorType(I32, ()))
    zero, one = (literal(np.int32(value)) for value in (0, 1))

    def below(i: Term, _: Term, n: Term) -> Term:
        return make("stablehlo.compare", (i, n), {"direction": "LT"})

    def body(i: Term, a: Term, n: Term) -> list[Term]:
        return [make("stablehlo.add", (i, one)), make("stablehlo.add", (a, splat(1.0, F32, (B,)))), n]

    made = program(make("builtin.get", (while_term((zero, x, n), below, body),), {"index": 1}), inputs=(x, n))
    feed: dict[str, Any] = {"x": np.arange(3, dtype=np.float32), "n": np.int32(4)}
    np.testing.assert_array_equal(evaluate_program(printed_again(made), feed)[0], feed["x"] + 4)


def test_files_appear_whole(tmp_path: Path) -> None:
    x = floats("x", 2)
    write_stablehlo(program(make("stablehlo.abs", (x,)), inputs=(x,)), tmp_path / "m.mlir")
    assert [path.name for path in tmp_path.iterdir()] == ["m.mlir"]
    with pytest.raises(CosetError, match="cannot write"):
        write_stablehlo(program(x, inputs=(x,)), tmp_path / "none" / "m.mlir")
