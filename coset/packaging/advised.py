"""What `coset lower --profile` takes from a profile: the program that won, where it is found again, and numbers for its kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coset.backends.profile import MeasuredAt
from coset.ir.errors import CosetError
from coset.lowering.triton.choice import KernelChoices
from coset.lowering.triton.launch import EmitOptions
from coset.packaging.chosen import Advice, advice
from coset.packaging.programs import extracted, model_key
from coset.searching.package_memory import PlannedPackage
from coset.searching.solving import Searched
from coset.searching.task import Task
from coset.targets.target import Target


@dataclass(frozen=True)
class Picked:
    """The program that is lowered: the target's own choice, or `strayed` (not 0) the one that was `factor` times as fast as that."""

    planned: PlannedPackage
    strayed: int = 0
    factor: float = 1.0

    def cost(self, first: Mapping[str, Any]) -> dict[str, Any]:
        """The costs that are reported, where those of the target's own choice are `first`: another's own prices are not the target's."""
        if not self.strayed:
            return dict(first)
        assert self.planned.memory is not None
        output = self.planned.memory["default"]["seconds"]
        return {**first, "output": output, "gap": max(0.0, (output - first["lower_bound"]) / output), "method": "measured"}


@dataclass(frozen=True)
class Advised:
    """A profile as `coset lower` uses it; without a `file` it has nothing to say."""

    file: Path | None
    advice: Advice

    @property
    def place(self) -> MeasuredAt | None:
        """Where the profile was measured for the target; None where it has nothing for it."""
        return self.advice.place

    def choices(self, sizes: Mapping[str, int]) -> KernelChoices | None:
        """For kernels whose free dims have these sizes."""
        return self.advice.choices(sizes) if self.place is not None else None

    def picked(self, task: Task, first: PlannedPackage, options: EmitOptions, known: Searched, *, atomics: bool) -> Picked:
        """The program that won for this model and these sizes; the first where none did, or where it is not found again."""
        won = None if self.place is None or first.plan is None else self.advice.program(model_key(task))
        if won is None:
            return Picked(first)
        try:
            again = extracted(task, won.strayed, options, known, atomics=atomics)
        except CosetError:
            again = None
        if again is None or again.digest != won.program:
            task.job.progress(
                "the program that the profile chose is not found with these rules, numerics and limits: the first one is taken"
            )
            return Picked(first)
        return Picked(again.planned, won.strayed, 1.0 / won.timed.ratio)

    def told(self, kernels: Sequence[Mapping[str, Any]], picked: Picked) -> dict[str, Any] | None:
        """What the report says of it; None without a profile."""
        if self.file is None:
            return None
        tuned = {kernel["name"]: kernel["tuned"]["factor"] for kernel in kernels if "tuned" in kernel}
        device = None if self.place is None else {"name": self.place.device, "versions": self.place.versions}
        program = {"strayed": picked.strayed, "factor": picked.factor}
        return {"file": str(self.file), "device": device, "tuned": tuned, "program": program}


def advised_by(file: Path | None, target: Target, progress: Callable[[str], None]) -> Advised:
    """What a profile says of a target; where it has nothing for it, that is said.

    Raises:
        CosetError: there is no such file, or it is no profile.
    """
    if file is None:
        return Advised(None, Advice(None, {}, {}))
    found = advice(file, target)
    if found.place is None:
        progress(f"the profile `{file}` has nothing for `{target.name}`: kernels are as they are by default")
    else:
        progress(f"{len(found.kernels)} kernels were tuned on {found.place.device} ({found.place.versions})")
    return Advised(file, found)
