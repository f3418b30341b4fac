"""Every op of the hub prints to ONNX that ONNX Runtime, without optimization, computes to the op's NumPy meaning, or is refused."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1] / "dialects"))

from hub_cases import BINDING, HUB, Case, cases  # type: ignore[import-not-found]

from coset.backends.onnxruntime import Session
from coset.ir import dims
from coset.ir.errors import CosetError
from coset.ir.op import Op
from coset.ir.program import Program
from coset.ir.term import Term
from coset.lowering.onnx.model import lower, printable
from coset.lowering.onnx.printers import PRINTERS

# What the reference makes of values for which ONNX Runtime's kernels have no defined result
UNDEFINED = {"stablehlo.power", "stablehlo.convert", "stablehlo.divide", "stablehlo.remainder", "stablehlo.shift_left"}
ROUNDING = 64  # units in the last place that a kernel's own order of summation and polynomials may cost


def program_of(term: Term, count: int) -> Program:
    inputs = tuple(operand for operand in dict.fromkeys(term.operands) if operand.op.name == "builtin.input")
    assert len(inputs) <= count
    return Program(inputs, (("y", term),))


def differs(ours: Any, theirs: Any, dtype: Any) -> bool:
    if dtype.kind != "float":
        return not np.array_equal(ours, theirs)
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    tolerance = ROUNDING * float(np.finfo(dtype.numpy).eps)
    limits = np.finfo(dtype.numpy)
    subnormal = np.maximum(np.abs(a), np.abs(b)) < 4 * float(limits.tiny)  # kernels may flush these
    huge = np.maximum(np.abs(a), np.abs(b)) > 0.5 * float(limits.max)  # an order of summation decides whether it overflows
    return not bool(np.all(np.isclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True) | subnormal | huge))


# Programs from ONNX have these only inside definitions of kept nodes, so that there was no need to write them yet
NOT_WRITTEN = frozenset(
    """
    chlo.bessel_i1e chlo.digamma chlo.erf_inv chlo.lgamma chlo.polygamma chlo.scan chlo.zeta stablehlo.after_all stablehlo.all_gather
    stablehlo.all_reduce stablehlo.all_to_all stablehlo.batch_norm_grad stablehlo.batch_norm_inference
    stablehlo.batch_norm_training stablehlo.bitcast_convert stablehlo.case stablehlo.cholesky stablehlo.collective_broadcast
    stablehlo.collective_permute stablehlo.complex stablehlo.composite stablehlo.count_leading_zeros stablehlo.create_token
    stablehlo.custom_call stablehlo.dynamic_broadcast_in_dim stablehlo.dynamic_conv stablehlo.dynamic_gather
    stablehlo.dynamic_iota stablehlo.dynamic_pad stablehlo.dynamic_reshape stablehlo.dynamic_slice
    stablehlo.dynamic_update_slice stablehlo.fft stablehlo.gather stablehlo.get_dimension_size stablehlo.if stablehlo.imag
    stablehlo.infeed stablehlo.map stablehlo.optimization_barrier stablehlo.outfeed stablehlo.partition_id stablehlo.popcnt
    stablehlo.real stablehlo.real_dynamic_slice stablehlo.recv stablehlo.reduce_precision stablehlo.reduce_region
    stablehlo.reduce_scatter stablehlo.reduce_window stablehlo.reduce_window_region stablehlo.replica_id stablehlo.rng
    stablehlo.rng_bit_generator stablehlo.scatter stablehlo.select_and_scatter stablehlo.send stablehlo.sort
    stablehlo.triangular_solve stablehlo.uniform_dequantize stablehlo.uniform_quantize stablehlo.while
""".split()  # noqa: SIM905 (a list of sixty lines says no more)
)


def test_every_hub_op_has_a_printer_or_is_known_to_have_none() -> None:
    without = {op.name for op in HUB if op.name not in PRINTERS}
    none = {"stablehlo.atan2", "stablehlo.cbrt", "stablehlo.round_nearest_afz", "stablehlo.shift_right_arithmetic", "chlo.erfc"}
    assert without == none | NOT_WRITTEN


@pytest.mark.parametrize("op", [op for op in HUB if op.name in PRINTERS], ids=lambda op: op.name)
@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_the_printed_op_computes_its_meaning(op: Op, data: st.DataObject) -> None:
    case: Case = data.draw(cases(op))
    types = [operand.type for operand in case.term.operands]
    refusal = printable(op.name, dict(case.term.attributes), types, 20)
    if refusal is not None:
        assert refusal.strip()
        return
    program = program_of(case.term, len(case.arrays))
    symbols = {name for operand in program.inputs for dim in operand.tensor.dims for name in dims.symbols(dim)}
    assume(
        all(dims.symbols(dim) <= symbols for name, value in case.term.attributes if name in ("shape", "start", "limit") for dim in value)
    )
    model = lower(program)
    onnx.checker.check_model(model, full_check=True)
    try:
        session = Session(model.SerializeToString())
    except CosetError as error:
        assert "has no kernel for" in str(error) or "not implemented" in str(error).lower(), error  # no kernel for the element type
        return
    feed = {operand.attribute("name"): array for operand, array in zip(case.term.operands, case.arrays, strict=True)}
    if any(array.size == 0 for array in feed.values()) or op.name in UNDEFINED:
        return  # kernels refuse some empty tensors; these ops are compared on ordinary values below
    if op.name == "stablehlo.sign" and any(np.isnan(array.astype(float)).any() for array in case.arrays):
        return  # ONNX leaves the sign of NaN open
    with np.errstate(all="ignore"):
        expected = case.value()
    try:
        found = session.run(feed)["y"]
    except CosetError:
        assert 0 in expected.shape or 0 in BINDING.values() or any(0 in array.shape for array in case.arrays) or not expected.size
        return
    assert found.shape == expected.shape and found.dtype == expected.dtype
    if op.name in ("stablehlo.dot_general", "stablehlo.convolution", "stablehlo.reduce") and not np.isfinite(expected.astype(float)).all():
        return  # inf - inf and overflow depend on the order of summation
    assert not differs(expected, found, case.term.tensor.dtype), (expected, found)
