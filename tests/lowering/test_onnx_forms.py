"""What programs print to: the values that ONNX Runtime computes, and how few nodes it takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest

import coset.dialects  # noqa: F401  (registers the ops)
from coset.backends.onnxruntime import Session
from coset.dialects.hub.terms import broadcast, dot, literal, numpy_broadcast, reshape, splat
from coset.dialects.onnx.origin import OnnxOrigin
from coset.ir import dims
from coset.ir.builtin import OPAQUE, absent
from coset.ir.dim_text import parse
from coset.ir.errors import CosetError
from coset.ir.evaluate import evaluate
from coset.ir.op import find_op
from coset.ir.program import Program
from coset.ir.program_source import ProgramSource
from coset.ir.term import Term, constant, input_term, make
from coset.ir.types import BOOL, DTYPES, F32, I64, DType, TensorType, tensor
from coset.lowering.onnx.model import highest_opset, lower, printable
from coset.rules.definition import evaluate_defined

B, S = dims.symbol("B"), dims.symbol("S")
RANDOM = np.random.default_rng(7)
ROUNDING = 1e-5  # of f32 sums of at most 64 terms: 64 * 2^-24 and some


def x_of(*shape: dims.Dim, name: str = "x", dtype: DType = F32) -> Term:
    return input_term(name, TensorType(dtype, shape))


def program_of(*outputs: Term, opset: int | None = None) -> Program:
    inputs: dict[Term, None] = {}
    for term in Program((), tuple(enumerate(outputs))).terms():  # type: ignore[arg-type]
        if term.op.name == "builtin.input":
            inputs[term] = None
    named = tuple((f"y{index}", term) for index, term in enumerate(outputs))
    return Program(tuple(inputs), named, source=None if opset is None else ProgramSource(origin=OnnxOrigin(opsets={"": opset})))


def printed(program: Program) -> Counter[str]:
    return Counter(node.op_type for node in lower(program).graph.node)


def agrees(program: Program, binding: Mapping[str, int] | None = None) -> Counter[str]:
    """Check the model, run it and the evaluator, and count the printed nodes."""
    model = lower(program)
    onnx.checker.check_model(model, full_check=True)
    feed: dict[str, Any] = {}
    for term in program.inputs:
        shape = tuple(dims.evaluate(dim, binding or {}) for dim in term.tensor.dims)
        feed[term.attribute("name")] = np.asarray(RANDOM.standard_normal(shape) * 4).astype(term.tensor.dtype.numpy)
    found = Session(model.SerializeToString()).run(feed)
    expected = evaluate([term for _, term in program.outputs], feed, fallback=evaluate_defined)
    for (name, _), value in zip(program.outputs, expected, strict=True):
        assert found[name].shape == value.shape
        assert np.allclose(found[name], value, rtol=ROUNDING, atol=ROUNDING), name
    return Counter(node.op_type for node in model.graph.node)


def test_broadcasts_of_operands_are_left_to_numpy() -> None:
    x = x_of(B, 3, 4)
    bias = numpy_broadcast(x_of(4, name="b"), x.tensor.dims)
    column = broadcast(x_of(3, name="c"), x.tensor.dims, (1,))
    two = splat(2.0, F32, x.tensor.dims)
    total = make("stablehlo.multiply", (make("stablehlo.add", (make("stablehlo.add", (x, bias)), column)), two))
    assert agrees(program_of(total), {"B": 2}) == {"Add": 2, "Mul": 1, "Unsqueeze": 1}


def test_a_broadcast_that_the_shape_needs_is_printed() -> None:
    row, column = (broadcast(x_of(n, name=f"v{n}"), (3, 4, 5), (axis,)) for n, axis in ((4, 1), (5, 2)))
    assert agrees(program_of(make("stablehlo.add", (row, column))))["Expand"] == 1


@pytest.mark.parametrize("op", ["stablehlo.add", "stablehlo.divide"])
@pytest.mark.parametrize("swapped", [False, True])
def test_leading_ones_that_no_operand_has_are_a_reshape(op: str, swapped: bool) -> None:
    """The outer product of mamba's scan: [N] and [M] to [1, N, M]; an Expand would write all of it."""
    operands = [broadcast(x_of(n, name=f"v{n}"), (1, 4, B), (axis,)) for n, axis in ((4, 1), (B, 2))]
    found = agrees(program_of(make(op, operands[::-1] if swapped else operands)), {"B": 5})
    assert "Expand" not in found and found["Unsqueeze"] <= 2, found
    same = broadcast(x_of(4, name="v4"), (1, 1, 4), (2,))
    assert "Expand" not in agrees(program_of(make(op, (same, same))))


