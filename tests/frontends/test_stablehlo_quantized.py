"""Operations that compute on quantized tensors, against StableHLO's reference interpreter on the same text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

pytest.importorskip("torch_mlir")

from coset.backends.stablehlo_interpreter import StablehloInterpreter
from coset.dialects.hub.mlir_text import dense_text, type_text
from coset.frontends.stablehlo.program import import_stablehlo
from coset.ir.builtin import OPAQUE
from coset.ir.errors import CosetError
from coset.ir.evaluate import evaluate_program
from coset.ir.quantized import QuantizedType, quantized
from coset.ir.registry import all_ops
from coset.ir.types import BOOL, DTYPES, F32, DType, TensorType

Draw = Any
Array = np.ndarray[Any, Any]
STORAGE = [DTYPES["i8"], DTYPES["i16"], DTYPES["i4"]]  # the interpreter takes unsigned storage for signed


@pytest.fixture(scope="module")
def interpreter() -> Iterator[StablehloInterpreter]:
    with StablehloInterpreter() as child:
        yield child


@st.composite
def element_types(draw: Draw, *, axis: int | None = None, size: int = 1, storage: Any = None, exact: bool = False,
                  centred: bool = False) -> QuantizedType:  # fmt: skip
    """A quantized type; `exact`: with scales that are powers of two, so that sums of products are exact in f32; `centred`: with zero
    points of 0, as weights must have them."""
    of: DType = storage or draw(st.sampled_from(STORAGE))
    powers = st.sampled_from([0.25, 0.5, 1.0, 2.0])
    scale = powers if exact else st.sampled_from([0.0123, 0.1, 0.25, 1 / 3, 0.77, 1.0, 1.9, 3.7])
    lowest = -(1 << of.bits - 1)
    limits = (lowest + 1, -lowest - 1) if centred else None
    points = st.just(0) if centred else st.integers(-3, 3)
    count = 1 if axis is None else size
    return quantized(of, F32, tuple(draw(scale) for _ in range(count)), tuple(draw(points) for _ in range(count)), axis=axis, limits=limits)


def integers(dtype: QuantizedType, shape: tuple[int, ...], seed: int) -> Array:
    random = np.random.default_rng(seed)
    return random.integers(max(dtype.minimum, -40), min(dtype.maximum, 40) + 1, shape).astype(dtype.storage.numpy)


def module(operation: str, types: list[TensorType], arrays: list[Array], result: TensorType) -> str:
    """A module of one operation on constants: quantized ones from their integers and back to them."""
    lines = []
    for i, (type, array) in enumerate(zip(types, arrays, strict=True)):
        stored = type_text(TensorType(type.dtype.storage, type.shape)) if isinstance(type.dtype, QuantizedType) else type_text(type)
        name = f"%x{i}" if stored == type_text(type) else f"%s{i}"
        lines.append(f"{name} = stablehlo.constant {dense_text(array, getattr(type.dtype, 'storage', type.dtype))} : {stored}")
        if name[1] == "s":
            lines.append(f"%x{i} = stablehlo.bitcast_convert %s{i} : ({stored}) -> {type_text(type)}")
    lines.append(f"%r = {operation} : ({', '.join(map(type_text, types))}) -> {type_text(result)}")
    back, last = "%r", type_text(result)
    if isinstance(result.dtype, QuantizedType):
        back, last = "%o", type_text(TensorType(result.dtype.storage, result.shape))
        lines.append(f"%o = stablehlo.bitcast_convert %r : ({type_text(result)}) -> {last}")
    return "\n".join([f"func.func public @main() -> {last} {{", *lines, f"return {back} : {last}", "}"])


Checked = tuple[str, TensorType]


def run(
    cases: st.SearchStrategy[Checked], interpreter: StablehloInterpreter, *, count: int, least: float, units: int = 0
) -> None:  # fmt: skip
    """Import, evaluate and interpret each text; `units`: of the storage, by which the two may differ."""
    answers: list[bool] = []
    refused: list[str] = []

    @settings(max_examples=count, deadline=None, derandomize=True, database=None, phases=[Phase.generate],
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(cases)
    def compare(case: Checked) -> None:
        text, result = case
        try:
            (theirs,) = interpreter.run(text, [])
        except CosetError as error:
            answers.append(False)
            refused.append(error.message)
            return
        program = import_stablehlo(text)
        assert not [term for term in program.terms() if term.op is OPAQUE], text
        (ours,) = evaluate_program(program, {})
        assert ours.dtype == theirs.dtype and ours.shape == result.static, text
        wide = [x.astype(np.int64) if x.dtype.kind != "f" else x for x in (ours, theirs)]
        np.testing.assert_allclose(wide[0], wide[1], rtol=0, atol=units, err_msg=text)
        answers.append(True)

    compare()
    assert sum(answers) >= least * len(answers), f"{sum(answers)} of {len(answers)} could be compared; {refused[:1]}"


FLOATS = sorted(
    op.name for op in all_ops()
    if op.dialect == "stablehlo" and op.has("elementwise") and "uniform" not in op.name and len(op.operands) in (1, 2)
)  # fmt: skip
NOT_QUANTIZED = {  # the specification has no quantized form of these
    f"stablehlo.{name}" for name in (
        "and", "or", "xor", "not", "popcnt", "count_leading_zeros", "shift_left", "shift_right_arithmetic", "shift_right_logical",
        "complex", "real", "imag", "convert", "reduce_precision", "compare", "is_finite", "bitcast_convert",
    )
}  # fmt: skip
ELEMENTWISE = [name for name in FLOATS if name not in NOT_QUANTIZED]


@st.composite
def elementwise(draw: Draw, name: str) -> Checked:
    count = 1 if name in {op.name for op in all_ops() if len(op.operands) == 1} else 2
    shape = tuple(draw(st.lists(st.integers(0, 3), max_size=3)))
    storage = draw(st.sampled_from(STORAGE))
    types = [TensorType(draw(element_types(storage=storage)), shape) for _ in range(count)]
    result = TensorType(draw(element_types(storage=storage)), shape)
    arrays = [integers(type.dtype, shape, draw(st.integers(0, 999))) for type in types]  # type: ignore[arg-type]
    operands = ", ".join(f"%x{i}" for i in range(count))
    return module(f'"{name}"({operands})', types, arrays, result), result


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise_operations(name: str, interpreter: StablehloInterpreter) -> None:
    """Within a unit of the storage: the interpreter adds integers that it has brought to the scale of the result."""
    run(elementwise(name), interpreter, count=12, least=0.6, units=1)


@st.composite
def comparisons(draw: Draw) -> Checked:
    shape = tuple(draw(st.lists(st.integers(0, 3), max_size=3)))
    dtype = draw(element_types())
    arrays = [integers(dtype, shape, draw(st.integers(0, 999))) for _ in range(2)]
    direction = draw(st.sampled_from(["EQ", "NE", "LT", "LE", "GT", "GE"]))
    attribute = f"<{{comparison_direction = #stablehlo<comparison_direction {direction}>}}>"
    result = TensorType(BOOL, shape)
    return module(f'"stablehlo.compare"(%x0, %x1) {attribute}', [TensorType(dtype, shape)] * 2, arrays, result), result


def test_comparisons(interpreter: StablehloInterpreter) -> None:
    run(comparisons(), interpreter, count=25, least=0.3)


# The interpreter computes contractions with integers. Where they go back to a narrow type, or to scales of another ratio, it cuts off
# instead of rounding, wraps instead of clamping and scales all channels as the first: results are the sums themselves here, and
# others are compared with the formula below.


def accumulator(left: QuantizedType, right: QuantizedType, axis: int | None) -> QuantizedType:
    """What holds the sums of products exactly."""
    scales = tuple(left.scales[0] * scale for scale in right.scales)
    return quantized(DTYPES["i32"], F32, scales, (0,) * len(scales), axis=axis)


@st.composite
def products(draw: Draw, *, hybrid: bool) -> Checked:
    """[B, M, K] by [B, K, N], the right side with a scale for each column or one for all."""
    batch, rows, depth, columns = (draw(st.integers(1, 4)) for _ in range(4))
    axis = draw(st.sampled_from([None, 2]))
    storage = DTYPES["i8"]
    right = TensorType(draw(element_types(axis=axis, size=columns, storage=storage, exact=True, centred=True)), (batch, depth, columns))
    left = TensorType(F32 if hybrid else draw(element_types(storage=storage, exact=True)), (batch, rows, depth))
    out: DType = F32
    if not hybrid:
        out = accumulator(left.dtype, right.dtype, axis)  # type: ignore[arg-type]
    result = TensorType(out, (batch, rows, columns))
    seeds = [draw(st.integers(0, 999)) for _ in range(2)]
    first = np.random.default_rng(seeds[0]).integers(-9, 10, (batch, rows, depth)).astype(np.float32) if hybrid else None
    arrays = [integers(left.dtype, (batch, rows, depth), seeds[0]) if first is None else first]  # type: ignore[arg-type]
    arrays.append(integers(right.dtype, (batch, depth, columns), seeds[1]))  # type: ignore[arg-type]
    return module(
        "stablehlo.dot_general %x0, %x1, batching_dims = [0] x [0], contracting_dims = [2] x [1]", [left, right], arrays, result
    ), result


@pytest.mark.parametrize("hybrid", [False, True])
def test_products(hybrid: bool, interpreter: StablehloInterpreter) -> None:
    run(products(hybrid=hybrid), interpreter, count=50, least=0.5, units=not hybrid)


@st.composite
def convolutions(draw: Draw, *, hybrid: bool) -> Checked:
    """[N, H, W, C] by [h, w, C, O] with a scale for each output channel or one for all, in the layout of TensorFlow."""
    channels, outputs, size, window = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(2, 5)), draw(st.integers(1, 2))
    axis = draw(st.sampled_from([None, 3]))
    storage = DTYPES["i8"]
    kernel = TensorType(
        draw(element_types(axis=axis, size=outputs, storage=storage, exact=True, centred=True)), (window, window, channels, outputs)
    )
    shape = (2, size, size, channels)
    image = TensorType(F32 if hybrid else draw(element_types(storage=storage, exact=True)), shape)
    out: DType = F32
    if not hybrid:
        out = accumulator(image.dtype, kernel.dtype, axis)  # type: ignore[arg-type]
    stride = draw(st.integers(1, 2))
    after = (size - window) // stride + 1
    result = TensorType(out, (2, after, after, outputs))
    seeds = [draw(st.integers(0, 999)) for _ in range(2)]
    pixels = np.random.default_rng(seeds[0]).integers(-9, 10, shape).astype(np.float32) if hybrid else None
    arrays = [integers(image.dtype, shape, seeds[0]) if pixels is None else pixels]  # type: ignore[arg-type]
    arrays.append(integers(kernel.dtype, (window, window, channels, outputs), seeds[1]))  # type: ignore[arg-type]
    numbers = "dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]"
    operation = (
        f"stablehlo.convolution(%x0, %x1) {numbers}, window = {{stride = [{stride}, {stride}]}} "
        "{batch_group_count = 1 : i64, feature_group_count = 1 : i64}"
    )
    return module(operation, [image, kernel], arrays, result), result


@pytest.mark.parametrize("hybrid", [False, True])
def test_convolutions(hybrid: bool, interpreter: StablehloInterpreter) -> None:
    run(convolutions(hybrid=hybrid), interpreter, count=40, least=0.5, units=not hybrid)


def expressed(x: Array, dtype: QuantizedType) -> Array:
    """(integer - zero point) * scale along the last dim, in f64."""
    return (x.astype(np.float64) - np.array(dtype.zero_points)) * np.array(dtype.scales)


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(st.data())
def test_narrow_products_are_rounded_and_clamped(data: Any) -> None:
    """The specification's formula in f64, where every step is exact."""
    rows, depth, columns = (data.draw(st.integers(1, 5)) for _ in range(3))
    axis = data.draw(st.sampled_from([None, 1]))
    i8 = DTYPES["i8"]
    left = data.draw(element_types(storage=i8, exact=True))
    right = data.draw(element_types(axis=axis, size=columns, storage=i8, exact=True, centred=True))
    out = data.draw(element_types(axis=axis, size=columns, storage=i8, exact=True))
    x, w = integers(left, (rows, depth), 1), integers(right, (depth, columns), 2)
    result = TensorType(out, (rows, columns))
    types = [TensorType(left, x.shape), TensorType(right, w.shape)]
    text = module("stablehlo.dot_general %x0, %x1, contracting_dims = [1] x [0]", types, [x, w], result)
    (ours,) = evaluate_program(import_stablehlo(text), {})
    scaled = expressed(x, left) @ expressed(w, right) / np.array(out.scales)
    np.testing.assert_array_equal(ours, np.clip(np.rint(scaled + np.array(out.zero_points)), out.minimum, out.maximum))


