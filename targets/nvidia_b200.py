"""NVIDIA B200 under torch and Triton: published rates, none of them measured here."""

from __future__ import annotations

from coset.targets.gpu import GUIDE, gpu
from coset.targets.target import EVERY, Curve, Rate, register

DATASHEET = "published, not measured: NVIDIA HGX B200 datasheet (2025), an eighth of the board; dense rates, half of those with sparsity"
ARCHITECTURE = "published, not measured: NVIDIA Blackwell Tuning Guide (2025), compute capability 10.0"

register(
    gpu(
        "nvidia-b200",
        "NVIDIA B200 (HGX) with torch and Triton",
        bandwidth=Rate(7.7e12, "B/s", DATASHEET),
        flops={
            EVERY: 75e12,
            "f64": 37e12,
            "f32": 75e12,
            "f16": 2250e12,
            "bf16": 2250e12,
            "f8e4m3fn": 4500e12,
            "f8e5m2": 4500e12,
            "i8": 4500e12,
            "u8": 4500e12,
            "c64": 75e12,
            "c128": 37e12,
        },
        flops_source=DATASHEET,
        functions=Rate(4.5e12, "element/s", "assumed: 16 special functions a clock and SM as before it, 148 SMs"),
        rows=Curve(
            ((1, 1 / 128), (128, 1.0)), "rows", "share", "published: a tcgen05.mma instruction has 128 rows (PTX ISA, section 9.7.16)"
        ),
        numbers={
            "memory": Rate(180e9, "B", DATASHEET),
            "multiprocessors": Rate(148, "SMs", "reported by device queries, not published by the vendor"),
            "l2": Rate(126e6, "B", ARCHITECTURE),
            "shared": Rate(227 * 1024, "B a block", GUIDE.format("10.0")),
            "registers": Rate(65536, "32-bit registers a SM", GUIDE.format("10.0")),
            "registers_per_thread": Rate(255, "32-bit registers", GUIDE.format("10.0")),
            "compute_capability": Rate(10.0, "compute capability", GUIDE.format("10.0")),
            "tf32": Rate(10, "bits of fraction of an f32 operand in the tensor cores, where the numerics allow it", ARCHITECTURE),
        },
    )
)
