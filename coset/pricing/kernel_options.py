"""What Triton kernels may do for a target under some numerics, and how far that moves results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coset.lowering.triton.launch import EmitOptions, Rounding
from coset.lowering.triton.tiling import is_of_eights
from coset.rules.equation import NUMERICS_ORDER
from coset.targets.target import Target

APPROXIMATE = NUMERICS_ORDER[NUMERICS_ORDER.index("approx") :]  # numerics under which f32 may be multiplied as tf32
TF32_NOISE = 2.0**13  # a rounding to 10 bits of fraction, in roundings to 23
SHORT_NOISE = 2.0**10  # a rounding of a sum to 13 bits of fraction, in roundings to 23
F32_FRACTION = 23  # bits
IMPRECISE = 128  # products of 8-bit floats in a sum of fewer bits (DeepSeek-V3, arXiv:2412.19437, section 3.3.2; CUTLASS adds as many)


def options_for(numerics: str, target: Target) -> EmitOptions:
    """What kernels may do: round after each op and contract nothing where results must be exact; multiply f32 as tf32 where rules may
    approximate and the target's matrix units do, by six products of bf16 where sums may be in another order and these do it sooner than
    in full; multiply 8-bit floats as such (`eights_for`); read operands by bulk copies where the target has them."""
    processors = target.numbers.get("multiprocessors")
    return EmitOptions(
        rounding=Rounding.EACH if numerics == "exact" else Rounding.STORES,
        tf32=numerics in APPROXIMATE and "tf32" in target.numbers,
        bf16x6=numerics != "exact" and target.fusion is not None and target.fusion.bf16x6 is not None,
        processors=int(processors.value) if processors is not None else EmitOptions().processors,
        cache=_cache(target),
        bulk=_bulk(target),
        eights=eights_for(numerics, target),
    )


def _cache(target: Target) -> int:
    """Bytes of L2, where it is one for the whole chip."""
    capability, cache = (target.numbers.get(name) for name in ("compute_capability", "l2"))
    return int(cache.value) if capability is not None and cache is not None else 0


def _bulk(target: Target) -> int:
    """Bytes of shared memory of a program, where it has bulk copies: from compute capability 9.0 on (CUDA C++ Programming Guide, table of
    features by compute capability)."""
    capability, shared = (target.numbers.get(name) for name in ("compute_capability", "shared"))
    return int(shared.value) if capability is not None and shared is not None and capability.value >= 9 else 0


def eights_for(numerics: str, target: Target) -> int | None:
    """How many products of 8-bit floats the matrix units may add before f32 takes the sum on: any number where their sums have the bits of
    f32, a few where they have fewer and rules may approximate, else none. Triton bounds their number on compute capability 9 only."""
    fraction, capability = (target.numbers.get(name) for name in ("f8", "compute_capability"))
    if fraction is None or capability is None:
        return None
    if fraction.value >= F32_FRACTION:
        return 0
    return IMPRECISE if numerics in APPROXIMATE and int(capability.value) == 9 else None


def noise(manifest: Mapping[str, Any]) -> tuple[float, float]:
    """How many roundings of an input an operand of a product may be off in a package, and how many of a result its sum."""
    units = [kernel.get("multiplies", "") for kernel in manifest.get("kernels", [])]
    short = bool(manifest.get("eights")) and any(is_of_eights(unit) for unit in units)
    return TF32_NOISE if "tf32" in units else 1.0, SHORT_NOISE if short else 1.0
