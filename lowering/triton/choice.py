"""What may be chosen of a Triton kernel without changing what it computes: the numbers of its tiles, its warps, its stages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from coset.ir.errors import CosetError

WARPS, STAGES = 4, 3  # of a launch that says nothing


@dataclass(frozen=True)
class KernelChoice:
    """Numbers by name (powers of two, or counts), as a family of kernels has them, for the function that does its work."""

    numbers: tuple[tuple[str, int], ...]
    warps: int = WARPS
    stages: int = STAGES

    def __getitem__(self, name: str) -> int:
        """The number of this name."""
        return dict(self.numbers)[name]

    def get(self, name: str) -> int | None:
        """The number of this name; None where the family, or this form of it, has none."""
        return dict(self.numbers).get(name)

    @staticmethod
    def of(numbers: Mapping[str, int | None], warps: int, stages: int) -> KernelChoice:
        """The choice of those numbers that are given."""
        return KernelChoice(tuple((name, number) for name, number in numbers.items() if number is not None), warps, stages)

    def text(self) -> str:
        """As it is kept and shown: `BLOCK_M=64 BLOCK_N=32 warps=4 stages=3`."""
        return " ".join(f"{name}={number}" for name, number in (*self.numbers, ("warps", self.warps), ("stages", self.stages)))

    @staticmethod
    def read(text: str) -> KernelChoice:
        """The choice that `text` was written from.

        Raises:
            CosetError: it is none.
        """
        pairs = re.findall(r"(\w+)=(\d+)(?: |$)", text)
        names = [name for name, _ in pairs]
        if names[-2:] != ["warps", "stages"] or " ".join(f"{name}={number}" for name, number in pairs) != text:
            raise CosetError(f"`{text}` is no choice of a kernel's numbers", help="such as BLOCK=512 warps=4 stages=3")
        *numbers, (_, warps), (_, stages) = pairs
        return KernelChoice(tuple((name, int(number)) for name, number in numbers), int(warps), int(stages))


@dataclass(frozen=True)
class MeasuredChoice:
    """A choice that was measured: `factor` times as fast as the default (1.0: it is the default)."""

    choice: KernelChoice
    factor: float


@dataclass(frozen=True)
class KernelChoices:
    """What was chosen by kernel (`triton_key`) for these `sizes` of a program's free dims."""

    kernels: Mapping[str, MeasuredChoice]
    sizes: Mapping[str, int] = field(default_factory=dict)
