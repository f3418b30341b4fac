"""ONNX's conversions between element types by the definitions of `casts.rules`: values (Cast, CastLike) and bits (BitCast)."""

from __future__ import annotations

from pathlib import Path

from coset.dialects.onnx.node import definition
from coset.dialects.onnx.sugar import sugar, sugar_builders

RULES = sugar_builders(Path(__file__).with_name("casts.rules"))
definition("Cast", "CastLike", "BitCast")(sugar)
