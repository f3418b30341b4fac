"""AMD Instinct MI300X under torch (ROCm) and Triton: published rates, none of them measured here."""

from __future__ import annotations

from coset.targets.gpu import gpu
from coset.targets.target import EVERY, Curve, Rate, register

DATASHEET = "published, not measured: AMD Instinct MI300X accelerator data sheet (2023); peak rates, dense"
ARCHITECTURE = "published, not measured: AMD CDNA 3 architecture white paper (2023)"
ISA = "published, not measured: AMD Instinct MI300 instruction set architecture (2023)"

register(
    gpu(
        "amd-mi300x",
        "AMD Instinct MI300X with torch and Triton",
        bandwidth=Rate(5.3e12, "B/s", DATASHEET),
        flops={
            EVERY: 163.4e12,
            "f64": 163.4e12,
            "f32": 163.4e12,
            "f16": 1307.4e12,
            "bf16": 1307.4e12,
            "f8e4m3fnuz": 2614.9e12,
            "f8e5m2fnuz": 2614.9e12,
            "i8": 2614.9e12,
            "u8": 2614.9e12,
            "c64": 163.4e12,
            "c128": 81.7e12,
        },
        flops_source=DATASHEET,
        functions=Rate(1e13, "element/s", "assumed: a quarter of the vector rate, 16 a clock and compute unit, 304 units at 2.1 GHz"),
        rows=Curve(((1, 1 / 16), (16, 1.0)), "rows", "share", ISA + "; a v_mfma instruction has 16 rows at least in use"),
        numbers={
            "memory": Rate(192e9, "B", DATASHEET),
            "multiprocessors": Rate(304, "compute units", DATASHEET),
            "l2": Rate(256e6, "B", ARCHITECTURE + "; the Infinity Cache, behind 4 MB of L2 for each of eight dies"),
            "shared": Rate(64 * 1024, "B a workgroup", ISA),
            "registers": Rate(131072, "32-bit vector registers a SIMD", ISA + "; 512 for each of 64 lanes and four waves"),
            "registers_per_thread": Rate(512, "32-bit registers", ISA),
            "tf32": Rate(10, "bits of fraction of an f32 operand in the matrix cores, where the numerics allow it", ISA + "; xf32"),
        },
    )
)