def test_a_reduction_whose_dims_a_broadcast_keeps_is_printed_so() -> None:
    x = x_of(B, S, 8)
    total = make("stablehlo.reduce", (x,), {"dimensions": (2,), "combiner": "add"})
    centred = make("stablehlo.subtract", (x, broadcast(total, x.tensor.dims, (0, 1))))
    assert agrees(program_of(centred), {"B": 2, "S": 3}) == {"ReduceSum": 1, "Sub": 1}
    both = agrees(program_of(centred, total), {"B": 2, "S": 3})
    assert both == {"ReduceSum": 1, "Sub": 1, "Squeeze": 1}, "one reduction serves both shapes"


def test_slices_that_are_all_of_a_value_are_one_split() -> None:
    x = x_of(2, 9)
    parts = [make("stablehlo.slice", (x,), {"start": (0, a), "limit": (2, b), "strides": (1, 1)}) for a, b in ((0, 4), (4, 6), (6, 9))]
    assert agrees(program_of(*parts)) == {"Split": 1}
    assert agrees(program_of(*parts[:2])) == {"Slice": 2}
    assert agrees(program_of(*parts, opset=12)) == {"Split": 1}


MATMULS: list[tuple[tuple[Any, ...], tuple[Any, ...], dict[str, tuple[int, ...]], dict[str, int]]] = [
    ((4, 8), (8, 5), {"lhs_contract": (1,), "rhs_contract": (0,)}, {"MatMul": 1}),
    ((2, B, 8), (8, 5), {"lhs_contract": (2,), "rhs_contract": (0,)}, {"MatMul": 1}),
    ((8,), (8, 5), {"lhs_contract": (0,), "rhs_contract": (0,)}, {"MatMul": 1}),
    ((B, 4, 8), (B, 8, 5), {"lhs_batch": (0,), "rhs_batch": (0,), "lhs_contract": (2,), "rhs_contract": (1,)}, {"MatMul": 1}),
    (
        (B, 4, 8),
        (B, 5, 8),
        {"lhs_batch": (0,), "rhs_batch": (0,), "lhs_contract": (2,), "rhs_contract": (2,)},
        {"MatMul": 1, "Transpose": 1},
    ),
    ((8, 4), (8, 5), {"lhs_contract": (0,), "rhs_contract": (0,)}, {"MatMul": 1, "Transpose": 1}),
    ((B, 4, 2, 3), (B, 2, 3, 5), {"lhs_batch": (0,), "rhs_batch": (0,), "lhs_contract": (2, 3), "rhs_contract": (1, 2)}, {"MatMul": 1}),
    ((3,), (4,), {}, {"MatMul": 1}),
    ((B, 3), (B, 3), {"lhs_batch": (0, 1), "rhs_batch": (0, 1)}, {"MatMul": 1}),
    ((2, 3), (4, 3, 5, 6), {"lhs_contract": (1,), "rhs_contract": (1,)}, {"MatMul": 1}),
]


@pytest.mark.parametrize(("left", "right", "attributes", "least"), MATMULS, ids=str)
def test_every_contraction_is_one_matmul(left: Any, right: Any, attributes: Any, least: dict[str, int]) -> None:
    product = dot(x_of(*left), x_of(*right, name="w"), **attributes)
    counts = agrees(program_of(product), {"B": 2})
    assert counts["MatMul"] == 1
    assert all(counts[name] == number for name, number in least.items())


def test_a_transpose_of_a_weight_is_done_when_it_is_written() -> None:
    weight = constant(RANDOM.standard_normal((5, 8)).astype(np.float32))
    assert agrees(program_of(dot(x_of(4, 8), weight, lhs_contract=(1,), rhs_contract=(1,)))) == {"MatMul": 1}


def test_reshapes_copy_dims_and_compute_only_what_is_left() -> None:
    x = x_of(B, S, 12)
    assert agrees(program_of(reshape(x, (B, S, 3, 4))), {"B": 2, "S": 5}) == {"Reshape": 1}
    assert agrees(program_of(reshape(x, (dims.multiply(B, S), 12))), {"B": 2, "S": 5}) == {"Reshape": 1}
    assert agrees(program_of(reshape(x, (B, 1, S, 12))), {"B": 2, "S": 5}) == {"Unsqueeze": 1}
    # -1 beside a dim that may be 0 fails for empty batches, so that the dim is computed
    moved = reshape(x, (B, dims.multiply(2, S), 6))
    assert "Shape" in agrees(program_of(moved), {"B": 0, "S": 5})


