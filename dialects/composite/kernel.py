"""Composite kernels that every backend shares and ONNX has no op of that meaning for (dialect `kernel`): `kernel.rules`."""

from __future__ import annotations

from pathlib import Path

from coset.dialects.hub import chlo, stablehlo, stablehlo_data
from coset.dialects.onnx import ops as onnx_ops
from coset.rules.defining import defer_definitions

PRIMITIVES = (chlo, onnx_ops, stablehlo, stablehlo_data)  # the definitions mention their ops

OPS = defer_definitions(Path(__file__).with_name("kernel.rules"))
