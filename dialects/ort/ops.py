"""The fused kernels of ONNX Runtime's CPU provider (domain com.microsoft) as ops of the dialect `ort`: `ops.rules`, `streams.rules`."""

from __future__ import annotations

from pathlib import Path

from coset.dialects.hub import chlo, stablehlo, stablehlo_data
from coset.dialects.onnx import ops as onnx_ops
from coset.rules.defining import defer_definitions

PRIMITIVES = (chlo, onnx_ops, stablehlo, stablehlo_data)  # the definitions mention their ops

FILES = ("ops", "streams")
OPS = tuple(name for file in FILES for name in defer_definitions(Path(__file__).with_name(f"{file}.rules")))
