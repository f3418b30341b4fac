"""The ops of CHLO that a term defines: `chlo.rules`."""

from __future__ import annotations

from pathlib import Path

from coset.dialects.hub import chlo, stablehlo, stablehlo_data, stablehlo_regions
from coset.rules.defining import defer_definitions

PRIMITIVES = (chlo, stablehlo, stablehlo_data, stablehlo_regions)  # the definitions mention their ops

OPS = defer_definitions(Path(__file__).with_name("chlo.rules"))
