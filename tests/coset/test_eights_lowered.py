"""Models of 8-bit floats, lowered: which are multiplied as such on which machine under which numerics, and that they compute what they
mean, with sums in as few bits as Hopper's where these are allowed."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from coset.dialects.hub.terms import dot
from coset.egraph.limits import Limits
from coset.ir.program import Program
from coset.ir.term import input_term
from coset.ir.types import DTYPES, F32, TensorType
from coset.packaging import lower
from coset.packaging.asked import Check, Lowering
from coset.pricing.judge import has_eights
from coset.pricing.kernel_options import IMPRECISE, SHORT_NOISE, TF32_NOISE, eights_for, noise, options_for
from coset.pricing.plan_price import PlanPrices
from coset.targets.target import get_target
from coset.tuning.measuring import differs
from tests.lowering.test_dequantizing import scaled
from tests.lowering.test_triton_eights import matmul
from tests.sampled import sampled

E4M3 = TensorProto.FLOAT8E4M3FN
M, K, N = 130, 256, 144
STABLEHLO = f"""
func.func @main(%x: tensor<{M}x{K}xf8E4M3FN>, %w: tensor<{N}x{K}xf8E5M2>, %s: tensor<{M}xf32>, %t: tensor<{N}xf32>)
    -> tensor<{M}x{N}xbf16> {{
  %a = stablehlo.convert %x : (tensor<{M}x{K}xf8E4M3FN>) -> tensor<{M}x{K}xf32>
  %b = stablehlo.convert %w : (tensor<{N}x{K}xf8E5M2>) -> tensor<{N}x{K}xf32>
  %d = stablehlo.dot_general %a, %b, contracting_dims = [1] x [1] : (tensor<{M}x{K}xf32>, tensor<{N}x{K}xf32>) -> tensor<{M}x{N}xf32>
  %sb = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<{M}xf32>) -> tensor<{M}x{N}xf32>
  %tb = stablehlo.broadcast_in_dim %t, dims = [1] : (tensor<{N}xf32>) -> tensor<{M}x{N}xf32>
  %e = stablehlo.multiply %d, %sb : tensor<{M}x{N}xf32>
  %f = stablehlo.multiply %e, %tb : tensor<{M}x{N}xf32>
  %g = stablehlo.convert %f : (tensor<{M}x{N}xf32>) -> tensor<{M}x{N}xbf16>
  return %g : tensor<{M}x{N}xbf16>
}}
"""


def stablehlo(folder: Path) -> Path:
    """What torch's `_scaled_mm` with scales for rows and columns means, of e4m3 by e5m2."""
    (folder / "model.mlir").write_text(STABLEHLO)
    return folder / "model.mlir"


def dequantized(folder: Path, *, half: bool, columns: bool) -> Path:
    """relu(DequantizeLinear(x) @ DequantizeLinear(w) + b), in f16 or f32, with a scale for each column of w or one for all."""
    draw, kind = np.random.default_rng(0), np.float16 if half else np.float32
    w = draw.normal(size=(K, N)).astype(ml_dtypes.float8_e4m3fn)
    scale = draw.uniform(0.5, 2, (N,) if columns else ()).astype(kind)
    weights = [numpy_helper.from_array(value, name) for name, value in (("t", scale), ("s", np.array(0.75, kind)))]
    weights += [helper.make_tensor("w", E4M3, (K, N), w.tobytes(), raw=True)]
    weights += [numpy_helper.from_array(draw.normal(size=N).astype(kind), "b")]
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "s"], ["xd"]),
        helper.make_node("DequantizeLinear", ["w", "t"], ["wd"], **({"axis": 1} if columns else {})),
        helper.make_node("MatMul", ["xd", "wd"], ["product"]),
        helper.make_node("Add", ["product", "b"], ["sum"]),
        helper.make_node("Relu", ["sum"], ["y"]),
    ]
    ends = [
        [helper.make_tensor_value_info(name, kind_, shape)]
        for name, kind_, shape in (("x", E4M3, [M, K]), ("y", helper.np_dtype_to_tensor_dtype(np.dtype(kind)), [M, N]))
    ]
    graph = helper.make_graph(nodes, "model", *ends, weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), folder / "model.onnx")
    return folder / "model.onnx"


