"""NVIDIA H100 80 GB (SXM) under torch and Triton: published rates, none of them measured here."""

from __future__ import annotations

from coset.targets.gpu import GUIDE, gpu
from coset.targets.target import EVERY, Curve, Rate, register

DATASHEET = "published, not measured: NVIDIA H100 Tensor Core GPU datasheet (2023), SXM; dense rates, half of those with sparsity"
ARCHITECTURE = "published, not measured: NVIDIA H100 Tensor Core GPU Architecture whitepaper (2022)"

register(
    gpu(
        "nvidia-h100",
        "NVIDIA H100 80 GB (SXM) with torch and Triton",
        bandwidth=Rate(3.35e12, "B/s", DATASHEET),
        flops={
            EVERY: 67e12,
            "f64": 67e12,
            "f32": 67e12,
            "f16": 989e12,
            "bf16": 989e12,
            "f8e4m3fn": 1979e12,
            "f8e5m2": 1979e12,
            "i8": 1979e12,
            "u8": 1979e12,
            "c64": 67e12,
            "c128": 34e12,
        },
        flops_source=DATASHEET,
        functions=Rate(4e12, "element/s", ARCHITECTURE + "; 16 special functions a clock and SM, 132 SMs"),
        rows=Curve(((1, 1 / 64), (64, 1.0)), "rows", "share", "published: a wgmma instruction has 64 rows (PTX ISA, section 9.7.15)"),
        numbers={
            "memory": Rate(80e9, "B", DATASHEET),
            "multiprocessors": Rate(132, "SMs", ARCHITECTURE),
            "l2": Rate(50e6, "B", ARCHITECTURE),
            "shared": Rate(227 * 1024, "B a block", GUIDE.format("9.0")),
            "registers": Rate(65536, "32-bit registers a SM", GUIDE.format("9.0")),
            "registers_per_thread": Rate(255, "32-bit registers", GUIDE.format("9.0")),
            "compute_capability": Rate(9.0, "compute capability", GUIDE.format("9.0")),
            "tf32": Rate(10, "bits of fraction of an f32 operand in the tensor cores, where the numerics allow it", ARCHITECTURE),
        },
    )
)
