"""The ONNX ops that stay one node because a kernel exists for them: each is defined by a term in `ops.rules`."""

from __future__ import annotations

from pathlib import Path

from coset.dialects.hub import chlo, stablehlo, stablehlo_collectives, stablehlo_data, stablehlo_math, stablehlo_regions
from coset.rules.defining import load_definitions

# the definitions mention their ops; one that no lock file knows yet is read at once
PRIMITIVES = (chlo, stablehlo, stablehlo_collectives, stablehlo_data, stablehlo_math, stablehlo_regions)

RULES = load_definitions(Path(__file__).with_name("ops.rules"))
