"""ONNX's reductions, argmax, cumulative sums, Einsum, padding, ranges and training forms by our definitions against ONNX Runtime
without optimization, or ONNX's own evaluator where it has no kernel."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest

from coset.dialects.onnx.dtypes import CODE_OF_DTYPE
from coset.ir.errors import CosetError
from coset.ir.types import DTYPES
from tests.dialects.onnx_runs import assert_close, by_reference, by_runtime, model_of, ours, symbolic
from tests.dialects.test_onnx_elementwise import draw, theirs

FLOATS = ("f64", "f32", "f16", "bf16")
WIDE = (*FLOATS, "i64", "i32", "u64", "u32")
SUMS = ("ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceMean", "ReduceL1", "ReduceL2", "ReduceSumSquare")
LOGARITHMS = ("ReduceLogSum", "ReduceLogSumExp")


def reduced(op: str, x: Any, axes: tuple[int, ...], *, keep: bool) -> Any:
    """The reduction by NumPy: floats as f64, rounded once; integers exactly or as f64, truncated."""
    wide = x.astype(np.float64) if x.dtype.kind not in "iu" else x
    options: dict[str, Any] = {"axis": axes, "keepdims": keep}
    with np.errstate(all="ignore"):
        if op in ("ReduceMax", "ReduceMin"):
            value = np.max(wide, **options) if op == "ReduceMax" else np.min(wide, **options)
        elif op == "ReduceMean":
            value = np.trunc(np.mean(wide, **options)) if x.dtype.kind in "iu" else np.mean(wide, **options)
        elif op == "ReduceLogSumExp":
            value = np.log(np.sum(np.exp(wide.astype(np.float64)), **options))
        elif op == "ReduceProd":
            value = np.prod(wide, **options)
        else:
            before = {"ReduceL1": np.abs, "ReduceL2": np.square, "ReduceSumSquare": np.square}.get(op, lambda value: value)
            after = {"ReduceL2": np.sqrt, "ReduceLogSum": np.log}.get(op, lambda value: value)
            value = after(np.sum(before(wide), **options))
        return np.asarray(value).astype(x.dtype)


CASES = (((2, 3, 4), (1,)), ((2, 3, 4), (-1, 0)), ((3, 5), ()), ((3, 5), (0, 1)), ((4,), (0,)), ((), ()))


@pytest.mark.parametrize("op", [*SUMS, *LOGARITHMS])
@pytest.mark.parametrize("dtype", WIDE)
def test_reductions(op: str, dtype: str) -> None:
    """Axes as an operand, in the newest form of each op (logarithms take floats only there)."""
    if op in LOGARITHMS and dtype not in FLOATS:
        return
    for (shape, axes), keep in itertools.product(CASES, (0, 1)):
        x = draw(len(shape), dtype, shape, low=1 if op == "ReduceLogSum" else -3, high=3)
        inputs = [x, np.asarray(axes, np.int64)] if axes else [x]
        model = model_of(op, inputs, {"keepdims": keep}, opset=28)
        expected = reduced(op, x, tuple(axes) or tuple(range(x.ndim)), keep=bool(keep))
        assert_close(ours(model, inputs), [expected], ulps=4 if dtype in ("f16", "bf16") else 0)


@pytest.mark.parametrize("op", [*SUMS, *LOGARITHMS])
@pytest.mark.parametrize("opset", [11, 13, 18])
def test_reductions_as_the_runtime_has_them(op: str, opset: int) -> None:
    for dtype, (shape, axes) in itertools.product(("f32", "i32"), CASES[:4]):
        if op in LOGARITHMS and dtype != "f32":
            continue
        x = draw(len(shape), dtype, shape, low=1, high=4)
        as_operand = opset >= 18 or (opset == 13 and op == "ReduceSum")
        inputs = [x, np.asarray(axes, np.int64)] if as_operand and axes else [x]
        attributes = {"axes": list(axes)} if axes and not as_operand else {}
        model = model_of(op, inputs, attributes, opset=opset)
        assert_close(ours(model, inputs), by_runtime(model, inputs))


@pytest.mark.parametrize("op", [*SUMS, *LOGARITHMS])
def test_reductions_over_no_axes_take_each_element_alone(op: str) -> None:
    x = draw(1, "f32", (2, 3), low=0.5, high=3)
    for inputs in ([x], [x, np.zeros(0, np.int64)]):
        model = model_of(op, inputs, {"noop_with_empty_axes": 1}, opset=18)
        expected = {"ReduceSumSquare": x * x, "ReduceLogSum": np.log(x)}.get(op, x)
        assert_close(ours(model, inputs), [expected])


EMPTY = {"ReduceSum": 0, "ReduceL1": 0, "ReduceL2": 0, "ReduceSumSquare": 0, "ReduceProd": 1, "ReduceLogSum": -np.inf,
         "ReduceLogSumExp": -np.inf,
         "ReduceMax": -np.inf, "ReduceMin": np.inf}  # fmt: skip


@pytest.mark.parametrize("op", EMPTY)
@pytest.mark.parametrize("dtype", FLOATS)
def test_reductions_of_nothing(op: str, dtype: str) -> None:
    inputs = [np.zeros((2, 0, 3), DTYPES[dtype].numpy), np.int64([1])]
    found = ours(model_of(op, inputs, opset=28), inputs)[0]
    assert found.shape == (2, 1, 3) and (found.astype(np.float64) == EMPTY[op]).all()


@pytest.mark.parametrize("op,expected", [("ReduceMax", [True, False]), ("ReduceMin", [False, False])])
def test_reductions_of_booleans(op: str, expected: list[bool]) -> None:
    inputs = [np.asarray([[True, False], [False, False]]), np.int64([1])]
    assert ours(model_of(op, inputs, {"keepdims": 0}, opset=20), inputs)[0].tolist() == expected


def test_log_sum_exp_of_infinities_and_large_numbers() -> None:
    x = np.float32([[-np.inf, -np.inf], [np.inf, 1], [1000, 1000], [np.nan, 1]])
    inputs = [x, np.int64([1])]
    found = ours(model_of("ReduceLogSumExp", inputs, {"keepdims": 0}, opset=18), inputs)[0]
    np.testing.assert_allclose(found, [-np.inf, np.inf, 1000 + np.log(2), np.nan], rtol=1e-6)


@pytest.mark.parametrize("op", ["ReduceSum", "ReduceMean", "ReduceL1", "ReduceLogSumExp", "ReduceMax"])
def test_reductions_hold_for_symbolic_dims(op: str) -> None:
    inputs = [draw(1, "f32", (2, 3)), np.int64([0])]
    assert_close(symbolic(op, inputs, {}, {0: {0: "B"}}, since=20, known=(1,)), ours(model_of(op, inputs, opset=20), inputs))


# ---------------------------------------------------------------- places


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("dtype", [*FLOATS, "i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8"])
def test_arg_extremes(op: str, dtype: str) -> None:
    for seed, (axis, keep, last) in enumerate(itertools.product((0, 1, -1), (0, 1), (0, 1))):
        x = draw(seed, dtype, (2, 3, 4), low=0, high=2)
        x = np.round(x.astype(np.float32)).astype(x.dtype)
        model = model_of(op, [x], {"axis": axis, "keepdims": keep, "select_last_index": last}, opset=13)
        assert_close(ours(model, [x]), theirs(model, [x]))


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("last,expected", [(0, [1, 0]), (1, [2, 1])])
def test_arg_extremes_find_nan_first(op: str, last: int, expected: list[int]) -> None:
    x = np.float32([[1, np.nan, np.nan], [np.nan, np.nan, np.inf]])
    model = model_of(op, [x], {"axis": 1, "keepdims": 0, "select_last_index": last}, opset=13)
    assert ours(model, [x])[0].tolist() == expected


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("opset", [11, 13])
def test_hardmax(dtype: str, opset: int) -> None:
    for axis in (0, 1, 2, -1):
        x = np.round(draw(axis + 1, dtype, (2, 3, 4)).astype(np.float32)).astype(DTYPES[dtype].numpy)
        model = model_of("Hardmax", [x], {"axis": axis}, opset=opset)
        rows = x.reshape(int(np.prod(x.shape[:axis])), -1) if opset < 13 and axis >= 0 else x
        rows = x.reshape(6, 4) if opset < 13 and axis < 0 else rows
        along = axis if opset >= 13 else 1
        places = np.expand_dims(np.argmax(rows.astype(np.float64), along), along)
        expected = np.zeros(rows.shape, x.dtype)
        np.put_along_axis(expected, places, 1, along)
        assert_close(ours(model, [x]), [expected.reshape(x.shape)])


@pytest.mark.parametrize("op", ["CumSum", "CumProd"])
@pytest.mark.parametrize("dtype", WIDE)
def test_cumulative_sums_and_products(op: str, dtype: str) -> None:
    for seed, (shape, axis) in enumerate((((5,), 0), ((2, 3), 1), ((2, 3), -2), ((2, 0, 3), 1), ((1,), 0))):
        for exclusive, backward in itertools.product((0, 1), repeat=2):
            x = draw(seed, dtype, shape, low=-3, high=3)
            wide = x.astype(np.float64) if x.dtype.kind not in "iu" else x
            wide = np.flip(wide, axis) if backward else wide
            expected = (np.cumsum if op == "CumSum" else np.cumprod)(wide, axis, dtype=wide.dtype)
            if exclusive:
                first = np.full_like(np.take(wide, [0], axis) if wide.shape[axis] else wide, int(op == "CumProd"))
                expected = np.concatenate([first, np.delete(expected, -1, axis)], axis) if wide.shape[axis] else expected
            expected = np.flip(expected, axis) if backward else expected
            inputs = [x, np.asarray(axis, np.int64)]
            model = model_of(op, inputs, {"exclusive": exclusive, "reverse": backward}, opset=26)
            assert_close(ours(model, inputs), [expected.astype(x.dtype)], ulps=4 if dtype in ("f16", "bf16") else 0)


def test_cumulative_sum_as_the_runtime_has_it() -> None:
    for exclusive, backward in itertools.product((0, 1), repeat=2):
        inputs = [draw(1, "f32", (2, 3, 4)), np.asarray(1, np.int32)]
        model = model_of("CumSum", inputs, {"exclusive": exclusive, "reverse": backward}, opset=14)
        assert_close(ours(model, inputs), by_runtime(model, inputs))


@pytest.mark.parametrize("op", ["CumSum", "CumProd", "ArgMax", "ArgMin", "Hardmax"])
def test_places_and_cumulative_sums_hold_for_symbolic_dims(op: str) -> None:
    x = draw(1, "f32", (4, 3))
    inputs = [x, np.asarray(0, np.int64)] if op.startswith("Cum") else [x]
    choices = [{"exclusive": e, "reverse": r} for e in (0, 1) for r in (0, 1)] if op.startswith("Cum") else [{"axis": 0}, {"axis": 1}]
    for attributes in choices:
        expected = ours(model_of(op, inputs, attributes, opset=26 if op == "CumProd" else 14), inputs)
        assert_close(symbolic(op, inputs, attributes, {0: {0: "N", 1: "M"}}, since=14, known=(1,)), expected)


# ---------------------------------------------------------------- Einsum, products

EQUATIONS = (
    ("ij,jk->ik", ((2, 3), (3, 4))), ("ij,jk", ((2, 3), (3, 4))), ("bij,bjk->bik", ((2, 3, 4), (2, 4, 5))), ("ij->ji", ((2, 3),)),
    ("ij->", ((2, 3),)), ("ij->i", ((2, 3),)), ("ii->i", ((3, 3),)), ("ii", ((3, 3),)), ("...ii->...i", ((2, 4, 4),)),
    ("i,i", ((3,), (3,))),
    ("i,j->ij", ((2,), (3,))), ("...ij,...jk->...ik", ((2, 1, 2, 3), (2, 3, 3, 2))), ("a...,b...->ab...", ((2, 3), (4, 3))),
    ("ij,jk,kl->il", ((2, 3), (3, 2), (2, 4))), ("iji->j", ((2, 3, 2),)), ("iii->i", ((2, 2, 2),)), ("...,...", ((2, 3), (3,))),
    ("ij,ij->ij", ((2, 3), (2, 3))), ("i,->i", ((3,), ())), ("ij,jk->ik", ((2, 0), (0, 4))), ("Ab,bA->A", ((2, 3), (3, 2))),
    (" i j -> j i ", ((2, 3),)),
)  # fmt: skip


@pytest.mark.parametrize("equation,shapes", EQUATIONS, ids=[row[0] for row in EQUATIONS])
def test_einsum(equation: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    """Against NumPy; where `...` stands for different numbers of dims the standard allows nothing."""
    for dtype in ("f32", "f64", "bf16", "i64", "i8", "u16"):
        inputs = [draw(index, dtype, shape, low=-3, high=3) for index, shape in enumerate(shapes)]
        model = model_of("Einsum", inputs, {"equation": equation}, opset=28)
        if equation == "...,...":
            with pytest.raises(CosetError, match="different numbers of dims"):
                ours(model, inputs)
            continue
        wide = [x.astype(np.float64) if dtype == "bf16" else x for x in inputs]
        expected = np.asarray(np.einsum(equation.replace(" ", ""), *wide)).astype(inputs[0].dtype)
        assert_close(ours(model, inputs), [expected], ulps=4 if dtype == "bf16" else 0)


def test_einsum_takes_diagonals_of_symbolic_dims() -> None:
    x = draw(1, "f32", (3, 3, 2))
    found = symbolic("Einsum", [x], {"equation": "iij->ij"}, {0: {0: "N", 1: "N"}}, since=12)
    assert_close(found, [np.einsum("iij->ij", x)])


@pytest.mark.parametrize("dtype", ["bf16", "f32", "i32", "u64"])
def test_products_in_every_type(dtype: str) -> None:
    a, b = draw(1, dtype, (2, 3), low=-3, high=3), draw(2, dtype, (3, 2), low=-3, high=3)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    expected = expected if dtype[0] != "u" else a @ b
    for op in ("MatMul", "Gemm"):
        assert_close(ours(model_of(op, [a, b], opset=13), [a, b]), [expected.astype(a.dtype)], ulps=2)


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
def test_softmax_of_narrow_floats(op: str) -> None:
    x = draw(1, "bf16", (2, 3, 4))
    for opset, axis in itertools.product((11, 13), (0, 1, -1)):
        wide = x.astype(np.float32)  # before version 13 of the op there is no bf16: the definition is asked directly
        expected = by_runtime(model_of(op, [wide], {"axis": axis}, opset=opset), [wide])[0].astype(x.dtype)
        assert_close(symbolic(op, [x], {"axis": axis}, {}, since=opset), [expected], ulps=2)


# ---------------------------------------------------------------- padding and tiling


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
@pytest.mark.parametrize("pads", [(0, 2, 0, 1), (1, 0, 1, 2), (1, 2, 0, 0), (0, 0, 0, 0)])
def test_pad(mode: str, pads: tuple[int, ...]) -> None:
    for dtype in ("f32", "i64", "bool", "u8"):
        inputs = [draw(1, dtype, (2, 4)), np.int64(pads)]
        model = model_of("Pad", inputs, {"mode": mode}, opset=19)
        assert_close(ours(model, inputs), by_runtime(model, inputs))


@pytest.mark.parametrize("mode", ["edge", "reflect", "wrap"])
@pytest.mark.parametrize("shape,pads", [((3,), (7, 8)), ((1,), (2, 3)), ((2,), (5, 0)), ((2, 3), (4, 3, 0, 9))])
def test_pad_goes_round_more_than_once(mode: str, shape: tuple[int, ...], pads: tuple[int, ...]) -> None:
    x = draw(1, "bf16", shape)
    widths = tuple(zip(pads[: len(shape)], pads[len(shape) :], strict=True))
    expected = np.pad(x.astype(np.float32), widths, mode=mode).astype(x.dtype)  # type: ignore[call-overload]
    inputs = [x, np.int64(pads)]
    assert_close(ours(model_of("Pad", inputs, {"mode": mode}, opset=25), inputs), [expected])


def test_pad_takes_axes_and_crops() -> None:
    x = draw(1, "f32", (3, 4, 5))
    inputs = [x, np.int64([1, -1, 2, 1]), np.float32(7), np.int64([-1, 0])]
    assert_close(ours(model_of("Pad", inputs, opset=18), inputs), [np.pad(x[1:], ((0, 1), (0, 0), (1, 2)), constant_values=7)])
    for mode in ("edge", "reflect", "wrap"):
        inputs = [x, np.int64([1, -1, 2, 1]), None, np.int64([-1, 0])]
        assert_close(ours(model_of("Pad", inputs, {"mode": mode}, opset=19), inputs), [np.pad(x[1:], ((0, 1), (0, 0), (1, 2)), mode=mode)])


@pytest.mark.parametrize("mode", ["edge", "reflect", "wrap"])
def test_pad_holds_for_symbolic_dims(mode: str) -> None:
    inputs = [draw(1, "f32", (4, 3)), np.int64([2, 0, 1, 0])]
    found = symbolic("Pad", inputs, {"mode": mode}, {0: {0: "N"}}, since=19, known=(1,))
    assert_close(found, [np.pad(inputs[0], ((2, 1), (0, 0)), mode=mode)])


@pytest.mark.parametrize("shape,repeats", [((2, 3), (2, 2)), ((2, 3), (1, 0)), ((), ()), ((0, 2), (3, 1)), ((1, 2, 1), (2, 1, 3))])
def test_tile(shape: tuple[int, ...], repeats: tuple[int, ...]) -> None:
    for dtype in ("f32", "i8", "bool", "bf16"):
        inputs = [draw(1, dtype, shape), np.asarray(repeats, np.int64)]
        model = model_of("Tile", inputs, opset=13)
        assert_close(ours(model, inputs), [np.tile(inputs[0], repeats)])
    open_dims = {0: {0: "B"}} if shape else {}
    assert_close(symbolic("Tile", inputs, {}, open_dims, since=13, known=(1,)), [np.tile(inputs[0], repeats)])


# ---------------------------------------------------------------- generators


@pytest.mark.parametrize("dtype", [*FLOATS, "i64", "i32", "i16"])
def test_range(dtype: str) -> None:
    for start, limit, delta in ((0, 5, 1), (1, 10, 3), (10, 4, -2), (5, 5, 1), (3, 1, 1), (-3, 4, 2)):
        inputs = [np.asarray(number, DTYPES[dtype].numpy) for number in (start, limit, delta)]
        model = model_of("Range", inputs, opset=27 if dtype in ("f16", "bf16") else 11)
        assert_close(ours(model, inputs), [np.arange(start, limit, delta).astype(DTYPES[dtype].numpy)])


def test_range_of_fractions_as_the_runtime_has_it() -> None:
    inputs = [np.float32(value) for value in (0.5, 3.0, 0.3)]
    model = model_of("Range", inputs, opset=11)
    assert_close(ours(model, inputs), by_runtime(model, inputs))


@pytest.mark.parametrize("op", ["HannWindow", "HammingWindow", "BlackmanWindow"])
@pytest.mark.parametrize("periodic", [0, 1])
def test_windows(op: str, periodic: int) -> None:
    for size, code in itertools.product((1 + (1 - periodic), 2, 10, 0), (1, 11, 10, 16)):
        inputs = [np.asarray(size, np.int64)]
        model = model_of(op, inputs, {"periodic": periodic, "output_datatype": code}, opset=17)
        wide = by_reference(model_of(op, inputs, {"periodic": periodic, "output_datatype": 11}, opset=17), inputs)[0]
        dtype = next(dtype for dtype, number in CODE_OF_DTYPE.items() if number == code)
        found = ours(model, inputs)[0]
        assert found.dtype == dtype.numpy and found.shape == (size,)
        eps = max(float(ml_dtypes.finfo(dtype.numpy).eps), 1e-12)
        np.testing.assert_allclose(found.astype(np.float64), wide, rtol=4 * eps, atol=4 * eps)


@pytest.mark.parametrize("indices", [[1, 5], [[0, 1], [1, 2]]])
def test_sparse_constants_are_dense_ones(indices: Any) -> None:
    values = onnx.helper.make_tensor("v", onnx.TensorProto.FLOAT, [2], [1.5, -2])
    places = onnx.helper.make_tensor("i", onnx.TensorProto.INT64, np.shape(indices), np.ravel(indices))
    sparse = onnx.helper.make_sparse_tensor(values, places, [2, 3])
    model = model_of("Constant", [], {"sparse_value": sparse}, opset=13)
    assert_close(ours(model, []), [np.float32([[0, 1.5, 0], [0, 0, -2]])])


# ---------------------------------------------------------------- training


@pytest.mark.parametrize("dtype", FLOATS)
def test_batch_normalization_in_training(dtype: str) -> None:
    for shape in ((2, 3, 4), (4, 3), (2, 3, 2, 2)):
        x, scale, bias, mean = (draw(i, dtype, shape if not i else (3,)) for i in range(4))
        variance = draw(5, dtype, (3,), low=0.5, high=2)
        model = model_of(
            "BatchNormalization", [x, scale, bias, mean, variance], {"training_mode": 1, "momentum": 0.75}, outputs=3, opset=15
        )
        wide = [array.astype(np.float64) for array in (x, scale, bias, mean, variance)]
        along = tuple(axis for axis in range(x.ndim) if axis != 1)
        seen, spread = wide[0].mean(along), wide[0].var(along)
        rows = [value.reshape(-1, *(1,) * (x.ndim - 2)) for value in (seen, spread, wide[1], wide[2])]
        y = (wide[0] - rows[0]) / np.sqrt(rows[1] + 1e-5) * rows[2] + rows[3]
        expected = [y, wide[3] * 0.75 + seen * 0.25, wide[4] * 0.75 + spread * 0.25]
        assert_close(ours(model, [x, scale, bias, mean, variance]), [value.astype(x.dtype) for value in expected], ulps=8)


def test_batch_normalization_takes_several_types_and_one_dim() -> None:
    x = draw(1, "f16", (4, 3))
    rest = [draw(i, "f32", (3,), low=0.5, high=2) for i in range(4)]
    wide = x.astype(np.float32)
    expected = by_runtime(model_of("BatchNormalization", [wide, *rest], opset=15), [wide, *rest])[0].astype(np.float16)
    assert_close(ours(model_of("BatchNormalization", [x, *rest], opset=15), [x, *rest]), [expected], ulps=2)
    single = [draw(i, "bf16", (4,) if not i else (1,), low=0.5, high=2) for i in range(5)]
    found = ours(model_of("BatchNormalization", single, opset=15), single)[0]
    x, scale, bias, mean, variance = (array.astype(np.float32) for array in single)
    assert_close([found], [((x - mean) / np.sqrt(variance + 1e-5) * scale + bias).astype(single[0].dtype)], ulps=4)


@pytest.mark.parametrize("dtype", [*FLOATS, "f8e5m2"])
def test_dropout_drops_nothing_in_inference(dtype: str) -> None:
    x = draw(1, dtype, (2, 3))
    for inputs in ([x], [x, np.float32(0.5)]):
        found = ours(model_of("Dropout", inputs, outputs=2, opset=22), inputs)
        assert found[0].tobytes() == x.tobytes() and found[1].dtype == np.bool_ and found[1].all()
    for training, ratio in ((False, 0.5), (True, 0.0)):
        found = symbolic("Dropout", [x, np.float32(ratio), np.asarray(training)], {}, {0: {0: "B"}}, outputs=2, since=13, known=(1, 2))
        assert found[0].tobytes() == x.tobytes() and found[1].shape == x.shape and found[1].all()