@pytest.mark.parametrize("opset", [7, 8, 9, 10])
@pytest.mark.parametrize("dtype", ["f32", "i64"])
def test_old_versions_have_forms_for_pads_and_bounds(opset: int, dtype: str) -> None:
    """Before version 11 Pad and Clip take their numbers as attributes, and floats only: what is computed, or whole, has other forms."""
    kind = DTYPES[dtype]
    x, value, low, high = x_of(2, 3, dtype=kind), x_of(name="v", dtype=kind), splat(-1, kind, ()), splat(2, kind, ())
    sizes = {"low": (1, 0), "high": (0, 2), "interior": (0, 0)}
    padded = [make("stablehlo.pad", (x, given), sizes) for given in (splat(3, kind, ()), value)]
    bound = make("stablehlo.abs", (value,))
    clipped = [make("onnx.Clip", (x, *bounds)) for bounds in ((low, high), (low, absent()), (make("stablehlo.negate", (bound,)), bound))]
    model = lower(program_of(*padded, *(clipped if kind == F32 else ()), opset=opset))
    assert [entry.version for entry in model.opset_import] == [opset]
    agrees(program_of(*padded, *(clipped if kind == F32 else ()), opset=opset))


@pytest.mark.parametrize("opset", [11, 13, 18, 20])
@pytest.mark.parametrize(
    "text", ["B", "2*B + 3", "B*S - 1", "floordiv(S, 2)", "floordiv(B - 7, 2)", "mod(S, 3)", "max(B, S)", "min(4, S)", "-S"]
)
def test_numbers_of_the_host_are_computed_from_shapes(text: str, opset: int) -> None:
    elements = (parse(text), 5, B, S)
    numbers = make("builtin.dims", (), {"dims": elements, "type": TensorType(I64, (4,))})
    x = x_of(B, 3, S)
    program = Program(
        (x,), (("y", numbers), ("z", make("stablehlo.abs", (x,)))), source=ProgramSource(origin=OnnxOrigin(opsets={"": opset}))
    )
    model = lower(program)
    onnx.checker.check_model(model, full_check=True)
    for binding in ({"B": 2, "S": 5}, {"B": 9, "S": 1}, {"B": 1, "S": 8}):
        found = Session(model.SerializeToString()).run({"x": np.zeros((binding["B"], 3, binding["S"]), np.float32)})
        assert found["y"].tolist() == [dims.evaluate(dim, binding) for dim in elements]


def test_numbers_of_one_place_or_several_and_of_another_type() -> None:
    shapes: list[tuple[int, ...]] = [(), (2, 2), (4,)]
    terms = []
    for shape in shapes:
        elements = (B, 2, dims.add(B, 1), S)[: int(np.prod(shape, dtype=int))]
        for dtype in (I64, DTYPES["i32"]):
            terms.append(make("builtin.dims", (), {"dims": elements, "type": TensorType(dtype, shape)}))
    agrees(program_of(*terms, make("stablehlo.abs", (x_of(B, S),))), {"B": 3, "S": 4})


def test_a_dim_of_an_opaque_result_is_read_from_it_and_keeps_its_node() -> None:
    found = make(OPAQUE, (x_of(6),), {"domain": "", "name": "NonZero", "payload": b"", "results": (tensor(I64, 1, dims.symbol("d0")),)})
    count = make("builtin.dims", (), {"dims": (dims.symbol("d0"),), "type": TensorType(I64, (1,))})
    model = lower(Program((x_of(6),), (("y", count),), introduces={"d0": found}))
    assert Counter(node.op_type for node in model.graph.node)["NonZero"] == 1
    y = Session(model.SerializeToString()).run({"x": np.array([0, 1, 0, 2, 3, 0], np.float32)})["y"]
    assert y.tolist() == [3]
    with pytest.raises(CosetError, match="no value of the program has the dim"):
        lower(Program((x_of(6),), (("y", count),)))


def test_outputs_that_are_inputs_constants_or_twice_the_same() -> None:
    x = x_of(3)
    y = make("stablehlo.abs", (x,))
    agrees(program_of(x, y, y, constant(np.arange(3.0, dtype=np.float32)), splat(1.0, F32, (2, 2))))


