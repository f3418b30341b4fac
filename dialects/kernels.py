"""The fused kernels of ONNX Runtime's CPU provider (domain com.microsoft) as ops of the dialect `ort`: `kernels.rules`."""

from __future__ import annotations

from pathlib import Path

from coset.dialects import chlo, onnx_ops, stablehlo, stablehlo_data
from coset.rules.definition import defer_definitions

PRIMITIVES = (chlo, onnx_ops, stablehlo, stablehlo_data)  # the definitions mention their ops

FILES = ("kernels", "kernels_streams")
OPS = tuple(name for file in FILES for name in defer_definitions(Path(__file__).with_name(f"{file}.rules")))
