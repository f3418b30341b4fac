"""What the GPUs with NVIDIA's GH100 chip (SXM) have in common: everything but their memory. Published rates, none measured here."""

from __future__ import annotations

from coset.targets.gpu import GUIDE, gpu
from coset.targets.target import EVERY, Curve, Rate, Target

ARCHITECTURE = "published, not measured: NVIDIA H100 Tensor Core GPU Architecture whitepaper (2022); H100 and H200 have its GH100 chip"


def hopper(name: str, title: str, *, bandwidth: float, memory: float, datasheet: str) -> Target:
    """The target of one GPU: memory of `memory` B at `bandwidth` B/s, both from `datasheet`, as are the dense FLOP rates."""
    return gpu(
        name,
        f"{title} with torch and Triton",
        bandwidth=Rate(bandwidth, "B/s", datasheet),
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
        flops_source=datasheet,
        functions=Rate(4e12, "element/s", ARCHITECTURE + "; 16 special functions a clock and SM, 132 SMs"),
        rows=Curve(((1, 1 / 64), (64, 1.0)), "rows", "share", "published: a wgmma instruction has 64 rows (PTX ISA, section 9.7.15)"),
        numbers={
            "memory": Rate(memory, "B", datasheet),
            "multiprocessors": Rate(132, "SMs", ARCHITECTURE),
            "l2": Rate(50e6, "B", ARCHITECTURE),
            "shared": Rate(227 * 1024, "B a block", GUIDE.format("9.0")),
            "registers": Rate(65536, "32-bit registers a SM", GUIDE.format("9.0")),
            "registers_per_thread": Rate(255, "32-bit registers", GUIDE.format("9.0")),
            "compute_capability": Rate(9.0, "compute capability", GUIDE.format("9.0")),
            "tf32": Rate(10, "bits of fraction of an f32 operand in the tensor cores, where the numerics allow it", ARCHITECTURE),
        },
    )