def blocks(folder: Path) -> Path:
    """DequantizeLinear(x) @ DequantizeLinear(w): a scale for each row of x and each column of w, and each block of 64 of k."""
    draw = np.random.default_rng(0)
    w, t = draw.normal(size=(K, N)).astype(ml_dtypes.float8_e4m3fn), draw.uniform(0.5, 2, (K // 64, N)).astype(np.float32)
    weights = [helper.make_tensor("w", E4M3, (K, N), w.tobytes(), raw=True), numpy_helper.from_array(t, "t")]
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "s"], ["xd"], axis=1, block_size=64),
        helper.make_node("DequantizeLinear", ["w", "t"], ["wd"], axis=0, block_size=64),
        helper.make_node("MatMul", ["xd", "wd"], ["y"]),
    ]
    shapes = (("x", E4M3, [M, K]), ("s", TensorProto.FLOAT, [M, K // 64]), ("y", TensorProto.FLOAT, [M, N]))
    ends = [helper.make_tensor_value_info(*each) for each in shapes]
    graph = helper.make_graph(nodes, "model", ends[:2], ends[2:], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), folder / "model.onnx")
    return folder / "model.onnx"


MODELS = {
    "stablehlo": stablehlo,
    "f32": lambda folder: dequantized(folder, half=False, columns=True),
    "f16": lambda folder: dequantized(folder, half=True, columns=True),
    "blocks": blocks,
    "one scale": lambda folder: dequantized(folder, half=False, columns=False),
}


@pytest.mark.parametrize(("target", "numerics", "eight"), [
    ("nvidia-h100", "approx", True), ("nvidia-h100", "reassociates", False), ("nvidia-b200", "reassociates", True),
    ("nvidia-a100", "approx", False),
])  # fmt: skip
@pytest.mark.parametrize("name", sampled(MODELS))
def test_models_are_multiplied_in_8_bits_where_that_is_allowed(name: str, target: str, numerics: str, eight: bool, tmp_path: Path) -> None:
    """Whole packages in Triton's interpreter; scales go behind the sum by rules of the library."""
    pytest.importorskip("torch")
    pytest.importorskip("triton")
    if name == "stablehlo":
        pytest.importorskip("torch_mlir")
    asked = Lowering(
        MODELS[name](tmp_path), get_target(target), numerics, Limits(seconds=20, nodes=4000), check=Check.INTERPRETED, code="triton"
    )
    report = lower.lower(asked, tmp_path / "out")
    assert report["check"]["ok"]
    (kernel,) = report["kernels"]
    both = "f8e4m3fn f8e5m2" if name == "stablehlo" else "f8e4m3fn"
    assert kernel["multiplies"] == (both if eight else "f16")
    text = (tmp_path / "out" / "kernels.py").read_text()
    assert ("max_num_imprecise_acc" in text) == eight and ("from_f8" in text) == (not eight)
    assert ("block = tl.dot(" in text) == (name == "blocks")
    assert ("floats=True" in (tmp_path / "out" / "model.py").read_text()) == (eight and "_tiles.load(" in text)


def test_who_may_multiply_8_bits() -> None:
    """Sums of f32 at all numerics; shorter ones where results may be approximate; machines of other or no such floats never."""
    found = {
        (name, numerics): options_for(numerics, get_target(name)).eights
        for name in ("nvidia-a100", "nvidia-h100", "nvidia-h200", "nvidia-b200", "amd-mi300x")
        for numerics in ("exact", "reassociates", "real", "approx", "lossy")
    }
    assert {key for key, most in found.items() if most == 0} == {key for key in found if key[0] == "nvidia-b200"}
    hopper = {(name, numerics) for name in ("nvidia-h100", "nvidia-h200") for numerics in ("approx", "lossy")}
    assert {key for key, most in found.items() if most} == hopper and {most for most in found.values() if most} == {IMPRECISE}


def test_a_machine_whose_sums_nothing_bounds_multiplies_f16() -> None:
    """Triton bounds short sums on compute capability 9 only: of a user's file of an Ada they would have no bound."""
    from dataclasses import replace

    hopper = get_target("nvidia-h100")
    numbers = {**hopper.numbers, "compute_capability": replace(hopper.numbers["compute_capability"], value=8.9)}
    assert eights_for("lossy", replace(hopper, numbers=numbers)) is None


def test_prices_are_those_of_what_is_multiplied() -> None:
    """8-bit floats at their rate where they are multiplied as such, at that of f16 elsewhere, also behind conversions to f32. On Hopper
    what is multiplied as it is read is priced as measured (958 us on an H200, with an epilogue)."""
    from tests.lowering.test_triton_eights import F32, to

    for wrap in (lambda side: side, lambda side: to(side, F32)):
        kernel, made = matmul(8192, 8192, 8192, DTYPES["f8e4m3fn"], DTYPES["f8e4m3fn"], turned="w", wrap=wrap)
        hopper, blackwell, ampere = map(get_target, ("nvidia-h100", "nvidia-b200", "nvidia-a100"))

        def seconds(target: object, numerics: str) -> float:
            prices = PlanPrices(target, {}, numerics=numerics)  # type: ignore[arg-type]
            return prices.kernel(made, kernel) - prices.launch(kernel)  # noqa: B023

        flop = 2 * 8192.0**3
        assert seconds(hopper, "approx") == pytest.approx(958e-6, rel=0.2)
        assert seconds(hopper, "reassociates") == pytest.approx(flop / 989e12, rel=0.01)
        assert seconds(blackwell, "exact") == pytest.approx(flop / 4500e12, rel=0.01)
        assert seconds(ampere, "lossy") == pytest.approx(flop / 312e12, rel=0.01)


@pytest.mark.parametrize("numerics", ["exact", "reassociates", "approx"])
def test_what_a_product_adds_to_any_plan_is_no_more_than_a_plan_takes(numerics: str) -> None:
    """The bound of extraction, where scales stand in front of the product: a kernel multiplies without them."""
    size, block = 4096, 128
    x, w = (input_term(name, TensorType(DTYPES["f8e4m3fn"], (size, size))) for name in "xw")
    s, t = (input_term(name, TensorType(F32, (size, size // block))) for name in "st")
    y = dot(scaled(x, F32, s, (1, block)), scaled(w, F32, t, (1, block)), lhs_contract=(1,), rhs_contract=(1,))
    program = Program((x, w, s, t), (("y", y),))
    prices = PlanPrices(get_target("nvidia-h100"), {}, numerics=numerics, eights=has_eights(program))
    added = sum(prices.least(term.op, term.attributes, term.type, tuple(o.type for o in term.operands)) for term in program.terms())
    assert 0 < added <= prices.seconds(program) * (1 + 1e-9)
    wide = PlanPrices(get_target("nvidia-h100"), {}, numerics=numerics)
    assert wide.least(y.op, y.attributes, y.type, tuple(o.type for o in y.operands)) > 10 * added, "of a program that has none"


def test_what_short_sums_may_be_off() -> None:
    """A comparison of packages, and one of alternatives on a device, allow for it only where a kernel has such sums."""
    kernels = [{"multiplies": "f8e4m3fn f8e5m2"}, {"multiplies": "f16"}]
    assert noise({"kernels": kernels, "eights": 128}) == (1.0, SHORT_NOISE)
    assert noise({"kernels": kernels, "eights": 0}) == noise({"kernels": kernels[1:], "eights": 128}) == (1.0, 1.0)
    assert noise({"kernels": [{"multiplies": "tf32"}], "eights": None}) == (TF32_NOISE, 1.0)
    exact, near = np.array([1000.0, 1.0], np.float32), np.array([1001.0, 2.0], np.float32)
    assert differs(near, exact, DTYPES["f32"], 4096) and not differs(near, exact, DTYPES["f32"], 4096, IMPRECISE)
    assert differs(exact + 20, exact, DTYPES["f32"], 4096, IMPRECISE)
