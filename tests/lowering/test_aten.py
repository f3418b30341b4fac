"""Every hub op as torch code computes what its NumPy meaning says, on drawn operands of every dtype that the op takes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parents[1] / "dialects"))  # the strategies that draw cases of hub ops

import hub_data_cases  # noqa: F401, E402
import hub_regions_cases  # noqa: F401, E402
from hub_cases import BINDING, HUB, Case, cases  # noqa: E402
from hypothesis import HealthCheck, given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from torch_programs import run  # noqa: E402

from coset.dialects.hub.scalars import cast, widen  # noqa: E402
from coset.ir.dims import symbol  # noqa: E402
from coset.ir.errors import CosetError  # noqa: E402
from coset.ir.op import Op  # noqa: E402
from coset.ir.program import Program  # noqa: E402
from coset.ir.quantized import QuantizedType  # noqa: E402
from coset.ir.term import Term, get, input_term, make  # noqa: E402
from coset.ir.types import F32, I64, DType, TensorType, TupleType  # noqa: E402

REFUSED = {  # ops without a torch expression: effects, other processes
    "stablehlo.after_all", "stablehlo.create_token", "stablehlo.custom_call", "stablehlo.infeed", "stablehlo.outfeed", "stablehlo.send",
    "stablehlo.recv", "stablehlo.partition_id", "stablehlo.replica_id", "stablehlo.all_gather", "stablehlo.all_reduce",
    "stablehlo.all_to_all", "stablehlo.collective_broadcast", "stablehlo.collective_permute", "stablehlo.reduce_scatter", "stablehlo.rng",
}  # fmt: skip
SUMS = {  # many roundings in another order: no extreme operands, a tolerance over the whole result
    "dot_general", "convolution", "dynamic_conv", "reduce", "reduce_window", "cholesky", "triangular_solve", "fft", "batch_norm_inference",
    "batch_norm_training", "batch_norm_grad", "scatter", "select_and_scatter", "while", "if", "case", "composite", "map",
    "reduce_region", "reduce_window_region",
}  # fmt: skip
BOUNDED = SUMS | {"zeta", "polygamma"}  # torch computes these from operands below 100 only
LOOSE = {  # op: units in the last place that torch's functions may be off, beside their own condition
    "chlo.digamma": 64, "chlo.polygamma": 1e4, "chlo.zeta": 1e4, "chlo.lgamma": 64, "chlo.erf_inv": 64, "chlo.bessel_i1e": 64,
    "stablehlo.power": 32, "stablehlo.tan": 16,
}  # fmt: skip
SIZES = input_term("sizes", TensorType(F32, tuple(map(symbol, BINDING))))  # an input that says the dims, which an iota does not
LOWERED = [op for op in HUB if op.name not in REFUSED]


def examples(op: Op) -> int:
    return 60


@pytest.mark.parametrize("op", LOWERED, ids=lambda op: op.name)
def test_every_op_computes_what_it_means(op: Op) -> None:
    lowered = {"yes": 0, "no": 0}

    @settings(max_examples=examples(op), deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def check(data: st.DataObject) -> None:
        case = data.draw(cases(op))
        if len(set(case.term.operands)) < len(case.term.operands):
            return  # one input twice
        case = Case(case.term, [mild(op, array, term) for array, term in zip(case.arrays, case.term.operands, strict=True)])
        try:
            got = results(case)
        except CosetError as error:
            assert "has no torch expression" in error.message or "torch has no such" in error.message
            lowered["no"] += 1
            return
        lowered["yes"] += 1
        value = case.value()
        expected = value if isinstance(value, tuple) else (value,)
        for one, other, type in zip(expected, got, types_of(case.term), strict=True):
            compare(op, np.asarray(one), other, type.dtype, case)

    check()
    assert lowered["yes"], "not one case was lowered"


def types_of(term: Term) -> list[TensorType]:
    items = term.type.items if isinstance(term.type, TupleType) else (term.type,)
    return [item for item in items if isinstance(item, TensorType)]


def results(case: Case) -> list[np.ndarray[Any, Any]]:
    term = case.term
    roots = [get(term, i) for i in range(len(term.type.items))] if isinstance(term.type, TupleType) else [term]
    program = Program((*term.operands, SIZES), tuple((f"y{i}", root) for i, root in enumerate(roots)))
    given = {operand.attribute("name"): array for operand, array in zip(term.operands, case.arrays, strict=True)}
    return run(program, {**given, "sizes": np.zeros(tuple(BINDING.values()), np.float32)})


def mild(op: Op, array: np.ndarray[Any, Any], term: Term) -> np.ndarray[Any, Any]:
    """Operands of sums without infinities and huge numbers: where an overflow happens depends on the order. NaN stays."""
    dtype = term.tensor.dtype
    if op.name == "stablehlo.bitcast_convert" and dtype.kind == "float":  # which NaN of a narrow type an array has on the way is left open
        return np.where(np.isnan(array.astype(np.float64)), np.ones((), array.dtype), array).astype(array.dtype)
    if op.name.split(".")[1] not in BOUNDED or dtype.kind not in ("float", "complex"):
        return array
    wide = widen(array)
    if dtype.kind == "complex":
        real, imag = (np.where(np.abs(x) < 100, x, 1.0) for x in (wide.real, wide.imag))
        return cast(np.asarray(real + 1j * imag), dtype)
    return cast(np.asarray(np.where((np.abs(wide) < 100) | np.isnan(wide), wide, 1.0), wide.dtype), dtype)


def compare(op: Op, expected: np.ndarray[Any, Any], got: np.ndarray[Any, Any], dtype: DType, case: Case) -> None:
    assert got.shape == expected.shape, f"{got.shape} for {expected.shape}"
    if dtype.kind not in ("float", "complex") or isinstance(dtype, QuantizedType):
        np.testing.assert_array_equal(got, expected)
        return
    if dtype.kind == "complex":
        parts = [(expected.real, got.real), (expected.imag, got.imag)]
        size = np.abs(expected)
    else:
        parts, size = [(widen(expected), widen(got))], np.abs(widen(expected))
    unit = epsilon(dtype)
    finite = np.isfinite(size)
    scale = np.max(size[finite], initial=0.0) if op.name.split(".")[1] in SUMS else np.where(finite, size, 0.0)
    loose = LOOSE.get(op.name, 8) if op.name.split(".")[1] not in SUMS else 256
    bound = loose * unit * scale + smallest(dtype)
    for a, b in parts:
        with np.errstate(all="ignore"):
            both_nan = np.isnan(a) & np.isnan(b)
            near = np.abs(a.astype(np.float64) - b.astype(np.float64)) <= bound
        wrong = ~(both_nan | (a == b) | near)
        if dtype.kind == "complex":
            wrong &= finite  # infinities of complex functions: each library has its own
        assert not wrong.any(), f"{case.term}: {a[wrong][:4]} expected, {b[wrong][:4]} got, operands {case.arrays}"


def epsilon(dtype: DType) -> float:
    import ml_dtypes

    return float(ml_dtypes.finfo(dtype.numpy).eps)


def smallest(dtype: DType) -> float:
    """Subnormals may be flushed."""
    import ml_dtypes

    return float(ml_dtypes.finfo(dtype.numpy).tiny) if dtype.kind == "float" else 1e-30


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_has_no_torch_expression_is_refused_by_name(name: str) -> None:
    from coset.lowering.torch.program import can_say

    assert not can_say(name)


def test_one_element_gathered_by_a_number() -> None:
    """The token at position 0 of a vector: no dim of the indices and none of the operand is left."""
    x, place = input_term("x", TensorType(F32, (5,))), input_term("place", TensorType(I64, ()))
    attributes = {
        "offset_dims": (), "collapsed_slice_dims": (0,), "operand_batching_dims": (), "start_indices_batching_dims": (),
        "start_index_map": (0,), "index_vector_dim": 0, "slice_sizes": (1,),
    }  # fmt: skip
    program = Program((x, place), (("y", make("stablehlo.gather", (x, place), attributes)),))
    found = run(program, {"x": np.arange(5, dtype=np.float32), "place": np.array(3)})
    assert np.asarray(found[0]).tolist() == 3.0
