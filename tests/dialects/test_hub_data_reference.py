"""The hub's data ops against StableHLO's reference interpreter, on drawn operands and attributes (skipped without torch-mlir)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hub_data_cases  # noqa: F401  (fills CASES)
import ml_dtypes
import numpy as np
import pytest
from hub_cases import HUB, Case, cases, numbers
from hypothesis import HealthCheck, Phase, given, settings
from reference import arrays_of, interpret, module

from coset.dialects.hub.scalars import widen
from coset.ir.op import Op
from coset.ir.quantized import QuantizedType
from coset.ir.types import TensorType, TupleType, dtype_of

pytest.importorskip("torch_mlir", reason="the reference interpreter is in the torch-mlir wheel")

Attributes = dict[str, Any]


def ints(*keys: str) -> Callable[[Attributes], str]:
    """Arrays of i64, dims as their numbers."""
    return lambda attributes: ", ".join(f"{key} = {array(numbers(attributes[key]))}" for key in keys)


def array(values: tuple[int, ...]) -> str:
    return f"array<i64: {', '.join(map(str, values))}>" if values else "array<i64>"


def gather(attributes: Attributes) -> str:
    keys = ("offset_dims", "collapsed_slice_dims", "operand_batching_dims", "start_indices_batching_dims", "start_index_map")
    lists = ", ".join(f"{key} = {list(attributes[key])}" for key in keys)
    sizes = f", slice_sizes = {array(numbers(attributes['slice_sizes']))}" if "slice_sizes" in attributes else ""
    return f"dimension_numbers = #stablehlo.gather<{lists}, index_vector_dim = {attributes['index_vector_dim']}>{sizes}"


def convolution(attributes: Attributes) -> str:
    spatial = [str(i) for i in range(len(attributes["strides"]))]
    layout = "[{0}]x[{1}]->[{0}]".format(*(", ".join([*head, *spatial]) for head in (("b", "f"), ("o", "i"))))
    counts = ", ".join(f"{key} = {attributes[key]} : i64" for key in ("feature_group_count", "batch_group_count"))
    moves = f"window_strides = {array(attributes['strides'])}, {ints('lhs_dilation', 'rhs_dilation')(attributes)}"
    return f"dimension_numbers = #stablehlo.conv<{layout}>, {counts}, {moves}"


def words(attributes: Attributes, *keys: str) -> str:
    """Booleans."""
    return ", ".join(f"{key} = {str(attributes[key]).lower()}" for key in keys)


# What the interpreter computes in the dtype itself, and rounds step by step, is compared to within some units in its last place.
UNITS = {"triangular_solve": 64, "fft": 64}
MLIR: dict[str, Callable[[Attributes], str]] = {
    **dict.fromkeys(("complex", "real", "imag", "bitcast_convert", "popcnt", "count_leading_zeros"), lambda _: ""),
    **dict.fromkeys(("dynamic_update_slice", "dynamic_reshape", "dynamic_pad"), lambda _: ""),
    "reduce_precision": lambda a: f"exponent_bits = {a['exponent_bits']} : i32, mantissa_bits = {a['mantissa_bits']} : i32",
    "get_dimension_size": lambda a: f"dimension = {a['dimension']} : i64",
    "dynamic_slice": ints("slice_sizes"),
    "gather": gather,
    "dynamic_gather": gather,
    "dynamic_broadcast_in_dim": ints("broadcast_dimensions", "known_expanding_dimensions", "known_nonexpanding_dimensions"),
    "dynamic_iota": lambda a: f"iota_dimension = {a['dimension']} : i64",
    "dynamic_conv": convolution,
    "triangular_solve": lambda a: (
        f"{words(a, 'left_side', 'lower', 'unit_diagonal')}, transpose_a = #stablehlo<transpose {a['transpose_a']}>"
    ),
    "fft": lambda a: f"fft_type = #stablehlo<fft_type {a['fft_type']}>, {ints('fft_length')(a)}",
    **dict.fromkeys(("optimization_barrier", "uniform_quantize", "uniform_dequantize"), lambda _: ""),
}  # fmt: skip
OPS = [op for op in HUB if op.name.removeprefix("stablehlo.") in MLIR]


def drawn(op: Op, count: int) -> list[Case]:
    """The first `count` cases that Hypothesis draws, the same every time."""
    found: list[Case] = []

    @settings(max_examples=count, deadline=None, derandomize=True, database=None, phases=[Phase.generate],
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(cases(op))
    def collect(case: Case) -> None:
        found.append(case)

    collect()
    return found


def results_of(case: Case) -> list[TensorType]:
    """The result types under BINDING."""
    items = case.term.type.items if isinstance(case.term.type, TupleType) else (case.term.type,)
    return [TensorType(item.dtype, numbers(item.dims)) for item in items if isinstance(item, TensorType)]


def source_of(plain: str, case: Case) -> str:
    """The case as a module."""
    types = [operand.tensor for operand in case.term.operands]
    return module(plain, MLIR[plain](dict(case.term.attributes)), case.arrays, results_of(case), types_of=types)


def same(ours: np.ndarray[Any, Any], theirs: np.ndarray[Any, Any], units: int) -> bool:
    if dtype_of(ours.dtype).kind not in ("float", "complex") or units == 0:
        return bool(np.array_equal(widen(ours), widen(theirs), equal_nan=widen(ours).dtype.kind in "fc"))
    a, b = (widen(x).astype(np.complex128 if x.dtype.kind == "c" else np.float64) for x in (ours, theirs))
    epsilon = float(ml_dtypes.finfo(ours.real.dtype).eps)  # type: ignore[no-untyped-call]
    return bool(np.allclose(a, b, rtol=units * epsilon, atol=units * epsilon, equal_nan=True))


@pytest.mark.parametrize("op", OPS, ids=str)
def test_op_is_as_the_reference_interpreter_has_it(op: Op) -> None:
    plain = op.name.removeprefix("stablehlo.")
    found = [tame(case) for case in drawn(op, 240 if plain == "fft" else 80) if not skipped(case)]
    sources = [source_of(plain, case) for case in found]
    agreed = 0
    for case, source, answer in zip(found, sources, interpret(sources), strict=True):
        if isinstance(answer, str):
            print(answer.splitlines()[-1], source)  # pytest shows it when too few could be compared
            continue
        ours = case.value()
        for mine, theirs in zip(ours if isinstance(ours, tuple) else (ours,), arrays_of(answer, results_of(case)), strict=True):
            assert same(mine, theirs, UNITS.get(plain, 0)), f"{source}\nours   {mine.tolist()}\ntheirs {theirs.tolist()}"
        agreed += 1
    least = 0.6 if plain in ("triangular_solve", "uniform_quantize", "uniform_dequantize") else 0.8  # it refuses many of these
    assert agreed >= least * len(found) and len(found) >= 25, f"{agreed} of {len(found)} could be compared"


INDEXED = {"dynamic_slice": 1, "dynamic_update_slice": 2, "gather": 1, "dynamic_gather": 1}  # op: its first index operand
LACKS_INFINITY = ("f8e4m3fn", "f8e4m3fnuz", "f8e5m2fnuz", "f4e2m1fn")


def skipped(case: Case) -> bool:
    """What the interpreter does not know or has otherwise, for a reason that is named here."""
    name = case.term.op.name.removeprefix("stablehlo.")
    types = [operand.tensor for operand in case.term.operands] + results_of(case)
    if any(type.dtype.name in ("f8e8m0fnu", "string") for type in types):
        return True
    if name == "fft" and "64" not in str(case.arrays[0].dtype) and "128" not in str(case.arrays[0].dtype):
        return True  # it aborts on f32
    if name == "fft" and (case.arrays[0].dtype == np.complex64 or case.term.attribute("fft_type") == "IRFFT"):
        return True  # of odd length it has the wrong half; XLA has ours (test_hub_data_xla.py)
    if name == "uniform_quantize" and case.term.operands[0].tensor.dtype == case.term.tensor.dtype:
        return True  # it takes the op away, although the steps round
    if any(isinstance(t.dtype, QuantizedType) and t.dtype.storage.kind == "uint" for t in types):
        return True  # it takes unsigned storage for signed
    if name == "triangular_solve" and not case.term.attribute("left_side"):
        return True  # it aborts; XLA does not (test_hub_data_xla.py)
    if name == "dynamic_conv" and 0 in case.arrays[1].shape[2:]:
        return True  # its verifier wants windows of 1 or more
    if name == "reduce_precision" and types[0].dtype.name in LACKS_INFINITY:
        return True  # it writes the bits of an infinity, which are a number of these dtypes; XLA gives NaN as we do
    indices = case.arrays[INDEXED[name] :] if name in INDEXED else []
    # it reads the bits of unsigned indices as signed; the specification and XLA do not
    return any(x.dtype.name.startswith("u") and np.any(widen(x) > np.iinfo(np.int64).max >> 64 - dtype_of(x.dtype).bits) for x in indices)


def tame(case: Case) -> Case:
    """Floats whose sums do not depend on the order: -1, 0 and 1."""
    if case.term.op.name != "stablehlo.dynamic_conv":
        return case
    return Case(case.term, [_sign(x) if dtype_of(x.dtype).kind in ("float", "complex") else x for x in case.arrays])


def _sign(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.asarray(np.sign(np.nan_to_num(widen(x.real))).astype(x.dtype))