MOVED = """
func.func @main(%x: tensor<3x3xf32>) -> (tensor<3x3xf32>, tensor<3x3xf32>) {
  %q = stablehlo.uniform_quantize %x : (tensor<3x3xf32>) -> tensor<3x3x!quant.uniform<i8:f32:0, {0.5,0.25,0.125}>>
  %t = stablehlo.transpose %q, dims = [1, 0] : (tensor<3x3x!quant.uniform<i8:f32:0, {0.5,0.25,0.125}>>)
    -> tensor<3x3x!quant.uniform<i8:f32:1, {0.5,0.25,0.125}>>
  %r = stablehlo.uniform_dequantize %t : (tensor<3x3x!quant.uniform<i8:f32:1, {0.5,0.25,0.125}>>) -> tensor<3x3xf32>
  %n = stablehlo.uniform_quantize %q : (tensor<3x3x!quant.uniform<i8:f32:0, {0.5,0.25,0.125}>>) -> tensor<3x3x!quant.uniform<i8:f32, 0.5>>
  %s = stablehlo.uniform_dequantize %n : (tensor<3x3x!quant.uniform<i8:f32, 0.5>>) -> tensor<3x3xf32>
  return %r, %s : tensor<3x3xf32>, tensor<3x3xf32>
}
"""


def test_scales_along_a_dim_follow_a_transpose_through_the_pipeline(tmp_path: Any) -> None:
    """The casts are hub ops, the movement between them too, and no rule takes them apart wrongly."""
    import coset

    (tmp_path / "moved.mlir").write_text(MOVED)
    program = import_stablehlo(MOVED)
    assert not [term for term in program.terms() if term.op is OPAQUE]
    result = coset.optimize(tmp_path / "moved.mlir")
    assert result.report["check"]["ok"]
    x = np.random.default_rng(0).normal(size=(3, 3)).astype(np.float32)
    scales = np.array([[0.5], [0.25], [0.125]], np.float32)
    numbers = np.clip(np.rint(x / scales), -128, 127) * scales
    first, second = result({"arg0": x}).values()
    np.testing.assert_array_equal(first, numbers.T)
    np.testing.assert_array_equal(second, np.rint(numbers / 0.5) * 0.5)
