"""The attributes of the ONNX standard in rules: `nodes.rules` says what nodes with them become, of ops that programs hold under others."""

from __future__ import annotations

from pathlib import Path

from coset.dialects.onnx import indexing as onnx_indexing
from coset.dialects.onnx import losses as onnx_losses
from coset.dialects.onnx import ops as onnx_ops
from coset.dialects.onnx import reductions as onnx_reductions
from coset.dialects.onnx import windows as onnx_windows
from coset.rules.defining import defer_definitions

DEFINED_FIRST = (onnx_indexing, onnx_losses, onnx_ops, onnx_reductions, onnx_windows)  # the definitions mention their ops
RULES = defer_definitions(Path(__file__).with_name("nodes.rules"))
