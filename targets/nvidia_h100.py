"""NVIDIA H100 80 GB (SXM) under torch and Triton: published rates, none of them measured here."""

from __future__ import annotations

from coset.targets.hopper import hopper
from coset.targets.target import register

DATASHEET = "published, not measured: NVIDIA H100 Tensor Core GPU datasheet (2023), SXM; dense rates, half of those with sparsity"

register(hopper("nvidia-h100", "NVIDIA H100 80 GB (SXM)", bandwidth=3.35e12, memory=80e9, datasheet=DATASHEET))
