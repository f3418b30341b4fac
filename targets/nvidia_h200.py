"""NVIDIA H200 (SXM) under torch and Triton: published rates, none of them measured here."""

from __future__ import annotations

from coset.targets.hopper import hopper
from coset.targets.target import register

DATASHEET = "published, not measured: NVIDIA H200 Tensor Core GPU datasheet (2024), SXM; dense rates, half of those with sparsity"

register(hopper("nvidia-h200", "NVIDIA H200 (SXM)", bandwidth=4.8e12, memory=141e9, datasheet=DATASHEET))
