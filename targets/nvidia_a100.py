"""NVIDIA A100 80 GB (SXM) under torch and Triton: published rates, none of them measured here."""

from __future__ import annotations

from coset.targets.gpu import GUIDE, gpu
from coset.targets.target import EVERY, Curve, Rate, register

DATASHEET = "published, not measured: NVIDIA A100 Tensor Core GPU datasheet (2021), 80 GB SXM; dense rates"
ARCHITECTURE = "published, not measured: NVIDIA A100 Tensor Core GPU Architecture whitepaper (2020)"

register(
    gpu(
        "nvidia-a100",
        "NVIDIA A100 80 GB (SXM) with torch and Triton",
        bandwidth=Rate(2.039e12, "B/s", DATASHEET),
        flops={
            EVERY: 19.5e12,
            "f64": 19.5e12,
            "f32": 19.5e12,
            "f16": 312e12,
            "bf16": 312e12,
            "i8": 624e12,
            "u8": 624e12,
            "c64": 19.5e12,
            "c128": 9.7e12,
        },
        flops_source=DATASHEET,
        functions=Rate(2.4e12, "element/s", ARCHITECTURE + "; 16 special functions a clock and SM, 108 SMs"),
        rows=Curve(((1, 1 / 16), (16, 1.0)), "rows", "share", "published: an mma instruction has 16 rows (PTX ISA, section 9.7.14)"),
        numbers={
            "memory": Rate(80e9, "B", DATASHEET),
            "multiprocessors": Rate(108, "SMs", ARCHITECTURE),
            "l2": Rate(40e6, "B", ARCHITECTURE),
            "shared": Rate(163 * 1024, "B a block", GUIDE.format("8.0")),
            "registers": Rate(65536, "32-bit registers a SM", GUIDE.format("8.0")),
            "registers_per_thread": Rate(255, "32-bit registers", GUIDE.format("8.0")),
            "compute_capability": Rate(8.0, "compute capability", GUIDE.format("8.0")),
            "tf32": Rate(10, "bits of fraction of an f32 operand in the tensor cores, where the numerics allow it", ARCHITECTURE),
        },
    )
)
