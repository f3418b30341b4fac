"""The ONNX ops that stay one node because a kernel exists for them: each is defined by a term in `onnx.rules`."""

from __future__ import annotations

from pathlib import Path

from coset.dialects import chlo, stablehlo
from coset.rules.definition import load_definitions

PRIMITIVES = (chlo, stablehlo)  # the definitions mention their ops

RULES = load_definitions(Path(__file__).with_name("onnx.rules"))