def test_ordinary_values_of_ops_whose_edges_kernels_leave_open() -> None:
    a = literal(RANDOM.uniform(0.5, 4, (3, 4)).astype(np.float32))
    x = make("stablehlo.abs", (x_of(3, 4),))
    n = make("stablehlo.convert", (x,), {"dtype": DTYPES["i32"]})
    three = splat(3, DTYPES["i32"], (3, 4))
    u = make("stablehlo.convert", (n,), {"dtype": DTYPES["u32"]})
    shift = splat(2, DTYPES["u32"], (3, 4))
    agrees(program_of(
        make("stablehlo.power", (x, a)), make("stablehlo.divide", (x, a)), make("stablehlo.divide", (n, three)),
        make("stablehlo.remainder", (make("stablehlo.negate", (n,)), three)), make("stablehlo.remainder", (x, a)),
        make("stablehlo.shift_left", (u, shift)), make("stablehlo.shift_right_logical", (u, shift)),
        make("stablehlo.convert", (make("stablehlo.compare", (n, three), {"direction": "GT"}),), {"dtype": F32}),
    ))  # fmt: skip


def test_the_version_is_raised_where_a_term_needs_it() -> None:
    u8 = x_of(3, dtype=DTYPES["u8"])
    program = program_of(make("stablehlo.and", (u8, splat(6, DTYPES["u8"], (3,)))), opset=13)
    model = lower(program)
    assert [entry.version for entry in model.opset_import] == [18]
    onnx.checker.check_model(model, full_check=True)


def test_the_version_stays_where_an_opaque_node_has_another_meaning_above() -> None:
    hard = make(OPAQUE, (x_of(3, 4, 5),), {"domain": "", "name": "Softmax", "payload": b"", "results": (tensor(F32, 3, 4, 5),)})
    header = onnx.ModelProto(ir_version=7, graph=onnx.GraphProto(name="g")).SerializeToString()
    source = ProgramSource(origin=OnnxOrigin(header, {"": 11}))
    bits = make("stablehlo.not", (make("stablehlo.convert", (hard,), {"dtype": I64}),))
    program = Program((x_of(3, 4, 5),), (("y", bits),), source=source)
    assert highest_opset(program) == 12
    with pytest.raises(CosetError, match="version 18"):
        lower(program)


def test_printable_says_why_not() -> None:
    types = [TensorType(I64, (3,)), TensorType(I64, (3,))]
    assert printable("stablehlo.and", {}, types, 18) is None
    assert "version 18" in (printable("stablehlo.and", {}, types, 17) or "")
    assert "no ONNX form" in (printable("stablehlo.atan2", {}, [TensorType(F32, (3,))] * 2, 20) or "")
    assert "bf16" in (printable("stablehlo.tanh", {}, [TensorType(DTYPES["bf16"], (3,))], 20) or "")
    if find_op("onnx.Gelu") is not None:
        assert "version 20" in (printable("onnx.Gelu", {"approximate": "none"}, [TensorType(F32, (3,))], 17) or "")


def test_equal_programs_print_to_equal_bytes() -> None:
    def build() -> bytes:
        x = x_of(B, 8)
        w = constant(np.arange(40, dtype=np.float32).reshape(8, 5))
        y = make("stablehlo.tanh", (dot(x, w, lhs_contract=(1,), rhs_contract=(0,)),))
        return bytes(lower(program_of(make("stablehlo.add", (y, y)))).SerializeToString(deterministic=True))

    assert build() == build()


def test_booleans_take_the_logical_ops() -> None:
    x = x_of(3, 4)
    a = make("stablehlo.compare", (x, splat(0.0, F32, (3, 4))), {"direction": "GT"})
    b = make("stablehlo.compare", (x, splat(1.0, F32, (3, 4))), {"direction": "NE"})
    assert a.tensor.dtype is BOOL
    every = make("stablehlo.reduce", (a,), {"dimensions": (1,), "combiner": "and"})
    agrees(program_of(make("stablehlo.and", (a, b)), make("stablehlo.xor", (a, b)), make("stablehlo.not", (a,)), every))


def test_what_has_no_kernels_is_told_where_to_go() -> None:
    """The help spoke of a target that finds the op illegal."""
    x = input_term("x", TensorType(DTYPES["bf16"], (2, 3)))
    with pytest.raises(CosetError, match="no kernels are counted on for bf16") as raised:
        lower(Program((x,), (("y", make("stablehlo.add", (x, x))),)))
    assert raised.value.help is not None and "coset lower" in raised.value.help
