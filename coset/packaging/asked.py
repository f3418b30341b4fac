"""What `coset lower` is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from coset.backends.torch_package import TorchPackage
from coset.comparing.fault import Runs
from coset.comparing.feeds import Sample
from coset.egraph.limits import Limits
from coset.ir.errors import CosetError
from coset.job.admission import EVERY_RULE, Admission
from coset.job.job import Progress
from coset.targets.target import Target

DIALECT = "torch"  # of the targets that this lowers for


CODES = ("triton", "torch", "aten")


class Check(Enum):
    """How the package is compared: not at all; with torch functions in place of Triton kernels; or with the kernels themselves, in
    Triton's interpreter."""

    NONE = "none"
    TORCH = "torch"
    INTERPRETED = "interpreted"


Opened = Callable[[Path, bool], AbstractContextManager[Runs]]  # of a folder; true where its kernels are to be interpreted


def in_a_child(folder: Path, interpreted: bool) -> AbstractContextManager[Runs]:
    """The package in a process of its own, which may die without harm."""
    return TorchPackage(folder, interpreted=interpreted)


@dataclass(frozen=True)
class Lowering:
    """What is asked for: the arguments of `coset lower`. `model`: a file, or a program. `code`: Triton kernels for what a plan fuses, torch
    functions in their place, or plain torch code of one op after the other (aten). `opened`: how the package is run to be compared.
    `max_memory`: bytes that the temporaries of the plan may take at once. `atomics`: kernels may add what is scattered in any order, so
    that two runs differ in their last bits. `profile`: what `coset tune` has found, which kernels and the program are chosen by. `streams`:
    how many kernels may run beside each other where the launches are captured (None: as many as the target says). `admission`: which of the
    rules take part. `allow_assumed`: whether rules of the user's may fire of which nothing is shown."""

    model: Any
    target: Target
    numerics: str = "reassociates"
    limits: Limits = field(default_factory=Limits)
    rules: Sequence[str | Path] = ()
    dims: Mapping[str, int] | None = None
    code: str = "triton"
    check: Check = Check.TORCH
    progress: Progress = lambda _: None
    opened: Opened = in_a_child
    max_memory: int | None = None
    atomics: bool = False
    profile: Path | None = None
    streams: int | None = None
    admission: Admission = EVERY_RULE
    allow_assumed: bool = False
    samples: Sequence[Sample] = ()  # inputs of the user's to compare on, beside drawn ones
    check_seconds: float | None = None  # of the comparison, in a process of its own; None: in this one, without a limit

    def refuse_contradictions(self) -> None:
        """Nothing for what can be done.

        Raises:
            CosetError: some of what is asked for does not go together, or not with the target.
        """
        if self.code not in CODES:
            raise CosetError(f"there is no code `{self.code}`", help=f"one of: {', '.join(CODES)}")
        if self.code == "aten" and self.max_memory is not None:
            raise CosetError("the code `aten` has no plan whose memory could be limited", help="use the code `triton` or `torch`")
        if self.streams is not None and self.streams < 1:
            raise CosetError(f"kernels cannot run on {self.streams} streams", help="give 1 for one kernel after the other, or more")
        if self.atomics and self.numerics == "exact":
            raise CosetError("atomic sums are added in any order, which is not exact", help="allow --numerics reassociates")
        if self.target.dialect != DIALECT:
            raise CosetError(f"the target `{self.target.name}` is not lowered to torch", help="use `coset optimize` for it")
        if self.profile is not None and self.code == "aten":
            raise CosetError(
                "the code `aten` has no kernels that a profile could speak of", help="use the code `triton`, or leave --profile out"
            )
